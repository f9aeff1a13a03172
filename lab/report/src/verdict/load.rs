//! What the phases of `lab scan-load` say about the goals for an application that goes on.

use serde::Serialize;

use crate::goals::Goals;
use crate::record::{Account, Alone, Calls, Phase, Session};

const MICROSECONDS: f64 = 1000.0;

/// Records of sessions of `lab scan-load`.
#[derive(Debug, Default)]
pub struct Loads {
    pub phases: Vec<Phase>,
    pub alone: Vec<Alone>,
    pub accounts: Vec<Account>,
}

/// One side of one session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadVerdict {
    pub session: String,
    /// Journal mode and MiB.
    pub database: String,
    pub side: String,
    /// Whether the goals are about this side; otherwise it decides nothing.
    pub judged: bool,
    pub checks: Vec<Check>,
}

/// Something that may be so large and no larger.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    pub what: String,
    pub found: f64,
    pub goal: f64,
    pub passed: bool,
}

impl LoadVerdict {
    /// Whether every check passed, or nothing depends on it.
    pub fn passed(&self) -> bool {
        !self.judged || self.checks.iter().all(|check| check.passed)
    }

    /// One for each side of each session that has phases.
    pub fn of(sessions: &[Session], loads: &Loads, goals: &Goals) -> Vec<Self> {
        let mut verdicts = Vec::new();
        for session in sessions {
            let Some(base) = session.sides.first() else { continue };
            for side in &session.sides {
                let of = |name: &str| -> Vec<&Phase> {
                    let phases = loads.phases.iter();
                    phases.filter(|p| p.session == session.session && p.side == name).collect()
                };
                let phases = of(&side.side);
                if phases.is_empty() {
                    continue;
                }
                let ours =
                    |other: &str, name: &str| (other, name) == (&session.session, &side.side);
                let account = loads.accounts.iter().find(|a| ours(&a.session, &a.side));
                let alone = loads.alone.iter().filter(|a| ours(&a.session, &a.side));
                // A backup has to let others work on either side.
                let base = if backups(session) { &side.side } else { &base.side };
                let mut checks = checks(session, &phases, &of(base), goals);
                checks.push(rows(account));
                checks.extend(rewraps(alone, goals));
                verdicts.push(Self {
                    session: session.session.clone(),
                    database: database(session),
                    side: side.side.clone(),
                    judged: side.kind == "sealed",
                    checks,
                });
            }
        }
        verdicts
    }
}

impl Loads {
    /// Leaves those of one session only.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.phases.retain(|phase| keep(&phase.session));
        self.alone.retain(|alone| keep(&alone.session));
        self.accounts.retain(|account| keep(&account.session));
    }
}

impl Check {
    fn new(what: impl Into<String>, found: f64, goal: f64) -> Self {
        Self { what: what.into(), found, goal, passed: found <= goal }
    }
}

/// The reads or the writes of a phase.
type CallsOf = fn(&Phase) -> &Calls;

fn checks(session: &Session, phases: &[&Phase], base: &[&Phase], goals: &Goals) -> Vec<Check> {
    let goals = &goals.scan_load;
    let failed = |phase: &Phase| phase.write.failures() + phase.read.failures();
    let of_base = |name: &str| base.iter().find(|p| p.phase == name).map_or(0, |p| failed(p));
    let same_side = phases.first().map(|p| &p.side) == base.first().map(|p| &p.side);
    let more: u64 = phases
        .iter()
        .map(|phase| {
            failed(phase) - if same_side { 0 } else { failed(phase).min(of_base(&phase.phase)) }
        })
        .sum();
    let mut checks = vec![Check::new(
        if same_side { "failed statements" } else { "failed statements more than plain" },
        more as f64,
        0.0,
    )];
    let journal = journal(session);
    let p99_goal = goals.p99_added_ms.get(&journal).copied().unwrap_or_default();
    let p99 = |phase: &Phase, of: CallsOf| of(phase).latency.p99_us / MICROSECONDS;
    let kinds: [(&str, CallsOf); 2] = [("write", |p| &p.write), ("read", |p| &p.read)];
    for (kind, of) in kinds.into_iter().filter(|_| !backups(session)) {
        let (scans, quiet): (Vec<&Phase>, Vec<&Phase>) =
            phases.iter().partition(|phase| phase.scan.is_some());
        // The worst with a scan less the best without one.
        let worst = scans.iter().map(|phase| p99(phase, of)).reduce(f64::max);
        let best = quiet.iter().map(|phase| p99(phase, of)).reduce(f64::min);
        if let (Some(worst), Some(best)) = (worst, best) {
            checks.push(Check::new(format!("p99 of a {kind} added, ms"), worst - best, p99_goal));
        }
    }
    let longest = |phases: &mut dyn Iterator<Item = &&Phase>| {
        let calls = phases.map(|p| p.write.longest_call_us.max(p.read.longest_call_us));
        calls.fold(0.0, f64::max) / MICROSECONDS
    };
    if backups(session) {
        let busy = longest(&mut phases.iter().filter(|phase| phase.scan.is_some()));
        let quiet = longest(&mut phases.iter().filter(|phase| phase.scan.is_none()));
        let goal = goals.longest_call_ms * held(session);
        checks.push(Check::new("longest call, added, ms", busy - quiet, goal));
    } else {
        let longest = longest(&mut phases.iter());
        checks.push(Check::new("longest call, ms", longest, goals.longest_call_ms));
    }
    checks
}

fn backups(session: &Session) -> bool {
    session.scenario == "backup-load"
}

