//! `verify`: what can be known of media without a key, with one, and by SQLite's own check.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use pellucid::media::{Kind, Manifest, SetHeader};
use pellucid::shown::Shown;
use pellucid::Result as Outcome;
use pellucid_backup::job::{
    open_media, processors, refuse_looked_at, standing, standing_of_base, Believe, Chain, Looked,
};
use pellucid_backup::restore::{
    same_manifest, verify_checksums, LogSet, Media, OpenSet, PageTarget, Signer,
};
use pellucid_files::paths::full_name;
use pellucid_keyring::{Action, Event};
use pellucid_vfs::seal_request::{Credentials, Request};

use super::image;
use super::look::keys_of;
use super::make::who;
use super::{about_media, rate, signed_by, ASK_VERIFY};
use crate::exit;
use crate::keys::OpenWith;
use crate::output::{seconds, Failure, Output, Unit};

/// What `verify` takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid verify app.bak\n  pellucid verify app.bak --open\n  \
                  pellucid verify monday.bak --base sunday.bak --check")]
pub struct VerifyArgs {
    /// Files of the backup, one for each stripe
    #[arg(required = true, value_name = "MEDIA")]
    media: Vec<PathBuf>,
    /// Number of the backup set to verify, from 1 [default: all]
    #[arg(long, value_name = "N")]
    position: Option<u32>,
    /// Also decrypt and decompress every page; needs the key
    #[arg(long)]
    open: bool,
    /// Also restore to memory or to a temporary encrypted file, and let SQLite check that database
    #[arg(long)]
    check: bool,
    /// With --check, an SQLite extension with the collations and functions that the schema needs
    #[arg(long, value_name = "FILE", requires = "check")]
    load: Vec<PathBuf>,
    /// Files of the full backup that a differential is based on, if it is not on the same media
    #[arg(long, num_args = 1.., value_name = "FILE")]
    base: Vec<PathBuf>,
    /// Accept a backup that is not sealed although the others are, or although the database is known as encrypted
    #[arg(long)]
    allow_clear: bool,
    /// Accept a backup without a signature although signed ones are known of its database, or lie before it
    #[arg(long)]
    allow_unsigned: bool,
    #[command(flatten)]
    with: OpenWith,
}

/// A target that keeps nothing.
struct Nowhere;

impl PageTarget for Nowhere {
    fn write(&self, _: u32, _: &[u8]) -> Outcome<()> {
        Ok(())
    }
}

