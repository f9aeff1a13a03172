//! The command line.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgMatches, FromArgMatches, Parser, Subcommand};
use pellucid_lab_work::full::{FullOptions, RunOptions};
use pellucid_lab_work::measurement::Measurement;
use pellucid_lab_work::quick::QuickOptions;
use pellucid_lab_work::registry;

/// What encryption costs on this machine: paired workloads, plain SQLite against Pellucid.
#[derive(Debug, Parser)]
#[command(name = "lab", version)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

/// What the lab is to do. The help has the commands in the order of these kinds.
#[derive(Debug)]
pub enum Command {
    Several(Several),
    /// A command of [`registry`].
    One(Box<dyn Measurement>),
    Other(Other),
}

/// Commands that run several measurements, one behind the other.
#[derive(Debug, Subcommand)]
pub enum Several {
    /// A first answer in three minutes: OLTP, backups, restores, checks, opening; a summary and a page.
    ///
    /// Example: lab quick --dir /mnt/data
    Quick(QuickOptions),
    /// Everything, piece by piece, into a directory of records; pieces can be stopped and gone on with.
    ///
    /// Example: lab full --estimate; lab full; lab full --resume
    Full(FullOptions),
    /// The peers: the same work on SQLCipher and SQLite3 Multiple Ciphers, and backups beside restic, borg and age.
    ///
    /// The pieces of `lab full --pieces peers`; says which peers are not built or installed here, and how they are.
    /// Example: lab peers --estimate; lab peers; lab peers --resume
    Peers(RunOptions),
}

/// Commands that read records, and those that the lab itself starts.
#[derive(Debug, Subcommand)]
pub enum Other {
    /// Table and verdict from records alone; exit 1 if a goal is not reached.
    Verdict {
        /// Files of records; their sessions must be of one tree and machine.
        #[arg(required = true, value_name = "RECORDS")]
        files: Vec<PathBuf>,
        /// Only these sessions.
        #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
        session: Vec<String>,
        /// Print the verdict as JSON.
        #[arg(long)]
        json: bool,
    },
    /// A page, Markdown or a summary of records: charts, intervals, and the articles' figures beside ours.
    ///
    /// Example: lab report lab/records/*.jsonl --out report.html
    Report {
        /// Files of records, of any experiment.
        #[arg(required = true, value_name = "RECORDS")]
        files: Vec<PathBuf>,
        /// Write one HTML file that needs nothing else.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Print the same numbers as Markdown.
        #[arg(long)]
        markdown: bool,
        /// Print the tables of each experiment too, not only what comes first, the goals and the articles' figures.
        #[arg(long)]
        all: bool,
    },
    /// Two files of records side by side: the same figure from each, and the difference with its interval.
    Compare {
        #[arg(value_name = "A")]
        a: PathBuf,
        #[arg(value_name = "B")]
        b: PathBuf,
        /// Quantities as well that are not a time or a speed.
        #[arg(long)]
        all: bool,
    },
    /// Recomputes the figures that documents quote from records; exit 1 if one differs.
    Figures {
        /// Documents whose figures `docs/figures.toml` leads to their records.
        #[arg(required = true, value_name = "DOCUMENT")]
        documents: Vec<PathBuf>,
        /// Where `docs/figures.toml` and the names of pages and records start from.
        #[arg(long, value_name = "DIR", default_value = ".")]
        root: PathBuf,
    },
    /// One worker process; for the lab itself.
    #[command(hide = true)]
    Worker,
    /// Programs after each other, as standard input says; for the lab itself.
    #[command(hide = true)]
    Pipeline,
    /// A consistent copy of a plain database; for the lab itself.
    #[command(hide = true)]
    VacuumInto { from: PathBuf, to: PathBuf },
}

impl FromArgMatches for Command {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let Some((name, own)) = matches.subcommand() else {
            return Err(clap::Error::new(ErrorKind::MissingSubcommand));
        };
        match registry::find(name) {
            Some(entry) => entry.read(own).map(Self::One),
            None if Several::has_subcommand(name) => {
                Several::from_arg_matches(matches).map(Self::Several)
            }
            None => Other::from_arg_matches(matches).map(Self::Other),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Command {
    fn augment_subcommands(lab: clap::Command) -> clap::Command {
        let one = registry::all().iter().map(registry::Entry::command);
        Other::augment_subcommands(Several::augment_subcommands(lab).subcommands(one))
    }

    fn augment_subcommands_for_update(lab: clap::Command) -> clap::Command {
        Self::augment_subcommands(lab)
    }

    fn has_subcommand(name: &str) -> bool {
        Several::has_subcommand(name)
            || registry::find(name).is_some()
            || Other::has_subcommand(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use pellucid_lab_work::piece::Piece;
    use std::collections::BTreeSet;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    /// What is measured and is no piece: these, and what nobody but its user can choose.
    const OTHERS: [&str; 5] = ["quick", "full", "peers", "yours", "control"];

    #[test]
    fn every_measurement_of_the_lab_is_in_a_piece() {
        let pieces: BTreeSet<_> = registry::pieces().into_iter().map(Piece::command).collect();
        let lab = Arguments::command();
        let measures = lab.get_subcommands().filter(|one| {
            one.get_arguments().any(|argument| argument.get_id() == "estimate")
                && !OTHERS.contains(&one.get_name())
        });
        let measures: BTreeSet<_> = measures.map(|one| one.get_name()).collect();
        assert_eq!(measures, pieces);
    }

    #[test]
    fn the_help_lists_the_registry_in_its_order_and_the_command_line_takes_it() {
        let help = Arguments::command().render_help().to_string();
        // What goes on in the next line is further in.
        let first = |line: &'_ str| line.strip_prefix("  ")?.split(' ').next().map(String::from);
        let listed: Vec<_> = help.lines().filter_map(first).filter(|one| !one.is_empty()).collect();
        let names: Vec<_> = registry::all().iter().map(registry::Entry::name).collect();
        let at = listed.iter().position(|name| name == names[0]).unwrap();
        assert_eq!(listed[at..at + names.len()], names);
        for piece in registry::pieces() {
            let line = [String::from("lab")].into_iter().chain(piece.words(1.0, None));
            let Command::One(one) = Arguments::try_parse_from(line).unwrap().command else {
                panic!("{}: no measurement", piece.name);
            };
            let estimate = registry::estimate(&piece.words(1.0, None)).unwrap();
            assert_eq!(one.estimate().unwrap(), estimate, "{}", piece.name);
        }
    }
}
