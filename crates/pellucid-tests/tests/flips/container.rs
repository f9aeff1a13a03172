//! Containers in each encryption state that has a key in it, and interrupted conversions.

use std::rc::Rc;

use pellucid::hash::Sha256;
use pellucid::header::{Header, COPY_BYTES, COPY_OFFSETS, REGION_BYTES};
use pellucid::sector::{SectorZero, SECTOR_BYTES};
use pellucid_engine::scan;
use pellucid_engine::scan::{Ended, Options, Target};

use super::bed::{class, Bed, Class};
use super::bench::{Bench, Shape};
use super::content::{dump, plain};

#[derive(Debug, Clone, Copy)]
pub enum State {
    /// After a scan, whose progress is there.
    Encrypted,
    KeyChange,
    Decrypting,
    Unencrypted,
}

pub const STATES: [State; 4] =
    [State::Encrypted, State::KeyChange, State::Decrypting, State::Unencrypted];

const TAIL: usize = 32;

pub fn container(bench: &Rc<Bench>, state: State, shape: &Shape) -> Bed {
    let name = "a.db";
    let connection = bench.birth(name, shape.algorithm);
    shape.fill(&connection);
    drop(connection);
    let path = bench.path(name);
    match state {
        State::Encrypted | State::KeyChange => drop(scan::rekey(&path, None).unwrap()),
        State::Decrypting | State::Unencrypted => drop(scan::set(&path, Target::Off).unwrap()),
    }
    if matches!(state, State::Encrypted | State::Unencrypted) {
        let ended = scan::run(&path, &Options::default(), &mut |_, _, _| ()).unwrap();
        assert_eq!(ended, Ended::Complete);
    }
    let connection = bench.sealed(name).unwrap();
    // Some pages under the newer key.
    connection.execute("UPDATE t SET body = body || 'x' WHERE id < 9", []).unwrap();
    let right = dump(&connection).unwrap();
    drop(connection);
    let files = vec![bench.read(name)];
    let plain = matches!(state, State::Unencrypted | State::Decrypting);
    let classes = classes(&files[0].1, shape.page_bytes, plain);
    let looker = bench.clone();
    Bed {
        name: format!("container, {state:?}, {shape:?}"),
        files,
        strays: ["a.db-journal", "a.db-wal", "a.db-shm"].map(|name| bench.path(name)).to_vec(),
        classes,
        right,
        look: Box::new(move |writes| looker.look("a.db", writes)),
        third: Box::new(|_, _| false),
    }
}

/// docs/format.md, "Container", "Header", "Database page".
fn classes(file: &[u8], page: usize, plain: bool) -> Vec<Class> {
    let [first, second] = COPY_OFFSETS.map(|at| at as usize);
    let header = Header::parse(&file[first..first + COPY_BYTES], 0).unwrap();
    let deks = 128 + 104 * header.deks.len();
    let protectors = deks + header.protectors.iter().map(Vec::len).sum::<usize>();
    let both = |name, from: usize, to: usize| {
        class(name, 0, [first, second].map(|copy| copy + from..copy + to))
    };
    let pages: Vec<usize> = (REGION_BYTES as usize..file.len()).step_by(page).collect();
    let content = pages.iter().map(|at| *at..at + page - TAIL);
    let tails = pages.iter().map(|at| at + page - TAIL..at + page);
    let last = COPY_BYTES - 64;
    let written = |one: Class| Class { written: true, ..one };
    let hit_twice = Class {
        again: Some(second - first),
        ..class(
            "header, both copies",
            0,
            [first..first + protectors, first + last..first + COPY_BYTES],
        )
    };
    vec![
        class("sector 0", 0, [0..SECTOR_BYTES]),
        written(class("wear of pages", 0, [512..576])),
        written(class("wear of log", 0, [1024..1088])),
        class("progress of a scan", 0, [1536..1600]),
        both("header, fields", 0, 128),
        both("header, DEKs", 128, deks),
        both("header, protectors", deks, protectors),
        both("header, padding", protectors, last),
        both("header, sums", last, COPY_BYTES),
        hit_twice,
        class(if plain { "plain unit, content" } else { "database page, content" }, 0, content),
        class(if plain { "plain unit, tail" } else { "database page, tail" }, 0, tails),
    ]
}

/// A decryption that stopped behind its commit point.
pub fn laying_plain(bench: &Rc<Bench>, shape: &Shape) -> Bed {
    let connection = bench.birth("l.db", shape.algorithm);
    shape.fill(&connection);
    let right = dump(&connection).unwrap();
    drop(connection);
    shape.fill(&plain(&bench.path("p.db")));
    let copy = bench.read("p.db").1;
    std::fs::remove_file(bench.path("p.db")).unwrap();
    let (path, mut file) = bench.read("l.db");
    let Some(SectorZero::Sealed { file_id }) = SectorZero::parse(&file).unwrap() else {
        panic!("not sealed")
    };
    let mut sum = Sha256::new();
    sum.update(&copy);
    let sector = SectorZero::LayingPlain {
        file_id,
        copy_bytes: copy.len() as u64,
        copy_sha256: sum.finish(),
    };
    file[..SECTOR_BYTES].copy_from_slice(&sector.encode(shape.page_bytes as u32));
    let classes = vec![
        class("laying, sector 0", 0, [0..SECTOR_BYTES]),
        class("laying, plain copy", 1, [0..copy.len()]),
    ];
    laying(
        bench,
        "to plain",
        shape,
        vec![(path, file), (bench.path("l.db-pellucid"), copy)],
        classes,
        right,
    )
}

/// An encryption that stopped behind its commit point.
pub fn laying_sealed(bench: &Rc<Bench>, shape: &Shape) -> Bed {
    let connection = bench.birth("p.db", shape.algorithm);
    shape.fill(&connection);
    let right = dump(&connection).unwrap();
    drop(connection);
    let copy = bench.read("p.db").1;
    std::fs::remove_file(bench.path("p.db")).unwrap();
    shape.fill(&plain(&bench.path("l.db")));
    let (path, mut file) = bench.read("l.db");
    file[..SECTOR_BYTES].copy_from_slice(&copy[..SECTOR_BYTES]);
    let classes = vec![class("laying, sealed copy", 1, [0..copy.len()])];
    laying(
        bench,
        "to sealed",
        shape,
        vec![(path, file), (bench.path("l.db-pellucid"), copy)],
        classes,
        right,
    )
}

fn laying(
    bench: &Rc<Bench>,
    direction: &str,
    shape: &Shape,
    files: Vec<(std::path::PathBuf, Vec<u8>)>,
    classes: Vec<Class>,
    right: String,
) -> Bed {
    let looker = bench.clone();
    Bed {
        name: format!("laying {direction}, {shape:?}"),
        files,
        strays: ["l.db-journal", "l.db-wal", "l.db-shm"].map(|name| bench.path(name)).to_vec(),
        classes,
        right,
        look: Box::new(move |writes| looker.look("l.db", writes)),
        third: Box::new(|_, _| false),
    }
}
