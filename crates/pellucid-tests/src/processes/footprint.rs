//! What a process holds, as /proc tells it.

use std::fmt;

/// Of one process, or the most of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Footprint {
    pub descriptors: u64,
    pub mappings: u64,
    /// Its own memory, without pages of files.
    pub memory_kib: u64,
    /// Mappings of the indexes of WALs. What the kernel counts as shared has a database in /dev/shm in it.
    pub shared_kib: u64,
}

impl Footprint {
    /// None if the process is gone.
    pub fn of(process: u32) -> Option<Self> {
        let directory = format!("/proc/{process}");
        let status = std::fs::read_to_string(format!("{directory}/status")).ok()?;
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().strip_suffix(" kB")?.parse().ok()
        };
        let maps = std::fs::read_to_string(format!("{directory}/maps")).ok()?;
        let bytes = |line: &str| {
            let (start, end) = line.split_once(' ')?.0.split_once('-')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            Some(number(end)? - number(start)?)
        };
        let (indexes, others): (Vec<&str>, Vec<&str>) =
            maps.lines().partition(|line| line.ends_with("-shm"));
        Some(Self {
            descriptors: std::fs::read_dir(format!("{directory}/fd")).ok()?.count() as u64,
            mappings: others.len() as u64,
            memory_kib: kib("RssAnon:")?,
            shared_kib: indexes.into_iter().filter_map(bytes).sum::<u64>() / 1024,
        })
    }

    /// The larger of each figure.
    pub fn most(self, other: Self) -> Self {
        Self {
            descriptors: self.descriptors.max(other.descriptors),
            mappings: self.mappings.max(other.mappings),
            memory_kib: self.memory_kib.max(other.memory_kib),
            shared_kib: self.shared_kib.max(other.shared_kib),
        }
    }

    /// What is more than `limit` over `before`; none if nothing is.
    pub fn growth(&self, before: &Self, limit: &Self) -> Option<String> {
        let pairs = [
            ("descriptors", before.descriptors, self.descriptors, limit.descriptors),
            ("mappings", before.mappings, self.mappings, limit.mappings),
            ("KiB of memory", before.memory_kib, self.memory_kib, limit.memory_kib),
            ("KiB of shared memory", before.shared_kib, self.shared_kib, limit.shared_kib),
        ];
        let grown: Vec<String> = pairs
            .into_iter()
            .filter(|(_, before, now, limit)| *now > before + limit)
            .map(|(what, before, now, _)| format!("{before} {what} became {now}"))
            .collect();
        (!grown.is_empty()).then(|| grown.join(", "))
    }

    /// The columns of a record: each figure over time, as `12/12/12`.
    pub fn columns(all: &[Self]) -> String {
        let series = |figure: fn(&Self) -> u64| {
            all.iter().map(|one| figure(one).to_string()).collect::<Vec<_>>().join("/")
        };
        [
            series(|one| one.descriptors),
            series(|one| one.mappings),
            series(|one| one.memory_kib),
            series(|one| one.shared_kib),
        ]
        .join(" ")
    }
}

impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { descriptors, mappings, memory_kib, shared_kib } = self;
        write!(f, "{descriptors} descriptors, {mappings} mappings, {memory_kib} KiB, shared {shared_kib} KiB")
    }
}
