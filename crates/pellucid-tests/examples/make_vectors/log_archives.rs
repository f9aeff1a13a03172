//! Vectors of a log archive: its state, a segment, and the way through both.

use pellucid::hash::Sha256;
use pellucid::header::{RecoveryModel, Second};
use pellucid::keys::HeaderKey;
use pellucid::log_archive::{
    ArchiveState, ChangedPages, LogRun, Mark, MarkedFrame, Segment, ARCHIVE_SECTORS,
    ARCHIVE_SECTOR_BYTES, SEGMENT_HEAD_BYTES,
};
use pellucid::lsn::Lsn;
use pellucid::secret::Secret32;
use pellucid::unit::TAIL_BYTES;
use pellucid::wal::{self, Run, Stamp, Time, Version, FRAME_HEADER_BYTES, HEADER_BYTES};
use pellucid::{Algorithm, Dek, Result};

use super::headers::{encoded, patched, with_checksum};
use super::logs::sum;
use super::units::wal_header;
use super::{case, container, dek, flip, key_bytes, Case, Fixed, FILE_ID, GENERATION, OTHER_ID};

const PAGE_BYTES: usize = 512;
const FRAME_BYTES: usize = FRAME_HEADER_BYTES + PAGE_BYTES;
const TAG: &str = "authentication tag does not match";
const HEAD: &str = "a head of kept frames is not authentic";
const MAC_AT: usize = ARCHIVE_SECTOR_BYTES - 32;
const FORK: [u8; 16] = *b"one line of them";
const SECTOR: usize = ARCHIVE_SECTOR_BYTES;

pub fn cases() -> Result<Vec<Case>> {
    let mut cases = states()?;
    cases.extend(segments()?);
    cases.extend(marks()?);
    cases.extend(archives()?);
    cases.extend(header_copies()?);
    cases.extend(changed_pages()?);
    Ok(cases)
}

fn key() -> Result<HeaderKey> {
    HeaderKey::derive(&dek(), &FILE_ID)
}

/// Of a run of the log: what its frames are, from 1 on.
#[derive(Clone, Copy)]
struct Frame {
    page: u32,
    commit: u32,
    first: bool,
    reseals_only: bool,
    count: u16,
}

const fn frame(page: u32, commit: u32, first: bool) -> Frame {
    Frame { page, commit, first, reseals_only: false, count: 0 }
}

/// A transaction of two pages, and one of one.
const FIRST: [Frame; 3] = [frame(1, 0, true), frame(2, 3, false), frame(3, 3, true)];
/// Four transactions, of which the second one only seals anew.
const SECOND: [Frame; 4] = [
    frame(1, 3, true),
    Frame { reseals_only: true, ..frame(2, 3, true) },
    frame(3, 3, true),
    frame(1, 4, true),
];
/// The same, its end gone and written anew behind a recovery.
const BRANCHED: [Frame; 4] =
    [SECOND[0], SECOND[1], SECOND[2], Frame { count: 1, ..frame(2, 3, true) }];
/// A transaction whose last frame is repeated to the end of a sector, and another one.
const PADDED: [Frame; 4] =
    [frame(1, 0, true), frame(2, 3, false), frame(2, 3, false), frame(3, 3, true)];

fn header(run: u8) -> [u8; HEADER_BYTES] {
    let mut header = wal_header(0x377f_0682, 0x5045_4C02);
    header[16] ^= run;
    wal::mark_header(&mut header, Version::Second);
    header
}

