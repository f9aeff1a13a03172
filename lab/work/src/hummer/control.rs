//! `lab hummer control`: changes the control table of a hummer that is running.

use std::path::Path;

use pellucid_lab_measure::choice::extension;
use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::side::{Kind, Recovery, Side};
use pellucid_lab_report::plan;

use super::options::ControlOptions;
use crate::pool;
use crate::scenario::hummer::{Answer, Change, Task};
use crate::worker::{self, Order, Report};

/// Writes what `options` say, and prints the parameters as they are now.
///
/// # Errors
/// [`Error::Invalid`] if the database is not hummer's or cannot be opened.
pub fn write(options: &ControlOptions) -> Result<bool> {
    let absolute = |path: &Path| path.canonicalize().map_err(Error::io(path.display().to_string()));
    let path = absolute(&options.database)?;
    let kind = match &options.key_file {
        None => Kind::Plain,
        Some(key_file) => Kind::Sealed {
            extension: extension(options.extension.as_ref())?,
            key_file: absolute(key_file)?,
            // Of a new database; this one has its own.
            algorithm: "AES_256".into(),
        },
    };
    let side = Side { name: kind.name().into(), kind, library: None, recovery: Recovery::Simple };
    let change = Change {
        finished: options.stop.then_some(true),
        mix: options.mix,
        delay_ms: options.delay_ms,
        live: true,
    };
    let home = path.parent().unwrap_or(Path::new("/")).to_path_buf();
    let task = worker::Task::Hummer(Task::Control(change));
    let order = Order { side, path, setting: plan::STANDARD, task };
    match pool::single(&order, &home)? {
        Report::Hummer(Answer::Control(now)) => {
            let state = if now.finished { ", stop" } else { "" };
            println!("mix {}, DELAY {} ms{state}", now.mix, now.delay_ms);
            Ok(true)
        }
        other => Err(Error::invalid(format!("the control table answers {other:?}"))),
    }
}
