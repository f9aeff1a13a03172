//! The stock `sqlite3`, with the shim and without.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../crash_common/built.rs"]
mod built;
mod leak;
mod place;
#[path = "../crash_common/random.rs"]
mod random;
mod stranger;
mod views;