fn sealed(run: u8, frames: &[Frame]) -> Result<Vec<u8>> {
    let header = header(run);
    let (of, mut own) = (Run::of(&header, Version::Second), header);
    wal::unmark_header(&mut own, Version::Second);
    let word = |at: usize| u32::from_be_bytes(own[at..at + 4].try_into().unwrap());
    let mut sums = (word(24), word(28));
    let keys = container(Algorithm::Aes256, GENERATION)?;
    let mut log = Vec::new();
    for (at, one) in frames.iter().enumerate() {
        let mut frame = [one.page.to_be_bytes(), one.commit.to_be_bytes()].concat();
        frame.extend_from_slice(&own[16..24]);
        frame.resize(FRAME_BYTES, 0);
        frame[FRAME_HEADER_BYTES..FRAME_BYTES - 32].fill(one.page as u8);
        sums = sum(sum(sums, &frame[..8]), &frame[FRAME_HEADER_BYTES..]);
        frame[16..20].copy_from_slice(&sums.0.to_be_bytes());
        frame[20..24].copy_from_slice(&sums.1.to_be_bytes());
        let stamp = Stamp {
            time: Time::from_units(1_700_000_000 * 15_625 + 100 * u64::from(run) + at as u64),
            count: one.count,
            first: one.first,
            reseals_only: one.reseals_only,
            ..Stamp::default()
        };
        let mut unit = vec![0; FRAME_BYTES];
        let nonces = &mut Fixed(32 * run + 8 * one.count as u8 + at as u8);
        wal::seal_frame(&keys, nonces, (&of, stamp), at as u32 + 1, &frame, &mut unit)?;
        log.extend_from_slice(&unit);
    }
    Ok(log)
}

/// Frames `first` to `last` of a run, as the archive has them.
fn segment(
    (epoch, run): (u32, u8),
    frames: &[Frame],
    (first, last): (u32, u32),
    behind: Lsn,
) -> Result<Vec<u8>> {
    let log = sealed(run, frames)?;
    let at = |frame: u32| frame as usize * FRAME_BYTES;
    let frames = &log[at(first - 1)..at(last)];
    let mut tails = Sha256::new();
    for frame in frames.chunks_exact(FRAME_BYTES) {
        tails.update(&frame[FRAME_BYTES - TAIL_BYTES..]);
    }
    let head = Segment {
        file_id: FILE_ID,
        fork: FORK,
        epoch,
        first,
        behind,
        header: header(run),
        count: last + 1 - first,
        tails: tails.finish(),
    };
    Ok([&head.encode(&key()?)[..], frames].concat())
}

fn run_of(epoch: u32, run: u8, frames: &[Frame], (first, kept): (u32, u32)) -> Result<LogRun> {
    let log = sealed(run, frames)?;
    let unit = &log[(kept as usize - 1) * FRAME_BYTES..][..FRAME_BYTES];
    let mut tail = [0; TAIL_BYTES];
    tail.copy_from_slice(&unit[FRAME_BYTES - TAIL_BYTES..]);
    Ok(LogRun {
        salts: Run::of(&header(run), Version::Second).salts(),
        epoch,
        first,
        kept,
        handed_out: kept,
        count: Stamp::of(unit).count.into(),
        behind: Lsn::NONE,
        tail,
    })
}

/// What the archive says of two runs, the second one live.
fn state() -> Result<ArchiveState> {
    let before = LogRun { behind: Lsn::new(1, 0), ..run_of(2, 1, &FIRST, (1, 3))? };
    Ok(ArchiveState {
        sequence: 6,
        file_id: FILE_ID,
        fork: FORK,
        has_base: true,
        has_ended: false,
        live: LogRun { behind: Lsn::new(2, 3), ..run_of(3, 2, &SECOND, (1, 4))? },
        before,
        highest: 3,
        broken_epoch: 0,
        backed_up: Lsn::new(1, 0),
        broken_at: Lsn::NONE,
        last_set: key_bytes(7),
        base: Lsn::new(1, 0),
    })
}

/// Both sectors, the other one with the state before.
fn sectors(state: &ArchiveState, key: &HeaderKey) -> Vec<u8> {
    let before = ArchiveState { sequence: state.sequence - 1, ..*state };
    let mut both = vec![0; 2 * SECTOR];
    for one in [*state, before] {
        let at = if one.place() == ARCHIVE_SECTORS[0] { 0 } else { SECTOR };
        both[at..at + SECTOR].copy_from_slice(&one.encode(key));
    }
    both
}

