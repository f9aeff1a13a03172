//! The two lines of the protocol: a question, and its answer (docs/design/plugins.md).

use std::time::Duration;

use base64ct::{Base64, Encoding};
use pellucid::error::{Error, Result, Subject};
use pellucid::secret::fill_random;
use pellucid::shown::printable;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use zeroize::{Zeroize, Zeroizing};

use crate::{Plugin, Secret, BYTES_MOST};

/// The protocol's version.
pub(crate) const VERSION: u8 = 1;
/// The longest question with its line end. A pipe takes it whole before anybody reads.
pub(crate) const QUESTION_BYTES_MOST: usize = 32768;
/// The longest answer with its line end.
pub(crate) const ANSWER_BYTES_MOST: usize = 65536;
/// What is told of a plugin's own text.
pub(crate) const TOLD_BYTES_MOST: usize = 400;

/// What a plugin is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// What it is and can do.
    Describe,
    /// To wrap a secret.
    Wrap,
    /// To unwrap one.
    Unwrap,
    /// For the public half of a key.
    Public,
    /// To decrypt by a private key.
    Decrypt,
    /// To sign by one.
    Sign,
    /// To make a key.
    Create,
}

impl Operation {
    const ALL: [Self; 7] = [
        Self::Describe,
        Self::Wrap,
        Self::Unwrap,
        Self::Public,
        Self::Decrypt,
        Self::Sign,
        Self::Create,
    ];

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// As the protocol has it.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Describe => "describe",
            Operation::Wrap => "wrap",
            Operation::Unwrap => "unwrap",
            Operation::Public => "public",
            Operation::Decrypt => "decrypt",
            Operation::Sign => "sign",
            Operation::Create => "create",
        }
    }
}

/// What a plugin says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// What it is, for people.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it can do.
    pub can: Vec<Operation>,
}

/// A field that has bytes, in base64 (RFC 4648, section 4, with padding).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Secret,
    Context,
    Wrapped,
    Spki,
    Label,
    Ciphertext,
    Plaintext,
    Message,
    Signature,
    Pin,
}

impl Field {
    fn name(self) -> &'static str {
        match self {
            Field::Secret => "secret",
            Field::Context => "context",
            Field::Wrapped => "wrapped",
            Field::Spki => "spki",
            Field::Label => "label",
            Field::Ciphertext => "ciphertext",
            Field::Plaintext => "plaintext",
            Field::Message => "message",
            Field::Signature => "signature",
            Field::Pin => "pin",
        }
    }
}

/// A question, written field by field into a buffer that does not move.
pub(crate) struct Question<'a> {
    op: Operation,
    key: &'a str,
    id: String,
    text: Zeroizing<String>,
}

impl<'a> Question<'a> {
    pub(crate) fn new(op: Operation, key: &'a str) -> Self {
        let mut bytes = [0; 8];
        // Without randomness it is the same each time, and nothing else works either.
        let _ = fill_random(&mut bytes);
        let id = format!("{:016x}", u64::from_be_bytes(bytes));
        let mut text = Zeroizing::new(String::with_capacity(QUESTION_BYTES_MOST));
        text.push_str("{\"v\":1,\"id\":\"");
        text.push_str(&id);
        text.push_str("\",\"op\":\"");
        text.push_str(op.name());
        text.push('"');
        if !key.is_empty() {
            text.push_str(",\"key\":");
            text.push_str(&Value::from(key).to_string());
        }
        text.push_str(match op {
            Operation::Decrypt => ",\"mechanism\":\"oaep-sha256\"",
            Operation::Sign => ",\"mechanism\":\"pss-sha256\"",
            _ => "",
        });
        Self { op, key, id, text }
    }

    pub(crate) fn put(&mut self, field: Field, bytes: &[u8], most: usize) -> Result<()> {
        if bytes.len() > most {
            let told =
                format!("{} bytes are more than the {most} that a plugin is given", bytes.len());
            return Err(Error::limit(Subject::Option("--plugin".into()), told));
        }
        for part in [",\"", field.name(), "\":\"", &encoded(bytes), "\""] {
            self.text.push_str(part);
        }
        Ok(())
    }

    /// What a plugin has for its answer: 10 s, and 60 s to make a key, which takes a token seconds where it is busy.
    pub(crate) fn limit(&self) -> Duration {
        Duration::from_secs(if self.op == Operation::Create { 60 } else { 10 })
    }

    pub(crate) fn put_bits(&mut self, bits: u32) {
        self.text.push_str(",\"bits\":");
        self.text.push_str(&bits.to_string());
    }

    /// The line, with its end; none if it is too long.
    pub(crate) fn line(mut self) -> (Asked<'a>, Option<Zeroizing<String>>) {
        self.text.push_str("}\n");
        let line = (self.text.len() <= QUESTION_BYTES_MOST).then_some(self.text);
        (Asked { op: self.op, key: self.key, id: self.id }, line)
    }
}

