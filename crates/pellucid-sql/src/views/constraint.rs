//! sys.foreign_keys, sys.foreign_key_columns, sys.check_constraints, sys.default_constraints, sys.identity_columns, sys.stats,
//! sys.stats_columns
//!
//! SQLite keeps the names of constraints in the text of a table alone.

use rusqlite::OptionalExtension;

use super::catalog::{found, schema_id};
use super::clause::{clauses, Clause, Kind};
use super::lists::{arranged, Same};
use super::{flag, text, Column, Row};
use crate::execute::key_constraints;
use crate::message::Result;
use crate::session::{identity_seed, is_internal, object_id, split, without_literals, Databases};
use crate::translate::{quoted, Table};
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// Source: Microsoft's "sys.foreign_keys".
pub(super) const FOREIGN_KEYS: &[Column] = columns!(object:
    referenced_object_id INT, key_index_id INT, is_disabled BIT, is_not_for_replication BIT, is_not_trusted BIT,
    delete_referential_action BYTE, delete_referential_action_desc DESC, update_referential_action BYTE,
    update_referential_action_desc DESC, is_system_named BIT
);

/// Source: Microsoft's "sys.foreign_key_columns".
pub(super) const FOREIGN_KEY_COLUMNS: &[Column] = columns!(
    constraint_object_id INT, constraint_column_id INT, parent_object_id INT, parent_column_id INT,
    referenced_object_id INT, referenced_column_id INT
);

/// Source: Microsoft's "sys.check_constraints".
pub(super) const CHECKS: &[Column] = columns!(object:
    is_disabled BIT, is_not_for_replication BIT, is_not_trusted BIT, parent_column_id INT, definition NMAX,
    uses_database_collation BIT, is_system_named BIT
);

/// Source: Microsoft's "sys.default_constraints".
pub(super) const DEFAULTS: &[Column] =
    columns!(object: parent_column_id INT, definition NMAX, is_system_named BIT);

/// Source: Microsoft's "sys.identity_columns", of which those of `sys.columns` before these are the first.
pub(super) const IDENTITIES: &[Column] = columns!(
    object_id INT, name NAME, column_id INT, system_type_id BYTE, user_type_id INT, max_length SMALL, precision BYTE,
    scale BYTE, is_nullable BIT, is_identity BIT, is_computed BIT, seed_value BIGINT, increment_value BIGINT,
    last_value BIGINT, is_not_for_replication BIT
);

/// Source: Microsoft's "sys.stats".
pub(super) const STATS: &[Column] = columns!(
    object_id INT, name NAME, stats_id INT, auto_created BIT, user_created BIT, no_recompute BIT, has_filter BIT,
    filter_definition NMAX, is_temporary BIT, is_incremental BIT, has_persisted_sample BIT,
    stats_generation_method INT, stats_generation_method_desc V80, auto_drop BIT, replica_role_id BYTE,
    replica_role_desc DESC, replica_name NAME
);

/// Source: Microsoft's "sys.stats_columns".
pub(super) const STATS_COLUMNS: &[Column] =
    columns!(object_id INT, stats_id INT, stats_column_id INT, column_id INT);

/// A table of the current database.
struct Listed {
    sqlite: String,
    object: i64,
    table: Table,
    clauses: Vec<Clause>,
    /// As it was made.
    sql: String,
}

fn listed(databases: &Databases) -> Result<Option<(String, String, Vec<Listed>)>> {
    let Some((known, schema, all)) = found(databases)? else { return Ok(None) };
    let mut tables = Vec::new();
    for (sqlite, _) in all.into_iter().filter(|(_, is_view)| !is_view) {
        let sql = format!("SELECT sql FROM {}.sqlite_schema WHERE name = ?1", quoted(&schema));
        let sql = databases.connection.query_row(&sql, [&sqlite], |row| row.get(0)).optional()?;
        let sql: String = sql.flatten().unwrap_or_default();
        tables.push(Listed {
            object: object_id(&known.name, &sqlite),
            table: databases.table_of(&schema, &sqlite, false)?,
            clauses: clauses(&sql),
            sql,
            sqlite,
        });
    }
    Ok(Some((known.name, schema, tables)))
}

/// All of them as `sys.objects` has them.
pub(super) fn objects(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = super::index::keys(databases)?;
    rows.extend(foreign_keys(databases)?);
    rows.extend(checks(databases)?);
    rows.extend(defaults(databases)?);
    rows.iter_mut().for_each(|row| row.truncate(super::catalog::OBJECTS.len()));
    Ok(rows)
}

