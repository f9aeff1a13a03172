//! The ways to back a database up that are compared: Pellucid's options, and what people put together from other programs.

use std::path::{Path, PathBuf};

use pellucid_lab_measure::pipeline::{Pipeline, Recipe, Step};
use pellucid_lab_measure::program::Program;

/// Passphrase of the peers' repositories; it protects nothing.
const PASSPHRASE: &str = "of a measurement";
const STRIPES: [usize; 2] = [1, 4];
const COMPRESSIONS: [&str; 3] = ["none", "zstd:1", "lz4"];

/// Which database is backed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Plain,
    Sealed,
}

/// One way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    /// SQLite's own consistent copy: the base of all.
    VacuumInto,
    /// The file as it is through `zstd -1 -T2`, without a consistent copy before it.
    Zstd,
    VacuumZstd,
    VacuumZstdAge,
    VacuumRestic,
    VacuumBorg,
    Pellucid {
        source: Source,
        compression: &'static str,
        algorithm: Option<String>,
        stripes: usize,
    },
}

/// Where things are, for all methods.
#[derive(Debug)]
pub struct Tools {
    /// `pellucid`, with the key file of the sealed database; and the lab itself.
    pub pellucid: Program,
    pub lab: PathBuf,
    /// The instance, with the certificate; also where age's key is.
    pub home: PathBuf,
    pub plain: PathBuf,
    pub sealed: PathBuf,
    /// Empty before each run.
    pub media: PathBuf,
    pub restored: PathBuf,
    /// age's public half.
    pub recipient: String,
}

/// The name of the certificate in the instance.
pub const CERTIFICATE: &str = "Lab";

impl Method {
    /// All of them, the base first.
    pub fn all(algorithms: &[String]) -> Vec<Self> {
        let mut methods = vec![
            Self::VacuumInto,
            Self::Zstd,
            Self::VacuumZstd,
            Self::VacuumZstdAge,
            Self::VacuumRestic,
            Self::VacuumBorg,
        ];
        let choices: Vec<Option<String>> =
            [None].into_iter().chain(algorithms.iter().cloned().map(Some)).collect();
        for stripes in STRIPES {
            for compression in COMPRESSIONS {
                methods.extend(choices.iter().map(|algorithm| Self::Pellucid {
                    source: Source::Plain,
                    compression,
                    algorithm: algorithm.clone(),
                    stripes,
                }));
            }
        }
        if let Some(last) = algorithms.last() {
            methods.extend(["none", "zstd:1"].map(|compression| Self::Pellucid {
                source: Source::Sealed,
                compression,
                algorithm: Some(last.clone()),
                stripes: 1,
            }));
        }
        methods
    }

    /// `VACUUM INTO + zstd`, `pellucid zstd AES_256, 4 stripes`.
    pub fn name(&self) -> String {
        match self {
            Self::VacuumInto => "VACUUM INTO".into(),
            Self::Zstd => "zstd alone".into(),
            Self::VacuumZstd => "VACUUM INTO + zstd".into(),
            Self::VacuumZstdAge => "VACUUM INTO + zstd + age".into(),
            Self::VacuumRestic => "VACUUM INTO + restic".into(),
            Self::VacuumBorg => "VACUUM INTO + borg".into(),
            Self::Pellucid { source, compression, algorithm, stripes } => {
                let mut name = format!("pellucid {}", compression.trim_end_matches(":1"));
                name.extend(algorithm.iter().flat_map(|algorithm| [" ", algorithm]));
                if *source == Source::Sealed {
                    name.push_str(", sealed database");
                }
                if *stripes > 1 {
                    name.push_str(&format!(", {stripes} stripes"));
                }
                name
            }
        }
    }

