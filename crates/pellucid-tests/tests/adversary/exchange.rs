//! What is put in the place of a database: drawn by a seed, from all that ever lay on the storage.

use pellucid::hash::Sha256;
use pellucid::sector::SectorZero;
use pellucid_tests::random::Random;

use crate::archive::{FRAME, LOG_HEADER, REGION};
use crate::oracle::Put;
use crate::world::{Name, World, PAGE};

/// Where sector 2 begins.
const LOG_SECTOR: usize = pellucid::sector::WEAR_LOG_OFFSET as usize;

/// The files of a case, and how they came about.
pub struct Exchange {
    pub target: Name,
    /// The path is not the target's, but one that the keyring has never seen.
    pub is_fresh: bool,
    pub kind: &'static str,
    pub put: Put,
    /// For people: what was done.
    pub said: Vec<String>,
}

/// One of a database's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Database,
    Log,
    Journal,
}

impl Side {
    fn end(self) -> &'static str {
        match self {
            Self::Database => "",
            Self::Log => "-wal",
            Self::Journal => "-journal",
        }
    }

    fn of(self, put: &mut Put) -> &mut Option<Vec<u8>> {
        match self {
            Self::Database => &mut put.database,
            Self::Log => &mut put.log,
            Self::Journal => &mut put.journal,
        }
    }
}

/// The files of a database at a moment.
pub fn at(world: &World, moment: usize, name: Name) -> Put {
    let file = |side: Side| world.file(moment, &format!("{}{}", name.file(), side.end())).cloned();
    Put {
        database: file(Side::Database),
        log: file(Side::Log),
        journal: file(Side::Journal),
        ..Put::default()
    }
}

/// The kinds of exchanges, each with its weight.
pub const KINDS: [(usize, &str); 15] = [
    (2, "laying"),
    (4, "fresh path"),
    (12, "whole file"),
    (6, "file and log"),
    (8, "older file of it"),
    (8, "log"),
    (3, "journal"),
    (3, "no file"),
    (4, "link"),
    (8, "cut"),
    (16, "flip"),
    (18, "sector"),
    (10, "sectors"),
    (4, "mixture"),
    (10, "log parts"),
];

/// Draws the exchange of a case; the first cases have one of each kind.
pub fn draw(world: &World, random: &mut Random, case: usize) -> Exchange {
    let target = Name::PINNED[random.below(Name::PINNED.len())];
    let kind = KINDS.get(case).map_or_else(|| random.weighted(&KINDS), |(_, kind)| *kind);
    let base = match target {
        // Its hot journals are of other moments.
        Name::Roll if random.chance(30) => [5, 17][random.below(2usize)],
        _ => world.moments.len() - 1,
    };
    let mut drawn = Drawn { world, random, target, put: at(world, base, target), said: Vec::new() };
    if base + 1 < world.moments.len() {
        drawn.said.push(format!("files of moment {base}"));
    }
    match kind {
        "whole file" => drawn.whole(false),
        "file and log" => drawn.whole(true),
        "older file of it" => drawn.older(),
        "log" => drawn.side(Side::Log),
        "journal" => drawn.side(Side::Journal),
        "no file" => drawn.no_file(),
        "fresh path" => drawn.sealed(),
        "laying" => drawn.laying(),
        "link" => drawn.link(),
        "cut" => drawn.cut(),
        "flip" => drawn.flip(),
        "log parts" => drawn.log_parts(),
        "sector" => drawn.sector(),
        "sectors" => {
            for _ in 0..drawn.random.between(2, 6) {
                drawn.sector();
            }
        }
        _ => {
            drawn.older();
            drawn.side(Side::Log);
            match drawn.random.below(3usize) {
                0 => drawn.flip(),
                1 => drawn.sector(),
                _ => {}
            }
        }
    }
    let is_fresh = kind == "fresh path";
    Exchange { target, is_fresh, kind, put: drawn.put, said: drawn.said }
}

impl Exchange {
    /// The file that is exchanged.
    pub fn file(&self) -> &'static str {
        if self.is_fresh {
            "fresh.db"
        } else {
            self.target.file()
        }
    }
}

struct Drawn<'a> {
    world: &'a World,
    random: &'a mut Random,
    target: Name,
    put: Put,
    said: Vec<String>,
}

