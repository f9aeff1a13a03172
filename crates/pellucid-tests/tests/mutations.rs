//! Whatever bytes stand in a file, the parsers give a value or a typed error: no panic, no memory at
//! will of the file.
//!
//! Each case is a good object with a few bytes changed at random; for those that begin with a
//! checksum, half of the cases get a right one again so that the fields behind it are read. Memory is
//! the peak of the whole process, from /proc. Seeded; the seed is printed. `fuzz/` does the same with
//! coverage, for hours.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::os::unix::fs::PermissionsExt;

use aws_lc_rs::digest;
use pellucid::certificate::{Certificate, CertificateRequest};
use pellucid::derive::commitment;
use pellucid::header::Header;
use pellucid::journal::{self, JournalHeader};
use pellucid::keys::{ContainerKeys, HeaderKey};
use pellucid::nonce::SystemNonces;
use pellucid::protector::{
    self, Argon2Cost, Binding, KeyFile, Passphrase, Protector, Purpose, Wrapping,
};
use pellucid::sector::{SectorZero, Wear};
use pellucid::unit::FileKind;
use pellucid::wal::{self, WalHeader};
use pellucid::{Algorithm, Subject};
use pellucid_keyring::{Bundle, Keyring};
use pellucid_tests::container::{container, dek, header, FILE_ID};
use pellucid_tests::random::Random;

/// Cases over all parsers; the keyring's files have a tenth more of them.
const CASES: usize = 100_000;
const MEMORY_KIB: u64 = 32 * 1024;

/// Changes bytes, copies a run over another, cuts or extends.
fn mutate(random: &mut Random, good: &[u8]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..=random.below(4usize) {
        if bytes.is_empty() {
            return bytes;
        }
        let at = random.below(bytes.len());
        match random.below(16usize) {
            0 => bytes.truncate(at),
            1 => bytes.extend(random.array::<8>()),
            2 => {
                let length = random.below(bytes.len() - at).min(64);
                let to = random.below(bytes.len() - length);
                bytes.copy_within(at..at + length, to);
            }
            3 | 4 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5usize)],
            5 => {
                let end = bytes.len().min(at + 4);
                bytes[at..end].fill([0, 0xff][random.below(2usize)]);
            }
            6..=9 => bytes[at] ^= 1 << random.below(8usize),
            _ => bytes[at] = random.draw() as u8,
        }
    }
    bytes
}

/// Most mutations of a header would fall into its 6 KiB of padding.
fn mutate_header(random: &mut Random, good: &[u8], used: usize) -> Vec<u8> {
    let mut bytes = good.to_vec();
    if random.below(8usize) == 0 {
        return mutate(random, good);
    }
    let head = mutate(random, &good[..used]);
    let length = head.len().min(bytes.len());
    bytes[..length].copy_from_slice(&head[..length]);
    bytes
}

fn checksum(bytes: &mut [u8]) {
    if let Some(at) = bytes.len().checked_sub(32) {
        let sum = digest::digest(&digest::SHA256, &bytes[..at]);
        bytes[at..].copy_from_slice(sum.as_ref());
    }
}

fn binding<'a>(commitment: &'a [u8; 32]) -> Binding<'a> {
    Binding { purpose: Purpose::Database, id: &FILE_ID, algorithm: Algorithm::Aes256, commitment }
}

/// A key file's, a passphrase's and a certificate's protector.
fn protectors(key_file: &KeyFile) -> Vec<Vec<u8>> {
    let certificate = Certificate::generate("app", &CertificateRequest::new("App", 1)).unwrap();
    let passphrase = Passphrase::new(b"a Pa55word");
    let cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };
    let commitment = commitment(&dek(), &FILE_ID).unwrap();
    [
        Wrapping::KeyFile(key_file),
        Wrapping::Passphrase(&passphrase, cost),
        Wrapping::Certificate(&certificate),
    ]
    .iter()
    .map(|with| {
        let mut bytes = Vec::new();
        protector::wrap(&dek(), &binding(&commitment), with).unwrap().encode(&mut bytes);
        bytes
    })
    .collect()
}

