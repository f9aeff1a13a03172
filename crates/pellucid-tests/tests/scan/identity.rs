//! A copy of a database gets a file id and a key of its own: pages of the one are pasted into the other, before and after,
//! and each write of the change is left out or torn.

use std::fs;

use pellucid::header::{Header, COPY_BYTES, COPY_OFFSETS, REGION_BYTES};
use pellucid_engine::scan;
use pellucid_engine::scan::Ended;

use super::{dump, Bench};

/// Everything of a database that nobody has open.
fn bytes_of(bench: &Bench) -> Vec<u8> {
    fs::read(bench.path()).unwrap()
}

/// What somebody who opens it reads, or why not.
fn read_all(bench: &Bench) -> Result<String, String> {
    let sql = "SELECT count(*) || ' ' || group_concat(body) FROM (SELECT body FROM t ORDER BY id)";
    let read = bench.try_open().and_then(|it| it.query_row(sql, [], |row| row.get(0)));
    read.map_err(|error| error.to_string())
}

#[test]
fn a_copy_gets_an_identity_of_its_own() {
    for mode in ["wal", "delete"] {
        let (original, copy) = (Bench::new(), Bench::new());
        drop(original.make(mode, 1024, 600));
        let content = read_all(&original).unwrap();
        fs::write(copy.path(), bytes_of(&original)).unwrap();
        let page = |bytes: &[u8], number: usize| {
            let at = REGION_BYTES as usize + (number - 1) * 1024;
            bytes[at..at + 1024].to_vec()
        };
        // A page as SQLite reads it with that of the other in its place.
        let pasted = |into: &Bench, from: &[u8], number: usize| {
            let own = bytes_of(into);
            let mut bytes = own.clone();
            let at = REGION_BYTES as usize + (number - 1) * 1024;
            bytes[at..at + 1024].copy_from_slice(&page(from, number));
            fs::write(into.path(), bytes).unwrap();
            let sql = "SELECT hex(data) FROM sqlite_dbpage WHERE pgno = ?";
            let read = into.open().query_row(sql, [number as u32], |row| row.get::<_, String>(0));
            fs::write(into.path(), own).unwrap();
            read.map_err(|error| error.to_string())
        };
        // As long as both are one file, a page of the one is a page of the other.
        let before = bytes_of(&original);
        assert!(pasted(&copy, &before, 5).is_ok());

        let header = scan::rekey_as_new(&copy.path(), None).unwrap();
        let old = header.scan.older_id.unwrap();
        assert_ne!(header.file_id, old);
        assert!(read_all(&copy).as_ref() == Ok(&content), "{mode}: in between");
        let writer = copy.open();
        writer.execute("UPDATE t SET body = body || '!' WHERE id = 7", []).unwrap();
        writer.execute("UPDATE t SET body = rtrim(body, '!') WHERE id = 7", []).unwrap();
        drop(writer);
        assert_eq!(super::scan(&copy), Ended::Complete);
        let (one, other) = (bytes_of(&original), bytes_of(&copy));
        assert!(one == before, "{mode}: the original was touched");
        for (bytes, id) in [(&one, old), (&other, header.file_id)] {
            assert_eq!(bytes[24..40], id, "sector 0");
            for at in COPY_OFFSETS {
                let found =
                    Header::parse(&bytes[at as usize..at as usize + COPY_BYTES], 0).unwrap();
                assert_eq!((found.file_id, found.scan.older_id, found.deks.len()), (id, None, 1));
            }
        }
        let pages = (one.len() - REGION_BYTES as usize) / 1024;
        for number in [1, 2, 5, pages / 2] {
            for (into, from) in [(&copy, &one), (&original, &other)] {
                let refused = pasted(into, from, number);
                assert!(refused.is_err(), "{mode}: page {number} opens");
            }
        }
        for bench in [&original, &copy] {
            assert!(read_all(bench).as_ref() == Ok(&content), "{mode}: at the end");
            let connection = bench.open();
            connection.execute("INSERT INTO t VALUES (100000, 'after')", []).unwrap();
            dump(&connection);
        }
    }
}

#[test]
fn an_identity_that_is_interrupted_is_finished() {
    let bench = Bench::new();
    drop(bench.make("delete", 1024, 300));
    let content = read_all(&bench).unwrap();
    let before = bytes_of(&bench);
    let header = scan::rekey_as_new(&bench.path(), None).unwrap();
    let after = bytes_of(&bench);
    assert!(before[REGION_BYTES as usize..] == after[REGION_BYTES as usize..]);
    let copy =
        |number: usize| COPY_OFFSETS[number] as usize..COPY_OFFSETS[number] as usize + COPY_BYTES;
    // In the order in which they are written; what is torn is half of each.
    let parts = [copy(0), copy(1), 0..512];
    for (written, torn) in (0..=parts.len()).flat_map(|count| [(count, false), (count, true)]) {
        let place = Bench::new();
        let mut bytes = before.clone();
        for part in &parts[..written] {
            bytes[part.clone()].copy_from_slice(&after[part.clone()]);
        }
        if let (true, Some(part)) = (torn, parts.get(written)) {
            let half = part.start..part.start + part.len() / 2;
            bytes[half.clone()].copy_from_slice(&after[half]);
        }
        fs::write(place.path(), bytes).unwrap();
        assert!(read_all(&place).as_ref() == Ok(&content), "{written} parts, torn: {torn}");
        let begun = written > 0;
        let ended = if begun { Ended::Complete } else { Ended::NothingToDo };
        assert_eq!(super::scan(&place), ended, "{written} parts, torn: {torn}");
        let id = if begun { header.file_id } else { header.scan.older_id.unwrap() };
        let done = bytes_of(&place);
        assert_eq!(done[24..40], id, "{written} parts, torn: {torn}");
        assert_eq!(Header::parse(&done[copy(1)], 1).unwrap().file_id, id);
        assert!(read_all(&place).as_ref() == Ok(&content));
    }
    // A sector 0 that names a third one is not what a scan left behind.
    let mut bytes = after;
    bytes[24] ^= 1;
    let sum = {
        let mut hash = pellucid::hash::Sha256::new();
        hash.update(&bytes[..480]);
        hash.finish()
    };
    bytes[480..512].copy_from_slice(&sum);
    fs::write(bench.path(), bytes).unwrap();
    assert!(read_all(&bench).is_err());
}
