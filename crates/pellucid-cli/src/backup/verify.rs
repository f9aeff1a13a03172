//! `verify`: what can be known of media without a key, with one, and by SQLite's own check.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use pellucid::restore::{verify_checksums, Media, PageTarget};
use pellucid::Result as Outcome;
use pellucid_sqlite::backup::{open_media, Chain};
use pellucid_sqlite::seal_request::{Credentials, Request};

use super::image;
use super::make::processors;
use super::{about_media, rate};
use crate::exit;
use crate::keys::OpenWith;
use crate::output::{seconds, Failure, Output, Unit};

/// What `verify` takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid verify app.bak\n  pellucid verify app.bak --open\n  \
                  pellucid verify monday.bak --base sunday.bak --check")]
pub struct VerifyArgs {
    /// The files of the backup, all stripes of it
    #[arg(required = true, value_name = "MEDIA")]
    media: Vec<PathBuf>,
    /// Which backup set, from 1; without it, all
    #[arg(long, value_name = "N")]
    position: Option<u32>,
    /// Also open and decompress every page, with the key
    #[arg(long)]
    open: bool,
    /// Also let SQLite check the database that would be restored, in memory or in a temporary encrypted file
    #[arg(long)]
    check: bool,
    /// For a differential: the files of the full backup it is based on, if that is not on the same media
    #[arg(long, num_args = 1.., value_name = "FILE")]
    base: Vec<PathBuf>,
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
    let first = &args.media[0];
    let about = |error: pellucid::Error| about_media(error, first);
    let media = open_media(&args.media).map_err(about)?;
    let base = match args.base.is_empty() {
        true => None,
        false => Some(open_media(&args.base).map_err(about)?),
    };
    let positions = match args.position {
        Some(position) => position..=position,
        None => 1..=media.sets().max(1),
    };
    let mut code = ExitCode::SUCCESS;
    for position in positions {
        let started = Instant::now();
        let read = checksums(&media, position, output).map_err(about)?;
        let mut level = "checksums and hash tree of what is stored (no key)";
        let chain = || {
            let credentials = Credentials::gather(&Request::default())?;
            Chain::open(&media, base.as_ref().unwrap_or(&media), position, &credentials)
        };
        if args.check {
            image::check(&chain().map_err(about)?, output).map_err(|f| f.about(first))?;
            level =
                "restored to a copy, which SQLite finds whole; opened and decompressed with the \
                     key; checksums and hash tree";
        } else if args.open {
            open(&media, position, output).map_err(about)?;
            level = "opened and decompressed with the key; checksums and hash tree";
        }
        let took = started.elapsed();
        // SQL Server's message 3262.
        output.line(format!(
            "The backup set on file {position} is valid: {level}; {} in {}, {}.",
            crate::output::bytes(read),
            seconds(took),
            rate(read, took.as_secs_f64())
        ));
        let damaged = media
            .set(position)
            .map_err(about)?
            .iter()
            .flatten()
            .any(|(_, set)| set.manifest.damaged);
        if damaged {
            code = ExitCode::from(exit::DAMAGE);
            output.warning(format!(
                "the backup set on file {position} is of a damaged database: pages that could not be read when it was \
                 backed up are zeros in it"
            ));
        }
        output.facts(&serde_json::json!({
            "position": position, "valid": true, "damaged": damaged, "bytes": read,
            "opened": args.open || args.check, "checked": args.check, "seconds": took.as_secs_f64(),
        }));
    }
    if args.position.is_none() {
        media.last().map_err(about)?;
        super::look::tails(&media, output);
    }
    if !args.open && !args.check {
        output.line(
            "Without the key this shows that nothing was damaged, not that nobody replaced it; \
             `--open` does.",
        );
    }
    Ok(code)
}

fn checksums(media: &Media, position: u32, output: &Output) -> Outcome<u64> {
    let bar = output.progress("reading checksums", Unit::Bytes);
    let sets = media.set(position)?;
    let all: u64 = sets.iter().flatten().map(|(_, set)| set.manifest_at - set.at).sum();
    bar.set_length(all);
    let mut read = 0;
    for (family, set) in sets.into_iter().flatten() {
        read += verify_checksums(family, set, &mut |more| bar.inc(more))?.bytes;
    }
    bar.finish_and_clear();
    Ok(read)
}

fn open(media: &Media, position: u32, output: &Output) -> Outcome<()> {
    let credentials = Credentials::gather(&Request::default())?;
    let set = pellucid::restore::OpenSet::open(media, position, &credentials)?;
    let bar = output.progress("opening pages", Unit::Pages);
    bar.set_length(u64::from(set.manifest().pages));
    pellucid::restore::restore_pages(&set, &Nowhere, processors(), &mut |pages| {
        bar.set_position(u64::from(pages));
    })?;
    bar.finish_and_clear();
    Ok(())
}
