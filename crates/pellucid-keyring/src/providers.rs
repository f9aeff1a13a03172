//! Providers of keys, the credentials for them, and the logins that join a key with its credential: SQL Server's Extensible Key
//! Management.
//!
//! Layout: docs/format.md, "Keyring". Names are compared without regard to the case of ASCII letters.

use std::path::{Path, PathBuf};

use aws_lc_rs::digest;
use pellucid::error::{Error, Result, Subject};
use pellucid::hash::hex;
use zeroize::Zeroizing;

use super::sealed_file::{Kind, SealedFile};
use super::{Event, Keyring};

const NAME: &str = "providers";

/// A provider of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// The file that it was made from: a plugin, or a module that a plugin loads.
    pub file: PathBuf,
    /// The plugin that is asked.
    pub plugin: String,
    /// What it is known by.
    pub guid: [u8; 16],
    /// Whether it is asked at all.
    pub is_enabled: bool,
}

/// What a provider wants before it answers.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub identity: String,
    /// The PIN or password.
    pub secret: Zeroizing<String>,
    /// The provider that it is for.
    pub provider: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Who has credentials: a person, or what uses a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// Its name.
    pub name: String,
    /// The key that it was made from; empty for a person.
    pub key: String,
    /// Its credentials, one for each provider.
    pub credentials: Vec<String>,
}

/// Whose key it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedKey {
    /// The key's name in the keyring.
    pub name: String,
    /// The provider that has it.
    pub provider: String,
    /// SHA-256 of the public key, in hexadecimal digits: another key of the name is not meant.
    pub thumbprint: String,
}

impl OwnedKey {
    /// The key of this name and public half, of a provider.
    pub fn new(name: &str, public_key: &[u8], provider: &str) -> Self {
        let thumbprint = digest::digest(&digest::SHA256, public_key);
        let (name, provider) = (name.to_owned(), provider.to_owned());
        Self { name, provider, thumbprint: hex(thumbprint.as_ref()) }
    }
}

/// What the keyring knows of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Providers {
    /// By name.
    pub providers: Vec<Provider>,
    /// By name.
    pub credentials: Vec<Credential>,
    /// By name.
    pub logins: Vec<Login>,
    /// The keys that came from a provider.
    pub keys: Vec<OwnedKey>,
    /// Lines of a newer version, kept as they are.
    others: Vec<Zeroizing<String>>,
}

impl Providers {
    /// The provider of that name.
    pub fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.iter().find(|one| one.name.eq_ignore_ascii_case(name))
    }

    /// The credential of that name.
    pub fn credential(&self, name: &str) -> Option<&Credential> {
        self.credentials.iter().find(|one| one.name.eq_ignore_ascii_case(name))
    }

    /// The login of that name.
    pub fn login(&self, name: &str) -> Option<&Login> {
        self.logins.iter().find(|one| one.name.eq_ignore_ascii_case(name))
    }

    /// The login that was made from the key.
    pub fn login_of_key(&self, key: &str) -> Option<&Login> {
        self.logins.iter().find(|one| !one.key.is_empty() && one.key.eq_ignore_ascii_case(key))
    }

    /// The provider that has the key with this public half.
    pub fn provider_of_key(&self, key: &str, public_key: &[u8]) -> Option<&Provider> {
        let meant = OwnedKey::new(key, public_key, "").thumbprint;
        let is_it = |one: &&OwnedKey| one.name.eq_ignore_ascii_case(key) && one.thumbprint == meant;
        self.provider(&self.keys.iter().find(is_it)?.provider)
    }

    /// The login's credential for a provider.
    pub fn credential_of(&self, login: &Login, provider: &str) -> Option<&Credential> {
        let mut own = login.credentials.iter().filter_map(|name| self.credential(name));
        own.find(|one| one.provider.eq_ignore_ascii_case(provider))
    }

    fn parse(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            if found.parse_line(line).is_none() {
                found.others.push(Zeroizing::new(line.to_owned()));
            }
        }
        found
    }

    fn parse_line(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        let kind = words.next()?;
        let mut word = || words.next().and_then(decoded);
        match kind {
            "provider" => {
                let (name, file, plugin) = (word()?, word()?, word()?);
                let guid = hex_bytes(&word()?)?.as_slice().try_into().ok()?;
                let is_enabled = word()?.as_str() == "1";
                let file = PathBuf::from(file.as_str());
                let (name, plugin) = (name.to_string(), plugin.to_string());
                self.providers.push(Provider { name, file, plugin, guid, is_enabled });
            }
            "credential" => {
                let (name, identity, secret, provider) = (word()?, word()?, word()?, word()?);
                let [name, identity, provider] =
                    [name, identity, provider].map(|text| text.to_string());
                self.credentials.push(Credential { name, identity, secret, provider });
            }
            "login" => {
                let (name, key) = (word()?.to_string(), word()?.to_string());
                let mut credentials = Vec::new();
                while let Some(credential) = word() {
                    credentials.push(credential.to_string());
                }
                self.logins.push(Login { name, key, credentials });
            }
            "key" => {
                let [name, provider, thumbprint] =
                    [word()?, word()?, word()?].map(|text| text.to_string());
                self.keys.push(OwnedKey { name, provider, thumbprint });
            }
            _ => return None,
        }
        Some(())
    }

    fn encode(&self) -> Zeroizing<String> {
        // Long enough that it does not move: what it leaves behind would not be wiped.
        let mut text =
            Zeroizing::new(String::with_capacity(super::sealed_file::CONTENT_BYTES_MOST));
        let mut line = |kind: &str, words: &[&str]| {
            text.push_str(kind);
            for word in words {
                text.push_str(" =");
                word.bytes().for_each(|byte| {
                    for digit in [byte >> 4, byte & 15] {
                        text.push(char::from_digit(digit.into(), 16).unwrap_or('0'));
                    }
                });
            }
            text.push('\n');
        };
        for Provider { name, file, plugin, guid, is_enabled } in &self.providers {
            let enabled = if *is_enabled { "1" } else { "0" };
            line("provider", &[name, &file.to_string_lossy(), plugin, &hex(guid), enabled]);
        }
        for Credential { name, identity, secret, provider } in &self.credentials {
            line("credential", &[name, identity, secret, provider]);
        }
        for Login { name, key, credentials } in &self.logins {
            let mut words = vec![name.as_str(), key.as_str()];
            words.extend(credentials.iter().map(String::as_str));
            line("login", &words);
        }
        for OwnedKey { name, provider, thumbprint } in &self.keys {
            line("key", &[name, provider, thumbprint]);
        }
        for other in &self.others {
            text.push_str(other);
            text.push('\n');
        }
        text
    }
}

