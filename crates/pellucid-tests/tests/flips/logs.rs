//! WALs and hot journals, as a killed process leaves them.

use std::path::PathBuf;
use std::rc::Rc;

use rusqlite::Connection;

use super::bed::{class, Bed, Flips};
use super::bench::{Bench, Shape};
use super::content::{commits, dump, parts, plain, spill};
use super::random::Random;

const TAIL: usize = 32;

fn strays(bench: &Bench, name: &str) -> Vec<PathBuf> {
    ["-wal", "-shm", "-journal"].map(|rest| bench.path(&format!("{name}{rest}"))).to_vec()
}

/// The third outcome is the state after an earlier commit, with a line in the log.
pub fn wal(bench: &Rc<Bench>, shape: &Shape) -> Bed {
    let connection = bench.birth("a.db", shape.algorithm);
    shape.fill(&connection);
    let mut states = commits(&connection);
    let files: Vec<_> = [("a.db", "w.db"), ("a.db-wal", "w.db-wal")]
        .map(|(from, to)| (bench.path(to), bench.read(from).1))
        .to_vec();
    drop(connection);
    let right = states.pop().unwrap();
    let frame = 24 + shape.page_bytes;
    let frames: Vec<usize> = (32..files[1].1.len()).step_by(frame).collect();
    let classes = vec![
        class("WAL header", 1, [0..32]),
        class("WAL frame, head", 1, frames.iter().map(|at| *at..at + 16)),
        class("WAL frame, content", 1, frames.iter().map(|at| at + 16..at + frame - TAIL)),
        class("WAL frame, tail", 1, frames.iter().map(|at| at + frame - TAIL..at + frame)),
    ];
    let looker = bench.clone();
    Bed {
        name: format!("WAL, {shape:?}"),
        files,
        strays: strays(bench, "w.db"),
        classes,
        right,
        look: Box::new(move |_| looker.look("w.db", false)),
        third: Box::new(move |_, found| {
            found.logged && found.data.as_ref().is_ok_and(|data| states.contains(data))
        }),
    }
}

/// A super-journal's record, as SQLite appends it (pager.c, writeSuperJournal).
fn super_record(name: &str, page: usize) -> Vec<u8> {
    let sum: u32 = name.bytes().map(u32::from).sum();
    let lock_page = (1u32 << 30) / page as u32 + 1;
    [
        &lock_page.to_be_bytes()[..],
        name.as_bytes(),
        &(name.len() as u32).to_be_bytes(),
        &sum.to_be_bytes(),
        &pellucid::journal::MAGIC,
    ]
    .concat()
}

/// Database, journal and super-journal of `name`, where the transaction reached over two databases.
fn files(bench: &Bench, from: &str, name: &str, page: usize) -> Vec<(PathBuf, Vec<u8>)> {
    let mut journal = bench.read(&format!("{from}-journal")).1;
    let path = |suffix: &str| bench.path(&format!("{name}{suffix}"));
    let super_name = path("-mj012345678");
    journal.resize(journal.len().next_multiple_of(512), 0);
    journal.extend(super_record(super_name.to_str().unwrap(), page));
    let names = [path("-journal"), bench.path("elsewhere.db-journal")]
        .map(|path| format!("{}\0", path.display()))
        .concat();
    vec![
        (path(""), bench.read(from).1),
        (path("-journal"), journal),
        (super_name, names.into_bytes()),
    ]
}

