//! Article 0's scripts, and the backups that they speak of.

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::sql::{Server, Table};
use pellucid_lab_report::statistics::mean;

use super::instance::ARTICLE_DISKS;
use crate::experiment::medium::CHOICES;
use crate::experiment::notes::{Notes, Turn};

/// Word for word; crates/pellucid-cli/tests/cli/sql_articles.rs runs them, too.
pub const ATTACH: &str =
    include_str!("../../../../crates/pellucid-sql/tests/articles/0-attach.sql");
/// Makes the keys.
pub const KEYS: &str = include_str!("../../../../crates/pellucid-sql/tests/articles/0-keys.sql");
/// Backs them up.
pub const BACKUP_KEYS: &str =
    include_str!("../../../../crates/pellucid-sql/tests/articles/0-backup-keys.sql");
/// Writes the statements of the backups.
pub const GENERATE: &str =
    include_str!("../../../../crates/pellucid-sql/tests/articles/0-generate.sql");
/// Reads sizes and durations from msdb.
pub const DURATIONS: &str =
    include_str!("../../../../crates/pellucid-sql/tests/articles/0-durations.sql");
/// Backups that the generator writes.
pub const STATEMENTS: usize = 40;
/// The one of the last decimal in which the article's query rounds a mean.
const ROUNDED_S: f64 = 1e-5;

/// One backup of the article, for one choice.
#[derive(Debug)]
pub struct Statement {
    pub name: String,
    pub text: String,
}

/// The statement of a choice from one of the article's disks to another, by their numbers.
///
/// # Errors
/// [`Error::Invalid`] if the article has none.
pub fn find<'a>(
    statements: &'a [Statement],
    choice: &str,
    (source, target): (usize, usize),
    compression: &str,
) -> Result<&'a Statement> {
    let choice = if choice == CHOICES[0] { "NO_ENCRYPTION" } else { choice };
    let (from, to) = (ARTICLE_DISKS[source], ARTICLE_DISKS[target]);
    let end = format!("-{choice}-{from}-to-{to}-{compression}");
    let found = statements.iter().find(|one| one.name.ends_with(&end));
    found.ok_or_else(|| Error::invalid(format!("article 0 has no backup `{end}`")))
}

/// Asks the article's query for all rounds and writes its row of each backup, which the runs go by with their names.
///
/// # Errors
/// [`Error::Invalid`] if it has other rows, or says something else than the runs, one by one.
pub fn ask(server: &Server, notes: &mut Notes, asked: &[(Turn<'_>, &str)]) -> Result<()> {
    let answer = server.run(DURATIONS)?;
    let table = answer.table()?;
    if table.rows.len() != asked.len() {
        return Err(Error::invalid(format!(
            "article 0's query gives {} rows of {}",
            table.rows.len(),
            asked.len()
        )));
    }
    for (turn, name) in asked {
        let row = row_of(table, name)?;
        let number = |column| table.number(row, column);
        let average = number("avg_duration")?;
        let found = mean(&notes.values(turn.cell, turn.side, "msdb_whole_s"));
        if !found.is_some_and(|found| (found - average).abs() < ROUNDED_S) {
            return Err(Error::invalid(format!(
                "{}, {}: msdb's runs have a mean of {found:?} s, the article's query {average} s",
                turn.cell, turn.side
            )));
        }
        let numbers = [
            ("article_natural_size_mb", number("natural_size")?),
            ("article_compressed_size_mb", number("compressed_size")?),
            ("article_min_duration_s", number("min_duration")?),
            ("article_max_duration_s", number("max_duration")?),
            ("article_avg_duration_s", average),
        ];
        notes.write(*turn, numbers)?;
    }
    Ok(())
}

/// The row of the backup `name` in the answer of article 0's query.
fn row_of(table: &Table, name: &str) -> Result<usize> {
    let is_it = |row: &usize| table.text(*row, "name").is_ok_and(|found| found == name);
    let found = (0..table.rows.len()).find(is_it);
    found.ok_or_else(|| Error::invalid(format!("article 0's query does not know `{name}`")))
}

/// The statements that the generator has written, by the names of their backups; `verb` is what they begin with.
///
/// # Errors
/// [`Error::Invalid`] if they are not as many as the article has.
pub fn statements(script: &str, verb: &str) -> Result<Vec<Statement>> {
    let name = |text: &str| {
        let (_, rest) = text.split_once("NAME = '")?;
        Some(rest.split_once('\'')?.0.to_string())
    };
    let statements: Vec<_> = script
        .split(&format!("\n{verb} "))
        .skip(1)
        .map(|rest| format!("{verb} {rest}"))
        .filter_map(|text| Some(Statement { name: name(&text)?, text }))
        .collect();
    match statements.len() {
        STATEMENTS => Ok(statements),
        other => {
            Err(Error::invalid(format!("article 0's generator gives {other} of {STATEMENTS}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str =
        include_str!("../../../../crates/pellucid-sql/tests/articles/0-backups.sql");

    #[test]
    fn the_statements_are_those_that_the_article_prints() {
        let statements = statements(&format!("\n{PRINTED}"), "BACKUP DATABASE").unwrap();
        assert_eq!(statements[0].name, "test01-NO_ENCRYPTION-HDD-to-HDD-COMPRESSION");
        assert!(statements[0].text.starts_with("BACKUP DATABASE awHDD TO DISK = 'D:"));
        assert!(statements[2].text.trim_end().ends_with(';'), "{}", statements[2].text);
        assert!(super::statements("\nBACKUP DATABASE a NAME = 'x'", "BACKUP DATABASE").is_err());
    }
}
