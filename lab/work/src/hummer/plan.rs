//! What hummer measures: the scenario, its cells, and how long they take.

use std::fmt;
use std::path::Path;

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_report::plan::{Journal, Mix, Setting, Size, Synchronous};
use pellucid_lab_report::record::Parameters;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const SCENARIO: &str = include_str!("../../../scenarios/hummer.toml");

/// Parameters, as lab/scenarios/hummer.toml has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub processes: u64,
    pub loops: u64,
    pub creating_loops: u64,
    pub start_delay_ms: u64,
    pub delay_every_loops: u64,
    pub delay_ms: u64,
    pub cpu_at_loop: u64,
    pub cpu_series_rounds: usize,
    pub journal: Journal,
    pub synchronous: Synchronous,
    pub page_size_bytes: u32,
    pub cache_kib: u32,
    pub mixes: Vec<Mix>,
    pub principal_mixes: Vec<Mix>,
    pub settings: Settings,
    pub rate: Rate,
}

/// Other settings that the principal mixes are run in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub journal: Vec<Journal>,
    pub synchronous: Vec<Synchronous>,
    pub cache_kib: Vec<u32>,
}

/// The fixed rate of loops, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Of all processes together.
    pub loops_per_s: f64,
    pub seconds: f64,
}

/// What kind of run a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// With the DELAYs of the article.
    Elapsed,
    /// Without them.
    Busy,
    /// The same in another setting.
    Settings,
    /// Loops that begin at set moments.
    Rate,
}

/// One cell: a kind of run, a mix and a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    pub piece: Piece,
    pub mix: Mix,
    pub journal: Journal,
    pub synchronous: Synchronous,
    pub cache_kib: u32,
    /// What is different from the scenario's own setting.
    different: Different,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Different {
    Nothing,
    Journal,
    Synchronous,
    Cache,
}

impl Scenario {
    /// The one at `path`, else the article's, with `scale` of its loops, rows and seconds.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is none.
    pub fn read(path: Option<&Path>, scale: f64) -> Result<Self> {
        let name =
            path.map_or("lab/scenarios/hummer.toml".into(), |path| path.display().to_string());
        let text = match path {
            Some(path) => std::fs::read_to_string(path).map_err(Error::io(name.clone()))?,
            None => SCENARIO.into(),
        };
        let scenario: Self = toml::from_str(&text)
            .map_err(|error| Error::invalid(format!("scenario {name}: {error}")))?;
        scenario.check().map_err(|what| Error::invalid(format!("scenario {name}: {what}")))?;
        Ok(scenario.scaled(scale))
    }

