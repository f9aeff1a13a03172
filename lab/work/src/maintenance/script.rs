//! Statements: cut out of the article's scripts, and those that it lacks.

use pellucid_lab_measure::error::{Error, Result};

const CHECK: &str = include_str!("../../../../crates/pellucid-sql/tests/articles/2-checkdb.sql");
const BACKUP: &str = include_str!("../../../../crates/pellucid-sql/tests/articles/2-backup.sql");
const RESTORE: &str = include_str!("../../../../crates/pellucid-sql/tests/articles/2-restore.sql");
const REBUILD: &str = include_str!("../../../../crates/pellucid-sql/tests/articles/2-rebuild.sql");
const STATISTICS: &str =
    include_str!("../../../../crates/pellucid-sql/tests/articles/2-statistics.sql");

/// The article's: plain, sealed.
pub const DATABASES: [&str; 2] = ["WideWorldImporters", "WideWorldImporters_encrypted"];

/// What one of the article's statements begins with.
const STARTS: [&str; 5] =
    ["DBCC CHECKDB", "BACKUP DATABASE", "RESTORE DATABASE", "ALTER INDEX", "UPDATE STATISTICS"];
/// What ends a statement besides the next one.
const ENDS: [&str; 4] = ["SET STATISTICS", "USE ", "GO", "Print "];

const LINES: &str = "[Sales].[OrderLines]";
const COLUMNS: &str = "OrderID, StockItemID, Description, Quantity, UnitPrice, PickedQuantity, PickingCompletedWhen, \
     LastEditedBy, LastEditedWhen";

/// One statement on both sides.
#[derive(Debug)]
pub struct Cell {
    pub name: String,
    pub statements: [Statement; 2],
    pub kind: Kind,
}

/// What a statement is, as far as its numbers depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Backup,
    Restore,
    /// Reads or changes so many rows.
    Rows(u64),
    Other,
}

/// One statement of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// That it is executed in, if it says nothing of it itself.
    pub database: Option<String>,
    pub text: String,
}

/// What is measured: cells of a group are run one behind the other, as a restore comes after its backup.
///
/// # Errors
/// [`Error::Invalid`] if a script is not as expected.
pub fn groups(lines: u64, range: u64, select: bool, dml: bool) -> Result<Vec<Vec<Cell>>> {
    let one = |name: &str, script: &str, kind| {
        let mut cells = cells(name, script, kind)?;
        cells.pop().filter(|_| cells.is_empty()).ok_or_else(|| wrong(name))
    };
    let mut groups = vec![
        vec![one("CHECKDB", CHECK, Kind::Other)?],
        vec![one("BACKUP", BACKUP, Kind::Backup)?, one("RESTORE", RESTORE, Kind::Restore)?],
    ];
    groups.extend(cells("REBUILD", REBUILD, Kind::Other)?.into_iter().map(|cell| vec![cell]));
    groups
        .extend(cells("UPDATE STATISTICS", STATISTICS, Kind::Other)?.into_iter().map(|c| vec![c]));
    let (first, last) = (lines / 2, lines / 2 + range - 1);
    let within = format!("OrderLineID BETWEEN {first} AND {last}");
    let own = |name: &str, text: String, rows| {
        let statement = |name: &str| Statement { database: Some(name.into()), text: text.clone() };
        Cell { name: name.into(), statements: DATABASES.map(statement), kind: Kind::Rows(rows) }
    };
    let read = "SELECT COUNT_BIG(*) AS n, MAX(LEN(Description)) AS longest FROM";
    if select {
        groups.push(vec![own("SELECT, scan", format!("{read} {LINES}"), lines)]);
        groups.push(vec![own("SELECT, range", format!("{read} {LINES} WHERE {within}"), range)]);
    }
    if dml {
        let update = format!(
            "UPDATE {LINES} SET Quantity = Quantity + 1, PickedQuantity = PickedQuantity + 1 WHERE {within}"
        );
        groups.push(vec![own("UPDATE", update, range)]);
        let insert = format!(
            "INSERT INTO {LINES} SELECT OrderLineID + {lines}, {COLUMNS} FROM {LINES} WHERE {within}"
        );
        let delete = format!("DELETE FROM {LINES} WHERE OrderLineID > {lines}");
        groups.push(vec![own("INSERT", insert, range), own("DELETE", delete, range)]);
    }
    Ok(groups)
}

/// The script that a statement is timed with: the last times it prints are the statement's.
pub fn timed(statement: &Statement) -> String {
    let database = statement.database.as_ref();
    let within = database.map_or(String::new(), |name| format!("USE [{name}]\nGO\n"));
    let text = statement.text.trim_end();
    format!("{within}SET STATISTICS TIME ON\nGO\n{text}\nGO\nSET STATISTICS TIME OFF\n")
}

/// Name of the medium that the article's statements write and read.
pub fn medium(side: usize) -> String {
    format!("DBAWork{}-Full.bak", DATABASES[side])
}

