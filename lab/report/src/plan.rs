//! What a session measures: cells, each a point of the plan with a name.

mod mix;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

pub use mix::{Mix, Operation};

/// SQLite's default.
pub const PAGE_SIZE_BYTES: u32 = 4096;
/// SQLite's default (`PRAGMA cache_size` of -2000), said aloud on every side.
pub const CACHE_KIB: u32 = 2000;
/// Of the database that whole-database work is done on.
pub const WHOLE_MIB: u64 = 1024;
/// Of the database whose keys are changed under load.
pub const LOAD_MIB: u64 = 2048;
/// Numbers of processes of the standard cells.
pub const PROCESSES: [usize; 2] = [1, 10];
/// Mixes of the standard cells.
pub const MIXES: [Mix; 6] = [
    Mix::of(10, 0, 0),
    Mix::of(8, 1, 1),
    Mix::of(4, 3, 3),
    Mix::of(0, 5, 5),
    Mix::of(0, 10, 0),
    Mix::of(0, 0, 10),
];
/// Rows of the standard setting.
pub const SIZE: Size = Size { vendors: 500, cards: 10_000, purchases: 100_000 };

/// SQLite's `PRAGMA synchronous`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "UPPERCASE")]
#[value(rename_all = "UPPER")]
pub enum Synchronous {
    Normal,
    Full,
}

/// SQLite's `PRAGMA journal_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "UPPERCASE")]
#[value(rename_all = "UPPER")]
pub enum Journal {
    Wal,
    Delete,
}

/// The setting that no cell names.
pub const STANDARD: Setting = Setting {
    journal: Journal::Wal,
    page_size_bytes: PAGE_SIZE_BYTES,
    cache_kib: CACHE_KIB,
    size: SIZE,
};

/// What all cells of a session have in common, on every side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    pub journal: Journal,
    pub page_size_bytes: u32,
    pub cache_kib: u32,
    pub size: Size,
}

/// Rows of a fresh database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    pub vendors: u64,
    pub cards: u64,
    pub purchases: u64,
}

/// One point of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    pub processes: usize,
    pub synchronous: Synchronous,
    /// Reads, updates, inserts.
    pub mix: Mix,
}

impl Setting {
    /// What a cell's name says about the setting: nothing if it is the standard one, else how it
    /// differs.
    pub fn suffix(&self) -> String {
        let mut suffix = String::new();
        let mut add = |differs: bool, text: String| {
            if differs {
                suffix.push('-');
                suffix.push_str(&text);
            }
        };
        let rows = self.size;
        add(self.journal != Journal::Wal, self.journal.to_string());
        add(self.page_size_bytes != PAGE_SIZE_BYTES, format!("page{}", self.page_size_bytes));
        add(self.cache_kib != CACHE_KIB, format!("cache{}", self.cache_kib));
        add(rows != SIZE, format!("rows{}.{}.{}", rows.vendors, rows.cards, rows.purchases));
        suffix
    }
}

/// `10-NORMAL-4/3/3`: processes, `synchronous`, mix.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.processes, self.synchronous, self.mix)
    }
}

impl fmt::Display for Synchronous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Synchronous::Normal => "NORMAL",
            Synchronous::Full => "FULL",
        })
    }
}

impl fmt::Display for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Journal::Wal => "WAL",
            Journal::Delete => "DELETE",
        })
    }
}

/// Every combination, in the order of a table.
pub fn grid(processes: &[usize], synchronous: &[Synchronous], mixes: &[Mix]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &processes in processes {
        for &synchronous in synchronous {
            cells.extend(mixes.iter().map(|&mix| Cell { processes, synchronous, mix }));
        }
    }
    cells
}

/// The 24 that the project has goals for; also the default plan.
pub fn standard_cells() -> Vec<Cell> {
    grid(&PROCESSES, &[Synchronous::Normal, Synchronous::Full], &MIXES)
}

/// The cells of `all` that `names` name, each once; the name `all` stands for all of them, and `peers` for those of `peers`.
///
/// # Errors
/// [`Error::Invalid`] for a name that is none of them.
pub fn choose(all: &[Cell], names: &[String], peers: &[String]) -> Result<Vec<Cell>> {
    let mut chosen = vec![false; all.len()];
    let mut choose = |name: &str| {
        let place = all.iter().position(|cell| cell.to_string() == name);
        place.map(|place| chosen[place] = true).ok_or_else(|| {
            let names: Vec<_> = all.iter().map(Cell::to_string).collect();
            Error::invalid(format!("no cell `{name}`; there are: {}", names.join(" ")))
        })
    };
    for name in names {
        match name.as_str() {
            "all" => all.iter().try_for_each(|cell| choose(&cell.to_string()))?,
            "peers" => peers.iter().try_for_each(|name| choose(name))?,
            name => choose(name)?,
        }
    }
    Ok(all.iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(cell, _)| *cell).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::Goals;

    #[test]
    fn cells_are_chosen_by_name_once_and_in_order() {
        let goals = Goals::read();
        let choose = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).into()).collect();
            choose(&standard_cells(), &names, &goals.peer_cells)
                .map(|cells| cells.iter().map(Cell::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(
            choose(&["10-FULL-4/3/3", "1-NORMAL-10/0/0", "10-FULL-4/3/3"]).unwrap(),
            "1-NORMAL-10/0/0 10-FULL-4/3/3"
        );
        assert_eq!(choose(&["all"]).unwrap().split(' ').count(), 24);
        assert_eq!(choose(&["peers"]).unwrap().split(' ').count(), 6);
        let error = choose(&["3-FULL-4/3/3"]).unwrap_err().to_string();
        assert!(error.contains("10-NORMAL-4/3/3"), "{error}");
    }

    #[test]
    fn a_setting_names_what_is_not_standard() {
        assert_eq!(STANDARD.suffix(), "");
        let other = Setting { journal: Journal::Delete, page_size_bytes: 1024, ..STANDARD };
        assert_eq!(other.suffix(), "-DELETE-page1024");
        let size = Size { cards: 5, ..SIZE };
        assert_eq!(Setting { size, ..STANDARD }.suffix(), "-rows500.5.100000");
    }
}
