//! Logs of the vectors: where a whole WAL ends, what the end of a journal says, and a chained event log.

use std::path::Path;

use pellucid::keys::ContainerKeys;
use pellucid::log_sector::LogSector;
use pellucid::memory_index::{object_name, record, token_of, Head, Place};
use pellucid::wal::{
    open_frame, page_and_commit, Chain, Run, Version, WalHeader, FRAME_HEADER_BYTES, HEADER_BYTES,
};
use pellucid::{Error, Result, Subject};
use pellucid_keyring::check_events;
use pellucid_vfs::log_end::{Certainty, Database, LogEnd};
use pellucid_vfs::super_journal::{look, Named};

use super::case::Case;
use super::objects::{container_header, dek, in_a_home};

/// As with `strict_log`: commits behind a damaged frame are an error.
pub fn wal(case: &Case) -> Result<()> {
    let (of, dek) = (container_header(case)?, dek(case));
    let keys = ContainerKeys::new(&of, &dek)?;
    let version = Version::of_database(&of);
    let frame_bytes = FRAME_HEADER_BYTES + case.number("page-size") as usize;
    let header: [u8; HEADER_BYTES] = *case.body.first_chunk().unwrap();
    let run = Run::of(&header, version);
    let is_whole = WalHeader::parse_sealed(&header, version).is_some();
    let (mut chain, mut counted, mut pages) = (Chain::new(header), 0, 0);
    let mut frame = vec![0; frame_bytes];
    let frames = (1..).zip(case.body[HEADER_BYTES..].chunks_exact(frame_bytes));
    for (number, sealed) in frames.filter(|_| is_whole) {
        if open_frame(&keys, &run, number, sealed, &mut frame).is_err() || !chain.goes_on(&frame) {
            break;
        }
        let (_, commit) = page_and_commit(&frame);
        if commit != 0 {
            (counted, pages) = (number, commit);
        }
    }
    let read = |into: &mut [u8], at: u64| {
        into.copy_from_slice(&case.body[at as usize..][..into.len()]);
        Ok(pellucid_vfs::ReadEnd::Full)
    };
    let in_file = case.get("in-file") == Some("yes");
    let sector = case.get("sector").map(|_| {
        LogSector::parse(&case.array("sector"), [keys.header_key()]).expect("sector 2 of the case")
    });
    let header_of = (version == Version::Second).then_some(of);
    let database =
        Database { header: header_of, keys: &keys, has_page: &|_, _| Ok(in_file), sector };
    let mut end = LogEnd::new(&read, case.body.len() as u64, database, frame_bytes);
    let unpadded = end.is_unpadded(counted).unwrap();
    let lost = match is_whole {
        true => end.lost(header, counted, unpadded).unwrap(),
        false => end.lost_by_header(header).unwrap(),
    };
    if let Some(lost) = lost {
        if version == Version::Second {
            assert_eq!(u64::from(lost.commits), case.number("lost"), "commits lost");
            assert_eq!(lost.certainty == Certainty::Attacked, case.text("sure") == "yes");
        }
        return Err(Error::unauthentic(Subject::WalHeader, lost.to_string()));
    }
    assert_eq!(u64::from(counted), case.number("frames"));
    assert_eq!(u64::from(pages), case.number("pages"));
    Ok(())
}

pub fn super_journal(case: &Case) -> Result<()> {
    let read = |into: &mut [u8], at: u64| {
        into.copy_from_slice(&case.body[at as usize..][..into.len()]);
        Ok(())
    };
    let found = look(case.body.len() as u64, Path::new("/srv/app.db-journal"), read).unwrap();
    let says = if matches!(found, Named::Gone(_)) { "committed" } else { "not committed" };
    assert_eq!(says, case.text("says"), "{found:?}");
    Ok(())
}

/// The head of a wal-index in memory, its name, and the record in `-shm`.
pub fn index_object(case: &Case) -> Result<()> {
    let place = |device: &str, inode: &str| Place {
        device: case.number(device),
        inode: case.number(inode),
    };
    let head = Head {
        token: case.array("token"),
        boot: case.array("boot-id"),
        database: place("device", "inode"),
        index: place("index-device", "index-inode"),
    };
    let body = case.body[..].try_into().unwrap();
    let wrong = || Error::corrupt(Subject::Index, "no head of an object");
    assert_eq!(Head::parse(body).ok_or_else(wrong)?, head);
    assert_eq!(head.encode()[..], case.body);
    assert_eq!(object_name(head.database, &head.boot), case.text("name"));
    assert_eq!(record(&head.token)[..], case.bytes("record"));
    assert_eq!(token_of(&record(&head.token)), Some(head.token));
    Ok(())
}

/// Found by `events verify`.
pub fn event_log(case: &Case) -> Result<()> {
    let home = in_a_home(case, &[("keyring/events", &case.bytes("keyring-events"))]);
    std::fs::write(home.path().join("events.log"), &case.body).unwrap();
    let found = check_events(home.path())?;
    if let Some(wrong) = found.wrong {
        assert_eq!(wrong.line as u64, case.number("line"), "{wrong:?}");
        let told = format!("line {} is not as it was written: {:?}", wrong.line, wrong.wrong);
        return Err(Error::unauthentic(Subject::File("events.log".into()), told));
    }
    assert_eq!(found.last_number, case.number("last"));
    Ok(())
}
