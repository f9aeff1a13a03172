//! Reading and writing big-endian fields one after the other.

/// A cursor over fields. It returns `None` if the bytes end too early.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes that are not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Reads the next `bytes` bytes.
    pub fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(head)
    }

    /// Reads the next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// Reads `bytes` zeros. `None` for any other byte, because a later version may give it a
    /// meaning.
    pub fn zeros(&mut self, bytes: usize) -> Option<()> {
        self.take(bytes)?.iter().all(|byte| *byte == 0).then_some(())
    }

    /// Reads the next byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    /// Reads the next two bytes as a number.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads the next four bytes as a number.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads the next eight bytes as a number.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}