fn numbers(run: &LogRun) -> String {
    let LogRun { epoch, first, kept, handed_out, count, behind, .. } = *run;
    format!("{epoch} {first} {kept} {handed_out} {count} {} {}", behind.epoch, behind.frame)
}

fn with_state(case: Case, state: &ArchiveState) -> Case {
    case.with("sequence", state.sequence)
        .with_bytes("fork", &state.fork)
        .with("has-base", if state.has_base { "yes" } else { "no" })
        .with("has-ended", if state.has_ended { "yes" } else { "no" })
        .with("live", numbers(&state.live))
        .with_bytes("live-salts", &state.live.salts)
        .with_bytes("live-tail", &state.live.tail)
        .with("before", numbers(&state.before))
        .with_bytes("before-salts", &state.before.salts)
        .with_bytes("before-tail", &state.before.tail)
        .with("highest", state.highest)
        .with("broken-epoch", state.broken_epoch)
        .with("backed-up", state.backed_up)
        .with("broken-at", state.broken_at)
        .with_bytes("last-set", &state.last_set)
        .with("base", state.base)
}

fn states() -> Result<Vec<Case>> {
    let (state, key) = (state()?, key()?);
    let good = with_state(case("archive-state", "written", Algorithm::Aes256), &state)
        .with_body(&sectors(&state, &key));
    let older = ArchiveState { sequence: 5, ..state };
    let named = |kind: &str| good.clone().with("kind", kind);
    let begun = ArchiveState {
        sequence: 2,
        has_base: false,
        live: LogRun { epoch: 1, first: 1, behind: Lsn::new(1, 0), ..LogRun::default() },
        before: LogRun::default(),
        highest: 1,
        last_set: [0; 32],
        base: Lsn::NONE,
        ..state
    };
    let broken = ArchiveState {
        sequence: 7,
        broken_at: Lsn::new(2, 2),
        broken_epoch: 3,
        live: LogRun { behind: Lsn::new(3, 0), ..state.live },
        ..state
    };
    let ended = ArchiveState { has_ended: true, ..state };
    let by_older =
        HeaderKey::derive(&Dek::from_secret(Secret32::new(&mut key_bytes(32))), &FILE_ID)?;
    let under_older = named("older-key").with_body(&sectors(&state, &by_older));
    let refused = |kind: &str, error: &str| good.failing(kind, "unauthentic", error);
    let swapped = [&good.body[SECTOR..], &good.body[..SECTOR]].concat();
    // Signed with the key: what a later version would write over the older state.
    let signed = |at: usize, value: u8| {
        let mut body = good.body.clone();
        body[at] = value;
        let mac = key.sign(&[&ARCHIVE_SECTORS[0].to_be_bytes(), &body[..MAC_AT]]);
        body[MAC_AT..SECTOR].copy_from_slice(&mac);
        body
    };
    let newer = |kind: &str, error: &str, at: usize, value: u8| {
        good.failing(kind, "unsupported", error).with_body(&signed(at, value))
    };
    Ok(vec![
        with_state(named("begun"), &begun).with_body(&sectors(&begun, &key)),
        with_state(named("ended"), &ended).with_body(&sectors(&ended, &key)),
        with_state(named("broken"), &broken).with_body(&sectors(&broken, &key)),
        flip(with_state(named("torn-sector"), &older), 300),
        flip(flip(refused("both-torn", TAG), 300), SECTOR as isize + 60),
        flip(named("flipped-older-sector"), SECTOR as isize + 60),
        refused("sectors-exchanged", TAG).with_body(&swapped),
        refused("no-state", TAG).with_body(&[0; 2 * SECTOR]),
        refused("of-another-database", TAG).with_bytes("file-id", &OTHER_ID),
        under_older.clone().with_bytes("older-dek", &key_bytes(32)),
        under_older.failing("key-of-no-row", "unauthentic", TAG),
        newer("unknown-version", "version 2 with flags 0x1 is not known", 11, 2),
        newer("unknown-flag", "version 1 with flags 0x5 is not known", 15, 5),
        newer("padding-in-use", "byte 256 is not zero", 256, 1),
        good.failing("sequence-of-the-other-sector", "corrupt", "its fields are malformed")
            .with_body(&signed(23, 9)),
        good,
    ])
}

