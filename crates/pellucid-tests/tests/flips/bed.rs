//! Files whose bits are flipped, what lies where in them, and what came of it.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use pellucid_host::code::last_report;

use super::random::Random;

/// What was found, or the error; and whether the shim logged a line about it.
pub struct Found {
    pub data: Result<String, String>,
    pub logged: bool,
}

impl Found {
    pub fn new<E: ToString>(data: Result<String, E>) -> Self {
        Self { data: data.map_err(|error| error.to_string()), logged: last_report().is_some() }
    }

    /// Where there is no SQLite, the error itself is what tells.
    pub fn told(data: pellucid::Result<String>) -> Self {
        Self { data: data.map_err(|error| error.to_string()), logged: true }
    }
}

/// One bit: file, byte and bit. Some objects are there twice; then both are hit.
pub type Flips = Vec<(usize, usize, u8)>;

/// Where an object of docs/format.md lies: files and bytes in them.
pub struct Class {
    pub name: &'static str,
    pub spots: Vec<(usize, Range<usize>)>,
    /// How far behind the first copy the second one is, where both are to be hit.
    pub again: Option<usize>,
    /// Only who writes looks at it.
    pub written: bool,
}

pub fn class(
    name: &'static str,
    file: usize,
    ranges: impl IntoIterator<Item = Range<usize>>,
) -> Class {
    let spots = ranges.into_iter().map(|range| (file, range)).collect();
    Class { name, spots, again: None, written: false }
}

impl Class {
    fn draw(&self, random: &mut Random) -> Flips {
        let bytes: usize = self.spots.iter().map(|(_, range)| range.len()).sum();
        let (mut at, bit) = (random.below(bytes as u64) as usize, random.below(8u64) as u8);
        for (file, range) in &self.spots {
            if at < range.len() {
                let first = (*file, range.start + at, bit);
                let second = self.again.map(|far| (*file, first.1 + far, bit));
                return [Some(first), second].into_iter().flatten().collect();
            }
            at -= range.len();
        }
        unreachable!("a class without bytes");
    }
}

/// Does what users do; with `true` it writes too.
pub type Look = Box<dyn Fn(bool) -> Found>;
/// Whether this is the third outcome: an earlier commit, or what plain SQLite makes of it.
pub type Third = Box<dyn Fn(&Flips, &Found) -> bool>;

pub struct Bed {
    pub name: String,
    /// Written anew before each trial.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Removed before each trial.
    pub strays: Vec<PathBuf>,
    pub classes: Vec<Class>,
    pub right: String,
    pub look: Look,
    pub third: Third,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Count {
    pub flips: u64,
    pub right: u64,
    pub third: u64,
    pub error: u64,
    pub undetected: u64,
}

#[derive(Default)]
pub struct Tally {
    pub classes: BTreeMap<&'static str, Count>,
    pub findings: Vec<String>,
}

impl Bed {
    pub fn put(&self, flips: &Flips) {
        for path in &self.strays {
            let _ = fs::remove_file(path);
        }
        for (file, (path, bytes)) in self.files.iter().enumerate() {
            let mut bytes = bytes.clone();
            for (_, at, bit) in flips.iter().filter(|(of, ..)| *of == file) {
                bytes[*at] ^= 1 << bit;
            }
            fs::write(path, bytes).unwrap();
        }
        // The files of another moment, or half a conversion that nobody began: the keyring would expect the last ones.
        if let Some(home) = std::env::var_os("PELLUCID_HOME") {
            let _ = fs::remove_dir_all(Path::new(&home).join("keyring/paths"));
        }
    }

    /// Flips `flips` bits of each class, one at a time.
    pub fn run(&self, flips: u64, random: &mut Random, tally: &mut Tally) {
        self.put(&Vec::new());
        let found = (self.look)(false);
        assert_eq!(found.data.as_ref(), Ok(&self.right), "{}: untouched", self.name);
        let mut undetected = 0;
        for class in &self.classes {
            let mut count = Count::default();
            for _ in 0..flips {
                let at = class.draw(random);
                self.put(&at);
                last_report();
                let found = (self.look)(class.written || random.below(8u64) == 0);
                count.flips += 1;
                let place = format!("{}, {}, {at:?}", self.name, class.name);
                match &found.data {
                    Ok(data) if *data == self.right => count.right += 1,
                    _ if (self.third)(&at, &found) => count.third += 1,
                    Err(_) if found.logged => count.error += 1,
                    Err(error) => {
                        count.undetected += 1;
                        tally.findings.push(format!("{place}: {error}, and nothing logged"));
                    }
                    Ok(_) => {
                        count.undetected += 1;
                        tally.findings.push(format!("{place}: WRONG DATA"));
                    }
                }
            }
            undetected += count.undetected;
            tally.classes.entry(class.name).or_default().add(&count);
        }
        if undetected > 0 {
            // What was taken for right may have been written on.
            return;
        }
        self.put(&Vec::new());
        assert_eq!((self.look)(false).data.as_ref(), Ok(&self.right), "{}: in the end", self.name);
    }
}

impl Count {
    pub fn add(&mut self, other: &Self) {
        self.flips += other.flips;
        self.right += other.right;
        self.third += other.third;
        self.error += other.error;
        self.undetected += other.undetected;
    }
}
