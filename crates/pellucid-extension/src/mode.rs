//! What `pellucid run` asked for, read once while the library is loaded and fixed from then on.
//!
//! Read in a constructor, because programs overwrite their environment (process titles) and because a program
//! must not be able to switch the shim off half way.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;

/// When the shim is put in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Loaded as an extension, or preloaded by hand: interposed calls are passed on.
    Off,
    /// `PELLUCID_PRELOAD=1`: before the first open.
    FirstOpen,
    /// `PELLUCID_PRELOAD=eager`: while the library is loaded.
    Eager,
}

/// The settings of this process.
#[derive(Debug)]
pub struct Settings {
    pub mode: Mode,
    /// `PELLUCID_WITNESS`: the file that learns that the shim was entered.
    pub witness: Option<CString>,
    /// `PELLUCID_OVER`: the lower VFS of what names none.
    pub over: OsString,
}

/// The settings as they were when the library was loaded.
pub fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        // Anything but nothing, an empty string and `0` switches the shim on: a misspelt value must not leave
        // databases in clear.
        let mode = match std::env::var_os("PELLUCID_PRELOAD") {
            None => Mode::Off,
            Some(value) if value.is_empty() || value == "0" => Mode::Off,
            Some(value) if value == "eager" => Mode::Eager,
            Some(_) => Mode::FirstOpen,
        };
        let witness = std::env::var_os("PELLUCID_WITNESS")
            .filter(|path| !path.is_empty())
            .and_then(|path| CString::new(path.into_vec()).ok());
        let over = std::env::var_os("PELLUCID_OVER").unwrap_or_default();
        Settings { mode, witness, over }
    })
}
