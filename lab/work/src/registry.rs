//! What follows from the list of all measurements: the commands, the estimates and the pieces of `lab full`.

use clap::{ArgMatches, Args};
use pellucid_lab_measure::error::{Error, Result};

use crate::estimate::Estimate;
use crate::measurement::Measurement;
use crate::piece::Piece;
use crate::MEASUREMENTS;

/// A measurement that nobody has asked for yet.
#[derive(Debug)]
pub struct Entry {
    name: fn() -> &'static str,
    pieces: fn() -> &'static [Piece],
    command: fn() -> clap::Command,
    read: fn(&ArgMatches) -> Asked,
    place: u32,
}

/// A measurement with the options that somebody gave, or what is wrong with them.
pub type Asked = std::result::Result<Box<dyn Measurement>, clap::Error>;

impl Entry {
    /// The entry of a type; `place` is that of its pieces in `lab full`.
    pub(crate) const fn of<M: Measurement + Args + 'static>(place: u32) -> Self {
        Self {
            name: M::name,
            pieces: M::pieces,
            command: || M::augment_args(clap::Command::new(M::name())),
            read: |matches| Ok(Box::new(M::from_arg_matches(matches)?)),
            place,
        }
    }

    /// Its name, which is that of its command.
    pub fn name(&self) -> &'static str {
        (self.name)()
    }

    /// Its command, with help and arguments.
    pub fn command(&self) -> clap::Command {
        (self.command)()
    }

    /// Reads what the command line gave to its command.
    ///
    /// # Errors
    /// Of the command line.
    pub fn read(&self, matches: &ArgMatches) -> Asked {
        (self.read)(matches)
    }
}

/// All measurements, in the order of the help.
pub fn all() -> &'static [Entry] {
    MEASUREMENTS
}

/// The measurement of this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    MEASUREMENTS.iter().find(|entry| entry.name() == name)
}

/// All pieces of `lab full`, in their order.
pub fn pieces() -> Vec<&'static Piece> {
    let mut entries: Vec<&Entry> = MEASUREMENTS.iter().collect();
    entries.sort_by_key(|entry| entry.place);
    entries.into_iter().flat_map(|entry| (entry.pieces)()).collect()
}

/// What a line of the lab, without the program's name, will take.
///
/// # Errors
/// [`Error::Invalid`] for a line that is no measurement; of its options.
pub fn estimate(words: &[String]) -> Result<Estimate> {
    let invalid = |error| Error::invalid(format!("{}: {error}", words.join(" ")));
    let lab = clap::Command::new("lab").subcommand_required(true);
    let lab = lab.subcommands(MEASUREMENTS.iter().map(Entry::command));
    let line = std::iter::once("lab").chain(words.iter().map(String::as_str));
    let matches = lab.try_get_matches_from(line).map_err(invalid)?;
    let asked = matches.subcommand().and_then(|(name, own)| Some(find(name)?.read(own)));
    asked
        .ok_or_else(|| Error::invalid(format!("{}: measures nothing", words.join(" "))))?
        .map_err(invalid)?
        .estimate()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// What nobody but its user can choose: it is in no piece.
    const USERS: [&str; 2] = ["yours", "control"];

    #[test]
    fn every_measurement_is_once_in_the_list_and_has_a_place_of_its_own() {
        let names: BTreeSet<_> = MEASUREMENTS.iter().map(Entry::name).collect();
        let places: BTreeSet<_> = MEASUREMENTS.iter().map(|entry| entry.place).collect();
        assert_eq!((names.len(), places.len()), (MEASUREMENTS.len(), MEASUREMENTS.len()));
    }

    #[test]
    fn list_help_pieces_and_estimate_agree() {
        for entry in MEASUREMENTS {
            let (name, command) = (entry.name(), entry.command());
            assert_eq!(command.get_name(), name);
            assert!(command.get_about().is_some(), "{name} has no help");
            let has = |id: &str| command.get_arguments().any(|argument| argument.get_id() == id);
            for id in ["estimate", "records", "dir"] {
                assert!(has(id), "{name} has no --{id}");
            }
            let pieces = (entry.pieces)();
            assert_eq!(pieces.is_empty(), USERS.contains(&name), "{name}");
            for piece in pieces {
                assert_eq!(piece.command(), name, "{}", piece.name);
                let mut words = piece.words(1.0, None);
                let whole = estimate(&words).unwrap();
                words.push("--estimate".into());
                assert_eq!(estimate(&words).unwrap(), whole, "{}", piece.name);
            }
        }
    }

    /// A name that nobody measures would be a section, a claim or a goal that no record ever reaches.
    #[test]
    fn articles_and_goals_name_what_is_measured() {
        // Sessions with peers have names of their own, and so has the bench of log sets.
        let others = ["peers", "whole-peers", "scan-peers", "log-sets"];
        let is_known = |name: &str| find(name).is_some() || others.contains(&name);
        let articles: Value = serde_json::from_str(include_str!("../../articles.json")).unwrap();
        let goals: Value = serde_json::from_str(include_str!("../../goals.json")).unwrap();
        let (mut names, mut left) = (BTreeSet::new(), vec![&articles, &goals]);
        while let Some(value) = left.pop() {
            match value {
                Value::Array(all) => left.extend(all),
                Value::Object(all) => {
                    for key in ["experiment", "scenario"] {
                        names.extend(all.get(key).and_then(Value::as_str));
                    }
                    left.extend(all.values());
                }
                _ => {}
            }
        }
        let titles = articles["experiments"].as_array().unwrap();
        names.extend(titles.iter().filter_map(|one| one["name"].as_str()));
        assert!(names.len() > 10, "{names:?}");
        let unknown: Vec<_> = names.into_iter().filter(|name| !is_known(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn what_measures_nothing_has_no_estimate() {
        for line in ["", "verdict", "purchase --cells none-such", "whole --size-mib 0"] {
            let words: Vec<_> = line.split_whitespace().map(String::from).collect();
            assert!(estimate(&words).is_err(), "{line}");
        }
    }

    #[test]
    fn every_piece_has_a_name_an_estimate_and_a_smaller_scale() {
        let mut names: Vec<_> = pieces().iter().map(|piece| piece.name).collect();
        for piece in pieces() {
            let of = |scale, rounds| estimate(&piece.words(scale, rounds)).unwrap();
            let (whole, part) = (of(1.0, None), of(0.1, None));
            assert!(whole.seconds > 10.0 && whole.bytes > 1 << 20, "{}: {whole:?}", piece.name);
            assert!(part.seconds < whole.seconds && part.bytes <= whole.bytes, "{}", piece.name);
            assert!(of(1.0, Some(100)).seconds >= whole.seconds, "{}", piece.name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), pieces().len());
    }
}
