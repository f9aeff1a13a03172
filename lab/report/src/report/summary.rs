//! The report as Markdown and as a summary on a terminal.

use std::fmt::Write;

use comfy_table::{presets::UTF8_FULL_CONDENSED, CellAlignment, ContentArrangement};

use super::tables::Table;
use super::Report;

/// A table that is narrower cannot be read.
const NARROWEST: u16 = 40;

/// What comes first, the goals and the articles' figures; with `all` the tables of each experiment too.
pub fn markdown(report: &Report, all: bool) -> String {
    let mut text = format!("# What encryption costs\n\n{}\n", escaped(&report.sentence));
    // Writing to a String cannot fail.
    for line in report.more() {
        let _ = write!(text, "\n{}\n", escaped(line));
    }
    for caution in &report.cautions {
        let _ = write!(text, "\n> {}\n", escaped(caution));
    }
    table(&mut text, &report.headlines, 2);
    if report.promises.said.is_some() {
        table(&mut text, &report.promises.table, 2);
    }
    if !all {
        if let Some(articles) = report.articles() {
            table(&mut text, &articles, 2);
        }
        let _ = write!(text, "\nThe tables of each experiment: `lab report --markdown --all`.\n");
        return text;
    }
    for section in &report.sections {
        let _ = write!(text, "\n## {}\n", escaped(&section.title));
        for note in &section.notes {
            let _ = write!(text, "\n{}\n", escaped(note));
        }
        for one in section.facts.iter().chain([&section.bases, &section.figures]) {
            table(&mut text, one, 3);
        }
    }
    for one in report.absent.iter().chain([&report.machines, &report.sessions]) {
        table(&mut text, one, 2);
    }
    text
}

fn table(text: &mut String, table: &Table, level: usize) {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let _ = write!(text, "\n{} {}\n\n", "#".repeat(level), escaped(&table.title));
    text.push_str(&row(table.columns.iter().map(|column| escaped(&column.title)).collect()));
    let rule = |numeric: bool| if numeric { "---:" } else { "---" }.to_string();
    text.push_str(&row(table.columns.iter().map(|column| rule(column.numeric)).collect()));
    for cells in &table.rows {
        text.push_str(&row(cells.iter().map(|cell| escaped(&cell.text)).collect()));
    }
}

/// What Markdown or the HTML in it would take for something else.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '\n' | '\r' => escaped.push(' '),
            '|' | '*' | '`' | '[' | ']' | '_' | '\\' => {
                escaped.push('\\');
                escaped.push(c);
            }
            _ => escaped.push(c),
        }
    }
    escaped
}

/// What the page shows first: the sentence, what it does not speak of, and a line for each kind of work.
pub fn first_screen(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}", wrapped(&report.sentence));
    let _ = writeln!(text, "{}", drawn(&first_columns(&report.headlines)));
    for line in report.more().chain(&report.cautions) {
        let _ = writeln!(text, "{}", wrapped(line));
    }
    text
}

/// What a terminal has room for: the kind of work, the verdict, the time.
fn first_columns(table: &Table) -> Table {
    const SHOWN: usize = 3;
    let mut table = table.clone();
    table.columns.truncate(SHOWN);
    table.rows.iter_mut().for_each(|row| row.truncate(SHOWN));
    table
}

/// For a terminal: the first screen, the goals and the articles' figures, or `all` tables of the experiments.
pub fn terminal(report: &Report, all: bool) -> String {
    let mut text = first_screen(report);
    let mut add = |one: &Table| {
        let _ = writeln!(text, "\n{}\n{}", one.title, drawn(one));
    };
    if report.promises.said.is_some() {
        add(&report.promises.table);
    }
    if !all {
        if let Some(articles) = report.articles() {
            add(&without_formula(articles));
        }
        let more = "The tables of each experiment: lab report --all. Every figure and every run: --out report.html";
        let _ = write!(text, "{}", wrapped(more));
        return text;
    }
    for section in &report.sections {
        let _ = writeln!(text, "\n{}", section.title);
        for note in &section.notes {
            let _ = writeln!(text, "{}", wrapped(note));
        }
        for one in section.facts.iter().chain([&section.bases]) {
            let _ = writeln!(text, "{}", drawn(one));
        }
    }
    for one in [&report.machines, &report.sessions] {
        let _ = writeln!(text, "\n{}\n{}", one.title, drawn(one));
    }
    let _ = write!(text, "Every figure and every run: lab report --out report.html");
    text
}

/// A terminal is narrow: how an article counted is on the page, in Markdown and with `--all`.
fn without_formula(mut table: Table) -> Table {
    if let Some(at) = table.columns.iter().position(|column| column.title == "formula") {
        table.columns.remove(at);
        for row in &mut table.rows {
            row.remove(at);
        }
    }
    table
}

/// At the width of the terminal, where there is one; what is read by another program stays one line.
pub fn wrapped(text: &str) -> String {
    match comfy_table::Table::new().width() {
        Some(width) if width >= NARROWEST => broken(&printable(text), usize::from(width)),
        _ => printable(text),
    }
}

fn broken(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().map_or(0, |line| line.chars().count());
        match lines.last_mut() {
            Some(last) if line == 0 || line + 1 + word.chars().count() <= width => {
                if line > 0 {
                    last.push(' ');
                }
                last.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines.join("\n")
}

fn drawn(table: &Table) -> comfy_table::Table {
    let mut drawn = comfy_table::Table::new();
    let arrangement = arrangement(drawn.width());
    drawn
        .load_preset(UTF8_FULL_CONDENSED)
        .set_content_arrangement(arrangement)
        .set_header(table.columns.iter().map(|column| printable(&column.title)));
    for row in &table.rows {
        drawn.add_row(row.iter().map(|cell| printable(&cell.text)));
    }
    for (column, of) in drawn.column_iter_mut().zip(&table.columns) {
        if of.numeric {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    drawn
}

/// A terminal that says a width of 0, as script(1)'s does, knows none.
fn arrangement(width: Option<u16>) -> ContentArrangement {
    match width {
        Some(width) if width < NARROWEST => ContentArrangement::Disabled,
        _ => ContentArrangement::Dynamic,
    }
}

/// A name from a record must not move the cursor.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_width_that_nobody_has_is_unknown() {
        for (width, fits) in [(Some(0), false), (Some(39), false), (Some(40), true), (None, true)] {
            let dynamic = matches!(arrangement(width), ContentArrangement::Dynamic);
            assert_eq!(dynamic, fits, "{width:?}");
        }
    }

    #[test]
    fn a_line_is_broken_at_the_terminals_width() {
        let text = broken("On this machine: OLTP slower by 3.0 % (2.5 to 3.5); more", 40);
        assert_eq!(text, "On this machine: OLTP slower by 3.0 %\n(2.5 to 3.5); more");
        assert_eq!(broken("", 40), "");
    }

    #[test]
    fn names_of_records_stay_text() {
        assert_eq!(escaped("a|b <script> `x`\ny"), "a\\|b &lt;script> \\`x\\` y");
        assert_eq!(printable("a\u{1b}[2J"), "a\u{fffd}[2J");
    }
}
