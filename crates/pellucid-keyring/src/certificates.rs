//! The certificates of a keyring: made, imported, looked up, exported, dropped.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeroize::Zeroizing;

use super::provider_key::{Pin, ProviderKey};
use super::sealed_file::{
    check_new, may_replace, sync_parent, write_all_new, write_new, Kind, SealedFile,
};
use super::{found, instance, Action, Event, Found, Keyring, DEFAULT_CERTIFICATE};
use pellucid::certificate::{
    Certificate, CertificateRequest, Companion, KeyPlace, PublicCertificate, COMPANION_BYTES,
    COMPANION_PRIVATE_BYTES, VALID_DAYS_DEFAULT,
};
use pellucid::error::{Error, Result, Subject};
use pellucid::message;
use pellucid::protector::Passphrase;
use pellucid::shown::Shown;
use pellucid_files::new_file::NewFile;

impl Keyring {
    /// The certificate `name` with its private key.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if it is not in the keyring, or its private key is not.
    pub fn certificate(&self, name: &str) -> Result<Certificate> {
        match self.stored_certificate(name)? {
            Stored::Whole(certificate) => Ok(certificate),
            Stored::Public(public) => Err(without_key(&public)),
        }
    }

    /// The certificate `name`, with or without its private key.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if it is not in the keyring.
    pub fn stored_certificate(&self, name: &str) -> Result<Stored> {
        check_name(name)?;
        self.read_certificate(name)?.ok_or_else(|| self.not_there("find", name))
    }

    fn not_there(&self, verb: &str, name: &str) -> Error {
        let told = message::DOES_NOT_EXIST.with_all(&[verb, "certificate", name]);
        Error::missing_key(
            Subject::Certificate(name.to_owned()),
            format!("not in the keyring `{}`: {told}", self.home.shown()),
        )
    }

    /// The certificate with this SHA-256 thumbprint, with its private key: of this keyring, or of the machine's where this
    /// one is a user's own.
    ///
    /// # Errors
    /// What is wrong with a file of the keyring, if the certificate is in no other: it may be the one.
    pub fn certificate_by_thumbprint(&self, thumbprint: &[u8; 32]) -> Result<Option<Certificate>> {
        let found = self.own_by_thumbprint(thumbprint);
        // One's own copy of before the companion hides no newer one.
        if matches!(&found, Ok(Some(own)) if own.public().companion().is_some()) {
            return found;
        }
        match self.behind().map(|machine| machine.own_by_thumbprint(thumbprint)) {
            Some(Ok(Some(machines)))
                if !matches!(found, Ok(Some(_))) || machines.public().companion().is_some() =>
            {
                Ok(Some(machines))
            }
            _ => found,
        }
    }

    fn own_by_thumbprint(&self, thumbprint: &[u8; 32]) -> Result<Option<Certificate>> {
        let mut trouble = None;
        for name in self.certificate_names()? {
            match self.read_certificate(&name) {
                Ok(Some(found)) if found.public().thumbprint() == thumbprint => match found {
                    Stored::Whole(certificate) => return Ok(Some(certificate)),
                    Stored::Public(public) => trouble = Some(without_key(&public)),
                },
                Ok(_) => {}
                Err(error) => {
                    trouble.get_or_insert(error);
                }
            }
        }
        trouble.map_or(Ok(None), Err)
    }

    /// The certificates that can be read, by name.
    ///
    /// # Errors
    /// [`Error::Io`] if their directory cannot be read.
    pub fn certificates(&self) -> Result<Vec<Stored>> {
        self.find_certificates().map(|found| found.whole)
    }

    /// The certificates, by name, and what cannot be read of them.
    ///
    /// # Errors
    /// [`Error::Io`] if their directory cannot be read.
    pub fn find_certificates(&self) -> Result<Found<Stored>> {
        self.each_certificate().map(Found::from)
    }

