//! Writes the vectors that are missing in `vectors/`: `cargo run --example make_vectors [-- --new]`.
//!
//! Keys, ids and nonces are fixed. A vector that is there is never touched: it is what files on disk
//! look like, not what the code of today makes of it. `--new` is for a new format version, before the
//! first release of it.

#![allow(clippy::unwrap_used)] // lengths are constant

use std::path::Path;

use pellucid::cipher::NONCE_BYTES;
use pellucid::derive::commitment;
use pellucid::header::{DekRow, EncryptionState, Header};
use pellucid::keys::ContainerKeys;
use pellucid::nonce::NonceSource;
use pellucid::secret::Secret32;
use pellucid::{Algorithm, Dek, Result};

mod bundles;
#[allow(dead_code)] // the runner reads, this writes
#[path = "../../tests/format/vectors/case.rs"]
mod case;
mod event_logs;
mod expected;
mod headers;
mod hybrids;
mod keyrings;
mod log_archives;
mod log_sets;
mod logs;
mod media;
mod passwords;
mod second;
mod second_logs;
mod units;

use case::Case;

const FILE_ID: [u8; 16] = *b"pellucid-vectors";
const OTHER_ID: [u8; 16] = *b"some-other-file!";
const NONCE: [u8; NONCE_BYTES] = *b"not random!!";
const GENERATION: u32 = 3;

/// Gives [`NONCE`], with its last byte counted up.
struct Fixed(u8);

impl NonceSource for Fixed {
    fn next_nonce(&mut self) -> Result<[u8; NONCE_BYTES]> {
        let mut nonce = NONCE;
        nonce[NONCE_BYTES - 1] += self.0;
        self.0 += 1;
        Ok(nonce)
    }
}

/// 32 bytes that count up from `first`.
fn key_bytes(first: u8) -> [u8; 32] {
    std::array::from_fn(|at| first + at as u8)
}

fn dek() -> Dek {
    Dek::from_secret(Secret32::new(&mut key_bytes(0)))
}

fn row(dek: &Dek, file_id: &[u8; 16], algorithm: Algorithm, first: u32) -> Result<DekRow> {
    Ok(DekRow {
        first_generation: first,
        last_generation: u32::MAX,
        algorithm,
        commitment: commitment(dek, file_id)?,
        plain: false,
        wrapped: None,
    })
}

fn header(dek: &Dek, file_id: [u8; 16], algorithm: Algorithm) -> Result<Header> {
    Ok(Header {
        sequence: 5,
        file_id,
        page_size: 512,
        state: EncryptionState::Encrypted,
        generation: GENERATION,
        created: 1_700_000_000,
        scan: pellucid::scan::Scan::default(),
        flags: pellucid::flags::Flags::default(),
        second: None,
        deks: vec![row(dek, &file_id, algorithm, 1)?],
        protectors: vec![],
    })
}

fn container(algorithm: Algorithm, generation: u32) -> Result<ContainerKeys> {
    let header = Header { generation, ..header(&dek(), FILE_ID, algorithm)? };
    ContainerKeys::new(&header, &dek())
}

/// A case of something sealed in the container of the vectors.
fn case(object: &str, kind: &str, algorithm: Algorithm) -> Case {
    Case::new(object, kind)
        .with("expect", "success")
        .with("algorithm", algorithm)
        .with_bytes("dek", &key_bytes(0))
        .with_bytes("file-id", &FILE_ID)
        .with("generation", GENERATION)
}

/// Flips the lowest bit of the byte at `at`; from the end if negative.
fn flip(case: Case, at: isize) -> Case {
    let mut body = case.body.clone();
    let at = if at < 0 { body.len() - at.unsigned_abs() } else { at.unsigned_abs() };
    body[at] ^= 1;
    case.with_body(&body)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let new = std::env::args().any(|argument| argument == "--new");
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    std::fs::create_dir_all(&directory)?;
    let mut cases = units::cases()?;
    cases.extend(logs::cases()?);
    cases.extend(headers::cases()?);
    cases.extend(second::cases()?);
    cases.extend(expected::cases()?);
    cases.extend(keyrings::cases()?);
    cases.extend(passwords::cases()?);
    cases.extend(event_logs::cases()?);
    cases.extend(bundles::cases()?);
    cases.extend(hybrids::cases()?);
    cases.extend(media::cases()?);
    cases.extend(log_sets::cases()?);
    cases.extend(log_archives::cases()?);
    let (mut written, mut kept) = (0, 0);
    for case in cases {
        let path = directory.join(format!("{}_{}", case.text("object"), case.text("kind")));
        if path.exists() && !new {
            kept += 1;
            continue;
        }
        std::fs::write(&path, case.to_text())?;
        written += 1;
    }
    println!("{written} vectors written, {kept} that were there left as they are");
    Ok(())
}