    fn check(&self) -> std::result::Result<(), &'static str> {
        let good = [
            ((1..=1000).contains(&self.processes), "processes: not 1 to 1000"),
            (self.creating_loops >= 1, "creating_loops: nothing to read and update"),
            (self.loops > self.creating_loops, "loops: not more than creating_loops"),
            (self.loops <= 1_000_000_000, "loops: more than 1,000,000,000"),
            (self.delay_every_loops >= 1, "delay_every_loops: 0"),
            (self.page_size_bytes.is_power_of_two(), "page_size_bytes: not a power of two"),
            ((512..=65_536).contains(&self.page_size_bytes), "page_size_bytes: not 512 to 65536"),
            (!self.mixes.is_empty(), "mixes: none"),
            (self.rate.loops_per_s >= 1.0, "rate: less than one loop per second"),
            ((0.01..=86_400.0).contains(&self.rate.seconds), "rate: not 0.01 to 86400 seconds"),
        ];
        good.into_iter().find(|(good, _)| !good).map_or(Ok(()), |(_, what)| Err(what))
    }

    fn scaled(mut self, scale: f64) -> Self {
        let of = |count: u64| ((count as f64 * scale).round() as u64).max(1);
        self.creating_loops = of(self.creating_loops);
        self.loops = of(self.loops).max(self.creating_loops + 1);
        self.cpu_at_loop = of(self.cpu_at_loop);
        self.rate.seconds *= scale;
        self
    }

    /// For the session's record: every field by its name.
    pub fn parameters(&self) -> Parameters {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields.into_iter().collect(),
            // It is a struct; nothing else comes of one.
            _ => Parameters::new(),
        }
    }

    /// Rows of each table after the first loops of every process.
    pub fn rows(&self) -> u64 {
        self.processes * self.creating_loops
    }

    /// All cells of the scenario, in their order.
    pub fn cells(&self) -> Vec<Cell> {
        let cell = |piece, mix| Cell {
            piece,
            mix,
            journal: self.journal,
            synchronous: self.synchronous,
            cache_kib: self.cache_kib,
            different: Different::Nothing,
        };
        let principal = |piece| self.principal_mixes.iter().map(move |mix| cell(piece, *mix));
        let mut cells: Vec<Cell> = principal(Piece::Elapsed).collect();
        cells.extend(self.mixes.iter().map(|mix| cell(Piece::Busy, *mix)));
        for &journal in &self.settings.journal {
            let different = Different::Journal;
            cells.extend(principal(Piece::Settings).map(|cell| Cell {
                journal,
                different,
                ..cell
            }));
        }
        for &synchronous in &self.settings.synchronous {
            let different = Different::Synchronous;
            cells.extend(principal(Piece::Settings).map(|cell| Cell {
                synchronous,
                different,
                ..cell
            }));
        }
        for &cache_kib in &self.settings.cache_kib {
            let different = Different::Cache;
            cells.extend(principal(Piece::Settings).map(|cell| Cell {
                cache_kib,
                different,
                ..cell
            }));
        }
        cells.extend(principal(Piece::Rate));
        cells
    }

    /// The cells that `names` name, each once, in their order.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that is no cell's and no piece's.
    pub fn choose(&self, names: &[String]) -> Result<Vec<Cell>> {
        let all = self.cells();
        let named = |cell: &Cell, name: &str| {
            name == "all" || cell.piece.name() == name || cell.to_string() == name
        };
        for name in names {
            if !all.iter().any(|cell| named(cell, name)) {
                let cells: Vec<_> = all.iter().map(Cell::to_string).collect();
                return Err(Error::invalid(format!(
                    "no cell or piece `{name}`; there are: all elapsed busy settings rate {}",
                    cells.join(" ")
                )));
            }
        }
        Ok(all.into_iter().filter(|cell| names.iter().any(|name| named(cell, name))).collect())
    }

    /// What a connection of `cell` is set to, on a database that holds `size`.
    pub fn setting(&self, cell: &Cell, size: Size) -> Setting {
        Setting {
            journal: cell.journal,
            page_size_bytes: self.page_size_bytes,
            cache_kib: cell.cache_kib,
            size,
        }
    }

    /// Rows that the database of `cell` holds before a run.
    pub fn size(&self, cell: &Cell) -> Size {
        let rows = if cell.piece == Piece::Rate { self.rows() } else { 0 };
        Size { vendors: rows, cards: rows, purchases: rows }
    }

    /// Loops of each process in `cell`.
    pub fn loops(&self, cell: &Cell) -> u64 {
        if cell.piece == Piece::Rate {
            ((self.rate.loops_per_s * self.rate.seconds / self.processes as f64) as u64).max(1)
        } else {
            self.loops
        }
    }

    /// About the seconds of one run, copying and checking included.
    pub fn estimate(&self, cell: &Cell) -> f64 {
        let cost = Cost::of(cell);
        let [reads, updates, inserts] = cell.mix.parts().map(f64::from);
        let mean_us = (reads * cost.read_us + (updates + inserts) * cost.write_us)
            / (reads + updates + inserts);
        let all = self.processes as f64;
        let (loops, creating) = (self.loops as f64, self.creating_loops as f64);
        let creating_us = creating * 3.0 * cost.write_us;
        let busy_s =
            all * (loops * cost.control_us + creating_us + (loops - creating) * mean_us) / 1e6;
        let rows = all * (loops + 3.0 * creating);
        let around_s = AROUND_A_RUN_S + rows * CHECK_US_PER_ROW / 1e6;
        around_s
            + match cell.piece {
                Piece::Elapsed => {
                    let delays_s =
                        (self.loops / self.delay_every_loops * self.delay_ms) as f64 / 1e3;
                    let start_s = self.start_delay_ms as f64 / 1e3;
                    // While one process sleeps, another works.
                    start_s + busy_s.max(delays_s + busy_s * OVERLAP)
                }
                Piece::Busy | Piece::Settings => busy_s,
                Piece::Rate => self.rate.seconds,
            }
    }
}

/// A copy, workers, the check: what a run takes beside its loops.
const AROUND_A_RUN_S: f64 = 1.2;
const CHECK_US_PER_ROW: f64 = 1.5;
/// Share of the work that is not done while others are in a DELAY.
const OVERLAP: f64 = 0.3;

/// What each thing costs where ten processes do it at once on two cores, for an estimate.
#[derive(Debug, Clone, Copy)]
struct Cost {
    control_us: f64,
    read_us: f64,
    write_us: f64,
}

impl Cost {
    fn of(cell: &Cell) -> Self {
        let (control_us, read_us, write_us) = match (cell.journal, cell.synchronous) {
            (Journal::Wal, Synchronous::Normal) => (5.0, 5.0, 30.0),
            (Journal::Wal, Synchronous::Full) => (5.0, 5.0, 180.0),
            (Journal::Delete, _) => (20.0, 20.0, 850.0),
        };
        Self { control_us, read_us, write_us }
    }
}

