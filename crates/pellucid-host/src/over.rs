//! A lower VFS that was named, and what cannot be done over it.
//!
//! What such a VFS calls a database is no file of this machine: its databases have a place `/pellucid-over/NAME/...` in the keyring and
//! in messages, where no file can be, and what needs a file is refused by name. Each gets one shim, `pellucid-NAME`, made once and never
//! freed.

use std::cell::Cell;
use std::ffi::{c_char, c_int, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pellucid::header::{Header, RecoveryModel};
use pellucid::{Error, Result, Subject};
use pellucid_files::paths::OVER;

use crate::api::Api;
use crate::ffi::{self, Vfs};

/// The parameter of a URI that names one.
pub const PARAMETER: &str = "pellucid_over";
/// How the names of all VFSes of the shim begin.
const OWN: &[u8] = b"pellucid";
/// The most bytes of a name.
const NAME_MOST: usize = 64;

/// A lower VFS that was named, and the shim over it.
pub struct Over {
    name: String,
    lower: *mut Vfs,
    shim: *mut Vfs,
    _shim_name: CString,
}

// SAFETY: it never changes; a registered VFS may be called by every thread.
unsafe impl Send for Over {}
// SAFETY: as above.
unsafe impl Sync for Over {}

impl std::fmt::Debug for Over {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

/// A call of a named VFS.
#[derive(Debug)]
pub struct Inside(bool);

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}

static MADE: Mutex<Vec<&'static Over>> = Mutex::new(Vec::new());
static IS_ANY: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread is inside a call of a named VFS.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

impl Over {
    /// The shim over it, as SQLite knows it.
    pub fn shim(&self) -> *mut Vfs {
        self.shim
    }

    /// The name of the lower VFS.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The lower VFS.
    pub fn lower(&self) -> (*mut Vfs, &Vfs) {
        // SAFETY: a registered VFS stays valid.
        (self.lower, unsafe { &*self.lower })
    }

    /// Whether SQLite still knows the lower VFS by its name: a program may take one back, and its memory with it.
    pub fn is_registered(&self) -> bool {
        let name = CString::new(self.name.as_bytes());
        // SAFETY: the name is terminated.
        let found =
            Api::get().zip(name.ok()).map(|(api, name)| unsafe { api.vfs_find()(name.as_ptr()) });
        found == Some(self.lower)
    }

    /// How the lower VFS calls what lies at a place.
    pub fn name_at(&self, place: &Path) -> Option<PathBuf> {
        let prefix = [OVER.as_bytes(), b"/", self.name.as_bytes()].concat();
        let name = place.as_os_str().as_bytes().strip_prefix(&prefix[..])?;
        Some(PathBuf::from(OsStr::from_bytes(name)))
    }

    /// How the keyring and messages call the database that the lower VFS calls `name`.
    pub fn place(&self, name: &[u8]) -> PathBuf {
        let slash: &[u8] = if name.starts_with(b"/") { b"" } else { b"/" };
        let whole = [OVER.as_bytes(), b"/", self.name.as_bytes(), slash, name].concat();
        PathBuf::from(OsStr::from_bytes(&whole))
    }

    /// Memory for a file object of the lower VFS.
    pub fn memory(&self) -> Vec<u128> {
        let bytes = usize::try_from(self.lower().1.file_bytes).unwrap_or(0);
        vec![0; bytes.div_ceil(size_of::<u128>()).max(1)]
    }

    /// Notes that a call of the lower VFS begins, which must not come back into the shim, and ends when this is dropped.
    pub fn enter(&self) -> Inside {
        Inside(INSIDE.replace(true))
    }

    /// Whether this thread is inside a call of a named VFS.
    pub fn is_inside() -> bool {
        INSIDE.get()
    }

    /// Whether the lower VFS has a file of the name.
    ///
    /// # Safety
    /// `name` is terminated.
    pub unsafe fn has(&self, name: *const c_char) -> bool {
        let (vfs, lower) = self.lower();
        let mut found: c_int = 0;
        let Some(access) = lower.access else { return false };
        let _inside = self.enter();
        // SAFETY: by contract; `found` is valid for a write.
        let code = unsafe { access(vfs, name, ffi::ACCESS_EXISTS, &mut found) };
        code == ffi::OK && found != 0
    }

    /// The error of what cannot be done over this VFS. `instead` is what to do.
    pub fn refuse(&self, what: &str, instead: &str) -> Error {
        let name = &self.name;
        Error::misuse(
            Subject::Container,
            format!("{what} is not possible over the VFS `{name}`, whose databases are no files of this machine: {instead}"),
        )
    }

    /// The error of a first encryption.
    pub fn refuse_in_place(&self) -> Error {
        let instead =
            "`VACUUM INTO` another name, with the key in its URI, makes an encrypted copy";
        self.refuse("encryption in place", instead)
    }

    /// Refuses what a header asks for and only a file of this machine can have.
    ///
    /// # Errors
    /// [`Error::Misuse`].
    pub fn check(&self, header: &Header) -> Result<()> {
        let Some(second) = &header.second else { return Ok(()) };
        let instead = "copy it to a file of this machine, and there run";
        if second.model != RecoveryModel::Simple {
            let instead = format!("{instead} `pellucid recovery FILE simple` first");
            let what = format!("the recovery model {}", second.model.name());
            return Err(self.refuse(&what, &instead));
        }
        if second.index_in_memory {
            let instead = format!("{instead} `pellucid index FILE file` first");
            return Err(self.refuse("a wal-index in memory", &instead));
        }
        Ok(())
    }
}

/// The VFS that has been named so, with its shim, made by `shim` of its name. `None` for the platform's own, over which the shim
/// `pellucid` lies.
///
/// # Errors
/// [`Error::Misuse`], which says what to do.
pub fn find(
    name: &[u8],
    platform: Option<*mut Vfs>,
    shim: fn(*mut Vfs, *const c_char) -> Vfs,
) -> Result<Option<&'static Over>> {
    let refuse = |why: String| Err(Error::misuse(Subject::Option(PARAMETER.into()), why));
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let text = std::str::from_utf8(name).ok().filter(|_| name.iter().all(is_plain));
    let Some(text) = text.filter(|text| (1..=NAME_MOST).contains(&text.len())) else {
        return refuse(format!(
            "the name of a VFS has 1 to {NAME_MOST} letters, digits, `.`, `_` and `-` here"
        ));
    };
    if name.starts_with(OWN) {
        return refuse(format!("`{text}` is a VFS of Pellucid's own: name the one below it"));
    }
    let (Some(api), Ok(terminated)) = (Api::get(), CString::new(name)) else {
        return refuse("the VFS is not registered in this process".to_owned());
    };
    // One at a time makes a shim.
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the name is terminated.
    let lower = unsafe { api.vfs_find()(terminated.as_ptr()) };
    if lower.is_null() {
        return refuse(format!(
            "there is no VFS `{text}` in this process: load the extension that brings it first, or correct the name"
        ));
    }
    if Some(lower) == platform {
        return Ok(None);
    }
    if let Some(known) = made.iter().find(|known| known.name() == text) {
        if known.lower != lower {
            return refuse(format!("another VFS has taken the name `{text}` since it was used first: restart the program"));
        }
        return Ok(Some(known));
    }
    let Ok(shim_name) = CString::new([OWN, b"-", name].concat()) else {
        return refuse("its name cannot be used".to_owned());
    };
    // SAFETY: as above.
    if unsafe { !api.vfs_find()(shim_name.as_ptr()).is_null() } {
        return refuse(format!("there is a VFS `pellucid-{text}` that is not Pellucid's"));
    }
    let shim = Box::into_raw(Box::new(shim(lower, shim_name.as_ptr())));
    let over = Over { name: text.to_owned(), lower, shim, _shim_name: shim_name };
    let over: &'static Over = Box::leak(Box::new(over));
    // Known before SQLite knows it: another thread may open it at once.
    made.push(over);
    IS_ANY.store(true, Ordering::Release);
    // SAFETY: the structure lives for ever. SQLite writes the list that it keeps, in `next`, which nobody else reads.
    if unsafe { api.vfs_register()(over.shim(), 0) } != ffi::OK {
        made.pop();
        return refuse(format!("SQLite does not take the shim over `{text}`"));
    }
    Ok(Some(over))
}

/// The named VFS below a shim: by what lies below it, because a program may wrap a shim under a name of its own. `None` for the
/// platform's.
///
/// # Errors
/// A shim over a VFS that nobody knows, or that is not registered any more.
///
/// # Safety
/// `shim` is a shim of ours, or a copy of one.
pub unsafe fn of_shim(shim: *mut Vfs, platform: Option<*mut Vfs>) -> Result<Option<&'static Over>> {
    // SAFETY: by contract.
    let lower: *mut Vfs = unsafe { (*shim).app_data.cast() };
    if Some(lower) == platform || platform.is_none() {
        return Ok(None);
    }
    let made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let known = made.iter().find(|over| over.lower == lower).copied();
    drop(made);
    match known.filter(|over| over.is_registered()) {
        Some(over) => Ok(Some(over)),
        None => Err(Error::misuse(
            Subject::Option(PARAMETER.into()),
            "the VFS below this one is not registered any more: restart the program",
        )),
    }
}

/// Whether a VFS was named in this process.
pub fn is_any() -> bool {
    IS_ANY.load(Ordering::Acquire)
}
