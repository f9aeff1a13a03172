//! The instance directory: where it is, its directories, and who may read them.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use pellucid::error::{Error, Result, Subject};
use pellucid::shown::Shown;
use pellucid_files::trusted::{self, Guard};

/// The file that is there once scripts have made something in `master` or `msdb`, or a backup of them.
pub(super) const MADE_BY_SCRIPTS: &str = "master.db";

const CONFIG: &str = "/etc/pellucid.conf";
/// It has two lines at most.
const CONFIG_BYTES_MOST: u64 = 65536;

/// The file that names the system instance's directory, `home = PATH`; `PELLUCID_CONFIG` names another one.
pub(super) fn config_path() -> PathBuf {
    std::env::var_os("PELLUCID_CONFIG").map_or_else(|| PathBuf::from(CONFIG), PathBuf::from)
}

pub(super) fn locate() -> Result<PathBuf> {
    let home = choose(variable, rustix::process::geteuid().is_root(), read_configured)?;
    // Also where there is none yet: nobody else is to have a hand in the one that is made.
    trusted::check(&home)?;
    Ok(home)
}

/// The place that [`locate`] would take if nobody else had a hand in it.
///
/// # Errors
/// As [`read`]; that there is no place.
pub(super) fn wanted() -> Result<PathBuf> {
    choose(variable, rustix::process::geteuid().is_root(), read_configured)
}

