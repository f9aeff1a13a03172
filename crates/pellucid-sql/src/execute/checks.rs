//! DBCC CHECKTABLE, CHECKFILEGROUP, CHECKALLOC, CHECKCATALOG: parts of what CHECKDB looks at.
//!
//! Source: Microsoft's pages of these names. A database is one file and one filegroup, so that its allocation is that of the file
//! and the check of PRIMARY is the check of the database.

use pellucid_tsql::ast::{DbccArgument, DbccOption, Literal, ObjectName};

use super::procedure::named;
use super::{Done, Raised};
use crate::instance::{Known, MASTER, TEMPDB};
use crate::message::{table, Message};
use crate::session::{object_id, Session};
use crate::translate::{object_text, quoted};

/// Findings that are told, at most.
const SHOWN: usize = 200;
const PAGE_BYTES: i64 = 8192;

impl Session {
    /// `DBCC CHECKFILEGROUP [(filegroup [, NOINDEX])]`
    pub(super) fn check_filegroup(
        &mut self,
        arguments: &[DbccArgument],
        options: &[DbccOption],
    ) -> Done {
        let known = self.databases.current()?;
        let named = match arguments.first() {
            None => "PRIMARY",
            Some(DbccArgument::Name(name)) => name.object.as_str(),
            Some(DbccArgument::Literal { value: Literal::String(text), .. }) => &text.text,
            Some(DbccArgument::Literal { value: Literal::Integer(number), .. }) => number,
            Some(_) => return Err(Message::unsupported("DBCC CHECKFILEGROUP of a variable").into()),
        };
        if !named.eq_ignore_ascii_case("PRIMARY") && !["0", "1"].contains(&named) {
            return Err(Message::of(table::NO_FILEGROUP, [&named]).into());
        }
        self.check_known("CHECKFILEGROUP", known, arguments.get(1), options)
    }

    /// `DBCC CHECKALLOC [(database [, NOINDEX])]`: the structure of the file, without its rows.
    pub(super) fn check_allocation(
        &mut self,
        arguments: &[DbccArgument],
        options: &[DbccOption],
    ) -> Done {
        let known = self.database_of_dbcc(arguments.first())?;
        let mut options = options.to_vec();
        if let Some(name) = pellucid_tsql::ast::Name::new("PHYSICAL_ONLY") {
            options.push(DbccOption { name, value: None });
        }
        self.check_known("CHECKALLOC", known, arguments.get(1), &options)
    }

    /// `DBCC CHECKCATALOG [(database)]`: SQLite reads the whole schema, and finds what each of its entries needs.
    pub(super) fn check_catalog(
        &mut self,
        arguments: &[DbccArgument],
        options: &[DbccOption],
    ) -> Done {
        let known = self.database_of_dbcc(arguments.first())?;
        if !known.is_system() {
            let attached = self.databases.attach(&known)?;
            let connection = &self.databases.connection;
            let all = format!(
                "SELECT m.name, x.name FROM {}.sqlite_schema m LEFT JOIN pragma_table_xinfo(m.name, ?1) x \
                 WHERE m.type IN ('table', 'view')",
                quoted(&attached)
            );
            let mut statement = connection.prepare(&all)?;
            let mut rows = statement.query([&attached])?;
            let mut lost = Vec::new();
            while let Some(row) = rows.next()? {
                if row.get::<_, Option<String>>(1)?.is_none() {
                    let name: String = row.get(0)?;
                    let told = format!("the catalog has '{name}' without columns");
                    lost.push(Message::of(table::DATABASE_DAMAGED, [&known.name, &told]));
                }
            }
            if !lost.is_empty() {
                return Err(Raised::of(lost));
            }
        }
        self.end_of_dbcc(is_quiet(options));
        Ok(())
    }

