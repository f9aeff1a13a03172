//! Keys that lie elsewhere, in a token, a TPM or a key service: programs named `pellucid-plugin-NAME` that are asked.
//!
//! The protocol: docs/design/plugins.md. A plugin is a program of root's, found in directories of root's. It gets one line of
//! JSON and answers with one. No library of a vendor's comes into the process that asks, no key of the other place does, and
//! nothing runs when the answer is there.
//!
//! ```no_run
//! # fn main() -> pellucid::Result<()> {
//! use pellucid_plugin::Plugin;
//! let token = Plugin::find("pkcs11")?;
//! let dek = token.decrypt("pkcs11:token=T;object=k?pin-source=file:/etc/pin", b"label", &[0; 384])?;
//! # let _ = dek; Ok(()) }
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::unreachable))]

mod place;
mod process;
mod serve;
mod settings;
mod wire;

use std::path::{Path, PathBuf};

use pellucid::error::{Error, Result, Subject};
use zeroize::Zeroizing;

pub use place::{directories, found, FORBID, SEARCH};
pub use serve::{serve, Refusal, Reply, Request};
pub use settings::Settings;
pub use wire::{Description, Operation};

use wire::{Field, Question};

/// A secret that a plugin handed out. It is wiped when it is dropped.
pub type Secret = Zeroizing<Vec<u8>>;

/// The longest key URI, in bytes.
pub const KEY_BYTES_MOST: usize = 1024;
/// The longest secret, plaintext, context and label, in bytes.
pub const SECRET_BYTES_MOST: usize = 1024;
/// The longest wrapped secret, ciphertext, message, signature and public key, in bytes.
pub const BYTES_MOST: usize = 8192;

/// A plugin that was found. Each call runs the program once, for at most 10 s.
///
/// # Errors
/// Those of each call: [`Error::MissingKey`] where somebody has to act first (a PIN, a token that is out);
/// [`Error::Unauthentic`] for what does not open; [`Error::Misuse`] for what the plugin cannot do, or will not;
/// [`Error::Io`] for trouble, also for a program that does not answer as docs/design/plugins.md says.
#[derive(Clone)]
pub struct Plugin {
    name: String,
    file: PathBuf,
    pin: Option<Secret>,
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin").field("name", &self.name).field("file", &self.file).finish()
    }
}

impl Plugin {
    /// Finds `pellucid-plugin-NAME` in the directories of root's ([`directories`]).
    ///
    /// # Errors
    /// [`Error::Misuse`] for a name that is none, where `PELLUCID_PLUGINS=0` forbids plugins, and for a program that
    /// somebody other than root could have put there; [`Error::MissingKey`] if there is none.
    pub fn find(name: &str) -> Result<Self> {
        let file = place::find(name)?;
        Ok(Self { name: name.to_owned(), file, pin: None })
    }

    /// The same, with what the key's place wants before it answers: a PIN of at most 1,024 bytes, in place of the one that the key or
    /// the plugin's settings name. It goes through the pipe, as secrets do.
    #[must_use]
    pub fn with_pin(mut self, pin: &str) -> Self {
        self.pin = Some(Zeroizing::new(pin.as_bytes().to_vec()));
        self
    }

    /// Its name, without `pellucid-plugin-`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The program.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What it says of itself.
    ///
    /// # Errors
    /// See [`Plugin`].
    pub fn describe(&self) -> Result<Description> {
        process::exchange(self, Question::new(Operation::Describe, ""))?.description()
    }

    /// Wraps `secret` under the key; `context` has to be the same when it is unwrapped.
    ///
    /// # Errors
    /// See [`Plugin`].
    pub fn wrap(&self, key: &str, secret: &[u8], context: &[u8]) -> Result<Vec<u8>> {
        let mut question = self.question(Operation::Wrap, key)?;
        question.put(Field::Secret, secret, SECRET_BYTES_MOST)?;
        question.put(Field::Context, context, SECRET_BYTES_MOST)?;
        let wrapped = process::exchange(self, question)?.take(Field::Wrapped, BYTES_MOST)?;
        // One that hands back what it got would put the secret on the disk in clear.
        match wrapped.windows(secret.len().max(1)).any(|part| part == secret) {
            true => {
                Err(self.trouble("its wrapped secret has the secret in clear; nothing was kept"))
            }
            false => Ok(wrapped.to_vec()),
        }
    }

