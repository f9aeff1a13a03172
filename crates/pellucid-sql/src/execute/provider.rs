//! Extensible key management: CRYPTOGRAPHIC PROVIDER, CREDENTIAL, ASYMMETRIC KEY, LOGIN.
//!
//! A provider is a plugin of root's, or a PKCS#11 module that the plugin `pkcs11` loads; docs/guide/tokens.md. Logins are nobody who
//! logs in: they join a key, or the person who runs the statements, with the credentials for providers.

use std::path::Path;

use pellucid::certificate::KeyPlace;
use pellucid::message as known;
use pellucid::secret::fill_random;
use pellucid::Error;
use pellucid_keyring::{Action, Credential, Event, Keyring, Login, OwnedKey, Provider};
use pellucid_plugin::Plugin;
use pellucid_tsql::ast::{
    AsymmetricKeyOption, Name, ProviderChange, ProviderStatement, RsaAlgorithm,
};
use pellucid_tsql::secret::Secret;
use zeroize::Zeroizing;

use super::Done;
use crate::instance::MASTER;
use crate::message::{table, Message};
use crate::session::Session;

/// SQL Server's first login, who is whoever runs the statements.
const ADMINISTRATOR: &str = "sa";
/// The plugin that loads modules of PKCS#11.
const PKCS11: &str = "pkcs11";
const EKM: &str = "EKM provider enabled";
const PROVIDER: &str = "cryptographic provider";

impl Session {
    pub(super) fn provider(&mut self, statement: &ProviderStatement) -> Done {
        if let ProviderStatement::CreateCredential { provider: None, .. } = statement {
            return Err(Message::unsupported("CREATE CREDENTIAL without a provider").into());
        }
        // Without it there is none of them.
        if self.databases.instance.running(EKM)? == 0 {
            let absent = match statement {
                ProviderStatement::DropLogin { name } => Some(("login", name)),
                ProviderStatement::DropCredential { name } => Some(("credential", name)),
                _ => None,
            };
            if let Some((kind, name)) = absent {
                return Err(Message::does_not_exist("drop", kind, name.as_str()).into());
            }
        }
        self.check_extensible()?;
        match statement {
            ProviderStatement::CreateProvider { name, file } => {
                self.create_provider(name.as_str(), &file.text)
            }
            ProviderStatement::AlterProvider { name, change } => {
                self.alter_provider(name.as_str(), change)
            }
            ProviderStatement::DropProvider { name } => self.drop_provider(name.as_str()),
            ProviderStatement::CreateCredential { name, identity, secret, provider } => {
                let provider = provider.as_ref().map_or("", Name::as_str);
                self.create_credential(name.as_str(), &identity.text, secret.as_ref(), provider)
            }
            ProviderStatement::AlterCredential { name, identity, secret } => {
                self.alter_credential(name.as_str(), &identity.text, secret.as_ref())
            }
            ProviderStatement::DropCredential { name } => self.drop_credential(name.as_str()),
            ProviderStatement::CreateAsymmetricKey { name, authorization, provider, options } => {
                if authorization.as_ref().is_some_and(|user| !is_same(user.as_str(), "dbo")) {
                    return Err(Message::unsupported("AUTHORIZATION").into());
                }
                self.create_asymmetric_key(name.as_str(), provider.as_str(), options)
            }
            ProviderStatement::DropAsymmetricKey { name, remove_provider_key } => {
                self.drop_asymmetric_key(name.as_str(), *remove_provider_key)
            }
            ProviderStatement::CreateLogin { name, key } => {
                self.create_login(name.as_str(), key.as_str())
            }
            ProviderStatement::LoginCredential { login, add, credential } => {
                self.change_login(login.as_str(), *add, credential.as_str())
            }
            ProviderStatement::DropLogin { name } => self.drop_login(name.as_str()),
        }
    }

    /// 33053 unless it is switched on.
    pub(super) fn check_extensible(&self) -> Done {
        match self.databases.instance.running(EKM)? {
            0 => Err(Message::of(table::EKM_DISABLED, []).into()),
            _ => Ok(()),
        }
    }

