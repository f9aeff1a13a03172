//! A disk that loses power: of each file everything synced is there, and of what came later any part.
//!
//! The unit is a sector of 512 bytes, written whole (docs/format.md, "Laying"). Since the last sync each
//! sector holds any of the contents it had meanwhile, independently of the others: that is dropping,
//! tearing and reordering of writes at once. Bytes a file grew by may be garbage.
//!
//! Names in a directory beneath keep their order too, and only theirs: it is synced by itself, and might lie on another disk.
//!
//! Names that come and go and cuts of files are metadata: they persist in their order, as on a file system
//! that logs them, with a sync of the directory or of the file, or earlier. SQLite needs that: it cuts the
//! database after it deleted the journal, with no sync between. A write that could only land where an
//! earlier cut gave up its sectors does not persist before the cut does.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::class::{Class, Role};
use crate::trace::{folder_of, Event, FileId, Trace};
use crate::Random;

pub const SECTOR: u64 = 512;

enum Pending<'a> {
    Write { offset: u64, bytes: &'a [u8] },
    Truncate { size: u64, serial: u64 },
}

#[derive(Default)]
struct File<'a> {
    durable: Vec<u8>,
    pending: Vec<Pending<'a>>,
}

/// Which syncs reach the disk; a broken one ignores some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syncs {
    All,
    NoneOf(Role),
    /// None of the database itself behind a write that begins here.
    NoneAfter(u64),
    NoneOfDirectory,
    /// Of none of the directories in it.
    NoneOfFolders,
    /// None of the log just before frames of it are kept.
    NoneBeforeKeeping,
}

