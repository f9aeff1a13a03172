//! The keys that a connection brings, and the keys and protectors that a new database gets.
//!
//! Both come from URI parameters, the environment and the keyring, never from arguments.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use pellucid::certificate::{Certificate, PublicCertificate};
use pellucid::derive::commitment;
use pellucid::header::{DekRow, EncryptionState, Header, Second, COPY_BYTES};
use pellucid::keys::{ContainerKeys, HeaderKey};
use pellucid::protector::{Binding, KeyFile, KeySource, Passphrase, Protector};
use pellucid::shown::Shown;
use pellucid::{Algorithm, Dek, Error, Result, Subject};
use pellucid_host::code::is_out_of_files;
use pellucid_host::over::Over;
use pellucid_keyring::broker::Broker;
use pellucid_keyring::{Action, DatabaseMemory, Event, Keyring};

/// Keys a connection may open protectors with.
#[derive(Debug, Default)]
pub struct Credentials {
    key_files: Vec<KeyFile>,
    passphrases: Vec<Passphrase>,
    recovery: bool,
    /// No certificate is asked for.
    is_alone: bool,
    /// Counted where many headers are asked about.
    wasted_kib: Option<AtomicU64>,
    /// Distinguishes sets of credentials in the cache of opened headers.
    identity: Vec<u8>,
    /// Of each key file, made while it was read: making one leaves the key on the stack for a while.
    key_identities: Vec<[u8; 32]>,
    /// Of each passphrase.
    passphrase_identities: Vec<[u8; 32]>,
}

/// Keys from a prompt or a descriptor that the program offers to every connection it opens.
static OFFERED: Mutex<Vec<Offer>> = Mutex::new(Vec::new());

/// A key from a prompt or a descriptor.
#[derive(Debug, Clone)]
pub enum Offer {
    /// The content of a key file.
    KeyFile(KeyFile),
    /// A passphrase.
    Passphrase(Passphrase),
    /// Permission to use recovery protectors.
    Recovery,
}

/// Offers a key to every connection this process opens from now on.
pub fn offer(key: Offer) {
    OFFERED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(key);
}

/// The request in the URI of one database: names and paths, no secrets.
#[derive(Debug, Default, Clone)]
pub struct Request {
    pub certificate: Option<String>,
    pub key_file: Option<PathBuf>,
    pub passphrase_file: Option<PathBuf>,
    pub algorithm: Option<String>,
    /// A token of [`prepare_birth`].
    pub birth: Option<String>,
    /// `require=sealed`, or `PELLUCID_REQUIRE=1`: a plain database is refused. `require=container` is the project's own.
    pub require: bool,
    /// `require=sealed`, or `PELLUCID_REQUIRE=1`: one whose encryption is switched off is refused, too.
    pub require_sealed: bool,
    /// `require=fresh`: an encrypted database whose archive of logs knows less than the keyring's witness of it is refused, and one
    /// without a witness.
    pub require_fresh: bool,
    /// `pellucid_copy=1`: opens only the copy that a conversion in this process is filling.
    pub copy: bool,
    /// `file_id=`: the only file ids that the database may have.
    pub file_id: Option<String>,
    /// `pellucid_own=1`: a file of the instance's own. Its history's key alone opens it, and another database in its place is
    /// refused, whatever the policy says.
    pub own: bool,
    /// `strict_log=1`, or `PELLUCID_STRICT_LOG=1`: commits behind a damaged frame of the log are an error.
    pub strict_log: bool,
    /// `pellucid_accept=1`: what is expected is not looked at, because it is about to be changed.
    pub accept: bool,
    /// `pellucid_renew=1`: the connection gives a database under a retired key a new one.
    pub renew: bool,
    /// `pellucid_recover=1`: the connection ends a restore, so that the marks of the header do not keep it out.
    pub recover: bool,
    /// The copy's pages are in clear, whatever the environment says.
    pub plain: bool,
    /// `PELLUCID_ENCRYPT_NEW=1`: a new database is sealed under what the environment names.
    pub encrypt_new: bool,
    /// `encrypt_new=1`: a new database is sealed like one that is open, else as by
    /// `PELLUCID_ENCRYPT_NEW=1`.
    pub seal_new: bool,
    /// `plain_copies=1`, or `PELLUCID_PLAIN_COPIES=1`: a new database may be plain beside a sealed
    /// one, and so may copies of this one.
    pub plain_copies: bool,
    /// `pellucid_mmap=0`, or `PELLUCID_MMAP=0`: pages are not read through a mapping.
    pub unmapped: bool,
    /// `pellucid_over=`, or `PELLUCID_OVER=`: the lower VFS, if it is not the platform's.
    pub over: Option<&'static Over>,
}

