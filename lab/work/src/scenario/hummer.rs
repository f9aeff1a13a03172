//! Hummer: the loop that each process of article 3 runs, and the control table that each loop reads.
//!
//! The control table lies in the database itself, as the article's control parameters do, so that reading it costs what it
//! costs there. Whoever changes it changes a test that is under way.

mod control;

use std::time::{Duration, Instant};

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::histogram::{Histogram, SparseHistogram};
use pellucid_lab_measure::machine::{as_ns, own_cpu_seconds};
use pellucid_lab_measure::random::Random;
use pellucid_lab_report::plan::{Operation, Size, Synchronous};
use pellucid_lab_report::record::Engine;
use rusqlite::{Connection, ErrorCode, Statement};
use serde::{Deserialize, Serialize};

use super::purchase;
use control::{control_of, unix_ns, FIRST, READ, TABLE};

pub use control::{change, Change, Control, MARKER};

/// How often a process that waits looks at the control table.
const LOOK: Duration = Duration::from_millis(250);

/// What a worker of hummer is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Task {
    /// Tables, indexes, the control table, and the rows that the order's setting asks for.
    Prepare {
        seed: u64,
    },
    Control(Change),
    Loop(Loop),
    /// SQLite's own check, and the rows of each table.
    Count,
}

/// What it reports.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    Prepared { engine: Engine },
    Control(Control),
    Ran(Box<Ran>),
    Counted(Size),
}

/// What one process is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Loop {
    pub synchronous: Synchronous,
    pub loops: u64,
    /// Of these, the first that make rows.
    pub creating_loops: u64,
    pub start_delay_ms: u64,
    pub delay_every_loops: u64,
    /// When this loop was passed is told.
    pub mark_loop: u64,
    /// From one loop's beginning to the next one's, whatever it takes; none: as soon as the last is done.
    pub interval_ns: Option<u64>,
    pub processes: u64,
    /// From 0.
    pub worker: u64,
    /// Names the sequence of rows.
    pub seed: Vec<u64>,
}

/// What latencies are kept of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Update,
    Insert,
    /// A Vendor, a Card or a Purchase of the first loops.
    Create,
    Control,
}

impl Kind {
    /// All of them, with their names in the records.
    pub const ALL: [(Kind, &'static str); 5] = [
        (Kind::Read, "read"),
        (Kind::Update, "update"),
        (Kind::Insert, "insert"),
        (Kind::Create, "create"),
        (Kind::Control, "control"),
    ];

    fn of(operation: Operation) -> Self {
        match operation {
            Operation::Read => Kind::Read,
            Operation::Update => Kind::Update,
            Operation::Insert => Kind::Insert,
        }
    }
}

/// What one process did.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Ran {
    /// In the order of [`Kind::ALL`].
    pub latencies: [SparseHistogram; 5],
    pub sums_ns: [u64; 5],
    pub loops: u64,
    /// Rows that were acknowledged.
    pub vendors: u64,
    pub cards: u64,
    pub purchases: u64,
    /// Of the loops, DELAYs included, the wait at the start not.
    pub elapsed_s: f64,
    pub delayed_s: f64,
    pub cpu_s: Option<f64>,
    /// After the start of the loops.
    pub mark_s: Option<f64>,
    pub busy: u64,
    pub stopped: bool,
    /// From the writing of each change to the loop that goes by it.
    pub effects_ms: Vec<f64>,
}

/// Makes the database.
///
/// # Errors
/// [`Error::Sqlite`]
pub fn prepare(connection: &mut Connection, size: Size, seed: u64) -> Result<()> {
    purchase::fill(connection, size, seed)?;
    connection
        .execute_batch(TABLE)
        .and_then(|()| connection.execute(FIRST, [MARKER]))
        .map(drop)
        .map_err(Error::sqlite("making the control table"))
}

/// Counts the rows of each table, after SQLite's own check.
///
/// # Errors
/// [`Error::Invalid`] if SQLite's check finds something.
pub fn count(connection: &Connection) -> Result<Size> {
    let purchases = purchase::check(connection)?;
    let count = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .map(i64::unsigned_abs)
            .map_err(Error::sqlite(sql))
    };
    Ok(Size {
        vendors: count("SELECT count(*) FROM Vendor")?,
        cards: count("SELECT count(*) FROM Card")?,
        purchases,
    })
}

/// One process at work.
#[derive(Debug)]
pub struct Hummer<'connection> {
    task: &'connection Loop,
    client: purchase::Client<'connection>,
    read_control: Statement<'connection>,
    control: Control,
    latencies: [Histogram; 5],
    ran: Ran,
}

