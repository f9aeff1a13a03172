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
use pellucid_keyring::Keyring;
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
    /// Whether somebody who has its key made its header and manifest; none where the key is not at hand.
    pub is_authentic: Option<bool>,
}

impl<'a> Looked<'a> {
    /// Of a set that was opened.
    pub fn at(set: &'a OpenSet<'_>) -> Self {
        Self {
            header: set.header(),
            hash: set.hash(),
            signer: set.signer(),
            description: set.description(),
            // It would not have been opened.
            is_authentic: Some(true),
        }
    }
}

/// What a set is looked at for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// It is verified or restored.
    Reading,
    /// Pages are left out of a differential because of what it says of them.
    Base,
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
    asked(set, media, files, to, believe, Purpose::Reading)
}

/// The same for a full set that a differential is going to be made of: two copies of it that disagree are an error.
///
/// # Errors
/// As [`standing`]; [`Error::Unauthentic`] for a set of which the history knows another copy.
pub fn standing_to_build_on(
    set: &Looked<'_>,
    media: &Media,
    files: &[PathBuf],
) -> Result<Vec<String>, DatabaseError> {
    asked(set, media, files, None, Believe::default(), Purpose::Base)
}

fn asked(
    set: &Looked<'_>,
    media: &Media,
    files: &[PathBuf],
    to: Option<&Path>,
    believe: Believe,
    purpose: Purpose,
) -> Result<Vec<String>, DatabaseError> {
    // What is known of a set in clear is asked before it is believed.
    if set.header.algorithm.is_none() {
        return Ok(Vec::new());
    }
    let mut told = Vec::new();
    let history = match History::open() {
        Ok(history) => history,
        // Backups do not depend on the history, so one that cannot be read counts as knowing nothing. That it was not asked
        // is told, where there is a place for one.
        Err(error) => {
            if Keyring::locate().is_ok() {
                told.push(format!("the history could not be asked: {error}"));
            }
            None
        }
    };
    let Some(history) = history else {
        told.extend(behind_none(set, media, None)?);
        return Ok(told);
    };
    let header = set.header;
    let exchanged = |what: &'static str| {
        Err(Error::unauthentic(Subject::BackupSet(header.position), what).into())
    };
    match history.manifest_of(&header.set, &set.hash)? {
        KnownManifest::Own => return Ok(told),
        KnownManifest::NotOwn => {
            return exchanged(match set.is_authentic {
                Some(true) => {
                    "this instance wrote another manifest for it: somebody who has its key has exchanged what is in it"
                }
                Some(false) => {
                    "this instance wrote another manifest for it, and this one does not authenticate: somebody who does not \
                     have its key has changed it"
                }
                None => "this instance wrote another manifest for it: somebody has exchanged what is in it",
            })
        }
        KnownManifest::NotFound if purpose == Purpose::Base => {
            return exchanged(
                "two copies of it disagree: the history knows another manifest of the same set, and pages would be left out \
                 of the differential because of what this one says of them. Take the other copy, or make a full backup",
            )
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
    let ([last_media, base], [last_files, base_files]) = (media, files);
    let mut told = standing_of_base(chain, base, base_files, to, believe)?;
    let last = chain.last();
    let found = standing(&Looked::at(last), last_media, last_files, to, believe)?;
    let position = last.header().position;
    told.extend(found.into_iter().map(|what| format!("backup set {position}: {what}")));
    Ok(told)
}

/// The same for the full set that a differential is restored with, if it is one; also where the differential is signed and the
/// full set is not.
///
/// # Errors
/// As [`standing`].
pub fn standing_of_base(
    chain: &Chain<'_>,
    media: &Media,
    files: &[PathBuf],
    to: Option<&Path>,
    believe: Believe,
) -> Result<Vec<String>, DatabaseError> {
    let Some(base) = chain.base() else { return Ok(Vec::new()) };
    let looked = Looked::at(base);
    let mut told = standing(&looked, media, files, to, believe)?;
    if chain.last().signer().is_known() && !base.signer().is_known() && !is_own(&looked) {
        let what = match base.signer() {
            Signer::NotHere { .. } => "its signature cannot be checked here",
            _ => "it is not signed",
        };
        let when = match chain.header().version2.is_some_and(|own| own.base == base.hash()) {
            true => " before the differential was made",
            false => "",
        };
        told.push(format!(
            "{what}, and its differential is signed: whoever has the full set's key can have made it{when}"
        ));
    }
    let position = base.header().position;
    Ok(told
        .into_iter()
        .map(|what| format!("the full set, backup set {position}: {what}"))
        .collect())
}

/// The same for a log that is applied to `chain`: one without a signature is not believed behind sets that are signed.
///
/// # Errors
/// As [`standing`].
pub fn standing_of_log(
    set: &OpenSet<'_>,
    chain: &Chain<'_>,
    (media, files): (&Media, &[PathBuf]),
    to: Option<&Path>,
    believe: Believe,
) -> Result<Vec<String>, DatabaseError> {
    let looked = Looked::at(set);
    let told = standing(&looked, media, files, to, believe)?;
    let position = set.header().position;
    let is_signed = chain.signer().is_known() && !set.signer().is_known();
    if is_signed && !believe.any_unsigned() && !is_own(&looked) {
        let why = "the backup that it goes on from is signed";
        return Err(not_signed(position, set.signer(), why).into());
    }
    Ok(told.into_iter().map(|what| format!("the log, backup set {position}: {what}")).collect())
}

/// Whether the history says that this instance wrote a set as it is.
fn is_own(set: &Looked<'_>) -> bool {
    let Ok(Some(history)) = History::open() else { return false };
    matches!(history.manifest_of(&set.header.set, &set.hash), Ok(KnownManifest::Own))
}
