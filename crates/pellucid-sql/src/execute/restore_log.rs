//! RESTORE LOG. A log is opened, checked and written down; the database is made when it is recovered.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pellucid::header::Standing;
use pellucid::lsn::Lsn;
use pellucid::media::{Description, Kind, LogCommit};
use pellucid::{Algorithm, Error, Subject};
use pellucid_backup::job::{processors, Point, Restored, Restoring};
use pellucid_backup::restore::{LogSet, OpenSet};
use pellucid_tsql::ast::RestoreFlag;
use pellucid_vfs::seal_request::{Credentials, Request};

use super::backup::{percent_processed, processed, successfully_processed, Stats};
use super::device::{told, Doing};
use super::restore::{check_media_name, not_ready, open, position, Options, Stop};
use super::steps::{Step, Steps};
use super::Done;
use crate::instance::{Known, State};
use crate::message::{table, Message};
use crate::session::Session;

/// How long a restore waits for programs that have the database open.
const WAIT: Duration = Duration::from_secs(10);
/// `sys.databases.recovery_model` of FULL and of SIMPLE.
const FULL: i64 = 1;
const SIMPLE: i64 = 3;

/// A log that was opened.
#[derive(Debug, Default)]
struct Log {
    set: [u8; 16],
    families: u16,
    position: u32,
    begun: u64,
    page_size: u32,
    fork: [u8; 16],
    first: Lsn,
    last: Lsn,
    commits: Vec<LogCommit>,
    pages: u32,
    facts: Description,
    /// What speaks against its place in the chain of its database.
    told: Vec<String>,
}

/// Where a log leads to.
#[derive(Debug, PartialEq, Eq)]
struct End {
    to: Lsn,
    /// When the last commit was that counts.
    time: u64,
    /// Why the point that was asked for is behind it.
    not_reached: Option<Message>,
}

impl Session {
    pub(super) fn restore_log(
        &mut self,
        known: &Known,
        devices: Vec<PathBuf>,
        options: &Options,
    ) -> Done {
        let started = Instant::now();
        let standing = self.databases.standing(known)?;
        let Some(from) = known
            .restored_from
            .as_ref()
            .filter(|_| known.state == State::Restoring || standing == Standing::Standby)
        else {
            return Err(not_ready().into());
        };
        let is_current = self.databases.current_name().eq_ignore_ascii_case(&known.name);
        if is_current {
            return Err(Message::of(table::RESTORE_OF_CURRENT, [&known.name]).into());
        }
        let steps = Steps::parse(from);
        let log = self.read(&devices, options)?;
        goes_on(&log, &steps, options)?;
        let end = end(&log, &steps, options.stop.as_ref())?;
        let steps = steps.with_log(Step {
            position: log.position,
            files: devices.clone(),
            is_log: true,
            fork: Some(log.fork),
            first: log.first,
            to: end.to,
            begun: log.begun,
            time: end.time,
            stops: options.stop.is_some() && end.not_reached.is_none(),
        });
        let recovers = !options.has(RestoreFlag::NoRecovery) && end.not_reached.is_none();
        match recovers {
            true => {
                self.roll_forward(known, &steps, options, "RESTORE LOG")?;
                if !options.standby {
                    self.keep_names(&known.name, Some(&log.facts))?;
                }
            }
            false => {
                self.databases.set_standing(known, Standing::Restoring)?;
                self.databases.instance.set(known, "state", &1)?;
                self.databases.instance.set(known, "restored_from", &steps.to_string())?;
                self.write_down(known, &log, options)?;
            }
        }
        if options.media.stats.is_some() {
            let mut stats = Stats::new(options.media.stats);
            let mut percents = Vec::new();
            stats.until(99.0, &mut |message| percents.push(message));
            percents.into_iter().for_each(|message| self.inform(message));
            self.inform(percent_processed(100));
        }
        log.told.iter().for_each(|what| self.inform(Message::of(table::REMARK_OF, [what])));
        let (pages, position) = (u64::from(log.pages), log.position);
        for (at, end, pages) in [(0, "", 0), (1, "_log", pages)] {
            let named = log.facts.server.files.get(at).map(|(name, _)| name.clone());
            let file = named.unwrap_or_else(|| format!("{}{end}", log.facts.database));
            self.inform(processed(pages, &known.name, &file, position));
        }
        if let Some(told) = end.not_reached {
            self.inform(told);
        }
        let page_bytes = u64::from(log.page_size);
        self.inform(successfully_processed("RESTORE LOG", pages, page_bytes, started.elapsed()));
        Ok(())
    }

