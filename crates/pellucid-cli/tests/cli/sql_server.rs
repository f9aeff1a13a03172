//! An instance to which scripts are given as an administrator gives them, and what they show.

use std::path::PathBuf;

use crate::support::{said_with, Place, Said, PELLUCID};

pub struct Server(pub Place);

impl Server {
    /// A new instance with folders on its drives.
    pub fn with(folders: &[&str]) -> Self {
        let server = Self(Place::new());
        server.run("SELECT 1 AS made").succeeded();
        for folder in folders {
            std::fs::create_dir_all(server.drive(folder)).unwrap();
        }
        server
    }

    pub fn drive(&self, name: &str) -> PathBuf {
        self.0.path("keys/drives").join(name)
    }

    /// A script from standard input.
    pub fn run(&self, script: &str) -> Said {
        said_with(self.0.command(PELLUCID).args(["sql", "-W"]), script)
    }

    /// The rows of a query without heading and count, columns divided by `|`.
    #[track_caller]
    pub fn rows(&self, query: &str) -> Vec<String> {
        let options = ["sql", "-W", "-h", "-1", "-s", "|"];
        let shown = said_with(self.0.command(PELLUCID).args(options), query).succeeded();
        assert!(!shown.contains("Msg "), "{query}\n{shown}");
        shown.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect()
    }
}

/// The errors that a script showed, number and text.
pub fn errors(shown: &str) -> Vec<(String, String)> {
    let lines: Vec<_> = shown.lines().collect();
    let is_error = |at: &usize| lines[*at].starts_with("Msg ") && lines[*at].contains(", Level ");
    let number = |line: &str| line.split(',').next().unwrap_or_default().to_owned();
    let found = (0..lines.len()).filter(is_error);
    found.map(|at| (number(lines[at]), lines.get(at + 1).unwrap_or(&"").to_string())).collect()
}

/// Lines that begin so.
pub fn count(shown: &str, start: &str) -> usize {
    shown.lines().filter(|line| line.starts_with(start)).count()
}
