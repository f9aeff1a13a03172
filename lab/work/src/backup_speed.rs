//! How fast backups and restores are, beside SQLite's own copy and what people put together from other programs.
//!
//! A run makes a backup and restores it, each from the start of the first program to the synced end of the last; the
//! source lies in the page cache. What is restored is looked at each time.

mod method;

use std::path::{Path, PathBuf};

use clap::Args;
use pellucid_lab_measure::blocks::shuffled;
use pellucid_lab_measure::common::Common;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{copy_whole, length, read_through, remove, room};
use pellucid_lab_measure::machine::Load;
use pellucid_lab_measure::pipeline::{bytes, Recipe, Took};
use pellucid_lab_measure::program::Program;
use pellucid_lab_measure::random::Random;
use pellucid_lab_measure::session::{Conditions, Place};
use pellucid_lab_measure::side::{self, Kind, Side};
use pellucid_lab_report::plan::{self, Setting};
use pellucid_lab_report::record::{Observation, SideDescription};

use crate::estimate::Estimate;
use crate::fixture::settle;
use crate::measurement::Measurement;
use crate::piece::{Piece, Scaled};
use crate::pool;
use crate::scenario::whole::MARKER;
use crate::worker::{Order, Report, Task};

use method::{Method, Tools, CERTIFICATE};

/// Names the command and the sessions.
const NAME: &str = "backup-speed";
/// What `lab full` runs of it.
const PIECES: &[Piece] = &[Piece::new(NAME, NAME, Scaled::Mib(1024), &[]).beside_peers()];
const MIB: u64 = 1 << 20;
const MB: f64 = 1e6;
/// Two sources, the copy that others read, its media, and what is restored.
const FILES: u64 = 5;
/// For an estimate: MB/s of backup, restore and the look at it together.
const MB_PER_S: f64 = 140.0;
const MB_PER_S_TRIPLE_DES: f64 = 15.0;

/// Where Debian has them.
const DEBIAN: &str = "apt-get install zstd age restic borgbackup";

/// Backups and restores beside VACUUM INTO, zstd, age, restic and borg: time, processor time, memory, size.
///
/// Example: lab backup-speed --methods "pellucid zstd AES_256" --methods "VACUUM INTO + zstd + age"
#[derive(Debug, Clone, Args)]
pub struct BackupSpeed {
    #[command(flatten)]
    pub common: Common,
    /// Length of the database.
    #[arg(long, value_name = "MIB", default_value_t = plan::WHOLE_MIB, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub size_mib: u64,
    /// Algorithms of Pellucid's media, beside none; the last also of a sealed database's.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', default_value = "AES_128,AES_256")]
    pub algorithms: Vec<String>,
    /// Only this method, by its name in the table, and the base; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub methods: Vec<String>,
}

impl Measurement for BackupSpeed {
    fn name() -> &'static str {
        NAME
    }

    fn pieces() -> &'static [Piece] {
        PIECES
    }

    fn only_estimates(&self) -> bool {
        self.common.estimate
    }

    fn estimate(&self) -> Result<Estimate> {
        Ok(estimated(self, &chosen(self)?))
    }

    fn run(&self) -> Result<bool> {
        let common = &self.common;
        let methods = chosen(self)?;
        let size = self.size_mib * MIB;
        let estimate = estimated(self, &methods);
        let mut place = Place::open(NAME, common)?;
        room(place.path(), estimate.bytes)?;
        let with_age = methods.contains(&Method::VacuumZstdAge);
        let (tools, plain, sealed, rows) = prepare(&place, size, common.seed, with_age)?;
        let source_bytes = length(&tools.plain)?;
        let sides = methods
            .iter()
            .map(|method| {
                let side = if method.restores_sealed() { &sealed } else { &plain };
                let file_bytes = Some(source_bytes);
                Ok(SideDescription { side: method.name(), file_bytes, ..side.describe()? })
            })
            .collect::<Result<_>>()?;
        let conditions = Conditions {
            sides,
            warm_up_rounds: 1,
            setting: Some(plan::STANDARD),
            size: Some(self.size_mib),
            parameters: [("source_bytes".to_string(), source_bytes.into())].into(),
            ..Conditions::default()
        };
        let session = place.begin(conditions, 1)?.session;
        let cell = format!("{} MiB", self.size_mib);
        for round in 0..=common.rounds {
            let order = shuffled(methods.len(), &mut Random::of(&[common.seed, round as u64]));
            for (drawn, number) in order.into_iter().enumerate() {
                let method = &methods[number];
                place.step(&format!("round {round}, {}", method.name()));
                let numbers = run(method, &tools, source_bytes)?;
                let side = if method.restores_sealed() { &sealed } else { &plain };
                check(side, &tools, rows)?;
                if round == 0 {
                    check_media(method, &tools)?;
                }
                for (what, value) in numbers {
                    place.observe(Observation {
                        session: session.clone(),
                        cell: cell.clone(),
                        round,
                        place: drawn,
                        side: method.name(),
                        what: what.into(),
                        value,
                    })?;
                }
            }
        }
        place.finish()?;
        Ok(true)
    }
}