    /// Opens a log, and asks who can have made it.
    fn read(&self, devices: &[PathBuf], options: &Options) -> Done<Log> {
        let failed = |error: Error| told(error.into(), devices, Doing::Reading);
        let media = open(devices)?;
        let position = position(options)?;
        check_media_name(&media, options)?;
        let credentials = Credentials::gather(&Request::default())?.for_many();
        let set = OpenSet::open(&media, position, &credentials).map_err(failed)?;
        let header = set.header();
        let place = header.version2.and_then(|own| own.chain);
        let (Kind::Log, Some(place)) = (header.kind, place) else {
            let what = "it is no log set: RESTORE DATABASE restores it";
            return Err(failed(Error::misuse(Subject::BackupSet(position), what)));
        };
        let commits = LogSet::open(&set).map_err(failed)?.commits().to_vec();
        let told = self.standing(&media, position, devices, &credentials)?;
        let (pages, facts) = (set.manifest().pages, set.description().clone());
        Ok(Log {
            set: header.set,
            families: header.families,
            position,
            begun: header.begun,
            page_size: header.page_size,
            fork: place.fork,
            first: place.first,
            last: place.last,
            commits,
            pages,
            facts,
            told,
        })
    }

    /// Makes the database of all sets that it had, and opens it to everybody, or to readers.
    pub(super) fn roll_forward(
        &mut self,
        known: &Known,
        steps: &Steps,
        options: &Options,
        command: &str,
    ) -> Done {
        let leave = if options.standby { Standing::Standby } else { Standing::Online };
        let target = steps.target();
        if target.is_none()
            && options.standby
            && steps.full().is_none_or(|full| full.fork.is_none())
        {
            return Err(Message::unsupported("STANDBY").into());
        }
        if let Some(target) = target {
            let done = self.apply_logs(known, steps, target, (options, command))?;
            self.tell_doubts(&done);
            if done.unrecorded.is_none() {
                self.note_history(known, &known.path, options, false)?;
            }
        }
        if target.is_none() {
            self.databases.set_standing(known, leave)?;
        }
        self.databases.instance.set(known, "state", &0)?;
        let from = options.standby.then(|| steps.to_string());
        self.databases.instance.set(known, "restored_from", &from)?;
        if options.standby {
            return Ok(());
        }
        let has_chain = steps.full().is_some_and(|full| full.fork.is_some());
        let model = match (has_chain, known.recovery_model) {
            // Only another model has a chain, whatever the media say of it.
            (true, SIMPLE) => FULL,
            (_, model) => model,
        };
        let online = Known { state: State::Online, ..known.clone() };
        Ok(self.databases.set_recovery(&online, model)?)
    }

    fn apply_logs(
        &mut self,
        known: &Known,
        steps: &Steps,
        target: Lsn,
        (options, command): (&Options, &str),
    ) -> Done<Restored> {
        let media = steps.files();
        let job = Restoring {
            media: media.clone(),
            base: None,
            position: None,
            point: Some(Point::Lsn(target)),
            only: steps.sets(),
            to: known.path.clone(),
            protections: Vec::new(),
            algorithm: Algorithm::Aes256,
            decrypted: false,
            plain_differential: false,
            allow_clear: false,
            allow_unsigned: false,
            replace: true,
            leave: if options.standby { Standing::Standby } else { Standing::Online },
            timeout: WAIT,
            workers: processors(),
        };
        self.databases.release(known)?;
        // The statement tells its steps by itself.
        let mut silent = options.clone();
        silent.media.stats = None;
        self.run_restore(&job, (command, &known.name), &silent)
            .map_err(|error| told(error, &media, Doing::Reading))
    }