/// A constraint that has a name of its own.
pub(crate) struct NamedConstraint {
    /// Its number in the views.
    pub id: i64,
    pub name: String,
    /// `PK`, `UQ`, `F`, `C` or `D`
    pub kind: &'static str,
    /// SQLite's name of its table.
    pub table: String,
}

/// Those of a database that is attached, by the texts of its tables alone.
///
/// # Errors
/// SQLite's.
pub(crate) fn named(
    databases: &Databases,
    database: &str,
    schema: &str,
) -> Result<Vec<NamedConstraint>> {
    let sql = format!(
        "SELECT name, sql FROM {}.sqlite_schema WHERE type = 'table' AND sql LIKE '%constraint%'",
        quoted(schema)
    );
    let mut statement = databases.connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let (table, sql): (String, String) = (row.get(0)?, row.get(1)?);
        if schema == "temp" && is_internal(&table) {
            continue;
        }
        let mut add = |name: Option<String>, kind, place: String| {
            let id = object_id(database, &format!("{table}.{place}"));
            let table = table.clone();
            all.extend(name.map(|name| NamedConstraint { id, name, kind, table }));
        };
        for key in key_constraints(&sql) {
            let kind = if key.is_primary { "PK" } else { "UQ" };
            add(Some(key.name.clone()), kind, key.name);
        }
        let (mut references, mut checks) = (0, 0);
        for clause in clauses(&sql) {
            match clause.kind {
                Kind::Reference => {
                    add(clause.name, "F", format!("foreign key.{references}"));
                    references += 1;
                }
                Kind::Check(_) => {
                    add(clause.name, "C", format!("check.{checks}"));
                    checks += 1;
                }
                Kind::Default(column) => add(clause.name, "D", format!("default.{column}")),
            }
        }
    }
    Ok(all)
}

/// The columns of `sys.objects` that a constraint has.
fn object(name: &str, id: i64, table: &Listed, kind: (&str, &str)) -> Row {
    vec![
        text(name),
        Value::Integer(id),
        Value::Integer(schema_id(split(&table.sqlite).0)),
        Value::Integer(table.object),
        text(kind.0),
        text(kind.1),
    ]
}

const OF_OBJECT: [&str; 6] =
    ["name", "object_id", "schema_id", "parent_object_id", "type", "type_desc"];

fn known<'n>(others: &[&'n str]) -> Vec<(&'n str, SqlType)> {
    let all = OF_OBJECT.iter().chain(others);
    all.map(|name| (*name, SqlType::Int)).collect()
}

fn column_id(table: &Table, name: &str) -> Value {
    let at = table.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
    at.map_or(Value::Null, |at| Value::Integer(i64::try_from(at).unwrap_or(0) + 1))
}

/// A foreign key as SQLite has it.
struct ForeignKey {
    id: i64,
    name: String,
    is_named: bool,
    referenced: i64,
    on_delete: String,
    on_update: String,
    /// Its own columns, and those that they refer to.
    columns: Vec<(Value, Value)>,
}

fn foreign_keys_of(
    databases: &Databases,
    (database, schema): (&str, &str),
    of: &Listed,
    all: &[Listed],
) -> Result<Vec<ForeignKey>> {
    let sql = "SELECT id, \"table\", \"from\", \"to\", on_delete, on_update, seq \
               FROM pragma_foreign_key_list(?1, ?2) ORDER BY id DESC, seq";
    let mut statement = databases.connection.prepare_cached(sql)?;
    let mut rows = statement.query([of.sqlite.as_str(), schema])?;
    let mut keys: Vec<(i64, ForeignKey)> = Vec::new();
    while let Some(row) = rows.next()? {
        let (number, table): (i64, String) = (row.get(0)?, row.get(1)?);
        let (from, to): (String, Option<String>) = (row.get(2)?, row.get(3)?);
        let other = all.iter().find(|one| one.sqlite.eq_ignore_ascii_case(&table));
        let to_id = match (other, &to) {
            (Some(other), Some(to)) => column_id(&other.table, to),
            // Without a name it is the key.
            (Some(other), None) => {
                let key = databases.row_column(schema, &other.sqlite)?;
                key.map_or(Value::Null, |key| column_id(&other.table, &key))
            }
            (None, _) => Value::Null,
        };
        let pair = (column_id(&of.table, &from), to_id);
        match keys.last_mut() {
            Some((last, key)) if *last == number => key.columns.push(pair),
            _ => keys.push((
                number,
                ForeignKey {
                    id: 0,
                    name: String::new(),
                    is_named: false,
                    referenced: other.map_or_else(|| object_id(database, &table), |one| one.object),
                    on_delete: row.get(4)?,
                    on_update: row.get(5)?,
                    columns: vec![pair],
                },
            )),
        }
    }
    // SQLite numbers them from the last of the text.
    let written: Vec<&Clause> =
        of.clauses.iter().filter(|clause| clause.kind == Kind::Reference).collect();
    let is_known = written.len() == keys.len();
    let named = keys.into_iter().enumerate().map(|(at, (_, mut key))| {
        let name = written.get(at).filter(|_| is_known).and_then(|clause| clause.name.clone());
        key.is_named = name.is_some();
        key.id = object_id(database, &format!("{}.foreign key.{at}", of.sqlite));
        let own = || format!("FK__{}__{:08X}", split(&of.sqlite).1, key.id);
        key.name = name.unwrap_or_else(own);
        key
    });
    Ok(named.collect())
}