/// Outside WAL mode a backup sets pages aside under a lock: so many GiB, and one at least.
fn held(session: &Session) -> f64 {
    let gib = session.size.unwrap_or_default() as f64 / 1024.0;
    if journal(session) != "WAL" {
        gib.max(1.0)
    } else {
        1.0
    }
}

fn journal(session: &Session) -> String {
    session.setting.map_or_else(String::new, |setting| setting.journal.to_string())
}

fn database(session: &Session) -> String {
    format!("{}, {} MiB", journal(session), session.size.unwrap_or_default())
}

/// A session that was interrupted has not shown that every row is there.
fn rows(account: Option<&Account>) -> Check {
    let wrong = account.map_or(1, |a| a.wrong + u64::from(a.integrity != "ok"));
    Check::new("rows not accounted for", wrong as f64, 0.0)
}

fn rewraps<'a>(alone: impl Iterator<Item = &'a Alone>, goals: &Goals) -> Option<Check> {
    let slowest = alone
        .filter(|alone| alone.what == "rewrap")
        .flat_map(|alone| &alone.wall_s)
        .copied()
        .reduce(f64::max)?;
    Some(Check::new("slowest rewrap, ms", slowest * 1e3, goals.scan_load.rewrap_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;
    use crate::record::Latency;
    use crate::record::{Scanned, SideDescription};

    fn session() -> Session {
        let side = |name: &str| SideDescription {
            side: name.into(),
            kind: name.into(),
            algorithm: None,
            extension: None,
            extension_sha256: None,
            library: None,
            change: None,
            engine: None,
            file_bytes: None,
            page_size_bytes: None,
        };
        Session {
            sides: vec![side("plain"), side("sealed")],
            setting: Some(plan::STANDARD),
            ..super::super::tests::session("1", Some("t"))
        }
    }

    /// p99 of writes in ms, longest call in ms, failed statements.
    fn phase(side: &str, name: &str, (p99, longest, failed): (f64, f64, u64)) -> Phase {
        let latency = Latency { p99_us: p99 * 1e3, ..Latency::default() };
        let failed = (failed > 0).then(|| ("BEGIN: 5".to_string(), failed)).into_iter().collect();
        let write = Calls { latency, longest_call_us: longest * 1e3, failed, per_s: 1.0 };
        let scan = Scanned { wall_s: 1.0, cpu_s: None, share: 1.0, mb_per_s: 1.0 };
        Phase {
            session: "1".into(),
            phase: name.into(),
            place: 0,
            side: side.into(),
            wall_s: 1.0,
            scan: (name == "rekey").then_some(scan),
            log_bytes: None,
            write,
            read: Calls::default(),
            others_share: 0.0,
            stolen_share: 0.0,
        }
    }

    fn verdict(plain: (f64, f64, u64), sealed: (f64, f64, u64), wrong: u64) -> Vec<LoadVerdict> {
        let calm = (1.0, 5.0, 0);
        let phases = vec![
            phase("plain", "before", calm),
            phase("sealed", "before", calm),
            phase("plain", "rekey", plain),
            phase("sealed", "rekey", sealed),
        ];
        let account = |side: &str| Account {
            session: "1".into(),
            side: side.into(),
            acknowledged: 9,
            wrong,
            integrity: "ok".into(),
        };
        let accounts = vec![account("plain"), account("sealed")];
        let rewrap = Alone {
            session: "1".into(),
            side: "sealed".into(),
            what: "rewrap".into(),
            bytes: 1,
            wall_s: vec![0.01, 0.02],
            work_s: vec![],
        };
        let loads = Loads { phases, alone: vec![rewrap], accounts };
        LoadVerdict::of(&[session()], &loads, &Goals::read())
    }

    #[test]
    fn a_scan_that_nobody_notices_has_passed_and_each_miss_is_told() {
        let calm = (5.0, 50.0, 0);
        let good = verdict(calm, calm, 0);
        assert!(good.iter().all(LoadVerdict::passed), "{good:?}");
        assert_eq!((good[0].judged, good[1].judged), (false, true));
        assert_eq!(good[1].checks.len(), 6);
        for (sealed, wrong, what) in [
            ((26.5, 50.0, 0), 0, "p99 of a write added, ms"),
            ((5.0, 1001.0, 0), 0, "longest call, ms"),
            ((5.0, 50.0, 1), 0, "failed statements more than plain"),
            (calm, 1, "rows not accounted for"),
        ] {
            let found = &verdict(calm, sealed, wrong)[1];
            let missed: Vec<_> = found.checks.iter().filter(|check| !check.passed).collect();
            assert!(!found.passed() && missed.len() == 1 && missed[0].what == what, "{found:?}");
        }
    }

    #[test]
    fn what_fails_under_a_plain_rewrite_too_is_not_the_shims() {
        assert!(verdict((5.0, 50.0, 2), (5.0, 50.0, 2), 0)[1].passed());
        assert!(!verdict((5.0, 50.0, 2), (5.0, 50.0, 3), 0)[1].passed());
        // Of the control itself every failure is told.
        assert_eq!(verdict((5.0, 50.0, 2), (5.0, 50.0, 0), 0)[0].checks[0].found, 2.0);
    }

    #[test]
    fn a_session_that_was_interrupted_has_not_passed() {
        let phases = vec![phase("sealed", "before", (1.0, 5.0, 0))];
        let loads = Loads { phases, ..Loads::default() };
        let verdicts = LoadVerdict::of(&[session()], &loads, &Goals::read());
        assert!(!verdicts[0].passed());
    }
}
