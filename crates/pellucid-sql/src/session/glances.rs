//! What files were when the server's views last looked at them.
//!
//! A view has a row for each database, and a script asks for one row at a time: without this, each of its statements would open
//! every file of the instance. A file is looked at again once its size, its times or its inode are others. What has changed just
//! now, is being scanned or is being written is not kept. Statements that decide by what a file is look at it themselves.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::rc::Rc;

use pellucid_engine::inspect::Kind;
use pellucid_engine::log_chain::Waiting;
use pellucid_files::stamp;

use crate::instance::{DatabaseFile, Known};

/// The log of a database, its journal, and the copy that a conversion makes.
const ENDINGS: [&str; 3] = ["-wal", "-journal", "-pellucid"];
/// The directory of a database's archive of logs.
const ARCHIVE: &str = "-log";

/// What lies in an archive.
type Archive = Vec<(OsString, stamp::Stamp)>;

/// Of the database, and of each of [`ENDINGS`]. An empty log is none: a connection makes one and takes it away again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp(Option<stamp::Stamp>, [Option<stamp::Stamp>; 3]);

impl Stamp {
    /// Of the files of a database; none where one of them has changed just now.
    pub fn of(database: &Path) -> Option<Self> {
        stamp::of_files(database, ENDINGS).map(|(own, beside)| Self(own, beside))
    }

    /// Whether a conversion is under way, or was interrupted.
    fn has_copy(&self) -> bool {
        let [_, _, copy] = self.1;
        copy.is_some()
    }
}

#[derive(Default)]
struct Glance {
    kind: Option<(Stamp, Rc<Kind>)>,
    files: Option<(Stamp, Vec<DatabaseFile>)>,
    waiting: Option<(Stamp, Archive, Option<Waiting>)>,
}

/// By the number of the database.
#[derive(Default)]
pub(super) struct Glances {
    kept: RefCell<HashMap<i64, Glance>>,
    /// The stamps that the rows being made now go by: of each database one. None while no rows are made.
    stamps: RefCell<Option<HashMap<i64, Option<Stamp>>>>,
}

impl Glances {
    /// What `make` makes may be of what was seen before.
    pub(super) fn while_rows_are_made<R>(&self, make: impl FnOnce() -> R) -> R {
        let outer = self.stamps.replace(Some(HashMap::new()));
        let made = make();
        self.stamps.replace(outer);
        made
    }

    /// The stamp of a database, if rows are being made and it has one.
    pub(super) fn stamp(&self, known: &Known) -> Option<Stamp> {
        let mut stamps = self.stamps.borrow_mut();
        let stamps = stamps.as_mut()?;
        stamps.entry(known.id).or_insert_with(|| Stamp::of(&known.path)).clone()
    }

    pub(super) fn kind(&self, id: i64, stamp: &Stamp) -> Option<Rc<Kind>> {
        let glances = self.kept.borrow();
        let (then, kind) = glances.get(&id)?.kind.as_ref()?;
        (then == stamp).then(|| Rc::clone(kind))
    }

    pub(super) fn keep_kind(&self, id: i64, stamp: Stamp, kind: &Rc<Kind>) {
        let is_still = match kind.as_ref() {
            Kind::Empty | Kind::Plain => !stamp.has_copy(),
            Kind::Sealed(sealed) => {
                !stamp.has_copy()
                    && sealed.is_scanned == Some(false)
                    && !sealed.header.scan.state.is_under_way()
            }
            _ => false,
        };
        if is_still {
            self.kept.borrow_mut().entry(id).or_default().kind = Some((stamp, Rc::clone(kind)));
        }
    }

    pub(super) fn files(&self, id: i64, stamp: &Stamp) -> Option<Vec<DatabaseFile>> {
        let glances = self.kept.borrow();
        let (then, files) = glances.get(&id)?.files.as_ref()?;
        (then == stamp).then(|| files.clone())
    }

    pub(super) fn keep_files(&self, id: i64, stamp: Stamp, files: &[DatabaseFile]) {
        self.kept.borrow_mut().entry(id).or_default().files = Some((stamp, files.to_vec()));
    }

    /// What of a chain waits for a log backup: as it was, if rows are being made and neither the database nor its archive has
    /// changed.
    pub(super) fn waiting(
        &self,
        known: &Known,
        look: impl FnOnce() -> Option<Waiting>,
    ) -> Option<Waiting> {
        let Some(stamp) = self.stamp(known) else { return look() };
        let Some(archive) = stamp::of_folder(&known.path, ARCHIVE) else { return look() };
        if let Some(glance) = self.kept.borrow().get(&known.id) {
            if let Some((then, of_then, waiting)) = &glance.waiting {
                if *then == stamp && *of_then == archive {
                    return *waiting;
                }
            }
        }
        let found = look();
        if Stamp::of(&known.path).as_ref() == Some(&stamp)
            && stamp::of_folder(&known.path, ARCHIVE).as_ref() == Some(&archive)
        {
            let mut kept = self.kept.borrow_mut();
            kept.entry(known.id).or_default().waiting = Some((stamp, archive, found));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pellucid_files::paths::{beside, copy_path};
    use pellucid_files::stamp::SETTLED;

    use super::*;

    #[test]
    fn the_copy_has_its_name() {
        let database = Path::new("/folder/a.db");
        let [_, _, copy] = ENDINGS;
        assert_eq!(copy_path(database), beside(database, copy));
    }

    #[test]
    fn what_has_changed_is_looked_at_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        std::fs::write(&path, "one").unwrap();
        assert!(Stamp::of(&path).is_none(), "it has changed just now");
        let settled = || {
            std::thread::sleep(SETTLED + Duration::from_millis(50));
            Stamp::of(&path).unwrap()
        };
        let (glances, plain) = (Glances::default(), Rc::new(Kind::Plain));
        let before = settled();
        glances.keep_kind(7, before.clone(), &plain);
        assert!(glances.kind(7, &settled()).is_some());
        assert!(glances.kind(8, &before).is_none());
        // Of the same size, and with the times of before: the time of its change cannot be set.
        let times = std::fs::metadata(&path).unwrap().modified().unwrap();
        std::fs::write(&path, "two").unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(times).unwrap();
        assert!(glances.kind(7, &settled()).is_none());
        glances.keep_kind(7, settled(), &plain);
        std::fs::write(beside(&path, "-wal"), "log").unwrap();
        assert!(glances.kind(7, &settled()).is_none());
        // What a conversion makes is not kept.
        std::fs::write(copy_path(&path), "copy").unwrap();
        let under_way = settled();
        glances.keep_kind(7, under_way.clone(), &plain);
        assert!(glances.kind(7, &under_way).is_none());
    }
}
