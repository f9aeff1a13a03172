//! A bundle: what an instance is made of, sealed in one file, to be taken to another instance.
//!
//! Layout: docs/format.md, "Bundle". Needs no keyring to be opened. What becomes of its entries is not here.

use std::collections::HashSet;
use std::fmt;

use aws_lc_rs::digest;
use zeroize::Zeroizing;

use super::certificates::{check_name, has_companion};
use super::sealed_file::CONTENT_BYTES_MOST;
use pellucid::algorithm::Algorithm;
use pellucid::cipher::Cipher;
use pellucid::derive::{commitment, hkdf_sha256};
use pellucid::error::{Error, Result, Subject};
use pellucid::protector::{unwrap_made, wrap, Binding, KeySource, Protector, Purpose, Wrapping};
use pellucid::secret::{fill_random, Dek};

const MAGIC: &[u8; 16] = b"Pellucid bundle\0";
const VERSION: u16 = 1;
const ID_AT: usize = 20;
const COMMITMENT_AT: usize = 36;
const MADE_AT: usize = 68;
const PROTECTOR_AT: usize = 76;
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
const SUM_BYTES: usize = 32;
/// Ten thousand certificates of 4096 bits.
pub const BUNDLE_BYTES_MOST: u64 = 64 << 20;

const BUNDLE: Subject = Subject::Key("bundle");

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum EntryKind {
    /// The database master key, 32 bytes.
    MasterKey = 1,
    /// A password file of the database master key.
    Password = 2,
    /// A certificate, as its sealed file has it.
    Certificate = 3,
    /// What is remembered of a database, as its sealed file has it.
    Database = 4,
    /// The key of the history and of `master`, 32 bytes: backups of these are under it unless a certificate is named.
    History = 6,
}

/// The kind in a bundle of a certificate with a companion key, which an older version would lose.
const KIND_HYBRID: u8 = 5;

/// One thing of an instance.
#[derive(Clone)]
pub(super) struct Entry {
    pub kind: EntryKind,
    /// The name of its file; empty for the master key.
    pub name: String,
    pub content: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Entry");
        shown.field("kind", &self.kind).field("name", &self.name).finish_non_exhaustive()
    }
}

/// An opened bundle.
#[derive(Debug)]
pub struct Bundle {
    made: u64,
    proves_origin: bool,
    opened_by: String,
    pub(super) entries: Vec<Entry>,
}

impl Bundle {
    /// Opens a bundle's bytes.
    ///
    /// # Errors
    /// [`Error::Misuse`] if they are no bundle at all; [`Error::Corrupt`] for a torn or damaged one, which no key is needed
    /// to see; [`Error::MissingKey`] if no key at hand opens it; [`Error::Unauthentic`] if somebody changed it.
    pub fn open(bytes: &[u8], keys: &dyn KeySource) -> Result<Self> {
        if !bytes.starts_with(MAGIC) {
            return Err(Error::misuse(BUNDLE, "this is not a bundle of an instance"));
        }
        let damaged = || Error::corrupt(BUNDLE, "torn or damaged: its checksum does not match");
        let (body, sum) =
            bytes.split_at_checked(bytes.len().saturating_sub(SUM_BYTES)).ok_or_else(damaged)?;
        if body.len() < PROTECTOR_AT || digest::digest(&digest::SHA256, body).as_ref() != sum {
            return Err(damaged());
        }
        let version = u16::from_be_bytes([body[16], body[17]]);
        if version != VERSION {
            let told = format!("version {version} is newer than {VERSION}");
            return Err(Error::unsupported(BUNDLE, told));
        }
        let short = || Error::corrupt(BUNDLE, "its fields run over its end");
        let length = usize::from(u16::from_be_bytes([body[18], body[19]]));
        let (wrapped, sealed) = body[PROTECTOR_AT..].split_at_checked(length).ok_or_else(short)?;
        let (protector, read) = Protector::decode(wrapped)?;
        let nonce = sealed.first_chunk::<NONCE_BYTES>().ok_or_else(short)?;
        let (ciphertext, tag) = sealed[NONCE_BYTES..]
            .split_at_checked(sealed.len().saturating_sub(NONCE_BYTES + TAG_BYTES))
            .ok_or_else(short)?;
        let tag = tag.first_chunk::<TAG_BYTES>().filter(|_| read == length).ok_or_else(short)?;

        let id = field::<16>(body, ID_AT)?;
        let commitment = field::<32>(body, COMMITMENT_AT)?;
        let made = u64::from_be_bytes(field(body, MADE_AT)?);
        let key =
            unwrap_made(std::slice::from_ref(&protector), &binding(&id, &commitment), keys, made)?;
        let mut content = Zeroizing::new(vec![0; ciphertext.len()]);
        let aad = &body[..body.len() - ciphertext.len() - TAG_BYTES];
        cipher(&key, &id)?
            .open(nonce, aad, ciphertext, tag, &mut content)
            .map_err(|_| Error::unauthentic(BUNDLE, "its tag does not match"))?;
        let entries = parse(&content)?;
        Ok(Self {
            made,
            proves_origin: !matches!(&protector, Protector::Certificate(p) if p.is_recovery()),
            opened_by: protector.describe(),
            entries,
        })
    }

