//! The table of a session, from the same values as its records.

use comfy_table::{presets::UTF8_FULL_CONDENSED, CellAlignment, Table};

use crate::record::{CellResult, Session};

/// More than this of the machine in others' hands, and the reader is told.
const QUIET_SHARE: f64 = 0.05;

/// Table and notes of `cells`.
pub fn render(session: &Session, cells: &[CellResult]) -> String {
    let [base, other] = &session.sides;
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header([
        "processes".into(),
        "sync".into(),
        "r/u/i".into(),
        format!("{other} / {base}\nops/s, median"),
        "quartiles".into(),
        "min..max".into(),
        "mean (95 %)".into(),
        "CPU per op,\nratio".into(),
        format!("ops/s\n{base} : {other}"),
        format!("p50 us\n{base} : {other}"),
        format!("p99 us\n{base} : {other}"),
    ]);
    for cell in cells {
        let [a, b] = &cell.sides;
        table.add_row([
            cell.cell.processes.to_string(),
            cell.cell.synchronous.name().into(),
            cell.cell.mix.to_string(),
            format!("{:.3}", cell.ratio.median),
            format!("{:.3}..{:.3}", cell.ratio.lower_quartile, cell.ratio.upper_quartile),
            format!("{:.3}..{:.3}", cell.ratio.min, cell.ratio.max),
            cell.ratio_mean.map_or("-".into(), |mean| {
                format!("{:.3} ({:.3}..{:.3})", mean.mean, mean.low, mean.high)
            }),
            cell.cpu_ratio.map_or("-".into(), |ratio| format!("{:.3}", ratio.median)),
            format!("{:.0} : {:.0}", a.ops_per_s.median, b.ops_per_s.median),
            format!("{:.1} : {:.1}", a.latency.p50_us, b.latency.p50_us),
            format!("{:.0} : {:.0}", a.latency.p99_us, b.latency.p99_us),
        ]);
    }
    table.column_iter_mut().for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    let notes = notes(session, cells);
    format!("{table}\n{}", notes.join("\n"))
}

fn notes(session: &Session, cells: &[CellResult]) -> Vec<String> {
    let mut notes = vec![session.machine.line()];
    notes.push(format!(
        "{} rounds in the order AB BA, each run on a fresh copy; ratio above 1: {} is faster; session {}",
        session.rounds, session.sides[1], session.session
    ));
    if let Some(first) = cells.first() {
        notes.push(format!(
            "min..max holds the true median with {:.1} % confidence",
            first.ratio.range_confidence * 100.0
        ));
    }
    let most = |of: fn(&CellResult) -> f64| cells.iter().map(of).fold(0.0, f64::max);
    let (others, stolen) =
        (most(|cell| cell.others_share.median), most(|cell| cell.stolen_share.median));
    if others + stolen > QUIET_SHARE {
        notes.push(format!(
            "note: others used up to {:.0} % of this machine during the runs, its host took {:.0} %: \
             trust the processor time more than the speed",
            others * 100.0,
            stolen * 100.0
        ));
    }
    if session.machine.lab_profile != "release" {
        notes.push("note: a debug build measures itself; use `cargo build --release`".into());
    }
    notes
}
