//! Makes a script that shows a difference small: fewer steps first, then smaller values.

use std::time::{Duration, Instant};

use crate::run::{Bench, Difference};
use crate::script::{Script, Step};

/// A script and the difference it shows.
pub struct Found {
    pub script: Script,
    pub difference: Box<Difference>,
}

/// Tries smaller scripts for as long as `limit`; each kept one shows the same kind of difference.
pub fn shrink(bench: &Bench, found: Found, limit: Duration) -> Found {
    let mut shrinker = Shrinker { bench, found, end: Instant::now() + limit };
    loop {
        let before = shrinker.found.script.clone();
        shrinker.remove_steps();
        shrinker.simplify_steps();
        if shrinker.found.script == before || Instant::now() >= shrinker.end {
            return shrinker.found;
        }
    }
}

struct Shrinker<'a> {
    bench: &'a Bench,
    found: Found,
    end: Instant,
}

impl Shrinker<'_> {
    /// Keeps `steps` if they show the difference too.
    fn try_it(&mut self, steps: Vec<Step>) -> bool {
        if Instant::now() >= self.end {
            return false;
        }
        let script = Script { steps, ..self.found.script };
        let run = self.bench.replay(&script);
        match run.difference {
            Some(difference) if difference.kind == self.found.difference.kind => {
                // What comes after the difference is not needed.
                self.found = Found { script: Script { steps: run.steps, ..script }, difference };
                true
            }
            _ => false,
        }
    }

    /// Delta debugging (Zeller, Hildebrandt 2002): ever smaller pieces are left out.
    fn remove_steps(&mut self) {
        let mut piece = self.found.script.steps.len().div_ceil(2);
        while piece > 0 {
            let mut at = 0;
            while at < self.found.script.steps.len() {
                let mut steps = self.found.script.steps.clone();
                steps.drain(at..(at + piece).min(steps.len()));
                if !self.try_it(steps) {
                    at += piece;
                }
            }
            piece /= 2;
        }
    }

    fn simplify_steps(&mut self) {
        let mut at = 0;
        while at < self.found.script.steps.len() {
            let simpler = simpler_forms(&self.found.script.steps[at]);
            let kept = simpler.into_iter().any(|step| {
                let mut steps = self.found.script.steps.clone();
                steps[at] = step;
                self.try_it(steps)
            });
            if !kept {
                at += 1;
            }
        }
    }
}

/// Forms of a step that are simpler, each by one change.
fn simpler_forms(step: &Step) -> Vec<Step> {
    match step {
        Step::Sql(on, sql) => simpler_sql(sql).into_iter().map(|sql| Step::Sql(*on, sql)).collect(),
        Step::Cursor(on, sql) => {
            simpler_sql(sql).into_iter().map(|sql| Step::Cursor(*on, sql)).collect()
        }
        Step::Interrupt(on, after, sql) => {
            let whole = Step::Sql(*on, sql.clone());
            let forms = simpler_sql(sql).into_iter().map(|sql| Step::Interrupt(*on, *after, sql));
            std::iter::once(whole).chain(forms).collect()
        }
        Step::Copy(on, pages) if *pages > 1 => vec![Step::Copy(*on, pages / 2)],
        _ => Vec::new(),
    }
}

/// Numbers halved, texts cut, and what stands in brackets or behind a keyword left out.
fn simpler_sql(sql: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for word in [" WHERE ", " ORDER BY ", " RETURNING ", " LIMIT ", " ON CONFLICT"] {
        if let Some(at) = sql.rfind(word) {
            forms.push(sql[..at].to_owned());
        }
    }
    for word in [" OR REPLACE", " OR IGNORE", " OR ABORT", " OR FAIL", " OR ROLLBACK", " UNIQUE"] {
        if sql.contains(word) {
            forms.push(sql.replacen(word, "", 1));
        }
    }
    for (start, end) in numbers(sql) {
        if let Ok(number) = sql[start..end].parse::<u64>() {
            let smaller = [0, number / 2, number.saturating_sub(1)];
            forms.extend(
                smaller
                    .iter()
                    .filter(|n| **n < number)
                    .map(|n| format!("{}{n}{}", &sql[..start], &sql[end..])),
            );
        }
    }
    for (start, end) in rows(sql) {
        forms.push(format!("{}{}", &sql[..start], &sql[end..]));
    }
    // A recursion that no longer counts, or no longer ends, would fill the machine.
    let ends = |sql: &str| sql.contains("i+1 FROM n WHERE i<");
    forms.retain(|form| ends(sql) == ends(form) && form.contains(" n(i)") == sql.contains(" n(i)"));
    forms
}

/// Where numbers stand that are no part of a word.
fn numbers(sql: &str) -> Vec<(usize, usize)> {
    let bytes = sql.as_bytes();
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        while at < bytes.len() && word(bytes[at]) {
            at += 1;
        }
        if at > start && bytes[start..at].iter().all(u8::is_ascii_digit) {
            found.push((start, at));
        }
        at = at.max(start + 1);
    }
    found
}

/// Where all rows but the first of a `VALUES` stand, with the comma before each.
fn rows(sql: &str) -> Vec<(usize, usize)> {
    let Some(values) = sql.find(" VALUES(") else { return Vec::new() };
    let (mut depth, mut text, mut found, mut start) = (0, false, Vec::new(), None);
    for (at, byte) in sql.bytes().enumerate().skip(values) {
        match byte {
            b'\'' => text = !text,
            b'(' if !text => depth += 1,
            b')' if !text => {
                depth -= 1;
                if depth == 0 {
                    found.extend(start.take().map(|start| (start, at + 1)));
                }
            }
            b',' if !text && depth == 0 => start = Some(at),
            _ => {}
        }
    }
    found
}

#[test]
fn statements_become_simpler() {
    let forms = simpler_sql("INSERT OR FAIL INTO t1 VALUES(12,'a,(b'),(3,f(4)) RETURNING a");
    for form in [
        "INSERT OR FAIL INTO t1 VALUES(12,'a,(b'),(3,f(4))",
        "INSERT INTO t1 VALUES(12,'a,(b'),(3,f(4)) RETURNING a",
        "INSERT OR FAIL INTO t1 VALUES(6,'a,(b'),(3,f(4)) RETURNING a",
        "INSERT OR FAIL INTO t1 VALUES(12,'a,(b') RETURNING a",
    ] {
        assert!(forms.iter().any(|found| found == form), "{form}: {forms:#?}");
    }
}
