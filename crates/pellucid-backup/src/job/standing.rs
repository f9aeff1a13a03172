//! How a set stands in the chain of its database: whether it is the one that this instance wrote, whether a signature is
//! missing, and where the chain has a fork.
//!
//! A fork is told where the history knows what should come next, and where two copies disagree. A cut chain and one that
//! ended look the same.

use std::path::{Path, PathBuf};

use pellucid::media::{Description, SetHeader};
use pellucid::{Error, Subject};
use pellucid_files::paths::original_path;
use pellucid_host::DatabaseError;
use pellucid_vfs::seal_request::flag;

use super::chain::Chain;
use super::clear::Believe;
use crate::history::{chain_of, names, History, KnownManifest};
use crate::restore::{not_signed, Media, OpenSet, Signer};

/// The environment variable that allows sets without a signature where no option can.
const VARIABLE: &str = "PELLUCID_ALLOW_UNSIGNED";

impl Believe {
    /// Whether the caller believes a set without a signature where signed ones belong.
    pub fn any_unsigned(self) -> bool {
        pellucid::sabotage!(UnsignedSets => return true);
        self.unsigned || flag(VARIABLE)
    }
}

/// What is known of a set that is looked at.
#[derive(Debug)]
pub struct Looked<'a> {
    /// Its header.
    pub header: &'a SetHeader,
    /// The hash of its manifest.
    pub hash: [u8; 32],
    /// Who signed it.
    pub signer: &'a Signer,
    /// What it says of itself; empty where its key is not at hand.
    pub description: &'a Description,
}

impl<'a> Looked<'a> {
    /// Of a set that was opened.
    pub fn at(set: &'a OpenSet<'_>) -> Self {
        Self {
            header: set.header(),
            hash: set.hash(),
            signer: set.signer(),
            description: set.description(),
        }
    }
}

/// Says what speaks against a set's place in the chain of its database, a sentence each. `to` is where it goes.
///
/// # Errors
/// [`Error::Unauthentic`] for a set of this instance whose content was exchanged; [`Error::Misuse`] for one without a
/// signature where the last one that is known is signed.
pub fn standing(
    set: &Looked<'_>,
    media: &Media,
    files: &[PathBuf],
    to: Option<&Path>,
    believe: Believe,
) -> Result<Vec<String>, DatabaseError> {
    // What is known of a set in clear is asked before it is believed.
    if set.header.algorithm.is_none() {
        return Ok(Vec::new());
    }
    // Backups do not depend on the history, so one that cannot be read counts as knowing nothing.
    let history = History::open().ok().flatten();
    let mut told = Vec::new();
    let Some(history) = history else {
        told.extend(behind_none(set, media, None)?);
        return Ok(told);
    };
    let header = set.header;
    match history.manifest_of(&header.set, &set.hash)? {
        KnownManifest::Own => return Ok(told),
        KnownManifest::NotOwn => {
            return Err(Error::unauthentic(
                Subject::BackupSet(header.position),
                "this instance wrote another manifest for it: somebody who has its key has exchanged what is in it",
            )
            .into())
        }
        KnownManifest::NotFound => told.push(
            "two copies of it disagree: the history knows another manifest of the same set".to_owned(),
        ),
        KnownManifest::Former => return Ok(told),
        KnownManifest::Found | KnownManifest::Unknown => {}
    }
    let chain = chain_of(header, set.description);
    if !set.signer.is_known() && !believe.any_unsigned() {
        let said = PathBuf::from(&set.description.path);
        let mut paths = vec![original_path(&said)];
        paths.extend(to.map(original_path));
        let paths: Vec<_> = paths
            .iter()
            .map(PathBuf::as_path)
            .filter(|path| !path.as_os_str().is_empty())
            .collect();
        let why = history.expects_signature(chain.as_deref(), &paths, &names(&history, files))?;
        if let Some(why) = why {
            return Err(not_signed(header.position, set.signer, why).into());
        }
    }
    let Some(chain) = chain else { return Ok(told) };
    let Some(before) = header.version2.map(|own| own.before) else { return Ok(told) };
    if let Some(other) = history.own_behind(&before, &header.set)? {
        if before != [0; 32] {
            told.push(format!(
                "a fork: it goes on behind the same set as {other}, which this instance wrote: another copy of the \
                 database was backed up"
            ));
        }
    } else if history.last_of_chain(&chain)?.is_some() && !history.knows_manifest(&before)? {
        told.push(match before == [0; 32] {
            true => {
                "a fork: it begins a chain, and the history knows sets of its database".to_owned()
            }
            false => "it goes on behind a set that the history does not know".to_owned(),
        });
    }
    told.extend(behind_none(set, media, Some(&history))?);
    Ok(told)
}

/// Says that a set goes on behind another one than those of its database before it on the media, if nobody knows that one.
fn behind_none(
    set: &Looked<'_>,
    media: &Media,
    history: Option<&History>,
) -> Result<Option<String>, DatabaseError> {
    let header = set.header;
    let Some(own) = header.version2 else { return Ok(None) };
    let mut last = None;
    for position in 1..header.position {
        let families = media.set(position)?;
        let Some((_, before)) = families.first().and_then(|copies| copies.first()) else {
            continue;
        };
        if before.header.version2.is_none() || before.header.source != header.source {
            continue;
        }
        if pellucid::media::Manifest::hash(&before.manifest_bytes) == own.before {
            return Ok(None);
        }
        if header.source != [0; 16] {
            last = Some(position);
        }
    }
    let is_known = match history {
        Some(history) => history.knows_manifest(&own.before)?,
        None => false,
    };
    let Some(last) = last.filter(|_| !is_known) else { return Ok(None) };
    Ok(Some(format!(
        "it does not go on behind set {last}, nor behind another one before it on these media: sets are missing between \
         them, or it was made elsewhere"
    )))
}

/// The same for all sets that a database is restored from.
///
/// # Errors
/// As [`standing`].
pub fn standings(
    chain: &Chain<'_>,
    media: [&Media; 2],
    files: [&[PathBuf]; 2],
    to: Option<&Path>,
    believe: Believe,
) -> Result<Vec<String>, DatabaseError> {
    let ([last, base], [last_files, base_files]) = (media, files);
    let mut told = Vec::new();
    let sets = chain.base().map(|set| (set, base, base_files)).into_iter();
    for (set, media, files) in sets.chain([(chain.last(), last, last_files)]) {
        let found = standing(&Looked::at(set), media, files, to, believe)?;
        let position = set.header().position;
        told.extend(found.into_iter().map(|what| format!("backup set {position}: {what}")));
    }
    Ok(told)
}
