//! Log sets: behind a full set of three pages, three commits as they are and put wrong.

use std::sync::{Arc, Mutex};

use pellucid::lsn::Lsn;
use pellucid::media::{
    ChainPlace, Compression, Description, Kind, LogCommit, LogFacts, Manifest, SetHeader,
};
use pellucid::unit::TAIL_BYTES;
use pellucid::{Algorithm, Result};
use pellucid_backup::set::{write_log_set, FamilyTarget, LogSource, NewSet, Options};

use crate::case::Case;
use crate::key_bytes;
use crate::media::{
    changed, database, keys_of, manifest_at, media, mend_chunk, mend_sum, protect, resigned,
    set_header, without_tails, Memory, Shape, Two, PAGE_BYTES,
};

/// Page and commit of each version: the second commit makes the database longer, the third one shorter.
const VERSIONS: [(u32, u32); 6] = [(1, 1), (1, 2), (2, 0), (2, 2), (3, 0), (4, 1)];
const TIME: u64 = 1_700_000_100_000_000;

struct Log {
    commits: Vec<LogCommit>,
    versions: Vec<(u32, u32)>,
    has_tails: bool,
}

fn log(commits: usize, has_tails: bool) -> Log {
    let commit = |epoch, frame, time, pages| LogCommit {
        lsn: Lsn::new(epoch, frame),
        time: TIME + time,
        pages,
        ..LogCommit::default()
    };
    let mut all = vec![commit(1, 4, 0, 3), commit(1, 6, 64, 4), commit(2, 2, 64, 2)];
    all[1].mark = Some("before the import".into());
    all[2].stepped_back = true;
    all.truncate(commits);
    let versions = VERSIONS.into_iter().filter(|(_, commit)| (*commit as usize) < commits);
    Log { commits: all, versions: versions.collect(), has_tails }
}

impl LogSource for Log {
    fn commits(&self) -> &[LogCommit] {
        &self.commits
    }

    fn versions(&self) -> &[(u32, u32)] {
        &self.versions
    }

    fn read(&mut self, at: usize, into: &mut [u8]) -> Result<()> {
        into.copy_from_slice(&page(self.versions[at], self.has_tails));
        Ok(())
    }
}

fn page((page, commit): (u32, u32), has_tails: bool) -> Vec<u8> {
    let text = format!("page {page} of commit {commit}. ");
    let mut bytes: Vec<u8> = text.bytes().cycle().take(PAGE_BYTES).collect();
    if has_tails {
        bytes[PAGE_BYTES - TAIL_BYTES..].fill(0);
    }
    bytes
}

/// The database behind the first `stop` commits.
fn behind(log: &Log, full: &[u8], stop: usize) -> Vec<u8> {
    let mut bytes = full.to_vec();
    if let Some(commit) = stop.checked_sub(1) {
        bytes.resize(bytes.len().max(4 * PAGE_BYTES), 0);
        for version in log.versions.iter().filter(|(_, commit)| (*commit as usize) < stop) {
            let at = (version.0 as usize - 1) * PAGE_BYTES;
            bytes[at..at + PAGE_BYTES].copy_from_slice(&page(*version, log.has_tails));
        }
        bytes.truncate(log.commits[commit].pages as usize * PAGE_BYTES);
    }
    bytes
}

const AT_THE_FULL_SET: ChainPlace = ChainPlace {
    fork: *b"a recovery fork!",
    first: Lsn { epoch: 1, frame: 2 },
    last: Lsn { epoch: 1, frame: 2 },
};

fn header(shape: &Shape, log: &Log, before: [u8; 32]) -> SetHeader {
    let mut header = set_header(shape, 2, Kind::Log);
    let last = log.commits.last();
    header.pages = last.map_or(3, |commit| commit.pages);
    if let Some(own) = &mut header.version2 {
        own.before = before;
        let end = last.map_or(AT_THE_FULL_SET.first, |commit| commit.lsn);
        own.chain = Some(ChainPlace { last: end, ..AT_THE_FULL_SET });
        own.log = Some(LogFacts {
            full: AT_THE_FULL_SET.last,
            first_time: log.commits.first().map_or(0, |commit| commit.time),
            last_time: last.map_or(0, |commit| commit.time),
            commits: log.commits.len() as u32,
            ..LogFacts::default()
        });
    }
    header
}

fn case(kind: &str, shape: &Shape, mut log: Log, stop: Option<usize>) -> Result<Case> {
    let full = if shape.sealed_source { without_tails(0) } else { database(0) };
    let families = media(shape, std::slice::from_ref(&full))?;
    let before = Manifest::hash(&families[0][manifest_at(&families[0])..]);
    let sinks: Vec<_> =
        families.into_iter().map(|family| Memory(Arc::new(Mutex::new(family)))).collect();
    let mut header = header(shape, &log, before);
    let keys = protect(&mut header, shape)?;
    let description = Description {
        database: "vectors".into(),
        path: "/srv/vectors.db".into(),
        ..Description::default()
    };
    let set = NewSet { header, description, keys: keys.as_ref(), signer: None };
    let mut targets: Vec<FamilyTarget> =
        sinks.iter().map(|sink| FamilyTarget::new(vec![Box::new(sink.clone())])).collect();
    let options = Options { workers: 1, level: 1, continue_after_error: false };
    write_log_set(&mut log, &set, &mut targets, &options, &mut |_, _| (), &mut |_| ())?;
    let families: Vec<_> = sinks.iter().map(|sink| sink.0.lock().unwrap().clone()).collect();
    let all = log.commits.len();
    let mut case = Case::new("media", kind)
        .with("expect", "success")
        .with("algorithm", shape.algorithm.map_or("none".to_owned(), |own| own.to_string()))
        .with_bytes("key-file", &key_bytes(64))
        .with("position", 2)
        .with_bytes("database", &behind(&log, &full, stop.unwrap_or(all)))
        .with_body(&families[0]);
    if let Some(stop) = stop {
        case = case.with("stop", stop);
    }
    for (number, family) in (2..).zip(&families[1..]) {
        case = case.with_bytes(&format!("family-{number}"), family);
    }
    Ok(case)
}

