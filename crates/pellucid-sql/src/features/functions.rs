//! Functions, table functions and global variables.

use super::{entries, Entry, Feature, Kind, State};
use crate::functions::{Parameter, BUILTINS, SERVER_FUNCTIONS};
use crate::known::{lists, names};
use crate::translate::{table_functions, AGGREGATES, CLOCKS, METADATA, RANKINGS, SPECIALS};

/// Those that the grammar reads by itself.
const READ: &[Entry] = &[
    (State::Works, "CASE", "", "SELECT CASE WHEN 1 = 1 THEN 1 END"),
    (State::Works, "CAST", "", "SELECT CAST(1 AS int)"),
    (State::Works, "CONVERT", "", "SELECT CONVERT(varchar(30), GETDATE(), 120)"),
    (State::Works, "CURRENT_TIMESTAMP", "", "SELECT CURRENT_TIMESTAMP"),
    (State::Refused, "IDENTITY", "", "SELECT IDENTITY(int, 1, 1) AS i INTO #i FROM sys.databases"),
    (State::Works, "IIF", "", "SELECT IIF(1 = 1, 1, 2)"),
    (State::Refused, "PARSE", "", "SELECT PARSE('1' AS int)"),
    (State::Works, "TRY_CAST", "", "SELECT TRY_CAST('x' AS int)"),
    (State::Works, "TRY_CONVERT", "", "SELECT TRY_CONVERT(int, 'x')"),
    (State::Refused, "TRY_PARSE", "", "SELECT TRY_PARSE('1' AS int)"),
];

/// What stands in FROM and is read by itself.
const TABLES: &[Entry] = &[
    (State::Refused, "CHANGETABLE", "", "SELECT * FROM CHANGETABLE(CHANGES t, 0) AS c"),
    (State::Refused, "CONTAINSTABLE", "", "SELECT * FROM CONTAINSTABLE(t, s, 'x')"),
    (State::Refused, "FREETEXTTABLE", "", "SELECT * FROM FREETEXTTABLE(t, s, 'x')"),
    (State::Refused, "GENERATE_SERIES", "", "SELECT * FROM GENERATE_SERIES(1, 5)"),
    (State::Refused, "OPENDATASOURCE", "", "SELECT * FROM OPENDATASOURCE('x', 'y').a.dbo.t"),
    (State::Refused, "OPENJSON", "", "SELECT * FROM OPENJSON('[1]')"),
    (State::Refused, "OPENQUERY", "", "SELECT * FROM OPENQUERY(there, 'SELECT 1')"),
    (State::Refused, "OPENROWSET", "", "SELECT * FROM OPENROWSET(BULK 'x', SINGLE_CLOB) AS c"),
    (State::Refused, "OPENXML", "", "SELECT * FROM OPENXML(@x, '/a')"),
    (State::Refused, "PREDICT", "", "SELECT * FROM PREDICT(MODEL = @m, DATA = t) WITH (s float)"),
    (State::Refused, "SEMANTICKEYPHRASETABLE", "", "SELECT * FROM SEMANTICKEYPHRASETABLE(t, *)"),
    (
        State::Refused,
        "SEMANTICSIMILARITYDETAILSTABLE",
        "",
        "SELECT * FROM SEMANTICSIMILARITYDETAILSTABLE(t, s, 1, s, 2)",
    ),
    (
        State::Refused,
        "SEMANTICSIMILARITYTABLE",
        "",
        "SELECT * FROM SEMANTICSIMILARITYTABLE(t, s, 1)",
    ),
    (State::Works, "STRING_SPLIT", "without ordinals", "SELECT * FROM STRING_SPLIT('a,b', ',')"),
];

/// Parts of dates come first in these.
const OF_DATES: [&str; 6] =
    ["DATEADD", "DATEDIFF", "DATEDIFF_BIG", "DATENAME", "DATEPART", "DATETRUNC"];

fn argument(parameter: Parameter) -> &'static str {
    match parameter {
        Parameter::Text | Parameter::National => "'a'",
        Parameter::Moment => "'2020-01-01'",
        Parameter::Binary => "0x01",
        Parameter::Int | Parameter::Float | Parameter::Typed | Parameter::Number => "1",
    }
}

fn called(name: &str, parameters: &[Parameter], count: usize) -> String {
    let last = parameters.last().copied().unwrap_or(Parameter::Typed);
    let of = |at| argument(parameters.get(at).copied().unwrap_or(last));
    let arguments: Vec<&str> = (0..count).map(of).collect();
    format!("SELECT {name}({})", arguments.join(", "))
}

