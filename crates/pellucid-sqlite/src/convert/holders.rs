//! Who holds locks on a file: `/proc/locks`, by inode.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A process that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its command's name; empty if it is gone or not ours to see.
    pub command: String,
}

/// Other processes with locks on `database` or its WAL index; empty where there is no `/proc`.
pub fn find(database: &Path) -> Vec<Holder> {
    let Ok(locks) = std::fs::read_to_string("/proc/locks") else { return Vec::new() };
    let mut index = database.as_os_str().to_owned();
    index.push("-shm");
    let inodes: Vec<u64> = [database, Path::new(&index)]
        .iter()
        .filter_map(|path| std::fs::metadata(path).ok())
        .map(|metadata| metadata.ino())
        .collect();
    let mut holders: Vec<Holder> = Vec::new();
    for line in locks.lines() {
        let Some((pid, inode)) = parse(line) else { continue };
        let known = holders.iter().any(|holder| holder.pid == pid);
        if !inodes.contains(&inode) || pid == std::process::id() || known {
            continue;
        }
        let command = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        holders.push(Holder { pid, command: command.trim().to_owned() });
    }
    holders
}

/// `1: POSIX  ADVISORY  READ 1234 08:01:5678 0 EOF` (proc(5)).
fn parse(line: &str) -> Option<(u32, u64)> {
    let mut fields =
        line.split_whitespace().skip_while(|field| *field != "READ" && *field != "WRITE");
    let pid = fields.nth(1)?.parse().ok()?;
    let inode = fields.next()?.rsplit(':').next()?.parse().ok()?;
    Some((pid, inode))
}

/// `: held by python3 (1234), app (77)`, or nothing if nobody was found.
pub fn describe(holders: &[Holder]) -> String {
    if holders.is_empty() {
        return String::new();
    }
    let names: Vec<String> = holders
        .iter()
        .map(|holder| {
            let name = if holder.command.is_empty() { "process" } else { &holder.command };
            format!("{name} ({})", holder.pid)
        })
        .collect();
    format!(": held by {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_locks_is_read() {
        let line = "12: POSIX  ADVISORY  READ 4711 fe:00:131 1073741826 1073742335";
        assert_eq!(parse(line), Some((4711, 131)));
        let waiting = "12: -> POSIX  ADVISORY  WRITE 9 fe:00:7 0 EOF";
        assert_eq!(parse(waiting), Some((9, 7)));
        assert_eq!(parse("nothing"), None);
    }
}
