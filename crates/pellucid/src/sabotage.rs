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
    /// `pins`: no path has a pin.
    Pins,
    /// `retired-keys`: no key is retired.
    RetiredKeys,
    /// `older-header`: pins have forgotten which header they saw.
    OlderHeader,
    /// `frame-page`: a frame serves as whatever page the wal-index says.
    FramePage,
    /// `lost-log`: commits behind a damaged frame are not kept.
    LostLog,
    /// `clear-sets`: each backup set in clear is believed.
    ClearSets,
    /// `log-version`: the log of another version than its database is not refused.
    LogVersion,
    /// `log-run`: frames of version 2 are not bound to their run of the log.
    LogRun,
    /// `log-sector`: sector 2 does not tell that a log's header is damaged.
    LogSector,
    /// `log-synced`: no frame says that those before it were synced.
    LogSynced,
    /// `log-recovery`: recoveries of a log are not counted.
    LogRecovery,
    /// `unsigned-sets`: each backup set without a signature is believed.
    UnsignedSets,
    /// `log-kept`: a log begins anew whether the chain of log backups has its commits or not.
    LogKept,
    /// `index-place`: a wal-index in memory is used whether others use the same or not.
    IndexPlace,
}

impl Sabotage {
    /// Each of them.
    pub const ALL: [Self; 16] = [
        Self::Authentication,
        Self::ForkGuard,
        Self::Pins,
        Self::RetiredKeys,
        Self::OlderHeader,
        Self::FramePage,
        Self::LostLog,
        Self::ClearSets,
        Self::LogVersion,
        Self::LogRun,
        Self::LogSector,
        Self::LogSynced,
        Self::LogRecovery,
        Self::UnsignedSets,
        Self::LogKept,
        Self::IndexPlace,
    ];

    /// Its name in the variable.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Authentication => "authentication",
            Self::ForkGuard => "fork-guard",
            Self::Pins => "pins",
            Self::RetiredKeys => "retired-keys",
            Self::OlderHeader => "older-header",
            Self::FramePage => "frame-page",
            Self::LostLog => "lost-log",
            Self::ClearSets => "clear-sets",
            Self::LogVersion => "log-version",
            Self::LogRun => "log-run",
            Self::LogSector => "log-sector",
            Self::LogSynced => "log-synced",
            Self::LogRecovery => "log-recovery",
            Self::UnsignedSets => "unsigned-sets",
            Self::LogKept => "log-kept",
            Self::IndexPlace => "index-place",
        }
    }

    /// Whether the protection is switched off in this process. The variable is read once.
    pub fn is_on(self) -> bool {
        static CHOSEN: OnceLock<Option<Sabotage>> = OnceLock::new();
        let chosen = CHOSEN.get_or_init(|| {
            let name = std::env::var("PELLUCID_SABOTAGE").ok()?;
            Self::ALL.into_iter().find(|rule| rule.name() == name)
        });
        *chosen == Some(self)
    }
}
