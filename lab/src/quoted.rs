//! Figures that documents quote: each is recomputed from the record that it names.
//!
//! A comment stands before the figure: `<!-- figure: RECORDS | EXPERIMENT | CELL | WHAT -->0.967
//! (0.946..0.989)`. Further fields may be `side=NAME`, `session=NAME` and `statistic=NAME`. A cell with
//! `*` stands for the geometric mean over all cells like it, without those like `not=CELL`. A figure with `%` is a change, one
//! without a ratio; an interval behind it is recomputed too. All are compared to their last digit.
//!
//! `<!-- figures: RECORDS | EXPERIMENT | {1}-{column} | WHAT -->` before a table is for all its figures:
//! `{1}` stands for the row's first cell and `{column}` for the column's title, spaces as hyphens.
//! With `row=TEXT` it is for the row that begins so. A comment in backticks is an example of one.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::report::{figures, like, mean_over, Paired, Records};
use crate::statistics::Interval;

const OPENING: &str = "<!-- figure:";
const TABLE: &str = "<!-- figures:";

/// Prints what differs; false if anything does.
///
/// # Errors
/// [`Error::Io`], and [`Error::Invalid`] for a comment that names nothing, and for documents without
/// a single one: a check of nothing is none.
pub fn check(documents: &[PathBuf], root: &Path) -> Result<bool> {
    let (mut right, mut wrong) = (0, 0);
    for document in documents {
        let name = document.display().to_string();
        let text = std::fs::read_to_string(document).map_err(Error::io(name.clone()))?;
        for quote in Quote::all(&text) {
            let place = format!("{name}:{}", quote.line);
            match quote.check(root) {
                Ok(None) => right += 1,
                Ok(Some(difference)) => {
                    wrong += 1;
                    println!("{place}: {difference}");
                }
                Err(error) => return Err(Error::invalid(format!("{place}: {error}"))),
            }
        }
    }
    println!("{right} figures are as their records say, {wrong} differ");
    if right + wrong == 0 {
        return Err(Error::invalid("no figure in these documents names its record"));
    }
    Ok(wrong == 0)
}

/// One figure of a document.
#[derive(Debug)]
struct Quote<'a> {
    line: usize,
    fields: Vec<String>,
    /// What stands behind the comment.
    rest: &'a str,
}

/// A number as it is written.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Written {
    value: f64,
    digits: usize,
}

impl<'a> Quote<'a> {
    fn all(text: &'a str) -> Vec<Self> {
        let mut quotes = Vec::new();
        for (opening, of_table) in [(OPENING, false), (TABLE, true)] {
            let mut from = 0;
            while let Some(at) = text[from..].find(opening).map(|at| at + from) {
                let behind = &text[at + opening.len()..];
                let Some(end) = behind.find("-->") else { break };
                from = at + opening.len() + end;
                if text[..at].ends_with('`') {
                    continue;
                }
                let fields = behind[..end].split('|').map(|field| field.trim().to_string());
                let line = text[..at].matches('\n').count() + 1;
                let one = Self { line, fields: fields.collect(), rest: &behind[end + 3..] };
                if of_table {
                    match one.of_table() {
                        // Said when it is checked: a table that has moved would go unchecked.
                        none if none.is_empty() => quotes.push(Self { fields: Vec::new(), ..one }),
                        some => quotes.extend(some),
                    }
                } else {
                    quotes.push(one);
                }
            }
        }
        quotes
    }

    /// Of a comment before a table one for each figure.
    fn of_table(&self) -> Vec<Self> {
        let cells = |line: &'a str| -> Vec<&'a str> {
            line.trim().trim_matches('|').split('|').map(str::trim).collect()
        };
        // The comment's own line comes first, then perhaps other comments.
        let lines = self.rest.lines().enumerate().skip(1);
        let mut table = lines
            .skip_while(|(_, line)| line.trim().is_empty() || line.starts_with("<!--"))
            .take_while(|(_, line)| line.starts_with('|'));
        let titles = table.next().map(|(_, line)| cells(line)).unwrap_or_default();
        let name = |text: &str| text.trim_matches('`').replace(' ', "-");
        let wanted = self.fields.iter().find_map(|field| field.strip_prefix("row="));
        let mut quotes = Vec::new();
        for (below, line) in table.skip(1) {
            let row = cells(line);
            if wanted.is_some_and(|wanted| row.first() != Some(&wanted)) {
                continue;
            }
            for (at, (title, figure)) in titles.iter().zip(&row).enumerate() {
                let labels =
                    self.fields.iter().any(|field| field.contains(&format!("{{{}}}", at + 1)));
                if labels || Written::read(figure).is_none() || (wanted.is_some() && at == 0) {
                    continue;
                }
                let fill = |field: &String| {
                    let mut field = field.replace("{column}", &name(title));
                    for (at, cell) in row.iter().enumerate() {
                        field = field.replace(&format!("{{{}}}", at + 1), &name(cell));
                    }
                    field
                };
                let fields = self.fields.iter().filter(|field| !field.starts_with("row="));
                quotes.push(Self {
                    line: self.line + below,
                    fields: fields.map(fill).collect(),
                    rest: *figure,
                });
            }
        }
        quotes
    }

