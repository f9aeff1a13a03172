//! Page restore: puts damaged pages of a database back from a backup of the same state.
//!
//! A page from a backup fits the others only if nothing was committed since. So every other page is
//! compared with the backup while no connection can commit. In rollback mode that is a proof,
//! because each commit changes page 1. In WAL mode a commit may change one page alone, so the
//! caller has to say that none did. Where the database has a chain of log backups, they roll the pages forward, and nothing
//! has to be compared.

mod rolled;

use std::path::{Path, PathBuf};
use std::time::Duration;

use pellucid::header::REGION_BYTES;
use pellucid::keys::ContainerKeys;
use pellucid::media::{page_hash, PAGE_HASH_BYTES};
use pellucid::nonce::SystemNonces;
use pellucid::shown::Shown;
use pellucid::unit::{FileKind, Place, TAIL_BYTES};
use pellucid::{Error, Result, Subject};
use pellucid_engine::convert::switch::Source;
use pellucid_files::paths::{full_name, resolved};
use pellucid_host::connection::uri;
use pellucid_host::ffi;
use pellucid_host::{DatabaseError, Options};
use pellucid_keyring::{Action, Event};
use pellucid_vfs::open_file::OpenFile;
use pellucid_vfs::opened;
use pellucid_vfs::seal_request::{Credentials, Request};

use super::chain::Chain;
use super::clear::{refuse_chain, Believe};
use super::media::open_media;
use super::standing::standings;

/// The most pages at once, as in SQL Server.
const MOST_PAGES: usize = 1000;
/// The ranges of page 1 that a change of the journal mode changes: format bytes, change counter,
/// "version valid for" and version.
const MODE_BYTES: [std::ops::Range<usize>; 3] = [18..20, 24..28, 92..100];
const PAGE: &str = "SELECT data FROM sqlite_dbpage WHERE pgno = ?1";

/// A page restore: the database, its damaged pages and the backup.
#[derive(Debug, Clone)]
pub struct Mending {
    /// The media of the set; of a database with a chain of log backups those of a full set and of all logs behind it.
    pub media: Vec<PathBuf>,
    /// The media of the full set that a differential is based on; `None` for the same media.
    pub base: Option<Vec<PathBuf>>,
    /// The position of the set; `None` for the last one.
    pub position: Option<u32>,
    /// The database.
    pub to: PathBuf,
    /// The damaged pages.
    pub pages: Vec<u32>,
    /// The caller says that these pages were not changed since the backup. Needed in WAL mode.
    pub unproven: bool,
    /// Believes a set in clear, wherever it lies and whatever is known of the database.
    pub allow_clear: bool,
    /// Believes a set without a signature where signed ones belong.
    pub allow_unsigned: bool,
    /// How long to wait for other connections.
    pub timeout: Duration,
}

/// Pages that were put back.
#[derive(Debug)]
pub struct Mended {
    /// Their numbers, in order.
    pub pages: Vec<u32>,
    /// What speaks against the place of the backup's sets in the chain of the database.
    pub told: Vec<String>,
}

/// Puts the pages back.
///
/// # Errors
/// [`DatabaseError`]: [`Error::Misuse`], which says what has changed since. The database was not
/// changed then.
pub fn mend(job: &Mending) -> std::result::Result<Mended, DatabaseError> {
    let mut pages = job.pages.clone();
    pages.sort_unstable();
    pages.dedup();
    check_list(&pages)?;
    let credentials = Credentials::gather(&Request::default())?.for_many();
    let to = resolved(&job.to)?;
    if rolled::has_chain(&to) {
        return rolled::roll_forward(job, &to, &pages, &credentials);
    }
    let media = open_media(&job.media)?;
    let base = job.base.as_ref().map(|base| open_media(base)).transpose()?;
    let position = job.position.map_or_else(|| media.last(), Ok)?;
    let believe =
        Believe { clear: job.allow_clear, unsigned: job.allow_unsigned, differential: false };
    let base_media = base.as_ref().unwrap_or(&media);
    let chain = Chain::open_with(&media, base_media, position, &credentials, believe)?;
    let files = [&job.media[..], job.base.as_ref().unwrap_or(&job.media)];
    refuse_chain(&chain, files, Some(&job.to), believe)?;
    // A fork has the pages of another copy of the database, which are compared with those that are there.
    let told = standings(&chain, [&media, base_media], files, Some(&job.to), believe)?;

    let options = Options::new(job.timeout, Vec::new());
    let source = Source::reserve(&to, &uri(&to, "vfs=pellucid"), &options)?;
    if source.was_wal && !job.unproven {
        return Err(refuse(
            &to,
            "it is in WAL mode, where a commit may have changed just these pages since the backup \
             and nothing tells; `--unproven` says that none did",
        ));
    }
    compare(&source, &chain, &to, &pages)?;
    let mut content = Vec::with_capacity(pages.len());
    for page in &pages {
        content.push((*page, chain.page(*page)?));
    }
    Event::new(Action::Restored, "pages of a database").of(full_name(&to)).record_here()?;
    let (lower, sealed) = (opened::on_disk(&source.handle)?, opened::sealed(&source.handle)?);
    super::replace::lock_exclusive(lower, &to, job.timeout)?;
    let keys = sealed
        .map(|(_, container)| container.keys())
        .transpose()
        .map_err(|code| failed(&to, code))?;
    for (number, page) in &content {
        write(lower, keys.as_deref(), *number, page, &to)?;
    }
    lower.sync(ffi::SYNC_NORMAL).map_err(|code| failed(&to, code))?;
    Ok(Mended { pages, told })
}

