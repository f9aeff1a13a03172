//! What foreign keys refer to, looked at when they are made: SQLite takes any name, and says so at the first row.

use pellucid_tsql::ast::{
    ColumnConstraint, ColumnProperty, Name, References, TableConstraint, TableElement, TableRule,
};

use super::violation::Reference;
use super::{Done, Raised};
use crate::message::{table, Message};
use crate::session::{object_id, split, sqlite_name, Session};
use crate::translate::object_text;

/// A foreign key as it is written.
struct Written<'a> {
    name: Option<&'a Name>,
    column: Option<&'a Name>,
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
                        column: Some(&column.name),
                        references,
                    }),
                    _ => None,
                }));
            }
            TableElement::Constraint(TableConstraint {
                name,
                rule: TableRule::ForeignKey { columns, references },
            }) => {
                let column = columns.first();
                all.push(Written { name: name.as_ref(), column, references });
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
        let column = self.column.map_or("", Name::as_str);
        format!("FK__{}__{column}__{:08X}", split(of).1, object_id(of, column))
    }
}

fn refused(message: Message) -> Raised {
    let not_made = Message::of(table::CONSTRAINT_NOT_MADE, []);
    Raised::from(message.with_state(0)).and(not_made)
}

impl Session {
    /// Before a table is made or altered: 1763, 1767 or 1768, with 1750. A temporary one is left as it is.
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
            if sqlite_name(other).eq_ignore_ascii_case(sqlite) {
                continue;
            }
            match self.databases.find_object(schema, other)? {
                None => return Err(refused(Message::of(table::KEY_OF_NO_TABLE, [&name, &shown]))),
                Some((_, true)) => {
                    return Err(refused(Message::of(table::KEY_OF_NO_USER_TABLE, [&name, &shown])));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Behind it: 1770, 1773 or 1776, with 1750, for those that were written, which are the last of the table.
    pub(super) fn check_referenced_keys(
        &self,
        schema: &str,
        sqlite: &str,
        elements: &[TableElement],
    ) -> Done {
        let count = i64::try_from(written(elements).len()).unwrap_or(i64::MAX);
        if schema == "temp" || count == 0 {
            return Ok(());
        }
        for key in self.references_of(schema, sqlite, "")? {
            if key.child.eq_ignore_ascii_case(sqlite) && key.number < count {
                self.check_referenced_key(schema, &key)?;
            }
        }
        Ok(())
    }

    fn check_referenced_key(&self, schema: &str, key: &Reference) -> Done {
        let parent = self.databases.table_of(schema, &key.parent, false)?;
        let (owner, name) = split(&key.parent);
        let shown = format!("{owner}.{name}");
        let primary = self.primary_key(schema, &key.parent)?;
        let mut wanted: Vec<String> = key.columns.iter().map(|(_, to)| to.to_lowercase()).collect();
        if wanted.iter().any(String::is_empty) {
            // Without columns it is the primary key.
            return match primary.len() == wanted.len() {
                true => Ok(()),
                false => Err(refused(Message::of(table::KEY_WITHOUT_PRIMARY, [&key.name, &shown]))),
            };
        }
        let is_known =
            |to: &String| parent.columns.iter().any(|column| column.name.eq_ignore_ascii_case(to));
        if let Some((_, unknown)) = key.columns.iter().find(|(_, to)| !is_known(to)) {
            let places: [&dyn std::fmt::Display; 3] = [&key.name, unknown, &shown];
            return Err(refused(Message::of(table::KEY_OF_NO_COLUMN, places)));
        }
        wanted.sort_unstable();
        let is_it = |columns: &[String]| {
            let mut columns: Vec<_> = columns.iter().map(|column| column.to_lowercase()).collect();
            columns.sort_unstable();
            columns == wanted
        };
        let unique = self.unique_keys(schema, &key.parent)?;
        match is_it(&primary) || unique.iter().any(|columns| is_it(columns)) {
            true => Ok(()),
            false => Err(refused(Message::of(table::KEY_OF_NO_KEY, [&shown, &key.name]))),
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
