//! What is done with a key of the token.
//!
//! A wrapped secret begins with a byte that says how: 1, AES-GCM (an IV of 12 bytes, the ciphertext, a tag of 16 bytes; AAD is
//! the context); 3, RSA-OAEP with SHA-256 (the label is the context), which anybody with the public half can make.

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::{
    OaepPublicEncryptingKey, PublicEncryptingKey, PublicKeyComponents, OAEP_SHA256_MGF1SHA256,
};
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::aead::GcmParams;
use cryptoki::mechanism::rsa::{PkcsMgfType, PkcsOaepParams, PkcsOaepSource, PkcsPssParams};
use cryptoki::mechanism::{Mechanism, MechanismType};
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};
use pellucid::secret::fill_random;
use pellucid_plugin::{Refusal, Secret};
use zeroize::Zeroizing;

use crate::oaep;
use crate::token::{refused, Token};
use crate::uri::Kind;

const BY_AES_GCM: u8 = 1;
const BY_RSA_OAEP: u8 = 3;
const IV_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
const SALT_BYTES: u8 = 32;
/// RSA 2048, 3072 and 4096; SQL Server's names for them.
const BITS: [u32; 3] = [2048, 3072, 4096];
/// Modulus and public exponent.
type Parts = (Vec<u8>, Vec<u8>);
/// 65537.
const EXPONENT: [u8; 3] = [1, 0, 1];

impl Token {
    /// Wraps by the secret key that the URI names, or by the pair if there is none.
    pub fn wrap(&self, secret: &[u8], context: &[u8]) -> Result<Vec<u8>, Refusal> {
        let Some(key) = self.secret_key()? else { return self.wrap_by_pair(secret, context) };
        let mut iv = [0; IV_BYTES];
        fill_random(&mut iv)?;
        let mut wrapped = vec![BY_AES_GCM];
        let sealed = {
            let parameters = gcm(&mut iv, context)?;
            self.session
                .encrypt(&Mechanism::AesGcm(parameters), key, secret)
                .map_err(|error| refused("the token does not wrap by AES-GCM", &error))?
        };
        // After the call: a token may have put its own there.
        wrapped.extend_from_slice(&iv);
        wrapped.extend_from_slice(&sealed);
        match sealed.len() == secret.len() + TAG_BYTES {
            true => Ok(wrapped),
            false => Err(Refusal::trouble("what the token made is no AES-GCM of 16 bytes of tag")),
        }
    }

    fn wrap_by_pair(&self, secret: &[u8], context: &[u8]) -> Result<Vec<u8>, Refusal> {
        let public = OaepPublicEncryptingKey::new(self.public_key(self.private_key()?)?)
            .map_err(|_| Refusal::trouble("the public half of the token's key is none"))?;
        let mut sealed = vec![0; public.ciphertext_size()];
        let sealed = public
            .encrypt(&OAEP_SHA256_MGF1SHA256, secret, &mut sealed, Some(context))
            .map_err(|_| Refusal::misuse("the token's key is too short for the secret"))?;
        Ok([&[BY_RSA_OAEP], &*sealed].concat())
    }

    /// Unwraps what [`Token::wrap`] made.
    pub fn unwrap(&self, wrapped: &[u8], context: &[u8]) -> Result<Secret, Refusal> {
        let unauthentic = || Refusal::unauthentic("the token's key does not open it");
        match wrapped.split_first() {
            Some((&BY_AES_GCM, rest)) if rest.len() > IV_BYTES + TAG_BYTES => {
                let key = self.secret_key()?.ok_or_else(|| none("secret key"))?;
                let (iv, sealed) = rest.split_at(IV_BYTES);
                let mut iv = iv.to_vec();
                let mechanism = Mechanism::AesGcm(gcm(&mut iv, context)?);
                match self.session.decrypt(&mechanism, key, sealed) {
                    Ok(secret) => Ok(Zeroizing::new(secret)),
                    Err(error) if is_of_the_data(&error) => Err(unauthentic()),
                    Err(error) => Err(refused("the token does not unwrap by AES-GCM", &error)),
                }
            }
            Some((&BY_RSA_OAEP, sealed)) => self.decrypt(context, sealed),
            _ => Err(Refusal::unauthentic("these are no bytes that this plugin has wrapped")),
        }
    }

    /// The public half, as a SubjectPublicKeyInfo.
    pub fn public(&self) -> Result<Vec<u8>, Refusal> {
        spki(&self.public_key(self.private_key()?)?)
    }