impl Request {
    /// Whether the URI itself names the key of a new database.
    pub fn names_a_key(&self) -> bool {
        self.certificate.is_some()
            || self.key_file.is_some()
            || self.passphrase_file.is_some()
            || self.birth.is_some()
    }

    /// Whether a new database would be sealed.
    pub fn begets(&self) -> bool {
        !self.plain && (self.names_a_key() || self.encrypt_new || self.seal_new)
    }

    /// Whether a new database would be plain where a plain one is refused.
    pub fn forbids_birth(&self) -> bool {
        self.require && !self.begets()
    }
}

impl Credentials {
    /// Reads the key files and passphrases that the request and the environment name.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a file that others can read, [`Error::Io`] for one that cannot be read.
    pub fn gather(request: &Request) -> Result<Self> {
        if request.own {
            return Self::of_history();
        }
        let mut credentials = Self { recovery: flag("PELLUCID_RECOVERY"), ..Self::default() };
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let key_files = [request.key_file.clone(), variable("PELLUCID_KEY_FILE")];
        for path in key_files.into_iter().flatten() {
            let key = pellucid_files::secrets::key_file(&path)?;
            credentials.add_key_file(key);
        }
        let files = [request.passphrase_file.clone(), variable("PELLUCID_PASSPHRASE_FILE")];
        for path in files.into_iter().flatten() {
            credentials.add_passphrase(pellucid_files::secrets::passphrase(&path)?);
        }
        let offered = OFFERED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        for offer in offered {
            match offer {
                Offer::KeyFile(key) => {
                    credentials.add_key_file(key);
                }
                Offer::Passphrase(passphrase) => credentials.add_passphrase(passphrase),
                Offer::Recovery => credentials.recovery = true,
            }
        }
        Ok(credentials)
    }

    /// The key of the instance's history, and nothing else that opens a header: others have certificates of this keyring, too.
    fn of_history() -> Result<Self> {
        let mut own = Self { is_alone: true, ..Self::default() };
        let home = Keyring::locate()?;
        if Keyring::is_at(&home) {
            if let Some(key) = Keyring::open(&home)?.history_key()? {
                own.add_key_file(key);
            }
        }
        // What the same key has opened beside others counts for nothing here.
        own.identity.extend_from_slice(b"alone");
        Ok(own)
    }

    /// The same for a command that looks at all sets of media: what their passphrases cost in vain is counted together. A
    /// connection, which lives long and has others' passphrases beside its own in one header, counts each time anew.
    #[must_use]
    pub fn for_many(self) -> Self {
        Self { wasted_kib: Some(AtomicU64::new(0)), ..self }
    }

    /// Gives back what passphrases cost in vain so far: a set of the media has opened and is authentic, so that its maker had the key.
    /// Sets under several passphrases, of which the caller has one, take nothing from the sets behind them.
    pub fn forgive(&self) {
        if let Some(wasted) = &self.wasted_kib {
            wasted.store(0, Ordering::Relaxed);
        }
    }

    fn add_key_file(&mut self, key: KeyFile) {
        let identity = key.identity();
        self.identity.extend_from_slice(&identity);
        self.key_identities.push(identity);
        self.key_files.push(key);
    }

    /// Values that distinguish the key files, and the passphrases, and do not contain them.
    pub(crate) fn identities(&self) -> (&[[u8; 32]], &[[u8; 32]]) {
        (&self.key_identities, &self.passphrase_identities)
    }

