//! The token: its module, its slot, the login.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error, RvError};
use cryptoki::session::{Session, UserType};
use cryptoki::slot::{Slot, TokenInfo};
use cryptoki::types::AuthPin;
use pellucid_files::trusted::{self, Guard};
use pellucid_plugin::{Refusal, Secret, Settings};

use zeroize::Zeroizing;

use crate::uri::Uri;

/// What `pkcs11.conf` may have: modules that may be loaded, the first of which is the usual one; the file with the PIN, in
/// place of the URI's; `NAME=VALUE` for the module's environment.
pub const SETTINGS: &[&str] = &["module", "pin-source", "environment"];

const PIN_BYTES_MOST: usize = 4096;
/// What is waited for others that use the token.
const TURN: Duration = Duration::from_secs(8);

/// An open session, logged in where the token wants it.
pub struct Token {
    pub session: Session,
    pub uri: Uri,
    /// Closed last.
    _turn: Option<File>,
}

impl Token {
    /// Loads the module, finds the one token that the URI names, and logs in.
    pub fn open(
        settings: &Settings,
        uri: Uri,
        pin: Option<&Secret>,
        to_write: bool,
    ) -> Result<Self, Refusal> {
        let module = module(settings, &uri)?;
        for pair in settings.all("environment") {
            match pair.split_once('=') {
                Some((name, value)) if !name.is_empty() => std::env::set_var(name, value),
                _ => {
                    return Err(Refusal::misuse(
                        "an `environment` of the settings is not NAME=VALUE",
                    ))
                }
            }
        }
        let turn = turn(settings.path());
        let context = Pkcs11::new(&module).map_err(|error| {
            Refusal::misuse(format!("the module `{}` cannot be loaded: {error}", module.display()))
        })?;
        context
            .initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK))
            .map_err(|error| refused("the module does not start", &error))?;
        let (slot, info) = slot(&context, &uri)?;
        let opened = match to_write {
            true => context.open_rw_session(slot),
            false => context.open_ro_session(slot),
        };
        let session = opened.map_err(|error| refused("the token opens no session", &error))?;
        if info.login_required() {
            login(&session, &info, settings, (&uri, pin))?;
        }
        Ok(Self { session, uri, _turn: turn })
    }
}

/// One process at a time: SoftHSM writes its token at each login, and whoever reads it meanwhile finds none. A token of
/// hardware does one thing at a time as well. Who holds the lock for too long is not waited for.
fn turn(settings: &Path) -> Option<File> {
    use rustix::fs::{flock, FlockOperation};
    let (told, turn) = mpsc::channel();
    let file = trusted::open_of_root(settings).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
        return Some(file);
    }
    // Ends with the process, if the lock does not come.
    std::thread::spawn(move || {
        if flock(&file, FlockOperation::LockExclusive).is_ok() {
            let _ = told.send(file);
        }
    });
    turn.recv_timeout(TURN).ok()
}

/// The file of the module: of those that root's settings allow, the one that the URI names, or the first.
fn module(settings: &Settings, uri: &Uri) -> Result<PathBuf, Refusal> {
    let mut allowed = settings.all("module").map(Path::new);
    let is_named = |path: &&Path| {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let by_name = uri.module_name.as_deref();
        uri.module_path.as_deref().is_none_or(|named| named == *path)
            && by_name.is_none_or(|named| name == named || name.strip_prefix("lib") == Some(named))
    };
    let conf = settings.path().display();
    if settings.get("module").is_none() {
        return Err(Refusal::misuse(format!(
            "no module is allowed: `module = PATH` in `{conf}` names it"
        )));
    }
    let found = allowed.find(is_named).ok_or_else(|| {
        Refusal::misuse(format!("the module that the key names is none that `{conf}` allows"))
    })?;
    if !found.is_absolute() {
        return Err(Refusal::misuse(format!("a module of `{conf}` is no absolute path")));
    }
    trusted::open_of_root(found)?;
    Ok(found.to_owned())
}

/// The one slot with a token that fits.
fn slot(context: &Pkcs11, uri: &Uri) -> Result<(Slot, TokenInfo), Refusal> {
    let slots = context
        .get_slots_with_initialized_token()
        .map_err(|error| refused("the module names no slots", &error))?;
    let fits = |wanted: &Option<String>, found: &str| {
        wanted.as_deref().is_none_or(|wanted| wanted == found.trim_end())
    };
    let mut fitting = Vec::new();
    for slot in slots {
        // One that was pulled out just now.
        let Ok(info) = context.get_token_info(slot) else { continue };
        if fits(&uri.token, info.label())
            && fits(&uri.manufacturer, info.manufacturer_id())
            && fits(&uri.model, info.model())
            && fits(&uri.serial, info.serial_number())
            && uri.slot.is_none_or(|wanted| wanted == slot.id())
        {
            fitting.push((slot, info));
        }
    }
    match (fitting.pop(), fitting.len()) {
        (Some(one), 0) => Ok(one),
        (Some(_), more) => {
            Err(Refusal::misuse(format!("{} tokens fit the key; name one by `serial=`", more + 1)))
        }
        (None, _) => Err(Refusal::missing_key(
            "no token in any slot fits the key: is it in, and is its name right?",
        )),
    }
}