/// What changes in a directory.
#[derive(Clone, Copy)]
enum Naming<'a> {
    Put(&'a str, FileId),
    Remove(&'a str),
    Rename(&'a str, &'a str),
    MakeFolder(&'a str),
    RemoveFolder(&'a str),
}

impl<'a> Naming<'a> {
    /// The directory.
    fn folder(self) -> &'a str {
        let (Self::Put(name, _)
        | Self::Remove(name)
        | Self::Rename(name, _)
        | Self::MakeFolder(name)
        | Self::RemoveFolder(name)) = self;
        folder_of(name)
    }
}

#[derive(Clone, Default)]
struct Names {
    files: BTreeMap<String, FileId>,
    folders: BTreeSet<String>,
}

impl Names {
    fn change(&mut self, naming: Naming) {
        match naming {
            Naming::Put(name, file) => drop(self.files.insert(name.to_owned(), file)),
            Naming::Remove(name) => drop(self.files.remove(name)),
            Naming::Rename(from, to) => {
                if let Some(file) = self.files.remove(from) {
                    self.files.insert(to.to_owned(), file);
                }
            }
            Naming::MakeFolder(name) => drop(self.folders.insert(name.to_owned())),
            Naming::RemoveFolder(name) => drop(self.folders.remove(name)),
        }
    }
}

/// The disk at one moment.
pub struct Disk<'a> {
    files: Vec<File<'a>>,
    roles: Vec<Role>,
    /// The directory of each file.
    homes: Vec<&'a str>,
    names: Names,
    /// What, and when.
    pending_names: Vec<(Naming<'a>, u64)>,
    /// Counts metadata.
    serial: u64,
    syncs: Syncs,
    /// The event that happens, and the syncs of the log just before frames of it are kept.
    at: usize,
    keeps: BTreeSet<usize>,
    /// Where the last write of a database itself began.
    written: u64,
    /// What the class of a byte range depends on.
    pub page_bytes: usize,
    pub sealed: bool,
    /// Whether a write leaves the rest of its first and last sector alone (SQLITE_IOCAP_POWERSAFE_OVERWRITE).
    pub powersafe: bool,
}

/// What a power cut leaves.
pub struct Image {
    pub files: BTreeMap<String, Vec<u8>>,
    pub folders: BTreeSet<String>,
    /// What did not come through whole.
    pub hit: BTreeSet<Class>,
}

/// How much of what is not synced comes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// All of it, in order: the process is killed, the machine goes on.
    Nothing,
    /// None of it.
    Everything,
    /// Each file whole or not at all.
    Files,
    /// Each write whole or not at all.
    Writes,
    /// Each sector by itself.
    Sectors,
    /// One write is torn, those before are there, those after are not.
    Torn,
    /// One write is lost, all others are there.
    One,
    /// The last writes are there, those before are not.
    Early,
}

impl Loss {
    pub fn draw(random: &mut Random) -> Self {
        match random.below(16u64) {
            0 => Self::Nothing,
            1 => Self::Everything,
            2..=3 => Self::Files,
            4..=6 => Self::Writes,
            7..=10 => Self::Sectors,
            11..=12 => Self::Torn,
            13..=14 => Self::One,
            _ => Self::Early,
        }
    }
}

impl<'a> Disk<'a> {
    pub fn new(trace: &'a Trace, syncs: Syncs) -> Self {
        let mut files: Vec<File> = trace.files.iter().map(|_| File::default()).collect();
        let mut names = Names { folders: trace.folders.clone(), ..Names::default() };
        for (file, (name, content)) in trace.base.iter().enumerate() {
            files[file].durable.clone_from(content);
            names.files.insert(name.clone(), file);
        }
        let homes = trace.files.iter().map(|name| folder_of(name)).collect();
        let roles = trace.files.iter().map(|name| Role::of(name)).collect();
        Self {
            files,
            roles,
            homes,
            names,
            pending_names: Vec::new(),
            serial: 0,
            syncs,
            at: 0,
            keeps: keeps(trace),
            written: 0,
            page_bytes: 4096,
            sealed: false,
            powersafe: true,
        }
    }

    /// Lets one event happen.
    pub fn apply(&mut self, event: &'a Event) {
        self.happen(event);
        self.at += 1;
    }

    fn happen(&mut self, event: &'a Event) {
        match event {
            Event::Create { name, file } => self.name(Naming::Put(name, *file)),
            Event::Unlink { name } => self.name(Naming::Remove(name)),
            Event::Rename { from, to } => self.name(Naming::Rename(from, to)),
            Event::MakeFolder { name } => self.name(Naming::MakeFolder(name)),
            Event::RemoveFolder { name } => self.name(Naming::RemoveFolder(name)),
            Event::Write { file, offset, bytes } => {
                if self.roles[*file] == Role::Main {
                    self.written = *offset;
                }
                self.files[*file].pending.push(Pending::Write { offset: *offset, bytes });
            }
            Event::Truncate { file, size } => {
                self.serial += 1;
                let cut = Pending::Truncate { size: *size, serial: self.serial };
                self.files[*file].pending.push(cut);
            }
            Event::Sync { file } if !self.ignores(self.roles[*file]) => {
                self.files[*file].settle();
                // SQLite never syncs the directory for a database itself: it counts on this.
                if self.roles[*file] == Role::Main {
                    let named = |pending: &(Naming, u64)| matches!(pending.0, Naming::Put(_, named) if named == *file);
                    if let Some(at) = self.pending_names.iter().position(named) {
                        self.names.change(self.pending_names.remove(at).0);
                    }
                }
            }
            Event::SyncDirectory { folder } if !self.ignores_folder(folder) => {
                for (naming, serial) in std::mem::take(&mut self.pending_names) {
                    match naming.folder() == folder {
                        true => self.names.change(naming),
                        false => self.pending_names.push((naming, serial)),
                    }
                }
            }
            _ => {}
        }
    }

    fn name(&mut self, naming: Naming<'a>) {
        self.serial += 1;
        self.pending_names.push((naming, self.serial));
    }

    fn ignores_folder(&self, folder: &str) -> bool {
        match self.syncs {
            Syncs::NoneOfDirectory => folder.is_empty(),
            Syncs::NoneOfFolders => !folder.is_empty(),
            _ => false,
        }
    }

    fn ignores(&self, role: Role) -> bool {
        match self.syncs {
            Syncs::NoneOf(ignored) => ignored == role,
            Syncs::NoneAfter(offset) => role == Role::Main && self.written == offset,
            Syncs::NoneBeforeKeeping => self.keeps.contains(&self.at),
            Syncs::All | Syncs::NoneOfDirectory | Syncs::NoneOfFolders => false,
        }
    }

    /// Whether a power cut now loses anything.
    pub fn is_settled(&self) -> bool {
        self.pending_names.is_empty() && self.files.iter().all(|file| file.pending.is_empty())
    }

    /// What a power cut leaves now.
    pub fn image(&self, loss: Loss, random: &mut Random) -> Image {
        let mut hit = BTreeSet::new();
        let mut metadata = BTreeMap::new();
        let beneath = self.pending_names.iter().map(|(naming, _)| naming.folder());
        for folder in std::iter::once("").chain(beneath).chain(self.homes.iter().copied()) {
            metadata.entry(folder).or_insert_with(|| self.metadata_left(folder, loss, random));
        }
        let names = self.names_left(&metadata, &mut hit);
        let mut files = BTreeMap::new();
        for (name, file) in names.files {
            let role = self.roles[file];
            let home = folder_of(&name);
            let is_lost_with_it = !home.is_empty() && !names.folders.contains(home);
            if role == Role::Temporary || is_lost_with_it {
                continue;
            }
            let metadata = metadata[self.homes[file]];
            let lost = self.files[file].left(loss, metadata, self.powersafe, random);
            for (offset, length) in lost.ranges {
                hit.insert(role.class(self.sealed, offset, length, self.page_bytes));
            }
            if lost.size {
                hit.insert(Class::FileSize);
            }
            files.insert(name, lost.content);
        }
        Image { files, folders: names.folders, hit }
    }

    /// Metadata of this directory up to this number has persisted.
    fn metadata_left(&self, folder: &str, loss: Loss, random: &mut Random) -> u64 {
        let its = self.files.iter().zip(&self.homes).filter(|(_, home)| **home == folder);
        let cuts = its.flat_map(|(file, _)| &file.pending).filter_map(|op| match op {
            Pending::Truncate { serial, .. } => Some(*serial),
            Pending::Write { .. } => None,
        });
        let names = self.pending_names.iter().filter(|(naming, _)| naming.folder() == folder);
        let first = cuts.chain(names.map(|(_, serial)| *serial)).min();
        let first = first.unwrap_or(self.serial + 1);
        match loss {
            Loss::Nothing => self.serial,
            Loss::Everything => 0,
            _ => first - 1 + random.below(self.serial + 2 - first),
        }
    }

    fn names_left(&self, metadata: &BTreeMap<&str, u64>, hit: &mut BTreeSet<Class>) -> Names {
        let mut names = self.names.clone();
        for (naming, serial) in &self.pending_names {
            if *serial <= metadata[naming.folder()] {
                names.change(*naming);
            } else {
                hit.insert(Class::DirectoryEntry);
            }
        }
        names
    }
}

/// The syncs of a log behind which the next thing is that frames are kept.
fn keeps(trace: &Trace) -> BTreeSet<usize> {
    let role = |file: &FileId| Role::of(&trace.files[*file]);
    let (mut syncs, mut found) = (Vec::new(), BTreeSet::new());
    for (at, event) in trace.events.iter().enumerate() {
        match event {
            Event::Sync { file } if role(file) == Role::Wal => syncs.push(at),
            Event::Create { file, .. } if role(file) == Role::KeptFrames => {
                found.extend(syncs.drain(..));
            }
            Event::SyncDirectory { .. } | Event::Acknowledged(_) => {}
            _ => syncs.clear(),
        }
    }
    found
}

/// What is left of one file, and what is not.
struct Left {
    content: Vec<u8>,
    ranges: Vec<(u64, usize)>,
    size: bool,
}

impl File<'_> {
    fn settle(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            match pending {
                Pending::Write { offset, bytes } => put(&mut self.durable, offset, bytes),
                Pending::Truncate { size, .. } => self.durable.resize(size as usize, 0),
            }
        }
    }

    fn left(&self, loss: Loss, metadata: u64, powersafe: bool, random: &mut Random) -> Left {
        let count = self.pending.len() as u64;
        let whole_file = random.below(2u64) == 0;
        let at = if count > 0 { random.below(count) } else { 0 };
        let share = 1 + random.below(9u64);
        let mut op_comes = Vec::with_capacity(self.pending.len());
        for op in 0..count {
            op_comes.push(match loss {
                Loss::Nothing => true,
                Loss::Everything => false,
                Loss::Files => whole_file,
                Loss::Torn => op < at,
                Loss::One => op != at,
                Loss::Early => op >= at,
                Loss::Writes | Loss::Sectors => random.below(10u64) < share,
            });
        }
        let torn = (loss == Loss::Torn && count > 0).then_some(at as usize);
        let by_sector = (loss == Loss::Sectors).then_some(share);
        let flushed = self.flushes(&op_comes, torn, by_sector, random);
        let mut left = self.compose(metadata, &flushed);
        if !matches!(loss, Loss::Nothing | Loss::Everything) {
            self.spoil(&mut left, metadata, &flushed, powersafe, random);
        }
        left
    }

    /// For each sector the last operation whose content it holds; none if not in the map.
    fn flushes(
        &self,
        op_comes: &[bool],
        torn: Option<usize>,
        by_sector: Option<u64>,
        random: &mut Random,
    ) -> HashMap<u64, usize> {
        let mut flushed = HashMap::new();
        for (op, pending) in self.pending.iter().enumerate() {
            let Pending::Write { offset, bytes } = pending else { continue };
            for sector in sectors(*offset, bytes.len()) {
                let comes = match (torn, by_sector) {
                    (Some(at), _) if at == op => random.below(2u64) == 0,
                    (_, Some(share)) => random.below(10u64) < share,
                    _ => op_comes[op],
                };
                if comes {
                    flushed.insert(sector, op);
                }
            }
        }
        flushed
    }

    fn compose(&self, metadata: u64, flushed: &HashMap<u64, usize>) -> Left {
        let mut left = Left { content: self.durable.clone(), ranges: Vec::new(), size: false };
        let mut blocked = u64::MAX;
        for (op, pending) in self.pending.iter().enumerate() {
            match pending {
                Pending::Truncate { size, serial } if *serial <= metadata => {
                    left.content.resize(*size as usize, 0);
                }
                Pending::Truncate { size, .. } => {
                    left.size = true;
                    blocked = blocked.min(*size);
                }
                Pending::Write { offset, bytes } => {
                    let mut whole = true;
                    for (sector, range) in pieces(*offset, bytes.len()) {
                        let held = flushed.get(&sector).is_some_and(|last| op <= *last);
                        let at = offset + range.start as u64;
                        if held && at < blocked {
                            put(&mut left.content, at, &bytes[range]);
                        } else {
                            whole = false;
                        }
                    }
                    if !whole {
                        left.ranges.push((*offset, bytes.len()));
                    }
                }
            }
        }
        left
    }

    /// Garbage where a file grew or, without powersafe overwrite, around what was being written.
    fn spoil(
        &self,
        left: &mut Left,
        metadata: u64,
        flushed: &HashMap<u64, usize>,
        powersafe: bool,
        random: &mut Random,
    ) {
        let garbage = random.below(3u64) == 0;
        let longer = random.below(4u64) == 0;
        for pending in &self.pending {
            let (offset, bytes) = match pending {
                // What comes after a cut that did not persist did not begin either.
                Pending::Truncate { serial, .. } if *serial > metadata => return,
                Pending::Truncate { .. } => continue,
                Pending::Write { offset, bytes } => (offset, bytes),
            };
            let end = offset + bytes.len() as u64;
            if longer && end > left.content.len() as u64 && *offset >= self.durable.len() as u64 {
                left.content.resize(end as usize, 0);
                left.size = true;
            }
            for (sector, range) in pieces(*offset, bytes.len()) {
                let start = sector * SECTOR;
                let grown = start >= self.durable.len() as u64 && !flushed.contains_key(&sector);
                let partly = range.len() < SECTOR as usize;
                let spoiled =
                    (garbage && grown) || (!powersafe && partly && random.below(6u64) == 0);
                if !spoiled {
                    continue;
                }
                let end = (start + SECTOR).min(left.content.len() as u64);
                if start < end {
                    random.fill(&mut left.content[start as usize..end as usize]);
                    left.ranges.push((*offset, bytes.len()));
                }
            }
        }
    }
}

fn put(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let end = offset as usize + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset as usize..end].copy_from_slice(bytes);
}

fn sectors(offset: u64, length: usize) -> impl Iterator<Item = u64> {
    offset / SECTOR..(offset + length as u64).div_ceil(SECTOR)
}

/// The parts of a write by sector.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let end = offset + length as u64;
    sectors(offset, length).map(move |sector| {
        let from = (sector * SECTOR).max(offset) - offset;
        let to = ((sector + 1) * SECTOR).min(end) - offset;
        (sector, from as usize..to as usize)
    })
}
