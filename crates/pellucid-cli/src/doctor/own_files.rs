//! `doctor`: the instance's own sealed files, `msdb.db` and `master.db`, of which the keyring has the key.

use std::path::Path;

use pellucid::shown::Shown;
use pellucid_backup::history::{History, FILE, MASTER_FILE};
use pellucid_engine::audit::{audit_with, Options};
use pellucid_engine::inspect::{inspect, Kind};
use pellucid_files::paths::is_there;
use pellucid_vfs::seal_request::{Credentials, Request};

use super::Finding;
use crate::container::{begin, unreadable};
use crate::output::word;

/// What is wrong with each of them; nothing is said of one that is whole, or not there.
pub(super) fn findings(home: &Path) -> Vec<Finding> {
    let todo = |file: &str| {
        match file {
        FILE => {
            "move it away, restore it with `RESTORE DATABASE msdb .. WITH REPLACE`, or let `pellucid history rebuild` read \
             what media say"
        }
        _ => "restore it with `RESTORE DATABASE master .. WITH REPLACE`, or move it away to begin without its tables",
    }
    };
    let one = |file: &&'static str| {
        let told = trouble(&home.join(file))?;
        Some(Finding::bad("instance", told, todo(file)))
    };
    [FILE, MASTER_FILE].iter().filter_map(one).collect()
}

fn trouble(path: &Path) -> Option<String> {
    let name = path.shown();
    if !is_there(path) || begin().is_err() {
        return None;
    }
    // What is wrong with the key is said by whoever asks for it.
    let _ = History::offer_key_of(path);
    match inspect(path) {
        Err(error) => return Some(error.to_string()),
        Ok(found) => match found.kind {
            Kind::Sealed(sealed) => {
                let keys = Credentials::gather(&Request::default());
                let opened = keys.and_then(|keys| sealed.header.unwrap(&keys));
                if let Err(error) = opened {
                    return Some(format!("`{name}`: {error}"));
                }
            }
            Kind::Damaged(error) => return Some(format!("`{name}`: {}", unreadable(&error))),
            Kind::Plain => {
                return Some(format!("`{name}` is PLAIN, and an instance's own are sealed"))
            }
            _ => return Some(format!("`{name}` is not the sealed file that it was")),
        },
    }
    let options = Options { physical_only: true, cores: 1 };
    match audit_with(path, options, &[], &mut |_, _, _| ()) {
        Err(error) => Some(error.to_string()),
        Ok(found) if found.is_clean() => None,
        Ok(_) => Some(format!("`{name}` is damaged: `pellucid check {}` says where", word(path))),
    }
}
