//! All pieces of `lab full`, in their order: the one list of what is measured.

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_work::estimate::Estimate;

use crate::arguments::{Arguments, Command};
use clap::Parser;

/// Reads, updates and inserts, in every combination that the goals speak of.
const MIX: &str = "1-NORMAL-4/3/3,1-FULL-4/3/3,10-NORMAL-4/3/3,10-FULL-4/3/3";
const LARGE: &str =
    "1-NORMAL-10/0/0,10-NORMAL-10/0/0,1-NORMAL-4/3/3,1-FULL-4/3/3,10-NORMAL-4/3/3,10-FULL-4/3/3";
/// Names that stand for several.
const GROUPS: [&str; 4] = ["all", "measurements", PEERS, "experiments"];
/// The same work on other products, and backups beside other programs.
pub const PEERS: &str = "peers";
const PEER_SIDES: &str = "plain,sealed,aegis,chacha20,sqlcipher";

/// One measurement, with a file of records of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    pub name: &'static str,
    command: &'static str,
    options: &'static [&'static str],
    size: Size,
    needs: Needs,
}

/// What a scale shrinks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Size {
    /// Of a run.
    Seconds(f64),
    Mib(u64),
    /// Of the database under load; the phases without a scan shrink too.
    LoadMib(u64),
    /// speedtest1's own.
    Speedtest1(u64),
    Opens(u64),
    /// An experiment shrinks by itself.
    Share,
}

/// What is not built with the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    /// lab/peers/build.sh
    Peers,
    /// lab/speedtest1.sh
    Speedtest1,
}

const fn piece(
    name: &'static str,
    command: &'static str,
    size: Size,
    options: &'static [&'static str],
) -> Piece {
    Piece { name, command, options, size, needs: Needs::Nothing }
}

const fn experiment(name: &'static str) -> Piece {
    piece(name, name, Size::Share, &[])
}

impl Piece {
    const fn with(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }
}

const PIECES: &[Piece] = &[
    piece(
        "cells",
        "purchase",
        Size::Seconds(3.0),
        &["--sides", "plain,again,sealed", "--cells", "all"],
    ),
    piece(
        "cells-peers",
        "purchase",
        Size::Seconds(3.0),
        &["--sides", PEER_SIDES, "--cells", "peers"],
    )
    .with(Needs::Peers),
    piece(
        "delete",
        "purchase",
        Size::Seconds(3.0),
        &["--sides", "plain,sealed", "--journal", "DELETE", "--cells", MIX],
    ),
    piece(
        "large",
        "purchase",
        Size::Seconds(3.0),
        &["--sides", "plain,sealed", "--cards", "100000", "--cells", LARGE],
    ),
    piece(
        "page1024",
        "purchase",
        Size::Seconds(3.0),
        &["--sides", "plain,sealed", "--page-size", "1024", "--cells", MIX],
    ),
    piece(
        "page16384",
        "purchase",
        Size::Seconds(3.0),
        &["--sides", "plain,sealed", "--page-size", "16384", "--cells", MIX],
    ),
    piece(
        "3des",
        "purchase",
        Size::Seconds(3.0),
        &["--sides", "plain,sealed", "--algorithm", "TRIPLE_DES_3KEY", "--cells", MIX],
    ),
    piece("whole", "whole", Size::Mib(1024), &["--sides", "plain,again,sealed"]),
    piece("whole-peers", "whole", Size::Mib(256), &["--sides", PEER_SIDES, "--cache", "warm"])
        .with(Needs::Peers),
    piece("speedtest1", "speedtest1", Size::Speedtest1(100), &["--sides", "plain,again,sealed"])
        .with(Needs::Speedtest1),
    piece("opening", "opening", Size::Opens(20), &["--sides", "plain,again,sealed"]),
    piece("scan-load", "scan-load", Size::LoadMib(2048), &[]),
    piece("scan-load-delete", "scan-load", Size::LoadMib(2048), &["--journal", "DELETE"]),
    piece(
        "scan-load-3des",
        "scan-load",
        Size::LoadMib(256),
        &["--algorithms", "TRIPLE_DES_3KEY,AES_256"],
    ),
    piece("scan-speed", "scan-speed", Size::Mib(1024), &["--sides", "plain,again,sealed"]),
    piece(
        "scan-peers",
        "scan-speed",
        Size::Mib(256),
        &["--sides", PEER_SIDES, "--journal", "DELETE", "--algorithms", "AES_256"],
    )
    .with(Needs::Peers),
    piece("backup-speed", "backup-speed", Size::Mib(1024), &[]),
    piece("backup-load", "backup-load", Size::LoadMib(2048), &[]),
    piece(
        "backup-load-delete",
        "backup-load",
        Size::LoadMib(2048),
        &["--journal", "DELETE", "--busy-timeout-ms", "10000"],
    ),
    experiment("backup-matrix"),
    experiment("backup-overhead"),
    experiment("maintenance"),
    experiment("hummer"),
    experiment("acceleration"),
    experiment("side-effects"),
];