/// The third outcome is what plain SQLite makes of the same damage: to the record by a broken checksum, to the
/// super-journal and its record, which are in clear, by the very bit.
pub fn journal(bench: &Rc<Bench>, shape: &Shape) -> Bed {
    let page = shape.page_bytes;
    let sealed = bench.birth("a.db", shape.algorithm);
    shape.fill(&sealed);
    let right = dump(&sealed).unwrap();
    spill(&sealed);
    let plain = plain(&bench.path("p.db"));
    shape.fill(&plain);
    spill(&plain);
    let ours = files(bench, "a.db", "j.db", page);
    let theirs = files(bench, "p.db", "q.db", page);
    drop((sealed, plain));
    let (headers, records) = parts(&theirs[1].1, page);
    assert_eq!(ours[1].1.len(), theirs[1].1.len(), "the same workload writes the same journal");
    assert!(records.len() > 3, "the transaction has to spill: {}", records.len());
    let record = page + 8;
    let tail = super_record(theirs[2].0.to_str().unwrap(), page).len();
    let end = ours[1].1.len();
    let classes = vec![
        class(
            "journal header, copies",
            1,
            headers.iter().flat_map(|at| [at + 32..at + 108, at + 256..at + 332]),
        ),
        class(
            "journal header, rest",
            1,
            headers.iter().flat_map(|at| [*at..at + 32, at + 108..at + 256, at + 332..at + 512]),
        ),
        class("journal record, page number", 1, records.iter().map(|at| *at..at + 4)),
        class("journal record, content", 1, records.iter().map(|at| at + 4..at + record - TAIL)),
        class("journal record, tail", 1, records.iter().map(|at| at + record - TAIL..at + record)),
        class("super-journal record", 1, [end - tail..end]),
        class("super-journal", 2, [0..ours[2].1.len()]),
    ];
    let (looker, witness) = (bench.clone(), bench.clone());
    let in_clear = end - tail;
    let third = move |flips: &Flips, found: &super::bed::Found| {
        let (file, at, bit) = flips[0];
        let of_plain = if file == 2 || at >= in_clear {
            (file, at, bit)
        } else {
            let Some(hit) = records.iter().find(|start| (**start..*start + record).contains(&at))
            else {
                return false;
            };
            if !found.logged {
                return false;
            }
            (1, hit + record - 1, 0)
        };
        strays(&witness, "q.db").iter().for_each(|path| drop(std::fs::remove_file(path)));
        for (file, (path, bytes)) in theirs.iter().enumerate() {
            let mut bytes = bytes.clone();
            if file == of_plain.0 {
                bytes[of_plain.1] ^= 1 << of_plain.2;
            }
            std::fs::write(path, bytes).unwrap();
        }
        let of_plain = Connection::open(&theirs[0].0).and_then(|connection| dump(&connection));
        match (&found.data, of_plain) {
            (Ok(found), Ok(expected)) => *found == expected,
            (Err(_), Err(_)) => true,
            _ => false,
        }
    };
    Bed {
        name: format!("journal, {shape:?}"),
        files: ours,
        strays: strays(bench, "j.db"),
        classes,
        right,
        look: Box::new(move |_| looker.look("j.db", false)),
        third: Box::new(third),
    }
}

/// An open temporary table, most of which lies in its file.
pub fn temporary(bench: &Rc<Bench>, random: &mut Random) -> Bed {
    let connection = bench.sealed("a.db").unwrap();
    let seed = random.below(1u64 << 32);
    connection
        .execute_batch(&format!(
            "PRAGMA temp_store=FILE; PRAGMA temp.cache_size=4; CREATE TEMP TABLE x(id INTEGER PRIMARY KEY, body);
             WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1500)
             INSERT INTO temp.x SELECT x, printf('row %d %s', x, hex(x * 7919 + {seed})) || hex(zeroblob(60)) FROM c;"
        ))
        .unwrap();
    let file = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| {
            std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().ends_with(" (deleted)"))
                && std::fs::metadata(path).is_ok_and(|about| about.len() > 5 * 4128)
                // Nor a database of an earlier round that is still held; one that is switched off is in clear.
                && std::fs::read(path).is_ok_and(|content| !content.starts_with(b"Pellucid "))
        })
        .expect("the temporary table has to spill");
    let read = move || {
        connection.execute_batch("PRAGMA shrink_memory")?;
        connection
            .query_row("SELECT group_concat(body) FROM temp.x", [], |row| row.get::<_, String>(0))
    };
    let right: String = read().unwrap();
    let content = std::fs::read(&file).unwrap();
    assert!(!content.windows(8).any(|window| window == b"row 100 "), "it is in clear");
    let blocks: Vec<usize> = (0..content.len() / 4128).map(|block| block * 4128).collect();
    let classes = vec![
        class("temporary file, content", 0, blocks.iter().map(|at| *at..at + 4096)),
        class("temporary file, tail", 0, blocks.iter().map(|at| at + 4096..at + 4128)),
    ];
    Bed {
        name: format!("temporary file, seed {seed}"),
        files: vec![(file, content)],
        strays: Vec::new(),
        classes,
        right,
        look: Box::new(move |_| super::bed::Found::new(read())),
        third: Box::new(|_, _| false),
    }
}
