//! Whether the owner of a database could open the keyring that it is about to be encrypted under.

use std::ffi::CString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::{getgrouplist, Gid, Group, Uid, User};
use pellucid::shown::Shown;
use pellucid_keyring::broker::Broker;
use pellucid_keyring::Keyring;

use crate::output::{Failure, Id};

/// Refuses if another user owns `database` and could not read the keys in `home`: whoever runs a program over it
/// would be locked out.
pub fn check(database: &Path, home: &Path) -> Result<(), Failure> {
    let Ok(metadata) = std::fs::metadata(database) else { return Ok(()) };
    let owner = Uid::from_raw(metadata.uid());
    if owner == Uid::effective() || owner.is_root() {
        return Ok(());
    }
    if Broker::configured()?.is_some() && Keyring::configured().as_deref() == Some(home) {
        // It is let in when the database is encrypted.
        return Ok(());
    }
    let reader = Reader::new(owner);
    let Some(blocked) = reader.blocked_at(home) else { return Ok(()) };
    let name = &reader.name;
    Err(Failure::new(Id::OwnerLockedOut,
        format!("its owner, `{name}`, could not open the database: that user may not read `{}`", blocked.shown()),
        match group_of(home) {
            // Without a directory of its own the user would come to this instance, too.
            Some(group) => format!(
                "let the user in (`usermod -aG {group} {name}`), or encrypt it as that user, with keys of its own \
                 (`sudo -u {name} env PELLUCID_HOME=DIR pellucid encrypt ..`)"
            ),
            None => format!(
                "encrypt it as that user (`sudo -u {name} pellucid encrypt ..`), or make an instance for services and \
                 let the user in (`sudo pellucid init --system`, `usermod -aG pellucid {name}`)"
            ),
        },
    ))
}

/// The group of accounts that the machine's instance is for; none if `home` is another one.
fn group_of(home: &Path) -> Option<String> {
    if Keyring::configured().as_deref() != Some(home) {
        return None;
    }
    let gid = Gid::from_raw(std::fs::metadata(home).ok()?.gid());
    Some(Group::from_gid(gid).ok()??.name)
}

/// A user as the kernel sees one who reads.
struct Reader {
    uid: Uid,
    groups: Vec<Gid>,
    name: String,
}

impl Reader {
    fn new(uid: Uid) -> Self {
        let user = User::from_uid(uid).ok().flatten();
        let groups = user
            .as_ref()
            .and_then(|user| {
                let name = CString::new(user.name.as_str()).ok()?;
                getgrouplist(&name, user.gid).ok()
            })
            .unwrap_or_default();
        let name = user.map_or_else(|| format!("#{uid}"), |user| user.name);
        Self { uid, groups, name }
    }

    /// The first file or directory on the way to the keys that the reader may not pass.
    fn blocked_at(&self, home: &Path) -> Option<PathBuf> {
        let home = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
        if !home.exists() {
            // It would be made for the caller alone.
            return Some(home);
        }
        let mut directories: Vec<&Path> = home.ancestors().collect();
        directories.reverse();
        let inner = ["keyring", "keyring/certificates"].map(|name| home.join(name));
        for directory in directories.into_iter().chain(inner.iter().map(PathBuf::as_path)) {
            if !self.may(directory, 0o1) {
                return Some(directory.to_owned());
            }
        }
        let files = ["service.key", "service.sealed", "service.provider", "keyring/master.key"]
            .map(|name| home.join(name));
        files.into_iter().find(|file| file.exists() && !self.may(file, 0o4))
    }

    /// Whether the permission bits allow it; access control lists may allow more, which is not looked at.
    fn may(&self, path: &Path, bit: u32) -> bool {
        let Ok(metadata) = std::fs::metadata(path) else { return true };
        let shift = match () {
            () if metadata.uid() == self.uid.as_raw() => 6,
            () if self.groups.contains(&Gid::from_raw(metadata.gid())) => 3,
            () => 0,
        };
        metadata.mode() >> shift & bit != 0
    }
}