impl Drawn<'_> {
    fn moment(&mut self) -> usize {
        self.random.below(self.world.moments.len())
    }

    /// A database at a moment when it was there; half of the time the target itself.
    fn source(&mut self) -> (Name, usize) {
        loop {
            let name = match self.random.chance(50) {
                true => self.target,
                false => Name::ALL[self.random.below(Name::ALL.len())],
            };
            let moment = self.moment();
            if self.world.file(moment, name.file()).is_some() {
                return (name, moment);
            }
        }
    }

    fn whole(&mut self, with_log: bool) {
        let (name, moment) = self.source();
        let there = at(self.world, moment, name);
        self.said.push(format!("{} of moment {moment}, with its log: {with_log}", name.file()));
        self.put.database = there.database;
        if with_log {
            (self.put.log, self.put.journal) = (there.log, there.journal);
        }
    }

    /// A sector that says that a conversion to a plain database was interrupted, and the plain database beside it.
    fn laying(&mut self) {
        let moment = self.moment();
        let copy = self.world.moments[moment].files["plain.db"].clone();
        let mut sum = Sha256::new();
        sum.update(&copy);
        let Some(file) = &mut self.put.database else { return };
        let Some(file_id) = self.world.archive.sector(file) else { return };
        let copy_bytes = copy.len() as u64;
        let sector = SectorZero::LayingPlain { file_id, copy_bytes, copy_sha256: sum.finish() };
        file[..512].copy_from_slice(&sector.encode(PAGE as u32));
        self.said.push(format!("a conversion to plain.db of moment {moment}"));
        self.put.copy = Some(copy);
    }

    /// A sealed file alone: what a path that was never seen may become is the caller's affair, if it is not sealed.
    fn sealed(&mut self) {
        let (name, moment) = loop {
            let (name, moment) = self.source();
            if name != Name::Plain {
                break (name, moment);
            }
        };
        self.said.push(format!("{} of moment {moment}", name.file()));
        self.put = at(self.world, moment, name);
    }

    fn older(&mut self) {
        let moment = self.moment();
        let there = at(self.world, moment, self.target);
        if there.database.is_none() {
            return;
        }
        let with_log = self.random.chance(50);
        self.said.push(format!("its file of moment {moment}, with its log: {with_log}"));
        self.put.database = there.database;
        if with_log {
            (self.put.log, self.put.journal) = (there.log, there.journal);
        }
    }

    fn side(&mut self, side: Side) {
        let found = match self.random.below(6usize) {
            0 => None,
            1 => Some(Vec::new()),
            _ => {
                // One that is there, if there is one anywhere.
                (0..60).find_map(|_| {
                    let (name, moment) = self.source();
                    let found =
                        self.world.file(moment, &format!("{}{}", name.file(), side.end()))?;
                    self.said.push(format!("{}{} of moment {moment}", name.file(), side.end()));
                    Some(found.clone())
                })
            }
        };
        if found.as_ref().is_none_or(Vec::is_empty) {
            let what = if found.is_none() { "no" } else { "an empty" };
            self.said.push(format!("{what} {side:?}"));
        }
        *side.of(&mut self.put) = found;
    }

    fn no_file(&mut self) {
        if self.random.chance(50) {
            self.put.log = None;
        }
        match self.random.below(3usize) {
            0 => self.put.database = None,
            1 => self.put.database = Some(Vec::new()),
            _ => {
                let kept = self.random.below(REGION);
                if let Some(file) = &mut self.put.database {
                    file.truncate(kept);
                }
            }
        }
        let left = self.put.database.as_ref().map(Vec::len);
        self.said.push(format!("the file has {left:?} bytes"));
    }

    fn link(&mut self) {
        let (name, moment) = self.source();
        self.said.push(format!("a link to {} of moment {moment}", name.file()));
        self.put = Put {
            database: self.world.file(moment, name.file()).cloned(),
            is_link: true,
            ..Put::default()
        };
    }

    /// One of the files that are there, the database as often as the others together.
    fn pick(&mut self) -> Option<Side> {
        let there = |side: &Side| {
            let file = match side {
                Side::Database => &self.put.database,
                Side::Log => &self.put.log,
                Side::Journal => &self.put.journal,
            };
            file.as_ref().is_some_and(|bytes| !bytes.is_empty())
        };
        let sides: Vec<Side> =
            [Side::Database, Side::Log, Side::Journal].into_iter().filter(there).collect();
        match self.random.chance(50) && sides.first() == Some(&Side::Database) {
            true => Some(Side::Database),
            false if sides.is_empty() => None,
            false => Some(sides[self.random.below(sides.len())]),
        }
    }

    fn cut(&mut self) {
        let Some(side) = self.pick() else { return };
        let whole = self.random.chance(50);
        let length = side.of(&mut self.put).as_ref().map_or(0, Vec::len);
        let (start, each) = match side {
            Side::Database => (REGION, PAGE),
            Side::Log => (LOG_HEADER, FRAME),
            Side::Journal => (512, PAGE + 8),
        };
        let mut to = self.random.below(length);
        if whole && to > start {
            to = start + (to - start) / each * each;
        }
        self.said.push(format!("{side:?} cut to {to} of {length} bytes"));
        if let Some(file) = side.of(&mut self.put) {
            file.truncate(to);
        }
    }

    fn flip(&mut self) {
        let Some(side) = self.pick() else { return };
        let length = side.of(&mut self.put).as_ref().map_or(0, Vec::len);
        // The header's bytes are few and matter.
        let most = match (side, self.random.chance(25)) {
            (Side::Database, true) => REGION,
            (Side::Log, true) => LOG_HEADER + FRAME,
            _ => length,
        };
        let at = self.random.below(length.min(most));
        let bit = self.random.below(8usize);
        self.said.push(format!("bit {bit} of byte {at} of the {side:?}"));
        if let Some(file) = side.of(&mut self.put) {
            file[at] ^= 1 << bit;
        }
    }

    /// What a log hangs on: its header, the sector that remembers it, frames of other runs, of other numbers or of an earlier
    /// write, and what lies in clear of a frame.
    fn log_parts(&mut self) {
        for _ in 0..self.random.between(1, 3) {
            match self.random.below(6usize) {
                0 => self.part(Side::Log, (0, 0), LOG_HEADER),
                1 => self.part(Side::Database, (LOG_SECTOR, LOG_SECTOR), 512),
                2 | 3 => {
                    let length = self.put.log.as_ref().map_or(0, Vec::len);
                    let frames = (length.saturating_sub(LOG_HEADER) / FRAME).max(1);
                    let [to, other] = [(); 2].map(|()| self.random.below(frames));
                    let from = if self.random.chance(70) { to } else { other };
                    let count = if self.random.chance(70) { 1 } else { 3 };
                    let at = |frame: usize| LOG_HEADER + frame * FRAME;
                    self.part(Side::Log, (at(from), at(to)), count * FRAME);
                }
                _ => {
                    let Some(log) =
                        self.put.log.as_mut().filter(|log| log.len() >= LOG_HEADER + FRAME)
                    else {
                        continue;
                    };
                    let frame = self.random.below((log.len() - LOG_HEADER) / FRAME);
                    let (at, bit) = (self.random.below(24usize), self.random.below(8usize));
                    log[LOG_HEADER + frame * FRAME + at] ^= 1 << bit;
                    self.said.push(format!("bit {bit} of byte {at} of frame {}", frame + 1));
                }
            }
        }
    }

    /// Bytes of a file from another moment or database, mostly of the same database.
    fn part(&mut self, side: Side, (from, to): (usize, usize), bytes: usize) {
        let (mut name, mut moment) = self.source();
        if self.random.chance(60) {
            (name, moment) = (self.target, self.moment());
        }
        let source = self.world.file(moment, &format!("{}{}", name.file(), side.end()));
        let Some(part) = source.and_then(|source| source.get(from..from + bytes)) else { return };
        let Some(file) = side.of(&mut self.put) else { return };
        let Some(there) = file.get_mut(to..to + bytes) else { return };
        there.copy_from_slice(part);
        self.said.push(format!(
            "{side:?} from {to} on: {bytes} bytes of {} of moment {moment} from {from} on",
            name.file()
        ));
    }

    /// A part of a file that is of another moment, database or instance, or of another place.
    fn sector(&mut self) {
        let Some(side) = self.pick() else { return };
        let (start, each) = match side {
            Side::Database => (REGION, PAGE),
            Side::Log => (LOG_HEADER, FRAME),
            Side::Journal => (512, PAGE + 8),
        };
        let found = (0..60).find_map(|_| {
            let (name, moment) = self.source();
            let found = self.world.file(moment, &format!("{}{}", name.file(), side.end()))?;
            (!found.is_empty()).then_some((name, moment, found))
        });
        let Some((name, moment, source)) = found else { return };
        let length = side.of(&mut self.put).as_ref().map_or(0, Vec::len);
        let (from, bytes) = match self.random.below(if side == Side::Log { 5usize } else { 6 }) {
            // A sector, as disks write them.
            0 => (self.random.below(length.div_ceil(512)) * 512, 512),
            1 => (self.random.below(length.div_ceil(4096)) * 4096, 4096),
            2 => (0, start),
            5 => (2048, 7168),
            _ => (
                start + self.random.below((length.saturating_sub(start) / each).max(1)) * each,
                each,
            ),
        };
        // Now and then from another place.
        let place = match self.random.chance(15) && from >= start && source.len() > start + each {
            true => start + self.random.below((source.len() - start) / each) * each,
            false => from,
        };
        let Some(part) = source.get(place..(place + bytes).min(source.len())) else { return };
        if let Some(file) = side.of(&mut self.put) {
            if from > file.len() {
                return;
            }
            let to = (from + part.len()).min(file.len());
            file[from..to].copy_from_slice(&part[..to - from]);
        }
        self.said.push(format!(
            "{side:?} from {from} on: {bytes} bytes of {} of moment {moment} from {place} on",
            name.file()
        ));
    }
}