fn special(name: &str, least: usize) -> String {
    let arguments: Vec<&str> = (0..least)
        .map(|at| match (OF_DATES.contains(&name), at) {
            (true, 0) => "day",
            (true, 1) if name == "DATEADD" => "1",
            (true, _) => "'2020-01-01'",
            (false, _) if ["DAY", "MONTH", "YEAR"].contains(&name) => "'2020-01-01'",
            (false, _) if ["CHOOSE", "FORMAT"].contains(&name) && at == 0 => "1",
            (false, _) if ["REPLICATE", "STUFF", "SUBSTRING"].contains(&name) && at > 0 => "1",
            (false, _) => "'a'",
        })
        .collect();
    format!("SELECT {name}({})", arguments.join(", "))
}

pub(super) fn all() -> impl Iterator<Item = Feature> {
    let works =
        |name: &str, example: String| Feature::new(Kind::Function, name, State::Works, example);
    let builtins = BUILTINS
        .iter()
        .map(move |one| works(one.name, called(one.name, one.parameters, one.least)));
    let specials = SPECIALS.iter().map(move |(name, least, _)| works(name, special(name, *least)));
    let clocks = CLOCKS.iter().map(move |(name, _, _)| works(name, format!("SELECT {name}()")));
    let aggregates = AGGREGATES.into_iter().map(move |name| match name {
        "STRING_AGG" => works(name, format!("SELECT {name}(name, ',') FROM sys.databases")),
        _ => works(name, format!("SELECT {name}(database_id) FROM sys.databases")),
    });
    let rankings = RANKINGS.iter().map(move |(name, least, _)| {
        let argument = if *least > 0 { "1" } else { "" };
        works(name, format!("SELECT {name}({argument}) OVER (ORDER BY name) FROM sys.databases"))
    });
    let is_refused = |name: &str| {
        names(lists::FUNCTIONS).chain(names(lists::GLOBALS)).any(|known| known == name)
    };
    let server = SERVER_FUNCTIONS.iter().map(move |one| {
        let state = if is_refused(one.name) { State::Refused } else { State::Works };
        let is_bare = ["CURRENT_USER", "SESSION_USER", "SYSTEM_USER", "USER"].contains(&one.name);
        match one.name.starts_with("@@") {
            true => {
                let example = format!("SELECT {}", one.name);
                Feature::new(Kind::GlobalVariable, one.name, state, example)
            }
            false if is_bare => works(one.name, format!("SELECT {}", one.name)),
            false => {
                // Those of the schema `sys` are called by it.
                let name = match one.name.starts_with("FN_") {
                    true => format!("sys.{}", one.name.to_lowercase()),
                    false => one.name.to_owned(),
                };
                let example = called(&name, one.parameters, one.least);
                Feature::new(Kind::Function, name, state, example)
            }
        }
    });
    let metadata = METADATA.iter().map(move |one| {
        let arguments: Vec<&str> = vec!["NULL"; one.arguments()];
        let example = format!("SELECT {}({})", one.name, arguments.join(", "));
        match one.name {
            "STATS_DATE" => Feature::new(Kind::Function, one.name, State::NoEffect, example)
                .with_note("NULL: SQLite keeps no date of its statistics"),
            _ => works(one.name, example),
        }
    });
    let is_there = |name: &&str| !SERVER_FUNCTIONS.iter().any(|one| one.name == *name);
    let refused = names(lists::FUNCTIONS).filter(is_there).map(|name| {
        Feature::new(Kind::Function, name, State::Refused, format!("SELECT {name}(1)"))
    });
    let of_msdb = names(lists::FUNCTIONS_OF_MSDB).map(|name| format!("msdb.dbo.{name}"));
    let of_sys = names(lists::OF_SYS).map(|name| format!("sys.{name}")).chain(of_msdb);
    let of_sys = of_sys.map(|name| {
        let example = format!("SELECT {name}(1)");
        Feature::new(Kind::Function, name, State::Refused, example)
    });
    let globals = names(lists::GLOBALS).filter(is_there).map(|name| {
        Feature::new(Kind::GlobalVariable, name, State::Refused, format!("SELECT {name}"))
    });
    builtins
        .chain(specials)
        .chain(clocks)
        .chain(aggregates)
        .chain(rankings)
        .chain(server)
        .chain(metadata)
        .chain(refused)
        .chain(of_sys)
        .chain(globals)
        .chain(entries(Kind::Function, READ))
        .chain(entries(Kind::TableFunction, TABLES))
        .chain(of_tables())
}

fn of_tables() -> impl Iterator<Item = Feature> {
    let of = |name: &str, state, arguments: String| {
        let name = format!("sys.{name}");
        let example = format!("SELECT * FROM {name}({arguments})");
        Feature::new(Kind::TableFunction, name, state, example)
    };
    let works = table_functions().map(move |(name, count)| {
        let arguments = vec!["NULL"; count].join(", ");
        match crate::views::find("sys", name).is_some_and(|view| view.is_always_empty()) {
            true => of(name, State::NoEffect, arguments).with_note("never has a row"),
            false => of(name, State::Works, arguments),
        }
    });
    let refused =
        names(lists::TABLE_FUNCTIONS).map(move |name| of(name, State::Refused, "NULL".to_owned()));
    works.chain(refused)
}