/// Where the set header of the log set begins, and where it ends.
fn header_at(body: &[u8]) -> std::ops::Range<usize> {
    let magic = pellucid::media::SET_MAGIC;
    let at = body.windows(magic.len()).rposition(|window| window == magic).unwrap();
    let bytes = u32::from_be_bytes(body[at + 20..at + 24].try_into().unwrap());
    at..at + bytes as usize
}

/// Where the first chunk of this kind begins in the log set.
fn chunk_at(body: &[u8], kind: u8) -> usize {
    let from = header_at(body).end;
    let prefix = [b'P', b'C', b'H', b'K', kind];
    from + body[from..].windows(5).position(|window| window == prefix).unwrap()
}

pub fn cases() -> Result<Vec<Case>> {
    let two = Two { chain: Some(AT_THE_FULL_SET), ..Two::default() };
    let shape = |algorithm, compression| Shape {
        two: Some(two.clone()),
        algorithm,
        compression,
        families: 1,
        sealed_source: false,
    };
    let aes = Some(Algorithm::Aes256);
    let in_clear = shape(None, Compression::None);
    let of_sealed = Shape { sealed_source: true, ..shape(aes, Compression::Zstd) };
    let striped = Shape {
        two: Some(Two { padded: true, ..two.clone() }),
        families: 2,
        ..shape(aes, Compression::None)
    };
    let sealed = case("log-set", &shape(aes, Compression::None), log(3, false), None)?;
    let clear = case("log-set-in-clear", &in_clear, log(3, false), None)?;
    let own = keys_of(2)?;
    // The set header alone: the root does not matter to who refuses it before.
    let in_header = |at: usize, value: u8| {
        changed(&sealed, |body| {
            let range = header_at(body);
            body[range.start + at] = value;
            resigned(&mut body[range], &own);
        })
    };
    // A chunk in clear, with its checksum made right in the prefix and in the index.
    let in_chunk = |kind: u8, change: &dyn Fn(&mut [u8])| {
        changed(&clear, |body| {
            let at = chunk_at(body, kind);
            let sum = body[at + 32..at + 48].to_vec();
            change(&mut body[at + 48..]);
            mend_chunk(body, at);
            let mended = body[at + 32..at + 48].to_vec();
            let index = chunk_at(body, 3);
            let entry = body[index..].windows(16).position(|window| window == sum).unwrap();
            body[index + entry..index + entry + 16].copy_from_slice(&mended);
            mend_chunk(body, index);
        })
    };
    let unsupported =
        |case: Case, kind: &str, error: &str| case.failing(kind, "unsupported", error);
    let corrupt = |case: Case, kind: &str, error: &str| case.failing(kind, "corrupt", error);
    let malformed = "the fields of its header are malformed";
    Ok(vec![
        case("log-set-stopped", &shape(aes, Compression::None), log(3, false), Some(2))?,
        case("log-set-without-tails", &of_sealed, log(3, true), Some(1))?,
        case("log-set-striped-padded", &striped, log(3, false), None)?,
        case("log-set-without-commits", &shape(aes, Compression::None), log(0, false), None)?,
        unsupported(in_header(288, 1), "log-set-byte-in-use", "byte 288 is not zero"),
        unsupported(in_header(327, 8), "log-set-unknown-flag", "log flags 0x8"),
        corrupt(in_header(272, 9), "log-set-that-goes-back", malformed),
        corrupt(
            changed(&sealed, |body| {
                let range = header_at(body);
                body[range.start + 256..range.start + 272].fill(0);
                resigned(&mut body[range], &own);
            }),
            "log-set-without-a-fork",
            malformed,
        ),
        corrupt(
            changed(&clear, |body| {
                let range = header_at(body);
                body[range.start + 323] = 4;
                mend_sum(&mut body[range]);
            }),
            "log-set-of-more-commits",
            "not as many as the set header says",
        ),
        corrupt(
            in_chunk(5, &|content| content[..16].rotate_left(8)),
            "log-set-out-of-order",
            "out of order or names no page",
        ),
        corrupt(
            in_chunk(5, &|content| content[15] = 3),
            "log-set-of-no-commit",
            "out of order or names no page",
        ),
        corrupt(
            in_chunk(6, &|content| content[23 + 7] = 4),
            "log-set-commits-out-of-order",
            "their numbers do not grow",
        ),
        corrupt(
            changed(&sealed, |body| {
                let at = chunk_at(body, 5);
                body[at + 60] ^= 1;
            }),
            "log-set-flipped-page",
            "chunk 0: damaged",
        ),
        clear,
        sealed,
    ])
}
