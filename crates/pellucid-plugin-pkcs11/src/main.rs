//! `pellucid-plugin-pkcs11`: keys in a PKCS#11 token, by PKCS#11 URIs (RFC 7512).
//!
//! Settings and examples: docs/guide/tokens.md. The module of the token's vendor is loaded into this process alone, which runs
//! for one question; the PIN is tried once.
#![forbid(unsafe_code)]

mod keys;
mod oaep;
mod token;
mod uri;

use std::process::ExitCode;

use pellucid_plugin::{Operation, Refusal, Reply, Request, Secret, Settings};

use token::{Token, SETTINGS};
use uri::Uri;

fn main() -> ExitCode {
    let done = pellucid_plugin::serve(answer);
    // The module is finalized. Without the functions that libraries have asked to be called now: OpenSSL's alone take 0.5 ms, for which
    // whoever asks would wait.
    if done == ExitCode::SUCCESS {
        signal_hook::low_level::exit(0);
    }
    done
}

fn answer(request: Request, pin: Option<Secret>) -> Result<Reply, Refusal> {
    let open = |key: &str, to_write: bool| {
        let settings = Settings::read("pkcs11")?;
        if let Some(unknown) = settings.unknown(SETTINGS) {
            let path = settings.path().display();
            return Err(Refusal::misuse(format!("`{path}` has the unknown setting `{unknown}`")));
        }
        Token::open(&settings, Uri::parse(key)?, pin.as_ref(), to_write)
    };
    match request {
        Request::Describe => Ok(Reply::Description {
            name: "PKCS#11 token".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            can: vec![
                Operation::Wrap,
                Operation::Unwrap,
                Operation::Public,
                Operation::Decrypt,
                Operation::Sign,
                Operation::Create,
            ],
        }),
        Request::Wrap { key, secret, context } => {
            Ok(Reply::Wrapped(open(&key, false)?.wrap(&secret, &context)?))
        }
        Request::Unwrap { key, wrapped, context } => {
            Ok(Reply::Secret(open(&key, false)?.unwrap(&wrapped, &context)?))
        }
        Request::Public { key } => Ok(Reply::Spki(open(&key, false)?.public()?)),
        Request::Decrypt { key, label, ciphertext } => {
            Ok(Reply::Plaintext(open(&key, false)?.decrypt(&label, &ciphertext)?))
        }
        Request::Sign { key, message } => Ok(Reply::Signature(open(&key, false)?.sign(&message)?)),
        Request::Create { key, bits } => Ok(Reply::Spki(open(&key, true)?.create(bits)?)),
    }
}
