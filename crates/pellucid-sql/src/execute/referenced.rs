//! What foreign keys refer to, looked at when they are made: SQLite takes any name, and says so at the first row.

use pellucid_tsql::ast::{
    ColumnConstraint, ColumnProperty, Name, ObjectName, References, TableConstraint, TableElement,
    TableRule,
};

use super::{Done, Raised, Violation};
use crate::message::{table, Message};
use crate::session::{object_id, split, sqlite_name, Session};
use crate::translate::object_text;

/// A foreign key as it is written.
struct Written<'a> {
    name: Option<&'a Name>,
    columns: Vec<&'a Name>,
    references: &'a References,
}

fn written(elements: &[TableElement]) -> Vec<Written<'_>> {
    let mut all = Vec::new();
    for element in elements {
        match element {
            TableElement::Column(column) => {
                all.extend(column.properties.iter().filter_map(|property| match property {
                    ColumnProperty::Constraint {
                        name,
                        constraint: ColumnConstraint::References(references),
                    } => Some(Written {
                        name: name.as_ref(),
                        columns: vec![&column.name],
                        references,
                    }),
                    _ => None,
                }));
            }
            TableElement::Constraint(TableConstraint {
                name,
                rule: TableRule::ForeignKey { columns, references },
            }) => {
                let columns = columns.iter().collect();
                all.push(Written { name: name.as_ref(), columns, references });
            }
            _ => {}
        }
    }
    all
}

impl Written<'_> {
    /// Its name, or one like that which the server makes.
    fn name(&self, of: &str) -> String {
        if let Some(name) = self.name {
            return name.as_str().to_owned();
        }
        let column = self.columns.first().map_or("", |name| name.as_str());
        format!("FK__{}__{column}__{:08X}", split(of).1, object_id(of, column))
    }

    fn is_of(&self, sqlite: &str) -> bool {
        sqlite_name(&self.references.table).eq_ignore_ascii_case(sqlite)
    }
}

fn refused(message: Message) -> Raised {
    let not_made = Message::of(table::CONSTRAINT_NOT_MADE, []);
    Raised::from(message.with_state(0)).and(not_made)
}

impl Session {
    /// Before a table is made or altered, what its foreign keys find in other tables: 1763, 1767, 1768 and what follows, with
    /// 1750. A temporary one is left as it is.
    pub(super) fn check_referenced(
        &self,
        schema: &str,
        sqlite: &str,
        elements: &[TableElement],
    ) -> Done {
        if schema == "temp" {
            return Ok(());
        }
        for key in written(elements) {
            let other = &key.references.table;
            let (name, shown) = (key.name(sqlite), object_text(other));
            if other.database.is_some()
                && self.databases.schema_of(other.database.as_ref())?.1 != schema
            {
                return Err(refused(Message::of(table::KEY_ACROSS_DATABASES, [&shown])));
            }
            if key.is_of(sqlite) {
                continue;
            }
            match self.databases.find_object(schema, other)? {
                None => return Err(refused(Message::of(table::KEY_OF_NO_TABLE, [&name, &shown]))),
                Some((_, true)) => {
                    return Err(refused(Message::of(table::KEY_OF_NO_USER_TABLE, [&name, &shown])));
                }
                Some((parent, false)) => {
                    self.check_referenced_key(schema, &parent, &key, &name)?;
                }
            }
        }
        Ok(())
    }

    /// Behind it, what they find in the table itself: 1770, 1773, 1776 or 8139, with 1750.
    pub(super) fn check_referenced_keys(
        &self,
        schema: &str,
        sqlite: &str,
        elements: &[TableElement],
    ) -> Done {
        if schema == "temp" {
            return Ok(());
        }
        let mut of_itself = written(elements).into_iter().filter(|key| key.is_of(sqlite));
        of_itself
            .try_for_each(|key| self.check_referenced_key(schema, sqlite, &key, &key.name(sqlite)))
    }