    /// The programs of others that it needs.
    pub fn needs(&self) -> &'static [&'static str] {
        match self {
            Self::VacuumInto | Self::Pellucid { .. } => &[],
            Self::Zstd | Self::VacuumZstd => &["zstd"],
            Self::VacuumZstdAge => &["zstd", "age", "age-keygen"],
            Self::VacuumRestic => &["restic"],
            Self::VacuumBorg => &["borg"],
        }
    }

    /// What Pellucid's media are sealed with: `Some(None)` if with nothing, `None` of another's media.
    pub fn seals(&self) -> Option<Option<&str>> {
        match self {
            Self::Pellucid { algorithm, .. } => Some(algorithm.as_deref()),
            _ => None,
        }
    }

    /// Whether what it restores is a sealed database.
    pub fn restores_sealed(&self) -> bool {
        matches!(self, Self::Pellucid { source: Source::Sealed, .. })
    }

    /// What is done before the clock starts: an empty repository.
    pub fn prepare(&self, tools: &Tools) -> Recipe {
        let media = &tools.media;
        let pipelines: Vec<Pipeline> = match self {
            Self::VacuumRestic => vec![tools.restic(&["init", "-q"]).into()],
            Self::VacuumBorg => {
                vec![tools.borg(&["init", "-e", "repokey", &text(&media.join("borg"))]).into()]
            }
            _ => vec![],
        };
        Recipe { pipelines, leaves: vec![] }
    }

    /// The programs that make the backup.
    pub fn backup(&self, tools: &Tools) -> Recipe {
        let media = &tools.media;
        let (copy, packed) = (media.join("copy.db"), media.join("copy.db.zst"));
        let vacuum: Pipeline =
            Step::new(&tools.lab, &["vacuum-into", &text(&tools.plain), &text(&copy)]).into();
        let zstd = |from: &Path| Step::new("zstd", &["-q", "-1", "-T2", "-c", &text(from)]);
        let pipelines = match self {
            Self::VacuumInto => vec![vacuum],
            Self::Zstd => vec![into(vec![zstd(&tools.plain)], &packed)],
            Self::VacuumZstd => vec![vacuum, into(vec![zstd(&copy)], &packed)],
            Self::VacuumZstdAge => {
                let age = Step::new("age", &["-r", &tools.recipient]);
                vec![vacuum, into(vec![zstd(&copy), age], &media.join("copy.db.zst.age"))]
            }
            Self::VacuumRestic => {
                vec![vacuum, tools.restic(&["backup", "-q", &text(&copy)]).into()]
            }
            Self::VacuumBorg => {
                let archive = format!("{}::one", media.join("borg").display());
                vec![vacuum, tools.borg(&["create", "-C", "lz4", &archive, &text(&copy)]).into()]
            }
            Self::Pellucid { source, compression, algorithm, stripes } => {
                let mut words = vec!["backup".into(), "-q".into()];
                words.extend(["--compression".into(), (*compression).into()]);
                words
                    .extend(algorithm.iter().flat_map(|name| ["--algorithm".into(), name.clone()]));
                match source {
                    Source::Sealed => {
                        words.extend(["--key-file".into(), text(tools.pellucid.key_file())]);
                        words.push(text(&tools.sealed));
                    }
                    Source::Plain => {
                        words.extend(match algorithm {
                            Some(_) => ["--certificate".into(), CERTIFICATE.into()].to_vec(),
                            None => vec!["--no-encryption".into()],
                        });
                        words.push(text(&tools.plain));
                    }
                }
                // The database before them: `--to` takes all that follow it.
                words.push("--to".into());
                words.extend((0..*stripes).map(|stripe| text(&tools.stripe(stripe))));
                vec![tools.pellucid(words).into()]
            }
        };
        Recipe { pipelines, leaves: self.keeps(tools) }
    }

    /// The programs that restore it.
    pub fn restore(&self, tools: &Tools) -> Recipe {
        let media = &tools.media;
        let restored = text(&tools.restored);
        let unpack = Step::new("zstd", &["-q", "-d", "-f", "-c"]);
        let unpacked = |steps: Vec<Step>, input: &Path| Pipeline {
            input: Some(input.into()),
            ..into(steps, &tools.restored)
        };
        let pipelines = match self {
            Self::VacuumInto => {
                // A shared extent would be no copy.
                let copy = text(&media.join("copy.db"));
                vec![Step::new("cp", &["--reflink=never", &copy, &restored]).into()]
            }
            Self::Zstd | Self::VacuumZstd => {
                vec![unpacked(vec![unpack], &media.join("copy.db.zst"))]
            }
            Self::VacuumZstdAge => {
                let key = text(&tools.home.join("age.key"));
                let age = Step::new("age", &["-d", "-i", &key]);
                vec![unpacked(vec![age, unpack], &media.join("copy.db.zst.age"))]
            }
            Self::VacuumRestic => {
                let copy = text(&media.join("copy.db"));
                vec![into(vec![tools.restic(&["dump", "-q", "latest", &copy])], &tools.restored)]
            }
            Self::VacuumBorg => {
                let archive = format!("{}::one", media.join("borg").display());
                vec![into(vec![tools.borg(&["extract", "--stdout", &archive])], &tools.restored)]
            }
            Self::Pellucid { source, algorithm, stripes, .. } => {
                let mut words = vec!["restore".into(), "-q".into()];
                match (source, algorithm) {
                    (Source::Sealed, _) => {
                        words.extend(["--key-file".into(), text(tools.pellucid.key_file())]);
                    }
                    (Source::Plain, Some(_)) => words.push("--decrypted".into()),
                    (Source::Plain, None) => {}
                }
                words.extend((0..*stripes).map(|stripe| text(&tools.stripe(stripe))));
                words.extend(["--to".into(), restored]);
                vec![tools.pellucid(words).into()]
            }
        };
        Recipe { pipelines, leaves: vec![tools.restored.clone()] }
    }

    /// What it makes that is kept: not the copy that another program reads.
    pub fn keeps(&self, tools: &Tools) -> Vec<PathBuf> {
        let media = &tools.media;
        match self {
            Self::VacuumInto => vec![media.join("copy.db")],
            Self::Zstd | Self::VacuumZstd => vec![media.join("copy.db.zst")],
            Self::VacuumZstdAge => vec![media.join("copy.db.zst.age")],
            Self::VacuumRestic => vec![media.join("restic")],
            Self::VacuumBorg => vec![media.join("borg")],
            Self::Pellucid { stripes, .. } => {
                (0..*stripes).map(|stripe| tools.stripe(stripe)).collect()
            }
        }
    }
}