impl<'connection> Hummer<'connection> {
    /// `size` is what the database holds already.
    ///
    /// # Errors
    /// [`Error::Sqlite`]
    pub fn new(
        connection: &'connection Connection,
        size: Size,
        task: &'connection Loop,
    ) -> Result<Self> {
        let mut seed = task.seed.clone();
        seed.push(task.worker);
        let client = purchase::Client::new(connection, size, Random::of(&seed))?;
        let mut read_control = connection.prepare(READ).map_err(Error::sqlite(READ))?;
        let control =
            read_control.query_row([], control_of).map_err(Error::sqlite("the control table"))?;
        // Counted from before the run: a change before the first look is one too.
        let control = Control { changes: 0, ..control };
        let latencies = [(); 5].map(|()| Histogram::default());
        Ok(Self { task, client, read_control, control, latencies, ran: Ran::default() })
    }

    /// Loops until all is done or the control table says to stop.
    ///
    /// # Errors
    /// As [`purchase::Client::perform`].
    pub fn run(mut self) -> Result<Ran> {
        self.rest(Instant::now() + Duration::from_millis(self.task.start_delay_ms))?;
        let cpu = own_cpu_seconds();
        let start = Instant::now();
        for number in 1..=self.task.loops {
            let due = self.due(start, number);
            if let Some(due) = due {
                self.rest(due)?;
            }
            self.look_in_loop()?;
            if self.control.finished {
                self.ran.stopped = true;
                break;
            }
            if self.control.delay_ms > 0 && number % self.task.delay_every_loops == 0 {
                self.delay()?;
            }
            self.work(number, due)?;
            self.ran.loops = number;
            if number == self.task.mark_loop {
                self.ran.mark_s = Some(start.elapsed().as_secs_f64());
            }
        }
        self.ran.elapsed_s = start.elapsed().as_secs_f64();
        self.ran.cpu_s = own_cpu_seconds().zip(cpu).map(|(end, start)| end - start);
        self.ran.busy += self.client.busy;
        self.ran.latencies = self.latencies.each_ref().map(Histogram::sparse);
        Ok(self.ran)
    }

    /// When loop `number` has to begin, if that is set. The processes' moments lie evenly between each other.
    fn due(&self, start: Instant, number: u64) -> Option<Instant> {
        let interval_ns = self.task.interval_ns?;
        let first_ns = interval_ns * self.task.worker / self.task.processes.max(1);
        Some(start + Duration::from_nanos(first_ns + (number - 1) * interval_ns))
    }

    fn work(&mut self, number: u64, due: Option<Instant>) -> Result<()> {
        if number <= self.task.creating_loops {
            self.timed(Kind::Create, None, |client| client.create_vendor())?;
            self.ran.vendors += 1;
            // Of all processes no two have the same card.
            let card = (number - 1) * self.task.processes + self.task.worker + 1;
            self.timed(Kind::Create, None, |client| client.create_card(card))?;
            self.ran.cards += 1;
            self.timed(Kind::Create, None, |client| client.perform(Operation::Insert))?;
            self.ran.purchases += 1;
            return Ok(());
        }
        // Processes begin at different places of the mix, so that they do not go in step.
        let operation = self.control.mix.operation(number - 1 + self.task.worker);
        self.timed(Kind::of(operation), due, |client| client.perform(operation))?;
        self.ran.purchases += u64::from(operation == Operation::Insert);
        Ok(())
    }

    /// The latency counts from `since`, the moment that the loop was due, else from now.
    fn timed(
        &mut self,
        kind: Kind,
        since: Option<Instant>,
        work: impl Fn(&mut purchase::Client<'connection>) -> Result<()>,
    ) -> Result<()> {
        let since = since.unwrap_or_else(Instant::now);
        while let Err(error) = work(&mut self.client) {
            // Only a read is nothing but a lock that came late; a write waits for its lock by itself.
            if kind != Kind::Read || !is_busy(&error) {
                return Err(error);
            }
            self.ran.busy += 1;
        }
        self.note(kind, since);
        Ok(())
    }

    fn note(&mut self, kind: Kind, since: Instant) {
        let ns = as_ns(since.elapsed());
        self.latencies[kind as usize].add(ns);
        self.ran.sums_ns[kind as usize] += ns;
    }

    /// Reads the control parameters as every loop does.
    fn look_in_loop(&mut self) -> Result<()> {
        let since = Instant::now();
        self.look()?;
        self.note(Kind::Control, since);
        Ok(())
    }

    /// Whether they were changed.
    fn look(&mut self) -> Result<bool> {
        let control = loop {
            match self.read_control.query_row([], control_of) {
                Ok(control) => break control,
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                    self.ran.busy += 1;
                }
                Err(error) => return Err(Error::sqlite("the control table")(error)),
            }
        };
        let changed = control.changes != self.control.changes;
        if changed {
            let effect_ns = unix_ns().saturating_sub(control.written_unix_ns);
            self.ran.effects_ms.push(effect_ns as f64 / 1e6);
        }
        self.control = control;
        Ok(changed)
    }

    fn delay(&mut self) -> Result<()> {
        let start = Instant::now();
        self.rest(start + Duration::from_millis(self.control.delay_ms))?;
        self.ran.delayed_s += start.elapsed().as_secs_f64();
        Ok(())
    }