/// `=` and hexadecimal digits of UTF-8.
fn decoded(word: &str) -> Option<Zeroizing<String>> {
    let bytes = hex_bytes(word.strip_prefix('=')?)?;
    std::str::from_utf8(&bytes).ok().map(|text| Zeroizing::new(text.to_owned()))
}

fn hex_bytes(digits: &str) -> Option<Zeroizing<Vec<u8>>> {
    let digit = |at: &u8| char::from(*at).to_digit(16).map(|digit| digit as u8);
    let mut bytes = Zeroizing::new(Vec::with_capacity(digits.len() / 2));
    for pair in digits.as_bytes().chunks(2) {
        let [high, low] = pair else { return None };
        bytes.push(digit(high)? << 4 | digit(low)?);
    }
    Some(bytes)
}

pub(super) fn file(home: &Path) -> SealedFile {
    SealedFile::new(home.join("keyring").join(NAME), Kind::Providers, NAME)
}

impl Keyring {
    /// The providers of keys, with what belongs to them.
    ///
    /// # Errors
    /// What is wrong with the file that they are in.
    pub fn providers(&self) -> Result<Providers> {
        let file = file(self.home());
        let Some(bytes) = self.read(&file)? else { return Ok(Providers::default()) };
        std::str::from_utf8(&bytes)
            .map(Providers::parse)
            .map_err(|_| Error::corrupt(Subject::File(file.path().to_owned()), "not UTF-8"))
    }

    /// Changes them, once `event` is recorded.
    ///
    /// # Errors
    /// Those of `change`; [`Error::Io`].
    pub fn change_providers(
        &self,
        event: Event,
        change: impl FnOnce(&mut Providers) -> Result<()>,
    ) -> Result<()> {
        let (_change, now) = self.begin_change()?;
        let mut providers = now.providers()?;
        change(&mut providers)?;
        event.record_by(self)?;
        file(self.home()).replace(now.key(), providers.encode().as_bytes())
    }
}

impl Keyring {
    /// Refuses to drop a key that a login has: its credential would be another key's.
    pub(super) fn check_without_login(&self, key: &str) -> Result<()> {
        match self.providers().unwrap_or_default().login_of_key(key) {
            None => Ok(()),
            Some(login) => Err(Error::misuse(
                Subject::Key("provider key"),
                format!(
                    "the login `{}` was made from it: DROP LOGIN first (`pellucid sql`)",
                    login.name
                ),
            )),
        }
    }

    /// Forgets whose a key was that is gone. Under the lock of a change.
    pub(super) fn forget_key(&self, key: &str) -> Result<()> {
        let Ok(mut providers) = self.providers() else { return Ok(()) };
        let before = providers.keys.len();
        providers.keys.retain(|one| !one.name.eq_ignore_ascii_case(key));
        match providers.keys.len() == before {
            true => Ok(()),
            false => file(self.home()).replace(self.key(), providers.encode().as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_lines_of_a_newer_version_are_kept() {
        let written = Providers {
            providers: vec![Provider {
                name: "EKM Prov".into(),
                file: "/usr/lib/a b.so".into(),
                plugin: "pkcs11".into(),
                guid: [7; 16],
                is_enabled: true,
            }],
            credentials: vec![Credential {
                name: "c".into(),
                identity: String::new(),
                secret: Zeroizing::new("q*gtev$0u#D1v \u{e4}".to_owned()),
                provider: "EKM Prov".into(),
            }],
            logins: vec![Login {
                name: "l".into(),
                key: "k".into(),
                credentials: vec!["c".into()],
            }],
            keys: vec![OwnedKey::new("k", b"public", "EKM Prov")],
            others: vec![Zeroizing::new("quorum =61".to_owned())],
        };
        let text = written.encode();
        assert_eq!(Providers::parse(&text), written);
        assert!(!format!("{written:?}").contains("gtev"));
        assert_eq!(written.login_of_key("K").map(|login| login.name.as_str()), Some("l"));
        let login = written.login("L").unwrap();
        assert!(written.credential_of(login, "ekm prov").is_some());
        assert!(written.credential_of(login, "other").is_none());
        assert!(written.login_of_key("").is_none());
        assert!(written.provider_of_key("K", b"public").is_some());
        assert!(written.provider_of_key("k", b"another").is_none());
    }
}
