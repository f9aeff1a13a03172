//! The broker itself: listens, and answers each connection once.
//!
//! Anybody may connect; the kernel says who that is. An account holds a few connections at most, so that none keeps others out.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use pellucid::hash::hex;
use pellucid::shown::Shown;
use pellucid_keyring::broker::{BackupKind, Peer, QUESTION_BYTES_MOST, QUESTION_HEAD_BYTES};
use pellucid_keyring::broker_service::{refuse_for_now, Answer, Order};
use pellucid_keyring::Keyring;
use rustix::fs::{flock, FlockOperation};

use crate::output::{Failure, Id, Output};

/// Connections at once of an account that has a role, and of one that has none.
const MOST_OF_ONE: usize = 32;
const MOST_OF_STRANGER: usize = 8;
/// Of all accounts that have none: they never take the places of the others.
const MOST_OF_STRANGERS: usize = 32;
/// Of all that have one.
const MOST: usize = 256;
/// What a connection has for its whole question, and for taking each part of the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How old the list of accounts with roles may be.
const ROLES_FOR: Duration = Duration::from_secs(1);
/// Refusals of an account that are told, each once.
const TOLD_MOST: usize = 50;

/// Answers until it is stopped.
pub fn run(home: &Path, socket: &Path, output: &Output) -> Result<(), Failure> {
    if !socket.is_absolute() {
        return Err(Failure::new(
            Id::Misuse,
            format!("`{}` is no absolute path", socket.shown()),
            "accounts look for it from wherever they are",
        ));
    }
    if let Some(parent) = socket.parent() {
        pellucid_files::trusted::check(parent)?;
    }
    // A keyring that does not open is told now, not to the first who asks.
    Keyring::open(home)?;
    let failed = |error: std::io::Error| {
        Failure::new(
            Id::CannotOpen,
            format!("`{}`: {error}", socket.shown()),
            "its directory has to be there, and root's: `pellucid-broker.service` makes /run/pellucid",
        )
    };
    let (listener, _alone) = listen(socket).map_err(failed)?;
    output.line(format!("answers at {}", socket.shown()));
    let service = Arc::new(Service { home: home.to_owned(), ..Service::default() });
    loop {
        match listener.accept() {
            Ok((stream, _)) => service.take(stream),
            // Without descriptors or memory: others are about to end.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Takes the socket's name once it is ready, from a broker that was killed, too. One at a time.
fn listen(socket: &Path) -> std::io::Result<(UnixListener, File)> {
    let beside = |end: &str| {
        let mut name = socket.file_name().unwrap_or_default().to_owned();
        name.push(end);
        socket.with_file_name(name)
    };
    let lock = File::options().create(true).truncate(false).write(true).open(beside(".lock"))?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| std::io::Error::other("another broker answers there"))?;
    if let Ok(found) = socket.symlink_metadata() {
        if !found.file_type().is_socket() {
            return Err(std::io::Error::other("something else than a socket is there"));
        }
    }
    let new = beside(".new");
    if new.symlink_metadata().is_ok_and(|found| found.file_type().is_socket()) {
        std::fs::remove_file(&new)?;
    }
    let listener = UnixListener::bind(&new)?;
    // Whoever connects is known by the kernel.
    std::fs::set_permissions(&new, PermissionsExt::from_mode(0o666))?;
    std::fs::rename(&new, socket)?;
    Ok((listener, lock))
}

#[derive(Debug, Default)]
struct Service {
    home: PathBuf,
    /// Connections of each account.
    held: Mutex<HashMap<u32, usize>>,
    /// Accounts that have roles, and when that was looked up.
    known: Mutex<(Option<Instant>, HashSet<u32>)>,
    told: Mutex<HashMap<u32, HashSet<String>>>,
    /// Accounts for which a backup is being made.
    busy: Mutex<HashSet<u32>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Service {
    fn take(self: &Arc<Self>, stream: UnixStream) {
        let Some((peer, gid)) = peer(&stream) else { return };
        if !self.may_hold(peer.uid) {
            let _ = stream.set_nonblocking(true);
            let _ = (&stream).write(&refuse_for_now());
            return;
        }
        let (service, uid) = (self.clone(), peer.uid);
        let started = std::thread::Builder::new().spawn(move || {
            let _held = Held { service: &service, uid };
            let _ = service.answer(&stream, &peer, gid);
        });
        if started.is_err() {
            drop(Held { service: self, uid });
        }
    }

    fn may_hold(&self, uid: u32) -> bool {
        let is_known = uid == 0 || self.is_known(uid);
        let known = locked(&self.known);
        let mut held = locked(&self.held);
        let of_others = held.iter().filter(|(other, _)| known.1.contains(other) == is_known);
        let all: usize = of_others.map(|(_, own)| own).sum();
        let own = held.entry(uid).or_default();
        let is_free = match is_known {
            true => uid == 0 || (all < MOST && *own < MOST_OF_ONE),
            // Half of the places are for accounts that hold none.
            false if *own == 0 => all < 2 * MOST_OF_STRANGERS,
            false => all < MOST_OF_STRANGERS && *own < MOST_OF_STRANGER,
        };
        *own += usize::from(is_free);
        is_free
    }

    /// Whether an account has a role, as of a second ago.
    fn is_known(&self, uid: u32) -> bool {
        let mut known = locked(&self.known);
        if known.0.is_none_or(|at| at.elapsed() >= ROLES_FOR) {
            if let Ok(roles) = Keyring::open(&self.home).and_then(|keyring| keyring.roles()) {
                known.1 = roles.pairs.iter().map(|pair| pair.account.uid).collect();
            }
            known.0 = Some(Instant::now());
        }
        known.1.contains(&uid)
    }

    fn answer(&self, mut stream: &UnixStream, peer: &Peer, gid: u32) -> std::io::Result<()> {
        let until = Instant::now() + PATIENCE;
        let mut head = [0; QUESTION_HEAD_BYTES];
        read(stream, &mut head, until)?;
        let [a, b, c, d, operation, length @ ..] = head;
        let length = u32::from_be_bytes(length) as usize;
        if length > QUESTION_BYTES_MOST {
            return Ok(());
        }
        let mut bytes = vec![0; length];
        read(stream, &mut bytes, until)?;
        let magic = [a, b, c, d];
        let answer = match Answer::is_order(magic, operation) {
            true => self.back_up(peer, gid, &bytes),
            false => Answer::to(&self.home, peer, magic, operation, &bytes),
        };
        if let Some(refused) = answer.refused {
            self.tell(peer.uid, refused);
        }
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&answer.bytes)
    }

    /// One backup of an account at a time.
    fn back_up(&self, peer: &Peer, gid: u32, bytes: &[u8]) -> Answer {
        if !locked(&self.busy).insert(peer.uid) {
            return Answer::of_backup(Err("a backup of this account is being made".into()));
        }
        let _turn = Turn { service: self, uid: peer.uid };
        match Order::of(&self.home, peer, bytes) {
            Ok(order) => Answer::of_backup(made(&order, gid)),
            Err(refused) => refused,
        }
    }

    /// A refusal in the broker's own log, once: an account may ask as often as it likes.
    fn tell(&self, uid: u32, refused: String) {
        let mut told = locked(&self.told);
        let own = told.entry(uid).or_default();
        if own.len() < TOLD_MOST && own.insert(refused.clone()) {
            let _ = writeln!(std::io::stderr(), "pellucid: {}", refused.shown());
        }
    }
}

/// Reads all of `bytes`, by a time that is the same however slowly they come.
fn read(mut stream: &UnixStream, mut bytes: &mut [u8], until: Instant) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(bytes) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => bytes = &mut bytes[read..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The turn of an account's backup.
struct Turn<'a> {
    service: &'a Service,
    uid: u32,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        locked(&self.service.busy).remove(&self.uid);
    }
}

/// Has this program make a backup, in a process of its own; what it told. The set lies in a directory of the account's that is root's,
/// and so is the set: its group can carry a copy away, and nobody but root can take it away or change it.
fn made(order: &Order, gid: u32) -> Result<String, String> {
    let io = |error: std::io::Error| error.to_string();
    if let Some(folder) = order.target.parent() {
        match std::fs::DirBuilder::new().mode(0o755).create(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(io(error)),
            _ => pellucid_files::trusted::check(folder).map_err(|error| error.to_string())?,
        }
        // Whatever umask the service has.
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).map_err(io)?;
    }
    // The program that runs, also where an update has put another one in its place.
    let mut command = Command::new("/proc/self/exe");
    command
        .arg("backup")
        .arg("--file-id")
        .arg(hex(&order.file_id))
        .arg(&order.database)
        .arg("--to")
        .arg(&order.target);
    command.args(match order.kind {
        BackupKind::Full => None,
        BackupKind::Differential => Some("--differential"),
        BackupKind::Log => Some("--log"),
    });
    command.args(order.append.then_some("--append")).stdin(Stdio::null());
    let done = command.output().map_err(io)?;
    let [told, wrong] =
        [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    if !done.status.success() {
        return Err(wrong);
    }
    std::os::unix::fs::lchown(&order.target, Some(0), Some(gid)).map_err(io)?;
    std::fs::set_permissions(&order.target, PermissionsExt::from_mode(0o640)).map_err(io)?;
    Ok(told)
}

/// A connection of an account, as long as it is answered.
struct Held<'a> {
    service: &'a Service,
    uid: u32,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = locked(&self.service.held);
        if let Some(own) = held.get_mut(&self.uid) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                held.remove(&self.uid);
            }
        }
    }
}

/// The account and its group, as the kernel says. A process of another namespace has no number here.
fn peer(stream: &UnixStream) -> Option<(Peer, u32)> {
    let found = getsockopt(stream, PeerCredentials).ok()?;
    let pid = u32::try_from(found.pid()).ok()?;
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    Some((Peer { uid: found.uid(), pid, program }, found.gid()))
}
