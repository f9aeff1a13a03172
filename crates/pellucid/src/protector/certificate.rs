//! A DEK under a certificate: wrapped by RSA-OAEP, and signed to prove who wrapped it.
//!
//! Anybody who has the public half could wrap a DEK of their own, and read the pages that are sealed
//! under it later. The signature by the certificate's private key prevents that. It is checked before
//! the ciphertext is read.

use super::missing::{Closed, Missing};
use super::{Binding, KeySource};
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
}

impl CertificateProtector {
    pub(super) fn wrap(
        dek: &Dek,
        binding: &Binding<'_>,
        certificate: &Certificate,
    ) -> Result<Self> {
        let wrapped = certificate.proves(dek.expose(), &label(binding))?;
        let mut protector = Self::of(certificate.public(), wrapped);
        protector.recovery = false;
        protector.place = certificate.place().map(KeyPlace::without_query);
        protector.signature = certificate.sign(&protector.signed(binding))?;
        Ok(protector)
    }

    pub(super) fn wrap_recovery(
        dek: &Dek,
        binding: &Binding<'_>,
        certificate: &PublicCertificate,
    ) -> Result<Self> {
        Ok(Self::of(certificate, certificate.encrypt(dek.expose(), &label(binding))?))
    }

    fn of(certificate: &PublicCertificate, wrapped: Vec<u8>) -> Self {
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
        }
    }

    /// Finds the certificate that opens the protector in the keyring. A recovery protector has no
    /// signature, so it is used only if the caller allows recovery.
    pub(super) fn find(&self, keys: &dyn KeySource) -> std::result::Result<Certificate, Closed> {
        let (name, recovery) = (self.name.clone(), self.recovery);
        if recovery && !keys.allow_recovery() {
            return Err(Closed::Missing(Missing::NotAllowed { name }));
        }
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

    /// Unwraps the DEK with the certificate that [`Self::find`] found. Where the private key is elsewhere, what has it may not answer
    /// now, and another protector opens.
    pub(super) fn unwrap(
        &self,
        binding: &Binding<'_>,
        certificate: &Certificate,
    ) -> std::result::Result<Dek, Closed> {
        let unauthentic = |cause: &'static str| {
            Error::unauthentic(Subject::Certificate(self.name.clone()), cause)
        };
        if !self.recovery && !certificate.public().verify(&self.signed(binding), &self.signature) {
            return Err(Closed::Failed(unauthentic(
                "the protector was not made by this certificate: the key may be somebody else's",
            )));
        }
        match certificate.decrypt(&self.wrapped, &label(binding)) {
            Ok(secret) => Ok(Dek::from_secret(secret)),
            Err(Error::MissingKey { cause, .. }) => Err(Closed::Missing(Missing::Unusable {
                name: self.name.clone(),
                recovery: self.recovery,
                cause: cause.into_owned(),
            })),
            Err(error) if certificate.place().is_some() => Err(Closed::Trouble(error)),
            Err(_) => Err(Closed::Failed(unauthentic("the wrapped key does not open"))),
        }
    }

    /// Joins the bytes that the signature covers.
    fn signed(&self, binding: &Binding<'_>) -> Vec<u8> {
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

    /// Returns the name that the certificate had when it wrapped the key. It is a hint only.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns SHA-256 of the certificate's DER bytes.
    pub fn thumbprint(&self) -> &[u8; THUMBPRINT_BYTES] {
        &self.thumbprint
    }

    /// Describes the protector in one line for people.
    pub fn describe(&self) -> String {
        let thumbprint = crate::hash::hex(&self.thumbprint);
        match &self.place {
            None => {
                format!("certificate `{}` (SHA-256 thumbprint {thumbprint})", self.name.shown())
            }
            Some(place) => format!(
                "asymmetric key `{}` {place} (SHA-256 of the public key {thumbprint})",
                self.name.shown()
            ),
        }
    }

    pub(super) fn payload(&self) -> Vec<u8> {
        let mut payload = vec![self.name.len() as u8];
        payload.extend_from_slice(self.name.as_bytes());
        payload.extend_from_slice(&self.thumbprint);
        for part in [&self.wrapped, &self.signature] {
            payload.extend_from_slice(&(part.len() as u16).to_be_bytes());
            payload.extend_from_slice(part);
        }
        if let Some(place) = &self.place {
            place.encode(&mut payload);
        }
        payload
    }

    /// Parses a protector, whose private key is elsewhere where `is_elsewhere`.
    pub(super) fn parse(payload: &[u8], recovery: bool, is_elsewhere: bool) -> Option<Self> {
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
        let mut part = || {
            let length = u16::from_be_bytes(take(2)?.try_into().ok()?);
            take(usize::from(length)).map(<[u8]>::to_vec)
        };
        let (wrapped, signature) = (part()?, part()?);
        let place = match is_elsewhere {
            true => Some(KeyPlace::decode(std::mem::take(&mut rest))?),
            false => None,
        };
        // A recovery protector opens without a check of its signature, so one with a signature is
        // refused.
        let whole = rest.is_empty() && (!recovery || signature.is_empty());
        whole.then_some(Self { name, thumbprint, wrapped, signature, recovery, place })
    }
}

/// The most characters of a name. They have at most 252 bytes, and the length has one byte.
const MOST_NAME_CHARS: usize = 63;

/// Makes the OAEP label, which binds purpose and id.
fn label(binding: &Binding<'_>) -> Vec<u8> {
    let mut label = b"pellucid/1".to_vec();
    label.push(binding.purpose as u8);
    label.extend_from_slice(binding.id);
    label
}
