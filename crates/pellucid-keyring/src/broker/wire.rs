//! What goes over the broker's socket: one question and one answer for each connection (docs/design/broker.md).
//!
//! A question is `"PLB" ‖ version 1 ‖ operation 1 ‖ length 4 ‖ bytes`, an answer `status 1 ‖ length 4 ‖ bytes`. Numbers are big-endian;
//! a text or a block has a length of 4 bytes before it, a list the number of its entries.

use zeroize::Zeroizing;

/// The beginning of a question: three letters and the protocol's version.
pub const MAGIC: [u8; 4] = *b"PLB\x01";
/// Magic, operation, length.
pub const QUESTION_HEAD_BYTES: usize = 9;
/// Status, length.
pub const ANSWER_HEAD_BYTES: usize = 5;
/// The most bytes of a question behind its head.
pub const QUESTION_BYTES_MOST: usize = 65_536;
/// The most bytes of an answer behind its head.
pub const ANSWER_BYTES_MOST: usize = 1 << 20;

/// What the broker is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// The key of a database, for its header.
    Open = 1,
    /// What the keyring remembers of paths and databases.
    Recall = 2,
    /// A backup, made by the broker. Its answer comes when that is done.
    BackUp = 3,
}

impl Operation {
    pub(crate) fn of(byte: u8) -> Option<Self> {
        [Self::Open, Self::Recall, Self::BackUp].into_iter().find(|one| *one as u8 == byte)
    }
}

/// How the broker answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// With what was asked for.
    Done = 0,
    /// The account was not let in.
    Denied = 1,
    /// A key is missing, with the reason.
    MissingKey = 2,
    /// The header was not made by who has the key.
    Unauthentic = 3,
    /// The question is none.
    Misuse = 4,
    /// Too much is asked of it at the moment.
    Busy = 5,
    /// Anything else.
    Trouble = 6,
    /// It was not done, with the reason.
    Refused = 7,
}

impl Status {
    pub(crate) fn of(byte: u8) -> Option<Self> {
        use Status::*;
        let all = [Done, Denied, MissingKey, Unauthentic, Misuse, Busy, Trouble, Refused];
        all.into_iter().find(|one| *one as u8 == byte)
    }
}

/// Bytes that are put together in a buffer that is wiped.
#[derive(Debug, Default)]
pub struct Writer(Zeroizing<Vec<u8>>);

impl Writer {
    pub(crate) fn number(&mut self, number: usize) {
        self.0.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn block(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.raw(bytes);
    }

    pub(crate) fn list<T>(&mut self, list: &[T], one: impl Fn(&mut Self, &T)) {
        self.number(list.len());
        list.iter().for_each(|entry| one(self, entry));
    }

    pub(crate) fn finish(self) -> Zeroizing<Vec<u8>> {
        self.0
    }
}

/// Bytes that are taken apart. Each call is none where they do not fit.
#[derive(Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn number(&mut self) -> Option<usize> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        usize::try_from(u32::from_be_bytes(*number)).ok()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    pub(crate) fn block(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        let (block, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(block)
    }

    pub(crate) fn list<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        // Never more memory than the bytes that are there: an entry has one at least.
        let count = self.number().filter(|count| *count <= self.0.len())?;
        (0..count).map(|_| one(self)).collect()
    }

    /// None if anything is left.
    pub(crate) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// An answer as it goes over the socket.
pub(crate) fn answer(status: Status, bytes: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut whole = Zeroizing::new(Vec::with_capacity(ANSWER_HEAD_BYTES + bytes.len()));
    whole.push(status as u8);
    whole.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    whole.extend_from_slice(bytes);
    whole
}

/// A question as it goes over the socket.
pub(crate) fn question(operation: Operation, bytes: &[u8]) -> Vec<u8> {
    let mut whole = MAGIC.to_vec();
    whole.push(operation as u8);
    whole.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    whole.extend_from_slice(bytes);
    whole
}
