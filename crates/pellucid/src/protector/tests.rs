//! Every protector opens with its key, and each kind of failure has its own words.

use std::sync::Arc;

use super::*;
use crate::certificate::{CertificateRequest, KeyPlace, PrivateKey};

struct Keys {
    key_files: Vec<KeyFile>,
    passphrases: Vec<Passphrase>,
    certificates: Vec<Certificate>,
    recovery: bool,
}

impl Keys {
    fn none() -> Self {
        Self { key_files: vec![], passphrases: vec![], certificates: vec![], recovery: false }
    }
}

impl KeySource for Keys {
    fn key_files(&self) -> &[KeyFile] {
        &self.key_files
    }
    fn passphrases(&self) -> &[Passphrase] {
        &self.passphrases
    }
    fn certificate(&self, thumbprint: &[u8; 32]) -> Result<Option<Certificate>> {
        Ok(self.certificates.iter().find(|c| c.public().thumbprint() == thumbprint).cloned())
    }
    fn allow_recovery(&self) -> bool {
        self.recovery
    }
}

const CHEAP: Argon2Cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };
const ID: [u8; 16] = [4; 16];

fn bound<T>(dek: &Dek, then: impl FnOnce(&Binding<'_>) -> T) -> T {
    let commitment = commitment(dek, &ID).unwrap();
    then(&Binding {
        purpose: Purpose::Database,
        id: &ID,
        algorithm: Algorithm::Aes256,
        commitment: &commitment,
    })
}

fn again(protector: &Protector) -> Protector {
    let mut bytes = Vec::new();
    protector.encode(&mut bytes);
    let (decoded, length) = Protector::decode(&bytes).unwrap();
    assert_eq!(length, bytes.len());
    decoded
}

#[test]
fn three_kinds_side_by_side_each_open_alone() {
    let dek = Dek::random().unwrap();
    let key = KeyFile::random().unwrap();
    let passphrase = Passphrase::new(b"correct horse\n");
    let certificate = Certificate::generate("app", &CertificateRequest::new("App", 10)).unwrap();
    bound(&dek, |binding| {
        let all = [
            wrap(&dek, binding, &Wrapping::KeyFile(&key)).unwrap(),
            wrap(&dek, binding, &Wrapping::Passphrase(&passphrase, CHEAP)).unwrap(),
            wrap(&dek, binding, &Wrapping::Certificate(&certificate)).unwrap(),
        ]
        .map(|protector| again(&protector));
        let only_key = Keys { key_files: vec![key.clone()], ..Keys::none() };
        assert_eq!(unwrap(&all, binding, &only_key).unwrap(), dek);
        let only_passphrase = Keys { passphrases: vec![passphrase.clone()], ..Keys::none() };
        assert_eq!(unwrap(&all, binding, &only_passphrase).unwrap(), dek);
        let only_certificate = Keys { certificates: vec![certificate.clone()], ..Keys::none() };
        assert_eq!(unwrap(&all, binding, &only_certificate).unwrap(), dek);

        let told = unwrap(&all, binding, &Keys::none()).unwrap_err().to_string();
        let thumbprint = crate::hash::hex(certificate.public().thumbprint()).to_uppercase();
        let expected = format!(
            "no key for it. It opens with a key file (`--key-file`, `PELLUCID_KEY_FILE` or the \
             URI's `key_file=`), or with certificate `app`, which is not in the keyring, or with a \
             passphrase (`--passphrase-file`, `PELLUCID_PASSPHRASE_FILE` or the URI's \
             `passphrase_file=`). Cannot find server certificate with thumbprint '0x{thumbprint}'."
        );
        assert_eq!(told, expected);
        let wrong = Keys {
            key_files: vec![KeyFile::random().unwrap()],
            passphrases: vec![Passphrase::new(b"wrong")],
            ..Keys::none()
        };
        let told = unwrap(&all, binding, &wrong).unwrap_err().to_string();
        let expected = format!(
            "wrong key: the key file given does not open it; wrong passphrase: the passphrase given \
             does not open it. It also opens with certificate `app`, which is not in the keyring. \
             Cannot find server certificate with thumbprint '0x{thumbprint}'."
        );
        assert_eq!(told, expected);
    });
}

#[test]
fn a_key_put_in_by_somebody_with_the_public_half_is_refused() {
    let foreign = Dek::random().unwrap();
    let certificate = Certificate::generate("app", &CertificateRequest::new("App", 10)).unwrap();
    let attacker = Certificate::generate("other", &CertificateRequest::new("Other", 10)).unwrap();
    let keys = Keys { certificates: vec![certificate.clone()], ..Keys::none() };
    bound(&foreign, |binding| {
        let mut forged =
            CertificateProtector::wrap_recovery(&foreign, binding, certificate.public()).unwrap();
        // As a recovery protector it is not used unless that was asked for.
        let list = [again(&Protector::Certificate(forged.clone()))];
        let refused = unwrap(&list, binding, &keys).unwrap_err();
        assert!(matches!(refused, Error::MissingKey { .. }), "{refused:?}");
        assert_eq!(
            refused.to_string(),
            "no key for it. It opens with recovery certificate `app` (`--online` or \
             `PELLUCID_RECOVERY=1`)."
        );
        // Signed by another key it is refused.
        forged = CertificateProtector::wrap(&foreign, binding, &attacker).unwrap();
        let mut bytes = Vec::new();
        Protector::Certificate(forged).encode(&mut bytes);
        let at = bytes.windows(32).position(|w| w == attacker.public().thumbprint()).unwrap();
        bytes[at..at + 32].copy_from_slice(certificate.public().thumbprint());
        let list = [Protector::decode(&bytes).unwrap().0];
        let refused = unwrap(&list, binding, &keys);
        assert!(matches!(refused, Err(Error::Unauthentic { .. })), "{refused:?}");
    });
}

#[test]
fn a_protector_of_another_file_does_not_open_here() {
    let dek = Dek::random().unwrap();
    let key = KeyFile::random().unwrap();
    let protector = bound(&dek, |b| wrap(&dek, b, &Wrapping::KeyFile(&key)).unwrap());
    let other = commitment(&dek, &[5; 16]).unwrap();
    let elsewhere = Binding {
        purpose: Purpose::Database,
        id: &[5; 16],
        algorithm: Algorithm::Aes256,
        commitment: &other,
    };
    let keys = Keys { key_files: vec![key], ..Keys::none() };
    assert!(unwrap(&[protector], &elsewhere, &keys).is_err());
}

#[test]
fn every_flipped_bit_of_a_key_file_protector_is_refused() {
    let dek = Dek::random().unwrap();
    let key = KeyFile::random().unwrap();
    let keys = Keys { key_files: vec![key.clone()], ..Keys::none() };
    bound(&dek, |binding| {
        let mut bytes = Vec::new();
        wrap(&dek, binding, &Wrapping::KeyFile(&key)).unwrap().encode(&mut bytes);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let opened = Protector::decode(&bytes).and_then(|(p, _)| unwrap(&[p], binding, &keys));
            assert!(opened.is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    });
}

#[test]
fn a_cost_above_the_limits_is_refused_before_any_work() {
    let dek = Dek::random().unwrap();
    let passphrase = Passphrase::new(b"correct horse");
    bound(&dek, |binding| {
        let mut bytes = Vec::new();
        wrap(&dek, binding, &Wrapping::Passphrase(&passphrase, CHEAP)).unwrap().encode(&mut bytes);
        bytes[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        let protector = Protector::decode(&bytes).unwrap().0;
        let keys = Keys { passphrases: vec![passphrase.clone()], ..Keys::none() };
        // Four TiB of memory: with any work this test would not end.
        let refused = unwrap(&[protector], binding, &keys);
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    });
}

#[test]
fn an_unknown_type_is_named() {
    let told = Protector::decode(&[9, 0, 0, 0]).unwrap_err().to_string();
    assert!(told.contains("type 9"), "{told}");
}

#[test]
fn nothing_secret_is_printed() {
    let key = KeyFile::parse(&[0xAB; 32]).unwrap();
    let shown = format!("{key:?} {:?}", Passphrase::new(b"sesame"));
    assert!(!shown.contains("171") && !shown.contains("sesame"), "{shown}");
    let certificate = Certificate::generate("app", &CertificateRequest::new("App", 10)).unwrap();
    assert!(format!("{certificate:?}").len() < 100);
}

#[test]
fn flags_are_known_or_refused() {
    for kind in [TYPE_KEY_FILE, TYPE_PASSPHRASE, TYPE_CERTIFICATE] {
        let told = Protector::decode(&[kind, 2, 0, 0]).unwrap_err();
        assert!(matches!(told, Error::Unsupported { .. }), "{told}");
        assert!(told.to_string().contains("flag 2"), "{told}");
    }
}

#[test]
fn a_signed_protector_does_not_pass_for_one_of_recovery() {
    let dek = Dek::random().unwrap();
    let certificate = Certificate::generate("app", &CertificateRequest::new("App", 10)).unwrap();
    bound(&dek, |binding| {
        let mut bytes = Vec::new();
        wrap(&dek, binding, &Wrapping::Certificate(&certificate)).unwrap().encode(&mut bytes);
        bytes[1] = FLAG_RECOVERY;
        assert!(matches!(Protector::decode(&bytes), Err(Error::Corrupt { .. })));
    });
}

/// A keyring that is there and cannot be read.
struct BrokenKeyring(Vec<Passphrase>);

impl KeySource for BrokenKeyring {
    fn passphrases(&self) -> &[Passphrase] {
        &self.0
    }
    fn certificate(&self, _: &[u8; 32]) -> Result<Option<Certificate>> {
        Err(Error::unauthentic(Subject::Key("keyring"), "damaged"))
    }
}

#[test]
fn a_broken_keyring_does_not_stand_before_a_passphrase() {
    let dek = Dek::random().unwrap();
    let passphrase = Passphrase::new(b"correct horse");
    let certificate = Certificate::generate("app", &CertificateRequest::new("App", 10)).unwrap();
    bound(&dek, |binding| {
        let protectors = [
            wrap(&dek, binding, &Wrapping::Certificate(&certificate)).unwrap(),
            wrap(&dek, binding, &Wrapping::Passphrase(&passphrase, CHEAP)).unwrap(),
        ];
        let opened = unwrap(&protectors, binding, &BrokenKeyring(vec![passphrase.clone()]));
        assert_eq!(opened.unwrap(), dek);
        let wrong = Passphrase::new(b"y");
        for passphrases in [vec![], vec![wrong]] {
            let told = unwrap(&protectors, binding, &BrokenKeyring(passphrases));
            assert!(matches!(told, Err(Error::Unauthentic { .. })), "{told:?}");
        }
    });
}

/// A keyring that has the certificate and cannot use it.
struct UnusableCertificate;

impl KeySource for UnusableCertificate {
    fn certificate(&self, _: &[u8; 32]) -> Result<Option<Certificate>> {
        Err(Error::missing_key(Subject::Key("service master key"), "it is not there"))
    }
}

#[test]
fn a_certificate_that_cannot_be_used_is_named_with_the_reason() {
    let dek = Dek::random().unwrap();
    let certificate = Certificate::generate("app", &CertificateRequest::new("App", 10)).unwrap();
    let passphrase = Passphrase::new(b"long enough");
    bound(&dek, |binding| {
        let protectors = [
            wrap(&dek, binding, &Wrapping::Certificate(&certificate)).unwrap(),
            wrap(&dek, binding, &Wrapping::Passphrase(&passphrase, CHEAP)).unwrap(),
        ];
        let one = &protectors[..1];
        assert_eq!(
            unwrap(one, binding, &UnusableCertificate).unwrap_err().to_string(),
            "no key for it. It opens with certificate `app`, which cannot be used: it is not there."
        );
        let bundle = Binding { purpose: Purpose::Bundle, ..*binding };
        assert_eq!(
            unwrap(&protectors, &bundle, &UnusableCertificate).unwrap_err().to_string(),
            "no key for it. It opens with certificate `app`, which cannot be used, or with a \
             password (`--password-file`). Certificate `app`: it is not there."
        );
    });
}

/// What holds the key, and how it answers.
#[derive(Debug)]
struct Token {
    place: KeyPlace,
    key: Certificate,
    trouble: Option<fn() -> Error>,
}

impl PrivateKey for Token {
    fn place(&self) -> &KeyPlace {
        &self.place
    }
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        self.trouble.map_or_else(|| self.key.sign(message), |trouble| Err(trouble()))
    }
    fn decrypt(&self, wrapped: &[u8], label: &[u8]) -> Result<Secret32> {
        self.trouble.map_or_else(|| self.key.decrypt(wrapped, label), |trouble| Err(trouble()))
    }
}

fn in_token(key: &Certificate, trouble: Option<fn() -> Error>) -> Certificate {
    let place = KeyPlace::new("pkcs11", "pkcs11:object=tde").unwrap();
    let public_key = key.public().public_key.clone();
    Certificate::elsewhere("tde", &public_key, Arc::new(Token { place, key: key.clone(), trouble }))
        .unwrap()
}

#[test]
fn a_key_that_is_elsewhere_opens_and_signs_and_is_never_handed_out() {
    let dek = Dek::random().unwrap();
    let inside = Certificate::generate("x", &CertificateRequest::new("x", 10)).unwrap();
    let key = in_token(&inside, None);
    assert!(key.private_key().unwrap_err().to_string().contains("which it never leaves"));
    key.check_pair().unwrap();
    bound(&dek, |binding| {
        let protector = again(&wrap(&dek, binding, &Wrapping::Certificate(&key)).unwrap());
        assert_eq!((protector.encoded()[0], protector.kind_name()), (4, "asymmetric key"));
        let told = protector.describe();
        assert!(told.contains("`tde` in provider `pkcs11`, key `pkcs11:object=tde`"), "{told}");
        let keys = Keys { certificates: vec![key.clone()], ..Keys::none() };
        assert_eq!(unwrap(std::slice::from_ref(&protector), binding, &keys).unwrap(), dek);
        // By the public half alone: for recovery, and the key opens that, too.
        let recovery = again(&wrap(&dek, binding, &Wrapping::Recovery(key.public())).unwrap());
        assert_eq!(recovery.encoded()[..2], [3, 1]);
        let keys = Keys { certificates: vec![key.clone()], recovery: true, ..Keys::none() };
        assert_eq!(unwrap(&[recovery], binding, &keys).unwrap(), dek);
        // A certificate with the same key is another one.
        let keys = Keys { certificates: vec![inside.clone()], ..Keys::none() };
        let told = unwrap(&[protector], binding, &keys).unwrap_err();
        assert!(matches!(told, Error::MissingKey { .. }), "{told}");
    });
}

#[test]
fn what_holds_a_key_and_does_not_answer_keeps_no_other_protector_from_opening() {
    let dek = Dek::random().unwrap();
    let inside = Certificate::generate("x", &CertificateRequest::new("x", 10)).unwrap();
    type Trouble = fn() -> Error;
    let troubles: [(Trouble, &str); 2] = [
        (|| Error::missing_key(Subject::Key("token"), "the token is not in its slot"), "its slot"),
        (|| Error::io(Subject::Key("token"), std::io::Error::other("no answer")), "no answer"),
    ];
    let passphrase = Passphrase::new(b"correct horse\n");
    bound(&dek, |binding| {
        let with = Wrapping::Certificate(&in_token(&inside, None));
        let protector = wrap(&dek, binding, &with).unwrap();
        let second = wrap(&dek, binding, &Wrapping::Passphrase(&passphrase, CHEAP)).unwrap();
        for (trouble, told) in troubles {
            let certificates = vec![in_token(&inside, Some(trouble))];
            let keys = Keys { certificates, ..Keys::none() };
            let error = unwrap(std::slice::from_ref(&protector), binding, &keys).unwrap_err();
            assert!(error.to_string().contains(told), "{error}");
            let keys = Keys { passphrases: vec![passphrase.clone()], ..keys };
            let both = [protector.clone(), second.clone()];
            assert_eq!(unwrap(&both, binding, &keys).unwrap(), dek);
            // Nobody signs for it.
            let key = in_token(&inside, Some(trouble));
            assert!(wrap(&dek, binding, &Wrapping::Certificate(&key)).is_err());
        }
        // One that decrypts nothing is trouble, no forgery: its signature was right.
        let other = Certificate::generate("y", &CertificateRequest::new("y", 10)).unwrap();
        let changed = with_public(&inside, &other);
        let keys = Keys { certificates: vec![changed.clone()], ..Keys::none() };
        assert!(unwrap(std::slice::from_ref(&protector), binding, &keys).is_err());
        let keys = Keys { passphrases: vec![passphrase.clone()], ..keys };
        assert_eq!(unwrap(&[protector.clone(), second.clone()], binding, &keys).unwrap(), dek);
        // And nothing is protected by it: not by one whose key was made anew under its name, and not by one that only signs.
        let told = wrap(&dek, binding, &Wrapping::Certificate(&changed)).unwrap_err();
        assert!(told.to_string().contains("nothing was protected by it"), "{told}");
        assert!(changed.check_pair().is_err());
    });
}

/// The public half of one key, and what answers has another one.
fn with_public(public: &Certificate, answers: &Certificate) -> Certificate {
    let place = KeyPlace::new("pkcs11", "pkcs11:object=tde").unwrap();
    let token = Token { place, key: answers.clone(), trouble: None };
    let public_key = public.public().public_key.clone();
    Certificate::elsewhere("tde", &public_key, Arc::new(token)).unwrap()
}

#[test]
fn a_place_is_a_provider_and_a_key_that_can_be_printed() {
    for (provider, key) in
        [("", "k"), ("P", "k"), ("a/b", "k"), ("p", ""), ("p", "a\nb"), ("p", "\u{fc}")]
    {
        assert!(KeyPlace::new(provider, key).is_err(), "{provider:?} {key:?}");
    }
    assert!(KeyPlace::new(&"p".repeat(33), "k").is_err());
    assert!(KeyPlace::new("p", &"k".repeat(513)).is_err());
    let place = KeyPlace::new(&"p".repeat(32), &"k".repeat(512)).unwrap();
    let mut bytes = Vec::new();
    place.encode(&mut bytes);
    assert_eq!(KeyPlace::decode(&bytes), Some(place));
    for length in 0..bytes.len() {
        assert_eq!(KeyPlace::decode(&bytes[..length]), None, "{length}");
    }
    bytes.push(b'k');
    assert_eq!(KeyPlace::decode(&bytes), None);
}

#[test]
fn a_program_without_ml_kem_wraps_nothing_by_rsa_alone_in_its_place() {
    use crate::certificate::{Companion, COMPANION_BYTES};
    let key = Dek::random().unwrap();
    let certificate = Certificate::generate("app", &CertificateRequest::new("App", 10)).unwrap();
    let thumbprint = *certificate.public().thumbprint();
    let (added, companion) = (7u64, [1; COMPANION_BYTES]);
    let message =
        [&b"pellucid/1 companion"[..], &thumbprint, &added.to_be_bytes(), &companion].concat();
    let signature = certificate.sign(&message).unwrap();
    let companion = Companion::new(added, &companion, &signature).unwrap();
    let hybrid = certificate.with_companion(companion, &[2; 2400]).unwrap();
    let commitment = commitment(&key, &ID).unwrap();
    for purpose in [Purpose::Backup, Purpose::Bundle] {
        let algorithm = Algorithm::Aes256;
        let binding = Binding { purpose, id: &ID, algorithm, commitment: &commitment };
        for with in [Wrapping::Certificate(&hybrid), Wrapping::Recovery(hybrid.public())] {
            let refused = wrap(&key, &binding, &with).unwrap_err();
            assert!(refused.to_string().contains("has not enabled ML-KEM-768"), "{refused}");
        }
    }
    bound(&key, |binding| {
        let made = wrap(&key, binding, &Wrapping::Certificate(&hybrid)).unwrap();
        let keys = Keys { certificates: vec![hybrid.clone()], ..Keys::none() };
        assert_eq!(unwrap(&[made], binding, &keys).unwrap(), key);
    });
}
