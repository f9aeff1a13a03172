//! What the derivations of one header, bundle, password file or backup set may cost in sum.
//!
//! Their parameters are authentic only once a key was derived by them, so that whoever can write the
//! file chooses them. What this project makes at its default cost always opens, also with as many
//! passphrases as a header has room for. Media have many headers: what was derived for one in vain
//! counts for all that the same keys are tried on.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Argon2Cost, MAX_PROTECTORS};
use crate::error::{Error, Result, Subject};

/// The most memory of one derivation, in KiB: 256 MiB.
const MOST_KIB: u32 = 256 * 1024;
/// The default's, 64 MiB three times over, for each protector.
const MOST_WORK_KIB: u64 = 64 * 1024 * 3 * MAX_PROTECTORS as u64;
/// Of passphrases that opened nothing, for all headers that one source of keys is asked about.
const MOST_WASTED_KIB: u64 = 8 * MOST_WORK_KIB;
/// The option that allows more.
pub const OPTION: &str = "--allow-cost";

/// What is left of it.
#[derive(Debug)]
pub struct Budget<'a> {
    work_kib: u64,
    is_limited: bool,
    wasted_kib: Option<&'a AtomicU64>,
}

impl<'a> Budget<'a> {
    /// Returns the whole budget; without limits of its own where the caller trusts the file's maker
    /// (`allows_more`).
    pub fn new(allows_more: bool) -> Self {
        Self { work_kib: MOST_WORK_KIB, is_limited: !allows_more, wasted_kib: None }
    }

    /// The same, with a count of what was derived in vain for other headers.
    pub fn shared(allows_more: bool, wasted_kib: Option<&'a AtomicU64>) -> Self {
        Self { wasted_kib, ..Self::new(allows_more) }
    }

    /// Counts a derivation by `cost` that opened nothing.
    pub fn waste(&self, cost: Argon2Cost) {
        if let Some(wasted) = self.wasted_kib {
            wasted.fetch_add(cost.work_kib(), Ordering::Relaxed);
        }
    }

    /// Takes a derivation by `cost` out of the budget, before any work.
    ///
    /// # Errors
    /// [`Error::Unsupported`] about `subject`, with the cost, the limits and the option that allows it.
    pub fn spend(&mut self, cost: Argon2Cost, subject: impl FnOnce() -> Subject) -> Result<()> {
        let wasted = self.wasted_kib.map_or(0, |wasted| wasted.load(Ordering::Relaxed));
        let left = self.work_kib.checked_sub(cost.work_kib());
        let left = left.filter(|_| wasted.saturating_add(cost.work_kib()) <= MOST_WASTED_KIB);
        match (self.is_limited, left) {
            (false, _) => {}
            (true, Some(left)) if cost.memory_kib <= MOST_KIB => self.work_kib = left,
            _ => {
                return Err(Error::unsupported(
                    subject(),
                    format!(
                        "its passphrase costs {cost}; anybody who can write the file can ask for that, so no more than {} \
                         MiB, and {} MiB times passes in sum, are given: `{OPTION}` or `PELLUCID_ALLOW_COST=1` allows \
                         it for a file that you trust",
                        MOST_KIB / 1024,
                        MOST_WORK_KIB / 1024,
                    ),
                ))
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(mib: u32, passes: u32) -> Argon2Cost {
        Argon2Cost { memory_kib: mib * 1024, passes, lanes: 4 }
    }

    #[test]
    fn a_header_full_of_the_default_opens_and_nothing_more() {
        let mut budget = Budget::new(false);
        for _ in 0..MAX_PROTECTORS {
            budget.spend(Argon2Cost::default(), || Subject::Protector(0)).unwrap();
        }
        let told = budget.spend(cost(1, 1), || Subject::Protector(1)).unwrap_err();
        assert!(matches!(told, Error::Unsupported { .. }), "{told:?}");
        Budget::new(false).spend(cost(256, 4), || Subject::Protector(0)).unwrap();
    }

    #[test]
    fn what_is_derived_in_vain_counts_for_every_header() {
        let wasted = AtomicU64::new(0);
        let cost = Argon2Cost::default();
        let mut headers = 0;
        while Budget::shared(false, Some(&wasted)).spend(cost, || Subject::Protector(1)).is_ok() {
            Budget::shared(false, Some(&wasted)).waste(cost);
            headers += 1;
        }
        assert_eq!(headers, 8 * MAX_PROTECTORS);
        Budget::shared(true, Some(&wasted)).spend(cost, || Subject::Protector(1)).unwrap();
    }

    #[test]
    fn memory_and_work_are_limited_each_unless_more_is_allowed() {
        for dear in [cost(257, 1), cost(256, 7), cost(1024, 16)] {
            let told = Budget::new(false).spend(dear, || Subject::Protector(2)).unwrap_err();
            let told = told.to_string();
            for word in ["protector 2", &dear.to_string(), "256 MiB", "1536 MiB", OPTION] {
                assert!(told.contains(word), "{word}: {told}");
            }
            Budget::new(true).spend(dear, || Subject::Protector(2)).unwrap();
        }
    }
}
