//! The program from outside, as its users meet it: what it prints, and what it leaves on disk.
//!
//! One binary, because linking one takes as long as most of these tests. Every test starts processes of its own in a
//! directory of its own and changes nothing of this one. `cost` measures, so that nothing may run beside it: it is
//! apart.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod application;
mod check;
mod claims;
mod core_dump;
mod demo;
mod doctor;
mod errors;
mod events;
mod forgeries;
mod guide;
mod keys;
mod languages;
mod programs;
mod rekey;
mod run;
mod secrets;
mod services;
#[path = "../support/mod.rs"]
mod support;
mod wear;