    /// When it was made, in seconds since 1970.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Whether only somebody who has what opens it can have made it: a passphrase, or a certificate's private key. One that
    /// is sealed for a certificate's public half may be anybody's.
    pub fn proves_origin(&self) -> bool {
        self.proves_origin
    }

    /// What opened it, for people.
    pub fn opened_by(&self) -> &str {
        &self.opened_by
    }
}

fn field<const N: usize>(body: &[u8], at: usize) -> Result<[u8; N]> {
    body.get(at..)
        .and_then(<[u8]>::first_chunk)
        .copied()
        .ok_or_else(|| Error::corrupt(BUNDLE, "its fields run over its end"))
}

fn binding<'a>(id: &'a [u8; 16], commitment: &'a [u8; 32]) -> Binding<'a> {
    Binding { purpose: Purpose::Bundle, id, algorithm: Algorithm::Aes256, commitment }
}

/// The key is random and seals one content.
fn cipher(key: &Dek, id: &[u8; 16]) -> Result<Cipher> {
    let mut own = Zeroizing::new([0u8; 32]);
    hkdf_sha256(key.expose(), id, &[b"pellucid/1 bundle"], &mut own[..])?;
    Cipher::new(Algorithm::Aes256, &own[..])
}

/// A bundle's bytes.
pub(super) fn seal(entries: &[Entry], with: &Wrapping<'_>, made: u64) -> Result<Vec<u8>> {
    let key = Dek::random()?;
    let (mut id, mut nonce) = ([0; 16], [0; NONCE_BYTES]);
    fill_random(&mut id)?;
    fill_random(&mut nonce)?;
    let commitment = commitment(&key, &id)?;
    let mut protector = Vec::new();
    wrap(&key, &binding(&id, &commitment), with)?.encode(&mut protector);

    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_be_bytes());
    bytes.extend_from_slice(&(protector.len() as u16).to_be_bytes());
    bytes.extend_from_slice(&id);
    bytes.extend_from_slice(&commitment);
    bytes.extend_from_slice(&made.to_be_bytes());
    bytes.extend_from_slice(&protector);
    bytes.extend_from_slice(&nonce);
    let content = encode(entries);
    let (mut ciphertext, mut tag) = (vec![0; content.len()], [0; TAG_BYTES]);
    cipher(&key, &id)?.seal(&nonce, &bytes, &content, &mut ciphertext, &mut tag)?;
    bytes.extend_from_slice(&ciphertext);
    bytes.extend_from_slice(&tag);
    let sum = digest::digest(&digest::SHA256, &bytes);
    bytes.extend_from_slice(sum.as_ref());
    match bytes.len() as u64 > BUNDLE_BYTES_MOST {
        true => Err(Error::limit(BUNDLE, format!("more than {BUNDLE_BYTES_MOST} bytes"))),
        false => Ok(bytes),
    }
}

/// `[kind 1][name length 1][name][length 4][content]` each.
fn encode(entries: &[Entry]) -> Zeroizing<Vec<u8>> {
    let bytes = entries.iter().map(|entry| 6 + entry.name.len() + entry.content.len()).sum();
    // Of its full size at once: growing would leave copies behind.
    let mut content = Zeroizing::new(Vec::with_capacity(bytes));
    for entry in entries {
        let kind = match entry.kind == EntryKind::Certificate && has_companion(&entry.content) {
            true => KIND_HYBRID,
            false => entry.kind as u8,
        };
        content.extend_from_slice(&[kind, entry.name.len() as u8]);
        content.extend_from_slice(entry.name.as_bytes());
        content.extend_from_slice(&(entry.content.len() as u32).to_be_bytes());
        content.extend_from_slice(&entry.content);
    }
    content
}

