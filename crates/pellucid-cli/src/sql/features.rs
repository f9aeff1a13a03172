//! `--features`: what there is of SQL Server and of sqlcmd, by name.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{Arg, Args, Command, ValueEnum};
use pellucid_sql::features::{self, Feature, Kind, State};
use serde_json::json;

use super::commands::COMMANDS;
use super::idle::Idle;
use super::SqlArgs;
use crate::output::{table, Failure, Output};

/// How the list is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FeatureForm {
    /// Aligned, a line each
    Table,
    /// As docs/features.md
    Markdown,
}

const HEAD: &str = "\
# What there is of SQL Server

This page is what `pellucid sql --features=markdown` writes; `--features` alone shows a line for each name, and `--json` an \
object. A test compares the page with the program, and another one executes an example of every name.

- **works**: it does what SQL Server's does, within what [statements.md](statements.md) says.
- **without effect**: it is taken and changes nothing, or has nothing to show.
- **refused**: message 50001 by its name, before anything was changed.

What is here nowhere is nothing that SQL Server 2022 has, or a gap in this list: such a name gets SQL Server's message for an \
unknown one. [statements.md](design/statements.md) of the design says why the language ends where it does.
";

/// Everything, the statements' own first.
fn all() -> Vec<Feature> {
    let mut all = features::all();
    all.extend(options());
    all.extend(
        COMMANDS.iter().map(|(name, state)| of(Kind::SqlcmdCommand, (*name).to_owned(), *state)),
    );
    all.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
    all
}

fn of(kind: Kind, name: String, state: State) -> Feature {
    Feature { kind, name, state, note: "", example: String::new() }
}

/// The options that sqlcmd has, by their short names: those of a connection and a login have no effect.
fn options() -> Vec<Feature> {
    let idle = Idle::augment_args(Command::new("idle"));
    let all = SqlArgs::augment_args(Command::new("sql"));
    let is_idle = |arg: &Arg| {
        idle.get_arguments().any(|other| other.get_id() == arg.get_id())
            || ["server", "user", "packet_size", "login_timeout"].contains(&arg.get_id().as_str())
    };
    let named = all.get_arguments().filter_map(|arg| Some((arg, arg.get_short()?)));
    let state = |arg| if is_idle(arg) { State::NoEffect } else { State::Works };
    named.map(|(arg, short)| of(Kind::SqlcmdOption, format!("-{short}"), state(arg))).collect()
}

/// Writes the list.
pub fn write(form: FeatureForm, output: &Output) -> Result<ExitCode, Failure> {
    let all = all();
    match form {
        _ if output.json => {
            let told = |feature: &Feature| {
                json!({
                    "kind": feature.kind.text(),
                    "name": feature.name,
                    "state": feature.state.text(),
                    "note": feature.note,
                })
            };
            output.facts(&json!(all.iter().map(told).collect::<Vec<_>>()));
        }
        FeatureForm::Table => {
            let mut grid = table(["Kind", "Name", "State", "Note"]);
            grid.add_rows(all.iter().map(|feature| {
                [feature.kind.text(), &feature.name, feature.state.text(), feature.note]
            }));
            output.line(grid);
        }
        FeatureForm::Markdown => output.line(markdown(&all).trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

fn markdown(all: &[Feature]) -> String {
    let mut rows: BTreeMap<Kind, BTreeMap<(State, &str), Vec<String>>> = BTreeMap::new();
    for feature in all {
        let names = rows.entry(feature.kind).or_default();
        let name = format!("`{}`", feature.name.replace('|', "\\|"));
        names.entry((feature.state, feature.note)).or_default().push(name);
    }
    let mut page = HEAD.to_owned();
    for (kind, rows) in rows {
        page += &format!("\n## {}\n\n| State | Names |\n|---|---|\n", heading(kind));
        for ((state, note), names) in rows {
            let state = match note.is_empty() {
                true => state.text().to_owned(),
                false => format!("{}: {note}", state.text()),
            };
            page += &format!("| {state} | {} |\n", names.join(", "));
        }
    }
    page
}

fn heading(kind: Kind) -> &'static str {
    match kind {
        Kind::Statement => "Statements",
        Kind::Clause => "Clauses",
        Kind::Setting => "SET",
        Kind::DatabaseOption => "ALTER DATABASE SET",
        Kind::BackupOption => "BACKUP WITH",
        Kind::RestoreOption => "RESTORE WITH",
        Kind::DataType => "Types",
        Kind::Function => "Functions",
        Kind::TableFunction => "Functions that give tables",
        Kind::GlobalVariable => "Global variables",
        Kind::View => "Views and tables of the server",
        Kind::Procedure => "Procedures of the server",
        Kind::Dbcc => "DBCC",
        Kind::Property => "Properties",
        Kind::SqlcmdOption => "Options of sqlcmd",
        Kind::SqlcmdCommand => "Commands of sqlcmd",
    }
}
