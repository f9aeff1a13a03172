//! A process of its own for each piece of work on a database: `lab worker`, started by `crate::pool`.
//!
//! It reads one [`Order`] from standard input, a JSON line. For a run it then answers `ready`, waits
//! for `start UNIX_NANOSECONDS` (or, in turns, for each `go`), works, and answers with one [`Report`] line. Only workers open
//! databases: the lab itself keeps no lock, no cache and no shim.

mod order;

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::mpsc::{self, TryRecvError};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{beside, sync};
use pellucid_lab_measure::histogram::Histogram;
use pellucid_lab_measure::machine::{as_ns, own_cpu_seconds, own_read_bytes};
use pellucid_lab_measure::random::Random;
use pellucid_lab_report::plan::{Journal, Operation, Setting, Size};
use pellucid_lab_report::record::Limit;
use rusqlite::types::Value;
use rusqlite::Connection;
use rustix::process::{set_parent_process_death_signal, Signal};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::scenario::{adopt, application, hummer, purchase, rewrite, statements, whole, world};

pub use order::{Order, Performed, Ran, Report, Run, Task, Worked};

/// A start further away than this is a clock that was set, not an order to wait.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
const WARM_READS: u64 = 1000;

/// Does what standard input orders.
///
/// # Errors
/// Whatever keeps it from doing so; the lab then drops the run.
pub fn serve() -> Result<()> {
    let order: Order = serde_json::from_str(&line()?)
        .map_err(|error| Error::invalid(format!("worker: not an order: {error}")))?;
    order.side.load()?;
    let report = match &order.task {
        Task::Prepare { seed } => prepare(&order, *seed)?,
        Task::Run(task) => Report::Ran(run(&order, task)?),
        Task::PrepareWhole { bytes, seed } => prepare_whole(&order, *bytes, *seed)?,
        Task::FillWorld { bytes, seed } => {
            filled(&order, |connection| world::fill(connection, *bytes, *seed))?
        }
        Task::Whole { operation, into } => Report::Worked(work(&order, *operation, into)?),
        Task::Rows => {
            let connection = order.open(false)?;
            let engine = order.side.engine(&connection)?;
            Report::Rows { rows: whole::rows(&connection)?, engine }
        }
        Task::FirstRow => Report::Worked(first_row(&order)?),
        Task::PrepareApplication { bytes, seed } => {
            let report = prepare_whole(&order, *bytes, *seed)?;
            let connection = order.open(false)?;
            application::prepare(&connection)?;
            close(connection, &order.path)?;
            report
        }
        Task::Application(task) => apply(&order, *task)?,
        Task::Account { orders, acknowledged } => {
            let connection = order.open(false)?;
            let (wrong, integrity) = application::account(&connection, *orders, acknowledged)?;
            Report::Accounted { wrong, integrity }
        }
        Task::Rewrite(task) => {
            let wal = order.setting.journal == Journal::Wal;
            Report::Worked(timed(&order, |connection| rewrite::rewrite(connection, *task, wal))?)
        }
        Task::Hummer(task) => Report::Hummer(hummer(&order, task)?),
        Task::Adopt { from, wal } => {
            let mut connection = order.open(true)?;
            adopt::adopt(from, &order.side.uri(from), *wal, &mut connection)?;
            let engine = order.side.engine(&connection)?;
            close(connection, &order.path)?;
            Report::Adopted(engine)
        }
        Task::Statements(task) => Report::Statements(perform(&order, task)?),
        Task::Rekey => Report::Worked(timed(&order, |connection| order.side.rekey(connection))?),
        Task::Check => {
            let connection = order.open(false)?;
            let page_size_bytes = page_size(&connection)?;
            let engine = order.side.engine(&connection)?;
            Report::Checked { purchases: purchase::check(&connection)?, page_size_bytes, engine }
        }
    };
    let report = serde_json::to_string(&report)
        .map_err(|error| Error::invalid(format!("worker: {error}")))?;
    say(&report)
}

fn prepare(order: &Order, seed: u64) -> Result<Report> {
    let mut connection = order.open(true)?;
    set(&connection, &order.setting)?;
    purchase::fill(&mut connection, order.setting.size, seed)?;
    close(connection, &order.path)?;
    Ok(Report::Prepared)
}

