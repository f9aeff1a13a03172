//! Names of files as JSON, which has text only: a name may have any bytes.
//!
//! One that is not UTF-8 is shown with U+FFFD where it is not, and beside it, under the field's name and `_bytes`, stands all
//! of it in hexadecimal. In a list that field is a list, too, with null for each name that is text.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pellucid::hash::hex;
use pellucid::shown::Shown;
use serde_json::{Map, Value};

/// Between the shown name and its bytes: no name has it.
const BETWEEN: char = '\0';

/// A name for [`settled`].
pub fn name(path: impl AsRef<Path>) -> Value {
    let path = path.as_ref();
    Value::String(match path.to_str() {
        Some(text) => text.to_owned(),
        None => {
            let bytes = hex(path.as_os_str().as_bytes());
            format!("{}{BETWEEN}{bytes}", path.to_string_lossy())
        }
    })
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./=:@+-".contains(byte);
    if !word.is_empty() && word.as_bytes().iter().all(safe) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A name in a command that people copy: whoever chose the name chooses no other command and no option by it.
pub fn word(path: impl AsRef<Path>) -> String {
    let shown = quoted(&path.as_ref().shown().to_string());
    match path.as_ref().as_os_str().as_bytes().starts_with(b"-") {
        true => format!("./{shown}"),
        false => shown,
    }
}

/// A list of them.
pub fn names<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Value {
    paths.into_iter().map(name).collect()
}

/// The facts with each name's bytes in a field of their own.
pub fn settled(facts: &Value) -> Value {
    match facts {
        Value::Object(fields) => {
            let mut settled = Map::new();
            for (field, value) in fields {
                settled.insert(field.clone(), shown(value));
                let bytes = bytes_of(value);
                if !bytes.is_null() {
                    settled.insert(format!("{field}_bytes"), bytes);
                }
            }
            Value::Object(settled)
        }
        value => shown(value),
    }
}

fn shown(value: &Value) -> Value {
    match value {
        Value::String(text) => text.split(BETWEEN).next().unwrap_or_default().into(),
        Value::Array(list) => list.iter().map(shown).collect(),
        value => settled_object(value),
    }
}

fn settled_object(value: &Value) -> Value {
    match value {
        Value::Object(_) => settled(value),
        value => value.clone(),
    }
}

/// Null if nothing in it needs bytes.
fn bytes_of(value: &Value) -> Value {
    match value {
        Value::String(text) => text.split_once(BETWEEN).map_or(Value::Null, |two| two.1.into()),
        Value::Array(list) => {
            let bytes: Vec<Value> = list.iter().map(bytes_of).collect();
            match bytes.iter().all(Value::is_null) {
                true => Value::Null,
                false => bytes.into(),
            }
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use serde_json::json;

    use super::*;

    #[test]
    fn any_name_is_text_and_none_is_lost() {
        let odd = Path::new(OsStr::from_bytes(b"caf\xe9"));
        let plain = Path::new("a \u{e9}.db");
        let facts = json!({
            "database": name(odd), "to": name(plain), "files": names([plain, odd]),
            "logs": [[name(plain), 7]], "inner": {"path": name(odd)}, "none": Option::<Value>::None,
        });
        assert_eq!(
            settled(&facts),
            json!({
                "database": "caf\u{fffd}", "database_bytes": "636166e9", "to": "a \u{e9}.db",
                "files": ["a \u{e9}.db", "caf\u{fffd}"], "files_bytes": [null, "636166e9"],
                "logs": [["a \u{e9}.db", 7]],
                "inner": {"path": "caf\u{fffd}", "path_bytes": "636166e9"}, "none": null,
            })
        );
    }
}
