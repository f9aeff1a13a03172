//! The names within this module and its tables are those that the sources have.

use std::collections::BTreeSet;

use pellucid_tsql::ast::{
    BackupFlag, InspectKind, MediaFlag, RestoreFlag, SessionSetting, StatementKind, StatisticsKind,
};
use pellucid_tsql::keyword::Word;
use pellucid_tsql::{parse, ErrorKind};

use super::*;

#[test]
fn nothing_is_named_twice() {
    let mut seen = BTreeSet::new();
    for feature in all() {
        let name = (feature.kind, feature.name.to_lowercase());
        assert!(seen.insert(name), "{feature:?}");
    }
}

/// The texts that the arms of a `match` name, from `start` of a source to `end`.
fn arms(source: &str, start: &str, end: &str) -> BTreeSet<String> {
    let (_, rest) = source.split_once(start).unwrap();
    let (text, _) = rest.split_once(end).unwrap();
    let lines = text.lines().map(str::trim);
    // One line of several, or all of a head; what ends with a comma is a list within an arm.
    let heads = lines.filter_map(|line| match line.split_once("=>") {
        Some((head, _)) => Some(head),
        None => (!line.ends_with(',')).then_some(line),
    });
    let heads =
        heads.map(|head| head.trim_start_matches("| ")).filter(|head| head.starts_with('"'));
    heads.flat_map(|head| head.split('"').skip(1).step_by(2).map(str::to_owned)).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn procedures_and_commands_are_those_that_are_executed() {
    let source = include_str!("../execute/procedure.rs");
    let found = arms(source, "    fn call(", "\n    fn given(");
    assert_eq!(found, set(crate::execute::PROCEDURES));
    let source = include_str!("../execute/maintenance.rs");
    let mut found = arms(source, "    fn dbcc(", "\n    /// The database that an argument");
    found.append(&mut set(&crate::execute::DBCC_WITHOUT_EFFECT));
    assert_eq!(found, set(crate::execute::DBCC_COMMANDS));
}

#[test]
fn properties_with_a_value_are_those_that_have_one() {
    let server = include_str!("../session/server.rs");
    let session = include_str!("../session/properties.rs");
    for (function, found) in [
        ("SERVERPROPERTY", arms(server, "    fn property(", "\n    fn database(")),
        ("DATABASEPROPERTYEX", arms(server, "    fn get(", "\nimpl ")),
        ("DATABASEPROPERTY", arms(session, "    pub fn get_old(", "\n#[cfg(test)]")),
        ("CONNECTIONPROPERTY", arms(session, "fn connection_property(", "\n/// Bytes that")),
    ] {
        let start = format!("{function} ");
        let of = |feature: &Feature| {
            let is_it = feature.kind == Kind::Property && feature.state == State::Works;
            is_it.then(|| feature.name.strip_prefix(&start).map(str::to_lowercase)).flatten()
        };
        let listed: BTreeSet<String> = all().iter().filter_map(of).collect();
        assert!(found.len() > 3, "{function}: {found:?}");
        assert_eq!(listed, found, "{function}");
    }
}

fn has(kind: Kind, name: &str) -> bool {
    all().iter().any(|feature| feature.kind == kind && feature.name == name)
}

#[test]
fn each_word_of_the_grammar_is_there() {
    fn names<W: Word + std::fmt::Display>() -> Vec<String> {
        W::ALL.iter().map(W::to_string).collect()
    }
    let backup = [names::<BackupFlag>(), names::<MediaFlag>()].concat();
    let restore = [names::<RestoreFlag>(), names::<MediaFlag>()].concat();
    for (kind, names) in [
        (Kind::BackupOption, backup),
        (Kind::RestoreOption, restore),
        (Kind::Setting, names::<SessionSetting>()),
    ] {
        for name in names {
            assert!(has(kind, &name), "{kind:?} {name}");
        }
    }
    for name in names::<InspectKind>() {
        assert!(has(Kind::Statement, &format!("RESTORE {name}")), "{name}");
    }
    for name in names::<StatisticsKind>() {
        assert!(has(Kind::Setting, &format!("STATISTICS {name}")), "{name}");
    }
}

#[test]
fn each_kind_of_statement_has_an_example() {
    let source = include_str!("../../../pellucid-tsql/src/ast.rs");
    let (_, variants) = source.split_once("pub enum StatementKind {").unwrap();
    let (variants, _) = variants.split_once("\n}").unwrap();
    let variants: BTreeSet<String> = variants
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("//"))
        .filter_map(|line| line.split_once('(').map(|(name, _)| name.to_owned()))
        .collect();
    assert!(variants.len() > 15, "{variants:?}");
    let of = |kind: &StatementKind| format!("{kind:?}").split('(').next().unwrap().to_owned();
    let statements = all().into_iter().filter(|feature| feature.kind == Kind::Statement);
    let works = statements.filter(|feature| feature.state != State::Refused);
    let found: BTreeSet<String> = works
        .flat_map(|feature| match parse(&feature.example) {
            Ok(parsed) => parsed.iter().map(|statement| of(&statement.kind)).collect::<Vec<_>>(),
            Err(error) => panic!("{feature:?}: {error}"),
        })
        .collect();
    assert_eq!(found, variants);
}

/// Whatever the grammar refuses by its name has an example that is refused by it.
#[test]
fn each_refusal_of_the_grammar_has_an_example() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../pellucid-tsql/src/parser");
    let refused: BTreeSet<String> = all()
        .iter()
        .filter_map(|feature| match parse(&feature.example).err()?.kind {
            ErrorKind::Unsupported { construct } => Some(construct.into_owned()),
            _ => None,
        })
        .collect();
    let mut missing = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let source = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for call in source.split("unsupported(\"").skip(1) {
            let construct = call.split('"').next().unwrap().to_owned();
            count += 1;
            if !refused.contains(&construct) {
                missing.push(construct);
            }
        }
    }
    assert!(count > 50, "{count}");
    assert_eq!(missing, Vec::<String>::new());
}