fn segments() -> Result<Vec<Case>> {
    let (key, behind) = (key()?, Lsn::new(3, 2));
    let body = segment((3, 2), &SECOND, (3, 4), behind)?;
    let good = case("archive-segment", "written", Algorithm::Aes256)
        .with("name", "00000003-00000003.frames")
        .with("page-size", PAGE_BYTES)
        .with_bytes("fork", &FORK)
        .with("behind", behind)
        .with_bytes("log-header", &header(2))
        .with("frames", 2)
        .with_body(&body);
    let signed = |at: usize, value: u8| {
        let mut body = body.clone();
        body[at] = value;
        let mac = key.sign(&[&body[..SEGMENT_HEAD_BYTES - 32]]);
        body[SEGMENT_HEAD_BYTES - 32..SEGMENT_HEAD_BYTES].copy_from_slice(&mac);
        body
    };
    let refused = |kind: &str, error: &str| good.failing(kind, "unauthentic", error);
    let newer = |kind: &str, error: &str, at: usize| {
        good.failing(kind, "unsupported", error).with_body(&signed(at, 2))
    };
    let at = |frame: usize, byte: usize| (SEGMENT_HEAD_BYTES + frame * FRAME_BYTES + byte) as isize;
    let mut exchanged = body.clone();
    let (head, frames) = exchanged.split_at_mut(SEGMENT_HEAD_BYTES);
    frames.rotate_left(FRAME_BYTES);
    let exchanged = [head, frames].concat();
    // Authentic, of the same run and place, and not what was kept.
    let other = segment((3, 2), &BRANCHED, (3, 4), behind)?;
    let other = [&body[..SEGMENT_HEAD_BYTES], &other[SEGMENT_HEAD_BYTES..]].concat();
    Ok(vec![
        good.failing("cut-frame", "corrupt", "a frame is missing")
            .with_body(&body[..body.len() - 1]),
        good.clone()
            .with("kind", "more-behind-its-frames")
            .with_body(&[&body[..], &[7; 600]].concat()),
        refused("other-frames", "has other frames than were kept in it").with_body(&other),
        flip(refused("flipped-head", HEAD), 70),
        flip(refused("forged", HEAD), SEGMENT_HEAD_BYTES as isize - 1),
        refused("of-another-database", HEAD).with_bytes("file-id", &OTHER_ID),
        refused("of-another-name", "has other frames than its name says")
            .with("name", "00000003-00000002.frames"),
        newer("unknown-version", "version 2 of kept frames is not known", 11),
        newer("byte-in-use", "byte 12 is not zero", 12),
        newer("padding-in-use", "byte 132 is not zero", 132),
        flip(refused("flipped-frame", TAG), at(0, 100)),
        flip(refused("flipped-commit-size", TAG), at(1, 7)),
        flip(refused("flipped-stamp", TAG), at(1, 8)),
        refused("frames-exchanged", TAG).with_body(&exchanged),
        good,
    ])
}

