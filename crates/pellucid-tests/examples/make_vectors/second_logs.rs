//! Vectors of whole logs of version 2: where they end, and which commits behind the end are lost.

use pellucid::keys::HeaderKey;
use pellucid::log_sector::LogSector;
use pellucid::sector::Wear;
use pellucid::wal::{
    self, Run, Stamp, Time, Version, COUNT_MOST, FRAME_HEADER_BYTES, HEADER_BYTES, RUN_BYTES,
};
use pellucid::{Algorithm, Result};

use super::logs::sum;
use super::units::wal_header;
use super::{case, container, dek, flip, Case, Fixed, FILE_ID, GENERATION};

const PAGE_BYTES: usize = 512;
const FRAME_BYTES: usize = FRAME_HEADER_BYTES + PAGE_BYTES;

/// A frame as SQLite writes it: page, commit size; whether it begins a transaction; what its page is filled with.
#[derive(Clone, Copy)]
struct Frame {
    page: u32,
    commit: u32,
    first: bool,
    content: u8,
    count: u16,
}

/// How the log was written.
#[derive(Clone, Copy)]
struct Way {
    /// Another one has other salts.
    run: u8,
    /// A sync returned after each commit.
    synced: bool,
}

const FULL: Way = Way { run: 0, synced: true };
const NORMAL: Way = Way { run: 0, synced: false };

/// Four transactions: frames 1 and 2, then one each.
fn usual() -> [Frame; 5] {
    let frame = |page, commit, first, content| Frame { page, commit, first, content, count: 0 };
    [
        frame(1, 0, true, 1),
        frame(2, 3, false, 2),
        frame(3, 3, true, 3),
        frame(1, 3, true, 4),
        frame(2, 3, true, 5),
    ]
}

/// The header on disk.
fn header(run: u8) -> [u8; HEADER_BYTES] {
    let mut header = wal_header(0x377f_0682, 0x5045_4C02);
    header[16] ^= run;
    wal::mark_header(&mut header, Version::Second);
    header
}

fn log(frames: &[Frame], way: Way) -> Result<Vec<u8>> {
    let header = header(way.run);
    let (run, mut own) = (Run::of(&header, Version::Second), header);
    wal::unmark_header(&mut own, Version::Second);
    let word = |at: usize| u32::from_be_bytes(own[at..at + 4].try_into().unwrap());
    let mut sums = (word(24), word(28));
    let keys = container(Algorithm::Aes256, GENERATION)?;
    let mut log = header.to_vec();
    let mut behind_commit = false;
    for (at, of) in frames.iter().enumerate() {
        let mut frame = [of.page.to_be_bytes(), of.commit.to_be_bytes()].concat();
        frame.extend_from_slice(&own[16..24]);
        frame.resize(FRAME_BYTES, 0);
        frame[FRAME_HEADER_BYTES..FRAME_BYTES - 32].fill(of.content);
        sums = sum(sum(sums, &frame[..8]), &frame[FRAME_HEADER_BYTES..]);
        frame[16..20].copy_from_slice(&sums.0.to_be_bytes());
        frame[20..24].copy_from_slice(&sums.1.to_be_bytes());
        let stamp = Stamp {
            time: Time::from_units(1_700_000_000 * 15_625 + at as u64),
            count: of.count,
            first: of.first,
            synced_before: of.first && way.synced && behind_commit,
            ..Stamp::default()
        };
        behind_commit = of.commit != 0;
        let (number, mut sealed) = (at as u32 + 1, vec![0; FRAME_BYTES]);
        let nonces = &mut Fixed(8 * of.content + at as u8);
        wal::seal_frame(&keys, nonces, (&run, stamp), number, &frame, &mut sealed)?;
        log.extend_from_slice(&sealed);
    }
    Ok(log)
}

fn at(frame: usize) -> usize {
    HEADER_BYTES + (frame - 1) * FRAME_BYTES
}

/// Sector 2, which knows this run.
fn sector(run: u8, recoveries: u32, counted: u32) -> Result<Vec<u8>> {
    let mut bytes = [0; RUN_BYTES];
    bytes.copy_from_slice(&header(run)[HEADER_BYTES - RUN_BYTES..]);
    let sector = LogSector {
        wear: Wear { generation: GENERATION, reserved: 64 },
        recoveries,
        counted,
        run: bytes,
        ..LogSector::default()
    };
    Ok(sector.encode(&HeaderKey::derive(&dek(), &FILE_ID)?).to_vec())
}

