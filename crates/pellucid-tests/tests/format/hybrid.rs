//! Goal: a key wrapped by both halves opens with both or not at all, and nobody makes one that passes who lacks a half.
//!
//! Method: protectors of backup sets are taken apart by the offsets of docs/format.md, changed, and signed anew with the
//! certificate's RSA key. That is what somebody can do who has broken RSA: he has all of it, and not the companion's private half.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RsaKeyPair, RSA_PSS_SHA256};
use pellucid::certificate::{
    enable_hybrid, Certificate, CertificateRequest, Companion, PublicCertificate,
};
use pellucid::derive::commitment;
use pellucid::protector::{
    unwrap, unwrap_made, wrap, Binding, KeySource, Passphrase, Protector, Purpose, Wrapping,
};
use pellucid::{Algorithm, Dek, Error, Result};
use pellucid_exchange::{import, to_encrypted_pem, to_pem};
use pellucid_keyring::{Keyring, Stored};

use super::format_md::doc::Doc;

const ID: [u8; 16] = *b"a backup set's i";

struct AtHand {
    certificate: Certificate,
    allow_recovery: bool,
    allow_classical: bool,
}

impl KeySource for AtHand {
    fn certificate(&self, thumbprint: &[u8; 32]) -> Result<Option<Certificate>> {
        let found = self.certificate.public().thumbprint() == thumbprint;
        Ok(found.then(|| self.certificate.clone()))
    }
    fn allow_recovery(&self) -> bool {
        self.allow_recovery
    }
    fn allow_classical(&self) -> bool {
        self.allow_classical
    }
}

fn at_hand(certificate: &Certificate) -> AtHand {
    let certificate = certificate.clone();
    AtHand { certificate, allow_recovery: false, allow_classical: false }
}

fn classical(rsa_bits: usize) -> Certificate {
    enable_hybrid();
    let request = CertificateRequest { rsa_bits, ..CertificateRequest::new("App", 10) };
    Certificate::generate("app", &request).unwrap()
}

fn hybrid() -> Certificate {
    classical(2048).add_companion(1_000).unwrap()
}

/// The certificate as somebody else has it: another name for the same RSA key, without the companion.
fn without_companion(own: &Certificate) -> Certificate {
    Certificate::from_parts("app", own.public().der(), own.private_key().unwrap(), None).unwrap()
}

