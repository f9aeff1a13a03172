//! `doctor`: looks at this machine, its keys and the databases they know, and says what to do.

mod own_files;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use nix::unistd::{Gid, Group};
use pellucid::header::Header;
use pellucid::shown::Shown;
use pellucid::Error;
use pellucid_backup::history::History;
use pellucid_backup::job::leftovers;
use pellucid_engine::index_place::is_in_memory;
use pellucid_engine::inspect::{inspect, not_a_database, Inspection, Kind};
use pellucid_engine::page_source::has_dead_pages_in_clear;
use pellucid_files::machine_memory::{boot_id, MachineMemory, PLACE};
use pellucid_files::paths::{beside, directory_of};
use pellucid_keyring::broker::Broker;
use pellucid_keyring::Keyring;
use pellucid_vfs::lost_log;

use crate::archived::Archived;
use crate::container::{begin, unreadable};
use crate::exit;
use crate::key_place;
use crate::known::{certificate_gone, Known};
use crate::output::{self, bytes, now, word, Failure, Id, Output};
use crate::pinned;
use crate::policy::Told;
use crate::recovery;
use crate::seems::seems;
use crate::standby::Followed;
use crate::status::left_over;

/// What `doctor` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid doctor\n  pellucid --json doctor\n  pellucid doctor found.db"
)]
pub struct DoctorArgs {
    /// Files to name, of whatever program, instead of the machine
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// One look.
struct Finding {
    what: &'static str,
    told: String,
    /// What to do, where something needs attention.
    todo: Option<String>,
    /// It could be better, and needs no attention.
    is_advice: bool,
    /// A word for what a file seems to be.
    seems: Option<&'static str>,
}

impl Finding {
    fn good(what: &'static str, told: impl Into<String>) -> Self {
        Self { what, told: told.into(), todo: None, is_advice: false, seems: None }
    }

    fn advice(what: &'static str, told: impl Into<String>) -> Self {
        Self { is_advice: true, ..Self::good(what, told) }
    }

    fn bad(what: &'static str, told: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { todo: Some(todo.into()), ..Self::good(what, told) }
    }
}

/// Looks at everything, or at the files that are named; exit 4 if something needs attention.
pub fn run(args: &DoctorArgs, output: &Output) -> Result<ExitCode, Failure> {
    if args.files.is_empty() {
        return Ok(tell(&machine(), output));
    }
    let findings: Result<Vec<_>, _> = args.files.iter().map(|path| file(path)).collect();
    Ok(tell(&findings?, output))
}

/// What a file is, or seems to be.
fn file(path: &Path) -> Result<Finding, Failure> {
    let about = |error| Failure::from(error).about(path);
    let seems = seems(path);
    let kind = inspect(path).map_err(about)?.kind;
    let name = path.shown();
    let advice =
        |told: &str, todo: &str| Finding::advice("file", format!("`{name}` {told}\n{todo}"));
    Ok(match (kind, seems) {
        (Kind::Plain | Kind::NotADatabase, Some(seems)) => {
            Finding { seems: Some(seems.kind), ..advice(&seems.told, &seems.todo) }
        }
        (Kind::Plain, None) => advice(
            "is a plain SQLite database",
            &format!("`pellucid encrypt {}` encrypts it", word(path)),
        ),
        (Kind::Sealed(sealed), _) => Finding::good(
            "file",
            format!(
                "`{name}` is a database that pellucid encrypted, of format version {}{}\n`pellucid status {}` has more",
                sealed.header.version(),
                lacking(sealed.header.version()),
                word(path)
            ),
        ),
        (Kind::Empty, _) => Finding::good("file", format!("`{name}` is empty")),
        (Kind::Unfinished, _) => Finding::bad(
            "file",
            format!("`{name}`: an encryption or decryption was interrupted"),
            format!("`pellucid check {}` finishes it", word(path)),
        ),
        (Kind::Damaged(error), _) => {
            let todo = "restore a backup";
            Finding::bad("file", format!("`{name}`: {}", unreadable(&error)), todo)
        }
        _ => {
            let found = not_a_database(path);
            let told = found.to_string();
            let told = told.split_once("`: ").map_or(told.clone(), |(_, rest)| rest.to_owned());
            advice(&format!("is {told}"), "nothing here reads it as a database")
        }
    })
}

/// What a database of that format version lacks, in words that follow the number.
fn lacking(version: u32) -> &'static str {
    match version {
        1 => {
            ": it has no times of commits in its log, tells an attack on the log by fewer signs, and has no AEGIS_256, no \
             wal-index in memory and no log backups (`pellucid upgrade`)"
        }
        _ => "",
    }
}

fn machine() -> Vec<Finding> {
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
    findings
}

