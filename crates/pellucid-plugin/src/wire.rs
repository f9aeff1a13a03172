//! The two lines of the protocol: a question, and its answer (docs/design/plugins.md).

use std::borrow::Cow;

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use pellucid::error::{Error, Result, Subject};
use pellucid::secret::fill_random;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

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
}

type Text = Zeroizing<String>;

/// A question, as it is written.
#[derive(Serialize)]
pub(crate) struct Question<'a> {
    v: u8,
    id: String,
    op: Operation,
    #[serde(skip_serializing_if = "str::is_empty")]
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mechanism: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bits: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown")]
    secret: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown")]
    context: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown")]
    wrapped: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown")]
    label: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown")]
    ciphertext: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown")]
    message: Option<Text>,
}

fn shown<S: serde::Serializer>(text: &Option<Text>, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_str(text.as_ref().map_or("", |text| text.as_str()))
}

impl<'a> Question<'a> {
    pub(crate) fn new(op: Operation, key: &'a str) -> Self {
        let mechanism = match op {
            Operation::Decrypt => Some("oaep-sha256"),
            Operation::Sign => Some("pss-sha256"),
            _ => None,
        };
        Self {
            v: VERSION,
            id: String::new(),
            op,
            key,
            mechanism,
            bits: None,
            secret: None,
            context: None,
            wrapped: None,
            label: None,
            ciphertext: None,
            message: None,
        }
        .with_id()
    }

    fn with_id(mut self) -> Self {
        let mut bytes = [0; 8];
        // Without randomness it is the same each time, and nothing else works either.
        let _ = fill_random(&mut bytes);
        self.id = format!("{:016x}", u64::from_be_bytes(bytes));
        self
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn key(&self) -> &str {
        self.key
    }

    pub(crate) fn op(&self) -> Operation {
        self.op
    }

    pub(crate) fn put(&mut self, field: Field, bytes: &[u8], most: usize) -> Result<()> {
        if bytes.len() > most {
            let told =
                format!("{} bytes are more than the {most} that a plugin is given", bytes.len());
            return Err(Error::limit(Subject::Option("--plugin".into()), told));
        }
        let text = Some(encoded(bytes));
        match field {
            Field::Secret => self.secret = text,
            Field::Context => self.context = text,
            Field::Wrapped => self.wrapped = text,
            Field::Label => self.label = text,
            Field::Ciphertext => self.ciphertext = text,
            Field::Message => self.message = text,
            // Only answers have them.
            Field::Spki | Field::Plaintext | Field::Signature => {}
        }
        Ok(())
    }

    /// The line, with its end.
    pub(crate) fn line(&self) -> Option<Secret> {
        line(self, QUESTION_BYTES_MOST)
    }
}

/// One line of JSON in a buffer that does not move; none if it is longer.
pub(crate) fn line(value: &impl Serialize, most: usize) -> Option<Secret> {
    let mut buffer = Zeroizing::new(vec![0; most]);
    let mut cursor = std::io::Cursor::new(&mut buffer[..most - 1]);
    serde_json::to_writer(&mut cursor, value).ok()?;
    let length = cursor.position() as usize;
    buffer[length] = b'\n';
    buffer.truncate(length + 1);
    Some(buffer)
}

/// Base64 in a buffer that does not move.
pub(crate) fn encoded(bytes: &[u8]) -> Text {
    let mut text = vec![0; bytes.len().div_ceil(3) * 4];
    let _ = STANDARD.encode_slice(bytes, &mut text);
    Zeroizing::new(String::from_utf8(text).unwrap_or_default())
}

/// The bytes of base64, if they are 1 to `most`, or none where `may_be_empty`.
pub(crate) fn decoded(text: &str, most: usize, may_be_empty: bool) -> Option<Secret> {
    if text.len() > most.div_ceil(3) * 4 {
        return None;
    }
    let mut bytes = Zeroizing::new(vec![0; text.len() / 4 * 3 + 3]);
    let length = STANDARD.decode_slice(text, &mut bytes).ok()?;
    bytes.truncate(length);
    (length <= most && (may_be_empty || length > 0)).then_some(bytes)
}

/// An answer, whose fields lie in the line itself.
#[derive(Deserialize)]
struct Answer<'a> {
    v: u8,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    error: Option<Told<'a>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    can: Option<Vec<Cow<'a, str>>>,
    // As references, so that no copy of a secret is made: base64 has nothing to escape.
    wrapped: Option<&'a str>,
    secret: Option<&'a str>,
    spki: Option<&'a str>,
    plaintext: Option<&'a str>,
    signature: Option<&'a str>,
}