impl Piece {
    /// The name that its cells begin with.
    pub fn name(self) -> &'static str {
        match self {
            Piece::Elapsed => "elapsed",
            Piece::Busy => "busy",
            Piece::Settings => "settings",
            Piece::Rate => "rate",
        }
    }
}

/// `elapsed-4/3/3`, `busy-4/3/3`, `busy-4/3/3-DELETE`, `busy-4/3/3-cache256`, `rate-4/3/3`.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let piece = if self.piece == Piece::Settings { Piece::Busy } else { self.piece };
        write!(f, "{}-{}", piece.name(), self.mix)?;
        match self.different {
            Different::Nothing => Ok(()),
            Different::Journal => write!(f, "-{}", self.journal),
            Different::Synchronous => write!(f, "-{}", self.synchronous),
            Different::Cache => write!(f, "-cache{}", self.cache_kib),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(scenario: &Scenario, names: &[&str]) -> Result<Vec<String>> {
        let names: Vec<_> = names.iter().map(|name| (*name).into()).collect();
        Ok(scenario.choose(&names)?.iter().map(Cell::to_string).collect())
    }

    #[test]
    fn the_articles_scenario_is_compiled_in() {
        let scenario = Scenario::read(None, 1.0).unwrap();
        assert_eq!((scenario.processes, scenario.loops), (10, 100_000));
        assert_eq!((scenario.creating_loops, scenario.rows()), (10_000, 100_000));
        assert_eq!((scenario.start_delay_ms, scenario.delay_ms), (5000, 1000));
        assert_eq!((scenario.cpu_at_loop, scenario.mixes.len()), (70_000, 16));
        for mix in &scenario.principal_mixes {
            assert!(scenario.mixes.contains(mix), "{mix}");
        }
        assert!(scenario.mixes.iter().all(|mix| mix.parts().iter().sum::<u32>() == 10));
        assert_eq!(scenario.parameters()["cache_kib"], 2000);
        assert_eq!(scenario.cells().len(), 3 + 16 + 4 * 3 + 3);
    }

    #[test]
    fn cells_are_chosen_by_name_and_by_piece() {
        let scenario = Scenario::read(None, 1.0).unwrap();
        assert_eq!(
            names(&scenario, &["elapsed"]).unwrap(),
            ["elapsed-4/3/3", "elapsed-10/0/0", "elapsed-0/5/5"]
        );
        assert_eq!(
            names(&scenario, &["busy-0/5/5-cache256", "busy-4/3/3", "busy-4/3/3-DELETE"]).unwrap(),
            ["busy-4/3/3", "busy-4/3/3-DELETE", "busy-0/5/5-cache256"]
        );
        assert_eq!(names(&scenario, &["settings"]).unwrap().len(), 12);
        let mut all = names(&scenario, &["all"]).unwrap();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 34, "no name is there twice");
        let error = names(&scenario, &["busy-1/1/1"]).unwrap_err().to_string();
        assert!(error.contains("rate-0/5/5"), "{error}");
    }

    #[test]
    fn a_scale_shrinks_loops_and_rows_and_the_estimate() {
        let (one, tenth) = (Scenario::read(None, 1.0).unwrap(), Scenario::read(None, 0.1).unwrap());
        assert_eq!((tenth.loops, tenth.creating_loops, tenth.cpu_at_loop), (10_000, 1000, 7000));
        assert_eq!((tenth.delay_ms, tenth.processes), (1000, 10));
        for (one_cell, tenth_cell) in one.cells().iter().zip(&tenth.cells()) {
            assert!(one.estimate(one_cell) > tenth.estimate(tenth_cell), "{one_cell}");
        }
        let elapsed = one.cells()[0];
        assert!(one.estimate(&elapsed) > 105.0);
        assert_eq!(one.loops(&elapsed), 100_000);
        assert_eq!(one.loops(&one.cells()[33]), 8000);
        assert_eq!(Scenario::read(None, 0.00001).unwrap().loops, 2);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_field() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("other.toml");
        for (from, to, what) in [
            ("delay_every_loops = 1_000", "delay_every_loops = 0", "delay_every_loops"),
            ("processes = 10", "processes = 10\nprocess = 1", "process"),
            ("creating_loops = 10_000", "creating_loops = 100_000", "loops"),
            ("\"0/0/10\"", "\"0/0/0\"", "READS/UPDATES/INSERTS"),
        ] {
            std::fs::write(&path, SCENARIO.replace(from, to)).unwrap();
            let error = Scenario::read(Some(&path), 1.0).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains("other.toml"), "{error}");
        }
    }
}