fn tell(findings: &[Finding], output: &Output) -> ExitCode {
    let mut shown = output::list();
    for finding in findings {
        match &finding.todo {
            None if finding.is_advice => shown.add_row(["--", finding.what, &finding.told]),
            None => shown.add_row(["ok", finding.what, &finding.told]),
            Some(todo) => {
                let told = format!("{}\n{todo}", finding.told);
                shown.add_row(["!!", finding.what, &told])
            }
        };
    }
    output::pad(&mut shown);
    output.line(shown);
    let attention = findings.iter().any(|finding| finding.todo.is_some());
    output.facts(&serde_json::json!({
        "ok": !attention,
        "findings": findings.iter().map(|finding| serde_json::json!({
            "ok": finding.todo.is_none(), "what": finding.what, "told": finding.told, "todo": finding.todo,
            "advice": finding.is_advice, "seems": finding.seems,
        })).collect::<Vec<_>>(),
    }));
    match attention {
        true => ExitCode::from(exit::ATTENTION),
        false => ExitCode::SUCCESS,
    }
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
        Ok(path) => Finding::good("extension", path.shown().to_string()),
        Err(missing) => Finding::bad("extension", missing.to_string(), missing.hint()),
    }
}

fn keyring(home: &Path, findings: &mut Vec<Finding>) {
    if let Ok(Some(broker)) = Broker::of(home) {
        let shown = broker.socket().shown();
        findings.push(match broker.answers() {
            Ok(_) => Finding::good("keyring", format!("root's alone; the broker at {shown} answers")),
            Err(error) => Finding::bad(
                "keyring",
                error.to_string(),
                "root starts it: `systemctl enable --now pellucid-broker`, or `pellucid broker run`",
            ),
        });
        return;
    }
    let shown = home.shown();
    if !Keyring::is_at(home) {
        if Keyring::configured().is_some_and(|configured| configured == home) {
            findings.push(Finding::bad(
                "keyring",
                format!("none in `{shown}`, which `{}` names", Keyring::config_path().shown()),
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
    let known = match Known::open(home) {
        Ok(known) => known,
        Err(error) => {
            findings.push(Finding::bad("keyring", error.to_string(), closed(error)));
            return;
        }
    };
    let certificates = known.certificates.len();
    findings.push(Finding::good("keyring", format!("{shown}, certificates: {certificates}")));
    findings.extend(key_place::elsewhere(home).map(|told| Finding::good("keyring", told)));
    if let Some(group) = Keyring::unnamed_group(home).map(Gid::from_raw) {
        let name = Group::from_gid(group).ok().flatten().map(|found| found.name);
        findings.push(Finding::bad(
            "keyring",
            format!(
                "the group `{}` may read the keys in `{shown}`, and `{}` does not name it as the machine's",
                name.unwrap_or_else(|| group.to_string()),
                Keyring::config_path().shown()
            ),
            format!("unless that is meant: `chmod -R g= {shown}`"),
        ));
    }
    for damage in &known.damage {
        findings.push(Finding::bad(damage.what, &damage.told, &damage.todo));
    }
    let mut databases = Vec::new();
    for path in &known.databases {
        match inspect(path) {
            Ok(found) => databases.push(found),
            Err(error) => {
                let todo = "look at the permissions, or at the disk";
                findings.push(Finding::bad("database", error.to_string(), todo));
            }
        }
    }
    let due = known.due(&databases, now());
    for told in due.iter().map(Told::new) {
        findings.push(Finding::bad(told.what, told.told, told.todo));
    }
    for found in &databases {
        if let Err(error) = known.check_of(found) {
            let name = found.path.shown();
            findings.push(Finding::bad(
                "keyring",
                format!("what it knows of the checks of `{name}` cannot be read: {error}"),
                format!("`pellucid check {}` makes it known again", word(&found.path)),
            ));
        }
        database(found, &known, findings);
        findings.extend(behind(found, &known));
    }
    findings.extend(stopped_backups());
    findings.extend(own_files::findings(home));
    missing(home, findings);
    let beside = key_place::under_certificates(&databases, &known);
    if let Some(advice) = key_place::advice(home, beside) {
        findings.push(Finding::advice("keyring", format!("{advice}; {}", key_place::INSTEAD)));
    }
}

/// What stopped backups have left beside the files of others that the history knows.
fn stopped_backups() -> Vec<Finding> {
    let history = begin().ok().and_then(|()| History::open().ok().flatten());
    let sets = history.and_then(|history| history.sets(None).ok()).unwrap_or_default();
    let files: BTreeSet<_> =
        sets.into_iter().flat_map(|set| set.files).map(PathBuf::from).collect();
    let on_disk = files.iter().filter(|path| path.is_absolute());
    leftovers(on_disk.map(|path| directory_of(path)))
        .iter()
        .map(|one| {
            let told = format!("`{}`: a stopped backup has left {}", one.path.shown(), bytes(one.bytes));
            let todo = match one.is_dead {
                true => "the next backup into that directory removes it",
                false => "it may be a whole backup: `pellucid verify` its files by their own names; then rename or remove it",
            };
            Finding::bad("backup", told, todo)
        })
        .collect()
}

/// Pinned files that are missing.
fn missing(home: &Path, findings: &mut Vec<Finding>) {
    match pinned::missing(home) {
        Ok(gone) => findings
            .extend(gone.iter().map(|one| Finding::advice("database", pinned::missing_text(one)))),
        Err(error) => {
            let todo = "look at the permissions of the keyring, or at the disk";
            findings.push(Finding::bad("keyring", error.to_string(), todo));
        }
    }
}

/// What to do about a keyring that does not open.
fn closed(error: Error) -> String {
    match Failure::from(error) {
        failure @ Failure { hint: Some(_), .. } if failure.kind() == Id::Io.kind() => {
            failure.hint.unwrap_or_default()
        }
        _ => "`pellucid key status` shows what is there; `pellucid key restore` puts a key back"
            .to_owned(),
    }
}

/// A database of an older format version than new ones of the instance are.
fn behind(found: &Inspection, known: &Known) -> Option<Finding> {
    let Kind::Sealed(sealed) = &found.kind else { return None };
    let (version, wanted) = (sealed.header.version(), known.format_version());
    (version < wanted).then(|| {
        let told = format!(
            "`{}` is of format version {version}, and new databases are of {wanted}{}",
            found.path.shown(),
            lacking(version)
        );
        Finding::advice("database", told)
    })
}

/// Whether an index in memory can be had here.
fn index_in_memory(shown: &impl std::fmt::Display, header: &Header) -> Option<Finding> {
    if !is_in_memory(header) {
        return None;
    }
    let found = MachineMemory::enter().and_then(|_| boot_id());
    Some(match found {
        Ok(_) => Finding::good("database", format!("`{shown}` has its wal-index in memory")),
        Err(error) => Finding::bad(
            "database",
            format!("`{shown}` has its wal-index in memory, and `{PLACE}` cannot be used here: {error}"),
            "give this machine or container a `/dev/shm`; or `pellucid index DB file`, with no connection open",
        ),
    })
}

/// Whether a database that the keyring knows is what it knows, and still opens.
fn database(found: &Inspection, known: &Known, findings: &mut Vec<Finding>) {
    let shown = found.path.shown();
    if let Some(log) = lost_log::kept(&found.path).first() {
        let told = format!("`{shown}`: commits of a damaged log are kept in `{}`", log.shown());
        findings.push(Finding::bad("database", told, lost_log::TO_DO));
    }
    if let Some(told) = left_over(found) {
        let todo = "if no `pellucid decrypt` or `encrypt` of it runs, do the conversion, or remove the file";
        findings.push(Finding::bad("database", told, todo));
    }
    let finding = match &found.kind {
        Kind::Sealed(sealed) => {
            let archived = Archived::of_found(found).and_then(|one| one.trouble(&found.path));
            let followed = Followed::of_found(found).and_then(|one| one.trouble(&found.path));
            let own = recovery::trouble(&found.path, &sealed.header).into_iter();
            for (told, todo) in own.chain(archived).chain(followed) {
                findings.push(Finding::bad("database", told, todo));
            }
            let journal = beside(&found.path, "-journal");
            match has_dead_pages_in_clear(&journal, sealed.header.state) {
                Ok(false) => {}
                Ok(true) => findings.push(Finding::bad(
                    "database",
                    format!("`{}` has pages in clear, of before the encryption", journal.shown()),
                    "remove it while no program has the database open; nothing reads it",
                )),
                Err(error) => findings.push(Finding::bad(
                    "database",
                    error.to_string(),
                    "let this account read it: it may have pages in clear",
                )),
            }
            if let Some((told, todo)) = crate::scan::status::stands(&found.path, sealed) {
                findings.push(Finding::bad("database", told, todo));
            }
            findings.extend(index_in_memory(&shown, &sealed.header));
            if let Some(told) = pinned::not_pinned(found) {
                findings.push(Finding::bad("database", told, pinned::OPEN_IT));
            }
            let Some(gone) = certificate_gone(sealed, known) else { return };
            Finding::bad(
                "database",
                format!("`{shown}`: {gone}"),
                "import it from its backup with `pellucid cert import`",
            )
        }
        Kind::Unfinished => Finding::bad(
            "database",
            format!("`{shown}`: an encryption or decryption was interrupted"),
            "`pellucid check` finishes it",
        ),
        Kind::Damaged(error) => {
            let told = format!("`{shown}`: {}", unreadable(error));
            Finding::bad("database", told, "restore a backup")
        }
        Kind::Plain => Finding::bad(
            "database",
            format!("`{shown}` is PLAIN, and the keyring knows it as encrypted"),
            "find out who put it there; put the expected one back, or `pellucid accept` takes it as it is",
        ),
        _ => return,
    };
    findings.push(finding);
}
