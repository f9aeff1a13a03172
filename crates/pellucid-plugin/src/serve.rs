//! The other side: a plugin that is written in Rust.

use std::io::{Read, Write};
use std::process::ExitCode;

use pellucid::error::Error;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::wire::{decoded, encoded, Operation, ANSWER_BYTES_MOST, QUESTION_BYTES_MOST, VERSION};
use crate::{check_key, Secret, BYTES_MOST, SECRET_BYTES_MOST};

/// What a plugin is asked.
#[derive(Debug)]
pub enum Request {
    /// What it is.
    Describe,
    /// To wrap `secret` under the key, bound to `context`.
    Wrap { key: String, secret: Secret, context: Vec<u8> },
    /// To unwrap it.
    Unwrap { key: String, wrapped: Vec<u8>, context: Vec<u8> },
    /// For the public half, DER.
    Public { key: String },
    /// To decrypt RSA-OAEP with SHA-256.
    Decrypt { key: String, label: Vec<u8>, ciphertext: Vec<u8> },
    /// To sign by RSA-PSS with SHA-256.
    Sign { key: String, message: Vec<u8> },
    /// To make a key.
    Create { key: String, bits: u32 },
}

/// What it answers.
#[derive(Debug)]
pub enum Reply {
    /// What it is, and can do.
    Description { name: String, version: String, can: Vec<Operation> },
    /// A wrapped secret.
    Wrapped(Vec<u8>),
    /// A secret.
    Secret(Secret),
    /// A public key, DER.
    Spki(Vec<u8>),
    /// A plaintext.
    Plaintext(Secret),
    /// A signature.
    Signature(Vec<u8>),
}

/// Why it does not: the kind says who must act.
#[derive(Debug)]
pub struct Refusal {
    kind: &'static str,
    text: String,
}

impl Refusal {
    /// Somebody has to act first: a PIN, a token that is out, a key that is not there.
    pub fn missing_key(text: impl Into<String>) -> Self {
        Self { kind: "missing-key", text: text.into() }
    }

    /// It cannot do what is asked, or was set up wrongly.
    pub fn misuse(text: impl Into<String>) -> Self {
        Self { kind: "misuse", text: text.into() }
    }

    /// What it got does not open. Never says why.
    pub fn unauthentic(text: impl Into<String>) -> Self {
        Self { kind: "unauthentic", text: text.into() }
    }

    /// Anything else: the device, the network.
    pub fn trouble(text: impl Into<String>) -> Self {
        Self { kind: "trouble", text: text.into() }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Io { .. } => Self::trouble(text),
            Error::MissingKey { .. } => Self::missing_key(text),
            Error::Unauthentic { .. } | Error::Corrupt { .. } => Self::unauthentic(text),
            _ => Self::misuse(text),
        }
    }
}

#[derive(Deserialize)]
struct Asked<'a> {
    v: u8,
    id: &'a str,
    op: Operation,
    #[serde(default)]
    key: String,
    pin: Option<&'a str>,
    mechanism: Option<&'a str>,
    bits: Option<u32>,
    secret: Option<&'a str>,
    context: Option<&'a str>,
    wrapped: Option<&'a str>,
    label: Option<&'a str>,
    ciphertext: Option<&'a str>,
    message: Option<&'a str>,
}

#[derive(Default, Serialize)]
struct Answer<'a> {
    v: u8,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Told>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    can: Option<Vec<Operation>>,
    #[serde(flatten)]
    bytes: Option<Bytes>,
}