    /// Decrypts RSA-OAEP with SHA-256: in the token, and where that cannot, by the bare operation in the token and unpadding
    /// here.
    pub fn decrypt(&self, label: &[u8], ciphertext: &[u8]) -> Result<Secret, Refusal> {
        let unauthentic = || Refusal::unauthentic("the token's key does not open it");
        let key = self.private_key()?;
        let bytes = self.public_key(key)?.key_size_bytes();
        if ciphertext.len() != bytes {
            return Err(unauthentic());
        }
        let source = match label.is_empty() {
            true => PkcsOaepSource::empty(),
            false => PkcsOaepSource::data_specified(label),
        };
        let parameters =
            PkcsOaepParams::new(MechanismType::SHA256, PkcsMgfType::MGF1_SHA256, source);
        match self.session.decrypt(&Mechanism::RsaPkcsOaep(parameters), key, ciphertext) {
            Ok(found) => return Ok(Zeroizing::new(found)),
            Err(error) if is_of_the_mechanism(&error) => {}
            Err(error) if is_of_the_data(&error) => return Err(unauthentic()),
            Err(error) => return Err(refused("the token does not decrypt", &error)),
        }
        let bare = match self.session.decrypt(&Mechanism::RsaX509, key, ciphertext) {
            Ok(bare) => Zeroizing::new(bare),
            Err(error) if is_of_the_mechanism(&error) => {
                return Err(Refusal::misuse(
                    "the token does neither RSA-OAEP with SHA-256 nor the bare RSA operation",
                ))
            }
            Err(error) if is_of_the_data(&error) => return Err(unauthentic()),
            Err(error) => return Err(refused("the token does not decrypt", &error)),
        };
        // Some leave out the zeros at its beginning.
        let mut encoded = Zeroizing::new(vec![0; bytes]);
        let at = bytes.checked_sub(bare.len()).ok_or_else(unauthentic)?;
        encoded[at..].copy_from_slice(&bare);
        oaep::unpad(&encoded, label).ok_or_else(unauthentic)
    }