pub fn cases() -> Result<Vec<Case>> {
    let known = sector(0, 0, 0)?;
    let (full, normal) = (log(&usual(), FULL)?, log(&usual(), NORMAL)?);
    let good = case("wal", "second-committed", Algorithm::Aes256)
        .with("database-version", 2)
        .with("page-size", PAGE_BYTES)
        .with("frames", 5)
        .with("pages", 3)
        .with_bytes("sector", &known)
        .with("in-file", "no")
        .with_body(&full);
    let counts = |kind: &str, frames: u32, body: &[u8]| {
        let case = good.clone().with("kind", kind).with("frames", frames).with_body(body);
        if frames == 0 {
            case.with("pages", 0)
        } else {
            case
        }
    };
    let lost = |kind: &str, error: &str, (lost, sure): (u32, &str), body: &[u8]| {
        good.failing(kind, "unauthentic", error)
            .with("lost", lost)
            .with("sure", sure)
            .with_body(body)
    };
    let flipped = |case: Case, place: usize| flip(case, place as isize);
    let with = |change: &dyn Fn(&mut [Frame; 5])| {
        let mut frames = usual();
        change(&mut frames);
        frames
    };

    // Frames 3 to 5 lay behind the end of a recovery, which is written over from frame 3 on.
    let after = with(&|frames| (frames[2].count, frames[2].content) = (1, 9));
    let leftover = [&log(&after, FULL)?[..at(4)], &full[at(4)..]].concat();
    let recovered = sector(0, 1, 2)?;
    // A transaction that was rolled back had other content in frame 3.
    let rolled_back = with(&|frames| frames[2].content = 9);
    let put_back = [&log(&rolled_back, FULL)?[..at(4)], &full[at(4)..]].concat();
    let mut exchanged = full.clone();
    exchanged.copy_within(at(1)..at(2), at(3));
    let long = with(&|frames| {
        (frames[2].commit, frames[3].commit) = (0, 0);
        (frames[3].first, frames[4].first) = (false, false);
    });
    let long = log(&long, FULL)?;
    let padded = with(&|frames| {
        frames[2] = Frame { first: false, ..frames[1] };
    });
    let used_up = with(&|frames| frames.iter_mut().for_each(|frame| frame.count = COUNT_MOST));
    let used_up = log(&used_up, FULL)?;
    let mut without_sector = good.clone();
    without_sector = without_sector.without("sector");
    let other_header = [&header(8)[..], &full[HEADER_BYTES..]].concat();

    let tag = |frame: u32| format!("WAL frame {frame}: authentication tag");
    let header_damaged = "WAL header: damaged";
    Ok(vec![
        counts("second-uncommitted-end", 4, &log(&with(&|frames| frames[4].commit = 0), FULL)?),
        counts("second-torn-end", 4, &full[..full.len() - 1]),
        counts("second-padded", 5, &log(&padded, NORMAL)?),
        flipped(counts("second-flipped-end", 4, &full), at(5) + 300),
        flipped(counts("second-only-the-last-torn", 2, &long), at(4) + 300),
        counts("second-left-by-a-recovery", 3, &leftover).with_bytes("sector", &recovered),
        flipped(counts("second-left-behind-a-torn-frame", 2, &leftover), at(3) + 300)
            .with_bytes("sector", &recovered),
        counts("second-run-before", 0, &[&header(8)[..], &full[HEADER_BYTES..]].concat())
            .with_bytes("sector", &sector(8, 0, 0)?),
        counts("second-sector-of-the-next-run", 5, &full).with_bytes("sector", &sector(8, 0, 0)?),
        flipped(counts("second-damaged-header-in-the-file", 0, &full), 17).with("in-file", "yes"),
        flipped(without_sector.clone().with("kind", "second-damaged-header-unknown"), 17)
            .with("frames", 0)
            .with("pages", 0),
        flipped(lost("second-attacked", &tag(1), (3, "yes"), &full), at(1) + 300),
        flipped(lost("second-attacked-stamp", &tag(1), (3, "yes"), &full), at(1) + 9),
        flipped(
            without_sector
                .failing("second-attacked-without-a-sector", "unauthentic", &tag(1))
                .with("lost", 3)
                .with("sure", "yes"),
            at(1) + 300,
        ),
        lost("second-attacked-by-an-exchanged-frame", &tag(3), (2, "yes"), &exchanged),
        flipped(lost("second-may-be-lost", &tag(1), (3, "no"), &normal), at(1) + 300),
        flipped(lost("second-one-commit-may-be-lost", &tag(4), (1, "no"), &normal), at(4) + 300),
        flipped(lost("second-what-a-recovery-counted", &tag(1), (3, "no"), &full), at(1) + 300)
            .with_bytes("sector", &sector(0, 1, 5)?),
        flipped(lost("second-counts-used-up", &tag(1), (3, "no"), &used_up), at(1) + 300)
            .with_bytes("sector", &sector(0, COUNT_MOST.into(), 0)?),
        lost(
            "second-rolled-back-frame-put-back",
            "WAL frame 4: of an earlier transaction",
            (2, "no"),
            &put_back,
        ),
        lost(
            "second-left-out-and-put-back",
            "WAL frame 3: older than the last recovery",
            (0, "no"),
            &full,
        )
        .with_bytes("sector", &recovered),
        flipped(lost("second-damaged-header", header_damaged, (4, "no"), &full), 17),
        flipped(lost("second-damaged-magic", header_damaged, (4, "no"), &full), 3),
        lost("second-another-header", header_damaged, (4, "no"), &other_header),
        good,
    ])
}
