//! Pellucid's own messages, with numbers from 50001.

use crate::message::product::PATH;
use crate::message::{OF_SQLITE, UNSUPPORTED};

rows! {
    UNSUPPORTED, 15, NOT_SUPPORTED = "'{construct}' is not supported.";
    OF_SQLITE, 16, SQLITE_CODE = "SQLite: {text} ({code})";
    OF_SQLITE, 16, SQLITE_ERROR = "SQLite: {error}";
    OF_SQLITE, 16, SQLITE_ARGUMENT = "SQLite: argument {at} has another type than expected.";
    OF_SQLITE, 16, NO_RANDOM_NUMBERS = "random numbers: {error}";
    PATH, 16, BAD_PATH = "'{path}': {reason}.";
}
