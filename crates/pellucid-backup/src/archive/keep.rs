//! What goes after a time: nothing that a point within it needs.

use std::collections::BTreeSet;

use pellucid::clock::now_micros;
use pellucid::hash::hex;
use pellucid::lsn::Lsn;
use pellucid::media::Kind;

use super::merge::about;
use super::names::{LogName, FULL};
use super::run::News;
use super::set::{read_full, Owner};
use super::ship::{time_of_full, Shipper};
use crate::job::{open_family, JobError};

/// A full set that the archiver has made.
struct Full {
    name: String,
    seconds: u64,
}

impl Shipper {
    /// Removes, if a time is kept at all, what is older than the newest full backup before it: with that, every point within the
    /// time can be had. Only what this archiver names so is counted on, once it was read whole, and only that goes.
    pub(super) fn remove_old(
        &self,
        owner: &Owner,
        tell: &mut dyn FnMut(News),
    ) -> Result<(), JobError> {
        let Some(keep) = self.options.keep else { return Ok(()) };
        let from = (now_micros() / 1_000_000).saturating_sub(keep.as_secs());
        let all = self.place.list(Some(&self.folder))?;
        let full = |name: &String| Some(Full { name: name.clone(), seconds: time_of_full(name)? });
        let mut fulls: Vec<Full> = all.iter().filter_map(full).collect();
        fulls.sort_by_key(|full| full.seconds);
        let Some(at) = fulls.iter().rposition(|full| full.seconds <= from) else { return Ok(()) };
        let base = &fulls[at];
        let path = self.place.path_of(&format!("{}/{}", self.folder, base.name));
        let family = open_family(&path)?;
        let header = family.sets.first().map(|set| &set.header);
        let place = header
            .filter(|header| header.kind == Kind::Full && header.source == owner.header.file_id)
            .and_then(|header| header.version2?.chain);
        // What cannot be counted on lets nothing go.
        let Some(place) = place.filter(|place| place.fork == owner.fork) else { return Ok(()) };
        let (mut gone, mut ids) = (BTreeSet::new(), Vec::new());
        for older in &fulls[..at] {
            ids.push(self.end_of(&older.name)?.1);
            // The bytes of an object lie beside its name.
            let begins = format!("{}.", older.name);
            gone.extend(all.iter().filter(|name| name.starts_with(&begins)).cloned());
            gone.insert(older.name.clone());
        }
        let fork = hex(&owner.fork);
        let logs: Vec<(LogName, &String)> = all
            .iter()
            .filter_map(|name| {
                let (of, text) = name.split_once('/')?;
                Some((LogName::parse(text).filter(|_| of == fork)?, name))
            })
            .collect();
        for (name, text) in &logs {
            if name.first >= place.first {
                continue;
            }
            let (last, id) = self.end_of(text)?;
            if last <= place.first {
                gone.insert((*text).clone());
                ids.push(id);
            }
        }
        if gone.is_empty() {
            return Ok(());
        }
        // Nobody else vouches for it: its header is open to whoever can write the place, and a disk can damage it.
        match read_full(&path, owner, base.seconds) {
            Ok(whole) if whole == place => {}
            Ok(_) => return Ok(()),
            Err(error) => {
                tell(News::Left { why: about(&path, &error) });
                return Ok(());
            }
        }
        // The pointer first: a name without bytes would be an error for everybody.
        for name in &gone {
            self.place.remove(&format!("{}/{name}", self.folder))?;
        }
        self.forget(&ids, tell);
        let sets = gone.iter().filter(|name| name.ends_with(FULL) || LogName::is_one(name)).count();
        if sets > 0 {
            tell(News::Removed { sets });
        }
        Ok(())
    }

    /// The last commit of a log set, and its identity.
    fn end_of(&self, name: &str) -> Result<(Lsn, String), JobError> {
        let path = self.place.path_of(&format!("{}/{name}", self.folder));
        let family = open_family(&path)?;
        let set = family.sets.first().map(|set| &set.header);
        let last = set.and_then(|header| Some((header.version2?.chain?.last, hex(&header.set))));
        // One that cannot be read stays.
        Ok(last.unwrap_or((Lsn::of_word(u64::MAX), String::new())))
    }
}

impl LogName {
    /// Whether a path is that of a log set.
    fn is_one(path: &str) -> bool {
        path.rsplit('/').next().is_some_and(|name| Self::parse(name).is_some())
    }
}
