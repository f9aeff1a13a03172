//! Goal: sealing and opening leave no half of the key on the stack, which core dumps have.
//!
//! Method: a thread seals and opens with each implementation; then its stack is read through `/proc/self/mem` and searched
//! for both halves of the key, and for what the state begins with: each half with the nonce's added. The key itself lies in
//! the heap. That the search finds something is shown by a key that is put there.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use pellucid_aegis::{Implementation, Key};

/// The memory of the mapping that `address` lies in, below and above.
fn stack_around(address: usize) -> Vec<u8> {
    for line in BufReader::new(File::open("/proc/self/maps").unwrap()).lines() {
        let line = line.unwrap();
        let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let [from, to] = [from, to].map(|hex| usize::from_str_radix(hex, 16).unwrap());
        if (from..to).contains(&address) {
            let mut all = vec![0; to - from];
            let memory = File::open("/proc/self/mem").unwrap();
            memory.read_exact_at(&mut all, from as u64).unwrap();
            return all;
        }
    }
    panic!("no mapping has {address:x}");
}

/// A key that no array of this test's own spells out: drawn into the heap.
fn drawn() -> Box<[u8; 32]> {
    let mut key = Box::new([0; 32]);
    let mut random = File::open("/dev/urandom").unwrap();
    random.seek(SeekFrom::Start(0)).unwrap();
    random.read_exact(&mut key[..]).unwrap();
    key
}

/// The searched words, each turned over so that the search itself puts none of them on the stack.
fn words(key: &[u8; 32], nonce: &[u8; 32]) -> Vec<Vec<u8>> {
    let halves = [&key[..16], &key[16..]].map(|half| half.iter().map(|byte| !byte).collect());
    let first =
        |at: usize| key[at..at + 16].iter().zip(&nonce[at..]).map(|(k, n)| !(k ^ n)).collect();
    halves.into_iter().chain([first(0), first(16)]).collect()
}

fn found(memory: &[u8], words: &[Vec<u8>]) -> usize {
    let is = |at: &[u8], word: &[u8]| at.iter().zip(word).all(|(byte, turned)| *byte == !turned);
    words.iter().filter(|word| memory.windows(16).any(|at| is(at, word))).count()
}

#[test]
fn no_half_of_a_key_is_left_on_the_stack() {
    for implementation in Implementation::all() {
        let search = move || {
            let secret = drawn();
            let key = Key::with(implementation, &secret[..]).unwrap();
            let (nonce, plain) = ([9; 32], vec![5; 4064]);
            let words = words(&secret, &nonce);
            let mut text = vec![0; plain.len()];
            let mark = 0u8;
            let tag = key.seal(&nonce, &[1; 52], &plain, &mut text).unwrap();
            let left = found(&stack_around(&raw const mark as usize), &words);
            assert_eq!(left, 0, "{implementation:?}, sealing");
            key.open_in_place(&nonce, &[1; 52], &mut text, &tag).unwrap();
            let left = found(&stack_around(&raw const mark as usize), &words);
            assert_eq!(left, 0, "{implementation:?}, opening");
            let control = std::hint::black_box(*secret);
            let left = found(&stack_around(&raw const mark as usize), &words);
            assert_eq!(left, 2, "the search finds what is there");
            std::hint::black_box(control);
        };
        std::thread::spawn(search).join().unwrap();
    }
}