    /// The same, each with its file, whose name is the certificate's: what is wrong with one hides no other.
    ///
    /// # Errors
    /// [`Error::Io`] if their directory cannot be read.
    pub fn each_certificate(&self) -> Result<Vec<(PathBuf, Result<Stored>)>> {
        let names = self.certificate_names()?.into_iter();
        let paths = names.map(|name| self.certificate_file(&name).path().to_owned());
        Ok(found::each(paths, |name| self.read_certificate(name)))
    }

    fn certificate_names(&self) -> Result<Vec<String>> {
        let mut names = instance::names_in(&self.home.join("keyring/certificates"))?;
        names.retain(|name| check_name(name).is_ok());
        Ok(names)
    }

    /// Makes a certificate.
    ///
    /// # Errors
    /// Message 15232 if the name is taken; as [`Certificate::generate`].
    pub fn create_certificate(
        &self,
        name: &str,
        request: &CertificateRequest,
    ) -> Result<Certificate> {
        check_name(name)?;
        if self.certificate_file(name).path().exists() {
            return Err(Error::message(message::CERTIFICATE_EXISTS, name));
        }
        let certificate = Certificate::generate(name, request)?;
        self.add(name, &Stored::Whole(certificate.clone()), Action::Created)?;
        Ok(certificate)
    }

    /// Gives a certificate a companion: from then on backup sets and bundles under it are wrapped by both. It counts as not
    /// backed up.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if it or its private key is not there, [`Error::Misuse`] if it has a companion.
    pub fn add_companion(&self, name: &str) -> Result<Certificate> {
        check_name(name)?;
        let (_change, now) = self.begin_change()?;
        let made = now.certificate(name)?.add_companion(pellucid::clock::now())?;
        now.put_companion(&Stored::Whole(made.clone()), Action::Created)?;
        Ok(made)
    }

    /// Puts a certificate in the place of the same one without its companion, under the lock.
    fn put_companion(&self, stored: &Stored, action: Action) -> Result<()> {
        let file = self.certificate_file(stored.public().name());
        file.check_writable()?;
        may_replace(file.path())?;
        event(action, "companion key", stored.public()).record_by(self)?;
        file.replace(&self.master_key, &readable(stored)?)
    }

    /// Takes an imported certificate in. One that is there already, by whatever name, only gets the companion that it lacks:
    /// two names for one certificate would let a drop look like a loss.
    ///
    /// # Errors
    /// Message 15232.
    pub fn add_certificate(&self, stored: Stored) -> Result<Stored> {
        let name = stored.public().name().to_owned();
        check_name(&name)?;
        for other in self.certificates()? {
            if other.public().thumbprint() == stored.public().thumbprint() {
                if gets_companion(&other, &stored) {
                    let (_change, now) = self.begin_change()?;
                    let here = now.stored_certificate(other.public().name())?;
                    if gets_companion(&here, &stored) {
                        let whole = with_companion_of(here, &stored)?;
                        now.put_companion(&whole, Action::Imported)?;
                        return Ok(whole);
                    }
                }
                return Err(Error::message(message::CERTIFICATE_EXISTS, other.public().name()));
            }
        }
        self.add(&name, &stored, Action::Imported)?;
        Ok(stored)
    }

    fn add(&self, name: &str, stored: &Stored, action: Action) -> Result<()> {
        let (_change, now) = self.begin_change()?;
        let file = self.certificate_file(name);
        if !file.path().exists() {
            event(action, "certificate", stored.public()).record_by(self)?;
            if file.create(&now.master_key, &readable(stored)?)? {
                return Ok(());
            }
        }
        Err(Error::message(message::CERTIFICATE_EXISTS, name))
    }

