//! The broker of a system instance: it opens databases for accounts that may not read the keyring.
//!
//! An account asks by a socket, and gets the data encryption key of a database that it was let into, and what the keyring expects at
//! paths; never a private key. `/etc/pellucid.conf` names the socket (`broker = PATH`). Who owns the instance reads the keyring itself.
//! Protocol and reasons: docs/design/broker.md.

pub(crate) mod wire;

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use pellucid::error::{Error, Result, Subject};
use pellucid::header::COPY_BYTES;
use pellucid::secret::{Dek, Secret32};
use pellucid::shown::{printable, Shown};
use pellucid_files::trusted;
use rustix::net::{self, sockopt};
use zeroize::Zeroizing;

pub use wire::{MAGIC, QUESTION_BYTES_MOST, QUESTION_HEAD_BYTES};

use super::{instance, Keyring};
use wire::{Operation, Reader, Status, Writer};

/// Where the broker listens if nothing else is said.
pub const SOCKET: &str = "/run/pellucid/broker";

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a broker that is not there is waited for: it may be about to start again.
const ABSENT: Duration = Duration::from_secs(3);
/// As long as a backup may take.
const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);
const PAUSE: Duration = Duration::from_millis(20);
/// For that long a failure is told again and not met again: one opening asks more than once.
const REMEMBERED: Duration = Duration::from_secs(1);
const TOLD_BYTES_MOST: usize = 1_000;
/// What the kernel calls each account of another user namespace.
const NOBODY: u32 = 65_534;

/// When which socket failed, and how.
static FAILED: Mutex<Option<(Instant, PathBuf, String)>> = Mutex::new(None);

/// The broker that has to be asked in the place of a keyring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    socket: PathBuf,
}

/// The kind of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum BackupKind {
    /// The whole database.
    Full = 0,
    /// What has changed since the last full one.
    Differential = 1,
    /// The commits since the last log backup.
    Log = 2,
}

/// A backup that an account asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The database's whole path.
    pub database: PathBuf,
    /// The name of the backup's file.
    pub name: String,
    /// Of which kind.
    pub kind: BackupKind,
    /// Whether to append to media that are there.
    pub append: bool,
}

/// What the keyring is asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) file_ids: Vec<[u8; 16]>,
    pub(crate) commitments: Vec<[u8; 32]>,
    /// Whether the policies are asked for: those of a newer version are an error, and keep nobody else from anything.
    pub(crate) policies: bool,
    /// The names of a database whose witnesses are asked for.
    pub(crate) witnesses: Option<Vec<PathBuf>>,
}

/// What it remembers of that, each as its sealed file has it: who asked knows how to read it.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) pins: Vec<Vec<u8>>,
    /// One for each file id; empty for a database that is not known.
    pub(crate) databases: Vec<Vec<u8>>,
    /// One for each commitment.
    pub(crate) retired: Vec<bool>,
    /// Names and limits of those that are set.
    pub(crate) policies: Vec<(String, String)>,
    /// Those at the names, and of the databases that the account opens.
    pub(crate) witnesses: Vec<Vec<u8>>,
    /// The instance whose keyring it is.
    pub(crate) home: PathBuf,
}

impl Broker {
    /// The broker to ask in the place of the keyring in `home`; none where the caller reads that itself.
    ///
    /// # Errors
    /// What keeps the file from being read that names it.
    pub fn of(home: &Path) -> Result<Option<Self>> {
        let found = instance::read()?;
        let (Some(machines), Some(socket)) = (found.home, found.broker) else { return Ok(None) };
        let is_asked = instance::is_same(&machines, home) && !instance::is_owned(home);
        Ok(is_asked.then_some(Self { socket }))
    }

    /// The socket of the machine's broker, whoever asks.
    ///
    /// # Errors
    /// As [`Broker::of`].
    pub fn configured() -> Result<Option<PathBuf>> {
        instance::read().map(|found| found.broker)
    }

    /// The brokers of the instances that the caller uses: its own comes first, and the machine's may lie behind it.
    ///
    /// # Errors
    /// As [`Broker::of`] and [`Keyring::all_homes`].
    pub fn all() -> Result<Vec<Self>> {
        Keyring::all_homes()?.iter().filter_map(|home| Self::of(home).transpose()).collect()
    }

