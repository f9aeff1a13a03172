//! Tables and views as objects: names, numbers, kinds.

use sha2::{Digest, Sha256};

/// A table or view of an attached database, or a procedure of any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    /// Its number, the same in every session.
    pub id: i64,
    /// The database's name.
    pub database: String,
    pub schema: String,
    pub name: String,
    /// `U` table, `V` view, `P` procedure
    pub kind: &'static str,
    /// The text that made it, of a procedure.
    pub definition: Option<String>,
    /// What SQLite calls its database.
    pub attached: String,
    /// What SQLite calls it; nothing for a view of the server's.
    pub sqlite: String,
}

impl Object {
    /// Of the name it has in SQLite.
    pub fn new(database: &str, attached: &str, sqlite: &str, kind: &'static str) -> Self {
        let (schema, name) = split(sqlite);
        Self {
            id: object_id(database, sqlite),
            database: database.to_owned(),
            schema: schema.to_owned(),
            name: name.to_owned(),
            kind,
            attached: attached.to_owned(),
            sqlite: sqlite.to_owned(),
            definition: None,
        }
    }

    /// A table or view that the server has itself.
    pub fn of_server(database: &str, schema: &str, name: &str, kind: &'static str) -> Self {
        Self {
            id: object_id("server", &format!("{schema}.{name}")),
            database: database.to_owned(),
            schema: schema.to_owned(),
            name: name.to_owned(),
            kind,
            attached: String::new(),
            sqlite: String::new(),
            definition: None,
        }
    }
}

/// Schema and name of what SQLite calls `Schema.Name`, or `Name` for dbo.
pub(crate) fn split(sqlite: &str) -> (&str, &str) {
    match sqlite.split_once('.') {
        Some((schema, name)) if !schema.is_empty() && !name.is_empty() => (schema, name),
        _ => ("dbo", sqlite),
    }
}

/// A positive `int` made of two names, without regard to case.
pub(crate) fn object_id(of: &str, name: &str) -> i64 {
    let mut hash = Sha256::new();
    hash.update(of.to_lowercase());
    hash.update([0]);
    hash.update(name.to_lowercase());
    let digest = hash.finalize();
    i64::from(u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]) >> 1).max(100)
}

/// OBJECT_ID: the number of what `text` names.
pub(super) fn find(objects: &[Object], current: &str, text: &str, kind: &str) -> Option<i64> {
    let parts = parts(text)?;
    let (database, schema, name) = match parts.as_slice() {
        [name] => (current, "", name.as_str()),
        [schema, name] => (current, schema.as_str(), name.as_str()),
        [database, schema, name] => (database.as_str(), schema.as_str(), name.as_str()),
        _ => return None,
    };
    let database = if database.is_empty() { current } else { database };
    let schema = if schema.is_empty() { "dbo" } else { schema };
    let kind = kind.trim();
    objects
        .iter()
        .find(|object| {
            object.database.eq_ignore_ascii_case(database)
                && object.schema.eq_ignore_ascii_case(schema)
                && object.name.eq_ignore_ascii_case(name)
                && (kind.is_empty() || object.kind.eq_ignore_ascii_case(kind))
        })
        .map(|object| object.id)
}

/// The parts of a name in a string: `a.b`, `[a].[b.c]`, `a..b`.
fn parts(text: &str) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut chars = text.trim().chars().peekable();
    while let Some(next) = chars.next() {
        let close = match next {
            '[' => ']',
            '"' => '"',
            '.' => {
                parts.push(String::new());
                continue;
            }
            other => {
                parts.last_mut()?.push(other);
                continue;
            }
        };
        loop {
            match chars.next()? {
                end if end == close && chars.peek() == Some(&close) => {
                    chars.next();
                    parts.last_mut()?.push(close);
                }
                end if end == close => break,
                other => parts.last_mut()?.push(other),
            }
        }
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_strings_have_parts() {
        let of = |text: &str| parts(text).map(|parts| parts.join("|"));
        assert_eq!(of("a.b"), Some("a|b".to_owned()));
        assert_eq!(of("[a.x].[b]]c]"), Some("a.x|b]c".to_owned()));
        assert_eq!(of("tempdb..#t"), Some("tempdb||#t".to_owned()));
        assert_eq!(of("[a"), None);
        let kind_of = |name: &str| if name == "t" { "V" } else { "U" };
        let objects =
            ["Warehouse.Items", "t"].map(|name| Object::new("sales", "d5", name, kind_of(name)));
        assert_eq!(find(&objects, "sales", "Warehouse.Items", "U"), Some(objects[0].id));
        assert_eq!(find(&objects, "sales", "T", ""), Some(objects[1].id));
        assert_eq!(find(&objects, "sales", "t", "U"), None);
        assert_eq!(find(&objects, "other", "sales..t", ""), Some(objects[1].id));
    }
}