fn login(
    session: &Session,
    info: &TokenInfo,
    settings: &Settings,
    (uri, given): (&Uri, Option<&Secret>),
) -> Result<(), Refusal> {
    if info.user_pin_locked() {
        return Err(Refusal::missing_key(
            "the token's PIN is locked; its security officer has to set a new one",
        ));
    }
    // A service that is started again and again would lock it.
    if info.user_pin_count_low() || info.user_pin_final_try() {
        return Err(Refusal::missing_key(
            "a wrong PIN was given to the token before, and another one might lock it: nothing was tried. Log in once with the \
             right one (`pkcs11-tool --module MODULE --login --list-objects`), put that into the PIN's file, then try again",
        ));
    }
    let (pin, whose) = match given {
        Some(pin) => (auth_pin(pin, "that was given")?, "that was given".to_owned()),
        None => {
            let (source, is_roots_word) = pin_source(settings, uri)?;
            let whose = format!("in `{}`", source.display());
            (auth_pin(&read_pin(&source, is_roots_word)?, &whose)?, whose)
        }
    };
    match session.login(UserType::User, Some(&pin)) {
        Ok(()) | Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => Ok(()),
        Err(Error::Pkcs11(
            RvError::PinIncorrect | RvError::PinLenRange | RvError::PinInvalid,
            _,
        )) => Err(Refusal::missing_key(format!(
            "the PIN {whose} is not the token's; it was tried once"
        ))),
        Err(Error::Pkcs11(RvError::PinLocked, _)) => Err(Refusal::missing_key(
            "the token's PIN is locked; its security officer has to set a new one",
        )),
        Err(error) => Err(refused("the token does not take the login", &error)),
    }
}

/// The file that has the PIN, and whether root's settings name it.
fn pin_source(settings: &Settings, uri: &Uri) -> Result<(PathBuf, bool), Refusal> {
    match (settings.get("pin-source"), &uri.pin_source) {
        (Some(_), Some(_)) => Err(Refusal::misuse(format!(
            "`{}` names the PIN's file; leave `pin-source` out of the key",
            settings.path().display()
        ))),
        (Some(set), None) => Ok((PathBuf::from(set.strip_prefix("file:").unwrap_or(set)), true)),
        (None, Some(named)) => Ok((named.clone(), false)),
        (None, None) => Err(Refusal::missing_key(
            "the token wants a PIN: `?pin-source=file:PATH` in the key, or `pin-source` in the settings, names the file \
             that has it",
        )),
    }
}

/// A file that nobody else can read, but for its group where root's settings name the file.
fn read_pin(path: &Path, is_roots_word: bool) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let trouble =
        |error: std::io::Error| Refusal::trouble(format!("`{}`: {error}", path.display()));
    let group = match is_roots_word {
        true => {
            let file = trusted::open_of_root(path)?;
            Some(file.metadata().map_err(trouble)?.gid())
        }
        false => None,
    };
    let file = trusted::open(path, Guard::Secret { what: "the PIN", group })?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(PIN_BYTES_MOST));
    file.take(PIN_BYTES_MOST as u64).read_to_end(&mut bytes).map_err(trouble)?;
    Ok(bytes)
}

/// The first line of what has a PIN.
fn auth_pin(bytes: &[u8], whose: &str) -> Result<AuthPin, Refusal> {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match std::str::from_utf8(line) {
        Ok(pin) if !pin.is_empty() => Ok(AuthPin::from(pin.to_owned())),
        _ => Err(Refusal::missing_key(format!("there is no PIN {whose}"))),
    }
}

/// An error of the token's, without its long explanation.
pub fn refused(what: &str, error: &Error) -> Refusal {
    match error {
        Error::Pkcs11(
            RvError::TokenNotPresent | RvError::DeviceRemoved | RvError::TokenNotRecognized,
            _,
        ) => Refusal::missing_key("the token was removed; put it back"),
        Error::Pkcs11(code, function) => {
            Refusal::trouble(format!("{what}: {code:?} of {function:?}"))
        }
        other => Refusal::trouble(format!("{what}: {other}")),
    }
}