    /// Writes the certificate and, with `private_key`, its key under a password, both in `encoding`: two new files or none.
    /// The keyring remembers that the key was backed up.
    ///
    /// # Errors
    /// Messages 15240, 15246 and 33062.
    pub fn export_certificate(
        &self,
        name: &str,
        path: &Path,
        private_key: Option<(&Path, &Passphrase)>,
        encoding: &Encoding,
    ) -> Result<()> {
        let stored = self.stored_certificate(name)?;
        let text = (encoding.public)(stored.public())?;
        let Some((key_path, password)) = private_key else {
            check_new(path)?;
            event(Action::Exported, "certificate", stored.public()).record_by(self)?;
            return write_new(path, text.as_bytes()).map(drop);
        };
        let Stored::Whole(certificate) = stored else {
            return Err(Error::message(message::NO_PRIVATE_KEY, name));
        };
        password.check_new()?;
        self.certificate_file(name).check_writable()?;
        check_new(key_path)?;
        check_new(path)?;
        let key = (encoding.private)(&certificate, password)?;
        let file = self.certificate_file(name);
        // Whoever cannot leave the mark of a backup does not get one: nobody would know of it.
        may_replace(file.path())?;
        event(Action::BackedUp, "private key", certificate.public()).record_by(self)?;
        let made = [(key_path, key.as_bytes()), (path, text.as_bytes())];
        let made = write_all_new(&made)?;
        let marked = self.begin_change().and_then(|(_change, now)| {
            // Others may have changed it since: what was not written to the files is not backed up, and what is gone stays so.
            let stored = Stored::Whole(certificate.backed_up_now());
            match now.stored_certificate(name)?.public() == stored.public() {
                true => file.replace(&now.master_key, &readable(&stored)?),
                false => Err(Error::misuse(
                    Subject::Certificate(name.to_owned()),
                    "it was changed while it was exported: nothing was written, do it again",
                )),
            }
        });
        marked.inspect_err(|_| made.into_iter().for_each(NewFile::take_back))
    }

    /// Takes a certificate out of the keyring.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if it is not there.
    pub fn drop_certificate(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let (_change, now) = self.begin_change()?;
        let file = self.certificate_file(name);
        if !file.path().exists() {
            return Err(self.not_there("drop", name));
        }
        now.check_without_login(name)?;
        self.dropped(name).record_by(self)?;
        std::fs::remove_file(file.path())
            .map_err(|error| Error::io(Subject::File(file.path().to_owned()), error))?;
        sync_parent(file.path())?;
        now.forget_key(name)
    }

    /// A damaged one can be dropped too; its thumbprint is not known then.
    fn dropped(&self, name: &str) -> Event {
        match self.read_certificate(name) {
            Ok(Some(stored)) => event(Action::Dropped, "certificate", stored.public()),
            _ => Event::new(Action::Dropped, "certificate").of(name),
        }
    }

    /// The certificate used when none is named, made when it is missing; the second value says so.
    ///
    /// # Errors
    /// As [`Keyring::certificate`] and [`Keyring::create_certificate`].
    pub fn ensure_default_certificate(&self) -> Result<(Certificate, bool)> {
        if self.read_certificate(DEFAULT_CERTIFICATE)?.is_some() {
            return self.certificate(DEFAULT_CERTIFICATE).map(|found| (found, false));
        }
        let request = CertificateRequest::new("Pellucid", VALID_DAYS_DEFAULT);
        match self.create_certificate(DEFAULT_CERTIFICATE, &request) {
            Ok(made) => Ok((made, true)),
            // Another process was faster; its certificate is as good.
            Err(Error::Message { message: message::CERTIFICATE_EXISTS, .. }) => {
                self.certificate(DEFAULT_CERTIFICATE).map(|c| (c, false))
            }
            Err(error) => Err(error),
        }
    }

    fn read_certificate(&self, name: &str) -> Result<Option<Stored>> {
        let file = self.certificate_file(name);
        let Some(bytes) = self.read(&file)? else { return Ok(None) };
        decode_with(name, &bytes, |key, place| self.pin_of(name, key, place))
            .ok_or_else(|| {
                Error::corrupt(Subject::File(file.path().to_owned()), "its fields do not fit")
            })?
            .map(Some)
    }

