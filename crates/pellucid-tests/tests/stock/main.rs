//! The stock `sqlite3`, with the shim and without.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use pellucid_tests::processes::built;
mod leak;
mod place;
use pellucid_tests::random;
mod stranger;
mod views;
