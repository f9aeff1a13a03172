//! The text of a table of SQLite's, as CREATE TABLE of a script has it made.

use pellucid_tsql::ast::{
    Column, ColumnConstraint, ColumnProperty, Expression, FunctionArguments, Identity, IndexColumn,
    Key, Literal, Niladic, References, ReferentialAction, TableConstraint, TableElement, TableRule,
    UnaryOperator,
};
use rusqlite::Connection;

use super::index::index_column;
use super::MadeColumn;
use crate::execute::{Done, Raised};
use crate::message::{table, Message};
use crate::session::{split, sqlite_name, written_declaration, IDENTITY_FROM, IDENTITY_IS};
use crate::translate::quoted;
use crate::values::convert::to_hex;
use crate::values::types::{Family, SqlType};

/// CREATE TABLE in SQLite's words, and the columns it makes.
pub(in crate::execute) fn table_text(
    schema: &str,
    sqlite: &str,
    elements: &[TableElement],
) -> Done<(String, Vec<MadeColumn>)> {
    let identity = elements.iter().find_map(|element| match element {
        TableElement::Column(column) if identity_of(column).is_some() => Some(column.name.as_str()),
        _ => None,
    });
    let mut parts = Vec::new();
    let mut columns = Vec::new();
    let mut constraints = Vec::new();
    for element in elements {
        match element {
            TableElement::Column(column) => {
                let is_identity = identity == Some(column.name.as_str());
                let place = Place {
                    number: columns.len() + 1,
                    key: is_identity.then(|| key_name(column, elements)),
                    is_beside_identity: identity.is_some() && !is_identity,
                    is_of_key: is_of_key(column, elements),
                };
                if place.is_of_key && is_said_nullable(column) {
                    let named = Message::of(table::NULLABLE_KEY, [&split(sqlite).1]);
                    let not_made = Message::of(table::CONSTRAINT_NOT_MADE, []);
                    return Err(Raised::from(named).and(not_made));
                }
                let (text, made) = column_text(column, &place)?;
                parts.push(text);
                columns.push(made);
            }
            TableElement::Computed { name, .. } => {
                return Err(
                    Message::unsupported(format!("the computed column {}", name.as_str())).into()
                )
            }
            TableElement::Constraint(constraint) => {
                constraints.extend(constraint_text(constraint, identity)?);
            }
            // It is made behind the table.
            TableElement::Index(_) => {}
        }
    }
    parts.extend(constraints);
    let sql = format!("CREATE TABLE {}.{}({})", quoted(schema), quoted(sqlite), parts.join(", "));
    Ok((sql, columns))
}

pub(super) fn identity_of(column: &Column) -> Option<Identity> {
    column.properties.iter().find_map(|property| match property {
        ColumnProperty::Identity(identity) => {
            Some(identity.unwrap_or(Identity { seed: 1, increment: 1 }))
        }
        _ => None,
    })
}

/// Lets an identity begin at `seed`.
pub(super) fn begin_at(connection: &Connection, schema: &str, table: &str, seed: i64) -> Done {
    let sequence = format!("INSERT INTO {schema}.sqlite_sequence(name, seq) VALUES (?1, ?2)");
    connection.execute(&sequence, (table, seed - 1))?;
    Ok(())
}

pub(super) fn seed(elements: &[TableElement]) -> Option<Identity> {
    elements.iter().find_map(|element| match element {
        TableElement::Column(column) => identity_of(column),
        _ => None,
    })
}

/// The name of the primary key over an identity column alone, if it has one.
fn key_name(column: &Column, elements: &[TableElement]) -> Option<String> {
    let own = column.properties.iter().find_map(|property| match property {
        ColumnProperty::Constraint {
            name,
            constraint: ColumnConstraint::Key(Key { primary: true, .. }),
        } => name.as_ref().map(|name| name.as_str().to_owned()),
        _ => None,
    });
    let of_table = elements.iter().find_map(|element| match element {
        TableElement::Constraint(TableConstraint {
            name: Some(name),
            rule: TableRule::Key { key: Key { primary: true, .. }, columns },
        }) if is_only(columns, column.name.as_str()) => Some(name.as_str().to_owned()),
        _ => None,
    });
    own.or(of_table)
}

/// Whether the primary key has the column, which makes it NOT NULL: SQLite takes NULL in each key but the rowid.
fn is_of_key(column: &Column, elements: &[TableElement]) -> bool {
    let name = column.name.as_str();
    let is_key = |key: &Key| key.primary;
    let own = column.properties.iter().any(|property| {
        matches!(property, ColumnProperty::Constraint { constraint: ColumnConstraint::Key(key), .. } if is_key(key))
    });
    let of_table = elements.iter().any(|element| match element {
        TableElement::Constraint(TableConstraint {
            rule: TableRule::Key { key, columns }, ..
        }) => is_key(key) && columns.iter().any(|one| one.name.as_str().eq_ignore_ascii_case(name)),
        _ => false,
    });
    own || of_table
}

