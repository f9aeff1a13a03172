//! Values of the server: their types, decimals, moments, and how one type becomes another.
//!
//! Nothing here knows a message of the server: what fails is an [`Error`] of its own, and the messages say it.

pub mod convert;
pub mod decimal;
mod error;
pub mod moment;
pub mod types;
pub(crate) mod xml;

pub use error::{Error, Result};
