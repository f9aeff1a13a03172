//! Cases in which entries of the wal-index (`-shm`) are exchanged while connections have it mapped.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use pellucid_tests::random::Random;

use crate::act;
use crate::rows;
use crate::world::{Name, World};

/// Bytes before the page numbers of the frames, and where the slots of the hash table begin (SQLite's "WAL-mode file format", 2.2).
const HEADER: u64 = 136;
const SLOTS_AT: u64 = 16384;
const SLOTS: u64 = 8192;

struct Index(File);

impl Index {
    fn word(&self, at: u64) -> u32 {
        let mut word = [0; 4];
        self.0.read_exact_at(&mut word, at).unwrap();
        u32::from_ne_bytes(word)
    }

    fn page_of(&self, frame: u32) -> u32 {
        self.word(HEADER + 4 * u64::from(frame - 1))
    }

    fn slot_of(&self, frame: u32) -> u64 {
        let mut found = [0; 2];
        let is_it = |slot: &u64| {
            self.0.read_exact_at(&mut found, SLOTS_AT + 2 * slot).unwrap();
            u16::from_ne_bytes(found) == frame as u16
        };
        SLOTS_AT + 2 * (0..SLOTS).find(is_it).unwrap()
    }

    /// Lets SQLite find the page of each frame by the other frame.
    fn exchange(&self, frames: [u32; 2]) {
        let pages = frames.map(|frame| self.page_of(frame));
        let slots = frames.map(|frame| self.slot_of(frame));
        for (at, other) in [(0, 1), (1, 0)] {
            let page = HEADER + 4 * u64::from(frames[at] - 1);
            self.0.write_all_at(&pages[other].to_ne_bytes(), page).unwrap();
            self.0.write_all_at(&(frames[other] as u16).to_ne_bytes(), slots[at]).unwrap();
        }
    }
}

/// A database with a log, the frames of two of whose pages are exchanged in the index: nothing is read by it, nor brought into
/// the file. Returns what went wrong.
///
/// # Errors
/// What should have happened.
pub fn try_case(world: &World, random: &mut Random) -> Result<(), String> {
    let name = [Name::Log, Name::Key, Name::Copy][random.below(3usize)];
    let path = world.path(name.file());
    let holder = act::connect(&path).map_err(|error| error.to_string())?;
    let index = world.path(&format!("{}-shm", name.file()));
    let index = Index(OpenOptions::new().read(true).write(true).open(index).unwrap());
    let last = index.word(16);
    let mut newest: Vec<u32> = Vec::new();
    for frame in (1..=last).rev() {
        if newest.iter().all(|other| index.page_of(*other) != index.page_of(frame)) {
            newest.push(frame);
        }
    }
    let one = newest.remove(random.below(newest.len()));
    let other = newest[random.below(newest.len())];
    let pages = [one, other].map(|frame| index.page_of(frame));
    index.exchange([one, other]);
    let mut lines = Vec::new();
    let checkpoints = random.chance(50);
    let found = match checkpoints {
        false => act::connect(&path).and_then(|it| rows::read(&it, &mut lines)),
        true => holder.query_row("PRAGMA wal_checkpoint(FULL)", [], |row| row.get(0)).and_then(
            |busy: i64| match busy {
                0 => act::connect(&path).and_then(|it| rows::read(&it, &mut lines)),
                _ => Err(rusqlite::Error::InvalidQuery),
            },
        ),
    };
    drop(holder);
    let what = format!(
        "{}: frames {one} and {other} of pages {pages:?}, checkpoint: {checkpoints}",
        name.file()
    );
    let known = &world.known[&name];
    if let Some(line) = lines.iter().find(|line| !known.contains(*line)) {
        return Err(format!("{what}: a row that it never had: {line}"));
    }
    if found.is_ok() {
        return Err(format!("{what}: it had to be refused, and it works"));
    }
    // Everybody has closed it: the log is read anew, and has every commit.
    let mut lines = Vec::new();
    let again = act::connect(&path).and_then(|it| rows::read(&it, &mut lines));
    let right = &world.states[world.now().states[&name]].lines;
    match again {
        Ok(()) if lines == *right => Ok(()),
        Ok(()) => Err(format!("{what}: it has other rows afterwards")),
        Err(error) => Err(format!("{what}: it does not open afterwards: {error}")),
    }
}