    /// The one that listens at `socket`.
    pub fn at(socket: &Path) -> Self {
        Self { socket: socket.to_owned() }
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether it answers; the instance that it answers for.
    ///
    /// # Errors
    /// As [`Broker::open`].
    pub fn answers(&self) -> Result<PathBuf> {
        self.recall(&Query::default()).map(|memory| memory.home)
    }

    /// The data encryption key of the database with this header copy.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if this account was not let into it, if the keyring does not open it, or if the broker does not answer;
    /// [`Error::Unauthentic`] if the header was not written by who has the key.
    pub fn open(&self, copy: u8, header: &[u8; COPY_BYTES]) -> Result<Dek> {
        let mut question = Writer::default();
        question.byte(copy);
        question.raw(header);
        let none = || self.trouble("its answer is no key");
        let answer = self.ask(Operation::Open, &question.finish(), PATIENCE)?.ok_or_else(|| {
            let uid = rustix::process::geteuid().as_raw();
            Error::missing_key(
                Subject::Container,
                format!(
                    "the broker does not open it for the account {uid}: `pellucid broker allow ACCOUNT DATABASE`, as root, lets an account \
                     into a database"
                ),
            )
        })?;
        Secret32::from_slice(&answer).map(Dek::from_secret).ok_or_else(none)
    }

    /// Has a backup made; what was told of it.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if the account may not have it; [`Error::Io`] if it was not made.
    pub fn back_up(&self, asked: &Asked) -> Result<String> {
        let subject = || Subject::File(asked.database.clone());
        let told =
            self.ask(Operation::BackUp, &asked.encode(), MONTH).map_err(|error| match error {
                Error::Misuse { cause, .. } => {
                    Error::io(subject(), std::io::Error::other(cause.into_owned()))
                }
                error => error,
            })?;
        let told = told.ok_or_else(|| {
            Error::missing_key(
                subject(),
                "this account may not have it backed up: `pellucid broker allow --backup ACCOUNT DATABASE`, as root",
            )
        })?;
        Ok(String::from_utf8_lossy(&told).into_owned())
    }

    /// What the keyring remembers.
    ///
    /// # Errors
    /// Whatever keeps it from being told: an account that is not told what is expected must not take that for nothing.
    pub(crate) fn recall(&self, query: &Query) -> Result<Memory> {
        let answer = self.ask(Operation::Recall, &query.encode(), PATIENCE)?;
        answer.and_then(|answer| Memory::decode(&answer, query)).ok_or_else(|| self.unfit())
    }

    /// None if the account is denied.
    fn ask(
        &self,
        operation: Operation,
        bytes: &[u8],
        patience: Duration,
    ) -> Result<Option<Zeroizing<Vec<u8>>>> {
        if let Some(parent) = self.socket.parent() {
            trusted::check(parent)?;
        }
        if let Some(cause) = self.failed_just_now() {
            return Err(self.trouble(&cause));
        }
        let question = wire::question(operation, bytes);
        let begun = Instant::now();
        loop {
            let cause = match self.exchange(&question, begun + patience) {
                Ok((Status::Done, answer)) => return Ok(Some(answer)),
                Ok((Status::Denied, _)) => return Ok(None),
                Ok((Status::Busy, _)) => Some("too many ask it at once".to_owned())
                    .filter(|_| begun.elapsed() >= PATIENCE),
                Ok((status, told)) => return Err(self.refused(status, &told)),
                Err(error) => match error.kind() {
                    // It was killed, or is about to start.
                    ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                        Some(error.to_string()).filter(|_| begun.elapsed() >= ABSENT)
                    }
                    // A backup is not asked for twice.
                    ErrorKind::UnexpectedEof
                    | ErrorKind::ConnectionReset
                    | ErrorKind::BrokenPipe
                        if operation != Operation::BackUp =>
                    {
                        Some(error.to_string()).filter(|_| begun.elapsed() >= PATIENCE)
                    }
                    _ => Some(error.to_string()),
                },
            };
            if let Some(cause) = cause {
                // A process may have been forked while another thread held it.
                if let Ok(mut failed) = FAILED.try_lock() {
                    *failed = Some((Instant::now(), self.socket.clone(), cause.clone()));
                }
                return Err(self.trouble(&cause));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn failed_just_now(&self) -> Option<String> {
        let failed = FAILED.try_lock().ok()?;
        let (at, socket, cause) = failed.as_ref()?;
        (at.elapsed() < REMEMBERED && *socket == self.socket).then(|| cause.clone())
    }

    fn exchange(
        &self,
        question: &[u8],
        until: Instant,
    ) -> std::io::Result<(Status, Zeroizing<Vec<u8>>)> {
        let socket = net::socket_with(
            net::AddressFamily::UNIX,
            net::SocketType::STREAM,
            net::SocketFlags::CLOEXEC,
            None,
        )?;
        limit(&socket, until)?;
        let address = net::SocketAddrUnix::new(&self.socket)?;
        while let Err(error) = net::connect(&socket, &address) {
            match error {
                rustix::io::Errno::INTR => limit(&socket, until)?,
                // A signal came after the connection did.
                rustix::io::Errno::ISCONN => break,
                error => return Err(timed(error)),
            }
        }
        // By way of libc's type: a listener in another namespace of processes has the number 0.
        let broker = getsockopt(&socket, PeerCredentials)?.uid();
        if broker != 0 && (broker == NOBODY || broker != rustix::process::geteuid().as_raw()) {
            let told = format!("the account {broker} listens there, not root");
            return Err(std::io::Error::other(told));
        }
        let mut rest = question;
        while !rest.is_empty() {
            limit(&socket, until)?;
            match net::send(&socket, rest, net::SendFlags::NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(rustix::io::Errno::INTR) => {}
                // It may have answered, and closed, before it read all: what it says counts.
                Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => break,
                Err(error) => return Err(timed(error)),
            }
        }
        let head = receive(&socket, wire::ANSWER_HEAD_BYTES, until)?;
        let mut head = Reader(&head);
        let none = || std::io::Error::other("its answer is none");
        let status = head.byte().and_then(Status::of).ok_or_else(none)?;
        let length = head.number().filter(|length| *length <= wire::ANSWER_BYTES_MOST);
        Ok((status, receive(&socket, length.ok_or_else(none)?, until)?))
    }

    fn refused(&self, status: Status, told: &[u8]) -> Error {
        let told = String::from_utf8_lossy(&told[..told.len().min(TOLD_BYTES_MOST)]);
        let told = printable(&told).into_owned();
        match status {
            Status::MissingKey => Error::missing_key(Subject::Container, told),
            Status::Unauthentic => Error::unauthentic(Subject::Container, told),
            Status::Refused => Error::misuse(Subject::Key("broker"), told),
            // It answers, and cannot say.
            _ => Error::missing_key(
                Subject::Container,
                format!("the broker at `{}`: {told}", self.socket.shown()),
            ),
        }
    }

    /// The error of an answer that cannot be read.
    pub(crate) fn unfit(&self) -> Error {
        self.trouble("its answer does not fit what it was asked")
    }

    /// Nothing is wrong with the database: the key is not to be had now.
    pub(crate) fn trouble(&self, cause: &str) -> Error {
        let socket = self.socket.shown();
        Error::missing_key(
            Subject::Container,
            format!("the broker at `{socket}` does not answer: {cause}; `systemctl status pellucid-broker` tells root why"),
        )
    }
}

fn limit(socket: &OwnedFd, until: Instant) -> std::io::Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(std::io::Error::new(ErrorKind::TimedOut, "it took too long"));
    }
    for which in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
        sockopt::set_socket_timeout(socket, which, Some(left))?;
    }
    Ok(())
}

