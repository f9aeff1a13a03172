//! Finds the settings of a database by its first pages and its secret.
//!
//! Each key derivation is computed once, the widest used first; with its key all page sizes and tags are tried, which costs
//! little. If page 1 does not open, pages behind it are tried: one of them opens if only page 1 is damaged.

use zeroize::Zeroizing;

use crate::cipher::{is_first_page, pbkdf2, Iterations, Opener, Pages, SqlCipherPages};
use crate::looks::is_tree;
use crate::secret::{Secret, SALT_BYTES};
use crate::settings::{Hash, Program, Settings, Tag, PAGE_BYTES};

mod multiple_ciphers;
mod sqlcipher;

/// Bytes of the file's beginning that are enough to find its settings.
pub const SAMPLE_BYTES: usize = 4 * 65536;
/// Pages that are tried.
const PAGES_TRIED: u32 = 8;

/// Why nothing was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotFound {
    /// No setting that was tried opens a page with this secret.
    NoneOpens {
        /// The settings that were tried, in words.
        tried: Vec<String>,
    },
    /// It opens, but only if nothing is authenticated: its maker switched tags off, or somebody changed them. Whoever can write
    /// the file must not choose that, so that its owner has to say it ([`Settings::tag`]).
    Untagged {
        /// The settings, in words.
        told: String,
    },
    /// The file does not begin with the salt, and none was given.
    NoSalt,
    /// A cipher that is not read.
    Refused(&'static str),
    /// The file is shorter than a page.
    TooShort,
    /// A setting is outside of what can be: what, and what is allowed.
    Setting(&'static str),
}

/// Finds how the database that begins with `sample` is opened.
///
/// # Errors
/// [`NotFound`].
pub fn find(
    program: Program,
    settings: &Settings,
    secret: &Secret,
    sample: &[u8],
) -> Result<Opener, NotFound> {
    check(settings)?;
    if sample.len() < 512 {
        return Err(NotFound::TooShort);
    }
    let mut search = Search { settings, secret, sample, pass: Pass::PageOne, derived: Vec::new() };
    let run = |search: &mut Search<'_>| match program {
        Program::SqlCipher => sqlcipher::find(search),
        Program::MultipleCiphers => multiple_ciphers::find(search),
    };
    let mut found = run(&mut search);
    if matches!(found, Err(NotFound::NoneOpens { .. })) {
        search.pass = Pass::AnyPage;
        found = run(&mut search);
    }
    if matches!(found, Err(NotFound::NoneOpens { .. })) {
        search.pass = Pass::Untagged;
        if let Ok(opener) = run(&mut search) {
            return Err(NotFound::Untagged { told: opener.told });
        }
    }
    found
}

/// What is tried, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Page 1, by its tag; by its content where the format has no tags or its owner says that it has none.
    PageOne,
    /// A page behind it, by its tag, for page 1 may be damaged. Some formats differ in page 1 alone.
    AnyPage,
    /// Page 1 by its content, although its tag does not match.
    Untagged,
}

/// A search, with the keys that it has derived.
struct Search<'a> {
    settings: &'a Settings,
    secret: &'a Secret,
    sample: &'a [u8],
    pass: Pass,
    derived: Vec<(Hash, u32, Zeroizing<[u8; 32]>)>,
}

impl Search<'_> {
    /// The key of a passphrase, derived once. `None` if that many iterations are not computed.
    fn derive(
        &mut self,
        passphrase: &[u8],
        kdf: Hash,
        iterations: u32,
    ) -> Option<Zeroizing<[u8; 32]>> {
        let known =
            self.derived.iter().find(|(hash, count, _)| (*hash, *count) == (kdf, iterations));
        if let Some((_, _, key)) = known {
            return Some(key.clone());
        }
        let (salt, count) = (self.salt().ok()?, Iterations::new(iterations)?);
        let mut key = Zeroizing::new([0; 32]);
        pbkdf2(kdf, count, &salt, passphrase, &mut key[..]);
        self.derived.push((kdf, iterations, key.clone()));
        Some(key)
    }

    /// The salt: given, or the file's first bytes.
    fn salt(&self) -> Result<[u8; SALT_BYTES], NotFound> {
        let has_header = self.settings.plaintext_header > 0;
        let of_key = match self.secret {
            Secret::Raw(raw) => raw.salt,
            Secret::Passphrase(_) => None,
        };
        match self.settings.salt.or(of_key.filter(|_| has_header)) {
            Some(salt) => Ok(salt),
            None if has_header => Err(NotFound::NoSalt),
            None => self.sample.first_chunk().copied().ok_or(NotFound::TooShort),
        }
    }

    /// The first page size under which `pages` opens.
    fn page_bytes(&self, pages: &dyn Pages, usual: u32) -> Option<u32> {
        let mut sizes = page_sizes(self.settings, usual).into_iter();
        sizes.find(|bytes| self.opens(pages, *bytes))
    }

    /// Whether `pages` opens page 1, or one of the first pages.
    fn opens(&self, pages: &dyn Pages, page_bytes: u32) -> bool {
        let bytes = page_bytes as usize;
        if pages.reserved_bytes() + USABLE_BYTES_LEAST > bytes {
            return false;
        }
        let last = match self.pass {
            Pass::AnyPage if pages.is_authenticated() => PAGES_TRIED,
            _ => 1,
        };
        for (number, page) in (1..=last).zip(self.sample.chunks_exact(bytes)) {
            let mut page = Zeroizing::new(page.to_vec());
            if pages.open(number, &mut page).is_err() {
                continue;
            }
            return match (pages.is_authenticated(), number) {
                (false, _) => is_first_page(&page, page_bytes, pages.reserved_bytes()),
                // A raw key that brings the key of the tags may have that right and the other one wrong.
                (true, 1) => is_tree(&page, page_bytes),
                (true, _) => true,
            };
        }
        false
    }
}

