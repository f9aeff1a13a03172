//! The chain of the event log: how a line shows that it stands where it was written, and where a log says otherwise.
//!
//! Bytes in, verdict out; described in docs/format.md, "Event log".

use std::collections::HashMap;

use aws_lc_rs::hmac;
use pellucid::derive::hkdf_sha256;
use pellucid::error::Result;
use pellucid::hash::{hex, Sha256};
use pellucid::secret::Secret32;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

const HASH_BYTES: usize = 32;
/// Key 32, number 8, end 8, hash 32.
const MEMORY_BYTES: usize = 80;
const MAC: &str = ",\"mac\":\"";
/// The digits, the quotation mark and the brace.
const MAC_BYTES: usize = MAC.len() + 2 * HASH_BYTES + 2;

/// SHA-256 of some pieces.
pub(super) fn hash(pieces: &[&[u8]]) -> [u8; HASH_BYTES] {
    let mut sum = Sha256::new();
    pieces.iter().for_each(|piece| sum.update(piece));
    sum.finish()
}

/// The last line of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Its number; 0: no line is chained yet.
    pub(super) seq: u64,
    /// Where the log ended with it, in bytes.
    pub(super) end: u64,
    /// The hash of the line and its line feed.
    pub(super) hash: [u8; HASH_BYTES],
}

impl Head {
    const NONE: Self = Self { seq: 0, end: 0, hash: [0; HASH_BYTES] };

    /// The line of that number that begins at byte `start`.
    pub(super) fn of(seq: u64, start: u64, line: &[u8]) -> Self {
        Self { seq, end: start + line.len() as u64 + 1, hash: hash(&[line, b"\n"]) }
    }
}

/// What the keyring holds of a log.
#[derive(Debug)]
pub(super) struct Memory {
    secret: Secret32,
    pub(super) key: Key,
    pub(super) head: Head,
}

/// The key of the lines.
#[derive(Debug)]
pub(super) struct Key(hmac::Key);

impl Memory {
    /// Of a log without a chain, with a key of its own.
    pub(super) fn begin() -> Result<Self> {
        Self::with(Secret32::random()?, Head::NONE)
    }

    fn with(secret: Secret32, head: Head) -> Result<Self> {
        let mut own = Zeroizing::new([0u8; 32]);
        hkdf_sha256(secret.expose(), b"", &[b"pellucid/1 event log"], &mut own[..])?;
        let key = Key(hmac::Key::new(hmac::HMAC_SHA256, &own[..]));
        Ok(Self { secret, key, head })
    }

    pub(super) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(MEMORY_BYTES));
        bytes.extend_from_slice(self.secret.expose());
        bytes.extend_from_slice(&self.head.seq.to_be_bytes());
        bytes.extend_from_slice(&self.head.end.to_be_bytes());
        bytes.extend_from_slice(&self.head.hash);
        bytes
    }

    /// None if the bytes are not such a content.
    pub(super) fn decode(bytes: &[u8]) -> Result<Option<Self>> {
        let Some((secret, rest)) = bytes.split_at_checked(32) else { return Ok(None) };
        let Some((seq, rest)) = rest.split_first_chunk() else { return Ok(None) };
        let Some((end, rest)) = rest.split_first_chunk() else { return Ok(None) };
        let (Some(secret), Ok(hash)) = (Secret32::from_slice(secret), rest.try_into()) else {
            return Ok(None);
        };
        let head = Head { seq: u64::from_be_bytes(*seq), end: u64::from_be_bytes(*end), hash };
        Self::with(secret, head).map(Some)
    }
}

/// What a line says of its place.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) seq: u64,
    prev: String,
    begins: bool,
    unfinished_bytes: u64,
    pub(super) facts: Map<String, Value>,
}

impl Link {
    /// Whether it follows the line `head`, with the bytes `between` left unfinished by a writer.
    pub(super) fn follows(&self, head: &Head, between: &[u8]) -> bool {
        !self.begins
            && self.seq == head.seq + 1
            && self.unfinished_bytes == between.len() as u64
            && self.prev == follow(head, between)
    }

    /// Whether it begins a chain over a log that had all of `before`.
    pub(super) fn begins_after(&self, before: &[u8]) -> bool {
        self.begins && self.prev == hex(&hash(&[before]))
    }
}

