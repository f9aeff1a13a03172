//! A DEK under a certificate: wrapped by RSA-OAEP, and signed to prove who wrapped it.
//!
//! Anybody who has the public half could wrap a DEK of their own, and read the pages that are sealed
//! under it later. The signature by the certificate's private key prevents that. It is checked before
//! the ciphertext is read.
//!
//! Under a certificate with a companion, keys of backup sets and bundles are wrapped by both (`hybrid.rs`), never by RSA alone.

use super::hybrid::{self, Hybrid, HYBRID_BYTES};
use super::missing::{Closed, Missing};
use super::{Binding, KeySource, Purpose, TYPE_HYBRID, TYPE_PROVIDER_KEY};
use crate::certificate::{Certificate, KeyPlace, PublicCertificate};
use crate::error::{Error, Result, Subject};
use crate::secret::Dek;
use crate::shown::Shown;

const THUMBPRINT_BYTES: usize = 32;

/// The payload of a certificate protector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateProtector {
    name: String,
    thumbprint: [u8; THUMBPRINT_BYTES],
    wrapped: Vec<u8>,
    signature: Vec<u8>,
    recovery: bool,
    /// Where the private key is, if it is in no keyring.
    place: Option<KeyPlace>,
    hybrid: Option<Box<Hybrid>>,
}

impl CertificateProtector {
    pub(super) fn wrap(
        dek: &Dek,
        binding: &Binding<'_>,
        certificate: &Certificate,
    ) -> Result<Self> {
        let mut protector = match certificate.place() {
            Some(place) => {
                let wrapped = certificate.proves(dek.expose(), &label(binding))?;
                let place = Some(place.without_query());
                Self { place, ..Self::of(certificate.public(), wrapped, None) }
            }
            None => Self::wrap_recovery(dek, binding, certificate.public())?,
        };
        protector.recovery = false;
        protector.signature = certificate.sign(&protector.signed(binding))?;
        Ok(protector)
    }

    pub(super) fn wrap_recovery(
        dek: &Dek,
        binding: &Binding<'_>,
        certificate: &PublicCertificate,
    ) -> Result<Self> {
        let companion = certificate.companion().filter(|_| binding.purpose != Purpose::Database);
        let (wrapped, hybrid) = match companion {
            Some(companion) => {
                let (wrapped, hybrid) = hybrid::wrap(dek, binding, certificate, companion)?;
                (wrapped, Some(Box::new(hybrid)))
            }
            None => (certificate.encrypt(dek.expose(), &label(binding))?, None),
        };
        Ok(Self::of(certificate, wrapped, hybrid))
    }

    fn of(certificate: &PublicCertificate, wrapped: Vec<u8>, hybrid: Option<Box<Hybrid>>) -> Self {
        Self {
            name: certificate
                .name()
                .chars()
                .filter(|c| !c.is_control())
                .take(MOST_NAME_CHARS)
                .collect(),
            thumbprint: *certificate.thumbprint(),
            wrapped,
            signature: Vec::new(),
            recovery: true,
            place: None,
            hybrid,
        }
    }

    /// Finds the certificate that opens the protector in the keyring. A recovery protector has no
    /// signature, so it is used only if the caller allows recovery.
    pub(super) fn find(&self, keys: &dyn KeySource) -> std::result::Result<Certificate, Closed> {
        let (name, recovery) = (self.name.clone(), self.recovery);
        if recovery && !keys.allow_recovery() {
            return Err(Closed::Missing(Missing::NotAllowed { name }));
        }
        let certificate = self.find_certificate(keys)?;
        match (&self.hybrid, certificate.public().companion()) {
            (Some(own), None) => {
                let companion = own.companion;
                Err(Closed::Missing(Missing::Companion { name, companion, other: None }))
            }
            (Some(own), Some(there)) if own.companion != *there.thumbprint() => {
                let (companion, other) = (own.companion, Some(*there.thumbprint()));
                Err(Closed::Missing(Missing::Companion { name, companion, other }))
            }
            _ => Ok(certificate),
        }
    }

