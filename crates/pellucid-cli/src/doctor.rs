//! `doctor`: looks at this machine, its keys and the databases they know, and says what to do.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use pellucid::certificate::hex;
use pellucid::keyring::{DatabaseMemory, Keyring, Stored};
use pellucid::protector::Protector;
use pellucid::Error;
use pellucid_sqlite::inspect::{inspect, Kind, SealedHeader};

use crate::exit;
use crate::output::{self, date, now, Failure, Output};

/// What `doctor` takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid doctor\n  pellucid --json doctor")]
pub struct DoctorArgs {}

const DAY_SECONDS: i64 = 86_400;
/// A certificate is called out so many days before it expires.
pub const EXPIRY_DAYS: i64 = 30;
/// A backup older than this may be one that nobody finds again.
const BACKUP_DAYS: i64 = 90;

/// One look.
struct Finding {
    what: &'static str,
    told: String,
    /// What to do, where something needs attention.
    todo: Option<String>,
}

impl Finding {
    fn good(what: &'static str, told: impl Into<String>) -> Self {
        Self { what, told: told.into(), todo: None }
    }

    fn bad(what: &'static str, told: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { what, told: told.into(), todo: Some(todo.into()) }
    }
}

/// Looks at everything; exit 4 if something needs attention.
pub fn run(output: &Output) -> Result<ExitCode, Failure> {
    let mut findings = vec![
        Finding::good(
            "version",
            format!(
                "pellucid {}, SQLite {} inside",
                env!("CARGO_PKG_VERSION"),
                pellucid_bundled::version()
            ),
        ),
        processor(),
        extension(),
    ];
    match Keyring::locate() {
        Ok(home) => keyring(&home, &mut findings),
        Err(error) => {
            findings.push(Finding::bad("keyring", error.to_string(), "set PELLUCID_HOME"))
        }
    }
    let mut shown = output::list();
    for finding in &findings {
        match &finding.todo {
            None => shown.add_row(["ok", finding.what, &finding.told]),
            Some(todo) => {
                let told = format!("{}\n{todo}", finding.told);
                shown.add_row(["!!", finding.what, &told])
            }
        };
    }
    output::pad(&mut shown);
    output.line(shown);
    output.facts(&serde_json::json!({
        "findings": findings.iter().map(|finding| serde_json::json!({
            "what": finding.what, "told": finding.told, "todo": finding.todo,
        })).collect::<Vec<_>>(),
    }));
    let attention = findings.iter().any(|finding| finding.todo.is_some());
    Ok(if attention { ExitCode::from(exit::ATTENTION) } else { ExitCode::SUCCESS })
}

fn processor() -> Finding {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = flags.lines().find(|line| line.starts_with("flags") || line.starts_with("Features"));
    let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
    let known = ["aes", "pclmulqdq", "vaes", "vpclmulqdq", "avx512f", "pmull"];
    let there: Vec<&str> = known.into_iter().filter(|flag| words.contains(flag)).collect();
    match there.contains(&"aes") {
        true => Finding::good("processor", there.join(" ")),
        false => Finding::bad(
            "processor",
            "no AES instructions",
            "encryption works and is many times slower; use a processor, or a kind of virtual machine, that has them",
        ),
    }
}

fn extension() -> Finding {
    match crate::extension::locate() {
        Ok(path) => Finding::good("extension", path.display().to_string()),
        Err(missing) => Finding::bad("extension", missing.to_string(), missing.hint()),
    }
}

fn keyring(home: &Path, findings: &mut Vec<Finding>) {
    let shown = home.display();
    if !Keyring::is_at(home) {
        if Keyring::configured().is_some_and(|configured| configured == home) {
            findings.push(Finding::bad(
                "keyring",
                format!("none in `{shown}`, which `{}` names", Keyring::config_path().display()),
                "bring the directory back, or make a new one with `pellucid init --system`",
            ));
            return;
        }
        findings.push(Finding::good(
            "keyring",
            format!("none yet; `{shown}` will be made on first use"),
        ));
        return;
    }
    let opened = Keyring::open(home).and_then(|keyring| {
        let certificates = keyring.certificates()?;
        Ok((keyring, certificates))
    });
    let (keyring, certificates) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            findings.push(Finding::bad("keyring", error.to_string(), closed(error)));
            return;
        }
    };
    findings
        .push(Finding::good("keyring", format!("{shown}, certificates: {}", certificates.len())));
    for stored in &certificates {
        certificate(stored, findings);
    }
    match keyring.databases() {
        Ok(databases) => {
            for memory in databases {
                database(&memory, &certificates, findings);
            }
        }
        Err(error) => findings.push(Finding::bad(
            "databases",
            error.to_string(),
            "restore the directory of the instance from a backup",
        )),
    }
}