fn marks() -> Result<Vec<Case>> {
    let run = Run::of(&header(2), Version::Second);
    let time = Time::from_units(1_700_000_000 * 15_625 + 7);
    let stamp = Stamp { time, first: true, mark_follows: true, ..Stamp::default() };
    let keys = container(Algorithm::Aes256, GENERATION)?;
    let name = MarkedFrame::of(&run, 3, stamp).file_name();
    let of = |kind: &str, name_of: &str, about: &str| -> Result<Case> {
        let sealed = Mark::new(name_of, about)?.seal(&keys, &mut Fixed(90), (&run, stamp), 3)?;
        Ok(case("archive-mark", kind, Algorithm::Aes256)
            .with("name", &name)
            .with_bytes("log-header", &header(2))
            .with_bytes("mark", name_of.as_bytes())
            .with_bytes("description", about.as_bytes())
            .with_body(&sealed))
    };
    let good = of("written", "before the deployment", "change 4711, for Grüße")?;
    let refused = |kind: &str| good.failing(kind, "unauthentic", "a mark is of another commit");
    // What a later version would seal, or nobody.
    let sealed = |kind: &str, error: &str, content: &[u8]| -> Result<Case> {
        let mut frame = vec![0; 16];
        frame.extend_from_slice(content);
        frame.resize(good.body.len(), 0);
        let mut unit = vec![0; good.body.len()];
        wal::seal_frame(&keys, &mut Fixed(91), (&run, stamp), 3, &frame, &mut unit)?;
        Ok(good.failing(kind, "corrupt", error).with_body(&unit))
    };
    let other = |from: &str, to: &str| name.replace(from, to);
    let later = Stamp { time: Time::from_units(time.units() + 1), ..stamp };
    Ok(vec![
        of("without-a-description", "x", "")?,
        flip(refused("flipped"), 100),
        flip(refused("flipped-page-number"), 3),
        refused("cut").with_body(&good.body[..good.body.len() - 1]),
        refused("of-another-frame").with("name", other("-00000003-", "-00000004-")),
        refused("of-another-stamp").with("name", MarkedFrame::of(&run, 3, later).file_name()),
        refused("of-another-run").with_bytes("log-header", &header(1)).with(
            "name",
            MarkedFrame::of(&Run::of(&header(1), Version::Second), 3, stamp).file_name(),
        ),
        refused("of-another-database").with_bytes("file-id", &OTHER_ID),
        sealed("malformed", "the fields of a mark are malformed", b"\0\0\0\0")?,
        sealed("padding-in-use", "a mark has more than its fields", b"\0\x01x\0\0y")?,
        good,
    ])
}

fn with_segments(case: Case, segments: &[Vec<u8>]) -> Case {
    let old = (1..).map(|number| format!("segment-{number}"));
    let old = old.take_while(|name| case.get(name).is_some()).collect::<Vec<_>>();
    let case = old.iter().fold(case, |case, name| case.without(name));
    let numbered = (1..).zip(segments);
    numbered.fold(case, |case, (number, one)| case.with_bytes(&format!("segment-{number}"), one))
}

/// Commits as LSN, time in units of 64 us and pages.
fn commits(of: &[(Lsn, u8, u64, u32)]) -> String {
    let of = of.iter().map(|(lsn, run, frame, pages)| {
        let time = 1_700_000_000 * 15_625 + 100 * u64::from(*run) + frame - 1;
        format!("{lsn} {time} {pages}")
    });
    of.collect::<Vec<_>>().join(", ")
}

