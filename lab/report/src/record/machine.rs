//! The machine of a session: what a figure depends on and a reader cannot see.

use serde::{Deserialize, Serialize};

use super::Latency;

/// A machine, and what was built and used on it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub cpu_flags: Vec<String>,
    pub memory_mib: u64,
    pub kernel: String,
    pub file_system: String,
    pub device: String,
    /// Of 4 KiB overwritten and synced with fdatasync in the lab's directory.
    pub fdatasync: Latency,
    pub load_average: String,
    pub sqlite: String,
    pub sqlite_source: String,
    pub tree: Option<String>,
    pub lab_profile: String,
    /// Variables that may steer the shim.
    pub environment: Vec<String>,
}

impl Machine {
    /// What pieces of one measurement must agree in, besides a tree that is known.
    pub fn identity(&self) -> [String; 5] {
        [
            format!("{} x {}", self.cores, self.cpu),
            format!("Linux {}", self.kernel),
            format!("{} on {}", self.file_system, self.device),
            format!("{} build", self.lab_profile),
            format!("tree {}", self.tree.as_deref().unwrap_or("unknown")),
        ]
    }

    /// Whether it is a virtual machine, as far as its processor says (CPUID.1:ECX bit 31, which hypervisors set).
    pub fn is_virtual(&self) -> bool {
        self.cpu_flags.iter().any(|flag| flag == "hypervisor")
    }

    /// One line for the reader of a table.
    pub fn line(&self) -> String {
        format!(
            "{} x {} ({}), Linux {}, {}, fdatasync {:.0} us, SQLite {}, tree {}",
            self.cores,
            if self.cpu.is_empty() { "unnamed CPU" } else { &self.cpu },
            self.cpu_flags.join(" "),
            self.kernel,
            self.file_system,
            self.fdatasync.p50_us,
            self.sqlite,
            self.tree.as_deref().unwrap_or("unknown"),
        )
    }
}
