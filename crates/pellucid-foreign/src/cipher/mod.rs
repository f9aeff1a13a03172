//! Opens pages: one page of a foreign database in, its plaintext out.

pub(crate) mod aegis;
pub(crate) mod chacha20;
mod derive;
mod initial;
pub(crate) mod sqlcipher;
pub(crate) mod wx;

pub(crate) use derive::{pbkdf2, Iterations};
pub(crate) use sqlcipher::SqlCipherPages;

/// The bytes that a plain database begins with (SQLite file format, 1.3.1).
pub(crate) const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// A page that does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unopened {
    /// Its tag does not match: the key is another one, or the page was changed.
    Unauthentic,
    /// It is not as long as a page.
    Length,
}

/// A cipher with its keys.
pub(crate) trait Pages: Send + Sync {
    /// Opens page `number`, which has the right length, in place. Bytes of the reserved area may have any value afterwards.
    fn open(&self, number: u32, page: &mut [u8]) -> Result<(), Unopened>;
    /// Whether a page has a tag.
    fn is_authenticated(&self) -> bool;
    /// Reserved bytes at the end of each page.
    fn reserved_bytes(&self) -> usize;
}

/// Opens the pages of one database.
pub struct Opener {
    pub(crate) pages: Box<dyn Pages>,
    pub(crate) page_bytes: u32,
    pub(crate) told: String,
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opener").field("told", &self.told).finish_non_exhaustive()
    }
}

impl Opener {
    /// Bytes of a page.
    pub fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Whether each page has a tag. If not, nothing tells a changed page from a good one.
    pub fn is_authenticated(&self) -> bool {
        self.pages.is_authenticated()
    }

    /// The settings that were found, in words: `SQLCipher 4 (page size 4096, ..)`.
    pub fn told(&self) -> &str {
        &self.told
    }

    /// Opens page `number` in place. Its reserved bytes are zeros afterwards.
    ///
    /// # Errors
    /// [`Unopened`]; the page is zeroed.
    pub fn open(&self, number: u32, page: &mut [u8]) -> Result<(), Unopened> {
        if page.len() != self.page_bytes as usize {
            page.fill(0);
            return Err(Unopened::Length);
        }
        let opened = self.pages.open(number, page).and_then(|()| match number {
            1 => self.check_clear_fields(page),
            _ => Ok(()),
        });
        let kept = match opened {
            Ok(()) => page.len() - self.pages.reserved_bytes(),
            Err(_) => 0,
        };
        page[kept..].fill(0);
        opened
    }
}

impl Opener {
    /// Some formats leave a part of page 1 in clear, and some of those do not authenticate it: the page size and the reserved
    /// bytes in it have to be those under which the page opened.
    fn check_clear_fields(&self, page: &[u8]) -> Result<(), Unopened> {
        match crate::looks::header(page) {
            Some((bytes, reserved))
                if bytes == self.page_bytes
                    && usize::from(reserved) >= self.pages.reserved_bytes()
                    && page.starts_with(MAGIC) =>
            {
                Ok(())
            }
            _ => Err(Unopened::Unauthentic),
        }
    }
}

/// Whether a decrypted page 1 has the fields that each SQLite database has, for a cipher without tags: its page size, its
/// file format, its reserved bytes, its payload fractions, and the bytes that SQLite keeps zero (SQLite file format, 1.3).
/// The chance for random bytes is below 2^-150.
pub(crate) fn is_first_page(page: &[u8], page_bytes: u32, reserved: usize) -> bool {
    let size = match u16::from_be_bytes([page[16], page[17]]) {
        1 => 65536,
        size => u32::from(size),
    };
    size == page_bytes
        && page.starts_with(MAGIC)
        && matches!(page[18], 1 | 2)
        && matches!(page[19], 1 | 2)
        && usize::from(page[20]) >= reserved
        && page[21..24] == [64, 32, 32]
        && page[72..92].iter().all(|byte| *byte == 0)
}
