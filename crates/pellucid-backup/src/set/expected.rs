//! What pages have to be: those that no commit has changed since a full set are what that set has.

use std::sync::{Mutex, PoisonError};

use pellucid::media::{page_hash, PAGE_HASH_BYTES};

use super::write::Base;

/// Pages that are looked at while a full set is made, because a chain of log backups says of each whether it may be another one.
#[derive(Debug)]
pub struct Expected {
    /// The full set before, and the pages that commits have changed since.
    base: Base,
    others: Mutex<Vec<u32>>,
}

impl Expected {
    /// What a full set, and the chain behind it, say.
    pub fn of(base: Base) -> Self {
        Self { base, others: Mutex::default() }
    }

    /// Looks at pages by their numbers.
    pub fn look(&self, numbers: &[u32], content: &[u8], page_bytes: usize) {
        for (number, page) in numbers.iter().copied().zip(content.chunks_exact(page_bytes)) {
            if self.base.may_differ(number) {
                continue;
            }
            let at = (number as usize - 1) * PAGE_HASH_BYTES;
            let known = self.base.hashes.get(at..at + PAGE_HASH_BYTES);
            if known != Some(&page_hash(&self.base.page_hash_key, page)[..]) {
                self.others.lock().unwrap_or_else(PoisonError::into_inner).push(number);
            }
        }
    }

    /// Pages that no commit made what they are, but for those that could not be read.
    pub fn others(&self, unread: &[u32]) -> Vec<u32> {
        let mut found = self.others.lock().unwrap_or_else(PoisonError::into_inner).clone();
        found.retain(|page| !unread.contains(page));
        found.sort_unstable();
        found
    }
}
