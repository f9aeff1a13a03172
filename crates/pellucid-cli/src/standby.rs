//! `standby`: keeps a copy that programs read up to date from what `archive` ships.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use pellucid::shown::{printable, Shown};
use pellucid_backup::archive::{follow, FollowError, FollowNews, FollowOptions, Follower};
use pellucid_backup::history::{History, Reached, StandbyRecord};
use pellucid_backup::job::shown_moment;
use pellucid_engine::inspect::{Inspection, Kind};
use pellucid_host::DatabaseError;
use serde_json::{json, Value};

use crate::archive::duration;
use crate::backup;
use crate::interrupted;
use crate::keys::OpenWith;
use crate::output::{moment, name, now, seconds, table, Failure, Grid, Id, Output, Unit};

/// What `standby` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid standby s3://bucket/app --to ro.db\n  pellucid standby /backup \
                  --to ro.db --once\n  pellucid run -- sqlite3 -readonly ro.db\n  pellucid restore \
                  --online --to ro.db"
)]
pub struct StandbyArgs {
    /// Directory, or URL in a store, that `archive` ships to; of several databases the folder of one
    place: PathBuf,
    /// The copy: made at first, then kept up to date; `restore --online` makes it a database like any other
    #[arg(long, value_name = "DB")]
    to: PathBuf,
    /// How often to look for new commits: `1s`, `500ms`, `5m`
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    every: Duration,
    /// Apply what there is and end, for a timer
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    with: OpenWith,
    /// Seconds to wait for locks of other connections
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    timeout: u64,
}

/// Follows a place.
pub fn run(args: &StandbyArgs, output: &Output) -> Result<ExitCode, Failure> {
    args.with.offer()?;
    pellucid_bundled::register().map_err(|error| {
        Failure::new(Id::SqliteNotStarted, error, "the bundled SQLite could not start")
    })?;
    let options = FollowOptions {
        every: args.every,
        once: args.once,
        timeout: Duration::from_secs(args.timeout),
    };
    let mut follower =
        Follower::new(&args.place, &args.to, options).map_err(|error| refused(error, &args.to))?;
    let shown = args.to.shown().to_string();
    interrupted::answer_with(format_args!(
        "{shown} stays a standby as of its last commit, and the next run goes on"
    ));
    let bar = output.progress("restoring", Unit::Pages);
    let (mut sets_applied, mut commits_applied, mut made) = (0, 0, false);
    let followed = follow(&mut follower, &mut |news| match news {
        FollowNews::Restoring(pages, all) => {
            bar.set_length(u64::from(all));
            bar.set_position(u64::from(pages));
        }
        FollowNews::Made(at) => {
            bar.finish_and_clear();
            made = true;
            output.line(format!("{shown}: a standby{}.", up_to(&at)));
        }
        FollowNews::Told(what) => output.warning(format!("`{shown}`: {what}")),
        FollowNews::Applied { sets, commits, at } => {
            sets_applied += sets;
            commits_applied += commits;
            let commits = match commits {
                1 => "1 commit".to_owned(),
                commits => format!("{commits} commits"),
            };
            output.line(format!("{shown}: {commits} applied{}", up_to(&at)));
        }
        FollowNews::Failed(error, again) => output.warning(format!(
            "{}; the standby stays as it is, and the next try is in {}",
            refused(error, &args.to).message,
            seconds(again)
        )),
        FollowNews::GoesOn(after) => {
            output.warning(format!("`{shown}`: it goes on, after {}", seconds(after)));
        }
    });
    bar.finish_and_clear();
    let at = match followed {
        Ok(at) => at,
        Err(FollowError::NoStandby(error)) => {
            return Err(Failure::from(DatabaseError::from(error)).about(&args.to))
        }
        Err(FollowError::Other(error)) => return Err(refused(error, &args.to)),
    };
    output.facts(&json!({
        "database": name(&args.to), "place": name(&args.place), "made": made, "sets": sets_applied,
        "commits": commits_applied, "last_lsn": at.lsn.to_string(), "last_commit": committed(&at),
    }));
    Ok(ExitCode::SUCCESS)
}

fn committed(at: &Reached) -> Option<String> {
    (at.committed > 0).then(|| backup::moment(at.committed))
}

