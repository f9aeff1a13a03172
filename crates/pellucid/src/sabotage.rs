//! The protections that a test can switch off with `PELLUCID_SABOTAGE`, to show that the test fails without them.
//!
//! They need the feature `sabotage`, which no release has: a build without debug assertions fails here, and
//! `.ci/shipped` looks for the variable's name.

#[cfg(not(debug_assertions))]
compile_error!(
    "the feature `sabotage` is for tests: no build without debug assertions may have it"
);

use std::sync::OnceLock;

/// A protection that a test can switch off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// `authentication`: units open without a check of their tags.
    Authentication,
    /// `fork-guard`: a forked child inherits the nonces that its parent has prepared.
    ForkGuard,
}

impl Sabotage {
    /// Whether the protection is switched off in this process. The variable is read once.
    pub fn is_on(self) -> bool {
        static CHOSEN: OnceLock<Option<Sabotage>> = OnceLock::new();
        let chosen = CHOSEN.get_or_init(|| match std::env::var("PELLUCID_SABOTAGE").as_deref() {
            Ok("authentication") => Some(Self::Authentication),
            Ok("fork-guard") => Some(Self::ForkGuard),
            _ => None,
        });
        *chosen == Some(self)
    }
}