/// SQLite adds no column with an index of its own.
pub(super) fn has_key(column: &Column) -> bool {
    column.properties.iter().any(|property| {
        matches!(property, ColumnProperty::Constraint { constraint: ColumnConstraint::Key(_), .. })
    })
}

fn is_said_nullable(column: &Column) -> bool {
    column.properties.iter().any(|property| matches!(property, ColumnProperty::Nullable(true)))
}

fn is_only(columns: &[IndexColumn], name: &str) -> bool {
    matches!(columns, [only] if only.name.as_str().eq_ignore_ascii_case(name))
}

/// Where a column stands in its table.
#[derive(Default)]
pub(super) struct Place {
    /// From 1.
    number: usize,
    /// Of the identity, with the name of its primary key.
    key: Option<Option<String>>,
    /// Another column is the identity, and with it SQLite's own key.
    is_beside_identity: bool,
    /// It is of the primary key.
    is_of_key: bool,
}

impl Place {
    /// Of a column that is added to a table, and nothing else.
    pub(super) fn added(number: usize) -> Self {
        Self { number, ..Self::default() }
    }
}

/// One column.
pub(super) fn column_text(column: &Column, place: &Place) -> Done<(String, MadeColumn)> {
    let key = &place.key;
    let name = column.name.as_str();
    let data_type = SqlType::of_declaration(&column.data_type, place.number)?;
    let mut declared = written_declaration(&column.data_type, data_type);
    let known = declared.clone();
    let mut text = String::new();
    if let Some(key) = key {
        let identity = identity_of(column);
        if identity.is_some_and(|identity| identity.increment != 1) {
            return Err(Message::unsupported("an IDENTITY that does not grow by 1").into());
        }
        // SQLite numbers rows from 1 on, whatever it is told to have given before.
        if identity.is_some_and(|identity| identity.seed < 1) {
            return Err(Message::unsupported("an IDENTITY that begins below 1").into());
        }
        if data_type.family() != Family::Integer {
            return Err(
                Message::unsupported(format!("an IDENTITY of type {}", data_type.name())).into()
            );
        }
        // SQLite numbers the rows of an INTEGER alone: the type itself stands beside it.
        let from = match identity.map_or(1, |identity| identity.seed) {
            1 => String::new(),
            seed => format!("{IDENTITY_FROM}{seed}"),
        };
        declared = format!("INTEGER {IDENTITY_IS}{declared}{from}*/");
        let named =
            key.as_ref().map_or_else(String::new, |key| format!("CONSTRAINT {} ", quoted(key)));
        text = format!(" {named}PRIMARY KEY AUTOINCREMENT NOT NULL");
    }
    if let Some(collation) = &column.collation {
        let upper = collation.as_str().to_uppercase();
        if upper.contains("_AI") {
            return Err(Message::unsupported(format!("COLLATE {}", collation.as_str())).into());
        }
        if upper.contains("_CS") || upper.contains("_BIN") {
            text.push_str(" COLLATE BINARY");
        } else {
            text.push_str(" COLLATE NOCASE");
        }
    } else if data_type.family() == Family::Text {
        text.push_str(" COLLATE NOCASE");
    }
    let says_null = |property: &ColumnProperty| matches!(property, ColumnProperty::Nullable(_));
    let is_sysname = column.data_type.name.object.as_str().eq_ignore_ascii_case("sysname");
    let is_not_null = is_sysname || place.is_of_key;
    if is_not_null && key.is_none() && !column.properties.iter().any(says_null) {
        text.push_str(" NOT NULL");
    }
    for property in &column.properties {
        match property {
            ColumnProperty::Nullable(true)
            | ColumnProperty::Identity(_)
            | ColumnProperty::RowGuid
            | ColumnProperty::Sparse => {}
            ColumnProperty::Nullable(false) => {
                if key.is_none() {
                    text.push_str(" NOT NULL");
                }
            }
            ColumnProperty::Constraint { name, constraint } => {
                if let (SqlType::Xml, ColumnConstraint::Default(value)) = (data_type, constraint) {
                    refuse_default_of_xml(value)?;
                }
                if let Some(part) = column_constraint(constraint, place)? {
                    if let Some(name) = name {
                        text.push_str(&format!(" CONSTRAINT {}", quoted(name.as_str())));
                    }
                    text.push(' ');
                    text.push_str(&part);
                }
            }
        }
    }
    let made = (name.to_owned(), known, key.is_none());
    Ok((format!("{} {declared}{text}", quoted(name)), made))
}

