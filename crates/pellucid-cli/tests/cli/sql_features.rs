//! Goal: the list of what there is tells the truth, and nothing that SQL Server has is called unknown.
//!
//! Method: each example of the list is executed, and ends as its state says; the page has what the program writes. Then names
//! that people have themselves, and batches that are refused as a whole.
//!
//! The page is made by `pellucid sql --features=markdown > docs/features.md`.

use std::collections::BTreeMap;

use pellucid_sql::features::{all, Feature, Kind, State};

use crate::sql_server::{errors, Server};
use crate::support::Place;

/// What SQL Server says of what it has never heard of.
const UNKNOWN: [&str; 14] = [
    "102", "137", "155", "156", "195", "208", "243", "319", "343", "1038", "2526", "2812", "4121",
    "8146",
];

/// The messages of an example, and whether one of its lines is NULL.
struct Told {
    messages: Vec<(String, String)>,
    is_null: bool,
}

/// What each example shows, executed in this order in one session.
fn told(server: &Server, features: &[&Feature]) -> Vec<Told> {
    let mut script = "SET NOCOUNT ON\nGO\n".to_owned();
    for feature in features {
        // What SET leaves is set back; what it keeps from being executed says nothing.
        script += &format!(
            "{}\nGO\nSET PARSEONLY OFF\nGO\nSET NOEXEC OFF\nGO\nPRINT '<next>'\nGO\n",
            feature.example
        );
    }
    let shown = server.run(&script).all();
    let parts: Vec<&str> = shown.split("<next>").collect();
    assert_eq!(parts.len(), features.len() + 1, "{}", parts.last().unwrap());
    let number =
        |(number, text): (String, String)| (number.trim_start_matches("Msg ").to_owned(), text);
    parts[..features.len()]
        .iter()
        .map(|part| Told {
            messages: errors(part).into_iter().map(number).collect(),
            is_null: part.lines().any(|line| line == "NULL"),
        })
        .collect()
}

fn is_as_claimed(feature: &Feature, told: &Told) -> bool {
    let is_null = feature.note == "NULL";
    if feature.kind == Kind::Property && told.is_null != is_null {
        return false;
    }
    let told = &told.messages;
    let unsupported: Vec<_> = told.iter().filter(|(number, _)| number == "50001").collect();
    match feature.state {
        State::Refused => {
            // By its name: the last word of it, as the message may say more or less of the statement around it.
            let bare = feature.name.to_lowercase();
            let bare = bare.rsplit(['.', ' ']).next().unwrap();
            unsupported.iter().any(|(_, text)| text.to_lowercase().contains(bare))
        }
        State::Works | State::NoEffect => {
            unsupported.is_empty()
                && !told.iter().any(|(number, text)| {
                    // An example names tables that are not there.
                    UNKNOWN.contains(&number.as_str()) && text != "Invalid object name 'none'."
                })
        }
    }
}

