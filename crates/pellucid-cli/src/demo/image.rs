//! A database file as a thief has it: bytes in pages. No key, no SQLite.
//!
//! Of files over [`SAMPLE_BYTES_MAX`] counts come from evenly spread pages; a search goes through all of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::write::ZlibEncoder;
use flate2::Compression;
use memchr::memmem;
use pellucid::header::REGION_BYTES;
use pellucid::sector::SQLITE_MAGIC;
use pellucid::{Error, Subject};

use crate::output::{Failure, Id};

/// At most so much of a file is counted and compressed.
pub const SAMPLE_BYTES_MAX: u64 = 64 << 20;
const CHUNK_BYTES: usize = 1 << 20;
/// So many places of a search are remembered; all are counted.
const PLACES_MAX: usize = 64;

/// What the first 100 bytes of a plain database say (fileformat2.html, "The Database Header").
#[derive(Debug, Clone, Copy)]
pub struct Form {
    pub page_size: u64,
    pub encoding: Encoding,
}

/// How the database stores text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

impl Encoding {
    /// `text` as its bytes stand in the file.
    pub fn bytes(self, text: &str) -> Vec<u8> {
        match self {
            Encoding::Utf8 => text.as_bytes().to_vec(),
            Encoding::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Encoding::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        }
    }
}

impl Form {
    /// Of the plain database at `path`.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let mut start = [0; 100];
        let mut file = open(path)?;
        let whole = file.read_exact(&mut start).is_ok() && start.starts_with(SQLITE_MAGIC);
        let page_size = match u64::from(u16::from_be_bytes([start[16], start[17]])) {
            1 => 65536,
            size => size,
        };
        if !whole || !page_size.is_power_of_two() || page_size < 512 {
            return Err(Failure::new(
                Id::DemoSource,
                format!("`{}`: not a plain SQLite database", path.display()),
                "look at the path",
            ));
        }
        let encoding = match u32::from_be_bytes([start[56], start[57], start[58], start[59]]) {
            2 => Encoding::Utf16Le,
            3 => Encoding::Utf16Be,
            _ => Encoding::Utf8,
        };
        Ok(Self { page_size, encoding })
    }
}

/// One file, looked through.
#[derive(Debug)]
pub struct Image {
    path: PathBuf,
    pub bytes: u64,
    pub page_size: u64,
    /// What stands before page 1.
    pub header_bytes: u64,
    /// The header region's part of the slots.
    pub header_slots: u64,
    /// Pages of the header region and of the database, in the file's order.
    pub slots: u64,
    /// Every how manieth slot was looked at.
    pub step: u64,
    /// How often each byte value occurs in the database's pages.
    pub counts: [u64; 256],
    /// Bits per byte of each slot that was looked at.
    pub entropies: BTreeMap<u64, f64>,
    /// Bits per byte over `counts`.
    pub entropy: f64,
    /// Compressed to uncompressed size, page by page.
    pub packed: f64,
}

/// Where something was found.
#[derive(Debug)]
pub struct Found {
    pub count: u64,
    /// The first of them.
    pub places: Vec<u64>,
}

impl Image {
    /// A plain database.
    pub fn plain(path: &Path, page_size: u64) -> Result<Self, Failure> {
        Self::look(path, page_size, 0)
    }

    /// A sealed one: pages begin behind the header region (docs/format.md, "Container").
    pub fn sealed(path: &Path, page_size: u64) -> Result<Self, Failure> {
        Self::look(path, page_size, REGION_BYTES)
    }