    /// The difference in words, or nothing.
    fn check(&self, root: &Path) -> Result<Option<String>> {
        if self.fields.is_empty() {
            return Err(Error::invalid(
                "`figures:` without a table behind it, or without a figure in its row",
            ));
        }
        let [records, experiment, cell, what, options @ ..] = self.fields.as_slice() else {
            return Err(Error::invalid("a figure names RECORDS | EXPERIMENT | CELL | WHAT"));
        };
        let option = |name: &str| {
            let prefix = format!("{name}=");
            options
                .iter()
                .find_map(|option| option.strip_prefix(prefix.as_str()).map(str::to_string))
        };
        for option in options {
            let known = ["side=", "session=", "statistic=", "not="];
            if !known.iter().any(|name| option.starts_with(name)) {
                return Err(Error::invalid(format!(
                    "`{option}` is not side=, session=, statistic= or not="
                )));
            }
        }
        let side = option("side").unwrap_or_else(|| "sealed".into());
        let found: Vec<Paired> = figures(&Records::read(&[root.join(records)])?)
            .into_iter()
            .filter(|figure| figure.scenario == *experiment && figure.what == *what)
            .filter(|figure| like(&figure.cell, cell) && figure.side == side)
            .filter(|figure| option("not").is_none_or(|name| !like(&figure.cell, &name)))
            .filter(|figure| option("session").is_none_or(|name| figure.session == name))
            .collect();
        if found.is_empty() {
            return Err(Error::invalid(format!("{what} of `{cell}`, {side}, is not in {records}")));
        }
        if found.len() > 1 && !cell.contains('*') {
            return Err(Error::invalid(format!(
                "`{cell}` is in {records} more than once: session=NAME"
            )));
        }
        let recomputed = recompute(&found, option("statistic").as_deref().unwrap_or("mean"))?;
        let (mean, rest) = Written::read(self.rest)
            .ok_or_else(|| Error::invalid("no number stands behind the comment"))?;
        let percent = percent(rest);
        let shown = |ratio: f64| if percent { (ratio - 1.0) * 100.0 } else { ratio };
        let mut wanted = vec![(mean, shown(recomputed.mean))];
        if let Some((low, high)) = interval(rest) {
            wanted.push((low, shown(recomputed.low)));
            wanted.push((high, shown(recomputed.high)));
        } else if looks_like_an_interval(rest) {
            return Err(Error::invalid("an interval is written as (0.95..1.02) or (-1.0 to +2.1)"));
        }
        if wanted.iter().all(|(written, value)| written.is(*value)) {
            return Ok(None);
        }
        let say = |of: fn(&(Written, f64)) -> f64| {
            let texts = wanted.iter().map(|pair| format!("{:.*}", pair.0.digits, of(pair)));
            texts.collect::<Vec<_>>().join(", ")
        };
        let (quoted, recorded) = (say(|pair| pair.0.value), say(|pair| pair.1));
        Ok(Some(format!("{what} of `{cell}`: quoted {quoted}; {records} says {recorded}")))
    }
}

fn recompute(found: &[Paired], statistic: &str) -> Result<Interval> {
    let none = || Error::invalid("too few pairs for an interval");
    let over = |of: fn(&Paired) -> Vec<f64>| -> Result<Interval> {
        let found: Vec<&Paired> = found.iter().collect();
        Ok(mean_over(&found, of).ok_or_else(none)?.interval(1))
    };
    let alone = |value: Option<f64>| -> Result<Interval> {
        match (value, found.len()) {
            (Some(mean), 1) => Ok(Interval { mean, low: mean, high: mean, confidence: 1.0 }),
            _ => Err(Error::invalid(format!("no {statistic} over several cells, or of nothing"))),
        }
    };
    let summary = || found[0].summary();
    match statistic {
        "mean" if found.len() == 1 && found[0].log_mean().is_none() => alone(found[0].mean()),
        "mean" => over(Paired::ratios),
        // Speeds turned over: the time of an operation.
        "cost" => over(Paired::costs),
        "median" => alone(summary().map(|summary| summary.median)),
        "min" => alone(summary().map(|summary| summary.min)),
        "max" => alone(summary().map(|summary| summary.max)),
        other => {
            Err(Error::invalid(format!("no statistic `{other}`: mean, cost, median, min or max")))
        }
    }
}