/// Opens a file of the keyring, which nobody but root and the caller could have put there; none if it is not there.
pub(super) fn open(path: &Path, guard: Guard<'_>) -> Result<Option<File>> {
    match trusted::open(path, guard) {
        Ok(file) => Ok(Some(file)),
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Keys that a user has come before the machine's, so that a machine that gets a keyring locks nobody out of what was
/// sealed before. Root's are the machine's.
fn choose(
    variable: impl Fn(&str) -> Option<OsString>,
    is_root: bool,
    configured: impl FnOnce() -> Result<Option<PathBuf>>,
) -> Result<PathBuf> {
    if let Some(home) = variable("PELLUCID_HOME") {
        return Ok(PathBuf::from(home));
    }
    let own = own_place(variable);
    if let Some(own) = own.as_ref().filter(|own| !is_root && is_own(own)) {
        return Ok(own.clone());
    }
    configured()?.or(own).ok_or_else(|| {
        Error::misuse(
            Subject::Option("PELLUCID_HOME".into()),
            "not set, and HOME names no absolute path: there is no place for a keyring",
        )
    })
}

/// Where a user's own keyring lies: where the environment says, if nobody else has a hand in that, and else in the home
/// directory that the account has.
fn own_place(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let named = named_place(variable)?;
    match passed_over_from(&named) {
        Some((registered, _)) => Some(registered),
        None => Some(named),
    }
}

fn named_place(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // A relative one leads elsewhere as soon as a program changes its directory (XDG Base Directory Specification: ignored).
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME");
    let data = data.or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("pellucid"))
}

/// The place to take instead of `named`, and why.
fn passed_over_from(named: &Path) -> Option<(PathBuf, Error)> {
    let refused = trusted::check(named).err()?;
    let home = trusted::home_of(rustix::process::geteuid().as_raw())?;
    let registered = home.join(".local/share/pellucid");
    (registered != named && trusted::check(&registered).is_ok()).then_some((registered, refused))
}

/// The place for a keyring of the caller's that is used although `HOME` or `XDG_DATA_HOME` leads to another one, and what
/// is wrong with that; none where the caller's own is not the one to use.
pub(super) fn passed_over() -> Option<(PathBuf, Error)> {
    let instead = passed_over_from(&named_place(variable)?)?;
    (locate().ok()? == instead.0).then_some(instead)
}

/// A keyring is there, and it is the caller's: not one of a HOME that was left over from somebody else.
fn is_own(home: &Path) -> bool {
    std::fs::metadata(home.join("keyring")).is_ok_and(|metadata| {
        metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw()
    })
}

/// The caller's own keyring, if there is one.
pub(super) fn own() -> Option<PathBuf> {
    own_place(variable).filter(|own| is_own(own))
}

/// The machine's instance, where the one at `home` is the caller's own and comes before it unasked.
pub(super) fn behind(home: &Path) -> Option<PathBuf> {
    if variable("PELLUCID_HOME").is_some() || own().as_deref() != Some(home) {
        return None;
    }
    configured().filter(|machine| machine != home)
}

/// What [`config_path`] names.
pub(super) fn configured() -> Option<PathBuf> {
    read_configured().ok().flatten()
}

/// Like [`behind`], for whoever must not take a file that cannot be read now for none.
pub(super) fn behind_surely(home: &Path) -> Result<Option<PathBuf>> {
    if variable("PELLUCID_HOME").is_some() || own().as_deref() != Some(home) {
        return Ok(None);
    }
    Ok(read_configured()?.filter(|machine| machine != home))
}

/// What [`config_path`] says.
#[derive(Debug, Default, Clone)]
pub(super) struct Configured {
    /// The system instance: `home = PATH`.
    pub(super) home: Option<PathBuf>,
    /// The broker's socket, an absolute path: `broker = PATH`.
    pub(super) broker: Option<PathBuf>,
}

/// What was read in a moment, from where, and the moment's number.
type Known = (u64, PathBuf, Configured);

thread_local! {
    /// An opening asks three times, and with a broker more often.
    static READ: RefCell<Option<Known>> = const { RefCell::new(None) };
}

fn read_configured() -> Result<Option<PathBuf>> {
    read().map(|found| found.home)
}

/// Reads it, once in a [`trusted::Moment`]. None of both where there is no such file.
///
/// # Errors
/// [`Error::Misuse`] if others could have written it; what keeps a file that is there from being read: whoever cannot look does not
/// know that there is none.
pub(super) fn read() -> Result<Configured> {
    let path = config_path();
    let moment = trusted::Moment::number();
    let known = READ.try_with(|read| {
        let read = read.borrow();
        let (number, from, found) = read.as_ref()?;
        (Some(*number) == moment && *from == path).then(|| found.clone())
    });
    if let Ok(Some(known)) = known {
        return Ok(known);
    }
    let found = read_file(path.clone())?;
    if let Some(number) = moment {
        let _ = READ.try_with(|read| *read.borrow_mut() = Some((number, path, found.clone())));
    }
    Ok(found)
}

fn read_file(path: PathBuf) -> Result<Configured> {
    let mut text = String::new();
    let read = trusted::open(&path, Guard::Unchanged)
        .map(|file| file.take(CONFIG_BYTES_MOST).read_to_string(&mut text));
    let is_none = |kind: ErrorKind| match kind {
        ErrorKind::NotFound | ErrorKind::NotADirectory => true,
        // Where not even that can be seen, an account is shut up in some other way, and has no instance of the machine's.
        ErrorKind::PermissionDenied => path.symlink_metadata().is_err(),
        _ => false,
    };
    match read {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(Error::io(Subject::File(path), error)),
        Err(Error::Io { source, .. }) if is_none(source.kind()) => return Ok(Configured::default()),
        Err(error) => return Err(error),
    }
    let line = |wanted: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == wanted).then(|| PathBuf::from(value.trim()))
        })
    };
    let found = Configured { home: line("home"), broker: line("broker") };
    match &found.broker {
        Some(broker) if !broker.is_absolute() => Err(Error::misuse(
            Subject::File(path),
            format!("`broker = {}` is no absolute path", broker.shown()),
        )),
        _ => Ok(found),
    }
}

/// Whether the caller owns the instance at `home`, and so reads its keyring without anybody's help. Root does.
pub(super) fn is_owned(home: &Path) -> bool {
    let own = rustix::process::geteuid();
    own.is_root() || std::fs::metadata(home).is_ok_and(|found| found.uid() == own.as_raw())
}

/// Whether `home` is what [`configured`] says, by whatever path.
pub(super) fn is_configured(home: &Path) -> bool {
    configured().is_some_and(|configured| is_same(&configured, home))
}

/// Whether two paths lead to one directory.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    whole(one) == whole(other)
}

/// The group that may read the instance at `home` although nothing names it as the machine's.
pub(super) fn unnamed_group(home: &Path) -> Option<u32> {
    group(home).filter(|_| !is_configured(home))
}

/// Makes the instance's own directory, where nobody else has a hand in the way to it.
pub(super) fn make_home(home: &Path) -> Result<()> {
    trusted::check(home)?;
    make_for_owner(home)
}

