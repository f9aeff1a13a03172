//! Pellucid's own errors as messages: SQL Server's where there is one, else with numbers from 50000.

use pellucid::message as known;
use pellucid::shown::Shown;
use pellucid::Error;
use pellucid_host::code::last_report;
use pellucid_host::{ffi, DatabaseError};

use super::{table, Message};

/// The system refused to read or write.
pub const IO: u32 = 50_003;
/// Damage.
pub const CORRUPT: u32 = 50_004;
/// Damage or an attack.
pub const UNAUTHENTIC: u32 = 50_005;
/// A newer format or an unknown algorithm.
pub const UNKNOWN_FORMAT: u32 = 50_006;
/// A key that is not a certificate is missing.
pub const MISSING_KEY: u32 = 50_007;
/// Not allowed.
pub const MISUSE: u32 = 50_008;
/// A stated limit is reached.
pub const LIMIT: u32 = 50_009;
/// Log backups.
pub const NO_LOG_BACKUPS: u32 = 50_010;
/// Other programs have the database open.
pub const IN_USE: u32 = 50_011;
/// A path that cannot be used.
pub const PATH: u32 = 50_012;
/// The schema needs what only an application has.
pub const SCHEMA: u32 = 50_013;
/// No room.
pub const SPACE: u32 = 50_014;
/// A scan or a first encryption could not be started.
pub const WORKER: u32 = 50_015;
/// What the history or an instance says beside a statement that was done.
pub const REMARK: u32 = 50_016;

/// SQL Server's messages that are told within an error of ours, behind what it says itself.
const WITHIN: [known::Message; 5] = [
    known::CERTIFICATE_NOT_FOUND,
    known::DOES_NOT_EXIST,
    known::NOT_USABLE,
    known::DECRYPTION_FAILED,
    known::KEY_CORRUPTED,
];

impl From<known::Message> for Message {
    fn from(message: known::Message) -> Self {
        Self::new(message.number.into(), message.severity, message.text)
    }
}

impl Message {
    /// One of the messages that Pellucid shares with SQL Server, with its arguments.
    pub fn known(message: &known::Message, arguments: &[&str]) -> Self {
        Self::new(message.number.into(), message.severity, message.with_all(arguments).into_owned())
    }

    /// 50012: a path that cannot be used, and why.
    pub fn path(path: &str, why: &str) -> Self {
        Self::of(table::BAD_PATH, [&path, &why])
    }
}

impl From<Error> for Message {
    fn from(error: Error) -> Self {
        if let Error::Message { message, text } = &error {
            return Self::new(message.number.into(), message.severity, text.clone());
        }
        let text = error.to_string();
        if let Some(message) = error.number().and_then(|number| within(number, &text)) {
            return message;
        }
        let number = match &error {
            Error::Io { .. } => IO,
            Error::Corrupt { .. } => CORRUPT,
            Error::Unauthentic { .. } => UNAUTHENTIC,
            Error::Unsupported { .. } => UNKNOWN_FORMAT,
            Error::MissingKey { .. } => MISSING_KEY,
            Error::LimitReached { .. } => LIMIT,
            _ => MISUSE,
        };
        Self::new(number, 16, sentence(&text))
    }
}

/// 15240 for a file of keys that cannot be written.
pub(crate) fn not_written(error: Error) -> Message {
    match &error {
        Error::Io { subject: pellucid::Subject::File(path), .. } => {
            Message::known(&known::FILE_EXISTS, &[&path.shown().to_string()])
        }
        _ => error.into(),
    }
}

/// SQL Server's message, without what comes before it.
fn within(number: u16, text: &str) -> Option<Message> {
    let message = WITHIN.iter().find(|message| message.number == number)?;
    let start = message.text.split("%s").next().unwrap_or_default();
    let end = message.text.rsplit("%s").next().unwrap_or_default();
    let told = &text[text.find(start)?..];
    let length = told.find(end).map(|at| at + end.len()).filter(|length| *length > start.len());
    let told = length.map_or(told, |length| &told[..length]);
    Some(Message::new(number.into(), message.severity, told))
}

fn sentence(text: &str) -> String {
    match text.ends_with(['.', '!', '?']) {
        true => text.to_owned(),
        false => format!("{text}."),
    }
}

/// What was expected at a path, and the command that accepts what is there, where SQLite has only a code for it.
pub(super) fn replaced(code: i32) -> Option<Message> {
    if code & 0xff != ffi::AUTH {
        return None;
    }
    let told = last_report().filter(|report| report.code == ffi::AUTH_REPLACED)?;
    Some(Message::new(MISUSE, 16, sentence(&told.line)))
}

impl From<DatabaseError> for Message {
    fn from(error: DatabaseError) -> Self {
        if let DatabaseError::Sqlite { code, .. } = &error {
            if let Some(message) = replaced(*code) {
                return message;
            }
        }
        let text = sentence(&error.to_string());
        let number = match error {
            DatabaseError::Typed(error) => return error.into(),
            DatabaseError::Sqlite { .. } => super::OF_SQLITE,
            DatabaseError::InUse { .. } => IN_USE,
            DatabaseError::Scanned { .. } => WORKER,
            DatabaseError::Schema { .. } => SCHEMA,
            DatabaseError::Space { .. } => SPACE,
        };
        Self::new(number, 16, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pellucid::Subject;

    #[test]
    fn what_tells_a_message_of_sql_servers_is_that_message() {
        let text = known::CERTIFICATE_NOT_FOUND.with_all(&["certificate", "0x12"]).into_owned();
        let error =
            Error::missing_key(Subject::Container, format!("protector 0: {text}; bring it"));
        let message = Message::from(error);
        assert_eq!((message.number, message.severity), (33111, 16));
        assert_eq!(message.text, "Cannot find server certificate with thumbprint '0x12'.");
        let error = Error::corrupt(Subject::Page(17), "wrong length");
        assert_eq!(Message::from(error).text, "page 17: wrong length.");
    }
}
