//! Whether passphrases and passwords may cost more than a file that is not authentic yet may ask for.

use std::sync::atomic::{AtomicBool, Ordering};

/// The variable that allows it, for a process and its children.
pub const ALLOW_COST: &str = "PELLUCID_ALLOW_COST";

static ALLOWED: AtomicBool = AtomicBool::new(false);

/// Allows it in this process: somebody has asked for it who trusts the files.
pub fn allow_cost() {
    ALLOWED.store(true, Ordering::Relaxed);
}

/// Whether it is allowed, by [`allow_cost`] or by `PELLUCID_ALLOW_COST=1`.
pub fn is_cost_allowed() -> bool {
    ALLOWED.load(Ordering::Relaxed) || std::env::var_os(ALLOW_COST).is_some_and(|set| set == "1")
}
