//! An instance for article 0's scripts, with a drive C and a drive for each disk.

use std::path::{Path, PathBuf};

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{copy_whole, length};
use pellucid_lab_measure::sql::{quoted, quoted_path, Server};

use super::disks::Disks;
use super::scripts::{ATTACH, BACKUP_KEYS, KEYS};
use crate::experiment::content::{self, Content};

/// What the scripts call the two disks, as sources and as targets.
pub const ARTICLE_DISKS: [&str; 2] = ["HDD", "SSD"];
/// The drives of both.
const DRIVES: [char; 2] = ['D', 'E'];
/// Of the database of a rehearsal.
const TINY_BYTES: u64 = 256 << 10;
/// Logical names of the files, which the scripts name.
pub const FILES: [&str; 2] = ["AdventureWorks2012_Data", "AdventureWorks2012_Log"];

/// An instance in a directory of its own, with a drive C.
fn instance(program: &Path, dir: &Path) -> Result<Server> {
    folder(&dir.join("C/temp"))?;
    let server = Server::new(program, dir.join("instance"))?;
    Ok(server.with_drives(&[('C', &dir.join("C"))]))
}

fn with_drives(server: &Server, dir: &Path, drives: &[PathBuf; 2]) -> Server {
    let [first, second] = drives;
    server.with_drives(&[('C', &dir.join("C")), (DRIVES[0], first), (DRIVES[1], second)])
}

/// A database with the logical names of AdventureWorks2012, in drive C.
fn make(
    server: &Server,
    dir: &Path,
    name: &str,
    bytes: u64,
    seed: u64,
) -> Result<(PathBuf, Content)> {
    let [data, log] = FILES.map(quoted);
    server.run(&format!(
        "CREATE DATABASE {name} ON (NAME = {data}, FILENAME = 'C:\\temp\\{name}.mdf') \
         LOG ON (NAME = {log}, FILENAME = 'C:\\temp\\{name}_log.ldf')"
    ))?;
    let path = dir.join("C/temp").join(format!("{name}.mdf"));
    let content = content::fill(&path, bytes, seed, dir)?;
    Ok((path, content))
}

fn folder(dir: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(dir).map_err(Error::io(dir.display().to_string()))?;
    Ok(dir.to_path_buf())
}

/// An instance with the article's databases and keys, whose drives are the targets.
#[derive(Debug)]
pub struct Attached {
    pub server: Server,
    pub content: Content,
    /// Of each database.
    pub bytes: u64,
}

/// Makes the instance, the article's databases on the sources, and its keys. On the first source lie `more` databases of
/// these names, which nobody knows yet.
///
/// # Errors
/// Of the worker that fills them, and of the article's scripts.
pub fn attached(
    program: &Path,
    dir: &Path,
    disks: &Disks,
    bytes: u64,
    seed: u64,
    more: &[&str],
) -> Result<Attached> {
    let server = instance(program, dir)?;
    let (made, content) = make(&server, dir, "made", bytes, seed)?;
    let bytes = length(&made)?;
    for name in more {
        copy_whole(&made, &disks.source(0).join(format!("{name}.mdf")))?;
    }
    // Where there is one source, the article's other database is there and not used.
    let (spare, _) = make(&server, dir, "spare", TINY_BYTES, seed)?;
    let mut sources = [0, 1].map(|at| disks.source(at).to_path_buf());
    if !disks.has_source(1) {
        sources[1] = folder(&dir.join("spare"))?;
    }
    for (at, source) in sources.iter().enumerate() {
        let data = folder(&source.join("CTP2_Data"))?;
        let from = if disks.has_source(at) { &made } else { &spare };
        copy_whole(from, &data.join(format!("aw{}.mdf", ARTICLE_DISKS[at])))?;
    }
    for database in ["made", "spare"] {
        server.run(&format!("DROP DATABASE {database}"))?;
    }
    // The scripts have source and target on one drive; here drives are sources while databases are attached, and
    // targets from then on.
    let attaching = with_drives(&server, dir, &sources);
    for script in [ATTACH, KEYS, BACKUP_KEYS] {
        attaching.run(script)?;
    }
    let targets = [0, 1].map(|at| disks.target(at).to_path_buf());
    for target in &targets {
        folder(&target.join("backup"))?;
    }
    let server = with_drives(&server, dir, &targets);
    Ok(Attached { server, content, bytes })
}

/// The same with tiny databases, all of it in `dir`: for a rehearsal.
///
/// # Errors
/// As [`attached`].
pub fn tiny(program: &Path, dir: &Path, seed: u64) -> Result<Server> {
    let server = instance(program, dir)?;
    let made = make(&server, dir, "tiny", TINY_BYTES, seed)?.0;
    let drives = DRIVES.map(|drive| dir.join(drive.to_string()));
    for (disk, drive) in ARTICLE_DISKS.iter().zip(&drives) {
        folder(&drive.join("backup"))?;
        copy_whole(&made, &folder(&drive.join("CTP2_Data"))?.join(format!("aw{disk}.mdf")))?;
    }
    let server = with_drives(&server, dir, &drives);
    for script in [ATTACH, KEYS, BACKUP_KEYS] {
        server.run(script)?;
    }
    Ok(server)
}

/// The file of the article's database on this source.
pub fn database(disks: &Disks, source: usize) -> PathBuf {
    disks.source(source).join(format!("CTP2_Data/aw{}.mdf", ARTICLE_DISKS[source]))
}

/// The statement that restores the full backup on `media` as the database `restored` in `dir`; options may follow.
///
/// # Errors
/// [`Error::Invalid`] for a path that is not UTF-8.
pub fn restored(media: &Path, dir: &Path) -> Result<String> {
    let [data, log] = ["mdf", "ldf"].map(|end| quoted_path(&dir.join(format!("restored.{end}"))));
    Ok(format!(
        "RESTORE DATABASE restored FROM DISK = {} WITH MOVE {} TO {}, MOVE {} TO {}",
        quoted_path(media)?,
        quoted(FILES[0]),
        data?,
        quoted(FILES[1]),
        log?
    ))
}
