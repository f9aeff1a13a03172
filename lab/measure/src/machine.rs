//! What a figure depends on and a reader cannot see: the machine, and who else was using it.
//!
//! Everything is read from /proc; what a system does not tell is left empty, never guessed.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::resource::{getrusage, Usage, UsageWho};
use nix::sys::time::TimeValLike;
use pellucid_lab_report::record::{Latency, Machine};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::histogram::Histogram;

/// Features that decide which code the cipher runs.
const CPU_FLAGS: [&str; 12] = [
    "aes",
    "vaes",
    "pclmulqdq",
    "vpclmulqdq",
    "avx2",
    "avx512f",
    "avx512vl",
    "sha_ni",
    "pmull",
    "sha2",
    "sve",
    "hypervisor",
];
/// The unit of /proc/stat (proc(5), USER_HZ): 100 on every Linux that Rust supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// Looks at this machine; `dir` is where the databases will lie.
///
/// # Errors
/// [`Error::Io`] if `dir` cannot be written, [`Error::Sqlite`] if SQLite does not answer.
pub fn describe(dir: &Path) -> Result<Machine> {
    let cpuinfo = read("/proc/cpuinfo");
    let value = |key: &str| {
        cpuinfo
            .lines()
            .find_map(|line| line.split_once(':').filter(|(k, _)| k.trim() == key))
            .map(|(_, value)| value.trim().to_string())
    };
    let flags = value("flags").or_else(|| value("Features")).unwrap_or_default();
    let has = |flag: &&str| flags.split(' ').any(|found| found == *flag);
    let (file_system, device) = mounted(&read("/proc/self/mountinfo"), dir);
    let source = rusqlite::Connection::open_in_memory()
        .and_then(|c| c.query_row("SELECT sqlite_source_id()", [], |row| row.get(0)))
        .map_err(Error::sqlite("SQLite's own version"))?;
    Ok(Machine {
        cpu: value("model name").unwrap_or_default(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        cpu_flags: CPU_FLAGS.into_iter().filter(has).map(str::to_string).collect(),
        memory_mib: meminfo_kib("MemTotal") / 1024,
        kernel: read("/proc/sys/kernel/osrelease").trim().into(),
        file_system,
        device,
        fdatasync: measure_fdatasync(dir)?,
        load_average: read("/proc/loadavg").trim().into(),
        sqlite: rusqlite::version().into(),
        sqlite_source: source,
        tree: tree(),
        lab_profile: if cfg!(debug_assertions) { "debug" } else { "release" }.into(),
        environment: std::env::vars()
            .filter(|(name, _)| name.starts_with("PELLUCID_") && !name.ends_with("_FILE"))
            .map(|(name, value)| match value.contains('/') {
                true => format!("{name}=(a path)"),
                false => format!("{name}={value}"),
            })
            .collect(),
    })
}

/// What a directory lies on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Volume {
    pub file_system: String,
    /// What is mounted.
    pub device: String,
    /// The whole disk, as the kernel calls it.
    pub disk: Option<String>,
    /// Whether it has platters, in the kernel's opinion; a virtual disk may say anything.
    pub rotational: Option<bool>,
    #[serde(skip)]
    number: u64,
}

impl Volume {
    /// Looks at what `dir` lies on.
    ///
    /// # Errors
    /// [`Error::Io`] if `dir` is not there.
    pub fn of(dir: &Path) -> Result<Self> {
        let name = dir.display().to_string();
        let number = fs::metadata(dir).map_err(Error::io(name))?.dev();
        let (file_system, device) = mounted(&read("/proc/self/mountinfo"), dir);
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let mut block = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok();
        // A partition lies in the directory of its disk.
        if block.as_ref().is_some_and(|block| block.join("partition").exists()) {
            block = block.and_then(|block| block.parent().map(Path::to_path_buf));
        }
        let flag = |block: &std::path::PathBuf| {
            fs::read_to_string(block.join("queue/rotational")).ok().map(|text| text.trim() == "1")
        };
        let rotational = block.as_ref().and_then(flag);
        let disk = block.as_ref().and_then(|block| block.file_name());
        let disk = disk.map(|name| name.to_string_lossy().into_owned());
        Ok(Self { file_system, device, disk, rotational, number })
    }

    /// Whether both are parts of one disk, as far as the kernel knows.
    pub fn is_with(&self, other: &Self) -> bool {
        self.number == other.number || self.disk.is_some() && self.disk == other.disk
    }
}

/// Processor time of the whole machine since it started, seconds.
#[derive(Debug, Clone, Copy)]
pub struct Busy {
    all: f64,
    /// Taken by the hypervisor for other guests.
    stolen: f64,
}

