//! Views, procedures and commands of DBCC.

use super::{Feature, Kind, State};
use crate::execute::{job_procedures, DBCC_COMMANDS, DBCC_WITHOUT_EFFECT, PROCEDURES};
use crate::known::{lists, names};
use crate::translate::is_table_function;
use crate::views;

/// What DBCC needs behind it, where it needs anything.
fn dbcc(command: &str) -> String {
    match command {
        "CHECKTABLE" => "DBCC CHECKTABLE('none')".to_owned(),
        "DBINFO" => "DBCC DBINFO WITH TABLERESULTS".to_owned(),
        "FREESYSTEMCACHE" => "DBCC FREESYSTEMCACHE('ALL')".to_owned(),
        "INPUTBUFFER" => "DBCC INPUTBUFFER(51)".to_owned(),
        "SQLPERF" => "DBCC SQLPERF(LOGSPACE)".to_owned(),
        "TRACEOFF" | "TRACEON" => format!("DBCC {command}(3226)"),
        _ => format!("DBCC {command}"),
    }
}

pub(super) fn all() -> impl Iterator<Item = Feature> {
    let view = |name: String, state| {
        let example = format!("SELECT * FROM {name}");
        Feature::new(Kind::View, name, state, example)
    };
    let here = views::every().filter(|one| one.schema != "sys" || !is_table_function(one.name));
    let here = here.map(move |one| {
        let name = match one.schema {
            "msdb" => format!("msdb.dbo.{}", one.name),
            "sys" => format!("sys.{}", one.name),
            _ => format!("INFORMATION_SCHEMA.{}", one.name.to_uppercase()),
        };
        match one.is_always_empty() {
            true => view(name, State::NoEffect).with_note("never has a row"),
            false => view(name, State::Works),
        }
    });
    let of_sys = [lists::CATALOG, lists::DYNAMIC, lists::COMPATIBILITY].into_iter();
    let of_sys = of_sys.flat_map(names).map(|name| format!("sys.{name}"));
    let of_msdb = names(lists::OF_MSDB).map(|name| format!("msdb.dbo.{name}"));
    let of_master = names(lists::OF_MASTER).map(|name| format!("master.dbo.{name}"));
    let information = names(lists::INFORMATION);
    let information = information.map(|name| format!("INFORMATION_SCHEMA.{}", name.to_uppercase()));
    let refused = of_sys.chain(of_msdb).chain(of_master).chain(information);
    let refused = refused.map(move |name| view(name, State::Refused));
    let procedure =
        |name: &str, state| Feature::new(Kind::Procedure, name, state, format!("EXEC {name}"));
    let procedures = PROCEDURES.iter().map(move |name| match *name {
        "sp_ms_marksystemobject" => procedure(name, State::NoEffect),
        "sp_cycle_errorlog" => procedure(name, State::NoEffect).with_note("the log goes on"),
        "xp_cmdshell" => procedure(name, State::NoEffect).with_note("is off: 15281"),
        _ => procedure(name, State::Works),
    });
    let of_msdb = names(lists::PROCEDURES_OF_MSDB).map(|name| format!("msdb.dbo.{name}"));
    let not_here = names(lists::EVERYWHERE).map(str::to_owned).chain(of_msdb);
    let not_here = not_here.map(move |name| procedure(&name, State::Refused));
    let jobs = job_procedures().map(|(name, works)| {
        let state = if works { State::Works } else { State::Refused };
        Feature::new(Kind::Procedure, name, state, format!("EXEC msdb.dbo.{name}"))
            .with_note("of msdb")
    });
    let commands = DBCC_COMMANDS.iter().map(|name| {
        let state = match DBCC_WITHOUT_EFFECT.contains(name) {
            true => State::NoEffect,
            false => State::Works,
        };
        let note = match *name {
            "INPUTBUFFER" | "OPENTRAN" => "of this session",
            "SQLPERF" => "LOGSPACE only",
            _ => "",
        };
        Feature::new(Kind::Dbcc, *name, state, dbcc(name)).with_note(note)
    });
    let no_commands =
        names(lists::DBCC).map(|name| Feature::new(Kind::Dbcc, name, State::Refused, dbcc(name)));
    here.chain(refused)
        .chain(procedures)
        .chain(jobs)
        .chain(not_here)
        .chain(commands)
        .chain(no_commands)
}
