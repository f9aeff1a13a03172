//! Processes that die at a chosen call, fork in the middle of a transaction, or find pages of zeros.
//!
//! `idle` and `ten_processes` are apart: the first sets a variable of its process, the second is a campaign's as well.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use pellucid_tests::processes;
mod fork;
mod holes;
mod kill_sync_off;

/// What [`processes::child`] runs; nothing in the parent.
#[test]
fn child_entry() {
    match processes::role().as_deref() {
        None => {}
        Some("fork") => fork::forking(),
        Some(role) => kill_sync_off::at_work(role),
    }
}