impl Busy {
    /// Reads it; zero where the system does not say.
    pub fn now() -> Self {
        Self::parse(&read("/proc/stat"))
    }

    /// Fields: user nice system idle iowait irq softirq steal (proc(5), /proc/stat).
    fn parse(stat: &str) -> Self {
        let first = stat.lines().next().unwrap_or_default();
        let fields: Vec<f64> =
            first.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0.0)).collect();
        let sum = |places: &[usize]| -> f64 {
            places.iter().filter_map(|place| fields.get(*place)).sum::<f64>() / TICKS_PER_SECOND
        };
        Self { all: sum(&[0, 1, 2, 5, 6]), stolen: sum(&[7]) }
    }

    /// Seconds of processor time that were used from `self` to `later`.
    pub fn used_until(self, later: Self) -> f64 {
        later.all - self.all
    }

    /// Seconds of processor time since `self` that were used, and that were stolen.
    pub fn elapsed(self) -> (f64, f64) {
        let now = Self::now();
        (now.all - self.all, now.stolen - self.stolen)
    }
}

/// Who uses the machine while something runs.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    busy: Busy,
    start: Instant,
    used: (f64, f64),
    seconds: f64,
}

impl Load {
    /// Begins to watch the machine.
    pub fn begin() -> Self {
        Self { busy: Busy::now(), start: Instant::now(), used: (0.0, 0.0), seconds: 0.0 }
    }

    /// Ends it: what was used until now is held.
    pub fn end(self) -> Self {
        let seconds = self.start.elapsed().as_secs_f64();
        Self { used: self.busy.elapsed(), seconds, ..self }
    }

    /// Shares of the machine's processor time that went to others than the `cpu_s` seconds of the
    /// run itself, and that its host took. The machine counts in ticks of 10 ms: of a short run the
    /// first may be below 0, and only the mean of many says something.
    pub fn shares(&self, cpu_s: Option<f64>) -> (f64, f64) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let all = self.seconds * cores as f64;
        let (busy, stolen) = self.used;
        ((busy - cpu_s.unwrap_or(busy)) / all, stolen / all)
    }
}

/// Processor seconds of the processes that this one has started and that have ended.
pub fn children_cpu_seconds() -> Option<f64> {
    getrusage(UsageWho::RUSAGE_CHILDREN).ok().map(|usage| used_cpu_seconds(&usage))
}

/// User and system time.
pub fn used_cpu_seconds(usage: &Usage) -> f64 {
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}

/// Bytes that this process had fetched from the device (proc(5), /proc/pid/io).
pub fn own_read_bytes() -> Option<u64> {
    let io = read("/proc/self/io");
    io.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok())
}

/// Processor seconds of this process, all threads; `None` where the kernel keeps no schedstats.
pub fn own_cpu_seconds() -> Option<f64> {
    cpu_seconds(Path::new("/proc/self"))
}

/// The same of another process; `None` too if it is gone.
pub fn cpu_seconds_of(process: u32) -> Option<f64> {
    cpu_seconds(&Path::new("/proc").join(process.to_string()))
}

fn cpu_seconds(process: &Path) -> Option<f64> {
    let mut ns = 0.0;
    for task in fs::read_dir(process.join("task")).ok()?.flatten() {
        let schedstat = fs::read_to_string(task.path().join("schedstat")).ok()?;
        ns += schedstat.split(' ').next()?.parse::<f64>().ok()?;
    }
    Some(ns / 1e9)
}

/// KiB that wait to be written or are being written.
pub fn dirty_kib() -> u64 {
    meminfo_kib("Dirty") + meminfo_kib("Writeback")
}

fn meminfo_kib(key: &str) -> u64 {
    read("/proc/meminfo")
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':')?.trim().split(' ').next())
        .and_then(|kib| kib.parse().ok())
        .unwrap_or(0)
}

fn measure_fdatasync(dir: &Path) -> Result<Latency> {
    // Of fewer than a hundred the 99th percentile is the maximum. A slow disk does fewer.
    const SYNCS: usize = 1000;
    const LEAST_SYNCS: usize = 50;
    const LONGEST: Duration = Duration::from_millis(500);
    let path = dir.join("fdatasync");
    let mut latencies = Histogram::default();
    let mut measure = || -> std::io::Result<()> {
        let mut file = fs::File::create(&path)?;
        file.write_all(&[1; 4096])?;
        file.sync_all()?;
        let began = Instant::now();
        for done in 0..SYNCS {
            if done >= LEAST_SYNCS && began.elapsed() >= LONGEST {
                break;
            }
            file.seek(SeekFrom::Start(0))?;
            let start = Instant::now();
            file.write_all(&[2; 4096])?;
            file.sync_data()?;
            latencies.add(as_ns(start.elapsed()));
        }
        fs::remove_file(&path)
    };
    measure().map_err(Error::io(path.display().to_string()))?;
    Ok(latencies.latency())
}

