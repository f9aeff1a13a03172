//! Instances in bundles, from one home to another.

use super::*;
use pellucid::certificate::{Certificate, CertificateRequest, PublicCertificate};
use pellucid::protector::{Argon2Cost, Passphrase};

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
    assert_eq!(came.private_key().unwrap(), certificate.private_key().unwrap());
    assert!(came.backed_up().is_some());
    assert_eq!(new.recall_database(&[9; 16]).unwrap(), Some(memory));
    assert_eq!(Keyring::open_by_password(&home, &bench.1).unwrap().master_key, old.master_key);
    // Once more, and as after an interruption.
    let again = bundle.import(&home, Path::new("bundle")).unwrap();
    assert!(again.iter().all(|one| one.fate == Fate::Same), "{again:?}");
    std::fs::remove_file(home.join("keyring/certificates/pellucid")).unwrap();
    std::fs::remove_file(home.join("keyring/passwords/1")).unwrap();
    bundle.import(&home, Path::new("bundle")).unwrap();
    assert_eq!(
        new.certificate("pellucid").unwrap().private_key().unwrap(),
        certificate.private_key().unwrap()
    );
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
    new.add_certificate(crate::Stored::Public(public)).unwrap();
    let renamed =
        Certificate::from_parts("mine", other.public().der(), other.private_key().unwrap(), None);
    new.add_certificate(crate::Stored::Whole(renamed.unwrap())).unwrap();
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
    assert_eq!(whole.private_key().unwrap(), shared.private_key().unwrap());
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

#[test]
fn a_bundle_is_no_backup_of_what_opens_it() {
    let bench = Bench::new();
    let (old, _) = Keyring::open_or_create(&bench.home("old")).unwrap();
    let make = |name| old.create_certificate(name, &CertificateRequest::new(name, 9)).unwrap();
    let (own, _other) = (make("own"), make("other"));
    let backed_up = || ["own", "other"].map(|name| old.certificate(name).unwrap().backed_up());
    old.export_instance(&bench.home("1"), &Wrapping::Certificate(&own)).unwrap();
    // Its public half alone is no better: the private key is here.
    old.export_instance(&bench.home("2"), &Wrapping::Recovery(own.public())).unwrap();
    assert_eq!(backed_up(), [None; 2]);
    // What came out says the same.
    struct Own(Certificate);
    impl KeySource for Own {
        fn certificate(&self, _: &[u8; 32]) -> Result<Option<Certificate>> {
            Ok(Some(self.0.clone()))
        }
    }
    let bundle = Bundle::read(&bench.home("1"), &Own(own.clone())).unwrap();
    bundle.import(&bench.home("new"), Path::new("1")).unwrap();
    let new = Keyring::open(&bench.home("new")).unwrap();
    assert!(new.certificates().unwrap().iter().all(|stored| stored.backed_up().is_none()));

    // Once its key is elsewhere, what it opens is a backup, but for itself.
    let (pem, key) = (bench.home("pem"), bench.home("key"));
    old.export_certificate("own", &pem, Some((&key, &bench.1)), &crate::certificates::ANY_TEXT)
        .unwrap();
    let before = backed_up()[0];
    let own = old.certificate("own").unwrap();
    old.export_instance(&bench.home("3"), &Wrapping::Certificate(&own)).unwrap();
    assert!(before.is_some() && backed_up()[0] == before && backed_up()[1].is_some());

    // A certificate of another instance.
    let (third, _) = Keyring::open_or_create(&bench.home("third")).unwrap();
    third.create_certificate("mine", &CertificateRequest::new("mine", 9)).unwrap();
    let public = PublicCertificate::from_der("own", own.public().der()).unwrap();
    third.add_certificate(crate::Stored::Public(public.clone())).unwrap();
    third.export_instance(&bench.home("4"), &Wrapping::Recovery(&public)).unwrap();
    assert!(third.certificate("mine").unwrap().backed_up().is_some());
}

#[test]
fn a_database_that_lies_here_stays_what_this_instance_knows() {
    let bench = Bench::new();
    let (old, _) = Keyring::open_or_create(&bench.home("old")).unwrap();
    let (new, _) = Keyring::open_or_create(&bench.home("new")).unwrap();
    std::fs::write(bench.home("here.db"), "").unwrap();
    let memory = |sequence, print, path: PathBuf| DatabaseMemory {
        sequence,
        sealed: true,
        certificates: vec![[print; 32]],
        path,
    };
    let there = memory(9, 2, "/srv/there.db".into());
    old.remember_database(&[1; 16], &there).unwrap();
    old.remember_database(&[2; 16], &there).unwrap();
    // A copy, with a header and certificates of its own; and one that is gone.
    let here = memory(5, 1, bench.home("here.db"));
    new.remember_database(&[1; 16], &DatabaseMemory { sealed: false, ..here.clone() }).unwrap();
    new.remember_database(&[2; 16], &memory(5, 1, bench.home("gone.db"))).unwrap();
    let bundle = bench.export(&old, "bundle");
    let plan = bundle.import(new.home(), Path::new("bundle")).unwrap();
    assert_eq!(fates(&plan)[1..], [("database", Fate::New), ("database", Fate::New)]);
    let both = DatabaseMemory { sealed: false, certificates: vec![[1; 32], [2; 32]], ..here };
    assert_eq!(new.recall_database(&[1; 16]).unwrap(), Some(both));
    assert_eq!(new.databases_under(&[1; 32]).unwrap(), [bench.home("here.db")]);
    assert_eq!(new.recall_database(&[2; 16]).unwrap(), Some(there));
    let again = bundle.import(new.home(), Path::new("bundle")).unwrap();
    assert_eq!(fates(&again)[1..], [("database", Fate::Same), ("database", Fate::Same)]);
}

