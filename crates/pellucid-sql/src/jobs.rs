//! SQL Server Agent's jobs: what is kept of them in `msdb`, when they run, and the agent that runs them.

pub(crate) mod accounts;
pub mod agent;
pub(crate) mod schedule;
pub(crate) mod store;
mod tokens;
