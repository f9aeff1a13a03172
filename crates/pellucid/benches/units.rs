//! What sealing and opening cost: a database page per size and algorithm, a header, a system nonce.
//!
//! Pages go through [`ContainerKeys`] as the shim's do. Nonces are counted, so that the numbers are the
//! cipher's; one kernel asks the system for each nonce. A header is opened as a connection does:
//! parse, unwrap with a key file, authenticate, derive.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};
use pellucid::cipher::NONCE_BYTES;
use pellucid::derive::commitment;
use pellucid::header::{DekRow, EncryptionState, Header, COPY_BYTES};
use pellucid::keys::{ContainerKeys, HeaderKey};
use pellucid::nonce::{NonceSource, SystemNonces};
use pellucid::protector::{self, Binding, KeyFile, Purpose, Wrapping};
use pellucid::unit::{FileKind, Place, TAIL_BYTES};
use pellucid::{Algorithm, Dek, Result, Subject};

const PAGE_SIZES: [usize; 5] = [512, 1024, 4096, 16384, 65536];
const FILE_ID: [u8; 16] = [6; 16];

/// Never the same twice, and as good as free.
struct Counted(u64);

impl NonceSource for Counted {
    fn next_nonce(&mut self) -> Result<[u8; NONCE_BYTES]> {
        self.0 += 1;
        let mut nonce = [0; NONCE_BYTES];
        nonce[4..].copy_from_slice(&self.0.to_be_bytes());
        Ok(nonce)
    }
}

fn header(dek: &Dek, algorithm: Algorithm) -> Header {
    Header {
        sequence: 1,
        file_id: FILE_ID,
        page_size: 4096,
        state: EncryptionState::Encrypted,
        generation: 1,
        created: 0,
        scan: pellucid::scan::Scan::default(),
        flags: pellucid::flags::Flags::default(),
        second: None,
        deks: vec![DekRow {
            first_generation: 1,
            last_generation: u32::MAX,
            algorithm,
            commitment: commitment(dek, &FILE_ID).unwrap(),
            plain: false,
            wrapped: None,
        }],
        protectors: vec![],
    }
}

fn container(algorithm: Algorithm) -> ContainerKeys {
    let dek = Dek::random().unwrap();
    ContainerKeys::new(&header(&dek, algorithm), &dek).unwrap()
}

fn pages(criterion: &mut Criterion) {
    for algorithm in Algorithm::ALL {
        let keys = container(algorithm);
        let mut group = criterion.benchmark_group(format!("page/{algorithm}"));
        for page_size in PAGE_SIZES {
            group.throughput(Throughput::Bytes(page_size as u64));
            let place = Place::page(&FILE_ID, 7);
            let mut nonces = Counted(0);
            let mut plain = vec![0xA5; page_size - TAIL_BYTES];
            let mut unit = vec![0; page_size];
            group.bench_function(BenchmarkId::new("seal", page_size), |bencher| {
                bencher.iter(|| {
                    keys.seal(
                        FileKind::Database,
                        &place,
                        &mut nonces,
                        black_box(&plain),
                        black_box(&mut unit),
                    )
                    .unwrap();
                });
            });
            keys.seal(FileKind::Database, &place, &mut nonces, &plain, &mut unit).unwrap();
            group.bench_function(BenchmarkId::new("open", page_size), |bencher| {
                bencher.iter(|| {
                    keys.open(
                        FileKind::Database,
                        &place,
                        black_box(&unit),
                        black_box(&mut plain),
                        || Subject::Page(7),
                    )
                    .unwrap();
                });
            });
        }
        group.finish();
    }
}

fn system_nonces(criterion: &mut Criterion) {
    let keys = container(Algorithm::Aes256);
    let (plain, mut unit) = (vec![0xA5; 4096 - TAIL_BYTES], vec![0; 4096]);
    let place = Place::page(&FILE_ID, 7);
    let mut group = criterion.benchmark_group("page/AES_256");
    group.throughput(Throughput::Bytes(4096));
    group.bench_function("seal_with_system_nonces/4096", |bencher| {
        bencher.iter(|| {
            let nonces = &mut SystemNonces;
            keys.seal(FileKind::Database, &place, nonces, black_box(&plain), black_box(&mut unit))
                .unwrap();
        });
    });
    group.finish();
}

fn open_header(copy: &[u8; COPY_BYTES], keys: &Vec<KeyFile>) -> ContainerKeys {
    let header = Header::parse(copy, 0).unwrap();
    let dek = header.unwrap(keys).unwrap();
    Header::authenticate(copy, &HeaderKey::derive(&dek, &header.file_id).unwrap(), 0).unwrap();
    ContainerKeys::new(&header, &dek).unwrap()
}

fn headers(criterion: &mut Criterion) {
    let dek = Dek::random().unwrap();
    let mut header = header(&dek, Algorithm::Aes256);
    let keys = vec![KeyFile::random().unwrap()];
    let binding = Binding {
        purpose: Purpose::Database,
        id: &FILE_ID,
        algorithm: Algorithm::Aes256,
        commitment: &header.deks[0].commitment,
    };
    let mut bytes = Vec::new();
    protector::wrap(&dek, &binding, &Wrapping::KeyFile(&keys[0])).unwrap().encode(&mut bytes);
    header.protectors.push(bytes);
    let copy = header.encode(&HeaderKey::derive(&dek, &FILE_ID).unwrap()).unwrap();
    criterion.bench_function("header/open_with_key_file", |bencher| {
        bencher.iter(|| open_header(black_box(&copy), &keys));
    });
}

criterion_group!(benches, pages, system_nonces, headers);
criterion_main!(benches);