    /// Into the history: a log that is going to be applied.
    fn write_down(&self, known: &Known, log: &Log, options: &Options) -> Done {
        let msdb = self.databases.instance.msdb();
        msdb.execute(
            "INSERT INTO restorehistory(restore_date, backup_set_id, restore_type, restart, device_count) VALUES \
             (strftime('%Y-%m-%d %H:%M:%f', 'now'), (SELECT backup_set_id FROM backupset WHERE backup_set_uuid = ?1), \
             'L', 0, ?2)",
            (pellucid::hash::hex(&log.set), log.families),
        )?;
        msdb.execute(
            "INSERT INTO restorefile VALUES (last_insert_rowid(), 1, NULL, ?1)",
            [known.path.display().to_string()],
        )?;
        self.note_history(known, &known.path, options, true)
    }
}

/// 4330, 4305 and 4326: whether the log goes on from where the database is.
fn goes_on(log: &Log, steps: &Steps, options: &Options) -> Done {
    let reached = steps.reached();
    if steps.full().is_none_or(|full| full.fork != Some(log.fork)) {
        return Err(Message::of(table::OTHER_FORK, []).into());
    }
    if log.first > reached {
        // What comes behind a point that was reached is not for this database.
        let stopped = steps.last().is_some_and(|step| step.stops) && options.stop.is_some();
        return Err(match stopped {
            true => Message::of(table::STOP_BEFORE_SET, []),
            false => Message::of(table::LOG_TOO_RECENT, [&log.first, &reached]),
        }
        .into());
    }
    let is_empty = log.commits.is_empty() && log.last == reached;
    match log.last <= reached && !is_empty {
        true => Err(Message::of(table::LOG_TOO_EARLY, [&log.last, &reached]).into()),
        false => Ok(()),
    }
}

