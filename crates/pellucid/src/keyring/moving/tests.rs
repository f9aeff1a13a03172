//! Instances in bundles, from one home to another.

use super::*;
use crate::certificate::{Certificate, CertificateRequest, PublicCertificate};
use crate::protector::{Argon2Cost, Passphrase};

struct Password(Vec<Passphrase>);

impl KeySource for Password {
    fn passphrases(&self) -> &[Passphrase] {
        &self.0
    }
    fn certificate(&self, _: &[u8; 32]) -> Result<Option<Certificate>> {
        Ok(None)
    }
}

struct Bench(tempfile::TempDir, Passphrase);

impl Bench {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap(), Passphrase::new(b"a Pa55word"))
    }

    fn home(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn export(&self, keyring: &Keyring, name: &str) -> Bundle {
        let cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };
        let path = self.home(name);
        keyring.export_instance(&path, &Wrapping::Passphrase(&self.1, cost)).unwrap();
        Bundle::read(&path, &Password(vec![self.1.clone()])).unwrap()
    }
}

fn fates(plan: &[Carried]) -> Vec<(&str, Fate)> {
    plan.iter().map(|one| (one.what, one.fate.clone())).collect()
}

#[test]
fn an_instance_goes_into_an_empty_one_and_is_the_same_there() {
    let bench = Bench::new();
    let (old, _) = Keyring::open_or_create(&bench.home("old")).unwrap();
    let (certificate, _) = old.ensure_default_certificate().unwrap();
    let memory = DatabaseMemory {
        sequence: 7,
        sealed: true,
        certificates: vec![*certificate.public().thumbprint()],
        path: "/srv/app.db".into(),
    };
    old.remember_database(&[9; 16], &memory).unwrap();
    Change::begin(old.home()).unwrap().add_password(&old, &bench.1).unwrap();
    let bundle = bench.export(&old, "bundle");
    assert!(old.certificate("pellucid").unwrap().backed_up().is_some());

    let home = bench.home("new");
    let planned = bundle.plan(&home).unwrap();
    assert!(!home.exists(), "a look changes nothing");
    assert_eq!(bundle.import(&home, Path::new("bundle")).unwrap(), planned);
    let new = Keyring::open(&home).unwrap();
    assert_eq!(new.master_key, old.master_key);
    assert_ne!(
        std::fs::read(home.join("service.key")).unwrap(),
        std::fs::read(old.home().join("service.key")).unwrap()
    );
    let came = new.certificate("pellucid").unwrap();
    assert_eq!(came.private_key(), certificate.private_key());
    assert!(came.backed_up().is_some());
    assert_eq!(new.recall_database(&[9; 16]).unwrap(), Some(memory));
    assert_eq!(Keyring::open_by_password(&home, &bench.1).unwrap().master_key, old.master_key);
    // Once more, and as after an interruption.
    let again = bundle.import(&home, Path::new("bundle")).unwrap();
    assert!(again.iter().all(|one| one.fate == Fate::Same), "{again:?}");
    std::fs::remove_file(home.join("keyring/certificates/pellucid")).unwrap();
    std::fs::remove_file(home.join("keyring/passwords/1")).unwrap();
    bundle.import(&home, Path::new("bundle")).unwrap();
    assert_eq!(new.certificate("pellucid").unwrap().private_key(), certificate.private_key());
    Keyring::open_by_password(&home, &bench.1).unwrap();
}

#[test]
fn an_instance_that_has_its_own_keeps_it() {
    let bench = Bench::new();
    let (old, _) = Keyring::open_or_create(&bench.home("old")).unwrap();
    let (new, _) = Keyring::open_or_create(&bench.home("new")).unwrap();
    let make = |keyring: &Keyring, name: &str| {
        keyring.create_certificate(name, &CertificateRequest::new(name, 9)).unwrap()
    };
    let (shared, other) = (make(&old, "shared"), make(&old, "other"));
    let public = PublicCertificate::from_der("shared", shared.public().der()).unwrap();
    new.add_certificate(crate::certificate::Imported::Public(public)).unwrap();
    let renamed = Certificate::from_parts("mine", other.public().der(), other.private_key(), None);
    new.add_certificate(crate::certificate::Imported::Whole(renamed.unwrap())).unwrap();
    let memory = |sequence| DatabaseMemory { sequence, ..Default::default() };
    for (id, there, coming) in [(1, 5, 7), (2, 7, 5)] {
        new.remember_database(&[id; 16], &memory(there)).unwrap();
        old.remember_database(&[id; 16], &memory(coming)).unwrap();
    }
    let bundle = bench.export(&old, "bundle");
    let plan = bundle.import(new.home(), Path::new("bundle")).unwrap();
    assert_eq!(
        fates(&plan),
        [
            ("database master key", Fate::Kept),
            ("certificate", Fate::SameAs("mine".to_owned())),
            ("certificate", Fate::New),
            ("database", Fate::New),
            ("database", Fate::Same),
        ]
    );
    let whole = new.certificate("shared").unwrap();
    assert_eq!(whole.private_key(), shared.private_key());
    for id in [1, 2] {
        assert_eq!(new.recall_database(&[id; 16]).unwrap().unwrap().sequence, 7);
    }

    // A name that something else has.
    for name in ["taken", "second"] {
        make(&old, name);
        make(&new, name);
    }
    make(&old, "free");
    let bundle = bench.export(&old, "another");
    let told = bundle.import(new.home(), Path::new("another")).unwrap_err();
    assert_eq!(told.number(), Some(15232));
    assert!(told.to_string().contains("'second', 'taken'"), "{told}");
    assert!(new.stored_certificate("free").is_err(), "nothing was changed");
}

#[test]
fn a_damaged_certificate_is_neither_left_out_nor_written_over() {
    let bench = Bench::new();
    let (old, _) = Keyring::open_or_create(&bench.home("old")).unwrap();
    old.ensure_default_certificate().unwrap();
    let bundle = bench.export(&old, "bundle");
    let file = old.home().join("keyring/certificates/pellucid");
    std::fs::write(&file, b"damaged").unwrap();

    let path = bench.home("without");
    let cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };
    let told = old.export_instance(&path, &Wrapping::Passphrase(&bench.1, cost)).unwrap_err();
    assert!(told.to_string().contains("certificates/pellucid"), "{told}");
    assert!(!path.exists(), "a bundle has all of it or is not made");

    let told = bundle.import(old.home(), Path::new("bundle")).unwrap_err();
    assert_eq!(told.number(), Some(15232), "it may be another one: {told}");
    assert_eq!(std::fs::read(&file).unwrap(), b"damaged");
    old.drop_certificate("pellucid").unwrap();
    bundle.import(old.home(), Path::new("bundle")).unwrap();
    old.certificate("pellucid").unwrap();
}