    /// The name of an asymmetric key that can protect something without anybody being asked.
    pub(super) fn asymmetric_key(&mut self, name: &str) -> Done<String> {
        if self.databases.instance.running(EKM)? == 0 {
            // Asymmetric keys lie in providers, of which there is none.
            return Err(Message::of(table::KEY_NOT_OF_EKM, []).into());
        }
        let keyring = self.keyring_for_certificates()?;
        let providers = keyring.providers()?;
        let found = self.asymmetric_key_of(&keyring, "find", name)?;
        let stored = keyring.stored_certificate(&found)?;
        let provider = providers.provider_of_key(name, stored.public().der());
        let provider = provider.map_or("", |one| one.name.as_str());
        let login = providers.login_of_key(name);
        match login.and_then(|login| providers.credential_of(login, provider)) {
            Some(_) => Ok(found),
            None => Err(Message::of(table::KEY_WITHOUT_LOGIN, [&name, &provider]).into()),
        }
    }

    /// 15151 unless there is an asymmetric key of that name; its name as it was made.
    fn asymmetric_key_of(&self, keyring: &Keyring, verb: &str, name: &str) -> Done<String> {
        match keyring.stored_certificate(name) {
            Ok(stored) if stored.place().is_some() => Ok(stored.public().name().to_owned()),
            Ok(_) => Err(Message::does_not_exist(verb, "asymmetric key", name).into()),
            Err(error) if error.number() == Some(15151) => {
                Err(Message::does_not_exist(verb, "asymmetric key", name).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn create_provider(&mut self, name: &str, file: &str) -> Done {
        let keyring = self.master_keyring()?;
        if keyring.providers()?.provider(name).is_some() {
            return Err(Message::of(table::NAME_EXISTS, [&PROVIDER, &name]).into());
        }
        let plugin = plugin_of(file)?;
        let mut guid = [0; 16];
        fill_random(&mut guid)?;
        let made =
            Provider { name: name.to_owned(), file: file.into(), plugin, guid, is_enabled: true };
        let event = Event::new(Action::Created, PROVIDER).of(name);
        Ok(keyring.change_providers(event, |all| {
            all.providers.push(made);
            Ok(())
        })?)
    }

    fn alter_provider(&mut self, name: &str, change: &ProviderChange) -> Done {
        let keyring = self.master_keyring()?;
        if keyring.providers()?.provider(name).is_none() {
            return Err(Message::does_not_exist("alter", PROVIDER, name).into());
        }
        let file = match change {
            ProviderChange::File(file) => Some((file.text.as_str(), plugin_of(&file.text)?)),
            ProviderChange::Enable(_) => None,
        };
        let event = Event::new(Action::Changed, PROVIDER).of(name);
        keyring.change_providers(event, |all| {
            for one in all.providers.iter_mut().filter(|one| is_same(&one.name, name)) {
                match (&file, change) {
                    (Some((path, plugin)), _) => {
                        (one.file, one.plugin) = (path.into(), plugin.clone());
                    }
                    (None, ProviderChange::Enable(enable)) => one.is_enabled = *enable,
                    (None, ProviderChange::File(_)) => {}
                }
            }
            Ok(())
        })?;
        if matches!(change, ProviderChange::Enable(false)) {
            self.inform(Message::of(table::PROVIDER_NOW_DISABLED, []));
        }
        Ok(())
    }

    fn drop_provider(&mut self, name: &str) -> Done {
        let keyring = self.master_keyring()?;
        let all = keyring.providers()?;
        if all.provider(name).is_none() {
            return Err(Message::does_not_exist("drop", PROVIDER, name).into());
        }
        // One without its certificate was interrupted, or its file is gone.
        let is_there = |key: &OwnedKey| keyring.stored_certificate(&key.name).is_ok();
        let uses = [
            (all.credentials.iter().any(|one| is_same(&one.provider, name)), "credential"),
            (
                all.keys.iter().any(|one| is_same(&one.provider, name) && is_there(one)),
                "asymmetric key",
            ),
        ];
        if let Some((_, kind)) = uses.into_iter().find(|(is_used, _)| *is_used) {
            return Err(Message::of(table::PROVIDER_REFERENCED, [&kind]).into());
        }
        let event = Event::new(Action::Dropped, PROVIDER).of(name);
        keyring.change_providers(event, |all| {
            all.providers.retain(|one| !is_same(&one.name, name));
            Ok(())
        })?;
        self.inform(Message::of(table::PROVIDER_NOW_DROPPED, []));
        Ok(())
    }

    fn create_credential(
        &mut self,
        name: &str,
        identity: &str,
        secret: Option<&Secret>,
        provider: &str,
    ) -> Done {
        let keyring = self.master_keyring()?;
        let all = keyring.providers()?;
        let Some(provider) = all.provider(provider) else {
            return Err(Message::does_not_exist("find", PROVIDER, provider).into());
        };
        if all.credential(name).is_some() {
            return Err(Message::of(table::NAME_EXISTS, [&"credential", &name]).into());
        }
        let made = Credential {
            name: name.to_owned(),
            identity: identity.to_owned(),
            secret: revealed(secret),
            provider: provider.name.clone(),
        };
        let event = Event::new(Action::Created, "credential").of(name);
        Ok(keyring.change_providers(event, |all| {
            all.credentials.push(made);
            Ok(())
        })?)
    }

    fn alter_credential(&mut self, name: &str, identity: &str, secret: Option<&Secret>) -> Done {
        let keyring = self.master_keyring()?;
        if keyring.providers()?.credential(name).is_none() {
            return Err(Message::does_not_exist("alter", "credential", name).into());
        }
        let event = Event::new(Action::Changed, "credential").of(name);
        Ok(keyring.change_providers(event, |all| {
            for one in all.credentials.iter_mut().filter(|one| is_same(&one.name, name)) {
                one.identity = identity.to_owned();
                one.secret = revealed(secret);
            }
            Ok(())
        })?)
    }

    fn drop_credential(&mut self, name: &str) -> Done {
        let keyring = self.master_keyring()?;
        let all = keyring.providers()?;
        if all.credential(name).is_none() {
            return Err(Message::does_not_exist("drop", "credential", name).into());
        }
        let has = |login: &Login| login.credentials.iter().any(|one| is_same(one, name));
        if all.logins.iter().any(has) {
            return Err(Message::of(table::CREDENTIAL_IN_USE, [&name]).into());
        }
        let event = Event::new(Action::Dropped, "credential").of(name);
        Ok(keyring.change_providers(event, |all| {
            all.credentials.retain(|one| !is_same(&one.name, name));
            Ok(())
        })?)
    }

    fn create_asymmetric_key(
        &mut self,
        name: &str,
        provider: &str,
        options: &[AsymmetricKeyOption],
    ) -> Done {
        if self.databases.current_id() != MASTER {
            return Err(Message::unsupported("an asymmetric key outside of master").into());
        }
        let keyring = self.keyring_for_certificates()?;
        let all = keyring.providers()?;
        let Some(provider) = all.provider(provider) else {
            return Err(Message::does_not_exist("find", PROVIDER, provider).into());
        };
        if !provider.is_enabled {
            return Err(Message::known(&known::PROVIDER_DISABLED, &[&provider.name]).into());
        }
        // Before a key is made in the provider that nobody would know of.
        match keyring.check_new_key(name) {
            Ok(()) => {}
            Err(error) if error.number() == Some(15232) => {
                return Err(Message::of(table::ASYMMETRIC_KEY_EXISTS, [&name]).into())
            }
            Err(error) => return Err(error.into()),
        }
        let user = self.shared.user().to_owned();
        let persons = [user.as_str(), ADMINISTRATOR].into_iter().filter_map(|name| all.login(name));
        let mut own = persons.filter_map(|login| all.credential_of(login, &provider.name));
        let Some(credential) = own.next() else {
            return Err(Message::of(table::NO_CREDENTIAL, [&user, &provider.name]).into());
        };
        let wanted = Wanted::of(options)?;
        let place = place_of(provider, credential, wanted.key_name)?;
        let plugin = Plugin::find(&provider.plugin).map(|found| match credential.secret.as_str() {
            "" => found,
            pin => found.with_pin(pin),
        });
        let public_key = match wanted.bits {
            Some(bits) => plugin
                .and_then(|plugin| plugin.create(place.key(), bits))
                .map_err(|error| failed(error, table::KEY_NOT_CREATED, wanted.key_name))?,
            None => plugin
                .and_then(|plugin| plugin.public(place.key()))
                .map_err(|error| failed(error, table::KEY_NOT_IN_PROVIDER, wanted.key_name))?,
        };
        let pin = Some(credential.secret.as_str()).filter(|pin| !pin.is_empty());
        keyring
            .add_provider_key(name, &public_key, place, pin)
            .map_err(|error| failed(error, table::KEY_NOT_IN_PROVIDER, wanted.key_name))?;
        // Who is interrupted here has a key without a provider's word: it is dropped and made again, OPEN_EXISTING.
        let owned = OwnedKey::new(name, &public_key, &provider.name);
        let event = Event::new(Action::Created, "asymmetric key").of(name);
        Ok(keyring.change_providers(event, |all| {
            all.keys.retain(|one| !is_same(&one.name, name));
            all.keys.push(owned);
            Ok(())
        })?)
    }

    fn drop_asymmetric_key(&mut self, name: &str, remove: bool) -> Done {
        let keyring = self.master_keyring()?;
        let name = self.asymmetric_key_of(&keyring, "drop", name)?;
        let stored = keyring.stored_certificate(&name)?;
        if self.is_in_use(&keyring, &stored)? {
            let message = Message::known(&known::CERTIFICATE_IN_USE, &["asymmetric key"]);
            return Err(message.into());
        }
        if keyring.providers()?.login_of_key(&name).is_some() {
            return Err(Message::of(table::KEY_HAS_LOGIN, [&name]).into());
        }
        keyring.drop_certificate(&name)?;
        if remove {
            // What may be the only key of something is its provider's to remove.
            let thumbprint = pellucid::hash::hex(stored.public().thumbprint());
            self.inform(Message::of(table::KEY_NOT_DROPPED, [&thumbprint]));
        }
        Ok(())
    }

    fn create_login(&mut self, name: &str, key: &str) -> Done {
        let keyring = self.master_keyring()?;
        let key = self.asymmetric_key_of(&keyring, "find", key)?;
        let all = keyring.providers()?;
        if all.login(name).is_some() || self.is_person(name) {
            return Err(Message::of(table::LOGIN_EXISTS, [&name]).into());
        }
        if let Some(other) = all.login_of_key(&key) {
            return Err(Message::of(table::LOGIN_EXISTS, [&other.name]).into());
        }
        let made = Login { name: name.to_owned(), key, credentials: Vec::new() };
        let event = Event::new(Action::Created, "login").of(name);
        Ok(keyring.change_providers(event, |all| {
            all.logins.push(made);
            Ok(())
        })?)
    }

    fn change_login(&mut self, login: &str, add: bool, credential: &str) -> Done {
        let keyring = self.master_keyring()?;
        let all = keyring.providers()?;
        let present = all.login(login);
        if present.is_none() && !self.is_person(login) {
            return Err(Message::does_not_exist("alter", "login", login).into());
        }
        let Some(credential) = all.credential(credential) else {
            return Err(Message::does_not_exist("find", "credential", credential).into());
        };
        let is_it = |name: &String| is_same(name, &credential.name);
        let has = present.is_some_and(|login| login.credentials.iter().any(is_it));
        match add {
            true if present
                .is_some_and(|login| all.credential_of(login, &credential.provider).is_some()) =>
            {
                return Err(Message::of(table::HAS_CREDENTIAL, [&credential.name]).into());
            }
            false if !has => return Err(Message::of(table::CREDENTIAL_NOT_MAPPED, []).into()),
            _ => {}
        }
        let event = Event::new(Action::Changed, "login").of(login);
        Ok(keyring.change_providers(event, |all| {
            if all.login(login).is_none() {
                let (name, key, credentials) = (login.to_owned(), String::new(), Vec::new());
                all.logins.push(Login { name, key, credentials });
            }
            for one in all.logins.iter_mut().filter(|one| is_same(&one.name, login)) {
                one.credentials.retain(|name| !is_it(name));
                if add {
                    one.credentials.push(credential.name.clone());
                }
            }
            Ok(())
        })?)
    }

    fn drop_login(&mut self, name: &str) -> Done {
        let keyring = self.master_keyring()?;
        if keyring.providers()?.login(name).is_none() {
            return Err(Message::does_not_exist("drop", "login", name).into());
        }
        let event = Event::new(Action::Dropped, "login").of(name);
        Ok(keyring.change_providers(event, |all| {
            all.logins.retain(|one| !is_same(&one.name, name));
            Ok(())
        })?)
    }

    /// Whether that is whoever runs the statements.
    fn is_person(&self, login: &str) -> bool {
        [self.shared.user(), ADMINISTRATOR].into_iter().any(|own| is_same(own, login))
    }
}

/// What CREATE ASYMMETRIC KEY asks for.
struct Wanted<'a> {
    key_name: &'a str,
    /// Of a new key; none for one that is there.
    bits: Option<u32>,
}

impl<'a> Wanted<'a> {
    fn of(options: &'a [AsymmetricKeyOption]) -> Done<Self> {
        let (mut key_name, mut algorithm, mut is_existing) = (None, None, false);
        for option in options {
            match option {
                AsymmetricKeyOption::ProviderKeyName(name) => key_name = Some(name.text.as_str()),
                AsymmetricKeyOption::Algorithm(one) => algorithm = Some(*one),
                AsymmetricKeyOption::OpenExisting(existing) => is_existing = *existing,
            }
        }
        let key_name = key_name.ok_or_else(|| {
            Message::unsupported("CREATE ASYMMETRIC KEY without PROVIDER_KEY_NAME")
        })?;
        let bits = match (is_existing, algorithm) {
            (true, Some(_)) => return Err(Message::of(table::ALGORITHM_OF_EXISTING, []).into()),
            (true, None) => None,
            (false, None) => {
                return Err(Message::unsupported("a new asymmetric key without ALGORITHM").into())
            }
            (false, Some(RsaAlgorithm::Rsa2048)) => Some(2048),
            (false, Some(RsaAlgorithm::Rsa3072)) => Some(3072),
            (false, Some(RsaAlgorithm::Rsa4096)) => Some(4096),
            (false, Some(weak @ (RsaAlgorithm::Rsa512 | RsaAlgorithm::Rsa1024))) => {
                let meaning = "Not Supported - RSA_2048, RSA_3072 and RSA_4096 are";
                return Err(Message::of(table::ALGORITHM_INVALID, [&weak, &3, &meaning]).into());
            }
        };
        Ok(Self { key_name, bits })
    }
}

fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

fn revealed(secret: Option<&Secret>) -> Zeroizing<String> {
    Zeroizing::new(secret.map_or(String::new(), |secret| secret.reveal().to_owned()))
}

/// The plugin that a provider's file is, or that loads it. It answers, and nobody but root could have put the file there.
fn plugin_of(file: &str) -> Done<String> {
    let path = Path::new(file);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let found = match name.strip_prefix("pellucid-plugin-") {
        Some(plugin) => Plugin::find(plugin).and_then(|found| match found.file() == path {
            true => Ok(found),
            false => {
                Err(not_loaded(format!("the plugin of that name is `{}`", found.file().display())))
            }
        }),
        None if name.contains(".so") => {
            pellucid_files::trusted::open_of_root(path).and_then(|_| Plugin::find(PKCS11))
        }
        None => Err(not_loaded(
            "it is no plugin (`pellucid-plugin-NAME`), and no PKCS#11 module".into(),
        )),
    };
    let plugin = found.map_err(|error| {
        let cause = Message::from(error);
        super::Raised::of(vec![cause, Message::of(table::LIBRARY_NOT_LOADED, [&file])])
    })?;
    plugin.describe().map_err(|error| {
        failed_as(error, |code, meaning| {
            Message::of(table::PROVIDER_NOT_INITIALIZED, [&code, &meaning])
        })
    })?;
    Ok(plugin.name().to_owned())
}

fn not_loaded(cause: String) -> Error {
    Error::misuse(pellucid::Subject::Key("cryptographic provider"), cause)
}

/// How the provider's plugin calls the key. A PKCS#11 token has its keys by their label, in the token that the credential's identity
/// names.
fn place_of(provider: &Provider, credential: &Credential, key_name: &str) -> Done<KeyPlace> {
    if provider.plugin != PKCS11 || key_name.starts_with("pkcs11:") {
        return Ok(KeyPlace::new(&provider.plugin, key_name)?);
    }
    let mut uri = String::from("pkcs11:");
    if !credential.identity.is_empty() {
        uri += &format!("token={};", quoted(&credential.identity));
    }
    uri += &format!("object={}", quoted(key_name));
    let is_module = !provider.file.ends_with(format!("pellucid-plugin-{PKCS11}"));
    if is_module {
        uri += &format!("?module-path={}", quoted(&provider.file.to_string_lossy()));
    }
    Ok(KeyPlace::new(PKCS11, &uri)?)
}

/// As a URI has it (RFC 3986, 2.1).
fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    text.bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

/// What a plugin says, then SQL Server's message with the code of a provider (its "SQL Server Connector", appendix).
fn failed(error: Error, row: table::Row<3>, key: &str) -> super::Raised {
    failed_as(error, |code, meaning| Message::of(row, [&key, &code, &meaning]))
}

fn failed_as(error: Error, message: impl FnOnce(u32, &str) -> Message) -> super::Raised {
    let (code, meaning) = match error {
        Error::MissingKey { .. } => (4, "Not Found - Consult EKM Provider for details"),
        Error::Unauthentic { .. } => {
            (5, "Authentication Failure - Consult EKM Provider for details")
        }
        Error::Misuse { .. } => (6, "Invalid Argument - Consult EKM Provider for details"),
        _ => (1, "Failure - Consult EKM Provider for details"),
    };
    super::Raised::of(vec![Message::from(error), message(code, meaning)])
}
