//! The media header: which media set a file belongs to, and which of its families it is.

use aws_lc_rs::digest;

use super::{MediaVersion, MOST_FAMILIES, MOST_MIRRORS};
use crate::error::{Error, Result, Subject};
use crate::fields::Fields;
use crate::flags::check_zeros;
use crate::sector::begins_as_database;

/// Bytes of a media header.
pub const MEDIA_HEADER_BYTES: usize = 4096;
/// The first 16 bytes of a media family.
pub const MAGIC: &[u8; 16] = b"Pellucid media\0\0";

const SUM_AT: usize = MEDIA_HEADER_BYTES - 32;
const MOST_NAME_BYTES: usize = 512;
const MOST_DESCRIPTION_BYTES: usize = 1024;
const FLAG_COMPRESSED: u8 = 1;
const FLAG_ENCRYPTED: u8 = 2;

/// The fields of a media header. They are in clear and not authenticated; those that matter are
/// bound into each set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaHeader {
    /// Its format version, and that of each set on it.
    pub version: MediaVersion,
    /// Identity of the media set; all its families have it.
    pub media_set: [u8; 16],
    /// How many families (stripes) the media set has.
    pub families: u16,
    /// The number of this family, from 1.
    pub family: u16,
    /// How many copies each family has, from 1.
    pub mirrors: u8,
    /// The number of this copy, from 0.
    pub mirror: u8,
    /// Whether its sets are compressed.
    pub compressed: bool,
    /// Whether its sets are sealed.
    pub encrypted: bool,
    /// When the media set was made, in microseconds since 1970.
    pub made: u64,
    /// Its name, for people.
    pub name: String,
    /// Its description, for people.
    pub description: String,
}

impl MediaHeader {
    /// Makes the header of a media set of version 1 of one family in one copy, without a name.
    pub fn single(media_set: [u8; 16], compressed: bool, encrypted: bool, made: u64) -> Self {
        Self {
            version: MediaVersion::One,
            media_set,
            families: 1,
            family: 1,
            mirrors: 1,
            mirror: 0,
            compressed,
            encrypted,
            made,
            name: String::new(),
            description: String::new(),
        }
    }