/// SQLite opens no database with less in a page (SQLite file format, 1.3.4).
const USABLE_BYTES_LEAST: usize = 480;

fn check(settings: &Settings) -> Result<(), NotFound> {
    if settings.page_bytes.is_some_and(|bytes| !PAGE_BYTES.contains(&bytes)) {
        return Err(NotFound::Setting("the page size is a power of two from 512 to 65536"));
    }
    if settings.iterations.is_some_and(|count| Iterations::new(count).is_none()) {
        return Err(NotFound::Setting("1 to 10,000,000 iterations are computed"));
    }
    if settings.compatibility.is_some_and(|version| !(1..=4).contains(&version)) {
        return Err(NotFound::Setting("compatibility is with version 1, 2, 3 or 4"));
    }
    if settings.plaintext_header > 100 || settings.plaintext_header % 16 != 0 {
        return Err(NotFound::Setting(
            "a plaintext header has a multiple of 16 bytes, at most 96; 32 is usual",
        ));
    }
    Ok(())
}

/// The page sizes to try.
fn page_sizes(settings: &Settings, usual: u32) -> Vec<u32> {
    let first = settings.page_bytes.map_or(vec![usual], |bytes| vec![bytes]);
    let rest =
        PAGE_BYTES.iter().copied().filter(|bytes| settings.page_bytes.is_none() && *bytes != usual);
    first.into_iter().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Cipher;

    const SQLCIPHER: &[u8] = include_bytes!("../../../tests/data/foreign/sc4-iter-1000.db");
    const CHACHA20: &[u8] = include_bytes!("../../../tests/data/foreign/mc-chacha20-iter-1000.db");

    fn cheap() -> Settings {
        Settings { iterations: Some(1000), ..Settings::default() }
    }

    fn word() -> Secret {
        Secret::of_passphrase(b"correct horse")
    }

    /// Whatever lies in the file, and wherever it ends, it is opened or refused.
    #[test]
    fn no_beginning_of_a_file_is_more_than_an_error() {
        let mut found = 0;
        for (program, file) in
            [(Program::SqlCipher, SQLCIPHER), (Program::MultipleCiphers, CHACHA20)]
        {
            for end in (0..9000).step_by(701).chain([511, 512, 513, 4095, 4096]) {
                let is_whole = end >= 4096;
                let opened = find(program, &cheap(), &word(), &file[..end]);
                assert_eq!(opened.is_ok(), is_whole, "{end}: {opened:?}");
                found += u32::from(is_whole);
                // A page of nothing, and one of ones, behind a good salt.
                for fill in [0, 0xff] {
                    let mut other = file[..end].to_vec();
                    other.iter_mut().skip(16).for_each(|byte| *byte = fill);
                    assert!(find(program, &cheap(), &word(), &other).is_err(), "{end}");
                }
            }
        }
        assert!(found > 10);
    }

    #[test]
    fn a_page_opens_at_its_own_number_only() {
        let opener = find(Program::SqlCipher, &cheap(), &word(), SQLCIPHER).unwrap();
        let page = |number: usize| SQLCIPHER[(number - 1) * 4096..number * 4096].to_vec();
        for at in 1..=5 {
            for number in 1..=5 {
                let mut bytes = page(at);
                let opened = opener.open(number, &mut bytes);
                assert_eq!(opened.is_ok(), at == number as usize, "{at} as {number}");
                assert!(opened.is_ok() || bytes.iter().all(|byte| *byte == 0), "nothing is left");
            }
        }
        assert_eq!(opener.open(1, &mut [0; 100]), Err(crate::Unopened::Length));
    }

    #[test]
    fn a_cipher_of_the_other_program_is_a_setting_that_cannot_be() {
        let settings = Settings { cipher: Some(Cipher::Rc4), ..cheap() };
        let found = find(Program::SqlCipher, &settings, &word(), SQLCIPHER).unwrap_err();
        assert!(matches!(found, NotFound::Setting(_)), "{found:?}");
        let settings = Settings { cipher: Some(Cipher::Ascon128), ..cheap() };
        let found = find(Program::MultipleCiphers, &settings, &word(), CHACHA20).unwrap_err();
        assert_eq!(found, NotFound::Refused("ascon128"));
    }
}