    /// Signs by RSA-PSS with SHA-256.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Refusal> {
        let key = self.private_key()?;
        let parameters = PkcsPssParams {
            hash_alg: MechanismType::SHA256,
            mgf: PkcsMgfType::MGF1_SHA256,
            s_len: u64::from(SALT_BYTES).into(),
        };
        match self.session.sign(&Mechanism::Sha256RsaPkcsPss(parameters), key, message) {
            Err(error) if is_of_the_mechanism(&error) => {}
            done => return done.map_err(|error| refused("the token does not sign", &error)),
        }
        let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, message);
        self.session
            .sign(&Mechanism::RsaPkcsPss(parameters), key, hash.as_ref())
            .map_err(|error| refused("the token does not sign by RSA-PSS", &error))
    }

    /// Makes an RSA pair whose private half never leaves the token.
    pub fn create(&self, bits: u32) -> Result<Vec<u8>, Refusal> {
        if !BITS.contains(&bits) {
            return Err(Refusal::misuse("a key of a token has 2048, 3072 or 4096 bits"));
        }
        let Some(label) = self.uri.object.clone() else {
            return Err(Refusal::misuse("a new key needs a name: `object=` in the key"));
        };
        for class in [ObjectClass::PRIVATE_KEY, ObjectClass::PUBLIC_KEY, ObjectClass::SECRET_KEY] {
            let template = [Attribute::Class(class), Attribute::Label(label.clone().into_bytes())];
            if !self.find(&template)?.is_empty() {
                return Err(Refusal::misuse(format!("the token has a key `{label}` already")));
            }
        }
        let mut random = [0; 16];
        fill_random(&mut random)?;
        let id = self.uri.id.clone().unwrap_or_else(|| random.to_vec());
        let name = Attribute::Label(label.into_bytes());
        let public = [
            Attribute::Token(true),
            Attribute::Private(false),
            Attribute::ModulusBits(u64::from(bits).into()),
            Attribute::PublicExponent(EXPONENT.to_vec()),
            Attribute::Encrypt(true),
            Attribute::Verify(true),
            name.clone(),
            Attribute::Id(id.clone()),
        ];
        let private = [
            Attribute::Token(true),
            Attribute::Private(true),
            Attribute::Sensitive(true),
            Attribute::Extractable(false),
            Attribute::Decrypt(true),
            Attribute::Sign(true),
            name,
            Attribute::Id(id),
        ];
        let (_, made) = self
            .session
            .generate_key_pair(&Mechanism::RsaPkcsKeyPairGen, &public, &private)
            .map_err(|error| refused("the token makes no key", &error))?;
        spki(&self.public_key(made)?)
    }

    fn find(&self, template: &[Attribute]) -> Result<Vec<ObjectHandle>, Refusal> {
        self.session
            .find_objects(template)
            .map_err(|error| refused("the token does not list its keys", &error))
    }

    fn named(&self, class: ObjectClass, kind: KeyType) -> Vec<Attribute> {
        let mut template = vec![Attribute::Class(class), Attribute::KeyType(kind)];
        template.extend(self.uri.object.clone().map(|label| Attribute::Label(label.into_bytes())));
        template.extend(self.uri.id.clone().map(Attribute::Id));
        template
    }

    /// The one key of the class; none if there is none.
    fn one(&self, class: ObjectClass, kind: KeyType) -> Result<Option<ObjectHandle>, Refusal> {
        if self.uri.object.is_none() && self.uri.id.is_none() {
            return Err(Refusal::misuse("the key names no object: `object=` or `id=` does"));
        }
        let found = self.find(&self.named(class, kind))?;
        match found[..] {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            _ => Err(Refusal::misuse(format!(
                "the token has {} keys that fit; `id=` says which, or `object=` if they have no id of their own",
                found.len()
            ))),
        }
    }

    /// The AES key that the URI names; none if it names a pair.
    fn secret_key(&self) -> Result<Option<ObjectHandle>, Refusal> {
        match self.uri.kind {
            Some(Kind::Private) => Ok(None),
            Some(Kind::Secret) => self
                .one(ObjectClass::SECRET_KEY, KeyType::AES)?
                .map(Some)
                .ok_or_else(|| none("AES key")),
            None => self.one(ObjectClass::SECRET_KEY, KeyType::AES),
        }
    }

    fn private_key(&self) -> Result<ObjectHandle, Refusal> {
        match self.uri.kind {
            Some(Kind::Secret) => {
                Err(Refusal::misuse("a secret key cannot do this: `type=private`"))
            }
            _ => self
                .one(ObjectClass::PRIVATE_KEY, KeyType::RSA)?
                .ok_or_else(|| none("private RSA key")),
        }
    }

    /// The public half, from the private key, or from the public one beside it.
    fn public_key(&self, key: ObjectHandle) -> Result<PublicEncryptingKey, Refusal> {
        let mut parts = self.modulus(key)?;
        if parts.is_none() {
            if let Some(public) = self.one(ObjectClass::PUBLIC_KEY, KeyType::RSA)? {
                parts = self.modulus(public)?;
            }
        }
        let (n, e) = parts.ok_or_else(|| none("public half of the key"))?;
        PublicKeyComponents { n, e }
            .try_into()
            .map_err(|_| Refusal::trouble("the public half of the token's key is none"))
    }

    fn modulus(&self, key: ObjectHandle) -> Result<Option<Parts>, Refusal> {
        let found = self
            .session
            .get_attributes(key, &[AttributeType::Modulus, AttributeType::PublicExponent])
            .map_err(|error| refused("the token does not show the public half", &error))?;
        let without_zeros = |bytes: &Vec<u8>| {
            bytes.iter().copied().skip_while(|byte| *byte == 0).collect::<Vec<u8>>()
        };
        let (mut n, mut e) = (None, None);
        for attribute in &found {
            match attribute {
                Attribute::Modulus(bytes) => n = Some(without_zeros(bytes)),
                Attribute::PublicExponent(bytes) => e = Some(without_zeros(bytes)),
                _ => {}
            }
        }
        Ok(n.zip(e).filter(|(n, e)| !n.is_empty() && !e.is_empty()))
    }
}

fn gcm<'a>(iv: &'a mut [u8], context: &'a [u8]) -> Result<GcmParams<'a>, Refusal> {
    GcmParams::new(iv, context, (TAG_BYTES as u64 * 8).into())
        .map_err(|error| refused("AES-GCM", &error))
}

fn spki(key: &PublicEncryptingKey) -> Result<Vec<u8>, Refusal> {
    let der =
        key.as_der().map_err(|_| Refusal::trouble("the public half of the token's key is none"))?;
    Ok(der.as_ref().to_vec())
}

fn none(what: &str) -> Refusal {
    Refusal::missing_key(format!("the token has no {what} of this name"))
}

/// What a token says of bytes that do not open.
fn is_of_the_data(error: &Error) -> bool {
    matches!(
        error,
        Error::Pkcs11(
            RvError::EncryptedDataInvalid
                | RvError::EncryptedDataLenRange
                | RvError::DataInvalid
                | RvError::DataLenRange
                | RvError::SignatureInvalid
                | RvError::GeneralError
                | RvError::FunctionFailed,
            _
        )
    )
}

/// What it says of a mechanism, or of parameters, that it does not have.
fn is_of_the_mechanism(error: &Error) -> bool {
    matches!(
        error,
        Error::Pkcs11(
            RvError::MechanismInvalid
                | RvError::MechanismParamInvalid
                | RvError::ArgumentsBad
                | RvError::FunctionNotSupported,
            _
        )
    )
}