/// The statements of a script, in pairs: the article has each for both databases. A name gets the object's.
fn cells(name: &str, script: &str, kind: Kind) -> Result<Vec<Cell>> {
    let all = statements(script);
    let mut sides = DATABASES.map(|database| {
        let of = |statement: &&Statement| match &statement.database {
            Some(found) => found == database,
            None => bracketed(&statement.text).first() == Some(&database),
        };
        all.iter().filter(of).cloned().collect::<Vec<_>>().into_iter()
    });
    let count = sides[0].len();
    if count == 0 || count != sides[1].len() || 2 * count != all.len() {
        return Err(wrong(name));
    }
    let [plain, sealed] = &mut sides;
    let pair = |(plain, sealed): (Statement, Statement)| {
        let mut named = name.to_string();
        if plain.database.is_some() {
            // An index, or schema and table.
            let is_index = plain.text.starts_with("ALTER INDEX");
            let words = bracketed(&plain.text);
            let taken = words.iter().take(if is_index { 1 } else { 2 }).copied();
            named = format!("{name} {}", taken.collect::<Vec<_>>().join("."));
        }
        Cell { name: named, statements: [plain, sealed], kind }
    };
    Ok(plain.zip(sealed).map(pair).collect())
}

fn statements(script: &str) -> Vec<Statement> {
    let mut found: Vec<Statement> = Vec::new();
    let (mut database, mut is_within) = (None, false);
    for line in script.lines() {
        if let Some(name) = line.strip_prefix("USE ") {
            database = bracketed(name).first().map(|name| name.to_string());
        }
        if STARTS.iter().any(|start| line.starts_with(start)) {
            let names_it = !(line.starts_with(STARTS[3]) || line.starts_with(STARTS[4]));
            let database = database.clone().filter(|_| !names_it);
            found.push(Statement { database, text: format!("{line}\n") });
            is_within = true;
        } else if ENDS.iter().any(|end| line.starts_with(end)) {
            is_within = false;
        } else if let Some(last) = found.last_mut().filter(|_| is_within) {
            last.text.push_str(line);
            last.text.push('\n');
        }
    }
    found
}

/// Names in brackets.
fn bracketed(text: &str) -> Vec<&str> {
    let parts = text.split('[').skip(1);
    parts.filter_map(|part| Some(part.split_once(']')?.0)).collect()
}

fn wrong(name: &str) -> Error {
    Error::invalid(format!("article 2's script of {name} is not as expected"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_are_the_articles() {
        let groups = groups(1000, 10, true, true).unwrap();
        let names: Vec<Vec<&str>> =
            groups.iter().map(|group| group.iter().map(|cell| &*cell.name).collect()).collect();
        assert_eq!(names[0], ["CHECKDB"]);
        assert_eq!(names[1], ["BACKUP", "RESTORE"]);
        assert_eq!(names[2], ["REBUILD CCX_Warehouse_StockItemTransactions"]);
        assert_eq!(names[6], ["REBUILD FK_Purchasing_PurchaseOrderLines_StockItemID"]);
        assert_eq!(names[7], ["UPDATE STATISTICS Warehouse.StockItemTransactions"]);
        assert_eq!(names[11], ["UPDATE STATISTICS Purchasing.PurchaseOrderLines"]);
        let own: Vec<_> = names[12..].concat();
        assert_eq!(own, ["SELECT, scan", "SELECT, range", "UPDATE", "INSERT", "DELETE"]);
        // Word for word: every line of a statement is one of the script.
        let scripts = [CHECK, BACKUP, RESTORE, REBUILD, STATISTICS].concat();
        for cell in groups.iter().take(12).flatten() {
            let [plain, sealed] = &cell.statements;
            for text in [&plain.text, &sealed.text] {
                assert!(scripts.contains(text.as_str()), "{text}");
                assert!(!text.contains("USE ") && !text.contains("Print"), "{text}");
            }
            assert!(plain.text.trim_end().ends_with(|c: char| c != ','), "{}", plain.text);
        }
        let backup = &groups[1][0].statements;
        assert!(backup[0].text.contains("'D:DBAWorkWideWorldImporters-Full.bak'"));
        assert!(backup[0].text.contains(&medium(0)) && backup[1].text.contains(&medium(1)));
        assert!(backup[1].text.trim_end().ends_with("COMPRESSION, STATS = 100"));
        let rebuild = &groups[3][0].statements;
        assert_eq!(rebuild[1].database.as_deref(), Some(DATABASES[1]));
        assert!(rebuild[1].text.trim_end().ends_with("ALLOW_PAGE_LOCKS = ON)"));
    }

    #[test]
    fn a_statement_is_alone_in_its_batch() {
        let groups = groups(1000, 10, false, false).unwrap();
        assert_eq!(groups.len(), 12);
        let script = timed(&groups[0][0].statements[0]);
        let expected = "SET STATISTICS TIME ON\nGO\nDBCC CHECKDB([WideWorldImporters]) WITH NO_INFOMSGS\nGO\nSET \
                        STATISTICS TIME OFF\n";
        assert_eq!(script, expected);
        assert!(timed(&groups[2][0].statements[1])
            .starts_with("USE [WideWorldImporters_encrypted]\nGO\n"));
    }
}
