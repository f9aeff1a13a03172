//! What somebody who trusts the files may allow: passphrases and passwords that cost more than a file that is not authentic yet
//! may ask for, and wraps by RSA alone where hybrid ones belong.

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

/// Whether `PELLUCID_ALLOW_CLASSICAL=1` allows backup sets and bundles by RSA alone under a certificate with a companion key.
pub fn is_classical_allowed() -> bool {
    std::env::var_os("PELLUCID_ALLOW_CLASSICAL").is_some_and(|set| set == "1")
}
