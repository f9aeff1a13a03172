//! Units that are read while other processes write. If a unit is newer than the known header, the
//! header is read again first.

use pellucid::unit::generation;
use pellucid_vfs::container::Container;

/// Reads the header again if `unit` names a generation that the known header does not have. An
/// error is not returned: without a new header the unit does not open either, and its error says
/// so.
pub fn catch_up(container: &Container, unit: &[u8]) {
    if generation(unit).is_some_and(|named| container.is_newer(named)) {
        let _ = container.refresh();
    }
}