fn action(written: &str) -> (i64, String) {
    let number = match written {
        "CASCADE" => 1,
        "SET NULL" => 2,
        "SET DEFAULT" => 3,
        _ => 0,
    };
    let shown = if number == 0 { "NO_ACTION".to_owned() } else { written.replace(' ', "_") };
    (number, shown)
}

pub(super) fn foreign_keys(databases: &Databases) -> Result<Vec<Row>> {
    let Some((database, schema, all)) = listed(databases)? else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for table in &all {
        for key in foreign_keys_of(databases, (&database, &schema), table, &all)? {
            let (delete, update) = (action(&key.on_delete), action(&key.on_update));
            let mut row = object(&key.name, key.id, table, ("F ", "FOREIGN_KEY_CONSTRAINT"));
            row.extend([
                Value::Integer(key.referenced),
                Value::Integer(1),
                Value::Integer(delete.0),
                text(delete.1),
                Value::Integer(update.0),
                text(update.1),
                flag(!key.is_named),
            ]);
            rows.push(row);
        }
    }
    let known = known(&[
        "referenced_object_id",
        "key_index_id",
        "delete_referential_action",
        "delete_referential_action_desc",
        "update_referential_action",
        "update_referential_action_desc",
        "is_system_named",
    ]);
    Ok(arranged(FOREIGN_KEYS, &known, &[], rows))
}

pub(super) fn foreign_key_columns(databases: &Databases) -> Result<Vec<Row>> {
    let Some((database, schema, all)) = listed(databases)? else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for table in &all {
        for key in foreign_keys_of(databases, (&database, &schema), table, &all)? {
            for (at, (own, other)) in (1..).zip(key.columns) {
                rows.push(vec![
                    Value::Integer(key.id),
                    Value::Integer(at),
                    Value::Integer(table.object),
                    own,
                    Value::Integer(key.referenced),
                    other,
                ]);
            }
        }
    }
    Ok(rows)
}

pub(super) fn checks(databases: &Databases) -> Result<Vec<Row>> {
    let Some((database, _, all)) = listed(databases)? else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for table in &all {
        let written = table.clauses.iter().filter_map(|clause| match &clause.kind {
            Kind::Check(condition) => Some((condition, &clause.name)),
            Kind::Reference | Kind::Default(_) => None,
        });
        for (at, (condition, name)) in written.enumerate() {
            let id = object_id(&database, &format!("{}.check.{at}", table.sqlite));
            let own = || format!("CK__{}__{id:08X}", split(&table.sqlite).1);
            let shown = name.clone().unwrap_or_else(own);
            let mut row = object(&shown, id, table, ("C ", "CHECK_CONSTRAINT"));
            row.extend([Value::Integer(0), text(condition), flag(name.is_none())]);
            rows.push(row);
        }
    }
    let known = known(&["parent_column_id", "definition", "is_system_named"]);
    Ok(arranged(CHECKS, &known, &[("uses_database_collation", Same::Number(1))], rows))
}

