//! Everything sealed that ever lay on the storage, by what it is: so that the oracle knows each part of a file that was put
//! together, without a key.

use std::collections::{BTreeSet, HashMap};

use pellucid::header::{Header, COPY_BYTES, COPY_OFFSETS, REGION_BYTES};
use pellucid::log_sector::LOG_SECTOR_BYTES;
use pellucid::sector::WEAR_LOG_OFFSET;
use pellucid::unit::TAIL_BYTES;
use pellucid::wal::Version;

use crate::storage::Files;
use crate::world::{Name, PAGE};

/// Bytes of a frame of a log.
pub const FRAME: usize = PAGE + 24;
/// Bytes of a log's header.
pub const LOG_HEADER: usize = 32;
/// Where the pages begin.
pub const REGION: usize = REGION_BYTES as usize;
/// Bytes of it that tell the runs of a log apart.
pub const RUN_BYTES: usize = 24;
const LOG_SECTOR: std::ops::Range<usize> =
    WEAR_LOG_OFFSET as usize..WEAR_LOG_OFFSET as usize + LOG_SECTOR_BYTES;
const JOURNAL_COPIES: [std::ops::Range<usize>; 2] = [32..108, 256..332];

/// The data encryption key that something is sealed under, by its commitment.
pub type Dek = [u8; 32];

/// A header copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub file_id: [u8; 16],
    pub sequence: u64,
    pub is_off: bool,
    /// The key that seals.
    pub dek: Dek,
    /// All keys that open: during a key change the one before, too.
    pub deks: Vec<Dek>,
    /// Its version, of which its log is too.
    pub version: Version,
    /// Of the instance whose keyring is there.
    pub is_own: bool,
}

/// A sealed page of a database file, or a frame of a log.
#[derive(Debug)]
pub struct Unit {
    bytes: Vec<u8>,
    pub dek: Dek,
    pub page: u32,
    /// The states that it is a part of.
    pub states: BTreeSet<usize>,
    /// Of a first page: how many pages there are.
    pub count: Option<u32>,
    /// Of a frame: where it was written.
    pub frame: Option<Frame>,
}

/// Where a frame was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub number: u32,
    /// It ends a transaction of a database with so many pages; 0 if it ends none.
    pub ends: u32,
    /// Bytes 8 to 31 of the log's header then.
    pub run: Vec<u8>,
    /// The tail of the frame before it, whose checksum it continues.
    pub before: Vec<u8>,
    /// It is the first of its transaction.
    pub is_first: bool,
    /// Its connection had synced the log since the last commit.
    pub is_synced: bool,
    /// How often the run had been recovered.
    pub count: u32,
}

/// A sector 2 of version 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSector {
    dek: Dek,
    /// Bytes 8 to 31 of the log's header that it names.
    pub run: Vec<u8>,
    /// How often that run had been recovered, and the frames that counted then.
    pub recovered: (u32, u32),
}

/// A hot journal as it lay.
pub struct Journal {
    pub bytes: Vec<u8>,
    /// The database beside it.
    pub database: Vec<u8>,
    /// What it rolls back to.
    pub state: usize,
}

#[derive(Default)]
pub struct Archive {
    heads: HashMap<Vec<u8>, Head>,
    sectors: HashMap<Vec<u8>, [u8; 16]>,
    log_sectors: HashMap<Vec<u8>, LogSector>,
    /// Of each run of a log how often it was recovered, and the frames that counted then.
    recoveries: HashMap<Vec<u8>, (u32, u32)>,
    /// The databases whose connection has synced the log since the last commit.
    pub synced: BTreeSet<Name>,
    pages: HashMap<Vec<u8>, Unit>,
    frames: HashMap<Vec<u8>, Unit>,
    log_headers: BTreeSet<Vec<u8>>,
    pub journals: Vec<Journal>,
    journal_heads: HashMap<Vec<u8>, Dek>,
}

/// The tail of a unit, which no other has.
pub fn tail(unit: &[u8]) -> Vec<u8> {
    unit[unit.len() - TAIL_BYTES..].to_vec()
}

