//! Units that are read while others write: a header that is older than a unit is read again first.

use pellucid::unit::generation;
use pellucid_vfs::link::Link;

/// Reads the header again where `unit` names a generation that it did not have when it was read last. A header that cannot
/// be read again opens nothing either, and the unit says so then.
pub fn catch_up(link: &Link, unit: &[u8]) {
    if generation(unit).is_some_and(|named| link.is_newer(named)) {
        let _ = link.refresh();
    }
}