pub(super) fn make_directories(home: &Path) -> Result<()> {
    make_home(home)?;
    // Somebody may have been there first.
    trusted::check(&home.join("keyring"))?;
    // By the umask of whoever made it, any directory may be 0750: only what is named as the machine's is so on purpose.
    let shared = group_of(home).filter(|_| is_configured(home));
    make(&home.join("keyring"), shared)?;
    make_directory(&home.join("keyring/certificates"))?;
    make_directory(&home.join("keyring/databases"))
}

/// Makes a directory inside `keyring`, for the same group.
pub(super) fn make_directory(path: &Path) -> Result<()> {
    make(path, path.parent().and_then(group_of))
}

fn make_for_owner(path: &Path) -> Result<()> {
    make(path, None)
}

fn make(path: &Path, group: Option<u32>) -> Result<()> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.and_then(|()| match group {
        Some(group) if group_of(path) != Some(group) => share_directory(path, group, 0o750),
        _ => Ok(()),
    })
    .map_err(|error| Error::io(Subject::File(path.to_owned()), error))
}

/// Where it is kept what runs, or which events wait. In a system instance the group may put entries there, too, and take away its own.
pub(super) fn make_run_directory(home: &Path, path: &Path) -> Result<()> {
    make_for_owner(home)?;
    make_for_owner(path)?;
    match group(home) {
        Some(group) => share_directory(path, group, 0o1770)
            .map_err(|error| Error::io(Subject::File(path.to_owned()), error)),
        None => Ok(()),
    }
}

fn share_directory(path: &Path, group: u32, mode: u32) -> std::io::Result<()> {
    std::os::unix::fs::chown(path, None, Some(group))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// Makes the directory of a system instance: 0750, for `group` to read; and what is in it.
pub(super) fn make_system_directories(home: &Path, group: u32) -> Result<()> {
    trusted::check(home)?;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o750).create(home);
    made.and_then(|()| share_directory(home, group, 0o750))
        .map_err(|error| Error::io(Subject::File(home.to_owned()), error))?;
    make(&home.join("keyring"), Some(group))?;
    make_directories(home)?;
    make_run_directory(home, &home.join("run"))?;
    make_run_directory(home, &home.join("waiting"))
}

/// Directories where the group may put files, too.
const SHARED: [&str; 2] = ["run", "waiting"];

/// Takes a system instance away from its group: its directories, the outermost first, so that nobody gets in meanwhile.
pub(super) fn close_to_group(home: &Path) -> Result<()> {
    set_mode(home, 0o700)?;
    for name in SHARED {
        set_mode(&home.join(name), 0o700)?;
    }
    each_directory(&home.join("keyring"), &|path| set_mode(path, 0o700))?;
    // Of a private instance nobody else may read it, wherever it lies.
    SERVICE_FILES.iter().try_for_each(|name| set_mode(&home.join(name), 0o600))
}

/// Gives it back, the outermost directory last; the group. The keyring's files that were made meanwhile are the group's, too, and no
/// others.
pub(super) fn open_to_group(home: &Path) -> Result<u32> {
    let found = std::fs::metadata(home);
    let group = found.map_err(|error| Error::io(Subject::File(home.to_owned()), error))?.gid();
    let share = |path: &Path, mode: u32| {
        match std::os::unix::fs::lchown(path, None, Some(group)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            owned => owned.map_err(|error| Error::io(Subject::File(path.to_owned()), error))?,
        }
        set_mode(path, mode)
    };
    each_directory(&home.join("keyring"), &|path| {
        for name in names_in(path)? {
            let file = path.join(&name);
            let is_file = file.symlink_metadata().is_ok_and(|found| found.is_file());
            match name.as_str() {
                _ if !is_file => {}
                "lock" => share(&file, 0o660)?,
                "events.lock" => {}
                _ => share(&file, 0o640)?,
            }
        }
        share(path, 0o750)
    })?;
    for name in names_in(home)? {
        let is_own = SERVICE_FILES.contains(&name.as_str()) || name.starts_with("events.log");
        let file = home.join(&name);
        if is_own && file.symlink_metadata().is_ok_and(|found| found.is_file()) {
            share(&file, 0o640)?;
        }
    }
    for name in SHARED {
        share(&home.join(name), 0o1770)?;
    }
    set_mode(home, 0o750)?;
    Ok(group)
}

/// The service master key, in each of the files that it may be in.
const SERVICE_FILES: [&str; 4] =
    ["service.key", "service.sealed", "service.provider", "service.next"];

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    match std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)) {
        // A file that is replaced meanwhile gets its mode from its directory.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        set => set.map_err(|error| Error::io(Subject::File(path.to_owned()), error)),
    }
}

