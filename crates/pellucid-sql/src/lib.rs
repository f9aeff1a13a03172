//! SQL Server's statements: batches, tokens, syntax trees, trees as text again, queries as SQLite's, and sessions that
//! execute them.
//!
//! ```
//! use pellucid_sql::{parse, ast::StatementKind};
//!
//! let batch = "USE master BACKUP DATABASE db TO DISK = 'db.bak' WITH INIT, STATS = 5";
//! let statements = parse(batch)?;
//! assert!(matches!(statements[1].kind, StatementKind::Backup(_)));
//! assert_eq!(statements[1].to_string(), "BACKUP DATABASE db TO DISK = 'db.bak' WITH INIT, STATS = 5;");
//!
//! let error = parse("CREATE MASTER KEY\nENCRYPTION BY PASSWORD 'secret'").unwrap_err();
//! assert_eq!((error.number(), error.line), (102, 2));
//! assert_eq!(error.to_string(), "Incorrect syntax near '***'.");
//! # Ok::<(), pellucid_sql::ParseError>(())
//! ```
//!
//! Parsing looks nothing up. Queries are translated to SQLite ([`translate`]) and use functions that a connection has to
//! know ([`functions`]); a [`session`] executes them and every other statement. What SQL Server knows and Pellucid does
//! not do is refused by name
//! ([`ErrorKind::Unsupported`]), never skipped. Literals behind PASSWORD and SECRET are wiped when dropped and appear
//! in no message, no `Debug` output and no printed statement.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

pub mod ast;
pub mod batch;
pub mod convert;
pub mod decimal;
mod error;
mod execute;
pub mod functions;
mod instance;
pub mod keyword;
pub mod lexer;
pub mod message;
pub mod moment;
mod parser;
mod print;
pub mod secret;
pub mod session;
pub mod translate;
pub mod types;
mod views;

pub use error::{ErrorKind, ParseError, Result};
pub use parser::{parse, statements, Statements, MAX_DEPTH};