fn check_list(pages: &[u32]) -> Result<()> {
    let misuse = |what: &str| Err(Error::misuse(Subject::Option("--page".into()), what.to_owned()));
    match pages {
        [] => misuse("no page is named"),
        [0, ..] => misuse("pages are counted from 1"),
        [1, ..] => misuse("page 1 says what the database is: restore all of it, with `--replace`"),
        _ if pages.len() > MOST_PAGES => misuse("more than 1000 pages: restore all of it"),
        _ => Ok(()),
    }
}

fn refuse(to: &Path, why: &str) -> DatabaseError {
    Error::misuse(Subject::File(to.to_owned()), why.to_owned()).into()
}

fn failed(to: &Path, code: pellucid_host::code::Code) -> DatabaseError {
    let message = "a page cannot be written; the restore of pages can be done again".to_owned();
    DatabaseError::Sqlite { file: to.shown().to_string(), code: code.0, message }
}

/// Checks that all other pages are as they were backed up.
fn compare(
    source: &Source<'_>,
    chain: &Chain<'_>,
    to: &Path,
    damaged: &[u32],
) -> std::result::Result<(), DatabaseError> {
    let header = chain.header();
    let page_bytes = header.page_size as usize;
    let count = source.handle.number("PRAGMA page_count")?;
    let same_size = source.handle.number("PRAGMA page_size")? == i64::from(header.page_size);
    if !same_size || count != i64::from(header.pages) {
        return Err(refuse(
            to,
            "it has another number or size of pages than when it was backed up",
        ));
    }
    if let Some(beyond) = damaged.iter().find(|page| **page > header.pages) {
        return Err(refuse(to, &format!("it has no page {beyond}")));
    }
    let (key, hashes) = chain.page_hashes()?;
    let read = source.handle.prepared(PAGE)?;
    let mut page = vec![0; page_bytes];
    let (mut changed, mut first, mut unreadable) = (0u32, 0, Vec::new());
    for number in 1..=header.pages {
        if damaged.binary_search(&number).is_ok() {
            continue;
        }
        if !matches!(read.blob(i64::from(number), &mut page), Ok(true)) {
            unreadable.push(number);
            continue;
        }
        let at = (number as usize - 1) * PAGE_HASH_BYTES;
        let same = match number {
            1 => is_same_first(&page, &chain.page(1)?, source.was_wal),
            _ => hashes.get(at..at + PAGE_HASH_BYTES) == Some(&page_hash(&key, &page)[..]),
        };
        if !same {
            changed += 1;
            first = if first == 0 { number } else { first };
        }
    }
    if changed > 0 {
        return Err(refuse(
            to,
            &format!(
                "{changed} other pages have changed since the backup, the first of them page \
                 {first}: the pages of the backup do not belong among them; restore all of it, or \
                 from a newer backup"
            ),
        ));
    }
    match unreadable.first() {
        None => Ok(()),
        Some(other) => Err(refuse(
            to,
            &format!(
                "{} other pages cannot be read, the first of them page {other}: name all that are \
                 damaged (`pellucid check`)",
                unreadable.len()
            ),
        )),
    }
}

/// Whether page 1 is as it was backed up, except for the bytes that change when the database leaves
/// WAL mode, which it does before the comparison.
fn is_same_first(now: &[u8], then: &[u8], was_wal: bool) -> bool {
    if !was_wal {
        return now == then;
    }
    let without = |page: &[u8]| {
        let mut page = page.to_vec();
        MODE_BYTES.into_iter().for_each(|range| page[range].fill(0));
        page
    };
    now.len() == then.len() && without(now) == without(then)
}

/// Writes one page in its place. These few seals are not counted as wear; the limit of a generation
/// has room for them.
fn write(
    lower: OpenFile<'_>,
    keys: Option<&ContainerKeys>,
    number: u32,
    page: &[u8],
    to: &Path,
) -> std::result::Result<(), DatabaseError> {
    let offset = u64::from(number - 1) * page.len() as u64;
    let written = match keys {
        None => lower.write(page, offset),
        Some(keys) => {
            let mut unit = vec![0; page.len()];
            let place = Place::page(keys.file_id(), number);
            let content = &page[..page.len() - TAIL_BYTES];
            keys.seal(FileKind::Database, &place, &mut SystemNonces, content, &mut unit)?;
            lower.write(&unit, REGION_BYTES + offset)
        }
    };
    written.map_err(|code| failed(to, code))
}