/// What an answer is held to.
pub(crate) struct Asked<'a> {
    op: Operation,
    key: &'a str,
    id: String,
}

impl Asked<'_> {
    /// Which key it was asked about, as the beginning of a text.
    pub(crate) fn about(&self) -> String {
        match self.key {
            "" => format!("{}: ", self.op.name()),
            key => format!("{} with the key `{}`: ", self.op.name(), printable(key)),
        }
    }
}

/// Base64 in a buffer that does not move.
pub(crate) fn encoded(bytes: &[u8]) -> Zeroizing<String> {
    let mut text = vec![0; bytes.len().div_ceil(3) * 4];
    let _ = Base64::encode(bytes, &mut text);
    Zeroizing::new(String::from_utf8(text).unwrap_or_default())
}

/// The bytes of base64, if they are 1 to `most`, or none where `may_be_empty`.
pub(crate) fn decoded(text: &str, most: usize, may_be_empty: bool) -> Option<Secret> {
    if text.len() > most.div_ceil(3) * 4 {
        return None;
    }
    let mut bytes = Zeroizing::new(vec![0; text.len() / 4 * 3 + 3]);
    let length = Base64::decode(text, &mut bytes).ok()?.len();
    bytes.truncate(length);
    (length <= most && (may_be_empty || length > 0)).then_some(bytes)
}

/// An answer, whose texts are wiped when it is dropped.
struct Answer(Map<String, Value>);

impl Drop for Answer {
    fn drop(&mut self) {
        for value in self.0.values_mut() {
            if let Value::String(text) = value {
                text.zeroize();
            }
        }
    }
}

impl Answer {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }
}

/// A line that a plugin answered a question with.
pub(crate) struct Exchange<'a> {
    pub(crate) plugin: &'a Plugin,
    pub(crate) asked: Asked<'a>,
    pub(crate) line: Secret,
}

impl Exchange<'_> {
    fn answer(&self) -> Result<Answer> {
        let trouble = |cause: &str| Err(self.trouble(cause));
        // Without serde's own words, which quote the line.
        let Ok(Value::Object(fields)) = serde_json::from_slice(&self.line) else {
            return trouble("its answer is no line of JSON as the protocol has it");
        };
        let answer = Answer(fields);
        if answer.0.get("v").and_then(Value::as_u64) != Some(u64::from(VERSION)) {
            return trouble("its answer is of another version of the protocol");
        }
        if answer.text("id") != Some(&self.asked.id) {
            return trouble("it answers another question than it was asked");
        }
        match answer.0.get("error") {
            Some(told) => Err(self.refused(told)),
            None => Ok(answer),
        }
    }

    /// The bytes of a field.
    pub(crate) fn take(&self, field: Field, most: usize) -> Result<Secret> {
        let answer = self.answer()?;
        let text = answer.text(field.name());
        let bytes = text.and_then(|text| decoded(text, most.min(BYTES_MOST), false));
        bytes.ok_or_else(|| {
            self.trouble("its answer lacks the bytes that were asked for, or has others")
        })
    }

    /// What it says of itself.
    pub(crate) fn description(&self) -> Result<Description> {
        let answer = self.answer()?;
        let can = answer.0.get("can").and_then(Value::as_array);
        let (Some(name), Some(version), Some(can)) =
            (answer.text("name"), answer.text("version"), can)
        else {
            return Err(self.trouble("its answer lacks `name`, `version` or `can`"));
        };
        Ok(Description {
            name: shortened(name),
            version: shortened(version),
            // What a later version of the protocol adds is not asked for.
            can: can.iter().filter_map(|one| Operation::of(one.as_str()?)).collect(),
        })
    }

    fn refused(&self, told: &Value) -> Error {
        let text = |name: &str| told.get(name).and_then(Value::as_str).unwrap_or_default();
        let subject = self.plugin.subject();
        let cause = format!("{}{}", self.asked.about(), shortened(text("text")));
        match text("kind") {
            "missing-key" => self.plugin.missing(cause),
            "misuse" => Error::misuse(subject, cause),
            "unauthentic" => Error::unauthentic(subject, cause),
            _ => Error::io(subject, std::io::Error::other(cause)),
        }
    }

    pub(crate) fn trouble(&self, cause: &str) -> Error {
        self.plugin.trouble(format!("{}{cause}", self.asked.about()))
    }
}

/// The beginning of somebody else's text, in one line of printable characters.
pub(crate) fn shortened(text: &str) -> String {
    let mut end = text.len().min(TOLD_BYTES_MOST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    printable(text[..end].trim()).into_owned()
}