    /// Unwraps what [`Plugin::wrap`] made.
    ///
    /// # Errors
    /// See [`Plugin`].
    pub fn unwrap(&self, key: &str, wrapped: &[u8], context: &[u8]) -> Result<Secret> {
        let mut question = self.question(Operation::Unwrap, key)?;
        question.put(Field::Wrapped, wrapped, BYTES_MOST)?;
        question.put(Field::Context, context, SECRET_BYTES_MOST)?;
        process::exchange(self, question)?.take(Field::Secret, SECRET_BYTES_MOST)
    }

    /// The public half of an asymmetric key, as a SubjectPublicKeyInfo (RFC 5280), DER.
    ///
    /// # Errors
    /// See [`Plugin`].
    pub fn public(&self, key: &str) -> Result<Vec<u8>> {
        let question = self.question(Operation::Public, key)?;
        Ok(process::exchange(self, question)?.take(Field::Spki, BYTES_MOST)?.to_vec())
    }

    /// Decrypts RSA-OAEP (SHA-256, MGF1 with SHA-256) with `label` by the private key, which stays where it is.
    ///
    /// # Errors
    /// See [`Plugin`].
    pub fn decrypt(&self, key: &str, label: &[u8], ciphertext: &[u8]) -> Result<Secret> {
        let mut question = self.question(Operation::Decrypt, key)?;
        question.put(Field::Label, label, SECRET_BYTES_MOST)?;
        question.put(Field::Ciphertext, ciphertext, BYTES_MOST)?;
        process::exchange(self, question)?.take(Field::Plaintext, SECRET_BYTES_MOST)
    }

    /// Signs `message` by RSA-PSS (SHA-256, a salt of 32 bytes).
    ///
    /// # Errors
    /// See [`Plugin`].
    pub fn sign(&self, key: &str, message: &[u8]) -> Result<Vec<u8>> {
        let mut question = self.question(Operation::Sign, key)?;
        question.put(Field::Message, message, BYTES_MOST)?;
        Ok(process::exchange(self, question)?.take(Field::Signature, BYTES_MOST)?.to_vec())
    }

    /// Makes a new RSA key of `bits` that never leaves its place, and returns the public half as [`Plugin::public`] does.
    ///
    /// # Errors
    /// See [`Plugin`]; [`Error::Misuse`] if there is a key of the name.
    pub fn create(&self, key: &str, bits: u32) -> Result<Vec<u8>> {
        let mut question = self.question(Operation::Create, key)?;
        question.put_bits(bits);
        Ok(process::exchange(self, question)?.take(Field::Spki, BYTES_MOST)?.to_vec())
    }

    fn question<'a>(&self, operation: Operation, key: &'a str) -> Result<Question<'a>> {
        // What was wrapped or made by a key was checked then.
        match operation {
            Operation::Unwrap | Operation::Decrypt | Operation::Sign => {}
            _ => check_key(key)?,
        }
        if !(1..=KEY_BYTES_MOST).contains(&key.len()) {
            return Err(Error::misuse(self.subject(), "a key has 1 to 1024 bytes"));
        }
        let mut question = Question::new(operation, key);
        if let Some(pin) = &self.pin {
            question.put(Field::Pin, pin, SECRET_BYTES_MOST)?;
        }
        Ok(question)
    }

    fn subject(&self) -> Subject {
        Subject::Option(format!("pellucid-plugin-{}", self.name).into())
    }

    /// Somebody has to act. What lacks the key puts its own name before the cause, and leaves the subject out.
    fn missing(&self, cause: String) -> Error {
        Error::missing_key(Subject::Container, format!("`pellucid-plugin-{}`: {cause}", self.name))
    }

    fn trouble(&self, cause: impl Into<String>) -> Error {
        Error::io(self.subject(), std::io::Error::other(cause.into()))
    }
}

/// Whether `key` may name a key: 1 to 1,024 printable characters, without a PIN in it.
///
/// # Errors
/// [`Error::Misuse`] saying what is wrong; the key is not in it.
pub fn check_key(key: &str) -> Result<()> {
    let refused = |cause| Err(Error::misuse(Subject::Option("--key".into()), cause));
    if key.is_empty() || key.len() > KEY_BYTES_MOST {
        return refused("a key has 1 to 1024 bytes");
    }
    if key.chars().any(|one| one.is_control()) {
        return refused("a key has no control characters");
    }
    // RFC 7512 allows it; but the key is shown, written to files and given as an argument.
    if key.to_ascii_lowercase().contains("pin-value") {
        return refused(
            "no PIN belongs into a key: `pin-source=file:PATH` names the file that has it",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