fn timed(error: rustix::io::Errno) -> std::io::Error {
    match error {
        rustix::io::Errno::AGAIN => std::io::Error::new(ErrorKind::TimedOut, "it took too long"),
        error => error.into(),
    }
}

fn receive(socket: &OwnedFd, length: usize, until: Instant) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(vec![0; length]);
    let mut at = 0;
    while at < length {
        limit(socket, until)?;
        match net::recv(socket, &mut bytes[at..], net::RecvFlags::empty()) {
            Ok((0, _)) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok((got, _)) => at += got,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(timed(error)),
        }
    }
    Ok(bytes)
}

impl Query {
    pub(crate) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Writer::default();
        let path = |bytes: &mut Writer, path: &PathBuf| bytes.block(path.as_os_str().as_bytes());
        bytes.list(&self.paths, path);
        bytes.list(&self.file_ids, |bytes, id| bytes.raw(id));
        bytes.list(&self.commitments, |bytes, commitment| bytes.raw(commitment));
        bytes.byte(self.policies.into());
        bytes.byte(self.witnesses.is_some().into());
        bytes.list(self.witnesses.as_deref().unwrap_or_default(), path);
        bytes.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Reader(bytes);
        let path = |bytes: &mut Reader<'_>| {
            bytes.block().map(|path| PathBuf::from(OsStr::from_bytes(path)))
        };
        let query = Self {
            paths: bytes.list(path)?,
            file_ids: bytes.list(Reader::array)?,
            commitments: bytes.list(Reader::array)?,
            policies: bytes.byte()? == 1,
            witnesses: {
                let is_asked = bytes.byte()? == 1;
                let names = bytes.list(path)?;
                is_asked.then_some(names)
            },
        };
        bytes.end()?;
        Some(query)
    }
}

