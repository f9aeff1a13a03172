//! The thread that statements are executed on: blocks nest a hundred deep, in each of 32 procedures that call one another.

use std::process::ExitCode;

use crate::output::{Failure, Id, Output};

use super::SqlArgs;

/// Most of the thread's stack, of which the system gives what is used.
pub(super) const STATEMENT_BYTES: usize = 48 << 20;
/// What is left is for a statement's own expressions and for SQLite.
const STACK_BYTES: usize = 64 << 20;

/// Does it there.
pub fn run(args: &SqlArgs, output: &Output) -> Result<ExitCode, Failure> {
    let all = || {
        let done = super::run(args, output);
        // They are kept for each thread.
        for told in pellucid_host::code::take_notices() {
            output.warning(told);
        }
        done
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("sql".to_owned()).stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, all).map_err(|error| {
            let hint = "leave it more memory, or more threads";
            Failure::new(Id::Io, format!("no thread for statements: {error}"), hint)
        })?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