fn bound<T>(key: &Dek, purpose: Purpose, then: impl FnOnce(&Binding<'_>) -> T) -> T {
    let commitment = commitment(key, &ID).unwrap();
    then(&Binding { purpose, id: &ID, algorithm: Algorithm::Aes256, commitment: &commitment })
}

fn wrapped(key: &Dek, with: &Wrapping<'_>) -> Vec<u8> {
    bound(key, Purpose::Backup, |binding| wrap(key, binding, with).unwrap().encoded())
}

fn opened(bytes: &[u8], key: &Dek, keys: &AtHand) -> Result<Dek> {
    let (protector, length) = Protector::decode(bytes)?;
    assert_eq!(length, bytes.len());
    bound(key, Purpose::Backup, |binding| unwrap(&[protector], binding, keys))
}

/// Where the parts of a protector of the name `app` begin, with the lengths behind them.
struct Parts {
    kem: usize,
    wrapped: usize,
    rsa: usize,
    signature: usize,
}

fn parts(bytes: &[u8]) -> Parts {
    let table = Doc::read().section("### Protectors").from("**Hybrid certificate.**").table(0);
    let rsa_bytes = 256;
    let signature = usize::from(bytes[1] == 0) * rsa_bytes;
    let table = table.with(&[("n", 3), ("w", rsa_bytes), ("s", signature)]);
    assert_eq!(4 + table.is_without_gaps(), bytes.len());
    let at = |field: &str| 4 + table.at(field).start;
    Parts {
        kem: at("ML-KEM-768 ciphertext"),
        wrapped: at("wrapped DEK"),
        rsa: at("RSA ciphertext"),
        signature: at("signature"),
    }
}

/// The protector signed anew by the RSA key.
fn signed(mut bytes: Vec<u8>, key: &Dek, own: &Certificate) -> Vec<u8> {
    let at = parts(&bytes).signature;
    let committed = commitment(key, &ID).unwrap();
    let algorithm = [Algorithm::Aes256.id()];
    let parts: [&[u8]; 6] =
        [b"pellucid/1 hybrid protector", &[2], &ID, &algorithm, &committed, &bytes[4..at - 2]];
    let message = parts.concat();
    let pair = RsaKeyPair::from_pkcs8(own.private_key().unwrap()).unwrap();
    pair.sign(&RSA_PSS_SHA256, &SystemRandom::new(), &message, &mut bytes[at..]).unwrap();
    bytes
}

fn is_refused(told: Result<Dek>, what: &str) -> String {
    match told {
        Err(Error::Unauthentic { .. }) => told.unwrap_err().to_string(),
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn sizes_are_those_of_the_page() {
    let table = Doc::read().section("### Protectors").from("Bytes of a protector").table(0);
    let key = Dek::random().unwrap();
    for (row, bits) in table.rows.iter().zip([2048, 3072, 4096]) {
        let own = classical(bits).add_companion(1_000).unwrap();
        let by = |with: &Wrapping<'_>| wrapped(&key, with).len() - "app".len();
        let sizes = [
            by(&Wrapping::Certificate(&without_companion(&own))),
            by(&Wrapping::Certificate(&own)),
            by(&Wrapping::Recovery(own.public())),
        ];
        let stated: Vec<usize> = row[1..].iter().map(|cell| cell.parse().unwrap()).collect();
        assert_eq!(row[0], format!("RSA-{bits}"));
        assert_eq!(sizes[..], stated[..], "{}", row[0]);
    }
    assert_eq!(table.rows.len(), 3);
}

#[test]
fn each_flipped_byte_and_each_cut_is_refused() {
    let (own, key) = (hybrid(), Dek::random().unwrap());
    let keys = at_hand(&own);
    let bytes = wrapped(&key, &Wrapping::Certificate(&own));
    assert_eq!(opened(&bytes, &key, &keys).unwrap(), key);
    for at in 0..bytes.len() {
        for bit in [0x01, 0x20] {
            let mut flipped = bytes.clone();
            flipped[at] ^= bit;
            let told = match Protector::decode(&flipped) {
                Ok((protector, _)) => {
                    bound(&key, Purpose::Backup, |binding| unwrap(&[protector], binding, &keys))
                }
                Err(error) => Err(error),
            };
            assert!(told.is_err(), "byte {at} by {bit}");
        }
    }
    for length in 0..bytes.len() {
        assert!(Protector::decode(&bytes[..length]).is_err(), "cut at {length}");
        let mut cut = bytes[..length].to_vec();
        let Some(payload) = length.checked_sub(4) else { continue };
        cut[2..4].copy_from_slice(&(payload as u16).to_be_bytes());
        assert!(Protector::decode(&cut).is_err(), "cut at {length}, with its length");
    }
}

#[test]
fn garbage_of_either_half_is_refused_in_the_same_words_even_where_it_is_signed() {
    let (own, key) = (hybrid(), Dek::random().unwrap());
    let keys = at_hand(&own);
    let bytes = wrapped(&key, &Wrapping::Certificate(&own));
    let at = parts(&bytes);
    let mut words = Vec::new();
    // Each byte of the ML-KEM ciphertext, of the wrapped key and of the RSA ciphertext.
    for place in (at.kem..at.rsa - 2).step_by(3).chain((at.rsa..at.rsa + 256).step_by(3)) {
        let mut garbage = bytes.clone();
        garbage[place] ^= 0x40;
        let told = opened(&signed(garbage, &key, &own), &key, &keys);
        words.push(is_refused(told, &format!("byte {place}")));
    }
    words.dedup();
    assert_eq!(words.len(), 1, "{words:?}");
    assert!(words[0].ends_with("the wrapped key does not open"), "{words:?}");
    // It is the change that is refused, and not the signature made here.
    assert_eq!(opened(&signed(bytes, &key, &own), &key, &keys).unwrap(), key);
}

#[test]
fn neither_half_of_another_wrap_fits() {
    let (own, key) = (hybrid(), Dek::random().unwrap());
    let keys = at_hand(&own);
    let with = Wrapping::Certificate(&own);
    let (one, other) = (wrapped(&key, &with), wrapped(&key, &with));
    let at = parts(&one);
    let rsa = at.rsa..at.rsa + 256;
    for part in [at.kem..at.wrapped, rsa, at.wrapped..at.rsa - 2, at.kem..at.rsa - 2] {
        let mut swapped = one.clone();
        swapped[part.clone()].copy_from_slice(&other[part.clone()]);
        is_refused(opened(&swapped, &key, &keys), "not signed anew");
        is_refused(opened(&signed(swapped, &key, &own), &key, &keys), "signed anew");
    }
    // All of a protector in another set, and for another purpose.
    let another = Dek::random().unwrap();
    is_refused(opened(&one, &another, &keys), "another set");
    is_refused(opened(&signed(one.clone(), &another, &own), &another, &keys), "signed anew");
    let (protector, _) = Protector::decode(&one).unwrap();
    let told = bound(&key, Purpose::Bundle, |binding| {
        unwrap(std::slice::from_ref(&protector), binding, &keys)
    });
    is_refused(told, "as a bundle's");
    let told = bound(&key, Purpose::Database, |binding| unwrap(&[protector], binding, &keys));
    assert!(told.unwrap_err().to_string().contains("hybrid wraps are for backups and bundles"));
    // What wraps a database is as before.
    let made = bound(&key, Purpose::Database, |binding| wrap(&key, binding, &with).unwrap());
    assert_eq!((made.encoded()[0], made.kind_name()), (3, "certificate"));
}

#[test]
fn no_half_opens_alone() {
    let (own, key) = (hybrid(), Dek::random().unwrap());
    let bytes = wrapped(&key, &Wrapping::Certificate(&own));
    let companion = own.public().companion().unwrap();
    // RSA broken: its private key, and the companion's public half.
    let rsa_alone = without_companion(&own);
    let told = opened(&bytes, &key, &at_hand(&rsa_alone)).unwrap_err();
    let missing = pellucid::hash::hex(companion.thumbprint());
    assert!(matches!(told, Error::MissingKey { .. }), "{told:?}");
    for says in ["whose companion key is not in the keyring", &missing, "pellucid cert import app"]
    {
        assert!(told.to_string().contains(says), "{told}");
    }
    let guessed = hybrid().companion_key().unwrap().to_vec();
    let forged = rsa_alone.with_companion(companion.clone(), &guessed).unwrap();
    is_refused(opened(&bytes, &key, &at_hand(&forged)), "another private half");
    assert!(forged.check_pair().is_err());
    // ML-KEM broken: the companion's private half, and another RSA key under the same certificate.
    let der = own.public().der();
    let other = Certificate::from_parts("app", der, hybrid().private_key().unwrap(), None).unwrap();
    let other = other.with_companion(companion.clone(), own.companion_key().unwrap()).unwrap();
    is_refused(opened(&bytes, &key, &at_hand(&other)), "another RSA key");
    // The same certificate with another companion is told apart before any work.
    let elsewhere = without_companion(&own).add_companion(1_000).unwrap();
    let told = opened(&bytes, &key, &at_hand(&elsewhere)).unwrap_err();
    assert!(told.to_string().contains("with another companion key than the keyring's"), "{told}");
    assert!(!format!("{own:?}").contains("companion_key"));
}

#[test]
fn recovery_protectors_are_hybrid_too_and_only_used_on_request() {
    let (own, key) = (hybrid(), Dek::random().unwrap());
    let bytes = wrapped(&key, &Wrapping::Recovery(own.public()));
    assert_eq!(bytes[..2], [5, 1]);
    let told = opened(&bytes, &key, &at_hand(&own)).unwrap_err();
    assert!(matches!(told, Error::MissingKey { .. }), "{told:?}");
    let keys = AtHand { allow_recovery: true, ..at_hand(&own) };
    assert_eq!(opened(&bytes, &key, &keys).unwrap(), key);
    let at = parts(&bytes);
    for place in [at.kem, at.wrapped + 20, at.rsa] {
        let mut garbage = bytes.clone();
        garbage[place] ^= 1;
        is_refused(opened(&garbage, &key, &keys), "garbage");
    }
    // A signature cut away makes no protector that opens unasked; one put on makes none at all.
    let mut unflagged = bytes.clone();
    unflagged[1] = 0;
    is_refused(opened(&unflagged, &key, &keys), "not signed");
    let mut flagged = wrapped(&key, &Wrapping::Certificate(&own));
    flagged[1] = 1;
    assert!(matches!(Protector::decode(&flagged), Err(Error::Corrupt { .. })));
}

#[test]
fn what_rsa_alone_wrapped_afterwards_is_a_downgrade() {
    let (own, key) = (hybrid(), Dek::random().unwrap());
    let rsa_alone = without_companion(&own);
    let keys = at_hand(&own);
    let allowed = AtHand { allow_classical: true, ..at_hand(&own) };
    let recovery = AtHand { allow_recovery: true, ..at_hand(&own) };
    for purpose in [Purpose::Backup, Purpose::Bundle] {
        bound(&key, purpose, |binding| {
            for (with, keys) in [
                (Wrapping::Certificate(&rsa_alone), &keys),
                (Wrapping::Recovery(rsa_alone.public()), &recovery),
            ] {
                let made = [wrap(&key, binding, &with).unwrap()];
                assert_eq!(made[0].encoded()[0], 3);
                for seconds in [0, 999, 1_000] {
                    assert_eq!(unwrap_made(&made, binding, keys, seconds).unwrap(), key);
                }
                for seconds in [1_001, u64::MAX] {
                    let told = unwrap_made(&made, binding, keys, seconds);
                    let told = is_refused(told, "downgrade");
                    assert!(told.contains("PELLUCID_ALLOW_CLASSICAL=1"), "{told}");
                }
            }
            let made = [wrap(&key, binding, &Wrapping::Certificate(&rsa_alone)).unwrap()];
            assert_eq!(unwrap_made(&made, binding, &allowed, 1_001).unwrap(), key);
            // Who has no companion knows nothing of it, and one by both is never late.
            assert_eq!(unwrap_made(&made, binding, &at_hand(&rsa_alone), 1_001).unwrap(), key);
            let both = [wrap(&key, binding, &Wrapping::Certificate(&own)).unwrap()];
            assert_eq!(unwrap_made(&both, binding, &keys, u64::MAX).unwrap(), key);
        });
    }
}

/// The companion with one field changed each time.
fn others(own: &Companion) -> Vec<Companion> {
    let attacker = hybrid();
    let theirs = attacker.public().companion().unwrap();
    let mut flipped = own.signature().to_vec();
    flipped[7] ^= 1;
    [
        (own.added(), theirs.key(), own.signature()),
        (own.added(), theirs.key(), theirs.signature()),
        (own.added() + 1, own.key(), own.signature()),
        (own.added(), own.key(), &flipped[..]),
        (own.added(), own.key(), &[]),
    ]
    .map(|(added, key, signature)| Companion::new(added, key, signature).unwrap())
    .to_vec()
}

#[test]
fn nobody_puts_another_companion_there() {
    let own = hybrid();
    let (companion, private_key) =
        (own.public().companion().unwrap(), own.companion_key().unwrap());
    let public = || PublicCertificate::from_der("app", own.public().der()).unwrap();
    public().with_companion(companion.clone()).unwrap();
    for other in others(companion) {
        let told = public().with_companion(other.clone()).unwrap_err();
        assert!(matches!(told, Error::Unauthentic { .. }), "{told:?}");
        let told = without_companion(&own).with_companion(other, private_key).unwrap_err();
        assert!(matches!(told, Error::Unauthentic { .. }), "{told:?}");
    }
    assert!(Companion::new(1, &companion.key()[1..], companion.signature()).is_none());
    let short = without_companion(&own).with_companion(companion.clone(), &private_key[1..]);
    assert!(matches!(short.unwrap_err(), Error::Corrupt { .. }));
    assert!(matches!(own.add_companion(5).unwrap_err(), Error::Misuse { .. }));
}

const BEGIN: &str = "-----BEGIN PELLUCID COMPANION KEY-----\n";

#[test]
fn exported_files_carry_both_halves_or_are_refused() {
    let own = hybrid();
    let password = Passphrase::new(b"a long enough password");
    let pem = to_pem(own.public()).unwrap();
    let key = to_encrypted_pem(&own, &password).unwrap();
    let plain = without_companion(&own);
    let (plain_pem, plain_key) =
        (to_pem(plain.public()).unwrap(), to_encrypted_pem(&plain, &password).unwrap());
    // Older tools read the first block, which is as before.
    assert!(pem.starts_with(&plain_pem) && pem[plain_pem.len()..].starts_with(BEGIN));
    assert_eq!(key.matches("-----BEGIN ENCRYPTED PRIVATE KEY-----").count(), 2);

    let read =
        |pem: &str, key: &str| import("app", pem.as_bytes(), Some(key.as_bytes()), Some(&password));
    let Ok(Stored::Whole(back)) = read(&pem, &key) else { panic!("not whole") };
    assert_eq!((back.public(), back.companion_key()), (own.public(), own.companion_key()));
    let crlf = read(&pem.replace('\n', "\r\n"), &key.replace('\n', "\r\n"));
    assert!(matches!(crlf, Ok(Stored::Whole(back)) if back.companion_key().is_some()));
    let Ok(Stored::Public(back)) = import("app", pem.as_bytes(), None, None) else { panic!() };
    assert_eq!(&back, own.public());
    assert!(matches!(read(&plain_pem, &plain_key), Ok(Stored::Whole(_))));
    for (pem, key) in [(&pem, &plain_key), (&plain_pem, &key)] {
        let told = read(pem, key).unwrap_err();
        assert!(told.to_string().contains("both files have to be of the same export"), "{told}");
    }
    // The private half of another companion.
    let other = without_companion(&own).add_companion(1_000).unwrap();
    let other_key = to_encrypted_pem(&other, &password).unwrap();
    assert_eq!(read(&pem, &other_key).unwrap_err().number(), Some(15474));
    // Another companion behind the certificate, and damage.
    for changed in others(own.public().companion().unwrap()) {
        let mut der = pem_body(&pem);
        der[22..22 + 1184].copy_from_slice(changed.key());
        der[1206..1214].copy_from_slice(&changed.added().to_be_bytes());
        der.truncate(1214);
        der.extend_from_slice(changed.signature());
        let told = read(&format!("{plain_pem}{}", block(&der)), &key).unwrap_err();
        assert!(matches!(told, Error::Unauthentic { .. }), "{told:?}");
    }
    for der in [Vec::new(), pem_body(&pem)[..1213].to_vec(), pem_body(&pem)[1..].to_vec()] {
        let told = read(&format!("{plain_pem}{}", block(&der)), &key).unwrap_err();
        assert!(matches!(told, Error::Corrupt { .. }), "{told:?}");
    }
}

fn pem_body(pem: &str) -> Vec<u8> {
    let at = pem.find(BEGIN).unwrap();
    pkcs8::der::pem::decode_vec(&pem.as_bytes()[at..]).unwrap().1
}

fn block(der: &[u8]) -> String {
    let end = pkcs8::LineEnding::LF;
    pkcs8::der::pem::encode_string("PELLUCID COMPANION KEY", end, der).unwrap()
}

#[test]
fn a_keyring_keeps_both_halves_and_its_old_entries() {
    let home = tempfile::tempdir().unwrap();
    let (keyring, _) = Keyring::open_or_create(home.path()).unwrap();
    let request = CertificateRequest { rsa_bits: 2048, ..CertificateRequest::new("App", 10) };
    enable_hybrid();
    keyring.create_certificate("old", &request).unwrap();
    let file = |name: &str| {
        let path = home.path().join("keyring/certificates").join(name);
        std::fs::read(path).unwrap()
    };
    assert_eq!(file("old")[16..18], [0, 1], "older versions read it");
    let before = keyring.certificate("old").unwrap();
    let made = keyring.add_companion("old").unwrap();
    assert_eq!(file("old")[16..18], [0, 2], "older versions refuse it, and do not replace it");
    let after = keyring.certificate("old").unwrap();
    assert_eq!(after.private_key().unwrap(), before.private_key().unwrap());
    assert_eq!(after.companion_key(), made.companion_key());
    assert_eq!(after.public(), made.public());
    assert!(keyring.add_companion("old").is_err() && keyring.add_companion("none").is_err());
    after.check_pair().unwrap();
    let found = keyring.certificate_by_thumbprint(before.public().thumbprint()).unwrap().unwrap();
    assert_eq!(found.companion_key(), made.companion_key());
    // No byte of it lies there in clear.
    let secret = made.companion_key().unwrap();
    assert!(!file("old").windows(32).any(|window| window == &secret[..32]));
    // Of one without its private key nobody can sign a companion.
    let elsewhere = classical(2048);
    keyring
        .add_certificate(Stored::Public(
            PublicCertificate::from_der("theirs", elsewhere.public().der()).unwrap(),
        ))
        .unwrap();
    assert!(matches!(keyring.add_companion("theirs"), Err(Error::MissingKey { .. })));
    // It comes with theirs.
    let theirs = elsewhere.add_companion(7).unwrap();
    let public = PublicCertificate::from_der("theirs", theirs.public().der())
        .and_then(|public| public.with_companion(theirs.public().companion().unwrap().clone()))
        .unwrap();
    let stored = keyring.add_certificate(Stored::Public(public.clone())).unwrap();
    assert_eq!(stored.public().companion(), theirs.public().companion());
    assert_eq!(keyring.stored_certificate("theirs").unwrap().public(), &public);
    // A new master key above it changes nothing.
    let change = pellucid_keyring::Change::begin(home.path()).unwrap();
    change.replace_database_key(Some(&keyring), None, None, false).unwrap();
    drop(change);
    let keyring = Keyring::open(home.path()).unwrap();
    assert_eq!(keyring.certificate("old").unwrap().companion_key(), made.companion_key());
    assert_eq!(file("old")[16..18], [0, 2]);
}
