//! `header`, `files` and `label`: what media say of themselves, to anybody.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use pellucid::hash::hex;
use pellucid::media::{Description, SetHeader, SetKeys};
use pellucid::protector::Protector;
use pellucid::shown::Shown;
use pellucid::{Algorithm, Error};
use pellucid_backup::job::{open_media, refuse_looked_at};
use pellucid_backup::restore::{FamilySet, Media, Tail};
use pellucid_vfs::seal_request::{Credentials, Request};

use super::{about_media, moment};
use crate::keys::OpenWith;
use crate::output::{bytes, date, list, pad, table, Failure, Output};

/// What `header` takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid header app.bak")]
pub struct HeaderArgs {
    #[command(flatten)]
    media: MediaArgs,
}

/// What `files` takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid files app.bak")]
pub struct FilesArgs {
    #[command(flatten)]
    media: MediaArgs,
    /// Number of the backup set, from 1
    #[arg(long, value_name = "N", default_value_t = 1)]
    position: u32,
}

/// What `label` takes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid label app.bak")]
pub struct LabelArgs {
    #[command(flatten)]
    media: MediaArgs,
}

#[derive(Debug, Args)]
struct MediaArgs {
    /// Files of the backup
    #[arg(required = true, value_name = "MEDIA")]
    media: Vec<PathBuf>,
    #[command(flatten)]
    with: OpenWith,
}

impl MediaArgs {
    fn open(&self) -> Result<Media, Failure> {
        self.with.offer()?;
        open_media(&self.media).map_err(|error| about_media(error, &self.media[0]))
    }
}

/// The backup sets on media.
pub fn header(args: &HeaderArgs, output: &Output) -> Result<ExitCode, Failure> {
    super::register()?;
    let media = args.media.open()?;
    let credentials = Credentials::gather(&Request::default())?.for_many();
    let mut rows = Vec::new();
    for position in 1..=media.sets() {
        let sets = media.set(position)?;
        let Some((_, set)) = sets.first().and_then(|copies| copies.first()) else { continue };
        let described = described(&set.header, &credentials);
        if let Err(error) = refuse_looked_at(&media, position, &args.media.media) {
            output.warning(Failure::from(error).message);
        }
        output.facts(&facts(set, described.as_ref()));
        rows.push(row(set, described.as_ref()));
    }
    if rows.is_empty() {
        output.line("There is no whole backup set on these media.");
    } else {
        let mut shown = table([
            "set",
            "type",
            "database",
            "begun (UTC)",
            "pages",
            "size",
            "stored",
            "encryption",
            "under",
        ]);
        shown.add_rows(rows);
        output.line(shown);
    }
    tails(&media, output);
    Ok(ExitCode::SUCCESS)
}

/// What is said of a mirror that is behind.
pub fn left_out(path: &Path) -> String {
    format!("`{}`: it holds another backup set than its mirrors: it was left out", path.shown())
}

/// What is behind the last whole set of each file, and which were left out.
pub fn tails(media: &Media, output: &Output) {
    media.stale().iter().for_each(|path| output.warning(left_out(path)));
    if let Err(error) = media.refuse_cut() {
        output.warning(error.to_string());
    }
    for family in media.families().iter().flatten() {
        let name = family.source.name();
        match &family.tail {
            Tail::Clean => {}
            Tail::Interrupted { position, bytes: count, .. } => output.warning(format!(
                "`{}`: a backup was interrupted: {} of set {position}, which nobody can restore",
                name.shown(),
                bytes(*count)
            )),
            Tail::Damaged(error @ Error::Unsupported { .. }) => output.warning(format!(
                "`{}`: not to be read by this version behind byte {}: {error}",
                name.shown(),
                family.end
            )),
            Tail::Damaged(error) => output.warning(format!(
                "`{}`: damaged behind byte {}: {error}",
                name.shown(),
                family.end
            )),
        }
    }
}

/// What only the key tells.
pub fn described(header: &SetHeader, credentials: &Credentials) -> Option<Description> {
    match header.algorithm {
        None => header.described(None).ok(),
        Some(_) => header.described(Some(&keys_of(header, credentials)?)).ok(),
    }
}

/// The keys of a sealed set, if something at hand opens it.
pub fn keys_of(header: &SetHeader, credentials: &Credentials) -> Option<SetKeys> {
    let key = header.unwrap(credentials).ok()?;
    SetKeys::derive(&key, &header.set, header.algorithm?).ok()
}

fn kind(header: &SetHeader) -> &'static str {
    if header.copy_only {
        "copy-only"
    } else {
        header.kind.name()
    }
}

fn row(set: &FamilySet, described: Option<&Description>) -> Vec<String> {
    let header = &set.header;
    let under: Vec<_> = header
        .protectors()
        .unwrap_or_default()
        .iter()
        .map(|protector| match protector {
            Protector::Certificate(own) if own.is_hybrid() => {
                format!("{} (hybrid)", own.name().shown())
            }
            Protector::Certificate(own) => own.name().shown().to_string(),
            other => other.kind_name().to_owned(),
        })
        .collect();
    vec![
        header.position.to_string(),
        kind(header).to_owned(),
        described.map_or_else(
            || "(needs the key)".to_owned(),
            |known| known.database.shown().to_string(),
        ),
        moment(header.begun).chars().take(19).collect::<String>().replace('T', " "),
        set.manifest.pages.to_string(),
        bytes(set.manifest.content_bytes),
        bytes(set.manifest.stored_bytes),
        header.algorithm.map_or("none", Algorithm::name).to_owned(),
        under.join(", "),
    ]
}

