//! Article 0's scripts, and the backups that they speak of.

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::sql::Table;

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

/// One backup of the article, for one choice.
#[derive(Debug)]
pub struct Statement {
    pub name: String,
    pub text: String,
}

/// The row of the backup `name` in the answer of article 0's query.
///
/// # Errors
/// [`Error::Invalid`] if it is not there.
pub fn row_of(table: &Table, name: &str) -> Result<usize> {
    let is_it = |row: &usize| table.text(*row, "name").is_ok_and(|found| found == name);
    let found = (0..table.rows.len()).find(is_it);
    found.ok_or_else(|| Error::invalid(format!("article 0's query does not know `{name}`")))
}

/// The statements that the generator has written, by the names of their backups.
pub fn statements(script: &str) -> Result<Vec<Statement>> {
    const START: &str = "\nBACKUP DATABASE ";
    let name = |text: &str| {
        let (_, rest) = text.split_once("NAME = '")?;
        Some(rest.split_once('\'')?.0.to_string())
    };
    let statements: Vec<_> = script
        .split(START)
        .skip(1)
        .map(|rest| format!("{}{rest}", START.trim_start()))
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
        let statements = statements(&format!("\n{PRINTED}")).unwrap();
        assert_eq!(statements[0].name, "test01-NO_ENCRYPTION-HDD-to-HDD-COMPRESSION");
        assert!(statements[0].text.starts_with("BACKUP DATABASE awHDD TO DISK = 'D:"));
        assert!(statements[2].text.trim_end().ends_with(';'), "{}", statements[2].text);
        assert!(super::statements("\nBACKUP DATABASE a NAME = 'x'").is_err());
    }
}
