//! The picture as a page: one file, a drawing in it, nothing from elsewhere.

use std::fmt::Write;

use pellucid::hash::hex;
use pellucid::media::Kind;
use pellucid_backup::job::Covers;

use super::draw::{row, runs};
use super::{clock, span, Fork, Picture, Set};
use crate::demo::picture::{escape, fill};
use crate::output::Failure;

const TEMPLATE: &str = include_str!("timeline.html");
/// Where lanes begin and how wide they are.
const LEFT: f64 = 110.0;
const WIDE: f64 = 880.0;
const LANE: f64 = 30.0;

/// The page.
pub fn page(picture: &Picture) -> Result<String, Failure> {
    let notes = picture.notes.iter().map(|note| format!("<p>{}</p>", sentence(note)));
    let body = match picture.forks.is_empty() {
        true => "<p>No backup of a chain of log backups is among these.</p>".to_owned(),
        false => picture.forks.iter().map(|fork| section(fork, picture)).collect(),
    };
    fill(TEMPLATE, &[("body", body), ("notes", notes.collect())])
}

/// A sentence that may have the terminal's mark of an alarm.
fn sentence(text: &str) -> String {
    match text.strip_prefix("!! ") {
        Some(text) => format!("<strong class=\"bad\">{}</strong>", escape(text)),
        None => escape(text),
    }
}

fn section(fork: &Fork, picture: &Picture) -> String {
    let mut rows = String::new();
    for run in runs(fork) {
        let cells = row(&run).into_iter().map(|cell| format!("<td>{}</td>", sentence(&cell)));
        let _ = write!(rows, "<tr>{}</tr>", cells.collect::<String>());
    }
    let holes = fork.holes.iter().map(|hole| format!("<p>{}</p>", sentence(&hole.in_words())));
    format!(
        "<section><h2>Recovery fork <code>{}</code></h2><div class=\"card\">{}</div>{}<table><thead><tr><th>type</th>\
         <th>from (UTC)</th><th>to (UTC)</th><th>commits</th><th>remark</th></tr></thead><tbody>{rows}</tbody></table></section>",
        hex(&fork.fork),
        drawing(fork, picture),
        holes.collect::<String>(),
    )
}

fn drawing(fork: &Fork, picture: &Picture) -> String {
    let all = picture.until.saturating_sub(picture.from).max(1) as f64;
    let x = |time: u64| LEFT + WIDE * (time.saturating_sub(picture.from) as f64 / all).min(1.0);
    let mut shapes = String::new();
    let mut bar = |lane: usize, class: &str, from: f64, to: f64, least: f64, tip: &str| {
        let _ = write!(
            shapes,
            "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"18\" rx=\"2\"><title>{}</title></rect>",
            lane as f64 * LANE + 6.0,
            (to - from).max(least),
            escape(tip),
        );
    };
    for set in &fork.sets {
        let lane = match set.set.kind {
            Kind::Full => 0,
            Kind::Differential => 1,
            Kind::Log => 2,
        };
        let (from, to) = (x(set.set.from), x(set.set.begun));
        bar(lane, class(set), from, to - 1.0, 4.0, &tip(set));
    }
    for hole in &fork.holes {
        let from = hole.from.map_or(LEFT, |(time, _)| x(time));
        let to = hole.until.map_or(LEFT + WIDE, |(time, _)| x(time));
        bar(3, "gap", from, to, 4.0, hole.in_words().trim_start_matches("!! "));
    }
    for range in &fork.ranges {
        let tip = format!("{} to {}", clock(range.from.time), clock(range.to.time));
        bar(3, "points", x(range.from.time), x(range.to.time), 4.0, &tip);
    }
    let mut words = String::new();
    for (lane, label) in ["full", "differential", "log", "restorable"].iter().enumerate() {
        let _ =
            write!(words, "<text x=\"0\" y=\"{:.1}\">{label}</text>", lane as f64 * LANE + 20.0);
    }
    let (axis, right) = (4.0 * LANE + 4.0, LEFT + WIDE);
    let _ = write!(
        words,
        "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{axis}\" y2=\"{axis}\"/><text x=\"{LEFT}\" y=\"{y}\">{}</text><text x=\"{}\" y=\"{y}\" \
         text-anchor=\"middle\">{}</text><text x=\"{right}\" y=\"{y}\" text-anchor=\"end\">{}</text>",
        clock(picture.from),
        LEFT + WIDE / 2.0,
        span(picture.until.saturating_sub(picture.from)),
        clock(picture.until),
        y = axis + 18.0,
    );
    format!("<svg viewBox=\"0 0 1000 {}\" role=\"img\" aria-label=\"Backups along time\">{shapes}{words}</svg>", axis + 26.0)
}

fn class(set: &Set) -> &'static str {
    match (set.goes, set.set.covers, set.set.kind) {
        (true, _, _) => "goes",
        (_, Covers::Nothing, _) => "useless",
        (_, Covers::Branch, _) => "left",
        (_, _, Kind::Full) => "full",
        (_, _, Kind::Differential) => "differential",
        (_, _, Kind::Log) => "log",
    }
}

fn tip(set: &Set) -> String {
    format!(
        "{}: {} to {}, LSN {} to {}, {}",
        set.kind(),
        clock(set.set.from),
        clock(set.set.begun),
        set.set.first,
        set.set.last,
        set.file.display()
    )
}