/// A directory of the keyring and those in it, in which only their owner can change names.
fn each_directory(path: &Path, each: &dyn Fn(&Path) -> Result<()>) -> Result<()> {
    each(path)?;
    for name in names_if_there(path)? {
        let inner = path.join(name);
        if inner.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            each_directory(&inner, each)?;
        }
    }
    Ok(())
}

/// The group that may read the instance at `home`, if it is a system instance. The mode of `keyring` says so, which no
/// umask makes 0750: only who makes a system instance does.
pub(super) fn group(home: &Path) -> Option<u32> {
    group_of(home)?;
    group_of(&home.join("keyring"))
}

/// The group that may read in a directory inside `keyring` (0750); none in a private instance.
pub(super) fn group_of(directory: &Path) -> Option<u32> {
    let metadata = std::fs::metadata(directory).ok()?;
    (metadata.mode() & 0o7777 == 0o750).then(|| metadata.gid())
}

/// Lets the group of a system instance read a file.
pub(super) fn share_file(file: &File, group: u32) -> std::io::Result<()> {
    std::os::unix::fs::fchown(file, None, Some(group))?;
    file.set_permissions(std::fs::Permissions::from_mode(0o640))
}

/// The files of a directory, in order; those being written begin with a dot and are left out.
pub(super) fn names_in(directory: &Path) -> Result<Vec<String>> {
    let io = |error| Error::io(Subject::File(directory.to_owned()), error);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        names.extend(name.into_string().ok().filter(|name| !name.starts_with('.')));
    }
    names.sort();
    Ok(names)
}

/// The same of a directory that is made when it is first needed.
pub(super) fn names_if_there(directory: &Path) -> Result<Vec<String>> {
    match names_in(directory) {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        names => names,
    }
}

