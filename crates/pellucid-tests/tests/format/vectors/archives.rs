//! How the vectors of a log archive are read: its state, a segment, its copy of the header, and the way through both.

use pellucid::hash::Sha256;
use pellucid::header::Header;
use pellucid::keys::{ContainerKeys, HeaderKey};
use pellucid::log_archive::{
    check_header, ArchiveState, ChangedPages, LogRun, Mark, MarkedFrame, Segment,
    ARCHIVE_SECTOR_BYTES, SEGMENT_HEAD_BYTES,
};
use pellucid::lsn::Lsn;
use pellucid::secret::Secret32;
use pellucid::unit::TAIL_BYTES;
use pellucid::wal::{open_frame, page_and_commit, Run, Stamp, Version, FRAME_HEADER_BYTES};
use pellucid::{Dek, Error, Result, Subject};

use super::case::Case;
use super::objects::{container, dek};

fn lsn(case: &Case, key: &str) -> Lsn {
    Lsn::parse(case.text(key)).unwrap()
}

fn run(case: &Case, key: &str) -> LogRun {
    let numbers: Vec<u32> =
        case.text(key).split(' ').map(|number| number.parse().unwrap()).collect();
    let [epoch, first, kept, handed_out, count, behind_epoch, behind_frame] = numbers[..] else {
        panic!("`{key}`")
    };
    LogRun {
        salts: case.array(&format!("{key}-salts")),
        epoch,
        first,
        kept,
        handed_out,
        count,
        behind: Lsn::new(behind_epoch, behind_frame),
        tail: case.array(&format!("{key}-tail")),
    }
}

fn header_keys(case: &Case) -> Result<Vec<HeaderKey>> {
    let id = case.array("file-id");
    let older = case.get("older-dek").map(|_| case.array("older-dek"));
    let older = older.map(|mut bytes| Dek::from_secret(Secret32::new(&mut bytes)));
    let current = dek(case);
    std::iter::once(&current).chain(&older).map(|dek| HeaderKey::derive(dek, &id)).collect()
}

fn newest(case: &Case) -> Result<ArchiveState> {
    newest_of(case, &case.body)
}

fn newest_of(case: &Case, sectors: &[u8]) -> Result<ArchiveState> {
    let (first, second) = sectors.split_at(ARCHIVE_SECTOR_BYTES);
    let sectors = [first.try_into().unwrap(), second.try_into().unwrap()];
    ArchiveState::newest(&sectors, &header_keys(case)?)
}

pub fn state(case: &Case) -> Result<()> {
    let found = newest(case)?;
    let expected = ArchiveState {
        sequence: case.number("sequence"),
        file_id: case.array("file-id"),
        fork: case.array("fork"),
        has_base: case.text("has-base") == "yes",
        has_ended: case.text("has-ended") == "yes",
        live: run(case, "live"),
        before: run(case, "before"),
        highest: case.number("highest") as u32,
        broken_epoch: case.number("broken-epoch") as u32,
        backed_up: lsn(case, "backed-up"),
        broken_at: lsn(case, "broken-at"),
        last_set: case.array("last-set"),
        base: lsn(case, "base"),
    };
    assert_eq!(found, expected);
    let at = if found.place() == 0 { 0 } else { ARCHIVE_SECTOR_BYTES };
    let by = header_keys(case)?;
    assert_eq!(found.encode(by.last().unwrap())[..], case.body[at..at + ARCHIVE_SECTOR_BYTES]);
    Ok(())
}

pub fn header(case: &Case) -> Result<()> {
    let header = Header::parse(&case.body, 0)?;
    let keys = header_keys(case)?;
    Header::authenticate(&case.body, &keys[0], 0)?;
    check_header(&header, &newest_of(case, &case.bytes("sectors"))?)?;
    assert_eq!(header.second.unwrap().fork, case.array("fork"));
    Ok(())
}

/// The list of changed pages.
pub fn changed(case: &Case) -> Result<()> {
    let keys = header_keys(case)?;
    let changed = ChangedPages::parse(&case.body, &keys)?;
    let pages = case.text("pages").split_whitespace().map(|page| page.parse::<u32>().unwrap());
    let mut expected = ChangedPages::none(
        case.array("file-id"),
        case.array("fork"),
        case.array("base"),
        lsn(case, "from"),
    );
    expected.upto = lsn(case, "upto");
    pages.for_each(|page| expected.add(page));
    expected.least = case.number("least") as u32;
    assert_eq!(changed, expected);
    assert_eq!(changed.encode(keys.last().unwrap()), case.body, "encoded again");
    Ok(())
}

/// Frames that were kept, as a file has them.
struct Kept<'a> {
    segment: Segment,
    frames: Vec<&'a [u8]>,
}

fn kept<'a>(case: &Case, file: &'a [u8]) -> Result<Kept<'a>> {
    let (head, frames) = file.split_at(SEGMENT_HEAD_BYTES);
    let segment = Segment::parse(head.try_into().unwrap(), &header_keys(case)?)?;
    let frame_bytes = case.number("page-size") as usize + FRAME_HEADER_BYTES;
    let frames: Vec<_> = frames.chunks_exact(frame_bytes).take(segment.count as usize).collect();
    if frames.len() < segment.count as usize {
        return Err(Error::corrupt(Subject::LogArchive, "a frame is missing"));
    }
    Ok(Kept { segment, frames })
}

