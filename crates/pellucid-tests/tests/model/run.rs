//! Runs a script on both sides and finds the first difference.

use std::fmt;
use std::path::PathBuf;

use crate::alike;
use crate::allowed::{is_broken, is_fault, neutral};
use crate::connection::{Outcome, Value};
use crate::script::{Script, Step, CONNECTIONS};
use crate::world::World;

/// Where steps come from: a script, or the generator, which looks at what became of the last one.
pub trait Source {
    fn next(&mut self) -> Option<Step>;
    fn told(&mut self, _step: &Step, _outcome: &Outcome) {}
}

impl Source for std::vec::IntoIter<Step> {
    fn next(&mut self) -> Option<Step> {
        Iterator::next(self)
    }
}

/// A script ends when its files have grown beyond this.
const MOST_BYTES: u64 = 32 << 20;
/// One statement cannot get further: a write beyond it fails, and the script with it.
const MOST_FILE_BYTES: u64 = 128 << 20;
/// Nor can SQLite have more memory than this, on both sides together.
const MOST_HEAP_BYTES: i64 = 512 << 20;

/// Where the two sides did not answer alike.
#[derive(Debug, Clone)]
pub struct Difference {
    /// What kind of difference; shrinking keeps it.
    pub kind: String,
    pub step: Step,
    pub plain: String,
    pub sealed: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, step, plain, sealed } = self;
        write!(f, "{kind}\n  step   {step}\n  plain  {plain}\n  sealed {sealed}")
    }
}

/// What became of a run.
#[derive(Debug)]
pub struct Run {
    pub steps: Vec<Step>,
    /// How many of them SQLite carried out without an error.
    pub succeeded: usize,
    pub difference: Option<Box<Difference>>,
}

/// What a run needs: a place for files, and the VFS of the sealed side.
pub struct Bench {
    directory: tempfile::TempDir,
    key: PathBuf,
    vfs: &'static str,
    before_each: Box<dyn Fn()>,
}

impl Bench {
    pub fn new(vfs: &'static str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        pellucid_bundled::register().unwrap();
        alike::register();
        bound();
        // In memory where that is to be had: nothing here depends on a disk.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let key = directory.path().join("key");
        std::fs::write(&key, [7; 32]).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        // The instance of whoever runs the tests would expect databases at their paths.
        std::env::set_var("PELLUCID_HOME", directory.path().join("no instance"));
        Self { directory, key, vfs, before_each: Box::new(|| ()) }
    }

    /// Calls `call` before each run.
    pub fn before_each(self, call: impl Fn() + 'static) -> Self {
        Self { before_each: Box::new(call), ..self }
    }

    /// Runs what `source` gives on both sides, up to the first difference.
    pub fn run(&self, source: &mut dyn Source, same_pages: bool) -> Run {
        (self.before_each)();
        // Names of one length: they stand in super-journals.
        let place = |name: &str| -> PathBuf {
            let path = self.directory.path().join(name);
            let _ = std::fs::remove_dir_all(&path);
            path
        };
        let mut pair = Pair {
            plain: World::plain(place("plain_"), same_pages),
            sealed: World::sealed(place("sealed"), self.vfs, &self.key, same_pages),
            same_pages,
        };
        let trace = std::env::var_os("PELLUCID_MODEL_TRACE").is_some();
        let mut run = Run { steps: Vec::new(), succeeded: 0, difference: None };
        while let Some(step) = source.next() {
            run.steps.push(step.clone());
            if trace {
                println!("{step}");
            }
            match pair.step(&step) {
                Ok(outcome) => {
                    if trace {
                        let rows = outcome.rows.len();
                        println!("    {} {} {rows} rows", outcome.code, outcome.message);
                    }
                    run.succeeded += usize::from(outcome.is_ok());
                    if pair.plain.is_undefined() || pair.plain.size() > MOST_BYTES {
                        return run;
                    }
                    source.told(&step, &outcome);
                }
                Err(difference) => {
                    run.difference = Some(difference);
                    return run;
                }
            }
        }
        run.difference = pair.compare_content().err();
        run
    }

    pub fn replay(&self, script: &Script) -> Run {
        self.run(&mut script.steps.clone().into_iter(), script.same_pages)
    }
}

/// Shrinking takes conditions away, and what has no end then must not fill the machine.
fn bound() {
    crate::limits::limit_files(MOST_FILE_BYTES);
    // SAFETY: a plain call.
    unsafe { rusqlite::ffi::sqlite3_hard_heap_limit64(MOST_HEAP_BYTES) };
}

#[test]
fn what_has_no_end_is_stopped() {
    let script = "pages same\nopen 0 a.db\nsql 0 CREATE TABLE r0(c)\n\
                  sql 0 INSERT INTO r0 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) \
                  SELECT zeroblob(1000000) FROM n\n";
    let run = Bench::new("pellucid").replay(&script.parse().unwrap());
    assert_eq!(run.difference.unwrap().kind, "both sides fail with 778");
}

struct Pair {
    plain: World,
    sealed: World,
    same_pages: bool,
}