impl Archive {
    /// Takes in the files of a database that is in `state`.
    pub fn add(&mut self, name: Name, files: &Files, state: usize) {
        if name == Name::Plain {
            return;
        }
        let file = &files[name.file()];
        let none = Vec::new();
        let log = files.get(&format!("{}-wal", name.file())).unwrap_or(&none);
        for at in COPY_OFFSETS {
            let copy = &file[at as usize..at as usize + COPY_BYTES];
            let header = Header::parse(copy, 0).unwrap();
            let head = Head {
                file_id: header.file_id,
                sequence: header.sequence,
                is_off: header.is_switched_off(),
                dek: header.current_dek().unwrap().commitment,
                deks: header.deks.iter().map(|row| row.commitment).collect(),
                version: Version::of_database(&header),
                is_own: name != Name::Foreign,
            };
            self.heads.insert(copy.to_vec(), head);
        }
        let Some(head) = self.head(file) else { panic!("{name:?} has no header") };
        self.sectors.insert(file[..512].to_vec(), head.file_id);
        let run = file[LOG_SECTOR][32..32 + RUN_BYTES].to_vec();
        let recovered = self.recoveries.get(&run).copied().unwrap_or_default();
        let sector = LogSector { dek: head.dek, run, recovered };
        self.log_sectors.entry(file[LOG_SECTOR].to_vec()).or_insert(sector);
        for (at, bytes) in file[REGION..].chunks_exact(PAGE).enumerate() {
            let known = Unit {
                bytes: bytes.to_vec(),
                dek: head.dek,
                page: at as u32 + 1,
                states: BTreeSet::new(),
                count: None,
                frame: None,
            };
            self.pages.entry(tail(bytes)).or_insert(known);
        }
        if log.len() > LOG_HEADER {
            self.log_headers.insert(log[..LOG_HEADER].to_vec());
            let run = log[LOG_HEADER - RUN_BYTES..LOG_HEADER].to_vec();
            let count = self.recoveries.get(&run).map_or(0, |recovered| recovered.0);
            let (mut before, mut is_first) = (Vec::new(), true);
            for (at, bytes) in log[LOG_HEADER..].chunks_exact(FRAME).enumerate() {
                let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
                let known = Unit {
                    bytes: bytes.to_vec(),
                    dek: head.dek,
                    page: word(0),
                    states: BTreeSet::new(),
                    count: None,
                    frame: Some(Frame {
                        number: at as u32 + 1,
                        ends: word(4),
                        run: run.clone(),
                        before: std::mem::replace(&mut before, tail(bytes)),
                        is_first: std::mem::replace(&mut is_first, word(4) != 0),
                        is_synced: at > 0 && self.synced.contains(&name),
                        count,
                    }),
                };
                self.frames.entry(tail(bytes)).or_insert(known);
            }
        }
        if let Some(bytes) = files.get(&format!("{}-journal", name.file())) {
            for range in JOURNAL_COPIES {
                self.journal_heads.insert(bytes[range].to_vec(), head.dek);
            }
            let (bytes, database) = (bytes.clone(), file.clone());
            self.journals.push(Journal { bytes, database, state });
            return;
        }
        // Which of them SQLite reads.
        let counted = self.log(log, &head, file).counted;
        let mut from_log = HashMap::new();
        for frame in log.get(LOG_HEADER..).unwrap_or_default().chunks_exact(FRAME).take(counted) {
            let unit = self.frames.get_mut(&tail(frame)).unwrap();
            from_log.insert(unit.page, tail(frame));
        }
        let pages = file[REGION..].len() / PAGE;
        for (at, bytes) in file[REGION..].chunks_exact(PAGE).enumerate() {
            if !from_log.contains_key(&(at as u32 + 1)) {
                let unit = self.pages.get_mut(&tail(bytes)).unwrap();
                unit.states.insert(state);
                if at == 0 && unit.count.is_none() && from_log.is_empty() {
                    unit.count = Some(pages as u32);
                }
            }
        }
        for key in from_log.values() {
            self.frames.get_mut(key).unwrap().states.insert(state);
        }
    }

    /// The header that counts of the two copies in `file`, if one is whole: the one with the higher sequence number.
    pub fn head(&self, file: &[u8]) -> Option<Head> {
        let copies = COPY_OFFSETS.map(|at| {
            let copy = file.get(at as usize..at as usize + COPY_BYTES)?;
            self.heads.get(copy).cloned()
        });
        match copies {
            [Some(first), Some(second)] if second.sequence > first.sequence => Some(second),
            [first, second] => first.or(second),
        }
    }

    /// The file id that sector 0 names, if it is whole.
    pub fn sector(&self, file: &[u8]) -> Option<[u8; 16]> {
        self.sectors.get(file.get(..512)?).copied()
    }

    /// The sealed page with these bytes, if it lay anywhere in a database file.
    pub fn page(&self, bytes: &[u8]) -> Option<&Unit> {
        self.pages.get(&tail(bytes)).filter(|unit| unit.bytes == bytes)
    }

    /// The frame with these bytes.
    pub fn frame(&self, bytes: &[u8]) -> Option<&Unit> {
        self.frames.get(&tail(bytes)).filter(|unit| unit.bytes == bytes)
    }

    /// The key of a journal one of whose first header's copies is whole.
    pub fn journal(&self, bytes: &[u8]) -> Option<Dek> {
        let copies = JOURNAL_COPIES.into_iter().filter_map(|range| bytes.get(range));
        copies.filter_map(|copy| self.journal_heads.get(copy)).copied().next()
    }

    /// Whether these bytes are the header of some log.
    pub fn is_log_header(&self, bytes: &[u8]) -> bool {
        self.log_headers.contains(bytes)
    }

    /// Sector 2 of a database of version 2 under `head`, if it is authentic.
    pub fn log_sector(&self, file: &[u8], head: &Head) -> Option<&LogSector> {
        let sector = self.log_sectors.get(file.get(LOG_SECTOR)?)?;
        head.deks.contains(&sector.dek).then_some(sector)
    }

    /// Notes a recovery of a log after which so many frames count.
    pub fn recovered(&mut self, log: &[u8], counted: usize) {
        let run = log[LOG_HEADER - RUN_BYTES..LOG_HEADER].to_vec();
        let recovered = self.recoveries.entry(run).or_default();
        *recovered = (recovered.0 + 1, counted as u32);
    }
}