    /// `DBCC CHECKTABLE (table [, NOINDEX])`
    pub(super) fn check_table(
        &mut self,
        arguments: &[DbccArgument],
        options: &[DbccOption],
    ) -> Done {
        self.refuse_repair("CHECKTABLE", arguments.get(1))?;
        let (known, schema, sqlite) = self.table_of_dbcc(arguments.first())?;
        let check = if has(options, "PHYSICAL_ONLY") { "quick_check" } else { "integrity_check" };
        let name = sqlite.replace('\'', "''");
        let sql = format!("PRAGMA {}.{check}('{name}')", quoted(&schema));
        let mut found = Vec::new();
        self.rows_of_check(&sql, &mut found)?;
        found.truncate(SHOWN);
        let quiet = is_quiet(options);
        if !found.is_empty() {
            let id = object_id(&known.name, &sqlite);
            let errors =
                found.iter().map(|told| Message::of(table::DATABASE_DAMAGED, [&known.name, told]));
            let errors: Vec<Message> = errors.collect();
            self.inform(Message::of(table::CHECKTABLE_FOUND, [&errors.len(), &sqlite, &id]));
            return Err(Raised::of(errors));
        }
        if !quiet {
            let from = format!("{}.{}", quoted(&schema), quoted(&sqlite));
            let rows: i64 = self.databases.connection.query_row(
                &format!("SELECT count(*) FROM {from}"),
                [],
                |row| row.get(0),
            )?;
            let pages = self.pages_of(&schema, &sqlite)?;
            self.inform(Message::of(table::DBCC_RESULTS_FOR, [&sqlite]));
            self.inform(Message::of(table::ROWS_IN_PAGES, [&rows, &pages, &sqlite]));
        }
        self.end_of_dbcc(quiet);
        Ok(())
    }

    /// The pages of 8 KB that a table has; 1 at least. Source: <https://sqlite.org/dbstat.html>
    fn pages_of(&self, schema: &str, sqlite: &str) -> Done<i64> {
        let sql = "SELECT coalesce(sum(pgsize), 0) FROM dbstat(?1, 1) WHERE name = ?2";
        let bytes = self.databases.connection.query_row(sql, [schema, sqlite], |row| row.get(0));
        // SQLite may be built without the table of statistics.
        let bytes: i64 = bytes.unwrap_or(0);
        Ok(((bytes + PAGE_BYTES - 1) / PAGE_BYTES).max(1))
    }

    /// The database, its attached schema and SQLite's name of the table.
    fn table_of_dbcc(&self, argument: Option<&DbccArgument>) -> Done<(Known, String, String)> {
        let name: ObjectName = match argument {
            Some(DbccArgument::Name(name)) => name.clone(),
            Some(DbccArgument::Literal { value: Literal::String(text), .. }) => {
                let unknown = || Message::of(table::NO_SUCH_TABLE_TO_CHECK, [&text.text]);
                named(&text.text).ok_or_else(unknown)?
            }
            Some(DbccArgument::Literal { value: Literal::Integer(number), .. }) => {
                return self.table_by_id(number)
            }
            _ => return Err(Message::unsupported("DBCC CHECKTABLE of a variable").into()),
        };
        let known = match &name.database {
            Some(database) => self.databases.instance.database(database.as_str())?,
            None => self.databases.current()?,
        };
        let found = match self.schema_to_check(&known)? {
            Some(schema) => self.databases.find_object(&schema, &name)?.map(|it| (schema, it)),
            None => None,
        };
        match found {
            Some((schema, (sqlite, false))) => Ok((known, schema, sqlite)),
            _ => Err(Message::of(table::NO_SUCH_TABLE_TO_CHECK, [&object_text(&name)]).into()),
        }
    }

    fn table_by_id(&self, number: &str) -> Done<(Known, String, String)> {
        let known = self.databases.current()?;
        let missing = || Message::of(table::NO_SUCH_TABLE_TO_CHECK, [&number]);
        let schema = self.schema_to_check(&known)?.ok_or_else(missing)?;
        let all = self.databases.tables_and_views(&schema)?;
        let mut tables = all.into_iter().filter(|(_, is_view)| !is_view);
        let found = tables.find(|(name, _)| object_id(&known.name, name).to_string() == number);
        let (sqlite, _) = found.ok_or_else(missing)?;
        Ok((known, schema, sqlite))
    }

    /// The database as it is attached; none where it has no tables.
    fn schema_to_check(&self, known: &Known) -> Done<Option<String>> {
        Ok(match known.id {
            MASTER => self.databases.attach_master()?,
            TEMPDB => Some("temp".to_owned()),
            _ if known.is_system() => None,
            _ => Some(self.databases.attach(known)?),
        })
    }
}

fn has(options: &[DbccOption], wanted: &str) -> bool {
    options.iter().any(|option| option.name.as_str().eq_ignore_ascii_case(wanted))
}

fn is_quiet(options: &[DbccOption]) -> bool {
    has(options, "NO_INFOMSGS")
}
