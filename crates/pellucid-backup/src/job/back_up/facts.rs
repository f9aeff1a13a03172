//! What a backup says of itself: the headers of its media and of its set.

use std::path::Path;

use pellucid::clock::now_micros;
use pellucid::header::Header;
use pellucid::media::{
    Compression, Description, Kind, MediaHeader, MediaVersion, SetHeader, Version2, CHUNK_BYTES,
};
use pellucid::secret::fill_random;
use pellucid::{Error, Subject};
use pellucid_files::paths::full_name;
use pellucid_host::DatabaseError;
use pellucid_vfs::seal_request::{Credentials, Protection};

use crate::history::{chain_of, History};
use crate::job::plan::Job;
use crate::job::seal::{signer, thumbprint};
use crate::job::targets::Targets;

/// Whether something asks for media of version 2: a certificate that can sign, or padding.
pub(super) fn wants_version2(
    job: &Job,
    sealed: Option<&Header>,
    encrypted: bool,
    credentials: &Credentials,
) -> Result<bool, DatabaseError> {
    if job.padded && !encrypted {
        let what =
            "only an encrypted backup is padded: its length shows in a backup in clear as well";
        return Err(Error::misuse(Subject::Option("padding".into()), what).into());
    }
    let is_certificate = |one: &Protection| matches!(one, Protection::Certificate(_));
    let signs = match job.protections.is_empty() {
        true => sealed.is_some_and(|header| signer(&header.protectors, credentials).is_some()),
        false => job.protections.iter().any(is_certificate),
    };
    Ok(job.padded || (signs && !job.unsigned))
}

/// Joins a set of version 2 to the set before it in the chain of its database: the last one that the history knows or, where
/// it knows none, the last one on the media.
pub(super) fn join(
    job: &Job,
    header: &mut SetHeader,
    said: &Description,
    is_signed: bool,
    targets: &Targets,
) -> Result<(), DatabaseError> {
    if targets.header.version == MediaVersion::One {
        if job.padded {
            let what =
                "these media are of version 1, which has no padding: make new ones (`--format`)";
            return Err(Error::misuse(Subject::Option("padding".into()), what).into());
        }
        return Ok(());
    }
    if targets.has_signed && !is_signed {
        let or = match job.unsigned {
            true => "leave `--unsigned` away",
            false => "protect it by a certificate whose private key is at hand",
        };
        return Err(Error::misuse(
            Subject::BackupSet(header.position),
            format!(
                "the backup sets before it on these media are signed, and it would not be: take other media, or {or}"
            ),
        )
        .into());
    }
    let known = chain_of(header, said).and_then(|chain| {
        let history = History::open().ok().flatten()?;
        history.last_of_chain(&chain).ok().flatten()
    });
    let on_media = || {
        let mut sets = targets.before.iter().rev();
        let source = header.source;
        sets.find(|(of, _)| *of == source && source != [0; 16]).map(|(_, hash)| *hash)
    };
    let before = known.or_else(on_media).unwrap_or_default();
    header.version2 = Some(Version2 { before, padded: job.padded, ..Version2::default() });
    Ok(())
}

pub(super) fn new_media(
    job: &Job,
    encrypted: bool,
    version: MediaVersion,
) -> Result<MediaHeader, DatabaseError> {
    let mut media_set = [0; 16];
    fill_random(&mut media_set)?;
    Ok(MediaHeader {
        version,
        media_set,
        families: job.files.families.len() as u16,
        family: 1,
        mirrors: job.files.mirrors.len() as u8 + 1,
        mirror: 0,
        compressed: job.compression != Compression::None,
        encrypted,
        made: now_micros(),
        name: job.media_name.clone(),
        description: job.media_description.clone(),
    })
}

pub(super) fn set_header(
    job: &Job,
    (kind, page_size, pages): (Kind, u32, u32),
    targets: &Targets,
    sealed: Option<&Header>,
    begun: u64,
) -> Result<SetHeader, DatabaseError> {
    let (mut set, mut page_hash_key) = ([0; 16], [0; 32]);
    fill_random(&mut set)?;
    fill_random(&mut page_hash_key)?;
    Ok(SetHeader {
        version2: None,
        media_set: targets.header.media_set,
        set,
        family: 1,
        families: targets.header.families,
        position: targets.position,
        kind,
        algorithm: None,
        compression: job.compression,
        copy_only: job.copy_only && kind != Kind::Differential,
        sealed_source: sealed.is_some(),
        page_size,
        pages,
        chunk_pages: (CHUNK_BYTES as u32 / page_size.max(512)).max(1),
        begun,
        expires: job.expires,
        source: sealed.map_or([0; 16], |header| header.file_id),
        base: [0; 16],
        commitment: [0; 32],
        source_thumbprint: sealed.map_or([0; 32], thumbprint),
        page_hash_key,
        flags: pellucid::flags::Flags::default(),
        protectors: Vec::new(),
        description: Vec::new(),
    })
}

pub(super) fn description(job: &Job) -> Description {
    let from_environment = || std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok();
    let user = job.user.clone().or_else(from_environment).unwrap_or_default();
    Description {
        database: job.database_name.clone().unwrap_or_else(|| database_name(&job.database)),
        path: full_name(&job.database),
        name: job.name.clone(),
        description: job.description.clone(),
        user,
        machine: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        server: job.server.clone(),
    }
    // A name from the system may have control characters; a name from the caller was checked.
    .readable()
}

/// Makes a database's name: that of its file without the last extension.
pub(super) fn database_name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