fn archives() -> Result<Vec<Case>> {
    let (state, key) = (state()?, key()?);
    let first = segment((2, 1), &FIRST, (1, 3), Lsn::new(1, 0))?;
    let second = segment((3, 2), &SECOND, (1, 2), Lsn::new(2, 3))?;
    let third = segment((3, 2), &SECOND, (3, 4), Lsn::new(3, 2))?;
    let before = [(Lsn::new(2, 2), 1, 2, 3), (Lsn::new(2, 3), 1, 3, 3)];
    let two = [(3, 1, 1), (3, 2, 2), (3, 3, 3)];
    let two = two.map(|(epoch, frame, place)| (Lsn::new(epoch, frame), 2, place, 3));
    let all = [&before[..], &two[..], &[(Lsn::new(3, 4), 2, 4, 4)]].concat();
    let of = |kind: &str, state: &ArchiveState, found: &[(Lsn, u8, u64, u32)]| {
        case("log-archive", kind, Algorithm::Aes256)
            .with_bytes("fork", &FORK)
            .with("page-size", PAGE_BYTES)
            .with("behind", Lsn::new(1, 0))
            .with("last", state.live.lsn(state.live.kept))
            .with("commits", commits(found))
            .with_body(&sectors(state, &key))
    };
    let parts = [first.clone(), second.clone(), third.clone()];
    let good = with_segments(of("whole", &state, &all), &parts);
    let broken = |kind: &str, at: Lsn, segments: &[Vec<u8>]| {
        let error = format!("the frames up to LSN {at} are not there");
        with_segments(good.failing(kind, "corrupt", &error), segments)
    };
    let branch = ArchiveState {
        live: LogRun { behind: Lsn::new(3, 3), ..run_of(4, 2, &BRANCHED, (4, 4))? },
        before: LogRun::default(),
        highest: 4,
        ..state
    };
    let fourth = segment((4, 2), &BRANCHED, (4, 4), Lsn::new(3, 3))?;
    let anew = (Lsn::new(4, 4), 2, 4, 3);
    let branched = [&before[..], &two[..], &[anew]].concat();
    let with_branch = [&parts[..], &[fourth]].concat();
    let behind_set = ArchiveState { backed_up: Lsn::new(3, 4), ..branch };
    let longer = ArchiveState { live: LogRun { kept: 3, ..state.live }, ..state };
    let nothing = ArchiveState { backed_up: Lsn::new(3, 4), ..state };
    let padded = ArchiveState {
        live: LogRun { behind: Lsn::new(1, 0), ..run_of(2, 3, &PADDED, (1, 4))? },
        before: LogRun::default(),
        highest: 2,
        ..state
    };
    let of_padded = [(Lsn::new(2, 2), 3, 2, 3), (Lsn::new(2, 4), 3, 4, 3)];
    let mut flipped = second.clone();
    flipped[SEGMENT_HEAD_BYTES + 8] ^= 0x40;
    let mut resealed = second.clone();
    resealed[SEGMENT_HEAD_BYTES + 8] ^= 0x10;
    let flips = |kind: &str, second: Vec<u8>| {
        let parts = [first.clone(), second, third.clone()];
        with_segments(good.failing(kind, "unauthentic", TAG), &parts)
    };
    let mut of_other_fork = second.clone();
    of_other_fork[32] ^= 1;
    let mac = key.sign(&[&of_other_fork[..SEGMENT_HEAD_BYTES - 32]]);
    of_other_fork[SEGMENT_HEAD_BYTES - 32..SEGMENT_HEAD_BYTES].copy_from_slice(&mac);
    Ok(vec![
        with_segments(of("branch", &branch, &branched), &with_branch),
        with_segments(of("branch-behind-a-set", &behind_set, &[anew]), &with_branch)
            .with("behind", Lsn::new(3, 3)),
        with_segments(of("frames-behind-the-end", &longer, &all[..5]), &parts),
        with_segments(of("nothing-new", &nothing, &[]), &parts)
            .with("behind", Lsn::new(3, 4))
            .with("commits", "nothing"),
        with_segments(
            of("padded", &padded, &of_padded),
            &[segment((2, 3), &PADDED, (1, 4), Lsn::new(1, 0))?],
        ),
        broken("segment-missing", Lsn::new(3, 2), &[first.clone(), third.clone()]),
        broken(
            "segment-of-another-fork",
            Lsn::new(3, 2),
            &[first.clone(), of_other_fork, third.clone()],
        ),
        broken("last-segment-missing", Lsn::new(3, 4), &[first.clone(), second.clone()]),
        flips("flipped-first", flipped),
        flips("flipped-reseals-only", resealed),
        good.failing("of-another-fork", "unauthentic", "another recovery fork")
            .with_bytes("fork", &key_bytes(1)[..16]),
        good,
    ])
}