fn estimated(options: &BackupSpeed, methods: &[Method]) -> Estimate {
    let (rounds, size) = (options.common.rounds + 1, options.size_mib * MIB);
    Estimate { seconds: rounds as f64 * seconds_of_a_round(methods, size), bytes: FILES * size }
}

/// Every method's name.
pub fn names(algorithms: &[String]) -> Vec<String> {
    Method::all(algorithms).iter().map(Method::name).collect()
}

/// The methods that were asked for, and the base; those of programs that are not installed are left out.
fn chosen(options: &BackupSpeed) -> Result<Vec<Method>> {
    let mut methods = Method::all(&options.algorithms);
    methods.retain(|method| {
        let name = method.name();
        let asked = options.methods.is_empty() || options.methods.contains(&name);
        let missing: Vec<&str> =
            method.needs().iter().copied().filter(|program| !installed(program)).collect();
        if asked && !missing.is_empty() {
            let missing = missing.join(", ");
            eprintln!(
                "lab: `{name}` is left out: not installed here: {missing} (Debian: {DEBIAN})"
            );
        }
        (asked || *method == Method::VacuumInto) && missing.is_empty()
    });
    for name in &options.methods {
        if !methods.iter().any(|method| method.name() == *name) {
            let names = names(&options.algorithms).join("; ");
            return Err(Error::invalid(format!("no method `{name}` here; there are: {names}")));
        }
    }
    Ok(methods)
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

fn seconds_of_a_round(methods: &[Method], size: u64) -> f64 {
    let megabytes = size as f64 / MB;
    let of = |method: &Method| match method.name().contains("DES") {
        true => megabytes / MB_PER_S_TRIPLE_DES,
        false => megabytes / MB_PER_S,
    };
    methods.iter().map(of).sum()
}

/// The two databases, the certificate and age's key; and how many rows there are.
fn prepare(
    place: &Place,
    size: u64,
    seed: u64,
    with_age: bool,
) -> Result<(Tools, Side, Side, u64)> {
    let home = place.path().join("home");
    std::fs::create_dir(&home).map_err(Error::io(home.display().to_string()))?;
    let of =
        |wanted: fn(&Kind) -> bool| place.sides.iter().find(|side| wanted(&side.kind)).cloned();
    let plain = of(|kind| matches!(kind, Kind::Plain));
    let sealed = of(|kind| matches!(kind, Kind::Sealed { .. }));
    let (Some(plain), Some(sealed)) = (plain, sealed) else {
        return Err(Error::invalid("backup-speed: its sides are plain,sealed"));
    };
    let Some(program) = Program::of(&sealed, &home)? else {
        return Err(Error::invalid("backup-speed: a sealed side without its program"));
    };
    certificate(&program, &home)?;

    let path = place.path().join("plain.db");
    let order = Order {
        side: plain.clone(),
        path: path.clone(),
        setting: Setting { ..plan::STANDARD },
        task: Task::PrepareWhole { bytes: size, seed },
    };
    let rows = match pool::single(&order, &home)? {
        Report::Rows { rows, .. } => rows,
        other => return Err(Error::invalid(format!("the new database answers {other:?}"))),
    };
    plain.check_file(&path, MARKER)?;
    let copy = place.path().join("sealed.db");
    copy_whole(&path, &copy)?;
    program.run(&["encrypt"], &copy)?;
    sealed.check_file(&copy, MARKER)?;

    let tools = Tools {
        pellucid: program,
        lab: std::env::current_exe().map_err(Error::io("the lab's own program"))?,
        recipient: if with_age { age_key(&home)? } else { String::new() },
        plain: path,
        sealed: copy,
        media: place.path().join("media"),
        restored: place.path().join("restored.db"),
        home,
    };
    Ok((tools, plain, sealed, rows))
}

/// Makes the certificate and backs it up, so that no backup has to warn of that.
fn certificate(program: &Program, home: &Path) -> Result<()> {
    let password = home.join("password");
    side::write_key_file(&password)?;
    let hex = side::key_in_hex(&password)?;
    std::fs::write(&password, hex).map_err(Error::io(password.display().to_string()))?;
    let text = |name: &str| home.join(name).display().to_string();
    program.run_bare(&["cert", "create"], Path::new(CERTIFICATE))?;
    let (cert, key, password) = (text("lab.cer"), text("lab.pvk"), text("password"));
    let words =
        ["cert", "export", "--cert-file", &cert, "--key-file", &key, "--password-file", &password];
    program.run_bare(&words, Path::new(CERTIFICATE)).map(drop)
}

/// Makes age's key; its public half.
fn age_key(home: &Path) -> Result<String> {
    let key = home.join("age.key");
    let said = std::process::Command::new("age-keygen").arg("-o").arg(&key).output();
    let said = said.map_err(Error::io("age-keygen"))?;
    if !said.status.success() {
        return Err(Error::invalid(format!("age-keygen: {}", said.status)));
    }
    let text = std::fs::read_to_string(&key).map_err(Error::io(key.display().to_string()))?;
    let public = text.lines().find_map(|line| line.strip_prefix("# public key: "));
    public.map(str::to_string).ok_or_else(|| Error::invalid("age-keygen: no public key"))
}

fn run(method: &Method, tools: &Tools, source_bytes: u64) -> Result<Vec<(&'static str, f64)>> {
    let io = |path: &PathBuf| Error::io(path.display().to_string());
    if tools.media.exists() {
        std::fs::remove_dir_all(&tools.media).map_err(io(&tools.media))?;
    }
    std::fs::create_dir(&tools.media).map_err(io(&tools.media))?;
    remove(&tools.restored)?;
    method.prepare(tools).run()?;
    let source = if method.restores_sealed() { &tools.sealed } else { &tools.plain };
    read_through(source)?;
    let dirty_kib = settle();
    let (backup, shares) = timed(&method.backup(tools))?;
    let media_bytes =
        method.keeps(tools).iter().map(|path| bytes(path)).sum::<Result<u64>>()? as f64;
    settle();
    let (restore, _) = timed(&method.restore(tools))?;
    Ok(vec![
        ("backup_elapsed_s", backup.wall_s),
        ("backup_cpu_s", backup.cpu_s),
        ("backup_peak_bytes", backup.peak_bytes as f64),
        ("backup_mb_per_s", source_bytes as f64 / MB / backup.wall_s),
        ("media_bytes", media_bytes),
        ("restore_elapsed_s", restore.wall_s),
        ("restore_cpu_s", restore.cpu_s),
        ("restore_peak_bytes", restore.peak_bytes as f64),
        ("restore_mb_per_s", source_bytes as f64 / MB / restore.wall_s),
        ("others_share", shares.0),
        ("dirty_kib", dirty_kib as f64),
    ])
}

fn timed(recipe: &Recipe) -> Result<(Took, (f64, f64))> {
    let load = Load::begin();
    let took = recipe.run()?;
    Ok((took, load.end().shares(Some(took.cpu_s))))
}

/// What was restored is a database with every row, and sealed if it has to be.
fn check(side: &Side, tools: &Tools, rows: u64) -> Result<()> {
    side.check_magic(&tools.restored)?;
    let order = Order {
        side: side.clone(),
        path: tools.restored.clone(),
        setting: plan::STANDARD,
        task: Task::Rows,
    };
    match pool::single(&order, &tools.home)? {
        Report::Rows { rows: found, .. } if found == rows => Ok(()),
        other => Err(Error::invalid(format!("restored: of {rows} rows, {other:?} are left"))),
    }
}

/// What should be sealed is, and with that algorithm.
fn check_media(method: &Method, tools: &Tools) -> Result<()> {
    let Some(algorithm) = method.seals() else { return Ok(()) };
    tools.pellucid.check_media(&method.keeps(tools), algorithm, MARKER)
}

/// `lab vacuum-into FROM TO`: SQLite's consistent copy, in a process of its own.
///
/// # Errors
/// [`Error::Sqlite`]
pub fn vacuum_into(from: &Path, to: &Path) -> Result<()> {
    let connection =
        rusqlite::Connection::open(from).map_err(Error::sqlite(from.display().to_string()))?;
    connection
        .execute("VACUUM INTO ?1", [to.to_string_lossy()])
        .map(drop)
        .map_err(Error::sqlite("VACUUM INTO"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pellucid_lab_report::goals::Goals;

    #[test]
    fn the_goals_of_backups_name_methods_that_there_are() {
        let names = names(&["AES_128".into(), "AES_256".into()]);
        let goals = Goals::read().pairs;
        let ours = goals.iter().filter(|goal| goal.scenario == "backup-speed");
        assert!(ours.clone().count() > 8);
        for goal in ours {
            for name in goal.base.iter().chain([&goal.side]) {
                assert!(names.contains(name), "{name}");
            }
        }
    }
}
