//! The rules for existing media: SQL Server's INIT, FORMAT, SKIP, expiry and media names.

use pellucid::clock::now_micros;
use pellucid::media::MediaHeader;
use pellucid::message::{self, Message};
use pellucid::shown::Shown;
use pellucid::{Error, Result, Subject};

use crate::restore::Media;

/// What a backup does with existing media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Leaves them, and makes no backup.
    Refuse,
    /// Adds a set behind theirs: NOINIT.
    Append,
    /// Replaces their sets once the new one is complete, and keeps their media header: INIT. A file
    /// that is neither media nor empty is left.
    Initialize,
    /// Replaces them once the new set is complete, media header included, without reading them:
    /// FORMAT. Any file is replaced that is not known to be something else: a database, its logs,
    /// keys.
    Format,
}

/// The rules that the caller asks for.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// What to do with existing media.
    pub existing: Existing,
    /// Does not check expiry and media name: SKIP.
    pub skip: bool,
    /// Follows SQL Server, which never appends an encrypted set, although the format could.
    pub parity: bool,
}

impl Rules {
    /// Checks that a set on media as in `wanted` may go on the existing media.
    ///
    /// # Errors
    /// SQL Server's message for the rule that forbids it.
    pub fn check(&self, media: &Media, wanted: &MediaHeader) -> Result<()> {
        let there = media.header();
        let device = device(media);
        if there.families != wanted.families {
            let counts = [there.families.to_string(), wanted.families.to_string()];
            return tell(message::FAMILIES_EXPECTED, &[&device, &counts[0], &counts[1]]);
        }
        if there.mirrors < wanted.mirrors {
            return tell(message::NEW_MIRROR, &[]);
        }
        if there.mirrors > wanted.mirrors {
            return Err(Error::misuse(
                Subject::MediaHeader,
                format!(
                    "the media set has {} copies of each file, and {} are named: name all, or use \
                     another media set",
                    there.mirrors, wanted.mirrors
                ),
            ));
        }
        let appended = self.existing == Existing::Append;
        if wanted.encrypted && (!there.encrypted || (appended && self.parity)) {
            return tell(message::ENCRYPTION_NEEDS_FORMAT, &[]);
        }
        if there.encrypted && !wanted.encrypted {
            return needs_format("NO_ENCRYPTION", "ENCRYPTION");
        }
        match (there.compressed, wanted.compressed) {
            (true, false) => return needs_format("NO_COMPRESSION", "COMPRESSION"),
            (false, true) => return needs_format("COMPRESSION", "NO_COMPRESSION"),
            _ => {}
        }
        if self.skip {
            return Ok(());
        }
        if !wanted.name.is_empty() && wanted.name != there.name {
            return Err(Error::misuse(
                Subject::MediaHeader,
                format!(
                    "the media set on `{device}` is called `{}`, not `{}`",
                    there.name, wanted.name
                ),
            ));
        }
        match (appended, unexpired(media)?) {
            (false, Some(day)) => tell(message::MEDIUM_NOT_EXPIRED, &[&device, &day]),
            _ => Ok(()),
        }
    }
}

fn tell(message: Message, arguments: &[&str]) -> Result<()> {
    Err(Error::Message { message, text: message.with_all(arguments) })
}

fn needs_format(requested: &str, instead: &str) -> Result<()> {
    tell(message::OPTION_NEEDS_FORMAT, &[requested, requested, instead])
}

fn device(media: &Media) -> String {
    let first = media.families().first().and_then(|copies| copies.first());
    first.map_or(String::new(), |family| family.source.name().shown().to_string())
}

/// The latest day on which a set of the media expires. `None` if it is past.
fn unexpired(media: &Media) -> Result<Option<String>> {
    let mut latest = 0;
    for position in 1..=media.sets() {
        let families = media.set(position)?;
        let first = families.first().and_then(|copies| copies.first());
        latest = latest.max(first.map_or(0, |(_, set)| set.header.expires));
    }
    // All mirrors are replaced, so the sets of each of them count, also if they disagree.
    let others = media.left_out().iter().flat_map(|family| &family.sets);
    latest = others.map(|set| set.header.expires).fold(latest, u64::max);
    let at = i64::try_from(latest)
        .ok()
        .and_then(|at| time::OffsetDateTime::from_unix_timestamp(at).ok());
    let to_come = latest > now_micros() / 1_000_000;
    Ok(at.filter(|_| to_come).map(|at| at.date().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::restore::{Family, FileSource};

    #[test]
    fn the_statements_never_append_an_encrypted_set_and_initialize_media_of_such() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("media");
        let header = MediaHeader::single([1; 16], true, true, 1);
        std::fs::write(&path, header.encode().unwrap()).unwrap();
        let family = Family::open(Box::new(FileSource::open(&path).unwrap())).unwrap();
        let media = Media::assemble(vec![family]).unwrap();
        let number = |existing, parity| {
            let rules = Rules { existing, skip: false, parity };
            rules.check(&media, &header).err().and_then(|error| error.number())
        };
        assert_eq!(number(Existing::Append, true), Some(3095));
        assert_eq!(number(Existing::Append, false), None);
        assert_eq!(number(Existing::Initialize, true), None);
    }
}