    /// The certificate, whichever companion it has: what a new protector under it takes.
    pub(super) fn find_certificate(
        &self,
        keys: &dyn KeySource,
    ) -> std::result::Result<Certificate, Closed> {
        let (name, recovery) = (self.name.clone(), self.recovery);
        match keys.certificate(&self.thumbprint) {
            Ok(Some(certificate)) => Ok(certificate),
            Ok(None) => {
                let thumbprint = self.thumbprint;
                Err(Closed::Missing(Missing::Certificate { name, thumbprint, recovery }))
            }
            Err(Error::MissingKey { cause, .. }) => {
                let cause = cause.into_owned();
                Err(Closed::Missing(Missing::Unusable { name, recovery, cause }))
            }
            Err(error) => Err(Closed::Failed(error)),
        }
    }

    /// Refuses a protector by RSA alone that was made, as `made` says in seconds since 1970, after the certificate got its
    /// companion. From then on its key is wrapped by both.
    ///
    /// # Errors
    /// [`Error::Unauthentic`].
    pub fn check_downgrade(&self, public: &PublicCertificate, made: u64) -> Result<()> {
        match public.companion() {
            Some(companion) if self.hybrid.is_none() && made > companion.added() => {
                Err(Error::unauthentic(Subject::Certificate(public.name().to_owned()), DOWNGRADE))
            }
            _ => Ok(()),
        }
    }

    /// Unwraps the DEK with the certificate that [`Self::find`] found; `made` is as in [`Self::check_downgrade`], none where that is
    /// allowed. Where the private key is elsewhere, what has it may not answer
    /// now, and another protector opens.
    pub(super) fn unwrap(
        &self,
        binding: &Binding<'_>,
        certificate: &Certificate,
        made: Option<u64>,
    ) -> std::result::Result<Dek, Closed> {
        let subject = || Subject::Certificate(self.name.clone());
        if self.hybrid.is_some() && binding.purpose == Purpose::Database {
            let told = "hybrid wraps are for backups and bundles, and this is a database";
            return Err(Closed::Trouble(Error::unsupported(subject(), told)));
        }
        if !self.recovery && !certificate.public().verify(&self.signed(binding), &self.signature) {
            let told =
                "the protector was not made by this certificate: the key may be somebody else's";
            return Err(Closed::Failed(Error::unauthentic(subject(), told)));
        }
        // Anybody can put a protector of recovery beside another one: it keeps that from nothing.
        if let Some(made) = made {
            self.check_downgrade(certificate.public(), made).map_err(Closed::Trouble)?;
        }
        let refused = || Error::unauthentic(subject(), "the wrapped key does not open");
        if let Some(hybrid) = &self.hybrid {
            let opened = hybrid.unwrap(binding, certificate, &self.wrapped);
            let opened = opened.map_err(Closed::Trouble)?;
            return opened.ok_or_else(|| Closed::Failed(refused()));
        }
        match certificate.decrypt(&self.wrapped, &label(binding)) {
            Ok(secret) => Ok(Dek::from_secret(secret)),
            Err(Error::MissingKey { cause, .. }) => Err(Closed::Missing(Missing::Unusable {
                name: self.name.clone(),
                recovery: self.recovery,
                cause: cause.into_owned(),
            })),
            Err(error) if certificate.place().is_some() => Err(Closed::Trouble(error)),
            Err(_) => Err(Closed::Failed(refused())),
        }
    }

    /// Joins the bytes that the signature covers. Of a hybrid protector that is the payload before the signature.
    fn signed(&self, binding: &Binding<'_>) -> Vec<u8> {
        if self.hybrid.is_some() {
            let payload = self.before_signature();
            return [b"pellucid/1 hybrid protector", &binding.bytes()[..], &payload].concat();
        }
        let domain: &[u8] = match &self.place {
            None => b"pellucid/1 protector",
            Some(_) => b"pellucid/1 provider protector",
        };
        let mut message = domain.to_vec();
        message.extend_from_slice(&binding.bytes());
        message.extend_from_slice(&self.thumbprint);
        message.extend_from_slice(&self.wrapped);
        if let Some(place) = &self.place {
            place.encode(&mut message);
        }
        message
    }

    /// Where the private key was when it wrapped the DEK, if it was in no keyring: for people, a keyring says where it is.
    pub fn place(&self) -> Option<&KeyPlace> {
        self.place.as_ref()
    }

    /// Whether the protector was made with the public half alone, so that it has no signature.
    pub fn is_recovery(&self) -> bool {
        self.recovery
    }