    /// Takes in a key whose private half `place` has, once that has proved that it signs and decrypts. `pin` is what it wants before it
    /// answers now.
    ///
    /// # Errors
    /// Those of [`Keyring::check_new_key`]; message 15232 for a key that is there under another name; [`Error::Unsupported`] for a
    /// public key that is no RSA key of 2048 to 4096 bits; those of [`Certificate::check_pair`].
    pub fn add_provider_key(
        &self,
        name: &str,
        public_key: &[u8],
        place: KeyPlace,
        pin: Option<&str>,
    ) -> Result<Certificate> {
        self.check_new_key(name)?;
        let pin = pin.map_or(Pin::None, |pin| Pin::Known(Zeroizing::new(pin.to_owned())));
        let key = Arc::new(ProviderKey::new(place, pin));
        let certificate = Certificate::elsewhere(name, public_key, key)?;
        // Of two names for one key the first one would decide for both.
        for other in self.certificates()? {
            if other.public().thumbprint() == certificate.public().thumbprint() {
                return Err(Error::message(message::CERTIFICATE_EXISTS, other.public().name()));
            }
        }
        certificate.check_pair()?;
        self.add(name, &Stored::Whole(certificate.clone()), Action::Created)?;
        Ok(certificate)
    }

    /// Whether a key may have the name: before one is made elsewhere that nobody would know of. Statements know no case.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a name that is none; message 15232 if the name is taken, readable or not.
    pub fn check_new_key(&self, name: &str) -> Result<()> {
        check_name(name)?;
        match self.certificate_names()?.iter().find(|taken| taken.eq_ignore_ascii_case(name)) {
            Some(taken) => Err(Error::message(message::CERTIFICATE_EXISTS, taken)),
            None => Ok(()),
        }
    }

    /// What the provider of the key `name` wants before it answers.
    fn pin_of(&self, name: &str, public_key: &[u8], place: &KeyPlace) -> Pin {
        let providers = match self.providers() {
            Ok(providers) => providers,
            Err(error) => return Pin::Refused(error),
        };
        let Some(provider) = providers.provider_of_key(name, public_key) else { return Pin::None };
        if !provider.is_enabled {
            return Pin::Refused(Error::message(message::PROVIDER_DISABLED, &provider.name));
        }
        if provider.plugin != place.provider() {
            let cause = format!(
                "provider `{}` was altered and is another one than that of the key, `{}`",
                provider.name,
                place.provider()
            );
            return Pin::Refused(Error::misuse(Subject::Key("provider key"), cause));
        }
        let login = providers.login_of_key(name);
        let credential = login.and_then(|login| providers.credential_of(login, &provider.name));
        credential.map_or(Pin::None, |credential| Pin::Known(credential.secret.clone()))
    }

    pub(super) fn certificate_file(&self, name: &str) -> SealedFile {
        let path = self.home.join("keyring/certificates").join(name);
        SealedFile::new(path, Kind::Certificate, name)
    }
}

/// Whether what is there lacks the companion that comes, and would not have half of it afterwards.
pub(super) fn gets_companion(here: &Stored, coming: &Stored) -> bool {
    let (own, other) = (here.public().companion(), coming.public().companion());
    own.is_none() && other.is_some() && (coming.has_private_key() || !here.has_private_key())
}

/// What is there, or the private key that comes, with the companion that comes. Backed up as it comes: what comes was a backup.
fn with_companion_of(here: Stored, coming: &Stored) -> Result<Stored> {
    let name = here.public().name().to_owned();
    decode(&name, &encode(coming)).ok_or_else(|| Error::message(message::FILE_NOT_VALID, ""))?
}

fn event(action: Action, subject: &'static str, public: &PublicCertificate) -> Event {
    Event::new(action, subject).of(public.name()).thumbprint(public.thumbprint())
}

/// How certificates and private keys are written for other programs; `pellucid-exchange` has PEM.
#[derive(Debug, Clone, Copy)]
pub struct Encoding {
    /// A certificate as text.
    pub public: fn(&PublicCertificate) -> Result<String>,
    /// The private key of a certificate, under a password.
    pub private: fn(&Certificate, &Passphrase) -> Result<Zeroizing<String>>,
}

/// For tests that do not look into the files.
#[cfg(test)]
pub(crate) const ANY_TEXT: Encoding = Encoding {
    public: |_| Ok("certificate".to_owned()),
    private: |_, _| Ok(Zeroizing::new("private key".to_owned())),
};