    fn add_passphrase(&mut self, passphrase: Passphrase) {
        let identity = passphrase.identity();
        self.identity.extend_from_slice(&identity);
        self.passphrase_identities.push(identity);
        self.passphrases.push(passphrase);
    }

    /// Unwraps the DEK of `header` and authenticates the header under it. `bytes` is the header
    /// copy it came from.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if no protector opens. [`Error::Unauthentic`] if the header was not
    /// written with the DEK, or says that pages are plain although the keyring remembers the
    /// database as sealed.
    pub fn unlock(
        &self,
        header: &Header,
        bytes: &[u8; COPY_BYTES],
        copy: u8,
        known: Option<&Arc<ContainerKeys>>,
    ) -> Result<Arc<ContainerKeys>> {
        let cache_key = self.cache_key(bytes);
        if let Some(keys) = cache().get(&cache_key) {
            // The keyring may have remembered the database since the keys were cached.
            check_state(header)?;
            return Ok(keys);
        }
        let dek = match known.and_then(|keys| known_dek(keys, header, bytes)) {
            Some(dek) => dek,
            None => self.unwrap(header, bytes, copy)?,
        };
        let header_key = HeaderKey::derive(&dek, &header.file_id)?;
        Header::authenticate(bytes, &header_key, copy)?;
        check_state(header)?;
        let keys = Arc::new(ContainerKeys::new(header, &dek)?);
        cache().insert(cache_key, keys.clone());
        note_opened(&header.file_id);
        Ok(keys)
    }

    /// By the keys at hand, and else by the brokers of the instances that are used, which have certificates alone.
    fn unwrap(&self, header: &Header, bytes: &[u8; COPY_BYTES], copy: u8) -> Result<Dek> {
        let own = match header.unwrap(self) {
            Err(own @ Error::MissingKey { .. })
                if !self.is_alone && !certificates_of(header).is_empty() =>
            {
                own
            }
            done => return done,
        };
        let mut asked = None;
        for broker in Broker::all()? {
            match broker.open(copy, bytes) {
                Err(error @ Error::MissingKey { .. }) => asked = Some(error),
                done => return done,
            }
        }
        Err(asked.unwrap_or(own))
    }

    /// Caches the keys of a header that this process has written itself.
    pub fn remember(&self, bytes: &[u8; COPY_BYTES], keys: &Arc<ContainerKeys>) {
        cache().insert(self.cache_key(bytes), keys.clone());
    }

    /// The key in the cache: a header's checksum and the credentials it was opened with. Other
    /// credentials have to open the header themselves.
    fn cache_key(&self, bytes: &[u8; COPY_BYTES]) -> CacheKey {
        (bytes[COPY_BYTES - 32..].to_vec(), self.identity.clone())
    }
}

impl KeySource for Credentials {
    fn key_files(&self) -> &[KeyFile] {
        &self.key_files
    }

    fn passphrases(&self) -> &[Passphrase] {
        &self.passphrases
    }

    fn allow_recovery(&self) -> bool {
        self.recovery
    }

    fn allow_classical(&self) -> bool {
        pellucid_keyring::is_classical_allowed()
    }

    fn allow_cost(&self) -> bool {
        pellucid_keyring::is_cost_allowed()
    }

    fn wasted_kib(&self) -> Option<&AtomicU64> {
        self.wasted_kib.as_ref()
    }

    fn certificate(&self, thumbprint_sha256: &[u8; 32]) -> Result<Option<Certificate>> {
        if self.is_alone {
            return Ok(None);
        }
        let path = Keyring::locate()?;
        // A missing keyring is no error, because another protector may open; a keyring that may not
        // be read is one.
        if !Keyring::is_at(&path) {
            return Ok(None);
        }
        Keyring::open(&path)
            .and_then(|keyring| keyring.certificate_by_thumbprint(thumbprint_sha256))
            .map_err(|error| keyring_trouble(&path, error))
    }

