//! What a run counted and found.

use crate::class::Hits;
use crate::cuts::Found;
use crate::rows::Wrong;

/// Counts of one run, and what it found wrong.
#[derive(Debug, Default)]
pub struct Tally {
    pub images: u64,
    pub injections: u64,
    /// Hits of images, and of injections.
    pub lost_from: Hits,
    pub struck: Hits,
    /// A state older than the last durable one.
    pub lost: u64,
    /// A state that never was, or damage.
    pub mixed: u64,
    /// SQLite or the shim could not open or read it.
    pub refused: u64,
    /// A fault that nobody was told of, or that went on after it was over.
    pub untold: u64,
    /// Of those, what the chain of log backups showed.
    pub chain: u64,
    pub findings: Vec<String>,
}

impl Tally {
    pub fn merge(&mut self, other: Self) {
        self.images += other.images;
        self.injections += other.injections;
        self.lost_from.merge(&other.lost_from);
        self.struck.merge(&other.struck);
        self.lost += other.lost;
        self.mixed += other.mixed;
        self.refused += other.refused;
        self.untold += other.untold;
        self.chain += other.chain;
        self.findings.extend(other.findings);
    }

    pub fn wrong(&self) -> u64 {
        self.lost + self.mixed + self.refused + self.untold
    }

    /// An image that gave no state.
    pub fn blame(&mut self, name: &str, looked: Result<Found, Wrong>) {
        match looked {
            Ok(Found::State(_)) => {}
            Ok(Found::Damaged(what)) => {
                self.mixed += 1;
                self.find(format!("MIXED {name}: {what}"));
            }
            Err(Wrong::Content(row)) => {
                self.mixed += 1;
                self.find(format!("MIXED {name}: row {row} has content that nobody wrote"));
            }
            Err(Wrong::Refused(error)) => {
                self.refused += 1;
                self.find(format!("REFUSED {name}: {error}"));
            }
        }
    }

    pub fn find(&mut self, what: String) {
        if self.findings.len() < 20 {
            eprintln!("{what}");
            self.findings.push(what);
        }
    }

    /// The table of hits, a line a class.
    pub fn table(&self, title: &str) {
        println!("{title}: {} images, {} injections", self.images, self.injections);
        let mut classes: Vec<_> = self.lost_from.0.keys().chain(self.struck.0.keys()).collect();
        classes.sort();
        classes.dedup();
        for class in classes {
            let count = |hits: &Hits| hits.0.get(class).copied().unwrap_or(0);
            println!(
                "HITS\t{title}\t{}\t{}\t{}",
                class.name(),
                count(&self.lost_from),
                count(&self.struck)
            );
        }
    }
}