fn up_to(at: &Reached) -> String {
    match at.committed {
        0 => format!(", up to LSN {}", at.lsn),
        time => format!(", up to LSN {} of {}", at.lsn, shown_moment(time)),
    }
}

fn refused(error: DatabaseError, to: &Path) -> Failure {
    match error {
        DatabaseError::InUse { .. } => {
            let hint = format!("{error}; stop these programs, or wait longer with `--timeout`");
            let message = pellucid::message::IN_USE;
            Failure::new(Id::InUse, message.text, hint).number(message.number).about(to)
        }
        error => Failure::from(error),
    }
}

/// So late a standby may be before anybody is told: a minute, or ten of its intervals; an hour where a timer renews it.
const LATE_SECONDS: u64 = 60;
const LATE_INTERVALS: u64 = 10;
const LATE_SECONDS_OF_TIMER: u64 = 3600;
const MICROS: u64 = 1_000_000;

/// How far a standby of this instance is.
#[derive(Debug)]
pub struct Followed {
    record: StandbyRecord,
    /// Seconds since all that was in the place was here.
    pub behind: u64,
}

impl Followed {
    /// What is known of a database; none if nobody here keeps it up to date, or it is no standby.
    pub fn of_found(found: &Inspection) -> Option<Self> {
        let Kind::Sealed(sealed) = &found.kind else { return None };
        if sealed.header.standing() != pellucid::header::Standing::Standby {
            return None;
        }
        pellucid_bundled::register().ok()?;
        // A history that cannot be read says nothing.
        let record = History::open().ok()??.standby(&found.path).ok()??;
        let is_own = record.file_id == pellucid::hash::hex(&sealed.header.file_id);
        let now = u64::try_from(now()).unwrap_or(0);
        let behind = now.saturating_sub(record.until / MICROS);
        is_own.then_some(Self { record, behind })
    }

    fn is_failing(&self) -> bool {
        !self.record.error.is_empty()
    }

    fn is_late(&self) -> bool {
        let late = match self.record.is_once {
            true => LATE_SECONDS_OF_TIMER,
            false => LATE_SECONDS.max(LATE_INTERVALS * self.record.every_seconds),
        };
        self.behind > late
    }

    /// What is wrong with it, and what to do.
    pub fn trouble(&self, path: &Path) -> Option<(String, &'static str)> {
        let (shown, place) = (path.shown(), self.record.place.shown());
        if self.is_failing() {
            let error = printable(&self.record.error);
            let told = format!("`{shown}`: it does not follow `{place}`: {error}");
            return Some((
                told,
                "it stays a standby as of its last commit; what follows it tries again by itself",
            ));
        }
        self.is_late().then(|| {
            let behind = seconds(Duration::from_secs(self.behind));
            let told = format!("`{shown}`: nobody has looked for {behind} whether `{place}` has later commits than it");
            (told, "see whether `pellucid standby` runs: `systemctl status 'pellucid-standby@*'`")
        })
    }

    /// For machines.
    pub fn facts(&self) -> Value {
        let record = &self.record;
        let at = |micros: u64| (micros > 0).then(|| moment(micros / MICROS));
        json!({
            "from": record.place, "last_lsn": record.at.lsn.to_string(), "last_commit": committed(&record.at),
            "complete_until": at(record.until), "behind_seconds": self.behind, "failing": self.is_failing(),
            "failing_since": at(record.failing_since), "last_seen": at(record.alive),
        })
    }
}

/// How far the standbys among `rows` are; none if there are none.
pub fn standby_table(rows: &[Inspection]) -> Option<Grid> {
    let mut table = table(["standby", "of", "last commit", "looked for more"]);
    for found in rows {
        let Some(followed) = Followed::of_found(found) else { continue };
        let record = &followed.record;
        let looked = match (followed.is_failing(), record.until) {
            (true, _) => "!! it fails".to_owned(),
            (false, 0) => "never".to_owned(),
            (false, _) => format!("{} ago", seconds(Duration::from_secs(followed.behind))),
        };
        let last = match record.at.committed {
            0 => format!("LSN {}", record.at.lsn),
            time => shown_moment(time),
        };
        let place = record.place.shown().to_string();
        table.add_row([found.path.shown().to_string(), place, last, looked]);
    }
    (!table.is_empty()).then_some(table)
}