/// Where the log leads to with this point. 4334, 4335 and 4338.
fn end(log: &Log, steps: &Steps, stop: Option<&Stop>) -> Result<End, Message> {
    let reached = steps.reached();
    let (before, was_begun) = steps
        .last()
        .map_or((0, None), |step| (step.time, (step.is_log && !step.stops).then_some(step.begun)));
    let behind = |not_reached| End {
        to: log.last.max(reached),
        time: log.commits.last().map_or(before, |commit| commit.time.max(before)),
        not_reached,
    };
    let new = || log.commits.iter().filter(|commit| commit.lsn > reached);
    // The pages of a backup that was made while programs committed are of any moment up to its end.
    let snapshot = steps.base().map_or(Lsn::NONE, |base| base.to);
    let at = |last: Option<&LogCommit>| {
        let to = last.map_or(reached, |commit| commit.lsn);
        let time = last.map_or(before, |commit| commit.time);
        match to < snapshot {
            true => Err(Message::of(table::STOP_TOO_EARLY, [])),
            false => Ok(End { to, time, not_reached: None }),
        }
    };
    match stop {
        None => Ok(behind(None)),
        Some(Stop::At(time)) => {
            if *time < before {
                return Err(Message::of(table::STOP_TOO_EARLY, []));
            }
            if was_begun.is_some_and(|begun| *time <= begun) {
                return Err(Message::of(table::STOP_BEFORE_SET, []));
            }
            if log.begun < *time {
                return Ok(behind(Some(Message::of(table::STOP_BEHIND_SET, []))));
            }
            at(new().take_while(|commit| commit.time <= *time).last())
        }
        Some(Stop::Mark { name, after, includes }) => {
            let is_number = name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("lsn:"));
            let mark = match is_number {
                true => {
                    let lsn = Lsn::parse(&name[4..]).filter(|lsn| !lsn.is_none());
                    Some(lsn.ok_or_else(|| Message::of(table::MARK_NOT_VALID, []))?)
                }
                false => log
                    .commits
                    .iter()
                    .find(|commit| commit.mark.as_deref() == Some(name) && commit.time >= *after)
                    .map(|commit| commit.lsn),
            };
            match mark {
                Some(lsn) if lsn <= reached => Err(Message::of(table::STOP_TOO_EARLY, [])),
                Some(lsn) if lsn <= log.last => at(new()
                    .take_while(|commit| commit.lsn < lsn || (*includes && commit.lsn == lsn))
                    .last()),
                _ => Ok(behind(Some(Message::of(table::MARK_BEHIND_SET, [])))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn commit(frame: u32, second: u64) -> LogCommit {
        LogCommit {
            lsn: Lsn::new(1, frame),
            time: second * SECOND,
            pages: 4,
            stepped_back: false,
            mark: (frame == 7).then(|| "here".to_owned()),
        }
    }

    /// Commits 5, 6 and 7, in the seconds 10, 20 and 30; begun in the second 40.
    fn log() -> Log {
        Log {
            begun: 40 * SECOND,
            fork: [9; 16],
            first: Lsn::new(1, 4),
            last: Lsn::new(1, 7),
            commits: vec![commit(5, 10), commit(6, 20), commit(7, 30)],
            ..Log::default()
        }
    }

    /// A full set of commit 4, in the second 5.
    fn full() -> Step {
        let (first, to) = (Lsn::new(1, 4), Lsn::new(1, 4));
        let (begun, time) = (5 * SECOND, 5 * SECOND);
        Step { fork: Some([9; 16]), first, to, begun, time, ..Step::default() }
    }

    fn leads_to(steps: &Steps, stop: Option<Stop>) -> Result<(u32, u32), u32> {
        match end(&log(), steps, stop.as_ref()) {
            Ok(end) => Ok((end.to.frame, end.not_reached.map_or(0, |told| told.number))),
            Err(message) => Err(message.number),
        }
    }

    fn mark(name: &str, includes: bool) -> Option<Stop> {
        Some(Stop::Mark { name: name.to_owned(), after: 0, includes })
    }

    #[test]
    fn a_log_leads_to_its_end_or_to_the_point_that_is_asked_for() {
        let steps = Steps::of(full());
        assert_eq!(leads_to(&steps, None), Ok((7, 0)));
        let at = |second: u64| leads_to(&steps, Some(Stop::At(second * SECOND)));
        assert_eq!(at(4), Err(4335));
        assert_eq!(at(9), Ok((4, 0)));
        assert_eq!(at(20), Ok((6, 0)));
        assert_eq!(at(29), Ok((6, 0)));
        assert_eq!(at(40), Ok((7, 0)));
        assert_eq!(at(41), Ok((7, 4322)));
        assert_eq!(leads_to(&steps, mark("here", true)), Ok((7, 0)));
        assert_eq!(leads_to(&steps, mark("here", false)), Ok((6, 0)));
        assert_eq!(leads_to(&steps, mark("there", true)), Ok((7, 4329)));
        let number = format!("lsn:{}", Lsn::new(1, 6));
        assert_eq!(leads_to(&steps, mark(&number, true)), Ok((6, 0)));
        assert_eq!(leads_to(&steps, mark(&number.to_uppercase(), false)), Ok((5, 0)));
        let far = format!("lsn:{}", Lsn::new(2, 1));
        assert_eq!(leads_to(&steps, mark(&far, true)), Ok((7, 4329)));
        assert_eq!(leads_to(&steps, mark("lsn:12", true)), Err(4334));
        assert_eq!(leads_to(&steps, mark("lsn:é", true)), Err(4334));
    }

    #[test]
    fn no_point_is_before_what_was_restored() {
        let before = Step {
            is_log: true,
            to: Lsn::new(1, 4),
            begun: 9 * SECOND,
            time: 6 * SECOND,
            ..full()
        };
        let steps = Steps::of(full()).with_log(before);
        let at = |second: u64| leads_to(&steps, Some(Stop::At(second * SECOND)));
        assert_eq!((at(5), at(8), at(9), at(10)), (Err(4335), Err(4338), Err(4338), Ok((5, 0))));
        let number = format!("lsn:{}", Lsn::new(1, 4));
        assert_eq!(leads_to(&steps, mark(&number, true)), Err(4335));
    }

    #[test]
    fn a_log_goes_on_from_where_the_database_is() {
        let number = |log: &Log, steps: &Steps| {
            let raised = goes_on(log, steps, &Options::default());
            raised.err().and_then(|raised| Some(raised.messages.last()?.number)).unwrap_or(0)
        };
        let steps = Steps::of(full());
        assert_eq!(number(&log(), &steps), 0);
        assert_eq!(number(&Log { first: Lsn::new(1, 5), ..log() }, &steps), 4305);
        assert_eq!(number(&Log { last: Lsn::new(1, 4), ..log() }, &steps), 4326);
        let empty = Log { last: Lsn::new(1, 4), commits: Vec::new(), ..log() };
        assert_eq!(number(&empty, &steps), 0);
        assert_eq!(number(&Log { fork: [8; 16], ..log() }, &steps), 4330);
        assert_eq!(number(&log(), &Steps::of(Step { fork: None, ..full() })), 4330);
    }
}