#[derive(Serialize)]
struct Told {
    kind: &'static str,
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Bytes {
    Wrapped(SecretText),
    Secret(SecretText),
    Spki(SecretText),
    Plaintext(SecretText),
    Signature(SecretText),
}

struct SecretText(Zeroizing<String>);

impl Serialize for SecretText {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}

/// Reads a question from standard input, has it answered, and writes the answer to standard output: what `main` of a plugin
/// returns. This process writes no core and cannot be looked into by others of its account. `answer` gets the question, and the PIN if
/// there is one.
pub fn serve(answer: impl FnOnce(Request, Option<Secret>) -> Result<Reply, Refusal>) -> ExitCode {
    // What a kernel does not have is no reason to answer nothing.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let _ = std::env::set_current_dir("/");
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
    let Some(question) = read_line() else { return failed("no question on standard input") };
    let asked =
        std::str::from_utf8(&question).ok().and_then(|text| serde_json::from_str(text).ok());
    let Some(asked): Option<Asked<'_>> = asked else {
        return failed("no question of the protocol");
    };
    if asked.v != VERSION {
        return failed("the question is of another version of the protocol");
    }
    let id = asked.id;
    let pin = asked.pin.map(|text| {
        let pin = decoded(text, SECRET_BYTES_MOST, false);
        pin.ok_or_else(|| Refusal::misuse("`pin` is not as the protocol has it"))
    });
    let reply = pin.transpose().and_then(|pin| answer(request(asked)?, pin));
    let Some(line) = line(&written(id, reply), ANSWER_BYTES_MOST) else {
        return failed("the answer is too long");
    };
    let mut out = std::io::stdout().lock();
    match out.write_all(&line).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// One line of JSON in a buffer that does not move; none if it is longer.
fn line(value: &impl Serialize, most: usize) -> Option<Secret> {
    let mut buffer = Zeroizing::new(vec![0; most]);
    let mut cursor = std::io::Cursor::new(&mut buffer[..most - 1]);
    serde_json::to_writer(&mut cursor, value).ok()?;
    let length = cursor.position() as usize;
    buffer[length] = b'\n';
    buffer.truncate(length + 1);
    Some(buffer)
}

fn failed(told: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{told}");
    ExitCode::FAILURE
}

fn read_line() -> Option<Secret> {
    let mut bytes = Zeroizing::new(vec![0; QUESTION_BYTES_MOST]);
    let mut input = std::io::stdin().lock();
    let mut length = 0;
    loop {
        match input.read(&mut bytes[length..]).ok()? {
            0 => break,
            more => length += more,
        }
        if bytes[..length].contains(&b'\n') {
            break;
        }
    }
    let end = bytes[..length].iter().position(|byte| *byte == b'\n')?;
    bytes.truncate(end);
    Some(bytes)
}

fn request(asked: Asked<'_>) -> Result<Request, Refusal> {
    let bytes = |name: &str, text: Option<&str>, most: usize, may_be_empty: bool| {
        text.and_then(|text| decoded(text, most, may_be_empty)).ok_or_else(|| {
            Refusal::misuse(format!("`{name}` is missing, or not as the protocol has it"))
        })
    };
    let short = |name, text| bytes(name, text, SECRET_BYTES_MOST, true).map(|found| found.to_vec());
    let long = |name, text| bytes(name, text, BYTES_MOST, false).map(|found| found.to_vec());
    let mechanism = |wanted| match asked.mechanism == Some(wanted) {
        true => Ok(()),
        false => Err(Refusal::misuse(format!("the mechanism here is `{wanted}`"))),
    };
    let key = asked.key.clone();
    if asked.op != Operation::Describe {
        check_key(&key)?;
    }
    Ok(match asked.op {
        Operation::Describe => Request::Describe,
        Operation::Wrap => Request::Wrap {
            key,
            secret: bytes("secret", asked.secret, SECRET_BYTES_MOST, false)?,
            context: short("context", asked.context)?,
        },
        Operation::Unwrap => Request::Unwrap {
            key,
            wrapped: long("wrapped", asked.wrapped)?,
            context: short("context", asked.context)?,
        },
        Operation::Public => Request::Public { key },
        Operation::Decrypt => {
            mechanism("oaep-sha256")?;
            Request::Decrypt {
                key,
                label: short("label", asked.label)?,
                ciphertext: long("ciphertext", asked.ciphertext)?,
            }
        }
        Operation::Sign => {
            mechanism("pss-sha256")?;
            Request::Sign { key, message: long("message", asked.message)? }
        }
        Operation::Create => {
            let bits = asked.bits.ok_or_else(|| Refusal::misuse("`bits` is missing"))?;
            Request::Create { key, bits }
        }
    })
}

fn written(id: &str, reply: Result<Reply, Refusal>) -> Answer<'_> {
    let mut answer = Answer { v: VERSION, id, ..Answer::default() };
    let text = |bytes: &[u8]| SecretText(encoded(bytes));
    match reply {
        Err(Refusal { kind, text }) => answer.error = Some(Told { kind, text }),
        Ok(Reply::Description { name, version, can }) => {
            (answer.name, answer.version, answer.can) = (Some(name), Some(version), Some(can));
        }
        Ok(Reply::Wrapped(bytes)) => answer.bytes = Some(Bytes::Wrapped(text(&bytes))),
        Ok(Reply::Secret(bytes)) => answer.bytes = Some(Bytes::Secret(text(&bytes))),
        Ok(Reply::Spki(bytes)) => answer.bytes = Some(Bytes::Spki(text(&bytes))),
        Ok(Reply::Plaintext(bytes)) => answer.bytes = Some(Bytes::Plaintext(text(&bytes))),
        Ok(Reply::Signature(bytes)) => answer.bytes = Some(Bytes::Signature(text(&bytes))),
    }
    answer
}
