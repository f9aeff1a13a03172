//! The tables of one side of a session under load: its phases, what was done alone, and its checks.

use std::fmt::Write;

use super::{align, new_table};
use crate::record::{Calls, Phase};
use crate::verdict::{LoadVerdict, Loads};

const MIB: f64 = 1048576.0;

/// The table of one side under load, phase by phase, with its checks.
pub fn render(verdict: &LoadVerdict, loads: &Loads) -> String {
    let ours = |session: &str, side: &str| (session, side) == (&verdict.session, &verdict.side);
    let mut text = String::new();
    let mut table = new_table([
        format!("{}\n{}", verdict.side, verdict.database),
        "scan s".into(),
        "MB/s".into(),
        "writes/s".into(),
        "write ms\np50 / p99".into(),
        "longest\ncall ms".into(),
        "reads/s".into(),
        "read ms\np50 / p99".into(),
        "longest\ncall ms".into(),
        "failed".into(),
        "log\nMiB".into(),
    ]);
    for phase in loads.phases.iter().filter(|phase| ours(&phase.session, &phase.side)) {
        table.add_row(row(phase));
    }
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}", align(table));

    for alone in loads.alone.iter().filter(|alone| ours(&alone.session, &alone.side)) {
        let list = |seconds: &[f64]| {
            seconds.iter().map(|s| format!("{:.0}", s * 1e3)).collect::<Vec<_>>().join(" ")
        };
        let megabytes = alone.bytes as f64 / 1e6;
        let (wall, work) = (list(&alone.wall_s), list(&alone.work_s));
        let _ = writeln!(
            text,
            "{}, nobody else there, {megabytes:.0} MB: {wall} ms; the work itself {work} ms",
            alone.what
        );
    }
    if let Some(account) = loads.accounts.iter().find(|a| ours(&a.session, &a.side)) {
        let (acknowledged, wrong) = (account.acknowledged, account.wrong);
        let integrity = &account.integrity;
        let _ = writeln!(
            text,
            "{acknowledged} commits were acknowledged, {wrong} rows are wrong; integrity_check: {integrity}"
        );
    }

    let mut table = new_table(["", "found", "at most", "verdict"].map(String::from));
    for check in &verdict.checks {
        let judged = match (verdict.judged, check.passed) {
            (false, _) => "-",
            (true, true) => "passed",
            (true, false) => "missed",
        };
        table.add_row([check.what.clone(), number(check.found), number(check.goal), judged.into()]);
    }
    let _ = write!(text, "{}", align(table));
    text
}

fn row(phase: &Phase) -> [String; 11] {
    let ms = |us: f64| number(us / 1e3);
    let both =
        |calls: &Calls| format!("{} / {}", ms(calls.latency.p50_us), ms(calls.latency.p99_us));
    let scan = phase.scan;
    [
        phase.phase.clone(),
        scan.map_or("-".into(), |scan| format!("{:.1}", scan.wall_s)),
        scan.map_or("-".into(), |scan| format!("{:.0}", scan.mb_per_s)),
        format!("{:.0}", phase.write.per_s),
        both(&phase.write),
        ms(phase.write.longest_call_us),
        format!("{:.0}", phase.read.per_s),
        both(&phase.read),
        ms(phase.read.longest_call_us),
        (phase.write.failures() + phase.read.failures()).to_string(),
        phase.log_bytes.map_or("-".into(), |bytes| format!("{:.1}", bytes as f64 / MIB)),
    ]
}

/// Three digits.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 || v == 0.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
