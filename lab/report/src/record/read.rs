//! Reads records back, line by line.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::SCHEMA;
use crate::error::{Error, Result};

/// Hands each line of `file` to `take`, as the kinds of records that its caller wants.
///
/// # Errors
/// [`Error::Io`]; [`Error::Invalid`] for a line that is no record of this schema, or what `take` says of one, with its place.
pub fn read<Line: DeserializeOwned>(
    file: &Path,
    mut take: impl FnMut(Line) -> Result<()>,
) -> Result<()> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(Error::io(name.clone()))?;
    for (place, line) in text.lines().enumerate() {
        let wrong = |what: String| Error::invalid(format!("{name}:{}: {what}", place + 1));
        let value: Value = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        if value.get("schema").is_some_and(|schema| *schema != SCHEMA) {
            return Err(wrong(format!("a session of another schema than {SCHEMA}")));
        }
        let line = serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
        take(line).map_err(|error| wrong(error.to_string()))?;
    }
    Ok(())
}