fn parse(content: &[u8]) -> Result<Vec<Entry>> {
    let corrupt = || Error::corrupt(BUNDLE, "its entries do not fit");
    let mut entries: Vec<Entry> = Vec::new();
    let mut names = HashSet::new();
    let mut rest = content;
    while let [kind, length, behind @ ..] = rest {
        let is_hybrid = *kind == KIND_HYBRID;
        let kind = match kind {
            1 => EntryKind::MasterKey,
            2 => EntryKind::Password,
            3 | &KIND_HYBRID => EntryKind::Certificate,
            4 => EntryKind::Database,
            6 => EntryKind::History,
            other => {
                let told = format!("entries of kind {other} are not known to this version");
                return Err(Error::unsupported(BUNDLE, told));
            }
        };
        let (name, behind) = behind.split_at_checked(usize::from(*length)).ok_or_else(corrupt)?;
        let (length, behind) = behind.split_first_chunk::<4>().ok_or_else(corrupt)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (content, behind) = behind.split_at_checked(length).ok_or_else(corrupt)?;
        let name = std::str::from_utf8(name).map_err(|_| corrupt())?;
        let fits = fits(kind, name, content)
            && is_hybrid == (kind == EntryKind::Certificate && has_companion(content));
        if !names.insert((kind, name)) || !fits {
            return Err(corrupt());
        }
        let content = Zeroizing::new(content.to_vec());
        entries.push(Entry { kind, name: name.to_owned(), content });
        rest = behind;
    }
    let master_keys = entries.iter().filter(|entry| entry.kind == EntryKind::MasterKey).count();
    match rest.is_empty() && master_keys == 1 {
        true => Ok(entries),
        false => Err(corrupt()),
    }
}