fn follow(head: &Head, between: &[u8]) -> String {
    match between.is_empty() {
        true => hex(&head.hash),
        false => hex(&hash(&[&head.hash, between])),
    }
}

impl Key {
    /// The line that follows `head`, without its line feed.
    pub(super) fn line(&self, facts: Map<String, Value>, head: &Head, between: &[u8]) -> String {
        let mut facts = facts;
        if !between.is_empty() {
            facts.insert("unfinished_bytes".into(), between.len().into());
        }
        self.seal(facts, head.seq + 1, follow(head, between))
    }

    /// The line that begins a chain over a log that has all of `before`.
    pub(super) fn first(&self, facts: Map<String, Value>, seq: u64, before: &[u8]) -> String {
        let mut facts = facts;
        facts.insert("begins".into(), true.into());
        self.seal(facts, seq, hex(&hash(&[before])))
    }

    fn seal(&self, mut facts: Map<String, Value>, seq: u64, prev: String) -> String {
        facts.insert("seq".into(), seq.into());
        facts.insert("prev".into(), prev.into());
        let text = super::line_of(facts);
        let body = text.strip_suffix('}').unwrap_or(&text);
        let mac = hex(hmac::sign(&self.0, body.as_bytes()).as_ref());
        format!("{body}{MAC}{mac}\"}}")
    }

    /// A line of this chain, wherever it stands; none if it was changed, or never was one.
    pub(super) fn read(&self, line: &[u8]) -> Option<Link> {
        let (body, mac) = line.split_at_checked(line.len().checked_sub(MAC_BYTES)?)?;
        let digits = mac.strip_prefix(MAC.as_bytes())?.strip_suffix(b"\"}")?;
        hmac::verify(&self.0, body, &unhex(digits)?).ok()?;
        let Value::Object(facts) = serde_json::from_slice(line).ok()? else { return None };
        Some(Link {
            seq: facts.get("seq")?.as_u64()?,
            prev: facts.get("prev")?.as_str()?.to_owned(),
            begins: facts.get("begins").is_some(),
            unfinished_bytes: facts.get("unfinished_bytes").and_then(Value::as_u64).unwrap_or(0),
            facts,
        })
    }
}

fn unhex(digits: &[u8]) -> Option<[u8; HASH_BYTES]> {
    let text = std::str::from_utf8(digits).ok().filter(|text| text.len() == 2 * HASH_BYTES)?;
    let mut bytes = [0; HASH_BYTES];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// Whether a line claims to be in a chain, of whatever key.
pub(super) fn looks_chained(line: &[u8]) -> bool {
    line.windows(MAC.len()).any(|window| window == MAC.as_bytes())
}

/// Lines with the places where they begin and end, and whether a line feed follows.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8], bool)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let (start, length) = (at, rest.iter().position(|byte| *byte == b'\n'));
        at += length.map_or(rest.len(), |length| length + 1);
        Some((start, &rest[..length.unwrap_or(rest.len())], length.is_some()))
    })
}

/// The first line that is not right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogBreak {
    /// Its place in the log; lines are counted from 1, through all parts ([`EventLog::place`]).
    pub line: usize,
    /// What is wrong with it.
    pub wrong: Wrong,
}

/// What is wrong with a line of the event log, or with what the keyring holds of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wrong {
    /// The line was changed.
    Changed,
    /// The line was put in.
    Inserted,
    /// The line stands at another place than it was written at.
    Moved,
    /// Lines with these numbers are missing before it.
    Missing(u64, u64),
    /// The chain does not begin where it began: what stood before was changed or taken away.
    Beginning,
    /// The log ends with the line of this number, and the keyring knows of lines up to another one.
    End(u64, u64),
    /// The log has a chain and the keyring holds nothing of it, for this reason.
    Unknown(String),
}

/// What [`judge`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventLog {
    /// Lines in all parts. Lines are counted from the first part on.
    pub lines: usize,
    /// Each closed part, with its lines.
    pub closed: Vec<(String, usize)>,
    /// From which line on the chain holds: there it began, or began again.
    pub holds_from: Option<usize>,
    /// The number of the last line.
    pub last_number: u64,
    /// The first line that is not right.
    pub wrong: Option<LogBreak>,
    /// What was not right, and was left behind when the chain began again.
    pub left_behind: Vec<LogBreak>,
    /// Lines that their writer did not finish, in a crash or on a full disk.
    pub unfinished: Vec<usize>,
    /// Events that wait to be taken into the log.
    pub waiting: usize,
}