/// Nanoseconds, which fit 64 bits for 584 years.
pub fn as_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Type and source of the mount that holds `dir`: the longest mount point that is a prefix.
fn mounted(mountinfo: &str, dir: &Path) -> (String, String) {
    let mut best = (0, String::new(), String::new());
    for line in mountinfo.lines() {
        let Some((mount, device)) = line.split_once(" - ") else { continue };
        let point = mount.split(' ').nth(4).unwrap_or_default();
        let mut device = device.split(' ');
        if dir.starts_with(point) && point.len() >= best.0 {
            let mut next = || device.next().unwrap_or_default().to_string();
            best = (point.len(), next(), next());
        }
    }
    (best.1, best.2)
}

/// Of a file, by the program `sha256sum`.
///
/// # Errors
/// [`Error::Io`] if it cannot be run, [`Error::Invalid`] if it fails.
pub fn sha256(path: &Path) -> Result<String> {
    let output =
        Command::new("sha256sum").arg("--").arg(path).output().map_err(Error::io("sha256sum"))?;
    let hash: String = String::from_utf8_lossy(&output.stdout)
        .trim_start_matches('\\')
        .chars()
        .take_while(char::is_ascii_hexdigit)
        .collect();
    if output.status.success() && hash.len() == 64 {
        Ok(hash)
    } else {
        Err(Error::invalid(format!("sha256sum `{}`: {}", path.display(), output.status)))
    }
}

/// Commit of the tree that the lab runs in, marked if it differs from it; records do not count. None in a tree of others.
fn tree() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    git(&["ls-files", "--error-unmatch", ":/lab/goals.json"])?;
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--", ":/", ":(top,exclude)lab/records"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}-changed") })
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_is_the_one_that_counts() {
        let mountinfo = "22 1 254:0 / / rw - ext4 /dev/vda rw\n\
             40 22 0:30 / /data rw,noatime shared:1 - xfs /dev/vdb rw\n\
             41 22 0:31 / /dat rw - tmpfs tmpfs rw\n";
        let at = |dir: &str| mounted(mountinfo, Path::new(dir));
        assert_eq!(at("/data/x"), ("xfs".into(), "/dev/vdb".into()));
        assert_eq!(at("/database"), ("ext4".into(), "/dev/vda".into()));
    }

    #[test]
    fn a_directory_is_on_one_disk_with_what_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let (outer, inner) = (Volume::of(dir.path()).unwrap(), Volume::of(&inner).unwrap());
        assert!(outer.is_with(&inner) && !outer.file_system.is_empty(), "{outer:?}");
        assert!(!outer.is_with(&Volume::of(Path::new("/proc")).unwrap()));
    }

    #[test]
    fn busy_time_leaves_idle_and_waiting_out() {
        let busy = Busy::parse("cpu  100 200 300 9999 8888 10 20 700 5 5\ncpu0 1 1 1\n");
        assert_eq!((busy.all, busy.stolen), (6.3, 7.0));
        assert_eq!(Busy::parse("").all, 0.0);
    }

    #[test]
    fn own_time_grows_with_work() {
        let Some(before) = own_cpu_seconds() else { return };
        // However long it takes on a machine whose processors are taken away.
        let start = Instant::now();
        while own_cpu_seconds().unwrap() <= before {
            assert!(start.elapsed() < Duration::from_secs(60), "a minute of work is not counted");
        }
    }

    #[test]
    fn the_time_of_a_child_counts_when_it_has_ended() {
        let before = children_cpu_seconds().unwrap();
        let work = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";
        let start = Instant::now();
        while children_cpu_seconds().unwrap() <= before {
            assert!(start.elapsed() < Duration::from_secs(60), "a minute of work is not counted");
            assert!(Command::new("sh").args(["-c", work]).status().unwrap().success());
        }
    }

    #[test]
    fn this_machine_has_a_description() {
        let dir = tempfile::tempdir().unwrap();
        let machine = describe(dir.path()).unwrap();
        assert!(machine.cores > 0);
        assert!((50..=1000).contains(&machine.fdatasync.operations), "{:?}", machine.fdatasync);
        assert!(machine.line().contains(rusqlite::version()), "{}", machine.line());
    }
}