pub(super) fn defaults(databases: &Databases) -> Result<Vec<Row>> {
    let Some((database, _, all)) = listed(databases)? else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for table in &all {
        for column in &table.table.columns {
            let Some(default) = &column.default else { continue };
            // As sys.columns numbers it.
            let id = object_id(&database, &format!("{}.default.{}", table.sqlite, column.name));
            let is_its = |clause: &&Clause| matches!(&clause.kind, Kind::Default(of) if *of == column.sqlite);
            let written = table.clauses.iter().find(is_its).and_then(|clause| clause.name.clone());
            let is_own = written.is_none();
            let own = || format!("DF__{}__{}__{id:08X}", split(&table.sqlite).1, column.name);
            let name = written.unwrap_or_else(own);
            let mut row = object(&name, id, table, ("D ", "DEFAULT_CONSTRAINT"));
            let definition = format!("({default})");
            row.extend([column_id(&table.table, &column.name), text(definition), flag(is_own)]);
            rows.push(row);
        }
    }
    let known = known(&["parent_column_id", "definition", "is_system_named"]);
    Ok(arranged(DEFAULTS, &known, &[], rows))
}

pub(super) fn identities(databases: &Databases) -> Result<Vec<Row>> {
    let Some((_, schema, all)) = listed(databases)? else { return Ok(Vec::new()) };
    let columns = super::table::columns(databases)?;
    let at = |name: &str| super::table::COLUMNS.iter().position(|(other, _)| *other == name);
    let value = |row: &Row, name: &str| at(name).and_then(|at| row.get(at)).cloned();
    let sequences =
        format!("SELECT 1 FROM {}.sqlite_schema WHERE name = 'sqlite_sequence'", quoted(&schema));
    let connection = &databases.connection;
    let has_sequences = connection.query_row(&sequences, [], |_| Ok(())).optional()?.is_some();
    let mut rows = Vec::new();
    for row in &columns {
        if value(row, "is_identity") != Some(Value::Integer(1)) {
            continue;
        }
        let object = value(row, "object_id").unwrap_or(Value::Null);
        let table = all.iter().find(|table| Value::Integer(table.object) == object);
        let last: Option<i64> = match table {
            Some(table) if has_sequences => {
                let sql =
                    format!("SELECT seq FROM {}.sqlite_sequence WHERE name = ?1", quoted(&schema));
                // Whoever writes the file may have put anything there.
                let found = connection.query_row(&sql, [&table.sqlite], |row| Ok(row.get(0).ok()));
                found.optional()?.flatten()
            }
            _ => None,
        };
        let seed = match (table, value(row, "name")) {
            (Some(table), Some(Value::Text(name))) => {
                identity_seed(&without_literals(&table.sql).to_ascii_lowercase(), &name)
            }
            _ => 1,
        };
        // Before the first row it stands before the seed.
        let last = last.filter(|last| *last >= seed);
        let mut own: Row = IDENTITIES[..11]
            .iter()
            .map(|(name, _)| value(row, name).unwrap_or(Value::Null))
            .collect();
        own.extend([
            Value::Integer(seed),
            Value::Integer(1),
            last.map_or(Value::Null, Value::Integer),
            flag(false),
        ]);
        rows.push(own);
    }
    Ok(rows)
}

/// Each index has statistics of its name, which ANALYZE makes.
pub(super) fn stats(databases: &Databases) -> Result<Vec<Row>> {
    let known = ["object_id", "name", "stats_id", "has_filter", "filter_definition"];
    let known = known.map(|name| (name, SqlType::Int));
    let rows = of_indexes(super::index::INDEXES, super::index::indexes(databases)?);
    let same = [("stats_generation_method", Same::Number(0))];
    Ok(arranged(STATS, &known, &same, rows))
}

/// Of the indexes those that have a name.
fn of_indexes(columns: &[Column], indexes: Vec<Row>) -> Vec<Row> {
    let at = |name: &str| columns.iter().position(|(other, _)| *other == name);
    let names = ["object_id", "name", "index_id", "has_filter", "filter_definition"];
    let rows = indexes.into_iter().map(|row| {
        let of = |name: &&str| at(name).and_then(|at| row.get(at)).cloned().unwrap_or(Value::Null);
        names.iter().map(of).collect::<Row>()
    });
    rows.filter(|row| row.get(1) != Some(&Value::Null)).collect()
}

pub(super) fn stats_columns(databases: &Databases) -> Result<Vec<Row>> {
    let named: Vec<(Value, Value)> = stats(databases)?
        .into_iter()
        .filter_map(|row| Some((row.first()?.clone(), row.get(2)?.clone())))
        .collect();
    let rows = super::index::columns(databases)?.into_iter().filter_map(|row| {
        let of = [row.first()?, row.get(1)?, row.get(2)?, row.get(3)?].map(Value::clone);
        named.contains(&(of[0].clone(), of[1].clone())).then(|| of.to_vec())
    });
    Ok(rows.collect())
}
