//! Goal: a service master key may come from what holds keys outside of the disk, and nothing of it is on the disk then.
//!
//! Method: a provider in the manner of a token: its own key never leaves it, it unwraps the service master key when it is
//! in its slot, and says who must act when it is not. One test, because a process has one provider.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use pellucid::certificate::CertificateRequest;
use pellucid::error::{Error, Result, Subject};
use pellucid::secret::Secret32;
use pellucid_keyring::{use_provider, Change, Keyring, ServiceKeyProvider, Source};

static IN_ITS_SLOT: AtomicBool = AtomicBool::new(true);

#[derive(Debug)]
struct Token {
    own_key: [u8; 32],
    wrapped: [u8; 32],
}

impl ServiceKeyProvider for Token {
    fn name(&self) -> String {
        "token 7".to_owned()
    }

    fn service_key(&self, home: &Path) -> Result<Option<Secret32>> {
        if !home.ends_with("with-token") {
            return Ok(None);
        }
        if !IN_ITS_SLOT.load(Ordering::Relaxed) {
            let cause = "token 7 is not in its slot";
            return Err(Error::missing_key(Subject::Key("service master key"), cause));
        }
        let mut key = self.own_key;
        key.iter_mut().zip(self.wrapped).for_each(|(byte, wrapped)| *byte ^= wrapped);
        Ok(Some(Secret32::new(&mut key)))
    }
}

#[test]
fn a_token_holds_the_service_master_key() {
    let place = tempfile::tempdir().unwrap();
    let home = place.path().join("with-token");
    use_provider(Box::new(Token {
        own_key: [0x5a; 32],
        wrapped: *b"wrapped wrapped wrapped wrapped!",
    }))
    .unwrap();
    let again = use_provider(Box::new(Token { own_key: [0; 32], wrapped: [0; 32] }));
    assert!(matches!(again, Err(Error::Misuse { .. })));

    let (keyring, made) = Keyring::open_or_create(&home).unwrap();
    assert_eq!(made.service_master_key, None);
    assert!(!home.join("service.key").exists());
    keyring.create_certificate("c", &CertificateRequest::new("test", 10)).unwrap();
    let found = Keyring::describe(&home).unwrap();
    assert_eq!(found.service_key, Some(Source::Provider("token 7".to_owned())));

    IN_ITS_SLOT.store(false, Ordering::Relaxed);
    match Keyring::open(&home) {
        Err(Error::MissingKey { cause, .. }) => assert_eq!(cause, "token 7 is not in its slot"),
        other => panic!("{other:?}"),
    }
    // And nothing falls back to a key of its own.
    assert!(Keyring::open_or_create(&home).is_err());
    assert!(!home.join("service.key").exists());

    IN_ITS_SLOT.store(true, Ordering::Relaxed);
    assert!(Keyring::open(&home).unwrap().certificate("c").is_ok());
    match Change::begin(&home).unwrap().replace_service_key(None, false) {
        Err(Error::Misuse { cause, .. }) => assert!(cause.contains("token 7"), "{cause}"),
        other => panic!("{other:?}"),
    }
    // An instance that it has no key for is as ever.
    let (_, made) = Keyring::open_or_create(&place.path().join("without")).unwrap();
    assert!(made.service_master_key.is_some());
}
