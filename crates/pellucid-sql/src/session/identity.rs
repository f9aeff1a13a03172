//! SET IDENTITY_INSERT of a session, which is on for one table at most.

use std::cell::RefCell;

use pellucid_tsql::ast::ObjectName;

/// The table that it is on for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct On {
    /// Its name in SQLite.
    pub sqlite: String,
    /// Its whole name, as messages show it.
    pub whole: String,
    /// What it is found by from every database: it may be gone with its database, or by ROLLBACK.
    pub name: ObjectName,
}

/// What it is now, and what it was in each of the frames around.
#[derive(Debug, Default)]
pub(crate) struct IdentityInsert {
    now: RefCell<Option<On>>,
    around: RefCell<Vec<Option<On>>>,
}

impl IdentityInsert {
    /// The table for which it is on.
    pub(crate) fn on(&self) -> Option<On> {
        self.now.borrow().clone()
    }

    pub(crate) fn set(&self, on: Option<On>) {
        self.now.replace(on);
    }

    /// Whether it is on for the table of this name in SQLite.
    pub(crate) fn is_on(&self, sqlite: &str) -> bool {
        is_of(&self.now.borrow(), sqlite)
    }

    /// A frame begins.
    pub(crate) fn enter(&self) {
        self.around.borrow_mut().push(self.on());
    }

    /// A frame ends, and what it has set with it.
    pub(crate) fn leave(&self) {
        let before = self.around.borrow_mut().pop();
        self.set(before.flatten());
    }

    /// There is no table of this name in SQLite, any more or yet: a new one has it off, in every frame.
    pub(crate) fn forget(&self, sqlite: &str) {
        self.now.borrow_mut().take_if(|on| on.sqlite == sqlite);
        for on in self.around.borrow_mut().iter_mut() {
            on.take_if(|on| on.sqlite == sqlite);
        }
    }
}

fn is_of(on: &Option<On>, sqlite: &str) -> bool {
    on.as_ref().is_some_and(|on| on.sqlite == sqlite)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pellucid_tsql::ast::Name;

    use super::*;

    #[test]
    fn it_ends_with_its_table_in_every_frame() {
        let all = IdentityInsert::default();
        let name = || Name::new("t").unwrap().into();
        let on = || On { sqlite: "t".to_owned(), whole: "q.dbo.t".to_owned(), name: name() };
        let t = || Some(on());
        all.set(t());
        all.enter();
        all.set(None);
        all.leave();
        assert_eq!(all.on(), t());
        all.enter();
        all.forget("u");
        assert!(all.is_on("t"));
        all.set(None);
        all.forget("t");
        all.leave();
        assert_eq!(all.on(), None);
    }
}
