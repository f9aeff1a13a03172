//! A backup of a database to somewhere of your own, and back: `cargo run -p pellucid-bundled --example custom_sink DB`.
//!
//! [`MediaSink`] is what a backup is written to, [`MediaSource`] what it is read from. Here both are a vector in memory; a
//! tape, a message queue or a service of your own does as well, as long as a source can be read anywhere. The database may
//! be in use, plain or encrypted; the backup is encrypted under a key file.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pellucid::clock::now_micros;
use pellucid::derive::commitment;
use pellucid::media::{Compression, Description, Kind, MediaHeader, SetHeader, SetKeys};
use pellucid::protector::{wrap, KeyFile, Wrapping};
use pellucid::secret::fill_random;
use pellucid::{Algorithm, Dek};
use pellucid_backup::restore::{restore_pages, Family, Media, MediaSource, OpenSet, PlainTarget};
use pellucid_backup::set::{write_set, FamilyTarget, MediaSink, NewSet, Options};
use pellucid_backup::snapshot::Snapshot;

/// Somewhere of your own.
#[derive(Debug, Clone, Default)]
struct Elsewhere(Arc<Mutex<Vec<u8>>>);

impl MediaSink for Elsewhere {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(())
    }

    /// Has to return only when everything written is safe: a backup counts from then on.
    fn sync(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn name(&self) -> PathBuf {
        "elsewhere".into()
    }
}

impl MediaSource for Elsewhere {
    fn read_at(&self, into: &mut [u8], offset: u64) -> std::io::Result<usize> {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn bytes(&self) -> std::io::Result<u64> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).len() as u64)
    }

    fn name(&self) -> PathBuf {
        "elsewhere".into()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let database = std::env::args().nth(1).ok_or("which database?")?;
    pellucid_bundled::register()?;
    let (elsewhere, keys) = (Elsewhere::default(), vec![KeyFile::random()?]);
    back_up(Path::new(&database), &elsewhere, &keys[0])?;
    println!("backed up: {} bytes", MediaSource::bytes(&elsewhere)?);

    let back = format!("{database}.restored");
    let media = Media::assemble(vec![Family::open(Box::new(elsewhere))?])?;
    let set = OpenSet::open(&media, media.last()?, &keys)?;
    let target = PlainTarget::create(Path::new(&back), set.header().page_size)?;
    restore_pages(&set, &target, 2, &mut |_| ())?;
    target.finish(set.header().pages)?;
    println!("restored: {back}");
    Ok(())
}

fn back_up(database: &Path, to: &Elsewhere, key: &KeyFile) -> Result<(), Box<dyn Error>> {
    let (mut media_set, mut set) = ([0; 16], [0; 16]);
    fill_random(&mut media_set)?;
    fill_random(&mut set)?;
    let mut sink = to.clone();
    let header = MediaHeader::single(media_set, true, true, now_micros());
    sink.write(&header.encode()?)?;

    // One moment of the database. In WAL mode writers go on.
    let snapshot = Snapshot::begin(database, Duration::from_secs(10))?;
    let mut header = SetHeader {
        media_set,
        set,
        family: 1,
        families: 1,
        position: 1,
        kind: Kind::Full,
        algorithm: Some(Algorithm::Aes256),
        compression: Compression::Zstd,
        copy_only: true,
        sealed_source: false,
        page_size: snapshot.page_size(),
        pages: snapshot.pages(),
        chunk_pages: (pellucid::media::CHUNK_BYTES as u32 / snapshot.page_size()).max(1),
        begun: now_micros(),
        expires: 0,
        source: [0; 16],
        base: [0; 16],
        commitment: [0; 32],
        source_thumbprint: [0; 32],
        page_hash_key: [0; 32],
        flags: pellucid::flags::Flags::default(),
        version2: None,
        protectors: Vec::new(),
        description: Vec::new(),
    };
    // A key for this set alone, wrapped for whoever is to open it.
    let set_key = Dek::random()?;
    header.commitment = commitment(&set_key, &set)?;
    let protector = wrap(&set_key, &header.binding()?, &Wrapping::KeyFile(key))?;
    header.protectors = vec![protector.encoded()];
    let keys = SetKeys::derive(&set_key, &set, Algorithm::Aes256)?;

    let description =
        Description { path: database.display().to_string(), ..Description::default() };
    let new = NewSet { header, description, keys: Some(&keys), signer: None };
    let options = Options { workers: 2, level: 1, continue_after_error: false };
    let mut families = [FamilyTarget::new(vec![Box::new(sink)])];
    write_set(&mut snapshot.reader()?, &new, None, &mut families, &options, &mut |_, _| ())?;
    Ok(())
}
