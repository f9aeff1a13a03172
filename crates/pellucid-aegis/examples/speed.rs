//! Prints what sealing and opening cost with each implementation that this processor runs, in ns: the best of 40 rounds.
//!
//!     cargo run --release -p pellucid-aegis --example speed

use std::time::Instant;

use pellucid_aegis::{Implementation, Key};

/// Plaintexts of pages of 512, 4096 and 8192 bytes.
const SIZES: [usize; 3] = [480, 4064, 8160];
const ROUNDS: usize = 40;

fn main() {
    println!("{:<18}{}", "ns, seal / open", SIZES.map(|bytes| format!("{bytes:>14}")).concat());
    for implementation in Implementation::all() {
        let key = Key::with(implementation, &[7; 32]);
        let Some(key) = key else { continue };
        let cells = SIZES.map(|bytes| {
            let (seal, open) = best(&key, bytes);
            format!("{:>14}", format!("{seal:.0} / {open:.0}"))
        });
        println!("{:<18}{}", implementation.name(), cells.concat());
    }
}

fn best(key: &Key, bytes: usize) -> (f64, f64) {
    let (plain, mut sealed, mut opened) = (vec![3; bytes], vec![0; bytes], vec![0; bytes]);
    let (mut nonce, aad, mut tag) = ([0; 32], [1; 52], [0; 16]);
    let (mut seal, mut open) = (f64::MAX, f64::MAX);
    for round in 0..ROUNDS {
        nonce[0] = round as u8;
        let times = if round == 0 { 1 } else { (1_000_000.0 / seal).clamp(1.0, 2000.0) as usize };
        let begun = Instant::now();
        for _ in 0..times {
            tag = key.seal(&nonce, &aad, &plain, &mut sealed).unwrap_or_default();
        }
        seal = seal.min(begun.elapsed().as_nanos() as f64 / times as f64);
        let begun = Instant::now();
        let all = (0..times).all(|_| key.open(&nonce, &aad, &sealed, &tag, &mut opened).is_ok());
        assert!(all && opened == plain);
        open = open.min(begun.elapsed().as_nanos() as f64 / times as f64);
    }
    (seal, open)
}
