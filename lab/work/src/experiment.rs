//! What experiments share: the options of those that measure what the articles did, contents, media, and the notes of a run.

pub mod content;
pub mod medium;
pub mod notes;

use std::path::PathBuf;

use clap::Args;
use pellucid_lab_measure::choice::{Algorithm, SideChoice, SideOptions};
use pellucid_lab_measure::common::Common;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::program;
use serde::de::DeserializeOwned;

/// What every experiment takes.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Parameters other than the article's: a file like those in lab/scenarios.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Share of the article's sizes: 1 is all of them.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = scale)]
    pub scale: f64,
    /// Rounds after the warm-up, instead of the scenario's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Where the databases are made, and removed again; its file system is part of the answer.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// File that the records are appended to [default: lab/records/EXPERIMENT.jsonl].
    #[arg(long, value_name = "FILE")]
    pub records: Option<PathBuf>,
    /// Print the records instead of the table.
    #[arg(long)]
    pub json: bool,
    /// Seed of data and of the order of runs.
    #[arg(long, default_value_t = 2008)]
    pub seed: u64,
    /// Print about how many seconds it takes, and do nothing.
    #[arg(long)]
    pub estimate: bool,
    /// libpellucid.so beside which the program `pellucid` is; by default the one beside this program.
    #[arg(long, value_name = "FILE", env = "PELLUCID_EXTENSION")]
    pub extension: Option<PathBuf>,
}

impl Options {
    /// The parameters: those of `article`, or of the file that was given.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Invalid`] for a file that is none.
    pub fn scenario<T: DeserializeOwned>(&self, article: &str) -> Result<T> {
        let (name, text) = match &self.scenario {
            None => ("scenario".to_string(), article.to_string()),
            Some(path) => {
                let name = path.display().to_string();
                (name.clone(), std::fs::read_to_string(path).map_err(Error::io(name))?)
            }
        };
        toml::from_str(&text).map_err(|error| Error::invalid(format!("{name}: {error}")))
    }

    /// The rounds that were asked for, else those of the scenario.
    pub fn rounds(&self, of_scenario: usize) -> usize {
        self.rounds.map_or(of_scenario, |rounds| rounds as usize)
    }

    /// `kib` of the article as bytes at this scale.
    pub fn bytes(&self, kib: u64) -> u64 {
        (kib as f64 * 1024.0 * self.scale) as u64
    }

    /// What a session takes. The sides are the experiment's own: these two are never opened.
    pub fn common(&self, rounds: usize) -> Common {
        let sides = SideOptions {
            sides: vec![SideChoice::Plain, SideChoice::Again],
            extension: None,
            algorithm: Algorithm::Aes256,
        };
        Common {
            sides,
            rounds,
            dir: self.dir.clone(),
            records: self.records.clone(),
            json: self.json,
            seed: self.seed,
            estimate: self.estimate,
        }
    }

    /// The program `pellucid`.
    ///
    /// # Errors
    /// [`Error::Io`] if it is not there.
    pub fn program(&self) -> Result<PathBuf> {
        let own = std::env::current_exe().unwrap_or_default();
        program::beside(self.extension.as_ref().unwrap_or(&own))
    }
}

/// Reads a share of the sizes.
///
/// # Errors
/// For a share that makes no sense.
pub fn scale(text: &str) -> std::result::Result<f64, String> {
    let scale = text.parse().ok().filter(|scale| (0.0001..=100.0).contains(scale));
    scale.ok_or_else(|| "not 0.0001 to 100".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn sizes_are_scaled_and_nonsense_is_refused() {
        let line = |words: &str| Line::try_parse_from(["lab"].into_iter().chain(words.split(' ')));
        let options = line("--scale 0.5 --rounds 7").unwrap().options;
        assert_eq!((options.bytes(2048), options.rounds(3)), (1 << 20, 7));
        assert_eq!(Options { rounds: None, ..options }.rounds(3), 3);
        for wrong in ["--scale 0", "--scale NaN", "--rounds 0"] {
            assert!(line(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_scenario_with_a_word_that_nobody_knows_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("other.toml");
        std::fs::write(&path, "rounds = 1\nchoises = []\n").unwrap();
        let words = ["lab", "--scenario", path.to_str().unwrap()];
        let options = Line::try_parse_from(words).unwrap().options;
        let error =
            options.scenario::<crate::backup_overhead::Scenario>("").unwrap_err().to_string();
        assert!(error.contains("other.toml") && error.contains("choises"), "{error}");
    }
}
