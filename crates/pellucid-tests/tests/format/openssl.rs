//! Goal: openssl reads what is exported, and what openssl makes is imported; what is wrong is refused at once and by name.
//!
//! Method: the openssl program makes and reads files in a directory of its own: PEM, DER, PKCS#8 under several schemes,
//! PKCS#1, PFX, PVK; RSA keys of 384 to 16384 bits; parameters that would burn hours.

use std::path::{Path, PathBuf};
use std::process::Command;

use pellucid::certificate::{Certificate, CertificateRequest};
use pellucid::protector::Passphrase;
use pellucid::Error;
use pellucid_exchange::{import, to_encrypted_pem, to_pem};
use pellucid_keyring::Stored;

const PASSWORD: &str = "Pa55word & more";

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// `openssl WORDS`, which has to succeed; what it printed. Words are split at blanks.
    fn openssl(&self, words: &str) -> String {
        self.openssl_words(&words.split(' ').collect::<Vec<_>>())
    }

    fn openssl_words(&self, words: &[&str]) -> String {
        self.put("password", PASSWORD.as_bytes());
        let output =
            Command::new("openssl").args(words).current_dir(self.0.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "openssl {words:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A certificate `cert.pem` with its key `key.pem`.
    fn make(&self, bits: u32) {
        self.openssl(&format!(
            "req -x509 -newkey rsa:{bits} -nodes -keyout key.pem -out cert.pem -days 10 -subj /CN=From-openssl"
        ));
    }
}

fn password() -> Passphrase {
    Passphrase::new(PASSWORD.as_bytes())
}

fn whole(imported: Result<Stored, Error>) -> Certificate {
    match imported.unwrap() {
        Stored::Whole(certificate) => certificate,
        Stored::Public(_) => panic!("the private key is missing"),
    }
}

fn number(imported: Result<Stored, Error>) -> u16 {
    match imported {
        Err(Error::Message { message, .. }) => message.number,
        other => panic!("{other:?}"),
    }
}

fn is_read_by_openssl(place: &Place, name: &Path) {
    let modulus = |words: &str| place.openssl(words);
    let of_certificate = modulus("x509 -in out.pem -noout -modulus");
    place.openssl_words(&[
        "pkcs8",
        "-in",
        name.to_str().unwrap(),
        "-passin",
        "file:password",
        "-out",
        "clear.pem",
    ]);
    assert_eq!(of_certificate, modulus("rsa -in clear.pem -noout -modulus"));
}

#[test]
fn openssl_reads_what_is_exported_and_it_comes_back() {
    let place = Place::new();
    for rsa_bits in [2048, 3072, 4096] {
        let request =
            CertificateRequest { rsa_bits, ..CertificateRequest::new("Çertificate", 30) };
        let made = Certificate::generate("app", &request).unwrap();
        assert_eq!(made.public().rsa_bits(), rsa_bits);
        place.put("out.pem", to_pem(made.public()).unwrap().as_bytes());
        place.put("out.key", to_encrypted_pem(&made, &password()).unwrap().as_bytes());
        is_read_by_openssl(&place, Path::new("out.key"));
        let text = place.openssl("x509 -in out.pem -noout -fingerprint -sha1");
        let sha1 = pellucid::hash::hex(&made.public().sha1_thumbprint()).to_uppercase();
        assert_eq!(text.split('=').nth(1).unwrap().trim().replace(':', ""), sha1);

        let (certificate, key) = (place.get("out.pem"), place.get("out.key"));
        let back = whole(import("app", &certificate, Some(&key), Some(&password())));
        assert_eq!(back.public(), made.public());
        let wrong = Passphrase::new(b"wrong");
        assert_eq!(number(import("app", &certificate, Some(&key), Some(&wrong))), 15465);
        assert_eq!(number(import("app", &certificate, Some(&key), None)), 15465);
    }
}

#[test]
fn what_openssl_makes_is_imported() {
    let place = Place::new();
    place.make(2048);
    let pem = place.get("cert.pem");
    place.openssl("x509 -in cert.pem -outform DER -out cert.der");
    place.openssl("pkcs8 -topk8 -nocrypt -in key.pem -outform DER -out key.der");
    place.openssl("rsa -in key.pem -traditional -out pkcs1.pem");
    let sealed = |out: &str, how: &str| {
        place.openssl(&format!("pkcs8 -topk8 -in key.pem -passout file:password -out {out} {how}"));
    };
    sealed("aes.pem", "-v2 aes-256-cbc");
    sealed("aes.der", "-v2 aes-128-cbc -outform DER");
    sealed("scrypt.pem", "-scrypt");
    sealed("sha512.pem", "-v2 aes-256-cbc -v2prf hmacWithSHA512 -iter 100000");
    place.openssl("rsa -in key.pem -outform PVK -pvk-none -out clear.pvk");
    for key in ["key.pem", "key.der", "pkcs1.pem", "clear.pvk"] {
        for certificate in [&pem, &place.get("cert.der")] {
            whole(import("a", certificate, Some(&place.get(key)), None));
        }
    }
    for key in ["aes.pem", "aes.der", "scrypt.pem", "sha512.pem"] {
        whole(import("a", &pem, Some(&place.get(key)), Some(&password())));
        let wrong = Passphrase::new(b"x");
        assert_eq!(number(import("a", &pem, Some(&place.get(key)), Some(&wrong))), 15465, "{key}");
    }
    let crlf = String::from_utf8(pem.clone()).unwrap().replace('\n', "\r\n");
    whole(import("a", crlf.as_bytes(), Some(&place.get("key.pem")), None));
    assert!(matches!(import("a", &pem, None, None), Ok(Stored::Public(_))));

    for (out, how) in [("new.pfx", ""), ("old.pfx", " -legacy")] {
        place.openssl(&format!(
            "pkcs12 -export -in cert.pem -inkey key.pem -passout file:password -out {out}{how}"
        ));
        whole(import("a", &place.get(out), None, Some(&password())));
        let wrong = Passphrase::new(b"x");
        assert_eq!(number(import("a", &place.get(out), None, Some(&wrong))), 15465, "{out}");
    }
    for (out, how) in [("strong.pvk", "-pvk-strong"), ("weak.pvk", "-pvk-weak")] {
        place.openssl(
            &format!(
                "rsa -provider legacy -provider default -in key.pem -outform PVK {how} \
             -passout file:password -out {out}"
            )
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
        );
        whole(import("a", &pem, Some(&place.get(out)), Some(&password())));
        let wrong = Passphrase::new(b"x");
        assert_eq!(number(import("a", &pem, Some(&place.get(out)), Some(&wrong))), 15465, "{out}");
    }

    let other = Place::new();
    other.make(2048);
    assert_eq!(number(import("a", &pem, Some(&other.get("key.pem")), None)), 15474);
}

#[test]
fn keys_of_other_sizes_and_kinds_are_refused_by_name() {
    for bits in [512, 1024, 5120] {
        let place = Place::new();
        place.make(bits);
        let imported = import("a", &place.get("cert.pem"), Some(&place.get("key.pem")), None);
        let Err(Error::Unsupported { cause, .. }) = imported else { panic!("{bits}") };
        assert!(cause.contains("bits") || cause.contains("not an RSA key"), "{bits}: {cause}");
    }
    let place = Place::new();
    place.openssl(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem \
         -out cert.pem -subj /CN=EC",
    );
    let imported = import("a", &place.get("cert.pem"), Some(&place.get("key.pem")), None);
    assert!(matches!(imported, Err(Error::Unsupported { .. })));
}

#[test]
fn what_would_burn_memory_or_hours_is_refused_at_once() {
    let place = Place::new();
    place.make(2048);
    let pem = place.get("cert.pem");
    place.openssl(
        "pkcs8 -topk8 -in key.pem -passout file:password -outform DER -out key.der -v2 aes-256-cbc \
         -iter 65537",
    );
    place.openssl(
        "pkcs8 -topk8 -in key.pem -passout file:password -outform DER -out scrypt.der -scrypt",
    );
    // The numbers in the files: DER's INTEGER 65537, and scrypt's N of 16384, r of 8 and p of 1.
    for (name, number, huge) in [
        ("key.der", &[2u8, 3, 1, 0, 1][..], &[2u8, 3, 0x7f, 0xff, 0xff][..]),
        (
            "scrypt.der",
            &[2, 2, 0x40, 0, 2, 1, 8, 2, 1, 1][..],
            &[2, 2, 0x40, 0, 2, 1, 8, 2, 1, 0x7f],
        ),
    ] {
        let mut bytes = place.get(name);
        let at = bytes.windows(number.len()).position(|window| window == number).unwrap();
        bytes[at..at + huge.len()].copy_from_slice(huge);
        // By the number alone: whoever tries it first is told something else in the end.
        let Err(error) = import("a", &pem, Some(&bytes), Some(&password())) else {
            panic!("{name}")
        };
        assert!(error.to_string().contains("; at most "), "{name}: {error}");
    }
}

/// Every file cut short, and with a byte changed here and there: an error, never a panic, never long.
#[test]
fn damaged_files_are_refused() {
    let place = Place::new();
    place.make(2048);
    let pem = place.get("cert.pem");
    place.openssl("rsa -in key.pem -outform PVK -pvk-none -out key.pvk");
    place.openssl("pkcs12 -export -in cert.pem -inkey key.pem -passout file:password -out a.pfx");
    place.openssl("pkcs8 -topk8 -nocrypt -in key.pem -outform DER -out key.der");
    let mut seed = 0x9e37_79b9_u64;
    for name in ["key.pem", "key.pvk", "key.der", "a.pfx"] {
        let bytes = place.get(name);
        for at in (0..bytes.len()).step_by(bytes.len() / 40) {
            let cut = &bytes[..at];
            let imported = match name {
                "a.pfx" => import("a", cut, None, Some(&password())),
                _ => import("a", &pem, Some(cut), None),
            };
            assert!(imported.is_err(), "{name} cut at {at}");
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (seed >> 61);
            // A changed byte may be one that nobody reads; it must not panic, and never gives another key.
            let imported = match name {
                "a.pfx" => import("a", &changed, None, Some(&password())),
                _ => import("a", &pem, Some(&changed), None),
            };
            if let Ok(Stored::Whole(certificate)) = imported {
                certificate.check_pair().unwrap();
            }
        }
    }
}
