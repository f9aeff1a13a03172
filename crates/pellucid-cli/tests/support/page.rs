//! A page of the guide as a program: its ```console blocks, taken apart into steps.
//!
//! `# ` is root's prompt, `$ ` an ordinary user's; a name before it is the machine's, as in `old# `. `> ` continues a
//! command. All other lines are what it prints: a line `...` stands for any lines, `...` in a line for any text.

/// A command with what it has to print.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    /// In its file, from 1.
    pub line: usize,
    pub machine: String,
    pub root: bool,
    pub command: String,
    pub expected: Vec<String>,
}

/// The machine of a prompt without a name.
const MACHINE: &str = "server";
const ANY: &str = "...";

/// The steps of a page, in order, and in how many blocks they are.
///
/// # Errors
/// The line that is out of place.
pub fn steps(page: &str) -> Result<(usize, Vec<Step>), String> {
    let (mut blocks, mut steps) = (0, Vec::<Step>::new());
    let mut fence = None;
    let mut first = false;
    for (index, text) in page.lines().enumerate() {
        let line = index + 1;
        match (&fence, text.strip_prefix("```")) {
            (None, Some(kind)) => {
                fence = Some(kind.trim().to_owned());
                first = true;
                blocks += usize::from(kind.trim() == "console");
            }
            (Some(_), Some(_)) => fence = None,
            (Some(kind), None) if kind == "console" => {
                if let Some(step) = prompt(text, line) {
                    steps.push(step);
                } else if first {
                    return Err(format!("{line}: a block begins with a prompt, not with `{text}`"));
                } else if let Some(step) = steps.last_mut() {
                    match text.strip_prefix("> ").filter(|_| step.expected.is_empty()) {
                        Some(more) => step.command += &format!("\n{more}"),
                        None => step.expected.push(text.trim_end().to_owned()),
                    }
                }
                first = false;
            }
            _ => {}
        }
    }
    match fence {
        Some(_) => Err("the last block has no end".to_owned()),
        None => Ok((blocks, steps)),
    }
}

fn prompt(text: &str, line: usize) -> Option<Step> {
    let at = text.find(['$', '#'])?;
    let (name, rest) = text.split_at(at);
    let command = rest.get(1..)?.strip_prefix(' ')?;
    if !name.chars().all(|c| c.is_ascii_lowercase()) {
        return None;
    }
    Some(Step {
        line,
        machine: if name.is_empty() { MACHINE } else { name }.to_owned(),
        root: rest.starts_with('#'),
        command: command.to_owned(),
        expected: Vec::new(),
    })
}

/// Whether `got` is what `expected` says.
pub fn matches(expected: &[String], got: &[String]) -> bool {
    match expected.split_first() {
        None => got.is_empty(),
        Some((first, rest)) if first == ANY => {
            (0..=got.len()).any(|skipped| matches(rest, &got[skipped..]))
        }
        Some((first, rest)) => {
            got.split_first().is_some_and(|(line, more)| like(first, line) && matches(rest, more))
        }
    }
}

fn like(pattern: &str, line: &str) -> bool {
    let Some((start, mut rest)) = pattern.split_once(ANY) else { return pattern == line };
    let Some(mut line) = line.strip_prefix(start) else { return false };
    while let Some((middle, after)) = rest.split_once(ANY) {
        let Some(at) = line.find(middle) else { return false };
        (line, rest) = (&line[at + middle.len()..], after);
    }
    line.ends_with(rest)
}