/// A certificate as the keyring has it, or takes it in.
#[derive(Debug, Clone)]
pub enum Stored {
    /// With its private key.
    Whole(Certificate),
    /// Without: good for recovery protectors only.
    Public(PublicCertificate),
}

impl Stored {
    /// The public half.
    pub fn public(&self) -> &PublicCertificate {
        match self {
            Stored::Whole(certificate) => certificate.public(),
            Stored::Public(public) => public,
        }
    }

    /// When its private key was last backed up, in seconds since 1970.
    pub fn backed_up(&self) -> Option<u64> {
        match self {
            Stored::Whole(certificate) => certificate.backed_up(),
            Stored::Public(_) => None,
        }
    }

    /// Where its private key is, if that is not in the keyring.
    pub fn place(&self) -> Option<&KeyPlace> {
        match self {
            Stored::Whole(certificate) => certificate.place(),
            Stored::Public(_) => None,
        }
    }

    /// Whether the keyring has its private key, or knows where it is.
    pub fn has_private_key(&self) -> bool {
        matches!(self, Stored::Whole(_))
    }
}

fn without_key(public: &PublicCertificate) -> Error {
    let told = message::NOT_USABLE.with_all(&["certificate", public.name(), "certificate"]);
    Error::missing_key(Subject::Certificate(public.name().to_owned()), told)
}

/// A certificate's name is a file's name: letters, digits, `-`, `_`, `.`, at most 63, not first a dot.
pub(super) fn check_name(name: &str) -> Result<()> {
    let possible = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.is_empty() && name.len() <= 63 && !name.starts_with('.') && name.chars().all(possible)
    {
        return Ok(());
    }
    Err(Error::misuse(
        Subject::Certificate(name.to_owned()),
        "a name has 1 to 63 letters, digits, `-`, `_` or `.`, and does not begin with a dot",
    ))
}

/// Begins what says where a private key is. PKCS#8 begins with 0x30.
const ELSEWHERE: u8 = 1;
/// In the place of the DER's length: a companion follows, and the length behind it. Older versions find no such certificate.
const WITH_COMPANION: [u8; 4] = [0xff; 4];

/// Whether a content has a companion key.
pub(super) fn has_companion(content: &[u8]) -> bool {
    content.get(8..12) == Some(&WITH_COMPANION[..])
}

/// `[backed up 8][DER length 4][DER][PKCS#8]`; no PKCS#8 for one without its private key, and for one whose private key is elsewhere
/// `[1][place]` in its stead, and the public key as DER. With a companion
/// `[ffffffff 4][added 8][key 1184][signature length 2][signature][private half 2400]` stands before the DER's length, and no
/// private half where there is no PKCS#8.
pub(super) fn encode(stored: &Stored) -> Zeroizing<Vec<u8>> {
    let der = stored.public().der();
    let mut place = vec![ELSEWHERE];
    let (key, companion_key): (&[u8], &[u8]) = match stored {
        Stored::Whole(own) => match own.place() {
            Some(known) => {
                known.encode(&mut place);
                (&place, &[])
            }
            None => {
                (own.private_key().unwrap_or_default(), own.companion_key().unwrap_or_default())
            }
        },
        Stored::Public(_) => (&[], &[]),
    };
    let companion = stored.public().companion();
    let more = companion.map_or(0, |own| 14 + own.key().len() + own.signature().len());
    let length = 12 + der.len() + key.len() + more + companion_key.len();
    let mut bytes = Zeroizing::new(Vec::with_capacity(length));
    bytes.extend_from_slice(&stored.backed_up().unwrap_or(0).to_be_bytes());
    if let Some(companion) = companion {
        bytes.extend_from_slice(&WITH_COMPANION);
        bytes.extend_from_slice(&companion.added().to_be_bytes());
        bytes.extend_from_slice(companion.key());
        bytes.extend_from_slice(&(companion.signature().len() as u16).to_be_bytes());
        bytes.extend_from_slice(companion.signature());
    }
    bytes.extend_from_slice(&(der.len() as u32).to_be_bytes());
    bytes.extend_from_slice(der);
    bytes.extend_from_slice(companion_key);
    bytes.extend_from_slice(key);
    bytes
}

