//! At each step one way to the service master key opens, and the one before is removed last.

use std::cell::RefCell;

use super::*;
use crate::Keyring;

struct Tool {
    /// What it hands out; the key that it got, if nothing.
    other: Option<Secret32>,
    got: RefCell<Option<Secret32>>,
}

impl CredentialTool for Tool {
    fn seal(&self, key: &Secret32, to: &Path) -> Result<()> {
        *self.got.borrow_mut() = Some(key.clone());
        std::fs::write(to, "sealed").map_err(|error| Error::io(Subject::File(to.to_owned()), error))
    }

    fn open(&self, _: &Path) -> Result<Secret32> {
        Ok(self.other.clone().or(self.got.borrow().clone()).unwrap())
    }
}

fn made() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let home = place.path().join("home");
    Keyring::open_or_create(&home).unwrap();
    (place, home)
}

#[test]
fn a_passphrase_takes_the_place_of_the_file_in_clear() {
    let (_place, home) = made();
    let key = provider::find(&home).unwrap().unwrap().0;
    let passphrase = Passphrase::new(b"correct horse");
    let change = Change::begin(&home).unwrap();
    let short = change.bind_to_passphrase(&Passphrase::new(b"x")).unwrap_err();
    assert_eq!(short.number(), Some(33062));
    assert!(clear_path(&home).exists() && !bound::path(&home).exists());
    let sealed = change.bind_to_passphrase(&passphrase).unwrap();
    assert!(!clear_path(&home).exists());
    assert_eq!(bound::prove(&home, &passphrase).unwrap(), Some(key.clone()));
    let content = std::fs::read(&sealed).unwrap();
    assert!(!content.windows(32).any(|window| window == key.expose()));
    // Without the passphrase nothing opens, and no key is made in its place.
    assert!(matches!(Keyring::open(&home), Err(Error::MissingKey { .. })));
    assert!(matches!(Keyring::open_or_create(&home), Err(Error::MissingKey { .. })));
    assert!(!clear_path(&home).exists());
}

#[test]
fn a_file_in_clear_that_an_interruption_left_still_opens_and_binding_again_removes_it() {
    let (_place, home) = made();
    let clear = std::fs::read(clear_path(&home)).unwrap();
    let passphrase = Passphrase::new(b"correct horse");
    Change::begin(&home).unwrap().bind_to_passphrase(&passphrase).unwrap();
    let temporary = write_temporary(&clear_path(&home), &clear, None).unwrap();
    assert!(link_new(&temporary, &clear_path(&home)).unwrap());
    Keyring::open(&home).unwrap();
    Change::begin(&home).unwrap().bind_to_passphrase(&passphrase).unwrap();
    assert!(!clear_path(&home).exists());
    // And the other way round.
    let temporary = write_temporary(&clear_path(&home), &clear, None).unwrap();
    link_new(&temporary, &clear_path(&home)).unwrap();
    Change::begin(&home).unwrap().bind_here().unwrap();
    assert!(clear_path(&home).exists() && !bound::path(&home).exists());
    Keyring::open(&home).unwrap();
}

#[test]
fn a_credential_that_does_not_open_leaves_the_key_where_it_is() {
    let (place, home) = made();
    let file = place.path().join("credential");
    let tool = |other| Tool { other, got: RefCell::default() };
    let change = Change::begin(&home).unwrap();
    let wrong = tool(Some(Secret32::random().unwrap()));
    assert!(change.bind_to_credential(&file, &wrong).is_err());
    Keyring::open(&home).unwrap();
    // A file that is there is not written over.
    let told = change.bind_to_credential(&file, &tool(None)).unwrap_err();
    assert_eq!(told.number(), Some(15240));
    std::fs::remove_file(&file).unwrap();
    change.bind_to_credential(&file, &tool(None)).unwrap();
    assert!(!clear_path(&home).exists());
    assert!(matches!(Keyring::open(&home), Err(Error::MissingKey { .. })));
}
