//! The phases of `lab scan-load` and `lab backup-load`, in their order.

/// One phase, the same on every side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Only the load; with a name.
    Quiet(&'static str),
    /// Switching on, up to the point where it is suspended.
    Encrypt,
    Resume,
    Rekey,
    Algorithm(String),
    Off,
    /// A full backup with this compression.
    Backup(&'static str),
}

impl Step {
    /// The phases of `lab scan-load`.
    pub fn scans(algorithms: &[String]) -> Vec<Self> {
        let mut steps = vec![
            Step::Quiet("before"),
            Step::Encrypt,
            Step::Quiet("suspended"),
            Step::Resume,
            Step::Rekey,
        ];
        steps.extend(algorithms.iter().cloned().map(Step::Algorithm));
        steps.extend([Step::Off, Step::Quiet("after")]);
        steps
    }

    /// The phases of `lab backup-load`.
    pub fn backups() -> Vec<Self> {
        vec![
            Step::Quiet("before"),
            Step::Backup("zstd:1"),
            Step::Quiet("between"),
            Step::Backup("none"),
            Step::Quiet("after"),
        ]
    }

    /// As records name the phase.
    pub fn name(&self) -> String {
        match self {
            Step::Quiet(name) => (*name).into(),
            Step::Encrypt => "encrypt".into(),
            Step::Resume => "resume".into(),
            Step::Rekey => "rekey".into(),
            Step::Algorithm(name) => format!("to {name}"),
            Step::Off => "off".into(),
            Step::Backup(compression) => format!("backup {}", compression.trim_end_matches(":1")),
        }
    }

    /// As the program is told.
    pub fn words(&self) -> Vec<&str> {
        match self {
            // A backup has a certificate or a key file, and its media, besides.
            Step::Quiet(_) | Step::Backup(_) => vec![],
            Step::Encrypt => vec!["encrypt", "--timeout", "60"],
            Step::Resume => vec!["scan", "resume"],
            Step::Rekey => vec!["rekey"],
            Step::Algorithm(name) => vec!["rekey", "--algorithm", name],
            Step::Off => vec!["decrypt", "--keep-container", "--timeout", "60"],
        }
    }
}