    /// The kind in SQL Server's words: `CERTIFICATE` or `ASYMMETRIC KEY`.
    pub fn encryptor_type(&self) -> &'static str {
        match self.place {
            None => "CERTIFICATE",
            Some(_) => "ASYMMETRIC KEY",
        }
    }

    /// Whether it takes the companion's private half beside the certificate's to open it.
    pub fn is_hybrid(&self) -> bool {
        self.hybrid.is_some()
    }

    /// Returns the name that the certificate had when it wrapped the key. It is a hint only.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns SHA-256 of the certificate's DER bytes.
    pub fn thumbprint(&self) -> &[u8; THUMBPRINT_BYTES] {
        &self.thumbprint
    }

    /// The kind's name: `certificate`, `hybrid certificate` or `asymmetric key`.
    pub fn kind_name(&self) -> &'static str {
        match (&self.hybrid, &self.place) {
            (Some(_), _) => "hybrid certificate",
            (None, Some(_)) => "asymmetric key",
            (None, None) => "certificate",
        }
    }

    /// Describes the protector in one line for people.
    pub fn describe(&self) -> String {
        let thumbprint = crate::hash::hex(&self.thumbprint);
        match &self.place {
            None => format!(
                "{} `{}` (SHA-256 thumbprint {thumbprint})",
                self.kind_name(),
                self.name.shown()
            ),
            Some(place) => format!(
                "asymmetric key `{}` {place} (SHA-256 of the public key {thumbprint})",
                self.name.shown()
            ),
        }
    }

    pub(super) fn payload(&self) -> Vec<u8> {
        let mut payload = self.before_signature();
        payload.extend_from_slice(&(self.signature.len() as u16).to_be_bytes());
        payload.extend_from_slice(&self.signature);
        if let Some(place) = &self.place {
            place.encode(&mut payload);
        }
        payload
    }

    fn before_signature(&self) -> Vec<u8> {
        let mut payload = vec![self.name.len() as u8];
        payload.extend_from_slice(self.name.as_bytes());
        payload.extend_from_slice(&self.thumbprint);
        if let Some(hybrid) = &self.hybrid {
            hybrid.encode(&mut payload);
        }
        payload.extend_from_slice(&(self.wrapped.len() as u16).to_be_bytes());
        payload.extend_from_slice(&self.wrapped);
        payload
    }

    /// Parses a protector of one of the three types that have a certificate or its public key.
    pub(super) fn parse(payload: &[u8], kind: u8, recovery: bool) -> Option<Self> {
        let mut rest = payload;
        let mut take = |bytes: usize| {
            let (part, behind) = rest.split_at_checked(bytes)?;
            rest = behind;
            Some(part)
        };
        let name_bytes = usize::from(*take(1)?.first()?);
        // The name is printed before the header is authenticated, so it may have no escape sequences
        // for a terminal.
        let name = String::from_utf8(take(name_bytes)?.to_vec()).ok()?;
        if name.chars().any(char::is_control) {
            return None;
        }
        let thumbprint = take(THUMBPRINT_BYTES)?.try_into().ok()?;
        let hybrid = match kind == TYPE_HYBRID {
            true => Some(Box::new(Hybrid::parse(take(HYBRID_BYTES)?)?)),
            false => None,
        };
        let mut part = || {
            let length = u16::from_be_bytes(take(2)?.try_into().ok()?);
            take(usize::from(length)).map(<[u8]>::to_vec)
        };
        let (wrapped, signature) = (part()?, part()?);
        let place = match kind == TYPE_PROVIDER_KEY {
            true => Some(KeyPlace::decode(std::mem::take(&mut rest))?),
            false => None,
        };
        // A recovery protector opens without a check of its signature, so one with a signature is
        // refused.
        let whole = rest.is_empty() && (!recovery || signature.is_empty());
        whole.then_some(Self { name, thumbprint, wrapped, signature, recovery, place, hybrid })
    }
}

const DOWNGRADE: &str = "it was wrapped by RSA alone after the certificate got its companion key: an instance made it that has the \
     certificate without the companion, or somebody who broke RSA; `PELLUCID_ALLOW_CLASSICAL=1` opens it all the same";

/// The most characters of a name. They have at most 252 bytes, and the length has one byte.
const MOST_NAME_CHARS: usize = 63;

/// Makes the OAEP label, which binds purpose and id.
fn label(binding: &Binding<'_>) -> Vec<u8> {
    let mut label = b"pellucid/1".to_vec();
    label.push(binding.purpose as u8);
    label.extend_from_slice(binding.id);
    label
}