    /// Encodes the header.
    ///
    /// # Errors
    /// [`Error::LimitReached`] for a name or description that is too long, [`Error::Misuse`] for one with control
    /// characters: no reader would take it.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&self.version.encode());
        out.extend_from_slice(&self.families.to_be_bytes());
        out.extend_from_slice(&self.family.to_be_bytes());
        let flags = if self.compressed { FLAG_COMPRESSED } else { 0 }
            | if self.encrypted { FLAG_ENCRYPTED } else { 0 };
        out.extend_from_slice(&[self.mirrors, self.mirror, flags, 0, 0, 0, 0, 0]);
        out.extend_from_slice(&self.media_set);
        out.extend_from_slice(&self.made.to_be_bytes());
        for (text, most, what) in [
            (&self.name, MOST_NAME_BYTES, "media name"),
            (&self.description, MOST_DESCRIPTION_BYTES, "media description"),
        ] {
            if text.len() > most {
                return Err(Error::limit(
                    Subject::Option(what.into()),
                    format!("it has {} bytes; at most {most} are allowed", text.len()),
                ));
            }
            check_readable(text, what)?;
            out.extend_from_slice(&(text.len() as u16).to_be_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        out.resize(SUM_AT, 0);
        let sum = digest::digest(&digest::SHA256, &out);
        out.extend_from_slice(sum.as_ref());
        Ok(out)
    }

    /// Whether a file begins as media do.
    pub fn begins(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// Whether `bytes`, the whole file, may be the rest of a write that was interrupted at its
    /// start.
    pub fn may_begin(bytes: &[u8]) -> bool {
        MAGIC.starts_with(bytes)
    }

    /// Parses a media header.
    ///
    /// # Errors
    /// [`Error::WrongKind`] if it is none, [`Error::Corrupt`] if it is damaged, [`Error::Unsupported`] for a newer format, or a flag or byte in use that is
    /// not known.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let corrupt = |cause: &'static str| Error::corrupt(Subject::MediaHeader, cause);
        let Some(whole) = bytes.get(..MEDIA_HEADER_BYTES) else {
            return Err(match Self::begins(bytes) {
                true => Error::corrupt(Subject::MediaHeader, truncated(bytes.len())),
                false => no_media(bytes),
            });
        };
        let mut sum = digest::Context::new(&digest::SHA256);
        sum.update(MAGIC);
        sum.update(&whole[MAGIC.len()..SUM_AT]);
        let matches = sum.finish().as_ref() == &whole[SUM_AT..];
        match (Self::begins(bytes), matches) {
            (true, true) => {}
            (false, true) => return Err(corrupt("its first 16 bytes are damaged")),
            (true, false) => return Err(corrupt("torn or damaged: its checksum does not match")),
            (false, false) => return Err(no_media(bytes)),
        }
        let version = MediaVersion::of(bytes)?;
        let mut fields = Fields::new(&bytes[20..SUM_AT]);
        check_known(Subject::MediaHeader, bytes[26], FLAG_COMPRESSED | FLAG_ENCRYPTED)?;
        let header = Self::parse_fields(&mut fields, version);
        let header = header.ok_or_else(|| corrupt("its fields are malformed"))?;
        let end = SUM_AT - fields.rest().len();
        check_zeros(bytes, [27..32, end..SUM_AT], || Subject::MediaHeader)?;
        Ok(header)
    }

    fn parse_fields(fields: &mut Fields<'_>, version: MediaVersion) -> Option<Self> {
        let (families, family) = (fields.u16()?, fields.u16()?);
        let [mirrors, mirror, flags] = fields.array()?;
        fields.take(5)?;
        let (media_set, made) = (fields.array()?, fields.u64()?);
        let mut text = || {
            let bytes = usize::from(fields.u16()?);
            readable(fields.take(bytes)?)
        };
        let (name, description) = (text()?, text()?);
        let fits = (1..=MOST_FAMILIES).contains(&families)
            && (1..=families).contains(&family)
            && (1..=MOST_MIRRORS).contains(&mirrors)
            && mirror < mirrors;
        fits.then_some(Self {
            version,
            media_set,
            families,
            family,
            mirrors,
            mirror,
            compressed: flags & FLAG_COMPRESSED != 0,
            encrypted: flags & FLAG_ENCRYPTED != 0,
            made,
            name,
            description,
        })
    }
}

/// Refuses the bits of a byte of flags that are not `known`.
pub(super) fn check_known(subject: Subject, flags: u8, known: u8) -> Result<()> {
    match flags & !known {
        0 => Ok(()),
        unknown => Err(Error::unsupported(
            subject,
            format!(
                "flags {unknown} are not known to this version: a newer version of pellucid made it"
            ),
        )),
    }
}

/// Reads text that is shown before anything is authenticated: it must have no escape sequences for
/// a terminal.
fn readable(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8(bytes.to_vec()).ok()?;
    is_readable(&text).then_some(text)
}

fn moves_the_cursor(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

/// Whether text can be shown on a terminal.
pub(crate) fn is_readable(text: &str) -> bool {
    !text.contains(moves_the_cursor)
}

/// Refuses text that no program could show.
pub(super) fn check_readable(text: &str, what: &'static str) -> Result<()> {
    if is_readable(text) {
        return Ok(());
    }
    Err(Error::misuse(
        Subject::Option(what.into()),
        "it has control characters, which are not for a terminal: leave them out",
    ))
}

/// Returns the text with U+FFFD in the place of control characters.
pub(super) fn made_readable(text: &str) -> String {
    text.replace(moves_the_cursor, "\u{fffd}")
}

/// What a file that is no media is told, by its first bytes.
fn no_media(bytes: &[u8]) -> Error {
    let but = match bytes {
        [] => "; it is empty",
        _ if begins_as_database(bytes) => ", but a database",
        _ => "",
    };
    Error::wrong_kind(Subject::MediaHeader, format!("this is no backup of Pellucid's{but}"))
}

fn truncated(bytes: usize) -> String {
    format!("truncated: {bytes} of its {MEDIA_HEADER_BYTES} bytes are there")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> MediaHeader {
        MediaHeader {
            version: MediaVersion::Two,
            media_set: [7; 16],
            families: 3,
            family: 2,
            mirrors: 2,
            mirror: 1,
            compressed: true,
            encrypted: true,
            made: 1_700_000_000_000_000,
            name: "nightly".into(),
            description: "what the night brings".into(),
        }
    }

    #[test]
    fn it_reads_back_and_every_flipped_bit_is_seen() {
        let mut bytes = header().encode().unwrap();
        assert_eq!(bytes.len(), MEDIA_HEADER_BYTES);
        assert_eq!(MediaHeader::parse(&bytes).unwrap(), header());
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let told = MediaHeader::parse(&bytes);
            assert!(matches!(told, Err(Error::Corrupt { .. })), "bit {bit}: {told:?}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_file_of_another_kind_is_no_damage() {
        let whole = header().encode().unwrap();
        let mut plain = crate::sector::SQLITE_MAGIC.to_vec();
        plain.resize(MEDIA_HEADER_BYTES, 1);
        for (bytes, says) in [
            (&b""[..], "; it is empty"),
            (b"a shopping list", "Pellucid's"),
            (&[7; 5000], "Pellucid's"),
            (&plain, ", but a database"),
            (&whole[..15], "Pellucid's"),
        ] {
            let told = MediaHeader::parse(bytes).unwrap_err();
            assert!(matches!(told, Error::WrongKind { .. }), "{told:?}");
            assert!(told.to_string().ends_with(says), "{told}");
        }
        let cut = MediaHeader::parse(&whole[..4000]).unwrap_err();
        assert!(matches!(cut, Error::Corrupt { .. }), "{cut:?}");
    }

    #[test]
    fn a_name_that_is_too_long_or_would_move_the_cursor_is_refused() {
        let long = MediaHeader { name: "x".repeat(513), ..header() };
        assert!(matches!(long.encode(), Err(Error::LimitReached { .. })));
        for text in ["\x1b[2J", "\u{9b}2J", "a\rb", "\0"] {
            for loud in [
                MediaHeader { name: text.into(), ..header() },
                MediaHeader { description: text.into(), ..header() },
            ] {
                assert!(matches!(loud.encode(), Err(Error::Misuse { .. })), "{text:?}");
            }
        }
        let lines = MediaHeader { description: "one\n\ttwo".into(), ..header() };
        assert_eq!(MediaHeader::parse(&lines.encode().unwrap()).unwrap(), lines);
        // Nor one that somebody else wrote.
        let mut bytes = header().encode().unwrap();
        bytes[58] = 0x1b;
        let sum = digest::digest(&digest::SHA256, &bytes[..SUM_AT]);
        bytes[SUM_AT..].copy_from_slice(sum.as_ref());
        assert!(MediaHeader::parse(&bytes).is_err());
    }
}