    /// 547 of ALTER TABLE, where rows refer to nothing by the one key that it adds.
    pub(super) fn not_referenced(
        &self,
        raised: Raised,
        altered: &ObjectName,
        (schema, sqlite): (&str, &str),
        elements: &[TableElement],
    ) -> Raised {
        let keys = written(elements);
        let ([key], Some(Violation::Reference)) = (&keys[..], &raised.violation) else {
            return raised;
        };
        let Ok(database) = self.database_of(altered, schema) else { return raised };
        let parent = sqlite_name(&key.references.table);
        let primary = self.primary_key(schema, &parent).unwrap_or_default();
        let mut columns = key.references.columns.iter().map(Name::as_str);
        let column = columns.next().or(primary.first().map(String::as_str));
        let column = column.filter(|_| key.columns.len() == 1);
        let (owner, name) = split(&parent);
        let told = ["ALTER TABLE", "FOREIGN KEY", &key.name(sqlite)];
        Message::conflict(told, &database, &format!("{owner}.{name}"), column).into()
    }

    fn check_referenced_key(
        &self,
        schema: &str,
        parent: &str,
        key: &Written<'_>,
        name: &str,
    ) -> Done {
        let (owner, of) = split(parent);
        let shown = format!("{owner}.{of}");
        let primary = self.primary_key(schema, parent)?;
        let mut wanted: Vec<String> =
            key.references.columns.iter().map(|to| to.as_str().to_lowercase()).collect();
        if wanted.is_empty() {
            // Without columns it is the primary key.
            wanted = primary.iter().map(|column| column.to_lowercase()).collect();
        }
        if wanted.is_empty() {
            return Err(refused(Message::of(table::KEY_WITHOUT_PRIMARY, [&name, &shown])));
        }
        let known = self.databases.table_of(schema, parent, false)?;
        let is_known = |to: &&Name| {
            known.columns.iter().any(|column| column.name.eq_ignore_ascii_case(to.as_str()))
        };
        if let Some(unknown) = key.references.columns.iter().find(|to| !is_known(to)) {
            let places: [&dyn std::fmt::Display; 3] = [&name, &unknown.as_str(), &shown];
            return Err(refused(Message::of(table::KEY_OF_NO_COLUMN, places)));
        }
        if wanted.len() != key.columns.len() {
            return Err(refused(Message::of(table::KEY_OF_OTHER_LENGTH, [&shown])));
        }
        wanted.sort_unstable();
        let is_it = |columns: &[String]| {
            let mut columns: Vec<_> = columns.iter().map(|column| column.to_lowercase()).collect();
            columns.sort_unstable();
            columns == wanted
        };
        let unique = self.unique_keys(schema, parent)?;
        match is_it(&primary) || unique.iter().any(|columns| is_it(columns)) {
            true => Ok(()),
            false => Err(refused(Message::of(table::KEY_OF_NO_KEY, [&shown, &name]))),
        }
    }

    fn primary_key(&self, schema: &str, sqlite: &str) -> Done<Vec<String>> {
        let sql = "SELECT name FROM pragma_table_xinfo(?1, ?2) WHERE pk > 0 ORDER BY pk";
        let mut statement = self.databases.connection.prepare_cached(sql)?;
        let names = statement.query_map([sqlite, schema], |row| row.get(0))?;
        Ok(names.collect::<rusqlite::Result<_>>()?)
    }

    /// The columns of each unique index of all rows.
    fn unique_keys(&self, schema: &str, sqlite: &str) -> Done<Vec<Vec<String>>> {
        let sql = "SELECT name FROM pragma_index_list(?1, ?2) WHERE \"unique\" AND NOT partial";
        let mut statement = self.databases.connection.prepare_cached(sql)?;
        let names = statement.query_map([sqlite, schema], |row| row.get::<_, String>(0))?;
        let mut all = Vec::new();
        for name in names {
            all.push(self.columns_of_index(schema, &name?)?);
        }
        Ok(all)
    }
}