#[derive(Deserialize)]
struct Told<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

/// A line that a plugin answered a question with.
pub(crate) struct Exchange<'a> {
    pub(crate) plugin: &'a Plugin,
    pub(crate) question: &'a Question<'a>,
    pub(crate) line: Secret,
}

impl Exchange<'_> {
    fn answer(&self) -> Result<Answer<'_>> {
        let trouble = |cause: &str| Err(self.trouble(cause));
        let Ok(text) = std::str::from_utf8(&self.line) else {
            return trouble("its answer is not UTF-8");
        };
        // Without serde's own words, which quote the line.
        let Ok(answer) = serde_json::from_str::<Answer<'_>>(text) else {
            return trouble("its answer is no line of JSON as the protocol has it");
        };
        if answer.v != VERSION {
            return trouble("its answer is of another version of the protocol");
        }
        if answer.id != self.question.id() {
            return trouble("it answers another question than it was asked");
        }
        match &answer.error {
            Some(told) => Err(self.refused(told)),
            None => Ok(answer),
        }
    }

    /// The bytes of a field.
    pub(crate) fn take(&self, field: Field, most: usize) -> Result<Secret> {
        let answer = self.answer()?;
        let text = match field {
            Field::Wrapped => answer.wrapped,
            Field::Secret => answer.secret,
            Field::Spki => answer.spki,
            Field::Plaintext => answer.plaintext,
            Field::Signature => answer.signature,
            _ => None,
        };
        let bytes = text.and_then(|text| decoded(text, most.min(BYTES_MOST), false));
        bytes.ok_or_else(|| {
            self.trouble("its answer lacks the bytes that were asked for, or has others")
        })
    }

    /// What it says of itself.
    pub(crate) fn description(&self) -> Result<Description> {
        let answer = self.answer()?;
        let short = |text: &Cow<'_, str>| shortened(text);
        let (Some(name), Some(version), Some(can)) = (answer.name, answer.version, answer.can)
        else {
            return Err(self.trouble("its answer lacks `name`, `version` or `can`"));
        };
        // What a later version of the protocol adds is not asked for.
        let known = |name: &Cow<'_, str>| {
            let quoted = format!("\"{name}\"");
            serde_json::from_str::<Operation>(&quoted).ok()
        };
        Ok(Description {
            name: short(&name),
            version: short(&version),
            can: can.iter().filter_map(known).collect(),
        })
    }

    fn refused(&self, told: &Told<'_>) -> Error {
        let subject = self.plugin.subject();
        let cause = format!("{}{}", self.about(), shortened(&told.text));
        match &*told.kind {
            "missing-key" => self.plugin.missing(cause),
            "misuse" => Error::misuse(subject, cause),
            "unauthentic" => Error::unauthentic(subject, cause),
            _ => Error::io(subject, std::io::Error::other(cause)),
        }
    }

    pub(crate) fn trouble(&self, cause: &str) -> Error {
        self.plugin.trouble(format!("{}{cause}", self.about()))
    }

    fn about(&self) -> String {
        about(self.question)
    }
}

/// Which key it was asked about, as the beginning of a text.
pub(crate) fn about(question: &Question<'_>) -> String {
    match question.key() {
        "" => format!("{}: ", question.op().name()),
        key => {
            format!("{} with the key `{}`: ", question.op().name(), pellucid::shown::printable(key))
        }
    }
}

/// The beginning of somebody else's text, in one line of printable characters.
pub(crate) fn shortened(text: &str) -> String {
    let mut end = text.len().min(TOLD_BYTES_MOST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    pellucid::shown::printable(text[..end].trim()).into_owned()
}
