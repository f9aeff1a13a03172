//! The picture for a terminal, in ASCII.

use pellucid::hash::hex;
use pellucid::media::Kind;
use pellucid_backup::job::Covers;

use super::{clock, span, Fork, Picture, Set};
use crate::output::{table, Output};

/// Columns where there is no terminal.
const COLUMNS: usize = 80;
/// Columns of what stands before a lane.
const LABEL: usize = 14;
/// Between the lanes and the right margin; more would be hard to read.
const WIDEST: usize = 160;

/// Moments as columns.
struct Scale {
    from: u64,
    until: u64,
    columns: usize,
}

impl Scale {
    fn column(&self, time: u64) -> usize {
        let all = u128::from(self.until.saturating_sub(self.from).max(1));
        let part = u128::from(time.saturating_sub(self.from)) * (self.columns as u128 - 1) / all;
        usize::try_from(part).unwrap_or(0).min(self.columns - 1)
    }
}

/// Draws it.
pub fn draw(picture: &Picture, output: &Output) {
    let width = crate::output::columns().map_or(COLUMNS, usize::from).min(WIDEST);
    let columns = width.saturating_sub(LABEL).max(20);
    let scale = Scale { from: picture.from, until: picture.until, columns };
    for fork in &picture.forks {
        output.line(lanes(fork, &scale, output));
        let mut shown = table(["type", "from (UTC)", "to (UTC)", "commits", "remark"]);
        shown.add_rows(runs(fork).iter().map(|run| row(run)));
        output.line(format!("\n{shown}"));
        fork.holes.iter().for_each(|hole| output.line(hole.in_words()));
        output.line("");
    }
    if !picture.forks.is_empty() {
        output.line("F full, D differential, = log, # can be restored, ! cannot,");
        output.line("x of no use, ? branch that was left, - goes by --keep");
    }
    picture.notes.iter().for_each(|note| output.line(note));
}

/// The lanes of a fork over its axis.
fn lanes(fork: &Fork, scale: &Scale, output: &Output) -> String {
    let mut lines = vec![format!("Recovery fork {}", hex(&fork.fork))];
    for (label, kind) in
        [("full", Kind::Full), ("differential", Kind::Differential), ("log", Kind::Log)]
    {
        let own: Vec<&Set> = fork.sets.iter().filter(|set| set.set.kind == kind).collect();
        if own.is_empty() {
            continue;
        }
        let mut lane = vec![' '; scale.columns];
        for set in own {
            let mark = mark(set);
            // A clock that was set back may end a set before it begins.
            let (from, to) = (scale.column(set.set.from), scale.column(set.set.begun));
            let (from, to) = (from.min(to), from.max(to));
            lane[from..=to].fill(mark);
            // Where there is room, sets are told apart.
            if kind == Kind::Log && to > from + 1 {
                lane[from] = '|';
            }
        }
        lines.push(line(label, &lane));
    }
    let mut lane = vec![' '; scale.columns];
    for hole in &fork.holes {
        let from = hole.from.map_or(0, |(time, _)| scale.column(time));
        let to = hole.until.map_or(scale.columns - 1, |(time, _)| scale.column(time));
        lane[from..=to.max(from)].fill('!');
    }
    for range in &fork.ranges {
        let (from, to) = (scale.column(range.from.time), scale.column(range.to.time));
        lane[from..=to.max(from)].fill('#');
    }
    let same = lane.chunk_by(|one, next| (*one == '!') == (*next == '!'));
    let painted = same.map(|part| {
        let text: String = part.iter().collect();
        if text.starts_with('!') {
            output.alarm(text)
        } else {
            text
        }
    });
    lines.push(
        format!("{:LABEL$}{}", "restorable", painted.collect::<String>()).trim_end().to_owned(),
    );
    let (mut axis, begins) = (vec!['-'; scale.columns], clock(scale.from));
    axis[0] = '+';
    axis[scale.columns - 1] = '+';
    lines.push(line("", &axis));
    let (ends, long) = (clock(scale.until), span(scale.until.saturating_sub(scale.from)));
    let room = scale.columns.saturating_sub(begins.len() + ends.len());
    let between =
        if room > long.len() + 2 { format!("{long:^room$}") } else { " ".repeat(room.max(1)) };
    lines.push(format!("{:LABEL$}{begins}{between}{ends}", ""));
    lines.join("\n")
}

fn line(label: &str, lane: &[char]) -> String {
    format!("{label:LABEL$}{}", lane.iter().collect::<String>()).trim_end().to_owned()
}

fn mark(set: &Set) -> char {
    match (set.goes, set.set.covers, set.set.kind) {
        (true, _, _) => '-',
        (_, Covers::Nothing, _) => 'x',
        (_, Covers::Branch, _) => '?',
        (_, _, Kind::Full) => 'F',
        (_, _, Kind::Differential) => 'D',
        (_, _, Kind::Log) => '=',
    }
}

/// Sets of one kind behind each other, of which a day has hundreds.
pub fn runs(fork: &Fork) -> Vec<Vec<&Set>> {
    let mut runs: Vec<Vec<&Set>> = Vec::new();
    for set in &fork.sets {
        let is_same = |run: &&mut Vec<&Set>| {
            run.last().is_some_and(|last| {
                let goes_on = set.set.first <= last.set.last;
                set.set.kind == Kind::Log
                    && mark(last) == mark(set)
                    && last.set.kind == Kind::Log
                    && goes_on
            })
        };
        match runs.last_mut().filter(is_same) {
            Some(run) => run.push(set),
            None => runs.push(vec![set]),
        }
    }
    runs
}

/// A line of the table of sets.
pub fn row(run: &[&Set]) -> Vec<String> {
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return Vec::new() };
    let commits: usize = run.iter().map(|set| set.set.commits).sum();
    let remark = match (first.goes, first.set.covers) {
        (true, _) => "goes",
        (_, Covers::Nothing) => "of no use",
        (_, Covers::Branch) => "branch",
        (_, Covers::Points) => "",
    };
    vec![
        match run.len() {
            1 => first.kind().to_owned(),
            count => format!("{count} {}s", first.kind()),
        },
        clock(first.set.from),
        clock(last.set.begun),
        if first.set.kind == Kind::Log { commits.to_string() } else { String::new() },
        remark.to_owned(),
    ]
}
