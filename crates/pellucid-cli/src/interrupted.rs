//! Ctrl-C in a long command: a line on what state its work is in, and on what goes on with it. Then the process ends by the
//! signal, as every other one does.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::output::tell;

/// What is told if the signal comes now.
static STATE: Mutex<Option<String>> = Mutex::new(None);

/// From now on a signal that ends the command is answered with `words`; changed by each later call.
pub fn answer_with(words: impl Display) {
    let words = words.to_string();
    let before = STATE.lock().unwrap_or_else(PoisonError::into_inner).replace(words);
    if before.is_none() {
        watch();
    }
}

/// Whether whoever started the program wants it to outlive the signal, as `nohup` does. None if the system does not say.
fn is_ignored(signal: i32) -> Option<bool> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some(mask & (1 << (signal - 1)) != 0)
}

fn watch() {
    let watched =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| is_ignored(*signal) == Some(false));
    // Where the system has no thread or handler for it, the command ends without the line.
    let Ok(mut signals) = Signals::new(watched) else { return };
    let _ = std::thread::Builder::new().name("interrupted".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let state = STATE.lock().unwrap_or_else(PoisonError::into_inner).clone();
            pellucid_backup::job::remove_working_files();
            // Behind a progress bar.
            tell(format_args!("\npellucid: interrupted; {}\n", state.unwrap_or_default()));
            let _ = emulate_default_handler(signal);
        }
    });
}