#[test]
fn each_name_is_in_the_state_that_the_list_claims() {
    let all = all();
    assert!(all.len() > 1500, "{}", all.len());
    let mut kinds: BTreeMap<Kind, Vec<&Feature>> = BTreeMap::new();
    for feature in &all {
        kinds.entry(feature.kind).or_default().push(feature);
    }
    let mut wrong = Vec::new();
    for (kind, features) in kinds {
        let server = Server::with(&[]);
        server.run("CREATE DATABASE example\nGO\nBACKUP DATABASE example TO DISK = 'example.bak'");
        if kind == Kind::DatabaseOption {
            server.run("USE example\nGO\nCREATE TABLE t(a int)");
        }
        for (feature, told) in features.iter().zip(told(&server, &features)) {
            if !is_as_claimed(feature, &told) {
                wrong.push(format!(
                    "{} {}: {}: {:?}",
                    kind.text(),
                    feature.name,
                    feature.example,
                    told.messages
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

#[test]
fn the_page_is_what_the_program_writes() {
    let place = Place::new();
    let written = place.pellucid(&["sql", "--features=markdown"]).succeeded();
    let page = include_str!("../../../../docs/features.md");
    let at = written.lines().zip(page.lines()).position(|(one, other)| one != other);
    let make = "pellucid sql --features=markdown > docs/features.md";
    assert!(written == page, "docs/features.md differs in line {at:?}: {make}");
}

fn numbers(server: &Server, script: &str) -> Vec<String> {
    let told = server.run(script).all();
    errors(&told)
        .into_iter()
        .map(|(number, _)| number.trim_start_matches("Msg ").to_owned())
        .collect()
}

#[test]
fn what_nobody_has_stays_unknown() {
    let server = Server::with(&[]);
    for (script, number) in [
        ("SELECT * FROM sys.nothing", "208"),
        ("SELECT * FROM INFORMATION_SCHEMA.nothing", "208"),
        ("SELECT * FROM msdb.dbo.nothing", "208"),
        ("SELECT * FROM sys.nothing(1)", "208"),
        ("SELECT sys.nothing(1)", "4121"),
        ("EXEC sp_nothing", "2812"),
        ("DBCC NOTHING", "2526"),
        ("SELECT NOTHING(1)", "195"),
        ("SELECT @@NOTHING", "137"),
        ("SET NOTHING ON", "195"),
        ("CREATE NOTHING n", "343"),
        ("BACKUP DATABASE d TO DISK = 'd' WITH NOTHING", "155"),
        ("RESTORE DATABASE d FROM DISK = 'd' WITH NOTHING", "155"),
        ("DECLARE @a nothing", "2715"),
        ("SELECT CAST(1 AS nothing)", "243"),
    ] {
        assert_eq!(numbers(&server, script), [number], "{script}");
    }
}

/// SQL Server looks for these names among people's own first, and for others never.
#[test]
fn names_that_people_have_themselves_are_theirs() {
    let server = Server::with(&[]);
    server.run(
        "CREATE DATABASE app\nGO\nUSE app\nGO\nCREATE PROCEDURE sp_help_alert AS SELECT 7 AS a",
    );
    for name in [
        "sysprocesses",
        "syslockinfo",
        "sysmail_profile",
        "sysmail_query_transfer",
        "spt_values",
        "dm_os_wait_stats",
    ] {
        let made = format!("USE app CREATE TABLE {name}(a int) INSERT {name} VALUES (7)");
        assert_eq!(numbers(&server, &made), Vec::<String>::new(), "{made}");
        for from in [name.to_owned(), format!("app.dbo.{name}"), format!("app..{name}")] {
            let query = format!("SET NOCOUNT ON USE app SELECT a FROM {from}");
            assert_eq!(server.rows(&query).last().unwrap(), "7", "{query}");
        }
    }
    assert_eq!(numbers(&server, "USE app SELECT * FROM sys.syslockinfo"), ["50001"]);
    assert_eq!(numbers(&server, "SELECT * FROM master..syslockinfo"), ["50001"]);
    // What is here is found behind people's own, too.
    let spid = "SET NOCOUNT ON USE app SELECT COUNT(*) FROM sys.sysprocesses WHERE spid = @@SPID";
    assert_eq!(server.rows(spid).last().unwrap(), "1");
    assert_eq!(server.rows("SET NOCOUNT ON USE app EXEC sp_help_alert").last().unwrap(), "7");
    // One of msdb is found there alone.
    assert_eq!(numbers(&server, "EXEC sp_start_job"), ["2812"]);
    assert_eq!(numbers(&server, "EXEC msdb.dbo.sp_start_job 'j'"), ["14262"]);
    assert_eq!(numbers(&server, "EXEC msdb.dbo.sp_help_alert 'j'"), ["50001"]);
    // One that every database has is the server's, whoever made one of the name.
    server.run("USE app\nGO\nCREATE PROCEDURE sp_lock AS SELECT 7 AS a");
    assert_eq!(numbers(&server, "USE app EXEC sp_lock"), ["50001"]);
    server.run("USE app\nGO\nCREATE SCHEMA own\nGO\nCREATE PROCEDURE own.sp_lock AS SELECT 7 AS a");
    assert_eq!(server.rows("SET NOCOUNT ON USE app EXEC own.sp_lock").last().unwrap(), "7");
}

#[test]
fn what_is_refused_is_refused_before_anything_was_changed() {
    let server = Server::with(&[]);
    server.run("CREATE DATABASE app");
    let tables = || server.rows("SET NOCOUNT ON SELECT name FROM app.sys.tables ORDER BY name");
    // The grammar refuses the batch.
    for rest in [
        "MERGE t USING u ON 1 = 1 WHEN MATCHED THEN DELETE",
        "SELECT 1 AS a FOR JSON PATH",
        "GRANT SELECT ON t TO x",
        "CREATE TRIGGER r ON t AFTER INSERT AS PRINT 'a'",
        "IF 1 = 0 BULK INSERT t FROM 'x'",
        "BACKUP DATABASE app TO DISK = 'a' WITH METADATA_ONLY",
    ] {
        assert_eq!(numbers(&server, &format!("USE app CREATE TABLE t(a int) {rest}")), ["50001"]);
        assert_eq!(tables(), Vec::<String>::new(), "{rest}");
    }
    // Others are refused when they are reached, as SQL Server refuses names, and change nothing themselves.
    server.run("USE app CREATE TABLE t(a int) INSERT t VALUES (1)");
    for statement in [
        "INSERT t SELECT 2 FROM sys.dm_xe_sessions",
        "INSERT t SELECT CHECKSUM(3)",
        "INSERT t EXEC sp_lock",
        "UPDATE t SET a = @@IDLE",
        "DELETE t WHERE a IN (SELECT rsc_dbid FROM syslockinfo)",
        "SELECT 1 AS a INTO u FROM sys.dm_xe_sessions",
    ] {
        assert_eq!(numbers(&server, &format!("USE app {statement}")), ["50001"], "{statement}");
        assert_eq!(tables(), ["t"], "{statement}");
        assert_eq!(server.rows("SET NOCOUNT ON SELECT a FROM app.dbo.t"), ["1"], "{statement}");
    }
    let recovery =
        "SET NOCOUNT ON SELECT recovery_model_desc FROM sys.databases WHERE name = 'app'";
    let before = server.rows(recovery);
    for option in ["EMERGENCY", "DELAYED_DURABILITY = FORCED"] {
        for model in ["SIMPLE", "FULL", "BULK_LOGGED"] {
            let set = format!("ALTER DATABASE app SET RECOVERY {model}, {option}");
            assert_eq!(numbers(&server, &set), ["50001", "5069"], "{set}");
            assert_eq!(server.rows(recovery), before, "{set}");
        }
    }
    let told = server.run("SET NOCOUNT, SHOWPLAN_ALL ON\nGO\nSELECT 1 AS a").all();
    assert!(told.contains("50001") && told.contains("(1 rows affected)"), "{told}");
}

#[test]
fn the_list_is_there_for_people_and_for_programs() {
    let place = Place::new();
    let table = place.pellucid(&["sql", "--features"]).succeeded();
    let is_row = |line: &&str| line.starts_with("statement") && line.contains("MERGE");
    let row = table.lines().find(is_row).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["statement", "MERGE", "refused"]);
    let json = place.pellucid(&["sql", "--features", "--json"]).succeeded();
    let list: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(list.len(), table.lines().count() - 2);
    for one in &list {
        let keys: Vec<_> = one.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["kind", "name", "note", "state"], "{one}");
        assert!(["works", "without effect", "refused"].contains(&one["state"].as_str().unwrap()));
    }
    let state = |kind: &str, name: &str| {
        let found = list.iter().find(|one| one["kind"] == kind && one["name"] == name);
        found.map(|one| one["state"].as_str().unwrap().to_owned())
    };
    assert_eq!(state("sqlcmd option", "-i").unwrap(), "works");
    assert_eq!(state("sqlcmd option", "-P").unwrap(), "without effect");
    assert_eq!(state("sqlcmd command", ":ed").unwrap(), "refused");
}

/// The commands of sqlcmd are those that scripts are read by.
#[test]
fn each_command_of_a_script_is_in_the_list() {
    let source = include_str!("../../../pellucid-tsql/src/batch/command.rs");
    let (source, _) = source.split_once("/// The first word of").unwrap();
    let first = |name: &str| name.split(' ').next().unwrap().to_lowercase();
    let words = source.split('"').skip(1).step_by(2);
    let words = words.filter(|word| word.starts_with([':', '!']) && *word != "::");
    let mut known: Vec<String> = words.map(first).collect();
    known.sort();
    known.dedup();
    let place = Place::new();
    let json = place.pellucid(&["sql", "--features", "--json"]).succeeded();
    let list: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    let of_commands = list.iter().filter(|one| one["kind"] == "sqlcmd command");
    let listed = of_commands.map(|one| first(one["name"].as_str().unwrap()));
    let listed: Vec<_> = listed.filter(|name| name.starts_with([':', '!'])).collect();
    assert_eq!(listed, known);
}

/// What scripts look for among all that a database has.
#[test]
fn what_every_database_has_is_shown() {
    let server = Server::with(&[]);
    server.run("CREATE DATABASE app\nGO\nUSE app\nGO\nCREATE TABLE t(a int)");
    let rows = |query: &str| server.rows(&format!("SET NOCOUNT ON USE app {query}"));
    let last = |query: &str| rows(query).pop().unwrap();
    assert_eq!(
        last("SELECT name, type, is_ms_shipped FROM sys.all_objects WHERE name IN ('t', 'databases') ORDER BY name DESC"),
        "databases|V|1"
    );
    assert_eq!(
        last("SELECT COUNT(*) FROM sys.all_objects o JOIN sys.schemas s ON s.schema_id = o.schema_id WHERE o.object_id = OBJECT_ID('sys.databases') AND s.name = 'sys'"),
        "1"
    );
    assert_eq!(last("SELECT COUNT(*) FROM sys.system_objects WHERE name = 't'"), "0");
    assert_eq!(last("SELECT name FROM sys.data_spaces"), "PRIMARY");
    assert_eq!(
        last("SELECT name, system_type_id, max_length, precision, scale FROM sys.types WHERE user_type_id = TYPE_ID('datetime2')"),
        "datetime2|42|8|27|7"
    );
    assert_eq!(last("SELECT COUNT(*) FROM sys.types WHERE TYPE_NAME(user_type_id) <> name"), "0");
    assert_eq!(
        last("SELECT CATALOG_NAME, SCHEMA_NAME FROM INFORMATION_SCHEMA.SCHEMATA WHERE SCHEMA_NAME = 'dbo'"),
        "app|dbo"
    );
}
