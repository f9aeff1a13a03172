//! The small object under the name that was asked for: where the media family lies.

use std::io;

use object_store::path::Path;
use serde::{Deserialize, Serialize};

/// What it says it is.
pub const WHAT: &str = "pellucid media object";
const VERSION: u32 = 1;
/// No pointer is longer.
pub const MOST_BYTES: usize = 4096;

/// The content, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pointer {
    what: String,
    version: u32,
    /// The name of the object with the bytes, whole.
    pub data: String,
    /// How many bytes that has.
    pub bytes: u64,
}

impl Pointer {
    /// One to `data`.
    pub fn new(data: &Path, bytes: u64) -> Self {
        Self { what: WHAT.to_owned(), version: VERSION, data: data.to_string(), bytes }
    }

    /// Its bytes.
    ///
    /// # Errors
    /// None in practice.
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(io::Error::other)
    }

    /// Reads one.
    ///
    /// # Errors
    /// `InvalidData` if it is none, or of a newer version.
    pub fn parse(bytes: &[u8]) -> io::Result<Self> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let pointer: Self = serde_json::from_slice(bytes)
            .map_err(|_| invalid("this is no backup of Pellucid's"))?;
        match (pointer.what.as_str(), pointer.version) {
            (WHAT, VERSION) => Ok(pointer),
            (WHAT, _) => Err(invalid("a newer version may read it")),
            _ => Err(invalid("this is no backup of Pellucid's")),
        }
    }
}

/// 32 hexadecimal digits.
///
/// # Errors
/// If there is no randomness.
pub fn random_name() -> io::Result<String> {
    let mut random = [0; 16];
    pellucid::secret::fill_random(&mut random).map_err(io::Error::other)?;
    Ok(pellucid::hash::hex(&random))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back_and_nothing_else_passes_for_it() {
        let pointer = Pointer::new(&Path::from("a/b.bak.00"), 7);
        let bytes = pointer.encode().unwrap();
        assert!(bytes.len() < MOST_BYTES);
        assert_eq!(Pointer::parse(&bytes).unwrap(), pointer);
        let text = String::from_utf8(bytes).unwrap();
        for other in [text.replace("media", "medium"), text.replace(":1,", ":2,"), "{}".to_owned()]
        {
            assert!(Pointer::parse(other.as_bytes()).is_err(), "{other}");
        }
    }
}