/// Verifies backup sets.
pub fn run(args: &VerifyArgs, output: &Output) -> Result<ExitCode, Failure> {
    args.with.offer()?;
    // The history is asked, which is a database.
    super::register()?;
    let first = &args.media[0];
    let about = |error: pellucid::Error| {
        let mut failure = about_media(error, first);
        // This command is the one that says what is damaged.
        failure.hint = failure.hint.map(|hint| hint.replace(ASK_VERIFY, ""));
        failure
    };
    let media = open_media(&args.media).map_err(about)?;
    let base = match args.base.is_empty() {
        true => None,
        false => Some(open_media(&args.base).map_err(about)?),
    };
    let positions = match args.position {
        Some(position) => position..=position,
        None if media.sets() == 0 => 1..=media.last().map_err(about)?,
        None => 1..=media.sets(),
    };
    // One budget for all sets: whoever made the media can have put costs into each.
    let credentials = Credentials::gather(&Request::default())?.for_many();
    let mut code = ExitCode::SUCCESS;
    let believe =
        Believe { clear: args.allow_clear, unsigned: args.allow_unsigned, differential: false };
    let (mut unsealed, mut damages, mut needs_key, mut forked) = (false, false, false, false);
    for position in positions {
        let started = Instant::now();
        let sealed = header_of(&media, position).map_err(about)?.algorithm.is_some();
        if let (false, Err(error)) =
            (believe.any(), refuse_looked_at(&media, position, &args.media))
        {
            let failure = Failure::from(error);
            if sealed {
                return Err(about_media(failure, first));
            }
            unsealed = true;
            output.warning(&failure.message);
            output.facts(&serde_json::json!({
                "position": position, "valid": false, "sealed": false, "why": failure.message,
            }));
            continue;
        }
        if !believe.any_unsigned() {
            media.refuse_unsigned(position, &credentials).map_err(about)?;
        }
        let read = checksums(&media, position, output).map_err(about)?;
        let (mut signer, mut told) = looked(&media, position, &args.media, &credentials, believe)
            .map_err(|error| about_media(error, first))?;
        let key = match &header_of(&media, position).map_err(about)? {
            header if sealed => format!("with its key, by {}", who(header)),
            _ => "as they are: there is no key".to_owned(),
        };
        let mut level = match sealed {
            true => "checksums and hash tree of what is stored (no key)".to_owned(),
            false => "checksums and hash tree of what is stored".to_owned(),
        };
        let chain = || {
            let base = base.as_ref().unwrap_or(&media);
            Chain::open_with(&media, base, position, &credentials, believe)
        };
        if args.check {
            let chain = chain().map_err(about)?;
            told.extend(base_told(&chain, base.as_ref().unwrap_or(&media), args, believe)?);
            signer = chain.signer().clone();
            image::check(&chain, &args.load, output).map_err(|f| f.about(first))?;
            level = format!(
                "restored to a copy, which SQLite finds whole; pages opened and decompressed {key}; checksums and hash \
                 tree"
            );
        } else if args.open {
            open(&media, position, &credentials, output, believe).map_err(about)?;
            level = format!("pages opened and decompressed {key}; checksums and hash tree");
        }
        if sealed && (args.check || args.open) {
            credentials.forgive();
            Event::new(Action::Verified, "backup").of(full_name(first)).note_here();
        }
        let header = header_of(&media, position).map_err(about)?;
        let lacks_full = lacks_full(&header, base.as_ref().unwrap_or(&media));
        let took = started.elapsed();
        // SQL Server's message 3262.
        output.line(format!(
            "The backup set on file {position} is valid: {level}; {} in {}, {}.{}",
            crate::output::bytes(read),
            seconds(took),
            rate(read, took.as_secs_f64()),
            if sealed { "" } else { " It is NOT sealed: anybody can have made it." }
        ));
        if sealed {
            output.line(who_signed(&signer));
        }
        for what in &told {
            forked = true;
            output.warning(format!("backup set {position}: {what}"));
        }
        if lacks_full {
            output.line(format!(
                "It is a differential: `restore` needs its full backup too, set {} (`--base`).",
                pellucid::hash::hex(&header.base)
            ));
        }
        let damaged = media
            .set(position)
            .map_err(about)?
            .iter()
            .flatten()
            .any(|(_, set)| set.manifest.damaged);
        if damaged {
            damages = true;
            output.warning(format!(
                "the backup set on file {position} is of a damaged database: pages that could not be read when it was \
                 backed up are zeros in it"
            ));
        }
        output.facts(&serde_json::json!({
            "position": position, "valid": true, "sealed": sealed, "damaged": damaged, "bytes": read,
            "opened": sealed && (args.open || args.check), "checked": args.check, "lacks_full": lacks_full,
            "signed_by": signed_by(&signer), "chain": told, "seconds": took.as_secs_f64(),
        }));
        needs_key |= sealed && !signer.is_known() && !args.open && !args.check;
    }
    if damages {
        code = ExitCode::from(exit::DAMAGE);
    } else if unsealed || forked {
        code = ExitCode::from(exit::ATTENTION);
    }
    if args.position.is_none() {
        media.last().map_err(about)?;
        super::look::tails(&media, output);
    }
    if needs_key {
        output.line(
            "Without the key this shows that nothing was damaged, not that nobody replaced it; \
             `--open` does.",
        );
    }
    Ok(code)
}