    fn public_certificate(
        &self,
        thumbprint_sha256: &[u8; 32],
    ) -> Result<Option<PublicCertificate>> {
        if self.is_alone {
            return Ok(None);
        }
        let path = Keyring::locate()?;
        if !Keyring::is_at(&path) {
            return Ok(None);
        }
        let of = |keyring: &Keyring| -> Result<Option<PublicCertificate>> {
            let stored = keyring.certificates()?;
            let mut own = stored.iter().map(pellucid_keyring::Stored::public);
            Ok(own.find(|public| public.thumbprint() == thumbprint_sha256).cloned())
        };
        let keyring = Keyring::open(&path)?;
        let found = of(&keyring);
        if matches!(&found, Ok(Some(own)) if own.companion().is_some()) {
            return found;
        }
        // As with its private key: that of the machine, where this keyring is a user's own.
        match keyring.behind().map(|machine| of(&machine)) {
            Some(Ok(Some(machines)))
                if !matches!(found, Ok(Some(_))) || machines.companion().is_some() =>
            {
                Ok(Some(machines))
            }
            _ => found,
        }
    }
}

/// Turns an unreadable or damaged keyring into a missing key. The fault is not the database's, so
/// the message must not call the database unreadable or damaged.
fn keyring_trouble(home: &Path, error: Error) -> Error {
    let unreadable = match &error {
        Error::Io { source, .. } => source.kind() == std::io::ErrorKind::PermissionDenied,
        Error::Corrupt { .. } | Error::Unauthentic { .. } => true,
        _ => false,
    };
    match unreadable {
        true => Error::missing_key(
            Subject::Container,
            format!("the keyring in `{}` cannot be read: {error}", home.shown()),
        ),
        false => error,
    }
}

/// The DEK that this connection already has, if it wrote `bytes` too.
fn known_dek(keys: &ContainerKeys, header: &Header, bytes: &[u8]) -> Option<Dek> {
    let same = keys.file_id() == &header.file_id;
    let dek = keys.dek().filter(|_| same)?;
    Header::authenticate(bytes, keys.header_key(), 0).ok().map(|()| dek.clone())
}

/// Checks a header that allows plain units against the keyring's memory. It may be an old header
/// that somebody put back.
///
/// # Errors
/// [`Error::Unauthentic`] if the keyring remembers otherwise. [`Error::MissingKey`] if the keyring
/// remembers the database, or may, and cannot be read.
pub fn check_state(header: &Header) -> Result<()> {
    use EncryptionState::*;
    header.check_state()?;
    let switching_on = match header.state {
        Encrypted | KeyChange => return Ok(()),
        ProtectionChange => {
            return Err(Error::unsupported(
                Subject::Container,
                format!("state `{}` needs a newer version", header.state.name()),
            ))
        }
        Encrypting => true,
        Unencrypted | Decrypting => false,
    };
    let put_back = recall(header)?.is_some_and(|memory| {
        let same = header.sequence == memory.sequence && !switching_on;
        memory.sealed && (header.sequence < memory.sequence || same)
    });
    if put_back {
        return Err(Error::unauthentic(
            Subject::Container,
            format!(
                "the header says `{}`, but the keyring knows this database as encrypted: an older \
                 header was put back",
                header.state.name()
            ),
        ));
    }
    Ok(())
}

/// What the keyring remembers of the database. `None` if there is no place for a keyring.
fn recall(header: &Header) -> Result<Option<DatabaseMemory>> {
    let found = Keyring::all_homes().and_then(|homes| match homes.first() {
        Some(home) => Keyring::recall_at(home, &header.file_id),
        None => Ok(None),
    });
    found.map_err(|error| {
        if is_out_of_files(&error) || Broker::all().map_or(true, |all| !all.is_empty()) {
            return error;
        }
        let cause = format!(
            "whether it was switched off by an older header is said by the keyring, which cannot be read: {error}; put that \
             file back, or let this account read it"
        );
        Error::missing_key(Subject::Container, cause)
    })
}