impl Written {
    /// The number that `text` begins with, behind marks of emphasis, and what follows it.
    fn read(text: &str) -> Option<(Self, &str)> {
        let text = text.trim_start_matches([' ', '\n', '*', '_', '(', '×']);
        let (negative, body) = match text.strip_prefix(['-', '−']) {
            Some(body) => (true, body),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let mut end = body.find(|c: char| !c.is_ascii_digit()).unwrap_or(body.len());
        let mut digits = 0;
        if let Some(part) = body[end..].strip_prefix('.') {
            digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            end += if digits > 0 { digits + 1 } else { 0 };
        }
        let value: f64 = body[..end].parse().ok()?;
        Some((Self { value: if negative { -value } else { value }, digits }, &body[end..]))
    }

    /// True if `value` is written so: within half of the last digit.
    fn is(self, value: f64) -> bool {
        (self.value - value).abs() <= 0.5 * 10_f64.powi(-(self.digits as i32)) + 1e-9
    }
}

fn percent(rest: &str) -> bool {
    rest.trim_start_matches(['*', '_', ' ']).starts_with('%')
}

/// `(0.946..0.989)`, `(-1.0 to +2.1)`, `(-1 to +2 %)`, directly behind the number.
fn interval(rest: &str) -> Option<(Written, Written)> {
    let rest = rest.trim_start_matches(['*', '_', ' ', '%']).strip_prefix('(')?;
    let (low, rest) = Written::read(rest)?;
    let rest = rest.strip_prefix("..").or_else(|| rest.strip_prefix(" to "))?;
    let (high, rest) = Written::read(rest)?;
    rest.trim_start_matches([' ', '%']).starts_with(')').then_some((low, high))
}

/// Whether what stands in parentheses directly behind the number has two ends.
fn looks_like_an_interval(rest: &str) -> bool {
    let within = rest.trim_start_matches(['*', '_', ' ', '%']).strip_prefix('(');
    let within = within.and_then(|rest| rest.split_once(')')).map_or("", |(within, _)| within);
    let between = within.trim_start_matches(|c: char| !c.is_ascii_digit());
    within.starts_with(|c: char| c.is_ascii_digit() || "+-−".contains(c))
        && ["..", " to ", "–", "—", "…"].iter().any(|mark| between.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_with_their_line_and_fields() {
        let text = "`<!-- figure: example -->`1\ntwo <!-- figure: a.jsonl | whole | scan * | elapsed_s | side=x -->0.967 (0.946..0.989)\n";
        let quotes = Quote::all(text);
        assert_eq!((quotes.len(), quotes[0].line), (1, 2));
        assert_eq!(quotes[0].fields, ["a.jsonl", "whole", "scan *", "elapsed_s", "side=x"]);
        let (mean, rest) = Written::read(quotes[0].rest).unwrap();
        assert_eq!((mean.value, mean.digits, percent(rest)), (0.967, 3, false));
        let (low, high) = interval(rest).unwrap();
        assert_eq!((low.value, high.value), (0.946, 0.989));
    }

    #[test]
    fn a_table_has_a_figure_in_each_place_that_holds_one() {
        let text = "<!-- figures: a | x | {1}-{2}-{column} | ops_per_s -->\n<!-- figures: a | y | {column} | s | row=2 -->\n\n\
                    | n | `sync` | 4/3/3 | 1 FULL |\n|---|---|---|---|\n| 1 | NORMAL | 0.9 (0.8..1.0) | |\n| 2 | FULL | - | 1.1 |\n| 3 | x | about | 2 |\n";
        let quotes = Quote::all(text);
        let found: Vec<_> =
            quotes.iter().map(|one| (one.line, one.fields[2].as_str(), one.rest)).collect();
        assert_eq!(
            found,
            [
                (6, "1-NORMAL-4/3/3", "0.9 (0.8..1.0)"),
                (7, "2-FULL-1-FULL", "1.1"),
                (8, "3-x-1-FULL", "2"),
                (7, "1-FULL", "1.1"),
            ]
        );
        assert!(quotes.iter().all(|one| one.fields.len() == 4));
    }

    #[test]
    fn changes_have_signs_and_intervals_too() {
        let (mean, rest) = Written::read(" **+1.9 %** (−1.0 to +2.1 %)").unwrap();
        assert_eq!((mean.value, mean.digits, percent(rest)), (1.9, 1, true));
        assert_eq!(Written::read("−3 %").unwrap().0.value, -3.0);
        assert_eq!(Written::read("about 3"), None);
        assert_eq!(interval(" of all (2 cells)"), None);
        for (text, is_one) in [
            (" (0.900–0.999)", true),
            (" % (−1.0 % to +2.1 %)", true),
            (" (6 cells)", false),
            (" (about 1 to 2)", false),
        ] {
            assert_eq!((interval(text), looks_like_an_interval(text)), (None, is_one), "{text}");
        }
        assert_eq!(Written::read("7. Next").unwrap().0, Written { value: 7.0, digits: 0 });
    }

    #[test]
    fn a_figure_is_right_to_its_last_digit() {
        let written = Written { value: 0.967, digits: 3 };
        assert!(written.is(0.9670107) && written.is(0.9665));
        assert!(!written.is(0.9660) && !written.is(0.9676));
    }
}
