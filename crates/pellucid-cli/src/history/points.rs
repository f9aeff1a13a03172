//! `history --points`: to which points in time backups lead.

use std::path::{Path, PathBuf};

use pellucid::hash::hex;
use pellucid::lsn::Lsn;
use pellucid::shown::Shown;
use pellucid_backup::history::whole_name;
use pellucid_backup::job::{
    open_family, shown_moment, ForkPoints, Gap, Library, MarkPoint, Missing, Moment, Range,
};
use pellucid_engine::log_chain::{waiting, Waiting};
use pellucid_vfs::seal_request::{Credentials, Request};

use crate::backup::{left_out, moment};
use crate::keys::OpenWith;
use crate::output::{name, names, table, Failure, Output};

/// Media, what of them is not there, and what waits for a log backup.
#[derive(Default)]
pub(super) struct Known {
    pub(super) media: Vec<PathBuf>,
    pub(super) absent: Vec<PathBuf>,
    pub(super) waiting: Option<Waiting>,
}

/// Shows the points of one database by its history, or of media.
pub fn show(paths: &[PathBuf], with: &OpenWith, output: &Output) -> Result<(), Failure> {
    with.offer()?;
    let known = match paths {
        [path] if open_family(path).is_err() && !is_url(path) => of_database(path, output)?,
        media => Known { media: media.to_vec(), ..Known::default() },
    };
    let credentials = Credentials::gather(&Request::default())?.for_many();
    let library = Library::open(&known.media)?;
    let forks = library.points(&credentials)?;
    for path in library.stale() {
        output.warning(left_out(&path));
    }
    for path in &known.absent {
        output.warning(format!("`{}`: the history knows it, and it is not there", path.shown()));
    }
    if forks.is_empty() {
        output.line("No backup of a chain of log backups is among these.");
    }
    forks.iter().for_each(|fork| show_fork(fork, &library, output));
    if let Some(waiting) = known.waiting.filter(Waiting::is_some) {
        output.line(format!(
            "The commits behind LSN {} are in no log backup yet; the last one is LSN {}.",
            waiting.backed_up, waiting.last
        ));
    }
    output.facts(&serde_json::json!({
        "forks": forks.iter().map(|fork| facts(fork, &library)).collect::<Vec<_>>(),
        "absent": names(&known.absent),
        "waiting": known.waiting.filter(Waiting::is_some).map(|waiting| serde_json::json!({
            "behind_lsn": waiting.backed_up.to_string(), "last_lsn": waiting.last.to_string(),
            "bytes": waiting.bytes,
        })),
    }));
    Ok(())
}

pub(super) fn is_url(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains("://"))
}

/// The files of the sets that the history has of a database.
pub(super) fn of_database(path: &Path, output: &Output) -> Result<Known, Failure> {
    let whole = whole_name(path).display().to_string();
    let sets = super::open()?.map_or(Ok(Vec::new()), |history| history.sets(None))?;
    let own =
        sets.iter().filter(|set| set.path == whole && set.gone.is_empty() && !set.fork.is_empty());
    let mut files: Vec<PathBuf> = own.flat_map(|set| &set.files).map(PathBuf::from).collect();
    files.sort();
    files.dedup();
    let is_there = |path: &PathBuf| is_url(path) || pellucid_files::paths::is_there(path);
    let (media, absent): (Vec<_>, _) = files.into_iter().partition(is_there);
    // Points are asked for when the database is gone, too.
    let waiting = match waiting(path) {
        Err(error) if media.is_empty() => return Err(error.into()),
        Err(error) => {
            output.warning(format!("which commits no log backup has is not known: {error}"));
            None
        }
        Ok(waiting) => waiting,
    };
    Ok(Known { media, absent, waiting })
}

fn show_fork(fork: &ForkPoints, library: &Library, output: &Output) {
    output.line(format!("Recovery fork {}:", hex(&fork.fork)));
    let at = |moment: Moment| [shown_moment(moment.time), moment.lsn.to_string()];
    if !fork.ranges.is_empty() {
        let mut shown =
            table(["from", "LSN", "to", "LSN", "commits", "log backups", "begins with"]);
        shown.add_rows(fork.ranges.iter().map(|range| {
            let mut row = [at(range.from), at(range.to)].concat();
            row.extend([range.commits.to_string(), range.logs.to_string()]);
            row.push(base_of(range, library).shown().to_string());
            row
        }));
        output.line(shown);
    }
    fork.gaps.iter().for_each(|gap| output.line(in_words(gap)));
    if !fork.marks.is_empty() {
        let mut shown = table(["mark", "time", "LSN", "can be restored"]);
        shown.add_rows(fork.marks.iter().map(|mark| {
            let mut row = vec![mark.name.shown().to_string()];
            row.extend(at(mark.at));
            row.push(if mark.is_reached { "yes" } else { "no" }.to_owned());
            row
        }));
        output.line(shown);
    }
}

/// A file of the media that a range begins on.
fn base_of(range: &Range, library: &Library) -> PathBuf {
    library.files(range.base.media).first().cloned().unwrap_or_default()
}

fn in_words(gap: &Gap) -> String {
    let up_to = gap.until.map_or(String::new(), |until| format!(" up to LSN {until}"));
    match (gap.missing, gap.behind) {
        (Missing::Logs, Some(behind)) => {
            format!("Missing: the log backups behind LSN {behind}{up_to}.")
        }
        (_, Some(behind)) => format!(
            "Missing: the log backups behind LSN {behind}; without them no full backup leads to the commits{up_to}."
        ),
        (_, None) => format!("Missing: an earlier full backup; the commits before{up_to} need it.")
            .replace("before up to", "before"),
    }
}

fn facts(fork: &ForkPoints, library: &Library) -> serde_json::Value {
    let lsn = |lsn: Option<Lsn>| lsn.map(|lsn| lsn.to_string());
    let range = |range: &Range| {
        serde_json::json!({
            "from_lsn": range.from.lsn.to_string(), "from": moment(range.from.time),
            "to_lsn": range.to.lsn.to_string(), "to": moment(range.to.time),
            "commits": range.commits, "log_backups": range.logs,
            "begins_with": { "file": name(base_of(range, library)), "position": range.base.position },
        })
    };
    let gap = |gap: &Gap| {
        serde_json::json!({
            "behind_lsn": lsn(gap.behind), "until_lsn": lsn(gap.until),
            "missing": match gap.missing {
                Missing::Logs => "log backups",
                Missing::Base => "full backup",
            },
        })
    };
    let mark = |mark: &MarkPoint| {
        serde_json::json!({
            "name": mark.name, "lsn": mark.at.lsn.to_string(), "time": moment(mark.at.time),
            "can_be_restored": mark.is_reached,
        })
    };
    serde_json::json!({
        "recovery_fork": hex(&fork.fork),
        "ranges": fork.ranges.iter().map(range).collect::<Vec<_>>(),
        "gaps": fork.gaps.iter().map(gap).collect::<Vec<_>>(),
        "marks": fork.marks.iter().map(mark).collect::<Vec<_>>(),
    })
}