/// What the keyring remembers of the database.
///
/// # Errors
/// [`Error::MissingKey`] if the keyring remembers the database, or may, and cannot be read.
pub(crate) fn recall_known(header: &Header) -> Result<Option<DatabaseMemory>> {
    recall(header)
}

/// The sequence number that a header made from `header` has to exceed, so that no keyring refuses
/// it for what it remembers. `header` may be an older one that an administrator put back on
/// purpose.
///
/// # Errors
/// Those of [`check_state`], if the new header is one that it checks against the keyring.
pub fn later_sequence(header: &Header) -> Result<u64> {
    match recall(header) {
        Ok(memory) => Ok(memory.map_or(0, |memory| memory.sequence).max(header.sequence)),
        Err(error) if header.is_switched_off() => Err(error),
        Err(_) => Ok(header.sequence),
    }
}

/// Whether first opens are noted for the event log.
static NOTES: AtomicBool = AtomicBool::new(true);

/// Leaves the opens of this process out of the event log. For a command that records itself what it does with a database, or
/// opens none that is anybody's.
pub fn leave_opens_unnoted() {
    NOTES.store(false, Ordering::Relaxed);
}

/// Notes that this process has opened a sealed database with a key, once for each. Nothing is waited for, and nothing
/// fails for it: whoever may only read the instance opens as well.
fn note_opened(file_id: &[u8; 16]) {
    static NOTED: Mutex<Option<HashSet<[u8; 16]>>> = Mutex::new(None);
    if !NOTES.load(Ordering::Relaxed) {
        return;
    }
    let mut noted = NOTED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if noted.get_or_insert_default().insert(*file_id) {
        drop(noted);
        Event::new(Action::Opened, "database").file_id(file_id).note_here();
    }
}

type CacheKey = (Vec<u8>, Vec<u8>);

/// The opened headers of this process, so that a second open needs no private-key operation.
struct Cache(Mutex<HashMap<CacheKey, Arc<ContainerKeys>>>);

const CACHED: usize = 64;

fn cache() -> &'static Cache {
    static CACHE: OnceLock<Cache> = OnceLock::new();
    CACHE.get_or_init(|| Cache(Mutex::new(HashMap::new())))
}

impl Cache {
    fn get(&self, key: &CacheKey) -> Option<Arc<ContainerKeys>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get(key).cloned()
    }

    fn insert(&self, key: CacheKey, keys: Arc<ContainerKeys>) {
        let mut map = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if map.len() >= CACHED {
            map.clear();
        }
        map.insert(key, keys);
    }
}

/// The keys of a new container: a fresh DEK with its protectors.
#[derive(Debug, Clone)]
pub struct Birth {
    dek: Dek,
    header: Header,
}

/// What protects the DEK of a new container.
#[derive(Debug, Clone)]
pub enum Protection {
    /// A certificate of the keyring, by name; `None` for the keyring's default.
    Certificate(Option<String>),
    /// A certificate without its private key, which opens only when recovery is asked for.
    Recovery(Box<PublicCertificate>),
    /// The content of a key file.
    KeyFile(KeyFile),
    /// A passphrase.
    Passphrase(Passphrase),
}

impl Birth {
    /// Makes a fresh DEK under the given protections.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if a certificate is not in the keyring.
    pub fn new(algorithm: Algorithm, protections: &[Protection]) -> Result<Self> {
        Self::protected(algorithm, |dek, binding| {
            protections.iter().map(|protection| protection.wrap(dek, binding)).collect()
        })
    }