#[test]
fn of_a_database_at_the_same_path_the_later_header_counts() {
    let bench = Bench::new();
    let (old, _) = Keyring::open_or_create(&bench.home("old")).unwrap();
    let (new, _) = Keyring::open_or_create(&bench.home("new")).unwrap();
    std::fs::write(bench.home("here.db"), "").unwrap();
    let memory = |sequence, sealed| DatabaseMemory {
        sequence,
        sealed,
        certificates: Vec::new(),
        path: bench.home("here.db"),
    };
    for (id, own, theirs) in
        [(1, memory(5, false), memory(9, true)), (2, memory(9, true), memory(5, false))]
    {
        new.remember_database(&[id; 16], &own).unwrap();
        old.remember_database(&[id; 16], &theirs).unwrap();
    }
    let bundle = bench.export(&old, "bundle");
    let plan = bundle.import(new.home(), Path::new("bundle")).unwrap();
    assert_eq!(fates(&plan)[1..], [("database", Fate::New), ("database", Fate::Same)]);
    for id in [1, 2] {
        assert_eq!(new.recall_database(&[id; 16]).unwrap(), Some(memory(9, true)), "{id}");
    }
    let again = bundle.import(new.home(), Path::new("bundle")).unwrap();
    assert_eq!(fates(&again)[1..], [("database", Fate::Same), ("database", Fate::Same)]);
}

#[test]
fn a_keyring_that_was_made_meanwhile_is_kept() {
    let bench = Bench::new();
    let (old, _) = Keyring::open_or_create(&bench.home("old")).unwrap();
    let bundle = bench.export(&old, "bundle");
    // Between the look and the key: by somebody who opens a database and takes no lock.
    let (new, _) = Keyring::open_or_create(&bench.home("new")).unwrap();
    let told = bundle.found(new.home()).unwrap_err();
    assert!(told.to_string().contains("import the bundle again"), "{told}");
    assert_eq!(Keyring::open(new.home()).unwrap().master_key, new.master_key);
}

#[test]
fn a_private_key_goes_to_its_public_half_whatever_that_is_called() {
    let bench = Bench::new();
    let (old, _) = Keyring::open_or_create(&bench.home("old")).unwrap();
    let (new, _) = Keyring::open_or_create(&bench.home("new")).unwrap();
    let theirs = old.create_certificate("app", &CertificateRequest::new("app", 9)).unwrap();
    let public = PublicCertificate::from_der("partner", theirs.public().der()).unwrap();
    new.add_certificate(crate::Stored::Public(public)).unwrap();
    let bundle = bench.export(&old, "bundle");
    let plan = bundle.import(new.home(), Path::new("bundle")).unwrap();
    assert_eq!(plan[1].fate, Fate::KeyFor("partner".to_owned()));
    assert_eq!(
        new.certificate("partner").unwrap().private_key().unwrap(),
        theirs.private_key().unwrap()
    );
    assert!(new.stored_certificate("app").is_err(), "one name for one certificate");
    let log = super::super::read_events(new.home()).unwrap();
    assert!(log.iter().any(|line| line.contains("imported") && line.contains("partner")));
    let again = bundle.import(new.home(), Path::new("bundle")).unwrap();
    assert_eq!(again[1].fate, Fate::SameAs("partner".to_owned()));
}