impl Kept<'_> {
    fn open(&self, keys: &ContainerKeys, at: usize) -> Result<Vec<u8>> {
        let run = Run::of(&self.segment.header, Version::Second);
        let mut frame = vec![0; self.frames[at].len()];
        let number = self.segment.first + at as u32;
        open_frame(keys, &run, number, self.frames[at], &mut frame).map(|()| frame)
    }

    /// Whether these are the frames that were kept: a frame opens at its place in its run, whatever epoch it was of.
    fn check_tails(&self) -> Result<()> {
        let mut tails = Sha256::new();
        self.frames.iter().for_each(|frame| tails.update(&frame[frame.len() - TAIL_BYTES..]));
        match tails.finish() == self.segment.tails {
            true => Ok(()),
            false => Err(Error::unauthentic(
                Subject::LogArchive,
                "it has other frames than were kept in it",
            )),
        }
    }
}

pub fn segment(case: &Case) -> Result<()> {
    let found = kept(case, &case.body)?;
    let (epoch, first) = Segment::of_file_name(case.text("name")).unwrap();
    if (found.segment.epoch, found.segment.first) != (epoch, first) {
        let cause = format!("`{}` has other frames than its name says", case.text("name"));
        return Err(Error::unauthentic(Subject::LogArchive, cause));
    }
    let keys = container(case)?;
    (0..found.frames.len()).try_for_each(|at| found.open(&keys, at).map(drop))?;
    found.check_tails()?;
    let expected = Segment {
        file_id: case.array("file-id"),
        fork: case.array("fork"),
        epoch,
        first,
        behind: lsn(case, "behind"),
        header: case.array("log-header"),
        count: case.number("frames") as u32,
        tails: found.segment.tails,
    };
    assert_eq!(found.segment, expected);
    assert_eq!(found.segment.file_name(), case.text("name"));
    let by = header_keys(case)?;
    assert_eq!(expected.encode(&by[0])[..], case.body[..SEGMENT_HEAD_BYTES]);
    Ok(())
}

pub fn mark(case: &Case) -> Result<()> {
    let marked = MarkedFrame::of_file_name(case.text("name")).unwrap();
    let run = Run::of(&case.array("log-header"), Version::Second);
    let stamp = Stamp::of(&[[0; 8], marked.stamp].concat());
    let found = Mark::open(&container(case)?, (&run, stamp), marked.frame, &case.body)?;
    assert_eq!(found.name().as_bytes(), case.bytes("mark"));
    assert_eq!(found.description().as_bytes(), case.bytes("description"));
    assert_eq!(MarkedFrame::of(&run, marked.frame, stamp).file_name(), case.text("name"));
    assert!(stamp.mark_follows);
    Ok(())
}

/// Goes the way that docs/format.md describes, with the formats of the code.
pub fn archive(case: &Case) -> Result<()> {
    let state = newest(case)?;
    if state.fork != case.array("fork") || state.file_id != case.array("file-id") {
        let cause = "it is of another database, or of another recovery fork of this one";
        return Err(Error::unauthentic(Subject::LogArchive, cause));
    }
    let files: Vec<Vec<u8>> = (1..)
        .map(|number| format!("segment-{number}"))
        .take_while(|name| case.get(name).is_some())
        .map(|name| case.bytes(&name))
        .collect();
    let mut all = files.iter().map(|file| kept(case, file)).collect::<Result<Vec<_>>>()?;
    all.sort_by_key(|one| (one.segment.epoch, one.segment.first));
    let last = state.live.lsn(state.live.kept);
    let (mut wanted, mut way) = (last, Vec::new());
    while wanted > state.backed_up {
        let leads = |one: &&Kept<'_>| {
            let of = &one.segment;
            of.fork == state.fork
                && of.epoch == wanted.epoch
                && of.first <= wanted.frame
                && wanted.frame < of.first + one.frames.len() as u32
                && of.behind < wanted
        };
        let Some(found) = all.iter().rev().find(leads) else {
            let cause = format!("the frames up to LSN {wanted} are not there");
            return Err(Error::corrupt(Subject::LogArchive, cause));
        };
        way.push((found, wanted.frame));
        wanted = found.segment.behind;
    }
    let keys = container(case)?;
    let mut commits: Vec<(Lsn, u64, u32)> = Vec::new();
    for (kept, end) in way.into_iter().rev() {
        let mut begins = true;
        kept.check_tails()?;
        for at in 0..=(end - kept.segment.first) as usize {
            let frame = kept.open(&keys, at)?;
            let (stamp, size) = (Stamp::of(kept.frames[at]), page_and_commit(&frame).1);
            let lsn = Lsn::new(kept.segment.epoch, kept.segment.first + at as u32);
            let repeats = begins && !stamp.first;
            if !repeats && size != 0 {
                commits.push((lsn, stamp.time.units(), size));
            }
            begins = size != 0;
        }
    }
    let found: Vec<_> =
        commits.iter().map(|(lsn, time, pages)| format!("{lsn} {time} {pages}")).collect();
    let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
    assert_eq!(found, case.text("commits"));
    assert_eq!((wanted, last), (lsn(case, "behind"), lsn(case, "last")));
    Ok(())
}
