//! The oracle: what has to come of files that were put in the place of a database, said before they are looked at.
//!
//! It knows what each part of them is by the archive, and the rules of docs/guide/pinned-paths.md and SECURITY.md. It has no key
//! and calls nothing of the shim.

use std::collections::BTreeSet;

use pellucid::header::COPY_OFFSETS;

use crate::archive::{Archive, Head, FRAME, LOG_HEADER, REGION};
use crate::exchange::Exchange;
use crate::logs::{self, Lost};
use crate::world::{Name, World, PAGE};

/// What has to come of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A typed error, and no row of another database before it.
    Refused,
    /// It works; a line and an event say that another database is there.
    Told,
    /// It works without the commits that a damaged log lost; these are kept and told.
    Lost,
    /// It works with older content of this very database, which authenticates: what remains by design.
    Remains,
    /// It works, and the content is the present one.
    Harmless,
}

impl Class {
    /// Each of them.
    pub const ALL: [Self; 5] =
        [Self::Refused, Self::Told, Self::Lost, Self::Remains, Self::Harmless];

    /// For records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Told => "told",
            Self::Lost => "lost-log",
            Self::Remains => "remains",
            Self::Harmless => "harmless",
        }
    }
}

/// What is read if something is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Nothing is.
    None,
    /// Exactly one of these states.
    One(BTreeSet<usize>),
    /// Any rows that these databases ever had, and SQLite may call them malformed.
    Mixture,
}

/// A class with what is expected in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub class: Class,
    pub content: Content,
    /// Whose rows may be read.
    pub whose: Vec<Name>,
    /// An error is right, too: what is damaged may be looked at or not.
    pub may_fail: bool,
    /// It is refused by its header, or because it is none, and not by what some page has.
    pub by_header: bool,
    /// A connection that was open before has to refuse it, too.
    pub also_idle: bool,
    /// The same, of a check: it looks at a journal that nobody plays back.
    pub check_may_fail: bool,
    /// What the rest of a damaged log is kept as.
    pub kept: Option<&'static str>,
    /// Database and log stay as they are.
    pub is_left: bool,
    pub why: String,
}

/// Files that lie at a database's path.
#[derive(Debug, Clone, Default)]
pub struct Put {
    /// The database file; none if it is missing.
    pub database: Option<Vec<u8>>,
    pub log: Option<Vec<u8>>,
    pub journal: Option<Vec<u8>>,
    /// The copy that a conversion would have left beside it.
    pub copy: Option<Vec<u8>>,
    /// The path is a symbolic link to such a file elsewhere, with no log or journal beside it.
    pub is_link: bool,
}

fn refused(why: &str) -> Verdict {
    Verdict {
        class: Class::Refused,
        content: Content::None,
        whose: Vec::new(),
        may_fail: false,
        by_header: true,
        also_idle: true,
        check_may_fail: false,
        kept: None,
        is_left: false,
        why: why.to_owned(),
    }
}

/// The databases that have this file id, in the present.
fn kin(world: &World, file_id: &[u8; 16]) -> Vec<Name> {
    let has = |name: &Name| head_now(world, *name).is_some_and(|head| head.file_id == *file_id);
    Name::ALL.into_iter().filter(has).collect()
}

/// The databases that have the file id of this one.
pub fn kin_of(world: &World, name: Name) -> Vec<Name> {
    head_now(world, name).map(|head| kin(world, &head.file_id)).unwrap_or_default()
}

fn head_now(world: &World, name: Name) -> Option<Head> {
    let file = world.now().files.get(name.file())?;
    world.archive.head(file)
}

/// What has to come of an exchange, where the instance is strict about other databases at pinned paths or not.
pub fn judge(world: &World, exchange: &Exchange, is_strict: bool) -> Verdict {
    let mut verdict = of_opening(world, exchange, is_strict);
    // A connection that has it open looks at the beginning of header copy 0, and reads the rest only where that changed.
    let seen = COPY_OFFSETS[0] as usize..COPY_OFFSETS[0] as usize + 48;
    let (put, now) = (&exchange.put.database, &world.now().files[exchange.target.file()]);
    let is_seen = put.as_ref().is_some_and(|file| file.get(seen.clone()) == now.get(seen));
    verdict.also_idle &= !is_seen;
    verdict
}

/// The same for who opens it.
fn of_opening(world: &World, exchange: &Exchange, is_strict: bool) -> Verdict {
    let (target, put) = (exchange.target, &exchange.put);
    if exchange.kind == "laying" {
        return refused("what a forged conversion has laid is plain");
    }
    let archive = &world.archive;
    let Some(file) = put.database.as_ref().filter(|file| file.len() > REGION) else {
        // SQLite would take a header alone for an empty database, and delete the log.
        return Verdict { also_idle: false, ..refused("no file, or at most a header") };
    };
    if archive.sector(file).is_none() && file.starts_with(b"SQLite format 3\0") {
        // Who has it open finds a header behind that, if one is whole.
        let also_idle = archive.head(file).is_none();
        return Verdict { also_idle, ..refused("a plain database") };
    }
    let Some(head) = archive.head(file) else {
        // Who has it open goes on by what it has of it.
        return Verdict { also_idle: false, ..refused("no whole header") };
    };
    if archive.sector(file).is_some_and(|id| id != head.file_id) {
        return refused("sector 0 names another file");
    }
    if !head.is_own {
        return refused("another instance's");
    }
    let expected = head_now(world, target).unwrap();
    let whose = kin(world, &head.file_id);
    let newest = whose.first().and_then(|name| head_now(world, *name));
    let is_same = head.file_id == expected.file_id;
    if head.is_off {
        return refused("switched off");
    }
    let is_older = newest.as_ref().is_some_and(|newest| head.sequence < newest.sequence);
    let is_retired = newest.as_ref().is_some_and(|newest| !newest.deks.contains(&head.dek))
        && !whose.contains(&Name::Off);
    if is_older && !exchange.is_fresh {
        return refused("an older header");
    }
    if is_retired {
        return refused("under a retired key");
    }
    let mut verdict = content(world, put, &head);
    verdict.whose.clone_from(&whose);
    if exchange.is_fresh {
        return verdict;
    }
    if is_strict && !is_same {
        return refused("another database, where the instance is strict");
    }
    if !is_same && verdict.class != Class::Refused {
        verdict.class = Class::Told;
    } else if verdict.class == Class::Remains {
        let now = world.now().states[&target];
        let only = Content::One(BTreeSet::from([now]));
        let is_now = matches!(&verdict.content, Content::One(states) if states.contains(&now));
        if is_now {
            (verdict.class, verdict.content) = (Class::Harmless, only);
        }
    }
    verdict
}