/// Who signed a set, and what speaks against its place in the chain of its database.
fn looked(
    media: &Media,
    position: u32,
    files: &[PathBuf],
    credentials: &Credentials,
    believe: Believe,
) -> Result<(Signer, Vec<String>), pellucid_host::DatabaseError> {
    let families = media.set(position)?;
    let Some((_, set)) = families.first().and_then(|copies| copies.first()) else {
        return Ok((Signer::Nobody, Vec::new()));
    };
    let signer = Signer::of(&set.header, &set.manifest, credentials)?;
    if set.header.algorithm.is_none() {
        return Ok((signer, Vec::new()));
    }
    let keys = keys_of(&set.header, credentials);
    let is_authentic = keys.as_ref().map(|keys| {
        let header = SetHeader::authenticate(&set.header_bytes, keys, position);
        header.and_then(|()| Manifest::authenticate(&set.manifest_bytes, keys)).is_ok()
    });
    let description = keys.and_then(|keys| set.header.described(Some(&keys)).ok());
    let description = description.unwrap_or_default();
    let looked = Looked {
        header: &set.header,
        hash: Manifest::hash(&set.manifest_bytes),
        signer: &signer,
        description: &description,
        is_authentic,
    };
    let told = standing(&looked, media, files, None, believe)?;
    Ok((signer, told))
}

/// What speaks against the full set of a differential: it is restored with it, and asked as `restore` asks.
fn base_told(
    chain: &Chain<'_>,
    media: &Media,
    args: &VerifyArgs,
    believe: Believe,
) -> Result<Vec<String>, Failure> {
    let Some(base) = chain.base() else { return Ok(Vec::new()) };
    let files = if args.base.is_empty() { &args.media } else { &args.base };
    let about = |error| about_media(error, &files[0]);
    if !believe.any() {
        refuse_looked_at(media, base.header().position, files).map_err(about)?;
    }
    standing_of_base(chain, media, files, None, believe).map_err(about)
}

fn who_signed(signer: &Signer) -> String {
    match signer {
        Signer::Certificate { name, .. } => {
            format!("It is signed by certificate `{}`: nobody else can have made it.", name.shown())
        }
        Signer::NotHere { name, .. } => format!(
            "It is signed by certificate `{}`, which is not here: whoever has its key can have made it.",
            name.shown()
        ),
        Signer::Nobody => "It is not signed: whoever has its key can have made it.".to_owned(),
    }
}

fn header_of(media: &Media, position: u32) -> Outcome<SetHeader> {
    let sets = media.set(position)?;
    let found = sets.first().and_then(|copies| copies.first());
    let gone =
        || pellucid::Error::corrupt(pellucid::Subject::BackupSet(position), "no file has it");
    found.map(|(_, set)| set.header.clone()).ok_or_else(gone)
}

/// Whether a set is a differential whose full set is not on these media.
fn lacks_full(header: &SetHeader, media: &Media) -> bool {
    let mut known = (1..=media.sets()).filter_map(|position| header_of(media, position).ok());
    header.kind == Kind::Differential && !known.any(|other| other.set == header.base)
}

fn checksums(media: &Media, position: u32, output: &Output) -> Outcome<u64> {
    let bar = output.progress("reading checksums", Unit::Bytes);
    let sets = media.set(position)?;
    same_manifest(&sets)?;
    let all: u64 = sets.iter().flatten().map(|(_, set)| set.manifest_at - set.at).sum();
    bar.set_length(all);
    let mut read = 0;
    for (family, set) in sets.into_iter().flatten() {
        read += verify_checksums(family, set, &mut |more| bar.inc(more))?.bytes;
    }
    bar.finish_and_clear();
    Ok(read)
}

fn open(
    media: &Media,
    position: u32,
    credentials: &Credentials,
    output: &Output,
    believe: Believe,
) -> Outcome<()> {
    let set = match believe.any() || believe.any_unsigned() {
        true => OpenSet::open_as_it_is(media, position, credentials)?,
        false => OpenSet::open(media, position, credentials)?,
    };
    if set.header().kind == Kind::Log {
        return LogSet::open(&set)?.verify();
    }
    let bar = output.progress("opening pages", Unit::Pages);
    bar.set_length(u64::from(set.manifest().pages));
    pellucid_backup::restore::restore_pages(&set, &Nowhere, processors(), &mut |pages| {
        bar.set_position(u64::from(pages));
    })?;
    bar.finish_and_clear();
    Ok(())
}
