//! Options of `lab purchase`: which cells, how long, on what.

use clap::Args;
use pellucid_lab_measure::common::{processes, seconds, Common};
use pellucid_lab_measure::error::Result;
use pellucid_lab_report::goals::Goals;
use pellucid_lab_report::plan::{self, Cell, Journal, Mix, Setting, Size, Synchronous};
use pellucid_lab_report::record::Limit;

const MAX_ROWS: u64 = 1_000_000_000;

/// Vendor, Card, Purchase: the same work on every side, in rounds of random order.
///
/// Example: lab purchase --sides plain,again,sealed --cells 1-NORMAL-4/3/3,10-FULL-0/5/5
#[derive(Debug, Clone, Args)]
pub struct Purchase {
    #[command(flatten)]
    pub common: Common,
    /// Cells by name (1-NORMAL-4/3/3), `all` of the standard ones, or `peers`: the six of the goals.
    #[arg(long, value_name = "CELL,..", value_delimiter = ',',
          conflicts_with_all = ["processes", "mix", "sync"])]
    pub cells: Vec<String>,
    /// Length of a run.
    #[arg(long, value_name = "S", default_value_t = 3.0, value_parser = seconds)]
    pub seconds: f64,
    /// A cell ends before the last of its --rounds, but not before its tenth, when the intervals of 99 % are no wider than
    /// this either way.
    #[arg(long, value_name = "PERCENT", value_parser = width)]
    pub until_percent: Option<f64>,
    /// The sides of a round work in turns of this length, in an order that is drawn, and not a whole run one behind the
    /// other: what others on the machine cost then hurts all sides alike. With one process, under taskset(1): processors differ too.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(2..=1000))]
    pub turn_ms: Option<u64>,
    /// Instead of a length: operations of each process.
    #[arg(long, value_name = "N", conflicts_with_all = ["seconds", "turn_ms"])]
    pub operations: Option<std::num::NonZeroU64>,
    /// Numbers of processes.
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_values_t = plan::PROCESSES,
          value_parser = processes)]
    pub processes: Vec<usize>,
    /// Mixes of reads, updates and inserts.
    #[arg(long, value_name = "R/U/I,..", value_delimiter = ',', default_values_t = plan::MIXES)]
    pub mix: Vec<Mix>,
    /// PRAGMA synchronous.
    #[arg(long, value_delimiter = ',', ignore_case = true, default_value = "NORMAL,FULL")]
    pub sync: Vec<Synchronous>,
    /// PRAGMA journal_mode.
    #[arg(long, ignore_case = true, default_value = "WAL")]
    pub journal: Journal,
    /// PRAGMA page_size, bytes.
    #[arg(long, value_name = "BYTES", default_value_t = plan::PAGE_SIZE_BYTES, value_parser = page_size)]
    pub page_size: u32,
    /// PRAGMA cache_size of every connection.
    #[arg(long, value_name = "KIB", default_value_t = plan::CACHE_KIB,
          value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    pub cache_kib: u32,
    /// Exit with 1 if the median ratio of any cell is below this.
    #[arg(long, value_name = "RATIO")]
    pub minimum: Option<f64>,
    /// Vendors of a fresh database.
    #[arg(long, default_value_t = plan::SIZE.vendors, value_parser = clap::value_parser!(u64).range(1..=MAX_ROWS))]
    pub vendors: u64,
    /// Cards of a fresh database.
    #[arg(long, default_value_t = plan::SIZE.cards, value_parser = clap::value_parser!(u64).range(1..=MAX_ROWS))]
    pub cards: u64,
    /// Purchases of a fresh database.
    #[arg(long, default_value_t = plan::SIZE.purchases, value_parser = clap::value_parser!(u64).range(..=MAX_ROWS))]
    pub purchases: u64,
}

impl Purchase {
    /// The cells that were asked for.
    ///
    /// # Errors
    /// `Error::Invalid` for a name that no cell has.
    pub fn plan(&self) -> Result<Vec<Cell>> {
        if self.cells.is_empty() {
            Ok(plan::grid(&self.processes, &self.sync, &self.mix))
        } else {
            Ok(plan::choose(&plan::standard_cells(), &self.cells, &Goals::read().peer_cells)?)
        }
    }

    /// When a run ends.
    pub fn limit(&self) -> Limit {
        self.operations.map_or(Limit::Seconds(self.seconds), |n| Limit::Operations(n.get()))
    }

    /// What all cells have in common.
    pub fn setting(&self) -> Setting {
        Setting {
            journal: self.journal,
            page_size_bytes: self.page_size,
            cache_kib: self.cache_kib,
            size: Size { vendors: self.vendors, cards: self.cards, purchases: self.purchases },
        }
    }
}

fn width(text: &str) -> std::result::Result<f64, String> {
    let percent = text.parse().ok().filter(|percent| (0.01..=100.0).contains(percent));
    percent.ok_or_else(|| "not 0.01 to 100 percent".into())
}

fn page_size(text: &str) -> std::result::Result<u32, String> {
    let good = |bytes: &u32| bytes.is_power_of_two() && (512..=65_536).contains(bytes);
    text.parse().ok().filter(good).ok_or_else(|| "not a power of two from 512 to 65536".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Purchase,
    }

    fn options(line: &str) -> std::result::Result<Purchase, clap::Error> {
        let words = ["purchase"].into_iter().chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.options)
    }

    #[test]
    fn the_default_plan_is_the_24_cells_in_ten_rounds() {
        let options = options("").unwrap();
        assert_eq!((options.plan().unwrap(), options.common.rounds), (plan::standard_cells(), 10));
        assert_eq!(options.setting().suffix(), "");
        assert_eq!(plan::standard_cells().len(), 24);
    }

    #[test]
    fn lists_make_cells_and_nonsense_is_refused() {
        let options = options("--processes 2 --mix 4/3/3,1/0/0 --sync full").unwrap();
        let plan = options.plan().unwrap();
        assert_eq!(plan.len(), 2);
        assert_eq!(plan[1].to_string(), "2-FULL-1/0/0");
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for line in [
            "--rounds 4",
            "--seconds 0",
            "--seconds NaN",
            "--turn-ms 1",
            "--turn-ms 5 --operations 100",
            "--until-percent 0",
            "--until-percent NaN",
            "--processes 0",
            "--mix 1/2",
            "--page-size 1000",
            "--sides plain,other",
            "--sides plain,sealed=",
            "--cells all --mix 4/3/3",
        ] {
            assert!(options(line).is_err(), "{line}");
        }
    }
}
