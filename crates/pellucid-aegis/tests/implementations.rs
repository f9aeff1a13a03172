//! Goal: every implementation that this processor can run is AEGIS-256X4.
//!
//! Method: the test vectors of draft-irtf-cfrg-aegis-aead; then texts of many lengths, sealed also by the crate `aegis` in
//! its pure-Rust form, which shares no code with libaegis's; every flipped bit is refused and leaves zeros.
#![allow(clippy::unwrap_used)]

use pellucid_aegis::{Implementation, Key, NotAuthentic};

const VECTORS: &str = include_str!("draft-aegis-256x4.json");

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn the_drafts_vectors_seal_and_open() {
    let cases: Vec<serde_json::Value> = serde_json::from_str(VECTORS).unwrap();
    let cases: Vec<_> = cases.iter().filter(|case| case.get("ct").is_some()).collect();
    assert_eq!(cases.len(), 2);
    for implementation in Implementation::all() {
        for case in &cases {
            let bytes = |name: &str| unhex(case[name].as_str().unwrap());
            let key = Key::with(implementation, &bytes("key")).unwrap();
            let nonce = bytes("nonce").try_into().unwrap();
            let (plain, sealed) = (bytes("msg"), bytes("ct"));
            let mut made = vec![0; plain.len()];
            let tag = key.seal(&nonce, &bytes("ad"), &plain, &mut made).unwrap();
            assert_eq!((&made, tag.to_vec()), (&sealed, bytes("tag128")), "{implementation:?}");
            let mut opened = vec![1; plain.len()];
            key.open(&nonce, &bytes("ad"), &sealed, &tag, &mut opened).unwrap();
            assert_eq!(opened, plain, "{implementation:?}");
        }
    }
}

#[test]
fn all_agree_with_pure_rust_at_every_length() {
    let (secret, nonce) =
        (std::array::from_fn(|i| i as u8), std::array::from_fn(|i| 200 - i as u8));
    let lengths = (0..700).chain([992, 1000, 4064, 8160, 65504]);
    for length in lengths {
        let plain: Vec<u8> = (0..length).map(|i| (i * 7) as u8).collect();
        let aad: Vec<u8> = (0..length % 130).map(|i| i as u8).collect();
        let theirs = aegis::aegis256x4::Aegis256X4::<16>::new(&secret, &nonce);
        let (sealed, tag) = theirs.encrypt(&plain, &aad);
        for implementation in Implementation::all() {
            let key = Key::with(implementation, &secret).unwrap();
            let mut made = vec![0; length];
            assert_eq!(
                key.seal(&nonce, &aad, &plain, &mut made).unwrap(),
                tag,
                "{implementation:?} {length}"
            );
            assert_eq!(made, sealed, "{implementation:?} {length}");
            let mut within = plain.clone();
            assert_eq!(
                key.seal_in_place(&nonce, &aad, &mut within),
                tag,
                "{implementation:?} {length}"
            );
            assert_eq!(within, sealed, "{implementation:?} {length}");
            key.open_in_place(&nonce, &aad, &mut within, &tag).unwrap();
            assert_eq!(within, plain, "{implementation:?} {length}");
            key.open(&nonce, &aad, &sealed, &tag, &mut made).unwrap();
            assert_eq!(made, plain, "{implementation:?} {length}");
        }
    }
}

#[test]
fn every_flipped_bit_is_refused_and_leaves_zeros() {
    for implementation in Implementation::all() {
        let key = Key::with(implementation, &[7; 32]).unwrap();
        let (mut nonce, mut aad, plain) = ([3; 32], [5u8; 52], [9u8; 100]);
        let mut sealed = [0; 100];
        let mut tag = key.seal(&nonce, &aad, &plain, &mut sealed).unwrap();
        let refused = |nonce: &[u8; 32], aad: &[u8], sealed: &[u8], tag: &[u8; 16]| {
            let mut opened = [1; 100];
            assert_eq!(key.open(nonce, aad, sealed, tag, &mut opened), Err(NotAuthentic));
            assert_eq!(opened, [0; 100], "plaintext handed out");
            opened.copy_from_slice(sealed);
            assert_eq!(key.open_in_place(nonce, aad, &mut opened, tag), Err(NotAuthentic));
            assert_eq!(opened, [0; 100], "plaintext handed out");
        };
        macro_rules! each_bit {
            ($bytes:ident) => {
                for bit in 0..$bytes.len() * 8 {
                    $bytes[bit / 8] ^= 1 << (bit % 8);
                    refused(&nonce, &aad, &sealed, &tag);
                    $bytes[bit / 8] ^= 1 << (bit % 8);
                }
            };
        }
        each_bit!(nonce);
        each_bit!(aad);
        each_bit!(sealed);
        each_bit!(tag);
        let mut opened = [0; 100];
        key.open(&nonce, &aad, &sealed, &tag, &mut opened).unwrap();
        assert_eq!(opened, plain);
    }
}

#[test]
fn lengths_that_differ_and_keys_of_another_length_are_refused() {
    assert!(Key::new(&[0; 31]).is_none() && Key::new(&[0; 33]).is_none());
    let key = Key::new(&[0; 32]).unwrap();
    assert!(key.seal(&[0; 32], &[], &[0; 3], &mut [0; 4]).is_err());
    let mut opened = [1; 4];
    assert!(key.open(&[0; 32], &[], &[0; 3], &[0; 16], &mut opened).is_err());
    assert_eq!(opened, [0; 4]);
    assert_eq!(format!("{key:?}"), "Key(..)");
}

/// What tests that take authentication away rely on: the content comes, whatever the tag is.
#[cfg(feature = "sabotage")]
#[test]
fn without_a_look_at_the_tag_the_content_comes() {
    for implementation in Implementation::all() {
        let key = Key::with(implementation, &[7; 32]).unwrap();
        for length in [0, 1, 63, 64, 65, 480, 4064] {
            let plain: Vec<u8> = (0..length).map(|i| (i * 3) as u8).collect();
            let (mut sealed, mut opened) = (vec![0; length], vec![1; length]);
            key.seal(&[3; 32], &[5; 52], &plain, &mut sealed).unwrap();
            key.open_unchecked(&[3; 32], &[5; 52], &sealed, &mut opened).unwrap();
            assert_eq!(opened, plain, "{implementation:?} {length}");
        }
        assert!(key.open_unchecked(&[3; 32], &[], &[0; 3], &mut [0; 4]).is_err());
    }
}
