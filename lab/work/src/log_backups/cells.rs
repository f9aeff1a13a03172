//! What a round of log backups consists of.

use serde::Deserialize;

use crate::article_0::disks::Named;

/// What restores a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// RESTORE DATABASE and RESTORE LOG.
    Statements,
    /// `pellucid restore --at`.
    Command,
}

/// The backups of which a database is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    Full,
    /// The full backup and a differential.
    Differential,
    /// The full backup and so many log backups.
    Logs(usize),
}

/// What a block of a round is about.
#[derive(Debug)]
pub enum Kind {
    /// Numbers of source and target.
    Log {
        source: usize,
        target: usize,
        compression: &'static str,
    },
    Restore {
        media: Media,
        to_point: bool,
        by: By,
    },
}

/// A block of a round: each choice of encryption once.
#[derive(Debug)]
pub struct Cell {
    pub kind: Kind,
    pub name: String,
}

/// All cells: log backups from each source to each target, and restores by these numbers of logs, in these ways.
pub fn cells(
    compressions: &[&'static str],
    sources: &[Named],
    targets: &[Named],
    restores: Option<(Vec<usize>, Vec<By>)>,
) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &compression in compressions {
        for (source, from) in sources.iter().enumerate() {
            for (target, to) in targets.iter().enumerate() {
                let kind = Kind::Log { source, target, compression };
                let name = format!("{compression}, {} to {}", from.name, to.name);
                cells.push(Cell { kind, name });
            }
        }
    }
    let (logs, ways) = restores.unwrap_or_default();
    for by in ways {
        let verb = match by {
            By::Statements => "restore",
            By::Command => "restore --at",
        };
        let mut add = |media, to_point, named: &str| {
            let kind = Kind::Restore { media, to_point, by };
            cells.push(Cell { kind, name: format!("{verb}, {named}") });
        };
        add(Media::Full, false, "full");
        add(Media::Differential, false, "full and differential");
        for count in &logs {
            let named = format!("full and {count} log{}", if *count == 1 { "" } else { "s" });
            add(Media::Logs(*count), false, &named);
            add(Media::Logs(*count), true, &format!("{named}, a point"));
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_named_by_what_it_is() {
        let disk = [Named { name: "disk".into(), dir: "/".into() }];
        let restores = (vec![1, 10], vec![By::Statements, By::Command]);
        let cells = cells(&["COMPRESSION"], &disk, &disk, Some(restores));
        let names: Vec<_> = cells.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(
            names[..7],
            [
                "COMPRESSION, disk to disk",
                "restore, full",
                "restore, full and differential",
                "restore, full and 1 log",
                "restore, full and 1 log, a point",
                "restore, full and 10 logs",
                "restore, full and 10 logs, a point",
            ]
        );
        assert_eq!((names.len(), names[7]), (13, "restore --at, full"));
    }
}
