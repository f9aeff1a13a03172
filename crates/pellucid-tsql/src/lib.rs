//! The language of SQL Server's statements: scripts to batches, batches to tokens and syntax trees.
//!
//! ```
//! use pellucid_tsql::{parse, ast::StatementKind};
//!
//! let batch = "USE master BACKUP DATABASE db TO DISK = 'db.bak' WITH INIT, STATS = 5";
//! let statements = parse(batch)?;
//! assert!(matches!(statements[1].kind, StatementKind::Backup(_)));
//!
//! let error = parse("CREATE MASTER KEY\nENCRYPTION BY PASSWORD 'secret'").unwrap_err();
//! assert_eq!((error.number(), error.line), (102, 2));
//! assert_eq!(error.to_string(), "Incorrect syntax near '***'.");
//! # Ok::<(), pellucid_tsql::ParseError>(())
//! ```
//!
//! Parsing looks nothing up: names, types and functions are what the text says, and the crate `pellucid-sql` executes the
//! trees. What SQL Server knows and Pellucid does not do is refused by name ([`ErrorKind::Unsupported`]), never skipped.
//! Literals behind PASSWORD and SECRET are wiped when dropped and appear in no message and no `Debug` output.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

pub mod ast;
pub mod batch;
mod error;
pub mod keyword;
pub mod known;
pub mod lexer;
mod parser;
pub mod secret;

pub use error::{ErrorKind, ParseError, Result};
pub use parser::{parse, parse_as, statements, Parsed, Statements, Undeclared, MAX_DEPTH};