impl Asked {
    pub(crate) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Writer::default();
        bytes.byte(self.kind as u8);
        bytes.byte(self.append.into());
        bytes.block(self.database.as_os_str().as_bytes());
        bytes.block(self.name.as_bytes());
        bytes.finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Reader(bytes);
        let asked = Self {
            kind: match bytes.byte()? {
                0 => BackupKind::Full,
                1 => BackupKind::Differential,
                2 => BackupKind::Log,
                _ => return None,
            },
            append: bytes.byte()? == 1,
            database: PathBuf::from(OsStr::from_bytes(bytes.block()?)),
            name: std::str::from_utf8(bytes.block()?).ok()?.to_owned(),
        };
        bytes.end()?;
        Some(asked)
    }
}

impl Memory {
    pub(crate) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let block = |bytes: &mut Writer, block: &Vec<u8>| bytes.block(block);
        let mut bytes = Writer::default();
        bytes.list(&self.pins, block);
        bytes.list(&self.databases, block);
        bytes.list(&self.retired, |bytes, is_retired| bytes.byte((*is_retired).into()));
        bytes.list(&self.policies, |bytes, (policy, limit)| {
            bytes.block(policy.as_bytes());
            bytes.block(limit.as_bytes());
        });
        bytes.list(&self.witnesses, block);
        bytes.block(self.home.as_os_str().as_bytes());
        bytes.finish()
    }

    /// None where it does not fit the query: an answer that leaves something out would be taken for one that expects nothing.
    pub(crate) fn decode(bytes: &[u8], query: &Query) -> Option<Self> {
        let block = |bytes: &mut Reader<'_>| bytes.block().map(<[u8]>::to_vec);
        let text =
            |bytes: &mut Reader<'_>| std::str::from_utf8(bytes.block()?).ok().map(str::to_owned);
        let mut bytes = Reader(bytes);
        let memory = Self {
            pins: bytes.list(block)?,
            databases: bytes.list(block)?,
            retired: bytes.list(|bytes| bytes.byte().map(|byte| byte == 1))?,
            policies: bytes.list(|bytes| Some((text(bytes)?, text(bytes)?)))?,
            witnesses: bytes.list(block)?,
            home: PathBuf::from(OsStr::from_bytes(bytes.block()?)),
        };
        bytes.end()?;
        let fits = memory.databases.len() == query.file_ids.len()
            && memory.retired.len() == query.commitments.len();
        fits.then_some(memory)
    }
}

/// Who asks, as the kernel says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The account's number.
    pub uid: u32,
    /// The process.
    pub pid: u32,
    /// What it runs, as far as that can be seen.
    pub program: Option<PathBuf>,
}