fn facts(set: &FamilySet, described: Option<&Description>) -> serde_json::Value {
    let (header, manifest) = (&set.header, &set.manifest);
    let certificates = header.protectors().unwrap_or_default().into_iter().filter_map(
        |protector| match protector {
            Protector::Certificate(own) => Some(own),
            _ => None,
        },
    );
    let certificates: Vec<_> = certificates.collect();
    let certificate = certificates.first().map(|own| hex(own.thumbprint()));
    let encryptor = certificates.first().map_or("PASSWORD", |own| own.encryptor_type());
    let hybrid: Vec<_> = certificates.iter().filter(|own| own.is_hybrid()).collect();
    let zeros = |id: &[u8]| id.iter().all(|byte| *byte == 0);
    let known = |bytes: &[u8]| (!zeros(bytes)).then(|| hex(bytes));
    serde_json::json!({
        "position": header.position, "type": kind(header), "backup_set": hex(&header.set),
        "media_set": hex(&header.media_set), "families": header.families,
        "database": described.map(|known| &known.database), "path": described.map(|known| &known.path),
        "name": described.map(|known| &known.name), "description": described.map(|known| &known.description),
        "user": described.map(|known| &known.user), "machine": described.map(|known| &known.machine),
        "begun": moment(header.begun), "finished": moment(manifest.finished),
        "expires": (header.expires != 0).then(|| date(header.expires)),
        "pages": manifest.pages, "database_pages": header.pages, "page_size": header.page_size,
        "backup_size": manifest.content_bytes, "compressed_backup_size": manifest.stored_bytes,
        "compression": header.compression.name(),
        "key_algorithm": header.algorithm.map(Algorithm::name),
        "encryptor_thumbprint": certificate,
        "encryptor_type": header.algorithm.map(|_| encryptor),
        "hybrid_certificates": hybrid.iter().map(|own| hex(own.thumbprint())).collect::<Vec<_>>(),
        "tde_thumbprint": known(&header.source_thumbprint),
        "sealed_source": header.sealed_source, "differential_base": known(&header.base),
        "damaged": manifest.damaged,
        "format_version": header.version() as u32, "padded": header.is_padded(),
        "signature_thumbprint": manifest.signing.signature().map(|own| hex(&own.thumbprint)),
    })
}

/// Names and values, one under the other.
fn show(rows: &[(&str, String)], output: &Output) {
    let mut shown = list();
    shown.add_rows(rows.iter().map(|(name, value)| [(*name).to_owned(), value.clone()]));
    pad(&mut shown);
    output.line(shown);
}

/// The files of the database in a backup set.
pub fn files(args: &FilesArgs, output: &Output) -> Result<ExitCode, Failure> {
    let media = args.media.open()?;
    let sets =
        media.set(args.position).map_err(|error| about_media(error, &args.media.media[0]))?;
    let Some((_, set)) = sets.first().and_then(|copies| copies.first()) else {
        return Ok(ExitCode::SUCCESS);
    };
    let header = &set.header;
    let described = described(header, &Credentials::gather(&Request::default())?);
    let size = u64::from(header.pages) * u64::from(header.page_size);
    let hidden = || "(needs the key)".to_owned();
    show(
        &[
            (
                "logical name",
                described.as_ref().map_or_else(hidden, |known| known.database.shown().to_string()),
            ),
            (
                "file",
                described.as_ref().map_or_else(hidden, |known| known.path.shown().to_string()),
            ),
            ("size", bytes(size)),
            ("pages", format!("{} of {} bytes", header.pages, header.page_size)),
            ("encrypted database", if header.sealed_source { "yes" } else { "no" }.to_owned()),
        ],
        output,
    );
    output.facts(&serde_json::json!({
        "logical_name": described.as_ref().map(|known| &known.database),
        "physical_name": described.as_ref().map(|known| &known.path),
        "size": size, "pages": header.pages, "page_size": header.page_size,
        "tde_thumbprint": header.sealed_source.then(|| hex(&header.source_thumbprint)),
    }));
    Ok(ExitCode::SUCCESS)
}

/// What the media header says.
pub fn label(args: &LabelArgs, output: &Output) -> Result<ExitCode, Failure> {
    let media = args.media.open()?;
    let header = media.header();
    show(
        &[
            ("media name", header.name.shown().to_string()),
            ("description", header.description.clone()),
            ("media set", hex(&header.media_set)),
            ("made", moment(header.made)),
            ("families", header.families.to_string()),
            ("copies of each", header.mirrors.to_string()),
            ("compressed", if header.compressed { "yes" } else { "no" }.to_owned()),
            ("encrypted", if header.encrypted { "yes" } else { "no" }.to_owned()),
            ("backup sets", media.sets().to_string()),
        ],
        output,
    );
    output.facts(&serde_json::json!({
        "media_name": header.name, "media_description": header.description,
        "media_set": hex(&header.media_set), "made": moment(header.made),
        "families": header.families, "mirrors": header.mirrors,
        "compressed": header.compressed, "encrypted": header.encrypted, "sets": media.sets(),
    }));
    Ok(ExitCode::SUCCESS)
}
