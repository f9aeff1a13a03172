//! The program from outside, as its users meet it: what it prints, and what it leaves on disk.
//!
//! One binary, because linking one takes as long as most of these tests. Every test starts processes of its own in a
//! directory of its own and changes nothing of this one. `cost` measures, so that nothing may run beside it: it is
//! apart.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod application;
mod backup;
mod backup_faults;
mod backup_guards;
mod backup_kills;
mod backup_leaks;
mod chain;
mod check;
mod claims;
mod core_dump;
mod cut_while_read;
mod demo;
mod denied;
mod doctor;
mod errors;
mod events;
mod forged_media;
mod forgeries;
mod functions;
mod guide;
mod history;
mod history_last;
mod idle;
mod instance;
mod keys;
mod kills;
mod lab;
mod languages;
mod messages;
mod newer;
mod objects;
mod overwrite;
mod pages;
mod policy;
mod programs;
mod progress;
mod races;
mod rekey;
mod replace;
mod run;
mod salvage;
mod scan;
mod secrets;
mod services;
mod side_files;
mod sql_articles;
mod sql_messages;
mod sql_output;
mod sql_prompt;
mod sql_server;
mod sql_sessions;
mod sql_tools;
mod sql_views;
mod sql_walkthrough;
mod states;
mod status;
#[path = "../support/mod.rs"]
mod support;
mod trusted;
mod views;
mod wear;