/// The same, once it is proved that it is read again as it is: the only copy of a private key is about to be in it.
fn readable(stored: &Stored) -> Result<Zeroizing<Vec<u8>>> {
    let bytes = encode(stored);
    match decode(stored.public().name(), &bytes) {
        Some(Ok(again)) if again.public() == stored.public() && *encode(&again) == *bytes => {
            Ok(bytes)
        }
        _ => Err(Error::misuse(
            Subject::Certificate(stored.public().name().to_owned()),
            "it would not be read again as it is; the keyring was left as it was",
        )),
    }
}

pub(super) fn decode(name: &str, bytes: &[u8]) -> Option<Result<Stored>> {
    decode_with(name, bytes, |_, _| Pin::None)
}

fn decode_with(
    name: &str,
    bytes: &[u8],
    pin: impl FnOnce(&[u8], &KeyPlace) -> Pin,
) -> Option<Result<Stored>> {
    let (backed_up, mut rest) = bytes.split_first_chunk()?;
    let backed_up = Some(u64::from_be_bytes(*backed_up)).filter(|at| *at != 0);
    let mut companion = None;
    if has_companion(bytes) {
        let (added, behind) = rest.get(4..)?.split_first_chunk()?;
        let (key, behind) = behind.split_at_checked(COMPANION_BYTES)?;
        let (length, behind) = behind.split_first_chunk()?;
        let (signature, behind) = behind.split_at_checked(u16::from_be_bytes(*length).into())?;
        companion = Some(Companion::new(u64::from_be_bytes(*added), key, signature)?);
        rest = behind;
    }
    let (length, rest) = rest.split_first_chunk()?;
    let (der, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    if rest.is_empty() {
        let public = PublicCertificate::from_der(name, der);
        return Some(
            match companion {
                Some(companion) => public.and_then(|public| public.with_companion(companion)),
                None => public,
            }
            .map(Stored::Public),
        );
    }
    let Some(companion) = companion else {
        if let Some((&ELSEWHERE, place)) = rest.split_first() {
            let place = KeyPlace::decode(place)?;
            let pin = pin(der, &place);
            let key = Arc::new(ProviderKey::new(place, pin));
            return Some(Certificate::elsewhere(name, der, key).map(Stored::Whole));
        }
        return Some(Certificate::from_parts(name, der, rest, backed_up).map(Stored::Whole));
    };
    // It begins with any byte, the private key's is behind it. A key that is elsewhere has no companion.
    let (companion_key, key) = rest.split_at_checked(COMPANION_PRIVATE_BYTES)?;
    if key.is_empty() {
        return None;
    }
    let certificate = Certificate::from_parts(name, der, key, backed_up);
    Some(
        certificate.and_then(|own| own.with_companion(companion, companion_key)).map(Stored::Whole),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The private half of a companion begins with any byte, also with those that begin other forms of the content.
    #[test]
    fn a_content_is_read_as_it_was_written_whatever_its_companion_begins_with() {
        pellucid::certificate::enable_hybrid();
        let plain = Certificate::generate("c", &CertificateRequest::new("c", 10)).unwrap();
        let made = || plain.clone().add_companion(7).unwrap();
        for first in [ELSEWHERE, 0x30] {
            let begins = |own: &Certificate| own.companion_key().map(|key| key[0]) == Some(first);
            let own = std::iter::repeat_with(made).find(begins).unwrap();
            let bytes = readable(&Stored::Whole(own.clone())).unwrap();
            let Stored::Whole(again) = decode("c", &bytes).unwrap().unwrap() else {
                panic!("{first}")
            };
            assert_eq!(again.public(), own.public());
            assert_eq!(again.companion_key(), own.companion_key());
            assert_eq!(again.private_key().unwrap(), own.private_key().unwrap());
        }
    }
}