    /// Makes a fresh DEK under the protectors that `protect` makes for it.
    ///
    /// # Errors
    /// The error of `protect`.
    pub fn protected(
        algorithm: Algorithm,
        protect: impl FnOnce(&Dek, &Binding<'_>) -> Result<Vec<Protector>>,
    ) -> Result<Self> {
        let dek = Dek::random()?;
        let mut file_id = [0; 16];
        pellucid::secret::fill_random(&mut file_id)?;
        let row = DekRow {
            first_generation: 1,
            last_generation: u32::MAX,
            algorithm,
            plain: false,
            commitment: commitment(&dek, &file_id)?,
            wrapped: None,
        };
        let protectors = protect(&dek, &row.binding(&file_id))?;
        let mut header = Header {
            sequence: 1,
            file_id,
            page_size: 4096,
            state: EncryptionState::Encrypted,
            generation: 1,
            created: pellucid::clock::now(),
            scan: pellucid::scan::Scan::default(),
            flags: pellucid::flags::Flags::default(),
            second: (version_of_births()? > 1).then(Second::default),
            deks: vec![row],
            protectors: protectors.iter().map(Protector::encoded).collect(),
        };
        // Who names the algorithm gets the version that has it.
        if algorithm.first_version() > header.version() {
            header.second = Some(Second::default());
        }
        Ok(Self { dek, header })
    }

    /// Makes a fresh DEK under the same protectors as the container of `header`. Returns also an
    /// error for each protector that could not be made again, because its key is not at hand.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if no protector could be made.
    pub fn like(header: &Header, credentials: &Credentials) -> Result<(Self, Vec<Error>)> {
        let mut birth = Self::new(header.algorithm()?, &[])?;
        let old = header.current_dek()?.binding(&header.file_id);
        let row = birth.header.current_dek()?;
        let new = row.binding(&birth.header.file_id);
        let (mut made, mut missing) = (Vec::new(), Vec::new());
        for (index, bytes) in header.protectors.iter().enumerate() {
            let (protector, _) = Protector::decode(bytes)?;
            match protector.again(&old, &new, &birth.dek, credentials) {
                Ok(protector) => {
                    let mut encoded = Vec::new();
                    protector.encode(&mut encoded);
                    made.push(encoded);
                }
                Err(Error::MissingKey { cause, .. }) => {
                    missing.push(Error::missing_key(Subject::Protector(index + 1), cause));
                }
                Err(error) => return Err(error),
            }
        }
        if made.is_empty() {
            let none = || Error::missing_key(Subject::Container, "nothing protects it");
            return Err(missing.into_iter().next().unwrap_or_else(none));
        }
        birth.header.protectors = made;
        // Of the version of what it is a copy of: whoever reads that reads this.
        birth.header.second = header.second.as_ref().map(|_| Second::default());
        Ok((birth, missing))
    }

    /// The file id of the new container.
    pub fn file_id(&self) -> &[u8; 16] {
        &self.header.file_id
    }

    /// The keys of the new container.
    ///
    /// # Errors
    /// None in practice.
    pub fn keys(&self) -> Result<Arc<ContainerKeys>> {
        ContainerKeys::new(&self.header, &self.dek).map(Arc::new)
    }

    /// The first header of the new container, whose page size is not known yet.
    pub(crate) fn first_header(&self) -> &Header {
        &self.header
    }

    /// The first header of the new container.
    ///
    /// # Errors
    /// None in practice.
    pub fn header(&self, page_size: u32) -> Result<Header> {
        Ok(Header { page_size, ..self.header.clone() })
    }

    /// The birth that a request and the environment ask for. `None` if neither asks for one.
    ///
    /// # Errors
    /// [`Error::MissingKey`] or [`Error::Misuse`], which name what is missing.
    pub fn requested(request: &Request) -> Result<Option<Self>> {
        if let Some(token) = &request.birth {
            return take_birth(token).map(Some);
        }
        let mut protections = Vec::new();
        if let Some(name) = &request.certificate {
            protections.push(Protection::Certificate(Some(name.clone())));
        }
        if let Some(path) = &request.key_file {
            protections.push(Protection::KeyFile(pellucid_files::secrets::key_file(path)?));
        }
        if let Some(path) = &request.passphrase_file {
            protections.push(Protection::Passphrase(pellucid_files::secrets::passphrase(path)?));
        }
        if protections.is_empty() && request.encrypt_new {
            protections = Protection::from_environment()?;
        }
        if protections.is_empty() {
            return Ok(None);
        }
        let algorithm = request.algorithm.as_deref().unwrap_or("AES_256").parse()?;
        Self::new(algorithm, &protections).map(Some)
    }
}

impl Protection {
    /// The protections that `PELLUCID_ENCRYPT_NEW=1` stands for: the key file or passphrase that
    /// the environment names, else the keyring's default certificate.
    pub fn from_environment() -> Result<Vec<Self>> {
        let mut protections = Vec::new();
        if let Some(path) = std::env::var_os("PELLUCID_KEY_FILE") {
            protections
                .push(Protection::KeyFile(pellucid_files::secrets::key_file(path.as_ref())?));
        }
        if let Some(path) = std::env::var_os("PELLUCID_PASSPHRASE_FILE") {
            protections
                .push(Protection::Passphrase(pellucid_files::secrets::passphrase(path.as_ref())?));
        }
        if protections.is_empty() {
            protections.push(Protection::Certificate(None));
        }
        Ok(protections)
    }