/// As an opener reads a header.
fn open_header(bytes: &[u8], keys: &Vec<KeyFile>) {
    let Ok(header) = Header::parse(bytes, 0) else { return };
    let Ok(row) = header.current_dek() else { return };
    let binding = Binding {
        purpose: Purpose::Database,
        id: &header.file_id,
        algorithm: row.algorithm,
        commitment: &row.commitment,
    };
    let decoded: Result<Vec<_>, _> = header
        .protectors
        .iter()
        .map(|bytes| Protector::decode(bytes).map(|(protector, _)| protector))
        .collect();
    let Ok(protectors) = decoded else { return };
    protectors.iter().for_each(|protector| assert!(!protector.describe().is_empty()));
    let Ok(dek) = protector::unwrap(&protectors, &binding, keys) else { return };
    // Not authenticated on purpose: the code behind must stand anything too.
    if let Ok(keys) = ContainerKeys::new(&header, &dek) {
        let place = pellucid::unit::Place::page(keys.file_id(), 1);
        let _ = keys.seal(FileKind::Database, &place, &mut SystemNonces, &[0; 8], &mut [0; 40]);
        let _ = keys.open(FileKind::Wal, &place, &[7; 40], &mut [0; 8], || Subject::Page(1));
    }
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn no_bytes_of_a_file_make_a_parser_panic_or_take_memory() {
    let mut random = Random::from_environment();
    let key_file = KeyFile::parse(&[3; 32]).unwrap();
    let keys = container(Algorithm::Aes256, FILE_ID);
    let header_key = HeaderKey::derive(&dek(), &FILE_ID).unwrap();

    let protectors = protectors(&key_file);
    let mut full = header(Algorithm::Aes256, FILE_ID);
    full.protectors = protectors.clone();
    let copy = full.encode(&header_key).unwrap();
    let used = 128 + 104 + protectors.iter().map(Vec::len).sum::<usize>();
    let sector = SectorZero::Sealed { file_id: FILE_ID }.encode(4096);
    let wear = Wear { generation: 1, reserved: 64 }.encode(&header_key, 512);
    let mut wal_header = [0; wal::HEADER_BYTES];
    wal_header[..4].copy_from_slice(&0x377f_0682u32.to_be_bytes());
    wal_header[8..12].copy_from_slice(&512u32.to_be_bytes());
    wal::mark_header(&mut wal_header, wal::Version::First);
    let mut frame = vec![0; 536];
    let run = wal::Run::of(&wal_header, wal::Version::First);
    let place = (&run, wal::Stamp::default());
    wal::seal_frame(&keys, &mut SystemNonces, place, 1, &[1; 536], &mut frame).unwrap();
    let journal = JournalHeader { id: [1; 16], fields: [2; journal::FIELDS_BYTES] }
        .seal(&keys, &mut SystemNonces, 0)
        .unwrap();
    let mut record = vec![0; 520];
    let nonces = &mut SystemNonces;
    journal::seal_record(&keys, nonces, &[1; 16], 512, &mut vec![1; 520], &mut record).unwrap();

    let no_keys = vec![key_file];
    open_header(&copy[..], &no_keys);
    let before = peak_kib();
    for case in 0..CASES {
        match case % 8 {
            0 | 1 => {
                let mut bytes = mutate_header(&mut random, &copy[..], used);
                if case % 16 < 8 {
                    checksum(&mut bytes);
                }
                open_header(&bytes, &no_keys);
            }
            2 => {
                let good = &protectors[random.below(protectors.len())];
                let bytes = mutate(&mut random, good);
                if let Ok((protector, length)) = Protector::decode(&bytes) {
                    assert!(length <= bytes.len());
                    let mut again = Vec::new();
                    protector.encode(&mut again);
                    assert_eq!(again.len(), length, "what was read is not what is written");
                }
            }
            3 => {
                let mut bytes = mutate(&mut random, &sector);
                if case % 16 < 8 {
                    checksum(&mut bytes);
                }
                let _ = SectorZero::parse(&bytes);
                if let Ok(bytes) = mutate(&mut random, &wear).try_into() {
                    let _ = Wear::parse(&bytes, &header_key, 512);
                }
            }
            4 => {
                if let Ok(mut bytes) = mutate(&mut random, &wal_header).try_into() {
                    let ours =
                        WalHeader::parse(&bytes).is_some_and(|header| header.sealed.is_some());
                    wal::unmark_header(&mut bytes, wal::Version::First);
                    let usable = WalHeader::parse(&bytes).is_some();
                    assert_eq!(ours, usable, "SQLite is handed a header that was not ours");
                }
            }
            5 => {
                let mut bytes = mutate(&mut random, &frame);
                bytes.resize(536, 0);
                let opened = wal::open_frame(&keys, &run, 1, &bytes, &mut [0; 536]);
                assert!(opened.is_err() || bytes == frame);
            }
            6 => {
                let bytes = mutate(&mut random, &journal);
                if let Ok((header, _)) = JournalHeader::open(&keys, &bytes, 0) {
                    assert_eq!(header.fields, [2; journal::FIELDS_BYTES]);
                }
            }
            _ => {
                let mut bytes = mutate(&mut random, &record);
                bytes.resize(520, 0);
                let opened = journal::open_record(&keys, &[1; 16], 512, &bytes, &mut [0; 520]);
                assert!(opened.is_err() || bytes == record);
            }
        }
    }
    keyring_files(&mut random, CASES / 10);
    let grown = peak_kib() - before;
    assert!(grown < MEMORY_KIB, "{grown} KiB more than before");
}

fn keyring_files(random: &mut Random, cases: usize) {
    let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let (keyring, _) = Keyring::open_or_create(home.path()).unwrap();
    keyring.ensure_default_certificate().unwrap();
    keyring.remember_database(&FILE_ID, &Default::default()).unwrap();
    let files = ["service.key", "keyring/master.key", "keyring/certificates/pellucid"]
        .map(|name| (home.path().join(name), std::fs::read(home.path().join(name)).unwrap()));
    for _ in 0..cases {
        let (path, good) = &files[random.below(files.len())];
        let bytes = mutate(random, good);
        std::fs::write(path, &bytes).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let opened = Keyring::open(home.path());
        let found = opened.and_then(|keyring| keyring.certificate("pellucid"));
        assert!(found.is_err() || bytes == *good, "{} was changed", path.display());
        std::fs::write(path, good).unwrap();
    }
    keyring.certificate("pellucid").unwrap();
    bundles(random, &keyring, cases);
}

fn bundles(random: &mut Random, keyring: &Keyring, cases: usize) {
    let keys = vec![KeyFile::parse(&[3; 32]).unwrap()];
    let path = keyring.home().join("bundle");
    keyring.export_instance(&path, &Wrapping::KeyFile(&keys[0])).unwrap();
    let good = std::fs::read(path).unwrap();
    Bundle::open(&good, &keys).unwrap();
    for case in 0..cases {
        let mut bytes = mutate(random, &good);
        if case % 2 == 0 {
            checksum(&mut bytes);
        }
        assert!(Bundle::open(&bytes, &keys).is_err() || bytes == good);
    }
}