fn prepare_whole(order: &Order, bytes: u64, seed: u64) -> Result<Report> {
    filled(order, |connection| whole::fill(connection, bytes, seed))
}

/// What `fill` makes of it, in rows.
fn filled(order: &Order, fill: impl FnOnce(&mut Connection) -> Result<u64>) -> Result<Report> {
    let mut connection = order.open(true)?;
    set(&connection, &order.setting)?;
    // Nothing of it is needed after a crash.
    connection
        .pragma_update(None, "synchronous", "OFF")
        .map_err(Error::sqlite("PRAGMA synchronous"))?;
    let rows = fill(&mut connection)?;
    let engine = order.side.engine(&connection)?;
    close(connection, &order.path)?;
    Ok(Report::Rows { rows, engine })
}

fn work(order: &Order, operation: whole::Operation, into: &Path) -> Result<Worked> {
    let into = order.side.uri(into);
    let worked = timed(order, |connection| operation.perform(connection, &into))?;
    nothing_left(&order.path)?;
    Ok(worked)
}

/// Does `work`; what a checkpoint costs is part of it.
fn timed(order: &Order, work: impl FnOnce(&Connection) -> Result<()>) -> Result<Worked> {
    let connection = order.open(false)?;
    set(&connection, &order.setting)?;
    let (cpu, read) = (own_cpu_seconds(), own_read_bytes());
    let start = Instant::now();
    work(&connection)?;
    connection.close().map_err(|(_, error)| Error::sqlite("closing the database")(error))?;
    Ok(Worked {
        wall_s: start.elapsed().as_secs_f64(),
        cpu_s: own_cpu_seconds().zip(cpu).map(|(end, start)| end - start),
        read_bytes: own_read_bytes().zip(read).map(|(end, start)| end - start),
    })
}

/// Does what somebody's SQL says, in the mode that the database is in. Others may have it open.
fn perform(order: &Order, task: &statements::Task) -> Result<Performed> {
    let connection = order.open(false)?;
    let (cpu, read) = (own_cpu_seconds(), own_read_bytes());
    let statements = statements::perform(&connection, task)?;
    let (end, end_cpu) = (Instant::now(), own_cpu_seconds());
    connection.close().map_err(|(_, error)| Error::sqlite("closing the database")(error))?;
    let closing_s = end.elapsed().as_secs_f64();
    let closed = own_cpu_seconds();
    // What taking the times costs is nobody's.
    let cpu_s = if task.each {
        let each: Option<f64> = statements.iter().map(|one| one.cpu_s).sum();
        each.zip(closed.zip(end_cpu)).map(|(sum, (closed, end))| sum + closed - end)
    } else {
        closed.zip(cpu).map(|(end, start)| end - start)
    };
    let wall_s = statements.iter().map(|one| one.wall_s).sum::<f64>() + closing_s;
    let read_bytes = own_read_bytes().zip(read).map(|(end, start)| end - start);
    Ok(Performed { statements, wall_s, cpu_s, read_bytes })
}

/// A client of a constant load; its connection stays open from the first phase to the last.
fn apply(order: &Order, task: application::Task) -> Result<Report> {
    let connection = order.open(false)?;
    set(&connection, &order.setting)?;
    connection
        .pragma_update(None, "synchronous", "FULL")
        .map_err(Error::sqlite("PRAGMA synchronous"))?;
    let mut client = application::Client::new(&connection, task)?;
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        while let Ok(line) = line() {
            // The other end is gone when this process ends.
            if line.is_empty() || tell.send(line).is_err() {
                break;
            }
        }
    });
    let next = || told.recv().unwrap_or_else(|_| "end".into());
    say("ready")?;
    loop {
        match next().as_str() {
            "go" => {}
            "end" => break,
            other => return Err(Error::invalid(format!("worker: `{other}` instead of `go`"))),
        }
        let stretch = client.work(|| !matches!(told.try_recv(), Err(TryRecvError::Empty)))?;
        say(&serde_json::to_string(&stretch)
            .map_err(|error| Error::invalid(format!("worker: {error}")))?)?;
    }
    drop(client);
    connection.close().map_err(|(_, error)| Error::sqlite("closing the database")(error))?;
    Ok(Report::Ended)
}