    /// Wraps a DEK under this protection.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if a certificate is not in the keyring.
    pub fn wrap(&self, dek: &Dek, binding: &Binding<'_>) -> Result<Protector> {
        use pellucid::protector::{wrap, Argon2Cost, Wrapping};
        match self {
            Protection::Recovery(public) => wrap(dek, binding, &Wrapping::Recovery(public)),
            Protection::KeyFile(key) => wrap(dek, binding, &Wrapping::KeyFile(key)),
            Protection::Passphrase(passphrase) => {
                wrap(dek, binding, &Wrapping::Passphrase(passphrase, Argon2Cost::default()))
            }
            Protection::Certificate(name) => {
                let path = Keyring::locate()?;
                let certificate = match name {
                    Some(name) => Keyring::open(&path)?.certificate(name)?,
                    None => {
                        let (keyring, _) = Keyring::open_or_create(&path)?;
                        keyring.ensure_default_certificate()?.0
                    }
                };
                wrap(dek, binding, &Wrapping::Certificate(&certificate))
            }
        }
    }
}

/// The format version of a new database: as `PELLUCID_FORMAT` says, else as the instance says. An
/// account that has no instance, or may not read it, makes version 1, which every program reads.
///
/// # Errors
/// [`Error::Misuse`] for another value of the variable than 1 and 2.
fn version_of_births() -> Result<u32> {
    match std::env::var_os("PELLUCID_FORMAT").filter(|version| !version.is_empty()) {
        Some(version) if version == "1" => return Ok(1),
        Some(version) if version == "2" => return Ok(2),
        Some(_) => {
            return Err(Error::misuse(
                Subject::Option("PELLUCID_FORMAT".into()),
                "is neither 1 nor 2",
            ))
        }
        None => {}
    }
    let home = Keyring::locate().ok().filter(|home| Keyring::is_at(home));
    let policies = home.and_then(|home| Keyring::policies_at(&home).ok());
    Ok(policies.unwrap_or_default().format_version())
}

/// SHA-256 thumbprints of the certificates among a header's protectors.
fn certificates_of(header: &Header) -> Vec<[u8; 32]> {
    let thumbprint = |bytes: &Vec<u8>| match Protector::decode(bytes) {
        Ok((Protector::Certificate(protector), _)) => Some(*protector.thumbprint()),
        _ => None,
    };
    header.protectors.iter().filter_map(thumbprint).collect()
}

/// Whether the keyring remembers the database, or may, because the database may have been under one
/// of its certificates.
fn is_known(header: &Header) -> bool {
    !matches!(recall(header), Ok(None))
}

/// Lets the keyring remember that the database is sealed, and which of the keyring's certificates
/// it needs. With that memory an older header cannot switch encryption off. A keyring that may only
/// be read does not prevent an encryption.
pub fn remember(header: &Header, path: &Path) {
    let certificates = certificates_of(header);
    if certificates.is_empty() && !is_known(header) {
        return;
    }
    let memory = DatabaseMemory {
        sequence: header.sequence,
        sealed: !header.is_switched_off(),
        certificates,
        path: pellucid_files::paths::original_path(path),
    };
    let remembered = Keyring::locate()
        .and_then(|home| Keyring::open(&home))
        .and_then(|keyring| keyring.remember_database(&header.file_id, &memory));
    if let Err(error) = remembered {
        let what = format!("the keyring does not remember the database: {error}");
        pellucid_host::code::note(pellucid_host::ffi::OK, path, &what);
    }
}

/// Lets the keyring remember a database that came from elsewhere, if it opens under one of the
/// keyring's certificates.
///
/// A database that the keyring knows keeps its remembered path as long as a file is there: a copy
/// has the same identity.
pub fn adopt(header: &Header, path: &Path) {
    let known = || -> Result<bool> {
        let keyring = Keyring::open(&Keyring::locate()?)?;
        let own = |print: &[u8; 32]| Ok(keyring.certificate_by_thumbprint(print)?.is_some());
        let under_own = certificates_of(header).iter().map(own).collect::<Result<Vec<bool>>>()?;
        let memory = keyring.recall_database(&header.file_id)?;
        Ok(memory.is_some_and(|memory| memory.path.exists()) || !under_own.contains(&true))
    };
    // A keyring that cannot be read or written is no error for a program that only opens a
    // database.
    if matches!(known(), Ok(false)) {
        remember(header, path);
    }
}

/// Lets the keyring forget a database that is plain now. Does nothing if the remembered file is
/// another copy that still exists.
pub fn forget(header: &Header, path: &Path) {
    if certificates_of(header).is_empty() && !is_known(header) {
        return;
    }
    let forgotten = || -> Result<()> {
        let keyring = Keyring::open(&Keyring::locate()?)?;
        let memory = keyring.recall_database(&header.file_id)?;
        let elsewhere = |memory: DatabaseMemory| {
            memory.path != pellucid_files::paths::original_path(path) && memory.path.exists()
        };
        match memory.is_some_and(elsewhere) {
            true => Ok(()),
            false => keyring.forget_database(&header.file_id),
        }
    };
    if let Err(error) = forgotten() {
        let what = format!("the keyring still remembers the database as encrypted: {error}");
        pellucid_host::code::note(pellucid_host::ffi::OK, path, &what);
    }
}

/// Notes in the keyring that the database at `path` no longer has the file id `older`. The memory
/// under that id stays, in case an earlier header is put back, but without a path and certificates.
pub fn leave(older: &[u8; 16], path: &Path) {
    let left = || -> Result<()> {
        let home = Keyring::locate()?;
        if !Keyring::is_at(&home) {
            return Ok(());
        }
        let keyring = Keyring::open(&home)?;
        match keyring.recall_database(older)? {
            Some(memory) if memory.path == pellucid_files::paths::original_path(path) => {
                let memory =
                    DatabaseMemory { certificates: Vec::new(), path: PathBuf::new(), ..memory };
                keyring.remember_database(older, &memory)
            }
            _ => Ok(()),
        }
    };
    if let Err(error) = left() {
        let what = format!("the keyring still knows the database by its older file id: {error}");
        pellucid_host::code::note(pellucid_host::ffi::OK, path, &what);
    }
}

/// Whether an environment variable is set to 1.
pub fn flag(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| value == "1")
}

static PREPARED: Mutex<Vec<(String, Birth)>> = Mutex::new(Vec::new());

/// Keeps a birth for one database that this process is about to create. Returns the token that goes
/// into its URI as `pellucid_birth=`, so that no secret has to.
///
/// # Errors
/// [`Error::Io`] if no randomness can be had.
pub fn prepare_birth(birth: Birth) -> Result<String> {
    let mut random = [0; 16];
    pellucid::secret::fill_random(&mut random)?;
    let token = format!("{:032x}", u128::from_ne_bytes(random));
    let mut prepared = PREPARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    prepared.push((token.clone(), birth));
    Ok(token)
}

fn take_birth(token: &str) -> Result<Birth> {
    let mut prepared = PREPARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let at = prepared.iter().position(|(known, _)| known == token).ok_or_else(|| {
        Error::misuse(Subject::Option("pellucid_birth".into()), "not known in this process")
    })?;
    Ok(prepared.swap_remove(at).1)
}
