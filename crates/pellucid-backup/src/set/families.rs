//! The writers of media families: one thread each, identical bytes to all mirrors of a family.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use pellucid::error::{Error, Result, Subject};
use pellucid::media::{ChunkPrefix, Entry, FamilyEnd, Root, PREFIX_BYTES};

use super::pool::Slot;
use super::sink::MediaSink;
use super::worker::unpanicked;

/// One family: its first copy and its mirrors.
pub struct FamilyTarget {
    copies: Vec<Box<dyn MediaSink>>,
    fenced: Vec<(PathBuf, std::io::Error)>,
}

impl std::fmt::Debug for FamilyTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.copies.iter().map(|copy| copy.name()).collect();
        f.debug_struct("FamilyTarget").field("copies", &names).finish_non_exhaustive()
    }
}

impl FamilyTarget {
    /// The first copy, and its mirrors.
    pub fn new(copies: Vec<Box<dyn MediaSink>>) -> Self {
        Self { copies, fenced: Vec::new() }
    }

    /// Writes to each copy. One that fails is fenced: it gets nothing more, and the others go on.
    ///
    /// # Errors
    /// [`Error::Io`] when the last copy failed.
    pub fn write(&mut self, parts: &[&[u8]]) -> Result<()> {
        self.each(|copy| parts.iter().try_for_each(|part| copy.write(part)))
    }

    /// Syncs each copy.
    ///
    /// # Errors
    /// As [`FamilyTarget::write`].
    pub fn sync(&mut self) -> Result<()> {
        self.each(|copy| copy.sync())
    }

    fn each(
        &mut self,
        mut act: impl FnMut(&mut dyn MediaSink) -> std::io::Result<()>,
    ) -> Result<()> {
        let mut at = 0;
        while let Some(copy) = self.copies.get_mut(at) {
            match act(copy.as_mut()) {
                Ok(()) => at += 1,
                Err(error) => {
                    let name = self.copies.remove(at).name();
                    self.fenced.push((name, error));
                }
            }
        }
        if !self.copies.is_empty() {
            return Ok(());
        }
        match self.fenced.pop() {
            Some((name, error)) => Err(Error::io(Subject::File(name), error)),
            None => Err(Error::misuse(Subject::MediaHeader, "a family without a file")),
        }
    }

    /// The mirrors that failed, each with its error.
    pub fn fenced(&mut self) -> Vec<(PathBuf, std::io::Error)> {
        std::mem::take(&mut self.fenced)
    }
}

/// A family while a set is written to it.
#[derive(Debug)]
pub struct FamilyWriter<'a> {
    target: &'a mut FamilyTarget,
    family: u16,
    bytes: u64,
    root: Root,
    /// What was written, by kind and order of the database.
    pub entries: Vec<(ChunkPrefix, Entry)>,
}

impl<'a> FamilyWriter<'a> {
    /// Writes the set header.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn begin(target: &'a mut FamilyTarget, family: u16, header: &[u8]) -> Result<Self> {
        target.write(&[header])?;
        let root = Root::new(header);
        Ok(Self { target, family, bytes: header.len() as u64, root, entries: Vec::new() })
    }

    /// Writes the next chunk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn chunk(
        &mut self,
        prefix: &ChunkPrefix,
        prefix_bytes: &[u8; PREFIX_BYTES],
        body: &[u8],
    ) -> Result<()> {
        self.target.write(&[prefix_bytes, body])?;
        self.root.update(prefix_bytes);
        let entry = Entry {
            family: self.family,
            offset: self.bytes,
            stored_bytes: body.len() as u32,
            first_page: prefix.first_page,
            pages: prefix.pages,
            checksum: ChunkPrefix::checksum_of(prefix_bytes),
        };
        self.entries.push((*prefix, entry));
        self.bytes += (PREFIX_BYTES + body.len()) as u64;
        Ok(())
    }

    /// Where the next chunk begins.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What the manifest says of it.
    pub fn end(&self) -> FamilyEnd {
        FamilyEnd { bytes: self.bytes, root: self.root.finish() }
    }

    /// Forces it to disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&mut self) -> Result<()> {
        self.target.sync()
    }

    /// Writes the manifest and forces it to disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn commit(&mut self, manifest: &[u8]) -> Result<()> {
        self.target.write(&[manifest])?;
        self.target.sync()
    }

    /// Writes what comes, gives slots back, and after an error only does that.
    pub fn run(
        &mut self,
        chunks: &Receiver<Slot>,
        waiting: &AtomicU64,
        back: &Sender<Slot>,
    ) -> Result<()> {
        let mut outcome = Ok(());
        while let Ok(slot) = chunks.recv() {
            if let (Ok(()), Some((prefix, bytes))) = (&outcome, &slot.prefix) {
                outcome = unpanicked(|| self.chunk(prefix, bytes, &slot.body));
            }
            waiting.fetch_sub(slot.body.len() as u64, Ordering::Relaxed);
            // Hashes come in slots that are not the pool's. Nobody waits for slots once the reader is done.
            if !slot.content.is_empty() {
                let _ = back.send(slot);
            }
            if outcome.is_err() {
                waiting.store(FAILED, Ordering::Relaxed);
            }
        }
        outcome
    }
}

/// What a family that failed has waiting, so that the reader stops.
pub const FAILED: u64 = u64::MAX / 2;
