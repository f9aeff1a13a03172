//! Kernels: what sealing and opening one page costs, for each page size and algorithm.
//!
//! The cipher alone, on one page that stays in the processor's cache, with a key that is set up once
//! as the shim does it. No SQLite and no system call: what a user notices, `lab purchase` says.
#![allow(missing_docs)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};
use pellucid::algorithm::Algorithm;
use pellucid::cipher::{Cipher, NONCE_BYTES, TAG_BYTES};
use pellucid::nonce::UnitNonce;

const PAGE_SIZES: [usize; 8] = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
/// docs/format.md, "Encrypted page": nonce, generation and tag at the end of each page.
const RESERVED_BYTES: usize = 32;
/// Of the length that a page's AAD has: file id, page number, file kind.
const AAD: [u8; 24] = [1; 24];

fn pages(criterion: &mut Criterion) {
    for algorithm in Algorithm::ALL {
        let key = vec![7; Cipher::key_bytes(algorithm)];
        let Ok(cipher) = Cipher::new(algorithm, &key) else { continue };
        let mut group = criterion.benchmark_group(algorithm.name());
        group
            .sample_size(30)
            .warm_up_time(Duration::from_millis(200))
            .measurement_time(Duration::from_millis(800));
        for page_size in PAGE_SIZES {
            group.throughput(Throughput::Bytes(page_size as u64));
            let content = vec![0x5a; page_size - RESERVED_BYTES];
            let mut sealed = vec![0; content.len()];
            let mut opened = vec![0; content.len()];
            let mut tag = [0; TAG_BYTES];
            let mut counter = 0_u64;
            group.bench_function(BenchmarkId::new("seal", page_size), |bencher| {
                bencher.iter(|| {
                    counter += 1;
                    cipher.seal_unit(
                        &nonce(counter),
                        &AAD,
                        black_box(&content),
                        &mut sealed,
                        &mut tag,
                    )
                });
            });
            // Also where a filter leaves sealing out; a kernel that fails would look fast.
            let nonce = nonce(0);
            let sealing = cipher.seal_unit(&nonce, &AAD, &content, &mut sealed, &mut tag);
            let opening = cipher.open_unit(&nonce, &AAD, &sealed, &tag, &mut opened);
            assert!(
                sealing.is_ok() && opening.is_ok() && opened == content,
                "{algorithm} {page_size} does not round-trip"
            );
            group.bench_function(BenchmarkId::new("open", page_size), |bencher| {
                bencher
                    .iter(|| cipher.open_unit(&nonce, &AAD, black_box(&sealed), &tag, &mut opened));
            });
        }
        group.finish();
    }
}

fn nonce(counter: u64) -> UnitNonce {
    let mut drawn = [0; NONCE_BYTES];
    drawn[..8].copy_from_slice(&counter.to_le_bytes());
    UnitNonce { drawn, generation: 1, kind: 1, position: 7 }
}

criterion_group!(benches, pages);
criterion_main!(benches);