    /// Waits until `until`, or until somebody changes the control table.
    fn rest(&mut self, until: Instant) -> Result<()> {
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            std::thread::sleep(left.min(LOOK));
            if left > LOOK && self.look()? {
                break;
            }
        }
        Ok(())
    }
}

fn is_busy(error: &Error) -> bool {
    matches!(error, Error::Sqlite { source, .. }
        if source.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Size = Size { vendors: 0, cards: 0, purchases: 0 };

    fn database() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        prepare(&mut connection, NONE, 1).unwrap();
        connection
    }

    fn task() -> Loop {
        Loop {
            synchronous: Synchronous::Normal,
            loops: 100,
            creating_loops: 10,
            start_delay_ms: 0,
            delay_every_loops: 20,
            mark_loop: 70,
            interval_ns: None,
            processes: 1,
            worker: 0,
            seed: vec![1],
        }
    }

    fn begin(connection: &mut Connection, mix: &str, delay_ms: u64) {
        let mix = Some(mix.parse().unwrap());
        let delay_ms = Some(delay_ms);
        change(connection, Change { mix, delay_ms, ..Change::default() }).unwrap();
    }

    fn counts(ran: &Ran) -> [u64; 5] {
        ran.latencies.each_ref().map(|sparse| {
            let mut histogram = Histogram::default();
            histogram.merge_sparse(sparse);
            histogram.count()
        })
    }

    #[test]
    fn the_first_loops_make_rows_and_the_others_follow_the_mix() {
        let mut connection = database();
        begin(&mut connection, "4/3/3", 1);
        let task = task();
        let ran = Hummer::new(&connection, NONE, &task).unwrap().run().unwrap();
        assert_eq!(counts(&ran), [36, 27, 27, 30, 100]);
        assert_eq!((ran.loops, ran.stopped, ran.effects_ms.len()), (100, false, 0));
        assert_eq!((ran.vendors, ran.cards, ran.purchases), (10, 10, 37));
        let found = count(&connection).unwrap();
        assert_eq!((found.vendors, found.cards, found.purchases), (10, 10, 37));
        // Five DELAYs.
        assert!(ran.delayed_s >= 0.005 && ran.elapsed_s > ran.delayed_s, "{ran:?}");
        assert!(ran.mark_s.unwrap() < ran.elapsed_s);
    }

    #[test]
    fn cards_of_two_processes_do_not_meet() {
        let mut connection = database();
        begin(&mut connection, "1/0/0", 0);
        for worker in 0..3 {
            let task = Loop { worker, processes: 3, ..task() };
            Hummer::new(&connection, NONE, &task).unwrap().run().unwrap();
        }
        assert_eq!(count(&connection).unwrap().cards, 30);
    }

    #[test]
    fn a_change_is_gone_by_and_its_age_told_and_stop_stops() {
        let mut connection = database();
        begin(&mut connection, "10/0/0", 0);
        let mix = Some("0/0/10".parse().unwrap());
        let now = change(&mut connection, Change { mix, live: true, ..Change::default() }).unwrap();
        assert_eq!((now.mix.to_string(), now.delay_ms, now.changes), ("0/0/10".into(), 0, 1));
        let first = task();
        let ran = Hummer::new(&connection, NONE, &first).unwrap().run().unwrap();
        assert_eq!(counts(&ran)[..3], [0, 0, 90]);
        assert_eq!(ran.effects_ms.len(), 1);

        let stop = Change { finished: Some(true), live: true, ..Change::default() };
        assert!(change(&mut connection, stop).unwrap().finished);
        let second = Loop { start_delay_ms: 600_000, ..task() };
        let ran = Hummer::new(&connection, NONE, &second).unwrap().run().unwrap();
        assert_eq!((ran.stopped, ran.loops), (true, 0));
    }

    #[test]
    fn at_a_fixed_rate_a_late_loop_counts_from_when_it_was_due() {
        let mut connection = database();
        begin(&mut connection, "0/0/1", 40);
        let task = Loop {
            loops: 20,
            creating_loops: 0,
            delay_every_loops: 10,
            interval_ns: Some(1_000_000),
            ..task()
        };
        let ran = Hummer::new(&connection, NONE, &task).unwrap().run().unwrap();
        let mut inserts = Histogram::default();
        inserts.merge_sparse(&ran.latencies[Kind::Insert as usize]);
        // Loop 10 is held up for 40 ms, and so are the nine behind it, each a millisecond less.
        assert!(inserts.percentile_ns(0.75) > 25e6, "{}", inserts.percentile_ns(0.75));
    }

    #[test]
    fn another_database_has_no_control_table() {
        let mut connection = Connection::open_in_memory().unwrap();
        let error = change(&mut connection, Change::default()).unwrap_err().to_string();
        assert!(error.contains("no control table"), "{error}");
    }
}
