//! A PKCS#11 URI (RFC 7512): which token and object. A PIN never is in it.

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use pellucid_plugin::Refusal;

const SCHEME: &str = "pkcs11:";

/// What a URI names; what it does not name may be anything.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Uri {
    /// The token's label.
    pub token: Option<String>,
    /// The token's manufacturer.
    pub manufacturer: Option<String>,
    /// The token's model.
    pub model: Option<String>,
    /// The token's serial number.
    pub serial: Option<String>,
    /// The slot's number.
    pub slot: Option<u64>,
    /// The object's label.
    pub object: Option<String>,
    /// The object's id.
    pub id: Option<Vec<u8>>,
    /// The object's class.
    pub kind: Option<Kind>,
    /// The file with the PIN.
    pub pin_source: Option<PathBuf>,
    /// The module's file.
    pub module_path: Option<PathBuf>,
    /// The module's name, without `lib` and `.so`.
    pub module_name: Option<String>,
}

/// The class of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A private key; `public` means the same pair.
    Private,
    /// A secret key.
    Secret,
}

impl Uri {
    /// Parses one.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let Some(rest) = text.strip_prefix(SCHEME) else {
            return Err(Refusal::misuse(
                "a key of a token is a PKCS#11 URI: `pkcs11:token=..;object=..`",
            ));
        };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut uri = Self::default();
        let attributes = path.split(';').chain(query.split('&')).filter(|one| !one.is_empty());
        let mut seen: Vec<&str> = Vec::new();
        for attribute in attributes {
            let (name, value) = attribute
                .split_once('=')
                .ok_or_else(|| Refusal::misuse("the URI has an attribute without `=`"))?;
            if seen.contains(&name) {
                return Err(Refusal::misuse(format!("the URI has `{name}` twice")));
            }
            seen.push(name);
            uri.set(name, bytes(name, value)?)?;
        }
        Ok(uri)
    }

    fn set(&mut self, name: &str, value: Vec<u8>) -> Result<(), Refusal> {
        let invalid = || Refusal::misuse(format!("the URI's `{name}` is not as RFC 7512 has it"));
        let path = |value: Vec<u8>| {
            let value = value.strip_prefix(b"file:").unwrap_or(&value);
            let value = value.strip_prefix(b"//").unwrap_or(value);
            let path = PathBuf::from(std::ffi::OsString::from_vec(value.to_vec()));
            path.is_absolute().then_some(path).ok_or_else(invalid)
        };
        let text = |value: Vec<u8>| String::from_utf8(value).map_err(|_| invalid());
        match name {
            "token" => self.token = Some(text(value)?),
            "manufacturer" => self.manufacturer = Some(text(value)?),
            "model" => self.model = Some(text(value)?),
            "serial" => self.serial = Some(text(value)?),
            "slot-id" => self.slot = Some(text(value)?.parse().map_err(|_| invalid())?),
            "object" => self.object = Some(text(value)?),
            "id" => self.id = Some(value),
            "type" => {
                self.kind = Some(match &value[..] {
                    b"private" | b"public" => Kind::Private,
                    b"secret-key" => Kind::Secret,
                    _ => return Err(Refusal::misuse("the URI's `type` is no key")),
                });
            }
            "pin-source" => self.pin_source = Some(path(value)?),
            "module-path" => self.module_path = Some(path(value)?),
            "module-name" => self.module_name = Some(text(value)?),
            // What the library or the slot is called narrows nothing that the above do not.
            "library-manufacturer"
            | "library-description"
            | "library-version"
            | "slot-manufacturer"
            | "slot-description" => {}
            _ => {
                return Err(Refusal::misuse(format!("the URI has the unknown attribute `{name}`")))
            }
        }
        Ok(())
    }
}

/// A value without its percent signs.
fn bytes(name: &str, value: &str) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).filter(|two| two.iter().all(u8::is_ascii_hexdigit));
        let byte = digits.and_then(|two| std::str::from_utf8(two).ok());
        let byte = byte.and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(byte.ok_or_else(|| {
            Refusal::misuse(format!("the URI's `{name}` has a `%` without two digits"))
        })?);
        rest = &rest[2..];
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn attributes_are_read_and_others_refused() {
        let uri = Uri::parse(
            "pkcs11:token=My%20token;object=smk;id=%01%fF;type=secret-key;serial=7;slot-id=3?\
             pin-source=file:/etc/pin&module-name=softhsm2",
        )
        .unwrap();
        assert_eq!(uri.token.as_deref(), Some("My token"));
        assert_eq!(uri.id, Some(vec![1, 255]));
        assert_eq!((uri.slot, uri.kind), (Some(3), Some(Kind::Secret)));
        assert_eq!(uri.pin_source, Some("/etc/pin".into()));
        assert_eq!(Uri::parse("pkcs11:").unwrap(), Uri::default());
        let triple = Uri::parse("pkcs11:?pin-source=file:///etc/pin").unwrap();
        assert_eq!(triple.pin_source, Some("/etc/pin".into()));
        for text in [
            "token=x",
            "pkcs11:token",
            "pkcs11:token=%4",
            "pkcs11:token=%zz",
            "pkcs11:type=cert",
            "pkcs11:token=a;token=b",
            "pkcs11:what=x",
            "pkcs11:?pin-value=1234",
            "pkcs11:?pin-source=|cat",
            "pkcs11:?pin-source=etc/pin",
            "pkcs11:token=%ff",
            "pkcs11:slot-id=x",
            "pkcs11:?module-path=evil.so",
        ] {
            assert!(Uri::parse(text).is_err(), "{text}");
        }
    }
}