/// Copies of the header beside the state that they belong to, or do not.
fn changed_pages() -> Result<Vec<Case>> {
    let base: [u8; 32] = std::array::from_fn(|at| 0x30 + at as u8);
    let mut changed = ChangedPages::none(FILE_ID, FORK, base, Lsn::new(2, 3));
    [1, 2, 9, 30].into_iter().for_each(|page| changed.add(page));
    changed.least = 40;
    changed.upto = Lsn::new(4, 5);
    let key = key()?;
    let of = |kind: &str, changed: &ChangedPages, key: &HeaderKey| {
        case("archive-changed", kind, Algorithm::Aes256)
            .with_bytes("fork", &FORK)
            .with_bytes("base", &base)
            .with("from", changed.from)
            .with("upto", changed.upto)
            .with("least", changed.least)
            .with("pages", if changed.count() == 0 { "" } else { "1 2 9 30" })
            .with_body(&changed.encode(key))
    };
    let good = of("written", &changed, &key);
    let older = Dek::from_secret(Secret32::new(&mut key_bytes(32)));
    let under_older = of("older-key", &changed, &HeaderKey::derive(&older, &FILE_ID)?);
    let refused = |kind: &str, error: &str| good.failing(kind, "unauthentic", error);
    let (tag, other) = ("is not authentic", "is not the one that was written");
    let signed = |at: usize, value: u8| {
        let mut bytes = good.body.clone();
        bytes[at] = value;
        let mac = key.sign(&[&bytes[..480]]);
        bytes[480..512].copy_from_slice(&mac);
        bytes
    };
    let in_use = "byte 92 is not zero";
    Ok(vec![
        of("none", &ChangedPages::none(FILE_ID, FORK, base, Lsn::new(2, 3)), &key),
        under_older.clone().with_bytes("older-dek", &key_bytes(32)),
        under_older.failing("key-of-no-row", "unauthentic", tag),
        flip(refused("flipped", tag), 40),
        flip(refused("flipped-bit-of-a-page", other), -1),
        refused("cut", other).with_body(&good.body[..good.body.len() - 1]),
        refused("cut-head", "is cut").with_body(&good.body[..511]),
        good.failing("newer-version", "unsupported", "version 2").with_body(&signed(11, 2)),
        good.failing("byte-in-use", "unsupported", in_use).with_body(&signed(92, 1)),
        good,
    ])
}

fn header_copies() -> Result<Vec<Case>> {
    let (state, key) = (state()?, key()?);
    let mut of = super::header(&dek(), FILE_ID, Algorithm::Aes256)?;
    of.second = Some(Second {
        model: RecoveryModel::Full,
        has_chain: true,
        fork: FORK,
        chain_begins: Lsn::new(1, 0).word(),
        ..Second::default()
    });
    let copy = encoded(&of)?;
    let good = case("archive-header", "written", Algorithm::Aes256)
        .with_bytes("fork", &FORK)
        .with_bytes("sectors", &sectors(&state, &key))
        .with_body(&copy);
    let refused = |kind: &str, error: &str| good.failing(kind, "unauthentic", error);
    let beside = |kind: &str, error: &str, state: &ArchiveState, key: &HeaderKey| {
        refused(kind, error).with_bytes("sectors", &sectors(state, key))
    };
    let other_key =
        HeaderKey::derive(&Dek::from_secret(Secret32::new(&mut key_bytes(32))), &FILE_ID)?;
    let other_file = ArchiveState { file_id: OTHER_ID, ..state };
    let other_fork = ArchiveState { fork: [7; 16], ..state };
    let simple = patched(&copy, |copy| (copy[69], copy[70]) = (3, 0))?;
    let mut forged = copy.clone();
    forged[144] ^= 1;
    Ok(vec![
        flip(good.failing("flipped", "corrupt", "its checksum does not match"), 130),
        refused("forged", TAG).with_body(&with_checksum(forged)),
        beside("beside-another-database", "is of another database", &other_file, &key),
        beside("beside-another-fork", "is of another recovery fork", &other_fork, &key),
        beside("beside-another-key", TAG, &state, &other_key),
        refused("without-a-chain", "has no chain of log backups").with_body(&simple),
        good,
    ])
}
