//! What the tests over several crates share: one generator of numbers, containers, the content of databases, and processes that
//! die where they are told to.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub mod container;
pub mod content;
pub mod elsewhere;
pub mod file_objects;
pub mod limits;
pub mod processes;
pub mod random;
