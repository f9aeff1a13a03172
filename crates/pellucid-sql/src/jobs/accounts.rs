//! The accounts that own jobs: those of the operating system. No login name in a statement makes another one the owner.

use nix::unistd::{Uid, User};

/// What `SUSER_SID()` gives, and every session is.
const OWN: [u8; 1] = [1];
/// S-1-22-1: the accounts of a Unix system, as Samba writes them. The number of the account follows.
const UNIX: [u8; 12] = [1, 2, 0, 0, 0, 0, 0, 22, 1, 0, 0, 0];

/// The number of the account that runs this process.
pub(crate) fn own() -> u32 {
    Uid::effective().as_raw()
}

/// Its name; `#` and the number where it has none.
pub(crate) fn name(uid: u32) -> String {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    user.map_or_else(|| format!("#{uid}"), |user| user.name)
}

/// Whether there is an account of that name.
pub(crate) fn is_known(name: &str) -> bool {
    User::from_name(name).ok().flatten().is_some()
}

/// `owner_sid`
pub(crate) fn sid(uid: u32) -> Vec<u8> {
    match uid == own() {
        true => OWN.to_vec(),
        false => [&UNIX[..], &uid.to_le_bytes()].concat(),
    }
}

/// The name behind an `owner_sid`; none if it is nobody's.
pub(crate) fn name_of_sid(sid: &[u8]) -> Option<String> {
    if sid == OWN {
        return Some(name(own()));
    }
    let number = sid.strip_prefix(&UNIX)?.try_into().ok()?;
    Some(name(u32::from_le_bytes(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sid_leads_to_its_account() {
        assert_eq!(sid(own()), OWN);
        let other = own() ^ 0x1234_5678;
        assert_eq!(name_of_sid(&sid(other)), Some(name(other)));
        assert_eq!(name_of_sid(&OWN), Some(name(own())));
        assert_eq!(name_of_sid(&[]), None);
        assert_eq!(name_of_sid(&UNIX), None);
    }
}
