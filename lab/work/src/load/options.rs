//! Options of `lab scan-load` and `lab backup-load`: the database, the load on it, and how long it is watched.

use clap::Args;
use pellucid_lab_measure::common::{processes, seconds, Common};
use pellucid_lab_report::plan::{self, Journal};

use crate::scenario::application::{self, Role};

/// The database, the load on it, and how long it is watched.
#[derive(Debug, Clone, Args)]
pub struct LoadOptions {
    /// --rounds does nothing here: each phase is once on each side.
    #[command(flatten)]
    pub common: Common,
    /// Length of the database.
    #[arg(long, value_name = "MIB", default_value_t = plan::LOAD_MIB, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub size_mib: u64,
    /// PRAGMA journal_mode.
    #[arg(long, ignore_case = true, default_value = "WAL")]
    pub journal: Journal,
    /// Algorithms that the key is changed to, one after the other.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', default_value = "AES_128,AES_256")]
    pub algorithms: Vec<String>,
    /// Processes that write.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = processes)]
    pub writers: usize,
    /// Processes that read.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = processes)]
    pub readers: usize,
    /// What a writer waits between two transactions, on average.
    #[arg(long, value_name = "US", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(..=10_000_000))]
    pub write_pause_us: u64,
    /// What a reader waits between two reads, on average.
    #[arg(long, value_name = "US", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(..=10_000_000))]
    pub read_pause_us: u64,
    /// Of every client.
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(..=600_000))]
    pub busy_timeout_ms: u64,
    /// Length of a phase without a scan.
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = seconds)]
    pub quiet_s: f64,
    /// Share of the database after which the first scan is suspended.
    #[arg(long, value_name = "SHARE", default_value_t = 0.4, value_parser = share)]
    pub suspend_at: f64,
    /// How long the plain rewrite holds the write lock at a time: as a scan does.
    #[arg(long, value_name = "US", default_value_t = 4_000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    pub hold_us: u64,
}

impl LoadOptions {
    /// Writers first.
    pub fn tasks(&self, orders: u64) -> Vec<application::Task> {
        let writers = std::iter::repeat_n((Role::Writer, self.write_pause_us), self.writers);
        let readers = std::iter::repeat_n((Role::Reader, self.read_pause_us), self.readers);
        let (seed, busy_timeout_ms) = (self.common.seed, self.busy_timeout_ms);
        (0..)
            .zip(writers.chain(readers))
            .map(|(client, (role, pause_us))| application::Task {
                role,
                client,
                seed,
                orders,
                pause_us,
                busy_timeout_ms,
            })
            .collect()
    }
}

fn share(text: &str) -> std::result::Result<f64, String> {
    let share = text.parse().ok().filter(|s| (0.0..=0.9).contains(s));
    share.ok_or_else(|| "not 0 to 0.9".into())
}
