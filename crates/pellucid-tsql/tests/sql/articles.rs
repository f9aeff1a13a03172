//! Goal: the scripts of the articles parse as they are printed. Method: files taken out of the articles word for
//! word by `articles/extract.py`; where the articles themselves are at hand (beside the checkout, or where
//! `PELLUCID_ARTICLES` says), the files are compared with them first. Parse, print, parse again: equal.

use std::path::{Path, PathBuf};
use std::process::Command;

use pellucid_tsql::ast::{
    Algorithm, Backup, BackupFlag, BackupOption, Encryptor, IndexAction, IndexOption,
    MaintenanceStatement, OrVariable, SelectItem, Statement, StatementKind,
};
use pellucid_tsql_testing::{batches, round_trip, ToSql};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../pellucid-sql/tests/articles")
}

/// The statements of each batch.
fn script(name: &str) -> Vec<Vec<Statement>> {
    let text = std::fs::read_to_string(directory().join(name)).unwrap();
    batches(&text).iter().map(|(batch, _)| round_trip(batch)).collect()
}

fn statements(name: &str) -> Vec<StatementKind> {
    script(name).into_iter().flatten().map(|statement| statement.kind).collect()
}

#[test]
fn the_files_are_the_articles_word_for_word() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/articles");
    let articles = std::env::var_os("PELLUCID_ARTICLES").map_or(beside, PathBuf::from);
    if !articles.join("article-0.txt").exists() {
        eprintln!("{}: no articles here, nothing compared", articles.display());
        return;
    }
    let compared =
        Command::new("python3").arg(directory().join("extract.py")).arg(articles).output();
    let compared = compared.unwrap();
    assert!(compared.status.success(), "{compared:?}");
}

#[test]
fn every_file_round_trips() {
    let mut files = 0;
    for entry in std::fs::read_dir(directory()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".sql") {
            assert!(!script(&name).is_empty(), "{name}");
            files += 1;
        }
    }
    assert_eq!(files, 15);
}

#[test]
fn batches_and_statements_are_counted_by_hand() {
    for (name, counts) in [
        ("0-attach.sql", &[1, 1, 4, 1, 4][..]),
        ("0-helpfile.sql", &[1]),
        ("0-keys.sql", &[1, 1, 1, 1]),
        ("0-backup-keys.sql", &[2]),
        ("0-generate.sql", &[3]),
        ("0-backups.sql", &[40]),
        ("0-durations.sql", &[1]),
        ("1-backup.sql", &[1, 1, 2, 1]),
        ("1-create.sql", &[1]),
        ("2-keys.sql", &[1, 1, 1, 1, 1, 1]),
        ("2-checkdb.sql", &[4]),
        ("2-backup.sql", &[4]),
        ("2-restore.sql", &[5]),
        ("2-rebuild.sql", &[2, 8, 8]),
        ("2-statistics.sql", &[2, 8, 8]),
    ] {
        let found: Vec<_> = script(name).iter().map(Vec::len).collect();
        assert_eq!(found, counts, "{name}");
    }
}

#[test]
fn the_forty_backups_are_what_their_names_say() {
    let mut seen = Vec::new();
    for kind in statements("0-backups.sql") {
        let StatementKind::Backup(backup) = kind else { panic!("{kind:?}") };
        let Backup { database: OrVariable::Given(database), options, .. } = &*backup else {
            panic!("{backup:?}")
        };
        let name = options.iter().find_map(|option| match option {
            BackupOption::Name(OrVariable::Given(name)) => Some(name.text.clone()),
            _ => None,
        });
        let name = name.unwrap();
        assert_eq!(options[0], BackupOption::Flag(BackupFlag::Init));
        let compressed = options.contains(&BackupOption::Compression(None));
        assert_eq!(compressed, !name.ends_with("-NO_COMPRESSION"), "{name}");
        let algorithm = options.iter().find_map(|option| match option {
            BackupOption::Encryption { algorithm, encryptor: Encryptor::Certificate(by) } => {
                assert_eq!(by.as_str(), "TestCert");
                Some(*algorithm)
            }
            _ => None,
        });
        let named = [
            ("AES_128", Some(Algorithm::Aes128)),
            ("AES_192", Some(Algorithm::Aes192)),
            ("AES_256", Some(Algorithm::Aes256)),
            ("TRIPLE_DES_3KEY", Some(Algorithm::TripleDes3Key)),
            ("NO_ENCRYPTION", None),
        ];
        let (_, expected) = named.into_iter().find(|(word, _)| name.contains(word)).unwrap();
        assert_eq!(algorithm, expected, "{name}");
        assert_eq!(database.as_str(), if name.contains("-HDD-to") { "awHDD" } else { "awSSD" });
        seen.push(name);
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 40);
}

#[test]
fn the_generator_assigns_in_order_and_its_parts_are_where_they_belong() {
    let kinds = statements("0-generate.sql");
    assert!(matches!(kinds[0], StatementKind::Declare(_)));
    let StatementKind::Select(query) = &kinds[1] else { panic!() };
    let names: Vec<_> = query.with.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["s", "m", "c", "d"]);
    assert_eq!(query.order.len(), 1);
    let pellucid_tsql::ast::QueryBody::Select(select) = &query.body else { panic!() };
    assert!(matches!(select.items[..], [SelectItem::Assign { .. }]));
}

#[test]
fn uncommented_it_runs_ten_times_and_the_last_select_is_a_batch_of_its_own() {
    let text = std::fs::read_to_string(directory().join("0-generate.sql")).unwrap();
    let ran =
        text.replace("--EXEC sp_executesql @sql;\n--GO 10", "EXEC sp_executesql @sql;\nGO 10");
    let batches = batches(&ran);
    assert_eq!(batches.iter().map(|(_, repeat)| *repeat).collect::<Vec<_>>(), [10, 1]);
    assert_eq!(round_trip(&batches[0].0).len(), 3);
    assert_eq!(round_trip(&batches[1].0)[0].to_sql(), "SELECT CAST(@sql AS XML);");
}

#[test]
fn lines_are_those_of_the_batch() {
    let rebuilds = script("2-rebuild.sql");
    let lines: Vec<_> = rebuilds[1].iter().map(|statement| statement.line).collect();
    assert_eq!(lines, [1, 2, 4, 8, 12, 16, 20, 21]);
    let StatementKind::Maintenance(MaintenanceStatement::AlterIndex { action, .. }) =
        &rebuilds[1][2].kind
    else {
        panic!()
    };
    let IndexAction::Rebuild { options, .. } = action else { panic!() };
    assert_eq!(options.iter().filter(|o| matches!(o, IndexOption::Switch { .. })).count(), 7);
}

#[test]
fn no_password_is_printed() {
    for name in ["0-keys.sql", "0-backup-keys.sql", "1-backup.sql", "2-keys.sql"] {
        for statement in script(name).into_iter().flatten() {
            let (shown, debug) = (statement.to_sql(), format!("{statement:?}"));
            for password in ["p@ssw0rd", "1qaz!QAZ", "Y0uR_P@$$worD_123"] {
                assert!(!shown.contains(password) && !debug.contains(password), "{name}");
            }
        }
    }
    let create = &script("0-keys.sql")[1][0];
    assert_eq!(create.to_sql(), "CREATE MASTER KEY ENCRYPTION BY PASSWORD = '***';");
    assert!(create.to_sql_with_secrets().contains("'p@ssw0rd'"));
}