/// What is read of files under `head`: class `Remains`, `Lost` or `Refused`.
fn content(world: &World, put: &Put, head: &Head) -> Verdict {
    let archive = &world.archive;
    let (Some(file), none) = (&put.database, Vec::new()) else { return refused("no file") };
    let mut verdict = Verdict {
        class: Class::Remains,
        content: Content::Mixture,
        whose: Vec::new(),
        may_fail: (file.len() - REGION) % PAGE != 0,
        by_header: false,
        also_idle: true,
        check_may_fail: false,
        kept: None,
        is_left: false,
        why: String::new(),
    };
    let log = if put.is_link { &none } else { put.log.as_ref().unwrap_or(&none) };
    if logs::is_of_other_version(archive, log, head.version) {
        if log.len() > LOG_HEADER {
            let refused = refused("a log of another version");
            return Verdict { by_header: false, is_left: true, ..refused };
        }
        // SQLite does not look at a header alone, but who writes the next one does.
        verdict.may_fail = true;
    }
    let journal = if put.is_link { None } else { put.journal.as_ref().filter(|j| !j.is_empty()) };
    verdict.check_may_fail = journal.is_some();
    if let Some(verdict) = journal.and_then(|journal| played_back(archive, file, journal, head)) {
        return verdict;
    }
    let found = archive.log(log, head, file);
    let mut pages: Vec<Option<&[u8]>> = file[REGION..].chunks_exact(PAGE).map(Some).collect();
    let mut count = pages.len();
    let mut frames = std::collections::HashMap::new();
    let counted = log.get(LOG_HEADER..).unwrap_or_default().chunks_exact(FRAME).take(found.counted);
    for frame in counted {
        let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
        frames.insert(word(0) as usize, frame);
        if word(4) != 0 {
            count = word(4) as usize;
        }
    }
    let first = pages.first().copied().flatten().and_then(|bytes| archive.page(bytes));
    if frames.is_empty() {
        let known = first.and_then(|unit| unit.count).map(|count| count as usize);
        if known.is_some_and(|known| known > count) {
            return Verdict { by_header: false, ..refused("shorter than its first page says") };
        }
        // Pages behind the end are looked at by nobody but a check.
        verdict.may_fail |= known.is_some_and(|known| known < count);
        count = known.unwrap_or(count);
    }
    pages.resize(count.max(pages.len()), None);
    let mut states: Option<BTreeSet<usize>> = None;
    let mut bad = Vec::new();
    for number in 1..=count {
        let unit = match frames.get(&number) {
            Some(frame) => archive.frame(frame),
            None => pages[number - 1].and_then(|bytes| archive.page(bytes)),
        };
        match unit.filter(|unit| head.deks.contains(&unit.dek) && unit.page as usize == number) {
            None => bad.push(number),
            Some(unit) => {
                states = Some(match states {
                    None => unit.states.clone(),
                    Some(states) => states.intersection(&unit.states).copied().collect(),
                });
            }
        }
    }
    let states = states.unwrap_or_default();
    if let Some(number) = bad.first() {
        // In a mixture nothing may lead to it.
        let is_read = |state: &usize| world.states[*state].pages >= *number;
        verdict.may_fail = true;
        if bad.len() == count || states.iter().any(is_read) {
            return Verdict { by_header: false, ..refused(&format!("page {number}")) };
        }
    } else if !states.is_empty() {
        verdict.content = Content::One(states);
    }
    match found.lost {
        Lost::Nothing => {}
        // One commit behind a damaged frame may be of a torn transaction, or be lost.
        Lost::Unsure => verdict.may_fail = true,
        Lost::MayBe => (verdict.class, verdict.kept) = (Class::Lost, Some("-wal-maybe-lost-1")),
        Lost::Attacked => (verdict.class, verdict.kept) = (Class::Lost, Some("-wal-lost-1")),
    }
    verdict
}

/// What a journal rolls back, if it is one of this database.
fn played_back(archive: &Archive, file: &[u8], journal: &[u8], head: &Head) -> Option<Verdict> {
    let mixture = Verdict {
        class: Class::Remains,
        content: Content::Mixture,
        whose: Vec::new(),
        may_fail: true,
        by_header: false,
        also_idle: true,
        check_may_fail: false,
        kept: None,
        is_left: false,
        why: "a journal".to_owned(),
    };
    if !head.deks.contains(&archive.journal(journal)?) {
        return None;
    }
    let known = archive.journals.iter().find(|known| known.bytes == *journal);
    match known {
        Some(known) if known.database[REGION..] == file[REGION..] => Some(Verdict {
            content: Content::One(BTreeSet::from([known.state])),
            may_fail: false,
            ..mixture
        }),
        _ => Some(mixture),
    }
}
