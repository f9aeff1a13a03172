//! `history --timeline`: the backups of a chain along time, what they lead to and what they lack.

mod draw;
mod page;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use pellucid::hash::hex;
use pellucid::lsn::Lsn;
use pellucid::media::Kind;
use pellucid::shown::Shown;
use pellucid::Subject;
use pellucid_backup::archive::media_in;
use pellucid_backup::job::{open_family, Covers, Range, Timeline, TimelineFork, TimelineSet};
use pellucid_engine::inspect::inspect;
use pellucid_engine::log_chain::Waiting;
use pellucid_vfs::seal_request::{Credentials, Request};
use serde_json::{json, Value};

use super::points::{is_url, of_database, Known};
use super::HistoryArgs;
use crate::archived::Archived;
use crate::backup::moment;
use crate::exit;
use crate::output::{name, names, now, Failure, Output};

/// All that a picture shows.
struct Picture {
    forks: Vec<Fork>,
    /// What is drawn begins and ends here, in microseconds since 1970.
    from: u64,
    until: u64,
    /// Sentences below it.
    notes: Vec<String>,
}

/// A fork with what is drawn of it.
struct Fork {
    fork: [u8; 16],
    sets: Vec<Set>,
    ranges: Vec<Range>,
    holes: Vec<Hole>,
}

struct Set {
    set: TimelineSet,
    file: PathBuf,
    /// `archive --keep` removes it.
    goes: bool,
}

/// From when to when nothing can be restored.
struct Hole {
    /// The last point before it; none if there is none.
    from: Option<(u64, Lsn)>,
    /// The first point behind it; none if there is none.
    until: Option<(u64, Lsn)>,
}

/// Shows it. Exit status 1 if something could not be read.
pub fn show(args: &HistoryArgs, output: &Output) -> Result<ExitCode, Failure> {
    args.with.offer()?;
    let (known, archived) = known_of(&args.timeline, output)?;
    let credentials = Credentials::gather(&Request::default())?.for_many();
    let found = Timeline::of(&known.media, &credentials)?;
    for unread in &found.unread {
        output.warning(format!("`{}`: it is left out: {}", unread.path.shown(), unread.error));
    }
    for path in &known.absent {
        output.warning(format!("`{}`: the history knows it, and it is not there", path.shown()));
    }
    let forks: Vec<Fork> =
        found.forks.iter().map(|fork| Fork::of(fork, &found, args.keep)).collect();
    let waiting = known.waiting.filter(Waiting::is_some);
    let shown = Picture {
        from: forks.iter().filter_map(Fork::begins).min().unwrap_or(0),
        until: forks.iter().filter_map(Fork::ends).max().unwrap_or(0),
        notes: notes(&waiting, archived.as_ref()),
        forks,
    };
    if shown.forks.is_empty() {
        output.line("No backup of a chain of log backups is among these.");
    }
    draw::draw(&shown, output);
    if let Some(path) = &args.html {
        let page = page::page(&shown)?;
        let mut file =
            pellucid_files::regular::create_given(path).map_err(|error| unwritten(path, error))?;
        file.write_all(page.as_bytes()).map_err(|error| unwritten(path, error))?;
        output.line(format!("The page is in {}.", path.shown()));
    }
    output.facts(&json!({
        "timeline": shown.forks.iter().map(Fork::facts).collect::<Vec<_>>(),
        "unread": names(found.unread.iter().map(|one| one.path.clone()).collect::<Vec<_>>()),
        "absent": names(&known.absent),
        "waiting": waiting.map(|waiting| json!({
            "behind_lsn": waiting.backed_up.to_string(), "last_lsn": waiting.last.to_string(),
            "bytes": waiting.bytes,
        })),
        "archived": archived.as_ref().map(Archived::facts),
    }));
    Ok(match found.unread.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(exit::FAILED),
    })
}

fn unwritten(path: &Path, source: std::io::Error) -> Failure {
    pellucid::Error::Io { subject: Subject::File(path.to_owned()), source }.into()
}

/// The media of a database by the history, or those that are named, with those of directories and stores.
fn known_of(paths: &[PathBuf], output: &Output) -> Result<(Known, Option<Archived>), Failure> {
    let mut media = Vec::new();
    let mut is_place = false;
    for path in paths {
        match media_in(path).map_err(|error| Failure::from(error).about(path))? {
            Some(found) => {
                is_place = true;
                media.extend(found);
            }
            None => media.push(path.clone()),
        }
    }
    match paths {
        [path] if !is_place && !is_url(path) && open_family(path).is_err() => {
            Ok((of_database(path, output)?, archived(path)))
        }
        _ => Ok((Known { media, ..Known::default() }, None)),
    }
}

fn archived(path: &Path) -> Option<Archived> {
    Archived::of_found(&inspect(path).ok()?)
}

/// What is lost with the machine.
fn notes(waiting: &Option<Waiting>, archived: Option<&Archived>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(waiting) = waiting {
        notes.push(format!(
            "!! No log backup has the commits behind LSN {} up to LSN {}: they are lost if this machine is gone now.",
            waiting.backed_up, waiting.last
        ));
    }
    if let Some(archived) = archived {
        let behind = match archived.behind {
            0 => "has all that was committed".to_owned(),
            behind => format!("is {} behind", span(behind * 1_000_000)),
        };
        notes.push(format!("`{}` {behind}.", archived.place().shown()));
    }
    notes
}

