//! What tests and fuzz targets of T-SQL share: statements as text again, statements made of bytes, and checks of both.
//!
//! No shipped program needs the text of a syntax tree, so that the language's crate has no printer.
#![forbid(unsafe_code)]

mod check;
mod generate;
mod print;
mod random;

pub use check::{assert_prints_back, batches, prints_as, prints_the_same, round_trip};
pub use generate::Choices;
pub use print::ToSql;
pub use random::Random;