#[test]
fn whatever_is_sealed_under_a_lost_key_keeps_a_bundle_out() {
    let bench = Bench::new();
    let (old, _) = Keyring::open_or_create(&bench.home("old")).unwrap();
    let bundle = bench.export(&old, "bundle");
    let lose = |name: &str, fill: &dyn Fn(&Keyring), lost: &[&str]| {
        let home = bench.home(name);
        let (keyring, _) = Keyring::open_or_create(&home).unwrap();
        fill(&keyring);
        for lost in lost {
            let path = home.join("keyring").join(lost);
            match path.is_dir() {
                true => std::fs::remove_dir(path).unwrap(),
                false => std::fs::remove_file(path).unwrap(),
            }
        }
        assert!(bundle.plan(&home).is_err(), "{name}");
        assert!(bundle.import(&home, Path::new("bundle")).is_err(), "{name}");
        assert!(!home.join("keyring/master.key").exists(), "{name}: another key was made");
    };
    let database = |keyring: &Keyring| {
        keyring.remember_database(&[1; 16], &DatabaseMemory::default()).unwrap();
    };
    lose("a database", &database, &["master.key", "certificates"]);
    let policy = |keyring: &Keyring| {
        let limit = Some(crate::policy::Limit::Days(9));
        keyring.set_policy(crate::policy::Policy::RekeyAfter, limit).unwrap();
    };
    lose("settings", &policy, &["master.key", "certificates", "databases"]);
    let history = |keyring: &Keyring| drop(keyring.ensure_history_key().unwrap());
    lose("history", &history, &["master.key", "databases"]);

    // An exchange of the key that was interrupted: it is finished, and nothing lost.
    let home = bench.home("exchange");
    let (own, _) = Keyring::open_or_create(&home).unwrap();
    let [key, next] = ["master.key", "master.next"].map(|name| home.join("keyring").join(name));
    std::fs::rename(&key, &next).unwrap();
    assert!(bundle.plan(&home).is_err(), "it is not empty");
    let service = home.join("service.key");
    std::fs::rename(&service, bench.home("aside")).unwrap();
    assert!(Keyring::open_or_create(&home).is_err() && !service.exists());
    std::fs::rename(bench.home("aside"), &service).unwrap();
    let plan = bundle.import(&home, Path::new("bundle")).unwrap();
    assert_eq!(fates(&plan), [("database master key", Fate::Kept)]);
    assert_eq!(Keyring::open(&home).unwrap().master_key, own.master_key);
}

#[test]
fn a_path_out_of_a_bundle_does_nothing_to_a_terminal() {
    let bench = Bench::new();
    let (old, _) = Keyring::open_or_create(&bench.home("old")).unwrap();
    let memory = DatabaseMemory { path: "/srv/\x1b[2Ja.db".into(), ..Default::default() };
    old.remember_database(&[1; 16], &memory).unwrap();
    let bundle = bench.export(&old, "bundle");
    let plan = bundle.plan(&bench.home("new")).unwrap();
    assert_eq!(plan[1].name, r"/srv/\x1b[2Ja.db");
    bundle.import(&bench.home("new"), Path::new("bundle")).unwrap();
    let new = Keyring::open(&bench.home("new")).unwrap();
    assert_eq!(new.recall_database(&[1; 16]).unwrap(), Some(memory), "it is where it is");
}

/// Backups of `msdb` and `master` are under it, where no certificate is named.
#[test]
fn the_key_of_the_history_comes_along() {
    let bench = Bench::new();
    let (old, _) = Keyring::open_or_create(&bench.home("old")).unwrap();
    let key = old.ensure_history_key().unwrap().identity().to_vec();
    let bundle = bench.export(&old, "bundle");
    let (new, _) = Keyring::open_or_create(&bench.home("new")).unwrap();
    let plan = bundle.import(new.home(), Path::new("bundle")).unwrap();
    assert_eq!(fates(&plan)[1], ("key of the history", Fate::New));
    assert_eq!(new.history_key().unwrap().unwrap().identity().to_vec(), key);
    assert_eq!(fates(&bundle.plan(new.home()).unwrap())[1].1, Fate::Same);
    // What is under its own key stays openable.
    let (other, _) = Keyring::open_or_create(&bench.home("other")).unwrap();
    let own = other.ensure_history_key().unwrap().identity().to_vec();
    let plan = bundle.import(other.home(), Path::new("bundle")).unwrap();
    assert_eq!(fates(&plan)[1].1, Fate::Kept);
    assert_eq!(other.history_key().unwrap().unwrap().identity().to_vec(), own);
    bundle.import(&bench.home("empty"), Path::new("bundle")).unwrap();
    let empty = Keyring::open(&bench.home("empty")).unwrap();
    assert_eq!(empty.history_key().unwrap().unwrap().identity().to_vec(), key);
}

/// Whoever has a certificate's public half can make a bundle, and knows the keys in it.
#[test]
fn a_key_of_the_history_that_anybody_can_have_made_is_left_out() {
    let bench = Bench::new();
    let (old, _) = Keyring::open_or_create(&bench.home("old")).unwrap();
    old.ensure_history_key().unwrap();
    let (new, _) = Keyring::open_or_create(&bench.home("new")).unwrap();
    let inbox = new.create_certificate("inbox", &CertificateRequest::new("inbox", 9)).unwrap();
    let public = PublicCertificate::from_der("inbox", inbox.public().der()).unwrap();
    let path = bench.home("for-new");
    old.export_instance(&path, &Wrapping::Recovery(&public)).unwrap();
    let bundle = Bundle::read(&path, &Inbox(inbox)).unwrap();
    assert!(!bundle.proves_origin());
    let plan = bundle.import(new.home(), Path::new("bundle")).unwrap();
    assert_eq!(fates(&plan)[1], ("key of the history", Fate::Kept));
    assert!(new.history_key().unwrap().is_none());
}

struct Inbox(Certificate);

impl KeySource for Inbox {
    fn certificate(&self, thumbprint: &[u8; 32]) -> Result<Option<Certificate>> {
        Ok((self.0.public().thumbprint() == thumbprint).then(|| self.0.clone()))
    }
    fn allow_recovery(&self) -> bool {
        true
    }
}