/// What to do about a keyring that does not open.
fn closed(error: Error) -> String {
    match Failure::from(error) {
        Failure { kind: "io", hint: Some(hint), .. } => hint,
        _ => "`pellucid key status` shows what is there; `pellucid key restore` puts a key back"
            .to_owned(),
    }
}

fn certificate(stored: &Stored, findings: &mut Vec<Finding>) {
    let public = stored.public();
    let (name, now) = (public.name(), now());
    let export = format!(
        "pellucid cert export {name} --cert-file {name}.pem --key-file {name}.key --password-file -"
    );
    let mut bad =
        |told: String, todo: String| findings.push(Finding::bad("certificate", told, todo));
    if stored.has_private_key() {
        match stored.backed_up().map(|at| at as i64) {
            None => bad(
                format!("`{name}` has NO backup: if this keyring is lost, so are its databases"),
                export,
            ),
            Some(at) if now - at > BACKUP_DAYS * DAY_SECONDS => {
                bad(
                    format!("`{name}` was last backed up on {}", date(at)),
                    format!("see that the backup is still found, or: {export}"),
                );
            }
            Some(_) => {}
        }
    }
    let (from, to) = public.validity();
    let another = "it still opens databases; make another for new ones with `pellucid cert create`";
    if to < now {
        bad(format!("`{name}` expired on {}", date(to)), another.to_owned());
    } else if to - now < EXPIRY_DAYS * DAY_SECONDS {
        bad(format!("`{name}` expires on {}", date(to)), another.to_owned());
    }
    if from > now {
        bad(
            format!("`{name}` is valid only from {}", date(from)),
            "is the clock right?".to_owned(),
        );
    }
}

/// Whether a remembered database is there and the keyring still opens it.
fn database(memory: &DatabaseMemory, certificates: &[Stored], findings: &mut Vec<Finding>) {
    if memory.path.as_os_str().is_empty() || !memory.path.exists() {
        return;
    }
    let shown = memory.path.display();
    let finding = match inspect(&memory.path).map(|found| found.kind) {
        Ok(Kind::Sealed(sealed)) => {
            let Some(gone) = certificate_gone(&sealed, certificates) else { return };
            Finding::bad(
                "database",
                format!("`{shown}`: {gone}"),
                "import it from its backup with `pellucid cert import`",
            )
        }
        Ok(Kind::Unfinished) => Finding::bad(
            "database",
            format!("`{shown}`: an encryption or decryption was interrupted"),
            "`pellucid check` finishes it",
        ),
        Ok(Kind::Damaged(error)) => {
            Finding::bad("database", format!("`{shown}`: {error}"), "restore a backup")
        }
        Ok(Kind::Plain) => Finding::bad(
            "database",
            format!("`{shown}` is PLAIN, and the keyring knows it as encrypted"),
            "find out who put it there; `pellucid encrypt` encrypts it",
        ),
        _ => return,
    };
    findings.push(finding);
}

/// Says so, if certificates alone open the database and none of them is in the keyring.
pub fn certificate_gone(sealed: &SealedHeader, certificates: &[Stored]) -> Option<String> {
    let mut gone = None;
    for bytes in &sealed.header.protectors {
        // A passphrase or key file is not the keyring's to judge.
        let Ok((Protector::Certificate(protector), _)) = Protector::decode(bytes) else {
            return None;
        };
        let has = |stored: &Stored| {
            stored.has_private_key() && stored.public().thumbprint() == protector.thumbprint()
        };
        if certificates.iter().any(has) {
            return None;
        }
        gone = Some(format!(
            "its certificate `{}` is gone (SHA-256 thumbprint {})",
            protector.name(),
            hex(protector.thumbprint())
        ));
    }
    gone
}