impl Tools {
    fn stripe(&self, number: usize) -> PathBuf {
        self.media.join(format!("{number}.bak"))
    }

    fn pellucid(&self, words: Vec<String>) -> Step {
        let step = Step { program: self.pellucid.path().into(), words, environment: vec![] };
        step.with("PELLUCID_HOME", text(&self.home))
    }

    fn restic(&self, words: &[&str]) -> Step {
        Step::new("restic", words)
            .with("RESTIC_REPOSITORY", text(&self.media.join("restic")))
            .with("RESTIC_PASSWORD", PASSPHRASE)
            .with("RESTIC_CACHE_DIR", text(&self.home.join("restic-cache")))
    }

    fn borg(&self, words: &[&str]) -> Step {
        Step::new("borg", words)
            .with("BORG_PASSPHRASE", PASSPHRASE)
            .with("BORG_BASE_DIR", text(&self.home.join("borg-base")))
    }
}

fn into(steps: Vec<Step>, output: &Path) -> Pipeline {
    Pipeline { steps, input: None, output: Some(output.into()) }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_has_a_name_of_its_own() {
        let methods = Method::all(&["AES_128".into(), "AES_256".into()]);
        let mut names: Vec<_> = methods.iter().map(Method::name).collect();
        assert_eq!(names.len(), 6 + 2 * 3 * 3 + 2);
        assert!(names.contains(&"pellucid zstd AES_256, 4 stripes".to_string()), "{names:?}");
        assert!(names.contains(&"pellucid none AES_256, sealed database".to_string()), "{names:?}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), methods.len());
    }
}