    fn look(path: &Path, page_size: u64, header_bytes: u64) -> Result<Self, Failure> {
        let mut file = open(path)?;
        let bytes = file.metadata().map_err(|error| io(path, error))?.len();
        let header_slots = header_bytes.div_ceil(page_size);
        let mut image = Self {
            path: path.to_owned(),
            bytes,
            page_size,
            header_bytes,
            header_slots,
            slots: header_slots + bytes.saturating_sub(header_bytes).div_ceil(page_size).max(1),
            step: bytes.div_ceil(SAMPLE_BYTES_MAX).max(1),
            counts: [0; 256],
            entropies: BTreeMap::new(),
            entropy: 0.0,
            packed: 0.0,
        };
        let mut packed = 0;
        for slot in (0..image.slots).step_by(usize::try_from(image.step).unwrap_or(usize::MAX)) {
            let (at, length) = image.place(slot);
            let page = read_at(&mut file, at, length).map_err(|error| io(path, error))?;
            let mut counts = [0; 256];
            for byte in &page {
                counts[usize::from(*byte)] += 1;
            }
            image.entropies.insert(slot, entropy(&counts));
            if slot >= header_slots {
                image.counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                packed += packed_bytes(&page).map_err(|error| io(path, error))?;
            }
        }
        image.entropy = entropy(&image.counts);
        image.packed = packed as f64 / image.counted().max(1) as f64;
        Ok(image)
    }

    /// The database's pages.
    pub fn pages(&self) -> u64 {
        self.slots - self.header_slots
    }

    /// The bytes behind `counts`.
    pub fn counted(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Where a slot begins, and its length.
    pub fn place(&self, slot: u64) -> (u64, u64) {
        match slot.checked_sub(self.header_slots) {
            Some(page) => (self.header_bytes + page * self.page_size, self.page_size),
            None => (slot * self.page_size, self.page_size.min(self.header_bytes)),
        }
    }

    /// Up to `length` bytes from `at`; fewer at the end of the file.
    pub fn read(&self, at: u64, length: u64) -> Result<Vec<u8>, Failure> {
        read_at(&mut open(&self.path)?, at, length).map_err(|error| io(&self.path, error))
    }

    /// Looks for `needle` in the whole file.
    pub fn search(&self, needle: &[u8]) -> Result<Found, Failure> {
        let finder = memmem::Finder::new(needle);
        let keep = needle.len().saturating_sub(1);
        let mut found = Found { count: 0, places: Vec::new() };
        let file = open(&self.path)?;
        let (mut window, mut base) = (Vec::new(), 0);
        loop {
            let before = window.len();
            (&file)
                .take(CHUNK_BYTES as u64)
                .read_to_end(&mut window)
                .map_err(|error| io(&self.path, error))?;
            if window.len() == before {
                return Ok(found);
            }
            for at in finder.find_iter(&window) {
                found.count += 1;
                if found.places.len() < PLACES_MAX {
                    found.places.push(base + at as u64);
                }
            }
            let gone = window.len().saturating_sub(keep);
            base += gone as u64;
            window.drain(..gone);
        }
    }

    /// Runs of eight or more printable characters, as `strings -n 8` counts them, in the first 64 MiB.
    pub fn strings(&self) -> Result<u64, Failure> {
        let (mut count, mut run) = (0, 0);
        let mut file = open(&self.path)?.take(SAMPLE_BYTES_MAX);
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let length = file.read(&mut chunk).map_err(|error| io(&self.path, error))?;
            if length == 0 {
                return Ok(count);
            }
            for byte in &chunk[..length] {
                run = if printable(*byte) { run + 1 } else { 0 };
                count += u64::from(run == 8);
            }
        }
    }
}

/// What `strings` takes for text.
pub fn printable(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7e | b'\t')
}

fn open(path: &Path) -> Result<File, Failure> {
    File::open(path).map_err(|error| io(path, error))
}

/// An error about `path`.
pub fn io(path: &Path, error: std::io::Error) -> Failure {
    Error::io(Subject::File(path.to_owned()), error).into()
}

fn read_at(file: &mut File, at: u64, length: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(at))?;
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn packed_bytes(page: &[u8]) -> std::io::Result<u64> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(page)?;
    Ok(encoder.finish()?.len() as u64)
}

/// Bits per byte.
fn entropy(counts: &[u64; 256]) -> f64 {
    let all = counts.iter().sum::<u64>() as f64;
    let share = |count: &u64| *count as f64 / all;
    let bits = |count: &u64| -share(count) * share(count).log2();
    counts.iter().filter(|count| **count > 0).map(bits).sum()
}