/// Names become names of files, and contents theirs.
pub(super) fn fits(kind: EntryKind, name: &str, content: &[u8]) -> bool {
    let hexadecimal = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
    if content.len() > CONTENT_BYTES_MOST {
        return false;
    }
    match kind {
        EntryKind::MasterKey | EntryKind::History => name.is_empty() && content.len() == 32,
        // The last number is none: another password is to have a place behind it.
        EntryKind::Password => {
            let number = name.parse().unwrap_or(u32::MAX);
            number < u32::MAX && number.to_string() == name
        }
        EntryKind::Certificate => check_name(name).is_ok(),
        EntryKind::Database => name.len() == 32 && name.bytes().all(hexadecimal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pellucid::certificate::{Certificate, CertificateRequest};
    use pellucid::protector::{Argon2Cost, Passphrase};

    const CHEAP: Argon2Cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };

    #[derive(Default)]
    struct AtHand(Vec<Passphrase>, Option<Certificate>, bool);

    impl KeySource for AtHand {
        fn passphrases(&self) -> &[Passphrase] {
            &self.0
        }
        fn certificate(&self, thumbprint: &[u8; 32]) -> Result<Option<Certificate>> {
            Ok(self.1.clone().filter(|found| found.public().thumbprint() == thumbprint))
        }
        fn allow_recovery(&self) -> bool {
            self.2
        }
    }

    fn entries() -> Vec<Entry> {
        let entry = |kind, name: &str, content: &[u8]| Entry {
            kind,
            name: name.to_owned(),
            content: Zeroizing::new(content.to_vec()),
        };
        vec![
            entry(EntryKind::MasterKey, "", &[7; 32]),
            entry(EntryKind::Certificate, "app", b"certificate"),
            entry(EntryKind::Database, &"0f".repeat(16), b"database"),
        ]
    }

    fn resummed(mut bytes: Vec<u8>) -> Vec<u8> {
        let at = bytes.len() - SUM_BYTES;
        let sum = digest::digest(&digest::SHA256, &bytes[..at]);
        bytes[at..].copy_from_slice(sum.as_ref());
        bytes
    }

    #[test]
    fn each_flipped_byte_is_seen_and_each_failure_is_told_apart() {
        let password = Passphrase::new(b"the right one");
        let right = AtHand(vec![password.clone()], None, false);
        let wrong = AtHand(vec![Passphrase::new(b"wrong")], None, false);
        let bytes = seal(&entries(), &Wrapping::Passphrase(&password, CHEAP), 99).unwrap();
        let bundle = Bundle::open(&bytes, &right).unwrap();
        assert_eq!((bundle.made(), bundle.proves_origin(), bundle.entries.len()), (99, true, 3));
        assert_eq!(&bundle.entries[1].content[..], b"certificate");
        assert!(!format!("{bundle:?}").contains("7, 7"), "a key in Debug");
        assert!(!bytes.windows(11).any(|window| window == b"certificate"));
        assert!(matches!(Bundle::open(&bytes, &wrong), Err(Error::MissingKey { .. })));
        let none = AtHand::default();
        assert!(matches!(Bundle::open(&bytes, &none), Err(Error::MissingKey { .. })));
        for stranger in [&b""[..], b"SQLite format 3\0", &[0; 400]] {
            assert!(matches!(Bundle::open(stranger, &right), Err(Error::Misuse { .. })));
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            let told = Bundle::open(&damaged, &right);
            match at < MAGIC.len() {
                true => assert!(matches!(told, Err(Error::Misuse { .. })), "byte {at}"),
                false => assert!(matches!(told, Err(Error::Corrupt { .. })), "byte {at}: {told:?}"),
            }
            let cut = Bundle::open(&bytes[..at], &right);
            assert!(
                matches!(cut, Err(Error::Misuse { .. } | Error::Corrupt { .. })),
                "cut at {at}"
            );
            // By somebody who makes the sum right again. Some costs of Argon2id would take long.
            let cost = PROTECTOR_AT + 4..PROTECTOR_AT + 16;
            if (MAGIC.len()..bytes.len() - SUM_BYTES).contains(&at) && !cost.contains(&at) {
                let told = Bundle::open(&resummed(damaged), &right);
                assert!(told.is_err(), "byte {at}, with its sum");
            }
        }
    }

    #[test]
    fn one_for_a_certificate_proves_no_origin_unless_it_is_signed() {
        let certificate = Certificate::generate("app", &CertificateRequest::new("App", 1)).unwrap();
        let keys = AtHand(Vec::new(), Some(certificate.clone()), true);
        for (with, proves) in [
            (Wrapping::Recovery(certificate.public()), false),
            (Wrapping::Certificate(&certificate), true),
        ] {
            let bytes = seal(&entries(), &with, 1).unwrap();
            assert_eq!(Bundle::open(&bytes, &keys).unwrap().proves_origin(), proves);
            let none = AtHand(Vec::new(), None, true);
            assert!(matches!(Bundle::open(&bytes, &none), Err(Error::MissingKey { .. })));
        }
    }

    #[test]
    fn entries_that_would_lie_elsewhere_or_twice_are_refused() {
        let good = entries();
        assert_eq!(parse(&encode(&good)).unwrap().len(), 3);
        let with = |change: &dyn Fn(&mut Vec<Entry>)| {
            let mut entries = good.clone();
            change(&mut entries);
            parse(&encode(&entries)).map(|entries| entries.len())
        };
        #[allow(clippy::type_complexity)] // a table of cases
        let refused: [&dyn Fn(&mut Vec<Entry>); 9] = [
            &|entries| entries[1].name = "../app".to_owned(),
            &|entries| entries[1].name = ".app".to_owned(),
            &|entries| entries[2].name = "0F".repeat(16),
            &|entries| entries.push(entries[1].clone()),
            &|entries| drop(entries.remove(0)),
            &|entries| entries[0].content.truncate(31),
            &|entries| entries[1].kind = EntryKind::Password,
            &|entries| {
                entries[1] = Entry {
                    kind: EntryKind::Password,
                    name: u32::MAX.to_string(),
                    content: Zeroizing::new(Vec::new()),
                }
            },
            &|entries| entries[1].content.resize(CONTENT_BYTES_MOST + 1, 0),
        ];
        for (number, change) in refused.into_iter().enumerate() {
            assert!(matches!(with(change), Err(Error::Corrupt { .. })), "{number}");
        }
        let mut unknown = encode(&good);
        unknown[0] = 9;
        assert!(matches!(parse(&unknown), Err(Error::Unsupported { .. })));
        let bytes = encode(&good);
        for length in 1..bytes.len() {
            let whole = [38, 38 + 6 + 3 + 11].contains(&length);
            assert_eq!(parse(&bytes[..length]).is_ok(), whole, "cut at {length}");
        }
    }
}
