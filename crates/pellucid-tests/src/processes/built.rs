//! Where the programs and the library lie that were built with this test.

use std::path::PathBuf;

/// What was built with this test: it lies in `PELLUCID_BIN`, or else in the directory above the test's own program.
pub fn built(name: &str) -> PathBuf {
    let directory = std::env::var_os("PELLUCID_BIN")
        .map(PathBuf::from)
        .unwrap_or_else(|| std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned());
    let path = directory.join(name);
    assert!(path.exists(), "{} is missing: `cargo build --workspace` makes it", path.display());
    path
}
