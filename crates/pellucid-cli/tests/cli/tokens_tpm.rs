//! Goal: a TPM holds the key that opens the service master key, on this machine and in its state alone.
//!
//! Method: swtpm, a TPM 2.0 in software, and the plugin as it is shipped: bound with and without registers, the registers
//! extended, the TPM exchanged for another one, and gone.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::provider_keys::matrix;
use crate::support::token::{pellucid, plugin};
use crate::support::{said, Place};

/// A TPM whose state is a directory of `machine`.
struct Tpm<'a> {
    machine: &'a Place,
    process: Child,
}

impl Drop for Tpm<'_> {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(self.machine.path("tpm.socket"));
    }
}

impl<'a> Tpm<'a> {
    fn start(place: &Place, machine: &'a Place, state: &str) -> Option<Self> {
        let missing = ["/usr/bin/swtpm", "/usr/bin/tpm2_unseal"];
        let missing = missing.into_iter().find(|tool| !Path::new(tool).exists());
        if missing.is_some() || !rustix::process::geteuid().is_root() {
            assert!(std::env::var_os("CI").is_none(), "{missing:?}: .ci/deps installs it");
            println!("SKIP: no {missing:?}, or not root: nothing is tested");
            return None;
        }
        std::fs::create_dir_all(machine.path(state)).unwrap();
        plugin(place, "tpm");
        let socket = machine.path("tpm.socket");
        let conf = format!("tcti = swtpm:path={}\n", socket.display());
        std::fs::write(place.path("plugins/tpm.conf"), conf).unwrap();
        let mut command = Command::new("/usr/bin/swtpm");
        command.args(["socket", "--tpm2", "--flags", "not-need-init,startup-clear"]);
        command.arg("--tpmstate").arg(format!("dir={}", machine.path(state).display()));
        command.arg("--server").arg(format!("type=unixio,path={}", socket.display()));
        command.arg("--ctrl").arg(format!("type=unixio,path={}.ctrl", socket.display()));
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let tpm = Self { machine, process };
        let began = Instant::now();
        while !socket.exists() {
            assert!(began.elapsed() < Duration::from_secs(30), "swtpm does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(tpm)
    }

    fn extend(&self, register: u8) {
        let mut command = Command::new("/usr/bin/tpm2_pcrextend");
        let socket = self.machine.path("tpm.socket");
        command.env("TPM2TOOLS_TCTI", format!("swtpm:path={}", socket.display()));
        said(command.arg(format!("{register}:sha256={:064}", 1))).succeeded();
    }
}

#[test]
fn a_tpm_opens_on_its_machine_and_in_its_state() {
    let (place, machine) = (Place::new(), Place::new());
    let Some(tpm) = Tpm::start(&place, &machine, "first") else { return };
    place.secret("password", b"a Pa55word of some length");
    place.sealed("app.db", &[]);
    let bind = |key: &str| pellucid(&place, &["key", "bind", "--plugin", "tpm", "--key", key]);
    let check = || pellucid(&place, &["check", "app.db"]);
    let refused = |part: &str| {
        let told = check();
        assert!(told.code != 0 && told.stderr.contains(part), "{part}: {told:?}");
    };
    let key = std::fs::read(place.path("keys/service.key")).unwrap();
    for (wrong, part) in [("tpm:pcrs=99", "registers from 0 to 23"), ("pkcs11:x", "tpm:pcrs=")] {
        let told = bind(wrong);
        assert!(told.code != 0 && told.stderr.contains(part), "{told:?}");
        assert!(place.path("keys/service.key").exists());
    }
    bind("tpm:").succeeded();
    for (path, _) in place.snapshot() {
        let bytes = std::fs::read(&path).unwrap_or_default();
        assert!(!bytes.windows(32).any(|part| part == key), "{}", path.display());
    }
    check().succeeded();
    let told = pellucid(&place, &["plugin", "test", "tpm", "--key", "tpm:"]);
    assert!(told.code == 0 && told.stdout.contains("7 passed, 0 failed"), "{told:?}");
    tpm.extend(7);
    check().succeeded();
    pellucid(&place, &["cert", "create", "of-tpm"]).succeeded();
    matrix(&place, "of-tpm");
    // Under registers: they have to be as they were.
    bind("tpm:pcrs=7+11").succeeded();
    check().succeeded();
    tpm.extend(8);
    check().succeeded();
    let backup = ["key", "backup", "service", "--file", "smk", "--password-file", "password"];
    pellucid(&place, &backup).succeeded();
    tpm.extend(11);
    refused("the registers sha256:7,11 are others");
    let restore = ["key", "restore", "service", "--file", "smk", "--password-file", "password"];
    pellucid(&place, &restore).succeeded();
    bind("tpm:pcrs=7+11").succeeded();
    check().succeeded();
    bind("tpm:").succeeded();
    // Another machine's, and none.
    drop(tpm);
    refused("no TPM answers");
    let other = Tpm::start(&place, &machine, "second").unwrap();
    refused("another one sealed it");
    drop(other);
    let _first = Tpm::start(&place, &machine, "first").unwrap();
    check().succeeded();
    // Nothing is left of the files that the tools want.
    let left = std::fs::read_dir("/tmp")
        .unwrap()
        .filter_map(|one| one.ok()?.file_name().into_string().ok());
    assert_eq!(
        left.filter(|name| name.starts_with("pellucid-tpm-")).collect::<Vec<_>>(),
        Vec::<String>::new()
    );
}
