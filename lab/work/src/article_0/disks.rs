//! Where databases lie and where backups go: directories with names, and whether they are on one disk.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::interrupt;
use pellucid_lab_measure::machine::Volume;
use serde_json::{json, Value};
use tempfile::TempDir;

/// `NAME=DIR`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    pub dir: PathBuf,
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.split_once('=') {
            Some((name, dir)) if !name.is_empty() && !dir.is_empty() => {
                Ok(Self { name: name.into(), dir: dir.into() })
            }
            _ => Err("a disk is given as NAME=DIR".into()),
        }
    }
}

/// Sources and targets as they were given, else the lab's own disk, `own`; those that [`apart`] leaves.
///
/// # Errors
/// As [`apart`].
pub fn chosen(sources: &[Named], targets: &[Named], own: PathBuf) -> Result<[Vec<Named>; 2]> {
    let default = Named { name: "disk".into(), dir: own };
    apart([sources, targets].map(|named| match named.is_empty() {
        true => vec![default.clone()],
        false => named.to_vec(),
    }))
}

/// Of sources and of targets those that are on disks of their own: there is nothing to compare between directories of
/// one disk.
///
/// # Errors
/// [`Error::Invalid`] for more than two of either, which the article's scripts have no names for.
pub fn apart(named: [Vec<Named>; 2]) -> Result<[Vec<Named>; 2]> {
    let [sources, targets] = named.map(|named| {
        if named.len() > 2 {
            return Err(Error::invalid("--source, --target: at most two of each"));
        }
        if let [first, second] = &named[..] {
            if first.name == second.name {
                let name = &first.name;
                return Err(Error::invalid(format!("--source, --target: `{name}` is named twice")));
            }
        }
        let mut kept: Vec<(Named, Volume)> = Vec::new();
        for one in named {
            let volume = Volume::of(&one.dir)?;
            match kept.iter().find(|(_, other)| volume.is_with(other)) {
                Some((other, _)) => eprintln!(
                    "lab: {} is on the same device as {} and is left out",
                    one.name, other.name
                ),
                None => kept.push((one, volume)),
            }
        }
        Ok(kept.into_iter().map(|(named, _)| named).collect())
    });
    Ok([sources?, targets?])
}

/// Directories of a session; what was made in them goes when they are dropped.
#[derive(Debug)]
pub struct Disks {
    sources: Vec<Disk>,
    targets: Vec<Disk>,
}

#[derive(Debug)]
struct Disk {
    named: Named,
    volume: Volume,
    dir: TempDir,
}

impl Disks {
    /// Makes them; those of the lab's own disk lie in `place`.
    ///
    /// # Errors
    /// [`Error::Io`]
    pub fn open(sources: Vec<Named>, targets: Vec<Named>, place: &Path) -> Result<Self> {
        let open = |(named, prefix): (Named, &str)| {
            let name = named.dir.display().to_string();
            let dir = named.dir.canonicalize().map_err(Error::io(name))?;
            let is_own = place.parent() == Some(&*dir);
            let dir = interrupt::directory(prefix, if is_own { place } else { &dir })?;
            Ok(Disk { volume: Volume::of(dir.path())?, named, dir })
        };
        let all = |named: Vec<Named>, prefix| {
            named.into_iter().map(|named| open((named, prefix))).collect::<Result<Vec<_>>>()
        };
        Ok(Self {
            sources: all(sources, "pellucid-lab-source-")?,
            targets: all(targets, "pellucid-lab-target-")?,
        })
    }

    /// Whether there is a source of this number.
    pub fn has_source(&self, at: usize) -> bool {
        at < self.sources.len()
    }

    /// The only one, if there is one.
    pub fn source(&self, at: usize) -> &Path {
        self.sources[at.min(self.sources.len() - 1)].dir.path()
    }

    /// As [`Disks::source`].
    pub fn target(&self, at: usize) -> &Path {
        self.targets[at.min(self.targets.len() - 1)].dir.path()
    }

    /// How many times the database's length each directory needs at once, with `first` more on the first disks: those
    /// that lie on one disk are added up.
    pub fn needs(&self, first: u64) -> Vec<(PathBuf, u64)> {
        // A database and a restored one; a backup. The template of all lies on the first source for a while.
        let sources = self.sources.iter().enumerate();
        let sources = sources.map(|(at, disk)| (disk, 2 + if at == 0 { first } else { 0 }));
        let mut needs: Vec<(&Disk, u64)> = Vec::new();
        for (disk, files) in sources.chain(self.targets.iter().map(|disk| (disk, 1))) {
            match needs.iter_mut().find(|(other, _)| other.volume.is_with(&disk.volume)) {
                Some((_, sum)) => *sum += files,
                None => needs.push((disk, files)),
            }
        }
        needs.into_iter().map(|(disk, files)| (disk.dir.path().to_path_buf(), files)).collect()
    }

    /// The sources, for the record.
    pub fn sources(&self) -> Vec<Value> {
        self.sources.iter().map(Disk::describe).collect()
    }

    /// The targets, for the record.
    pub fn targets(&self) -> Vec<Value> {
        self.targets.iter().map(Disk::describe).collect()
    }

    /// Whether all of them are one disk.
    pub fn are_one(&self) -> bool {
        let mut all = self.sources.iter().chain(&self.targets);
        let first = all.next();
        first.is_some_and(|first| all.all(|disk| disk.volume.is_with(&first.volume)))
    }
}

impl Disk {
    fn describe(&self) -> Value {
        let Volume { file_system, device, disk, rotational, .. } = &self.volume;
        json!({
            "name": self.named.name, "device": device, "disk": disk, "file_system": file_system, "rotational": rotational,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_one_disk_are_not_compared() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let named = |name: &str, dir: &Path| Named { name: name.into(), dir: dir.into() };
        let both = vec![named("HDD", dir.path()), named("SSD", &inner)];
        let [sources, targets] = apart([both.clone(), both[1..].to_vec()]).unwrap();
        assert_eq!((&sources[..], &targets[..]), (&both[..1], &both[1..]));
        let disks = Disks::open(sources, targets, dir.path()).unwrap();
        assert!(disks.are_one() && disks.has_source(0) && !disks.has_source(1));
        assert_eq!(disks.source(0), disks.source(1));
        assert_eq!(disks.needs(3), [(disks.source(0).to_path_buf(), 6)]);
        assert_eq!(disks.sources()[0]["name"], "HDD");
        let made = disks.target(1).to_path_buf();
        assert!(made.starts_with(&inner) && made.exists());
        drop(disks);
        assert!(!made.exists());
        let third = vec![both[0].clone(), both[1].clone(), named("more", dir.path())];
        assert!(apart([third, both]).is_err());
    }

    #[test]
    fn a_disk_has_a_name_and_a_directory() {
        assert_eq!(
            "HDD=/mnt/a=b".parse(),
            Ok(Named { name: "HDD".into(), dir: "/mnt/a=b".into() })
        );
        for wrong in ["HDD", "=/mnt", "HDD="] {
            assert!(wrong.parse::<Named>().is_err(), "{wrong}");
        }
    }
}