impl EventLog {
    /// Returns the name of the part that has a line, and its place in that part.
    pub fn place(&self, line: usize) -> (&str, usize) {
        let mut line = line;
        for (name, lines) in &self.closed {
            if line <= *lines {
                return (name, line);
            }
            line -= lines;
        }
        ("events.log", line)
    }
}

/// Walks along the lines of a log.
struct Walk<'a> {
    log: &'a [u8],
    key: &'a Key,
    known: &'a Head,
    at: Head,
    /// Lines since the last one of the chain that are none of it; the first is this one.
    stray: Vec<usize>,
    /// Where each number stands.
    places: HashMap<u64, usize>,
    found: EventLog,
}

/// What is to be said of a log, by what the keyring holds of it.
pub(super) fn judge(log: &[u8], memory: &Memory) -> EventLog {
    let key = &memory.key;
    let numbered = lines(log).enumerate();
    let places =
        numbered.filter_map(|(index, (_, line, _))| Some((key.read(line)?.seq, index))).collect();
    let mut walk = Walk {
        log,
        key,
        known: &memory.head,
        at: Head::NONE,
        stray: Vec::new(),
        places,
        found: EventLog::default(),
    };
    for (index, (start, line, whole)) in lines(log).enumerate() {
        walk.step(index + 1, start, line, whole);
    }
    walk.end();
    walk.found
}

impl Walk<'_> {
    fn wrong(&mut self, line: usize, wrong: Wrong) {
        self.found.wrong.get_or_insert(LogBreak { line, wrong });
    }

    fn step(&mut self, number: usize, start: usize, line: &[u8], whole: bool) {
        self.found.lines = number;
        match self.key.read(line) {
            // Also without its line feed, which the next writer puts in.
            Some(link) => {
                self.link(number, start, &link);
                self.at = Head::of(link.seq, start as u64, line);
                self.stray.clear();
                if self.at.seq == self.known.seq && self.at.hash != self.known.hash {
                    self.wrong(number, Wrong::Changed);
                }
            }
            None if !whole => self.found.unfinished.push(number),
            None if self.at.seq > 0 => self.stray.push(number),
            // A line of before there was a chain; the one that begins it answers for it.
            None if !looks_chained(line) => {}
            None => self.wrong(number, Wrong::Changed),
        }
    }

    fn link(&mut self, number: usize, start: usize, link: &Link) {
        let before = &self.log[..start];
        if link.begins_after(before) {
            // What was wrong before was known to whoever began again, and is kept as it was.
            self.flush_stray(Wrong::Inserted);
            self.found.left_behind.extend(self.found.wrong.take());
            self.found.holds_from = Some(number);
            return;
        }
        let between = before.get(self.at.end as usize..).unwrap_or_default();
        if self.at.seq > 0 && link.follows(&self.at, between) {
            self.found.unfinished.append(&mut self.stray);
            return;
        }
        let expected = self.at.seq + 1;
        if self.at.seq == 0 || link.begins {
            return self.wrong(number, Wrong::Beginning);
        }
        // Written behind the line it follows, and there is something between them.
        if link.follows(&self.at, b"") {
            return self.flush_stray(Wrong::Inserted);
        }
        if !self.stray.is_empty() {
            return self.flush_stray(Wrong::Changed);
        }
        let is_elsewhere = self.places.get(&expected).is_some_and(|at| *at + 1 > number);
        match link.seq > expected {
            true if !is_elsewhere => self.wrong(number, Wrong::Missing(expected, link.seq - 1)),
            true => self.wrong(number, Wrong::Moved),
            false if link.seq < expected => self.wrong(number, Wrong::Moved),
            false => self.wrong(number, Wrong::Changed),
        }
    }

    fn flush_stray(&mut self, wrong: Wrong) {
        if let Some(first) = self.stray.first().copied() {
            self.wrong(first, wrong);
        }
        self.stray.clear();
    }

    fn end(&mut self) {
        let is_short = self.at.seq < self.known.seq;
        let changed = if is_short { Wrong::Changed } else { Wrong::Inserted };
        self.flush_stray(changed);
        self.found.last_number = self.at.seq;
        if is_short {
            let (line, wrong) = (self.found.lines + 1, Wrong::End(self.at.seq, self.known.seq));
            self.wrong(line, wrong);
        }
    }
}