fn hummer(order: &Order, task: &hummer::Task) -> Result<hummer::Answer> {
    match task {
        hummer::Task::Prepare { seed } => {
            let mut connection = order.open(true)?;
            set(&connection, &order.setting)?;
            hummer::prepare(&mut connection, order.setting.size, *seed)?;
            let engine = order.side.engine(&connection)?;
            close(connection, &order.path)?;
            Ok(hummer::Answer::Prepared { engine })
        }
        hummer::Task::Control(change) => {
            let mut connection = order.open(false)?;
            Ok(hummer::Answer::Control(hummer::change(&mut connection, *change)?))
        }
        hummer::Task::Count => Ok(hummer::Answer::Counted(hummer::count(&order.open(false)?)?)),
        hummer::Task::Loop(task) => {
            // A killed lab leaves no process that goes on for minutes.
            set_parent_process_death_signal(Some(Signal::KILL))
                .map_err(|error| Error::io("prctl(2)")(error.into()))?;
            // A signal to all of them is the lab's to answer: it stops them as the control table does.
            for signal in [SIGINT, SIGTERM] {
                flag::register(signal, Arc::default()).map_err(Error::io("waiting for signals"))?;
            }
            // So that a loop that waits for its moment begins at it; without, 50 us later.
            let _ = std::fs::write("/proc/self/timerslack_ns", "1");
            let connection = order.open(false)?;
            set(&connection, &order.setting)?;
            connection
                .pragma_update(None, "synchronous", task.synchronous.to_string())
                .map_err(Error::sqlite("PRAGMA synchronous"))?;
            let hummer = hummer::Hummer::new(&connection, order.setting.size, task)?;
            say("ready")?;
            wait_for_start(&line()?)?;
            Ok(hummer::Answer::Ran(Box::new(hummer.run()?)))
        }
    }
}

fn first_row(order: &Order) -> Result<Worked> {
    let connection = order.open(false)?;
    purchase::Client::new(&connection, order.setting.size, Random::of(&[1]))?
        .perform(Operation::Read)?;
    Ok(Worked { wall_s: 0.0, cpu_s: own_cpu_seconds(), read_bytes: own_read_bytes() })
}

/// Closes the only connection to the new database at `path` and syncs it, which `synchronous` OFF left undone; nothing of a
/// journal may be left.
fn close(connection: Connection, path: &Path) -> Result<()> {
    connection.close().map_err(|(_, error)| Error::sqlite("closing the database")(error))?;
    nothing_left(path)?;
    sync(path)
}

fn nothing_left(path: &Path) -> Result<()> {
    let left: Vec<_> =
        ["-wal", "-journal"].into_iter().filter(|suffix| beside(path, suffix).exists()).collect();
    if left.is_empty() {
        Ok(())
    } else {
        Err(Error::invalid(format!("the closed database left {left:?} behind")))
    }
}

fn run(order: &Order, task: &Run) -> Result<Ran> {
    let connection = order.open(false)?;
    set(&connection, &order.setting)?;
    connection
        .pragma_update(None, "synchronous", task.synchronous.to_string())
        .map_err(Error::sqlite("PRAGMA synchronous"))?;
    warm(&connection, order.setting.size, task)?;

    let mut seed = task.seed.clone();
    seed.push(task.worker);
    let mut client = purchase::Client::new(&connection, order.setting.size, Random::of(&seed))?;
    say("ready")?;
    if let Some(turn_s) = task.turn_s {
        return in_turns(client, task, turn_s);
    }
    wait_for_start(&line()?)?;

    let mut latencies = [(); 3].map(|()| Histogram::default());
    let mut committed_inserts = 0;
    let cpu = own_cpu_seconds();
    let start = Instant::now();
    let mut last = start;
    for turn in 0.. {
        if matches!(task.limit, Limit::Operations(operations) if turn >= operations) {
            break;
        }
        // Workers begin at different places of the mix, so that they do not go in step.
        let operation = task.mix.operation(turn + task.worker);
        client.perform(operation)?;
        committed_inserts += u64::from(operation == Operation::Insert);
        let now = Instant::now();
        let over =
            matches!(task.limit, Limit::Seconds(seconds) if (now - start).as_secs_f64() > seconds);
        // A short run on a machine whose disk or processors stand still: a rate of nothing has no ratio.
        if over && turn > 0 {
            break;
        }
        latencies[operation as usize].add(as_ns(now - last));
        if over {
            break;
        }
        last = now;
    }
    Ok(Ran {
        latencies: latencies.map(|histogram| histogram.sparse()),
        committed_inserts,
        elapsed_s: start.elapsed().as_secs_f64(),
        cpu_s: own_cpu_seconds().zip(cpu).map(|(end, start)| end - start),
        busy: client.busy,
    })
}