impl Piece {
    /// Those that `names` name, or all, each once and in their order.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that none has.
    pub fn choose<S: AsRef<str>>(names: &[S]) -> Result<Vec<&'static Self>> {
        let known =
            |name: &str| GROUPS.contains(&name) || PIECES.iter().any(|piece| piece.name == name);
        if let Some(unknown) = names.iter().map(AsRef::as_ref).find(|name| !known(name)) {
            let names: Vec<_> = PIECES.iter().map(|piece| piece.name).collect();
            return Err(Error::invalid(format!(
                "no piece `{unknown}`; there are: {}, and {}",
                names.join(" "),
                GROUPS.join(", ")
            )));
        }
        let wanted = |piece: &&Piece| {
            let group = if piece.is_experiment() { "experiments" } else { "measurements" };
            let of_peers = piece.needs == Needs::Peers || piece.name == "backup-speed";
            let is = |name: &str| match name {
                PEERS => of_peers,
                name => [piece.name, group, "all"].contains(&name),
            };
            names.is_empty() || names.iter().any(|name| is(name.as_ref()))
        };
        Ok(PIECES.iter().filter(wanted).collect())
    }

    /// Of an article, with its parameters in a file.
    pub fn is_experiment(&self) -> bool {
        self.size == Size::Share
    }

    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Whether it goes on by itself with the cells that its records lack.
    pub fn resumes(&self) -> bool {
        self.command == "hummer"
    }

    /// Its command line.
    pub fn words(&self, scale: f64, rounds: Option<usize>) -> Vec<String> {
        let shrunk = |whole: u64| ((whole as f64 * scale).round() as u64).max(1).to_string();
        let shorter = |seconds: f64| (seconds * scale).max(0.05).to_string();
        let mut words = vec![self.command.to_string()];
        let mut add = |name: &str, value: String| words.extend([name.to_string(), value]);
        match self.size {
            Size::Seconds(seconds) => add("--seconds", shorter(seconds)),
            Size::Mib(mib) => add("--size-mib", shrunk(mib)),
            Size::LoadMib(mib) => {
                add("--size-mib", shrunk(mib));
                add("--quiet-s", shorter(10.0));
            }
            Size::Speedtest1(size) => add("--size", shrunk(size)),
            Size::Opens(opens) => add("--opens", shrunk(opens)),
            Size::Share => add("--scale", scale.to_string()),
        }
        if let Some(rounds) = rounds {
            add("--rounds", rounds.to_string());
        }
        words.extend(self.options.iter().map(|word| (*word).to_string()));
        words
    }
}

/// The command of a line of the lab, and what it will take.
///
/// # Errors
/// [`Error::Invalid`] for a line that is none.
pub fn estimate(words: &[String]) -> Result<Estimate> {
    command(words)?.estimate()
}

fn command(words: &[String]) -> Result<Command> {
    let line = std::iter::once("lab").chain(words.iter().map(String::as_str));
    let parsed = Arguments::try_parse_from(line);
    let parsed = parsed.map_err(|error| Error::invalid(format!("{}: {error}", words.join(" "))))?;
    Ok(parsed.command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    /// What is measured and is no piece: these, and what nobody but its user can choose.
    const OTHERS: [&str; 5] = ["quick", "full", "peers", "yours", "control"];

    #[test]
    fn every_measurement_of_the_lab_is_in_a_piece() {
        let pieces: BTreeSet<_> = PIECES.iter().map(|piece| piece.command).collect();
        let lab = Arguments::command();
        let measures = lab.get_subcommands().filter(|one| {
            one.get_arguments().any(|argument| argument.get_id() == "estimate")
                && !OTHERS.contains(&one.get_name())
        });
        let measures: BTreeSet<_> = measures.map(|one| one.get_name()).collect();
        assert_eq!(measures, pieces);
    }

    #[test]
    fn every_piece_has_a_name_an_estimate_and_a_smaller_scale() {
        let mut names: Vec<_> = PIECES.iter().map(|piece| piece.name).collect();
        for piece in PIECES {
            let of = |scale, rounds| estimate(&piece.words(scale, rounds)).unwrap();
            let (whole, part) = (of(1.0, None), of(0.1, None));
            assert!(whole.seconds > 10.0 && whole.bytes > 1 << 20, "{}: {whole:?}", piece.name);
            assert!(part.seconds < whole.seconds && part.bytes <= whole.bytes, "{}", piece.name);
            assert!(of(1.0, Some(100)).seconds >= whole.seconds, "{}", piece.name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PIECES.len());
    }

    #[test]
    fn pieces_are_chosen_by_name_and_by_group() {
        let names = |chosen: &[&str]| -> Result<Vec<&str>> {
            Ok(Piece::choose(chosen)?.into_iter().map(|piece| piece.name).collect())
        };
        assert_eq!(names(&["hummer", "cells", "hummer"]).unwrap(), ["cells", "hummer"]);
        assert_eq!(names(&[]).unwrap(), names(&["all"]).unwrap());
        let (measurements, experiments) =
            (names(&["measurements"]).unwrap(), names(&["experiments"]).unwrap());
        assert_eq!(measurements.len() + experiments.len(), PIECES.len());
        let peers = ["cells-peers", "whole-peers", "scan-peers", "backup-speed"];
        assert_eq!(names(&["peers"]).unwrap(), peers);
        assert!(experiments.contains(&"acceleration") && measurements.contains(&"backup-speed"));
        let error = names(&["cels"]).unwrap_err().to_string();
        assert!(error.contains("`cels`") && error.contains("scan-peers"), "{error}");
    }
}