/// Whether an instance is there, or was, as far as the caller may look.
pub(super) fn has_keyring(home: &Path) -> bool {
    !matches!(std::fs::symlink_metadata(home.join("keyring")),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_keys_come_before_the_machines_and_roots_are_the_machines() {
        let place = tempfile::tempdir().unwrap();
        let (home, machine) = (place.path().join("home"), PathBuf::from("/var/lib/pellucid"));
        let own = home.join(".local/share/pellucid");
        let found = |named: &[(&str, &Path)], is_root, configured: Option<&PathBuf>| {
            let named: Vec<_> = named.iter().map(|(name, path)| (*name, path.into())).collect();
            let variable = |name: &str| {
                named
                    .iter()
                    .find(|(one, _)| *one == name)
                    .map(|(_, path): &(_, OsString)| path.clone())
            };
            choose(variable, is_root, || Ok(configured.cloned())).ok()
        };
        let at_home: [(&str, &Path); 1] = [("HOME", &home)];
        assert_eq!(found(&at_home, false, None), Some(own.clone()), "where one will be made");
        assert_eq!(found(&at_home, false, Some(&machine)), Some(machine.clone()));
        assert_eq!(found(&[], false, Some(&machine)), Some(machine.clone()));
        assert_eq!(found(&[], false, None), None);

        std::fs::create_dir_all(own.join("keyring")).unwrap();
        assert_eq!(found(&at_home, false, Some(&machine)), Some(own), "it was there");
        assert_eq!(found(&at_home, true, Some(&machine)), Some(machine.clone()));
        let elsewhere: [(&str, &Path); 2] =
            [("HOME", &home), ("XDG_DATA_HOME", Path::new("/nowhere"))];
        assert_eq!(found(&elsewhere, false, Some(&machine)), Some(machine.clone()));
        let relative: [(&str, &Path); 2] = [("HOME", &home), ("XDG_DATA_HOME", Path::new("share"))];
        assert_eq!(found(&relative, true, None), found(&at_home, true, None));
        assert_eq!(found(&[("HOME", Path::new("home"))], true, None), None);
        let named: [(&str, &Path); 2] = [("HOME", &home), ("PELLUCID_HOME", Path::new("/keys"))];
        assert_eq!(found(&named, false, Some(&machine)), Some("/keys".into()));
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Makes keys, an entry of a scan, and files outside that a user names; their modes.
    fn modes(home: &Path, outside: &Path) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
        use crate::{back_up_service_key, Change, Keyring, Run};
        use pellucid::protector::{KeyFile, Passphrase, Wrapping};
        let (keyring, _) = Keyring::open_or_create(home).unwrap();
        keyring.ensure_default_certificate().unwrap();
        keyring.remember_database(&[1; 16], &Default::default()).unwrap();
        let password = Passphrase::new(b"a Pa55word");
        Change::begin(home).unwrap().add_password(&keyring, &password).unwrap();
        Run::begin(&outside.join("app.db"), 1).put(home).unwrap();
        let [pem, key, service, master, bundle] =
            ["pem", "key", "service", "master", "bundle"].map(|name| outside.join(name));
        keyring
            .export_certificate(
                "pellucid",
                &pem,
                Some((&key, &password)),
                &crate::certificates::ANY_TEXT,
            )
            .unwrap();
        back_up_service_key(home, &service, &password).unwrap();
        keyring.back_up_database_key(&master, &password).unwrap();
        let raw = KeyFile::parse(&[3; 32]).unwrap();
        keyring.export_instance(&bundle, &Wrapping::KeyFile(&raw)).unwrap();
        let run = std::fs::read_dir(home.join("run")).unwrap().next().unwrap().unwrap().path();
        let directories = ["", "keyring", "keyring/certificates", "keyring/databases"];
        let files =
            ["service.key", "events.log", "keyring/master.key", "keyring/certificates/pellucid"];
        let databases = std::fs::read_dir(home.join("keyring/databases")).unwrap();
        let files = files.map(|name| home.join(name)).into_iter();
        let files = files.chain(databases.map(|entry| entry.unwrap().path()));
        let files = files.chain([home.join("keyring/passwords/1"), run]);
        (
            directories.iter().map(|name| mode(&home.join(name))).collect(),
            files.map(|file| mode(&file)).collect(),
            [pem, key, service, master, bundle].iter().map(|file| mode(file)).collect(),
        )
    }

    #[test]
    fn keys_are_their_owners_whatever_modes_lie_around_them() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        set_mode(place, 0o750);
        // Made here, as below a `~/.local/share` made with umask 027.
        let (directories, files, outside) = modes(&place.join("keys"), place);
        assert_eq!(directories, [0o700; 4]);
        assert_eq!(files, [0o600; 7]);
        assert_eq!(outside, [0o600; 5]);
        assert_eq!(mode(&place.join("keys/run")), 0o700);
        // Made before, by somebody with that umask.
        let (own, outside) = (place.join("own"), place.join("outside"));
        for path in [&own, &outside] {
            std::fs::create_dir(path).unwrap();
            set_mode(path, 0o750);
        }
        let (directories, files, outside) = modes(&own, &outside);
        assert_eq!(directories, [0o750, 0o700, 0o700, 0o700]);
        assert_eq!((files, outside), (vec![0o600; 7], vec![0o600; 5]));
        assert_eq!(mode(&own.join("run")), 0o700);
        assert_eq!(unnamed_group(&own), None);
        // And its key may not be a group's to read; root's may be for one of root's own.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(own.join("service.key"), None, Some(65534)).unwrap();
        }
        set_mode(&own.join("service.key"), 0o640);
        assert!(matches!(crate::service_key::read_service_key(&own), Err(Error::Misuse { .. })));
    }

    #[test]
    fn a_system_instance_is_its_groups_to_read_and_what_leaves_it_is_not() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().join("instance");
        let group = rustix::process::getegid().as_raw();
        make_system_directories(&home, group).unwrap();
        let (directories, files, outside) = modes(&home, place.path());
        assert_eq!(directories, [0o750; 4]);
        assert_eq!((files, outside), (vec![0o640; 7], vec![0o600; 5]));
        assert_eq!(mode(&home.join("run")), 0o1770);
        assert_eq!(mode(&home.join("keyring/lock")), 0o660);
        assert_eq!(unnamed_group(&home), Some(group));
        make_system_directories(&home, group).unwrap();
        assert_eq!([mode(&home), mode(&home.join("keyring"))], [0o750; 2]);
    }

    #[test]
    fn a_keyring_of_somebody_else_is_not_ones_own() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("keyring")).unwrap();
        assert!(is_own(place.path()));
        // Only root can give one away; to others the root directory's owner is somebody else.
        match rustix::process::geteuid().is_root() {
            true => {
                std::os::unix::fs::chown(place.path().join("keyring"), Some(65534), None).unwrap();
                assert!(!is_own(place.path()));
            }
            false => assert!(!is_own(Path::new("/"))),
        }
    }
}