impl Fork {
    fn of(fork: &TimelineFork, found: &Timeline, keep: Option<Duration>) -> Self {
        let goes = kept_from(fork, keep);
        let sets = fork.sets.iter().map(|set| Set {
            set: *set,
            file: found.library.files(set.spot.media).first().cloned().unwrap_or_default(),
            goes: goes.is_some_and(|(time, lsn)| match set.kind {
                Kind::Full => set.begun < time,
                Kind::Log => set.last <= lsn,
                Kind::Differential => false,
            }),
        });
        let mut one = Self {
            fork: fork.points.fork,
            sets: sets.collect(),
            ranges: fork.points.ranges.clone(),
            holes: Vec::new(),
        };
        one.holes = one.find_holes();
        one
    }

    /// What lies between the stretches.
    fn find_holes(&self) -> Vec<Hole> {
        let mut holes = Vec::new();
        let mut reached: Option<(u64, Lsn)> = None;
        let lost = |set: &&Set| set.set.covers == Covers::Nothing && set.set.commits > 0;
        let lost: Vec<&Set> = self.sets.iter().filter(lost).collect();
        for range in &self.ranges {
            let begins = (range.from.time, range.from.lsn);
            let is_hole = match reached {
                Some((_, lsn)) => begins.1 > lsn,
                None => lost.iter().any(|set| set.set.last <= begins.1),
            };
            if is_hole {
                holes.push(Hole { from: reached, until: Some(begins) });
            }
            let end = (range.to.time, range.to.lsn);
            if reached.is_none_or(|(_, lsn)| lsn < end.1) {
                reached = Some(end);
            }
        }
        let is_behind = |set: &&Set| reached.is_none_or(|(_, lsn)| set.set.last > lsn);
        if lost.iter().any(is_behind) {
            holes.push(Hole { from: reached, until: None });
        }
        holes
    }

    fn begins(&self) -> Option<u64> {
        self.sets.iter().map(|set| set.set.from).min()
    }

    fn ends(&self) -> Option<u64> {
        let ranges = self.ranges.iter().map(|range| range.to.time);
        self.sets.iter().map(|set| set.set.begun).chain(ranges).max()
    }

    fn facts(&self) -> Value {
        let point = |point: Option<(u64, Lsn)>| point.map(|(time, _)| moment(time));
        let lsn = |point: Option<(u64, Lsn)>| point.map(|(_, lsn)| lsn.to_string());
        json!({
            "recovery_fork": hex(&self.fork),
            "sets": self.sets.iter().map(Set::facts).collect::<Vec<_>>(),
            "can_be_restored": self.ranges.iter().map(|range| json!({
                "from": moment(range.from.time), "from_lsn": range.from.lsn.to_string(),
                "to": moment(range.to.time), "to_lsn": range.to.lsn.to_string(),
            })).collect::<Vec<_>>(),
            "cannot_be_restored": self.holes.iter().map(|hole| json!({
                "behind": point(hole.from), "behind_lsn": lsn(hole.from),
                "before": point(hole.until), "before_lsn": lsn(hole.until),
            })).collect::<Vec<_>>(),
        })
    }
}

/// With `archive --keep`: the full set that is counted on, by its moment and its number.
fn kept_from(fork: &TimelineFork, keep: Option<Duration>) -> Option<(u64, Lsn)> {
    let now = u64::try_from(now()).unwrap_or(0);
    let from = now.saturating_sub(keep?.as_secs()).saturating_mul(1_000_000);
    let fulls = fork.sets.iter().filter(|set| set.kind == Kind::Full && set.begun <= from);
    fulls.max_by_key(|set| set.begun).map(|set| (set.begun, set.first))
}

impl Set {
    fn kind(&self) -> &'static str {
        match self.set.kind {
            Kind::Full => "full",
            Kind::Differential => "differential",
            Kind::Log => "log",
        }
    }

    fn facts(&self) -> Value {
        json!({
            "type": self.kind(), "file": name(&self.file), "position": self.set.spot.position,
            "from": moment(self.set.from), "to": moment(self.set.begun),
            "first_lsn": self.set.first.to_string(), "last_lsn": self.set.last.to_string(),
            "commits": self.set.commits,
            "use": match self.set.covers {
                Covers::Points => "restore",
                Covers::Nothing => "none: sets before it are missing",
                Covers::Branch => "a branch that was left",
            },
            "archive_keep_removes": self.goes,
        })
    }
}

impl Hole {
    fn in_words(&self) -> String {
        let at = |point: (u64, Lsn)| format!("{} (LSN {})", clock(point.0), point.1);
        match (self.from, self.until) {
            (Some(from), Some(until)) => {
                format!("!! Nothing between {} and {} can be restored.", at(from), at(until))
            }
            (None, Some(until)) => format!("!! Nothing before {} can be restored.", at(until)),
            (Some(from), None) => format!("!! Nothing behind {} can be restored.", at(from)),
            (None, None) => "!! Nothing can be restored: no full backup leads to these.".to_owned(),
        }
    }
}

/// `2026-11-25 14:02:59`, UTC, from microseconds since 1970.
fn clock(micros: u64) -> String {
    crate::output::date_time(micros / 1_000_000)
}

/// `3 d 4 h`, from microseconds.
fn span(micros: u64) -> String {
    let seconds = micros / 1_000_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{} s", seconds % 60),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}
