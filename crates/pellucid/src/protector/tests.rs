//! Every protector opens with its key, and each kind of failure has its own words.

use super::*;
use crate::certificate::CertificateRequest;

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