impl Pair {
    /// One step on both sides; what both answered.
    fn step(&mut self, step: &Step) -> Result<Outcome, Box<Difference>> {
        let plain = neutral(step, self.plain.run(step), self.same_pages);
        let sealed = neutral(step, self.sealed.run(step), self.same_pages);
        let differ = |kind: String| Difference {
            kind,
            step: step.clone(),
            plain: short(&plain, &sealed),
            sealed: short(&sealed, &plain),
        };
        if self.plain.is_undefined() && self.sealed.is_undefined() {
            return Ok(plain);
        }
        let kind = match () {
            () if plain.code != sealed.code => format!("codes {} and {}", plain.code, sealed.code),
            () if plain.message != sealed.message => "messages".to_owned(),
            () if plain.columns != sealed.columns => "columns".to_owned(),
            () if plain.rows != sealed.rows => "rows".to_owned(),
            () if plain.counters != sealed.counters => "counters".to_owned(),
            () if is_fault(&plain) => format!("both sides fail with {}", plain.code),
            () if is_broken(step, &plain) => "both sides are broken".to_owned(),
            () => return Ok(plain),
        };
        Err(Box::new(differ(kind)))
    }

    /// What is left at the end: as the open connections see it, and as new ones do.
    fn compare_content(&mut self) -> Result<(), Box<Difference>> {
        for on in 0..CONNECTIONS {
            let open = [self.plain.rest(on), self.sealed.rest(on)];
            if open == [true; 2] {
                self.step(&Step::Sql(on, "ROLLBACK".to_owned()))?;
            }
        }
        if self.plain.is_undefined() {
            return Ok(());
        }
        for on in 0..CONNECTIONS {
            self.compare_dumps(on)?;
        }
        for on in 0..CONNECTIONS {
            self.step(&Step::Close(on))?;
        }
        let (plain, sealed) = (self.plain.files(), self.sealed.files());
        if plain != sealed {
            return Err(Box::new(Difference {
                kind: "files".to_owned(),
                step: Step::Close(0),
                plain: format!("{plain:?}"),
                sealed: format!("{sealed:?}"),
            }));
        }
        for file in plain.iter().filter(|file| file.ends_with(".db")) {
            self.step(&Step::Open(0, file.clone()))?;
            self.compare_dumps(0)?;
            let check = Step::Sql(0, "PRAGMA integrity_check".to_owned());
            let checked = self.step(&check)?;
            if checked.rows != [[Value::Text(b"ok".to_vec())]] {
                let found = format!("{:?}", checked.rows);
                let (plain, sealed) = (found.clone(), found);
                let kind = "both sides are broken at the end".to_owned();
                return Err(Box::new(Difference { kind, step: check, plain, sealed }));
            }
            self.step(&Step::Serialize(0, "main".to_owned()))?;
            self.step(&Step::Close(0))?;
        }
        Ok(())
    }

    /// The schema and every row of every table of the main database.
    fn compare_dumps(&mut self, on: usize) -> Result<(), Box<Difference>> {
        let mut ask = |sql: String| self.step(&Step::Sql(on, sql));
        ask("SELECT type, name, tbl_name, sql FROM sqlite_schema".to_owned())?;
        let tables =
            "SELECT name FROM sqlite_schema WHERE type='table' AND sql NOT LIKE 'CREATE V%'";
        for row in ask(tables.to_owned())?.rows {
            let [Value::Text(name)] = &row[..] else { continue };
            ask(format!("SELECT * FROM main.\"{}\"", String::from_utf8_lossy(name)))?;
        }
        Ok(())
    }
}

/// An outcome beside another, for people: the parts that differ, cut to a readable length.
fn short(this: &Outcome, other: &Outcome) -> String {
    let mut parts = Vec::new();
    if this.code != 0 || !this.message.is_empty() {
        parts.push(format!("code {} `{}`", this.code, this.message));
    }
    if this.columns != other.columns {
        parts.push(format!("columns {:?}", this.columns));
    }
    if this.rows != other.rows {
        let at = this.rows.iter().zip(&other.rows).position(|(a, b)| a != b);
        let at = at.unwrap_or(this.rows.len().min(other.rows.len()));
        let row =
            this.rows.get(at).map_or("no row".to_owned(), |row| shown(row, other.rows.get(at)));
        parts.push(format!("{} rows, row {at}: {row}", this.rows.len()));
    }
    if this.counters != other.counters {
        parts.push(format!("{:?}", this.counters));
    }
    match parts.is_empty() {
        true => format!("{} rows: {:.300}", this.rows.len(), format!("{:?}", this.rows)),
        false => parts.join("; "),
    }
}

fn shown(row: &[Value], other: Option<&Vec<Value>>) -> String {
    let differs = |n: usize| other.is_none_or(|other| other.get(n) != row.get(n));
    let shown = row.iter().enumerate().filter(|(n, _)| differs(*n)).map(|(n, value)| {
        let other = other.and_then(|other| other.get(n));
        let text = match (value, other) {
            (Value::Blob(a), Some(Value::Blob(b))) | (Value::Text(a), Some(Value::Text(b))) => {
                let at = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
                let differing = a.iter().zip(b).filter(|(a, b)| a != b).count();
                let part = &a[at..(at + 24).min(a.len())];
                format!("{} bytes, {differing} differ; from {at}: {part:02x?}", a.len())
            }
            _ => format!("{value:?}"),
        };
        format!("column {n}: {text:.200}")
    });
    shown.collect::<Vec<_>>().join(", ")
}
