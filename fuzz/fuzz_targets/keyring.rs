//! A sealed file of the keyring: the database master key's, in a directory in memory.
#![no_main]

use std::os::unix::fs::PermissionsExt;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use pellucid_keyring::Keyring;
use tempfile::TempDir;

fn home() -> Option<&'static TempDir> {
    static HOME: OnceLock<Option<TempDir>> = OnceLock::new();
    HOME.get_or_init(|| {
        let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).ok()?;
        let service: [u8; 32] = std::array::from_fn(|at| 96 + at as u8);
        let path = home.path().join("service.key");
        std::fs::write(&path, service).ok()?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).ok()?;
        std::fs::create_dir_all(home.path().join("keyring/certificates")).ok()?;
        Some(home)
    })
    .as_ref()
}

fuzz_target!(|bytes: &[u8]| {
    let Some(home) = home() else { return };
    if std::fs::write(home.path().join("keyring/master.key"), bytes).is_ok() {
        let _ = Keyring::open(home.path());
    }
});