/// Works whenever it is this worker's turn. A turn ends with an operation, and counts as long as it took.
fn in_turns(mut client: purchase::Client, task: &Run, turn_s: f64) -> Result<Ran> {
    let turn = Duration::from_secs_f64(turn_s);
    let mut latencies = [(); 3].map(|()| Histogram::default());
    let (mut committed_inserts, mut operations, mut elapsed) = (0, 0, Duration::ZERO);
    let cpu = own_cpu_seconds();
    loop {
        match line()?.as_str() {
            "go" => {}
            "end" => break,
            other => return Err(Error::invalid(format!("worker: `{other}` instead of `go`"))),
        }
        let start = Instant::now();
        let mut last = start;
        while last - start < turn {
            let operation = task.mix.operation(operations + task.worker);
            client.perform(operation)?;
            committed_inserts += u64::from(operation == Operation::Insert);
            let now = Instant::now();
            latencies[operation as usize].add(as_ns(now - last));
            (operations, last) = (operations + 1, now);
        }
        elapsed += last - start;
        say("rest")?;
    }
    Ok(Ran {
        latencies: latencies.map(|histogram| histogram.sparse()),
        committed_inserts,
        elapsed_s: elapsed.as_secs_f64(),
        cpu_s: own_cpu_seconds().zip(cpu).map(|(end, start)| end - start),
        busy: client.busy,
    })
}

/// Opens files, maps the WAL's index, and brings a part of the database into this process's cache,
/// so that none of it counts as work.
fn warm(connection: &Connection, size: Size, task: &Run) -> Result<()> {
    let random = Random::of(&[task.worker, WARM_READS]);
    let mut client = purchase::Client::new(connection, size, random)?;
    (0..WARM_READS).try_for_each(|_| client.perform(Operation::Read))
}

/// A number, or the same as a text, as SQLCipher answers.
fn page_size(connection: &Connection) -> Result<u32> {
    let sql = "PRAGMA page_size";
    let value = connection.query_row(sql, [], |row| row.get(0)).map_err(Error::sqlite(sql))?;
    let bytes = match &value {
        Value::Integer(bytes) => u32::try_from(*bytes).ok(),
        Value::Text(bytes) => bytes.parse().ok(),
        _ => None,
    };
    bytes.ok_or_else(|| Error::invalid(format!("{sql} answers {value:?}")))
}

/// Journal mode and cache size; the page size is the file's.
fn set(connection: &Connection, setting: &Setting) -> Result<()> {
    connection
        .pragma_update(None, "cache_size", -i64::from(setting.cache_kib))
        .map_err(Error::sqlite("PRAGMA cache_size"))?;
    let sql = format!("PRAGMA journal_mode = {}", setting.journal);
    let mode: String =
        connection.query_row(&sql, [], |row| row.get(0)).map_err(Error::sqlite(sql.clone()))?;
    if mode.eq_ignore_ascii_case(&setting.journal.to_string()) {
        Ok(())
    } else {
        Err(Error::invalid(format!("{sql}: it is {mode}")))
    }
}

fn wait_for_start(line: &str) -> Result<()> {
    let start = line
        .strip_prefix("start ")
        .and_then(|ns| ns.parse().ok())
        .map(|ns| UNIX_EPOCH + Duration::from_nanos(ns))
        .ok_or_else(|| Error::invalid("worker: not a start"))?;
    if let Ok(wait) = start.duration_since(SystemTime::now()) {
        std::thread::sleep(wait.min(LONGEST_WAIT));
    }
    Ok(())
}

fn line() -> Result<String> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(Error::io("worker: standard input"))?;
    Ok(line.trim_end().to_string())
}

fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Error::io("worker: standard output"))
}