fn column_constraint(constraint: &ColumnConstraint, place: &Place) -> Done<Option<String>> {
    Ok(match constraint {
        ColumnConstraint::Default(value) => Some(format!("DEFAULT {}", default_text(value)?)),
        // An identity has its own already.
        ColumnConstraint::Key(Key { primary: true, .. }) if place.key.is_some() => None,
        // The identity is the table's own key; this one is as good.
        ColumnConstraint::Key(Key { primary: true, .. }) if place.is_beside_identity => {
            Some("UNIQUE".to_owned())
        }
        ColumnConstraint::Key(Key { primary: true, .. }) => Some("PRIMARY KEY".to_owned()),
        ColumnConstraint::Key(Key { primary: false, .. }) => Some("UNIQUE".to_owned()),
        ColumnConstraint::Check(_) => return Err(Message::unsupported("CHECK").into()),
        ColumnConstraint::References(references) => Some(references_text(references)),
    })
}

pub(in crate::execute) fn constraint_text(
    constraint: &TableConstraint,
    identity: Option<&str>,
) -> Done<Option<String>> {
    let named = |text: String| match &constraint.name {
        Some(name) => format!("CONSTRAINT {} {text}", quoted(name.as_str())),
        None => text,
    };
    Ok(match &constraint.rule {
        TableRule::Key { key, columns } => {
            let list: Vec<_> = columns.iter().map(index_column).collect();
            let list = list.join(", ");
            match (key.primary, identity) {
                (true, Some(identity)) if is_only(columns, identity) => None,
                // The identity is the table's own key; this one is as good.
                (true, Some(_)) | (false, _) => Some(named(format!("UNIQUE ({list})"))),
                (true, None) => Some(named(format!("PRIMARY KEY ({list})"))),
            }
        }
        TableRule::ForeignKey { columns, references } => {
            let list: Vec<_> = columns.iter().map(|column| quoted(column.as_str())).collect();
            Some(named(format!(
                "FOREIGN KEY ({}) {}",
                list.join(", "),
                references_text(references)
            )))
        }
        TableRule::Check(_) => return Err(Message::unsupported("CHECK").into()),
        TableRule::Default { .. } => {
            return Err(Message::unsupported("a DEFAULT that is a table's constraint").into())
        }
    })
}

fn references_text(references: &References) -> String {
    let mut text = format!("REFERENCES {}", quoted(&sqlite_name(&references.table)));
    if !references.columns.is_empty() {
        let list: Vec<_> =
            references.columns.iter().map(|column| quoted(column.as_str())).collect();
        text.push_str(&format!("({})", list.join(", ")));
    }
    for (event, action) in [("DELETE", references.on_delete), ("UPDATE", references.on_update)] {
        let action = match action {
            None => continue,
            Some(ReferentialAction::NoAction) => "NO ACTION",
            Some(ReferentialAction::Cascade) => "CASCADE",
            Some(ReferentialAction::SetNull) => "SET NULL",
            Some(ReferentialAction::SetDefault) => "SET DEFAULT",
        };
        text.push_str(&format!(" ON {event} {action}"));
    }
    text
}

/// What is not NULL would have to be xml, as it is written there.
pub(in crate::execute) fn refuse_default_of_xml(value: &Expression) -> Done {
    match value {
        Expression::Literal(Literal::Null) => Ok(()),
        _ => Err(Message::unsupported("a DEFAULT of a column of xml").into()),
    }
}

/// A DEFAULT that every program can evaluate.
pub(in crate::execute) fn default_text(value: &Expression) -> Done<String> {
    const NOW: &str = "(strftime('%Y-%m-%d %H:%M:%f', 'now'))";
    let refused = || Message::unsupported("a DEFAULT that is neither a literal nor the time");
    Ok(match value {
        Expression::Literal(literal) => match literal {
            Literal::Null => "NULL".to_owned(),
            Literal::String(text) if !text.text.contains('\0') => {
                format!("'{}'", text.text.replace('\'', "''"))
            }
            Literal::Integer(text) | Literal::Decimal(text) | Literal::Float(text) => text.clone(),
            Literal::Binary(bytes) => format!("X'{}'", to_hex(bytes)),
            _ => return Err(refused().into()),
        },
        Expression::Unary { operator: UnaryOperator::Minus, operand } => match &**operand {
            Expression::Literal(
                Literal::Integer(text) | Literal::Decimal(text) | Literal::Float(text),
            ) => {
                format!("-{text}")
            }
            _ => return Err(refused().into()),
        },
        Expression::Function(call) => {
            let name = call.name.object.as_str().to_uppercase();
            let is_bare =
                matches!(&call.arguments, FunctionArguments::Values(list) if list.is_empty());
            match name.as_str() {
                "GETDATE" | "GETUTCDATE" | "SYSDATETIME" | "SYSUTCDATETIME" if is_bare => {
                    NOW.to_owned()
                }
                _ => return Err(refused().into()),
            }
        }
        Expression::Niladic(Niladic::CurrentTimestamp) => NOW.to_owned(),
        _ => return Err(refused().into()),
    })
}
