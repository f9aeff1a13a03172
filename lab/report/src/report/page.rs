//! The report as one page: HTML with its charts, styles and a few lines of script, and no address.

use maud::{html, Markup, PreEscaped, DOCTYPE};

use super::chart::{self, Width};
use super::figures::Word;
use super::section::{Bars, Chart, Section, Through};
use super::tables::{Entry, Table};
use super::Report;
use crate::error::Result;

const STYLE: &str = include_str!("page.css");
const FIRST: &str = "Time with encryption over time without, by kind of work";
const SCRIPT: &str = include_str!("page.js");
/// What a page may have, with some room for what is said of tables that are left out: it is sent by mail, and read on a
/// phone.
const BYTES_MOST: usize = 1_980_000;
/// The page may do nothing but look as it does: not even the network is open to it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Renders the report as one HTML file.
///
/// # Errors
/// As [`chart::forest`].
pub fn render(report: &Report) -> Result<String> {
    let mut sections = report.sections.iter().map(section).collect::<Result<Vec<_>>>()?;
    let bytes = page(report, &sections)?.len();
    add_details(report, &mut sections, BYTES_MOST.saturating_sub(bytes));
    page(report, &sections)
}

fn page(report: &Report, sections: &[Markup]) -> Result<String> {
    let first = report.rows();
    let measured_on = report.machines.rows.first().map(|row| row[0].text.clone());
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { "What encryption costs: Pellucid lab report" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    p.brand { "Pellucid lab report" }
                    @if let Some(machine) = measured_on { p.machine { (machine) } }
                }
                main {
                    section #first {
                        @if !first.is_empty() {
                            (figure(&first, FIRST, true)?)
                            (key())
                        }
                        h1 { (report.sentence) }
                        @for line in &report.rest { p.most { (line) } }
                        @if let Some(missing) = &report.missing { p.most { (missing) } }
                        @for line in report.most.iter().chain(&report.promises.said) { p.most { (line) } }
                        @for caution in &report.cautions { p.caution { (caution) } }
                    }
                    nav aria-label="Experiments" {
                        a href="#headlines-section" { "Numbers" }
                        @if report.promises.said.is_some() { a href="#goals-section" { "Goals" } }
                        @for section in &report.sections {
                            a href={ "#" (section.id) } { (section.title) }
                        }
                        a href="#machine" { "Machine and method" }
                    }
                    section #headlines-section {
                        h2 { "What encryption costs" }
                        (table(&report.headlines, true))
                    }
                    @if report.promises.said.is_some() {
                        section #goals-section {
                            h2 { "Goals" }
                            p.note {
                                "Of " code { "lab/goals.json" } ", written before the measurement, as far as these records speak of them; \
                                 judged as " code { "lab verdict" } " does."
                            }
                            (table(&report.promises.table, true))
                        }
                    }
                    @for (section, made) in report.sections.iter().zip(sections) {
                        section id=(section.id) { (made) }
                    }
                    @if let Some(absent) = &report.absent {
                        section #not-measured {
                            h2 { (absent.title) }
                            details {
                                summary { (absent.rows.len()) " figures of the articles" }
                                (table(absent, true))
                            }
                        }
                    }
                    (method(report))
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    Ok(page.into_string())
}

fn section(section: &Section) -> Result<Markup> {
    let base = section.other_base.as_deref();
    let charts = section.charts.iter().map(chart).collect::<Result<Vec<_>>>()?;
    let surprises = section.surprises.iter().map(chart).collect::<Result<Vec<_>>>()?;
    let bars = section.bars.iter().map(bars).collect::<Result<Vec<_>>>()?;
    let through = section.through.iter().map(through).collect::<Result<Vec<_>>>()?;
    Ok(html! {
            h2 { (section.title) }
            @for note in &section.notes { p.note { (note) } }
            @for one in charts { (one) }
            @if let Some(facts) = &section.facts {
                h3 { (facts.title) }
                (table(facts, true))
            }
            @for one in bars.iter().chain(&surprises).chain(&through) { (one) }
            @if !section.bases.rows.is_empty() {
                h3 { (section.bases.title) }
                @if base.is_some() {
                    p.note {
                        "Over the base's time: side / base − 1. Over the side's time: (side − base) / side. "
                        "Throughput: side / base − 1, per page where pages were observed."
                    }
                } @else {
                    p.note {
                        "Over plain time: sealed / plain − 1. Over encrypted time: (sealed − plain) / sealed. "
                        "Throughput: sealed / plain − 1, per page where pages were observed."
                    }
                }
                (table(&section.bases, true))
            }
    })
}

/// Puts the tables of single figures and runs behind their sections, as long as there is room: figures before runs, short
/// tables before long ones. A page of one record has all of its own.
fn add_details(report: &Report, sections: &mut [Markup], mut room: usize) {
    let tables: [fn(&Section) -> &Table; 2] = [|one| &one.figures, |one| &one.runs];
    for of in tables {
        let mut tables: Vec<(usize, &Table, Markup)> = Vec::new();
        for (at, section) in report.sections.iter().enumerate() {
            let more = of(section);
            if !more.rows.is_empty() {
                tables.push((at, more, table(more, false)));
            }
        }
        tables.sort_by_key(|(_, _, made)| made.0.len());
        for (at, more, made) in tables {
            let fits = made.0.len() <= room;
            room -= if fits { made.0.len() } else { 0 };
            let added = html! {
                @if fits {
                    details {
                        summary { (more.title) " (" (more.rows.len()) ")" }
                        (made)
                    }
                } @else {
                    p.note {
                        (more.title) " (" (more.rows.len()) ") is too much for this page: "
                        code { "lab report --out page.html" } " of this record alone has it."
                    }
                }
            };
            sections[at].0.push_str(&added.0);
        }
    }
}

fn chart(chart: &Chart) -> Result<Markup> {
    Ok(html! {
        @if let Some(title) = &chart.title { h3 { (title) } }
        (figure(&chart.rows, &chart.caption, true)?)
    })
}

fn figure(rows: &[chart::Row], title: &str, caption: bool) -> Result<Markup> {
    let say = |row: &chart::Row| format!("{} {}", row.label, row.text);
    let told = rows.iter().map(say).collect::<Vec<_>>().join("; ");
    let told = format!("{title}. {told}");
    Ok(html! {
        figure {
            @if caption { figcaption { (title) } }
            div.desk { (PreEscaped(chart::forest(rows, &told, Width::Desk)?)) }
            div.phone { (PreEscaped(chart::forest(rows, &told, Width::Phone)?)) }
        }
    })
}

fn bars(bars: &Bars) -> Result<Markup> {
    let draw = |width| chart::bars(&bars.groups, &bars.title, &bars.unit, width);
    Ok(html! {
        h3 { (bars.title) }
        figure {
            figcaption { (bars.caption) }
            div.desk { (PreEscaped(draw(Width::Desk)?)) }
            div.phone { (PreEscaped(draw(Width::Phone)?)) }
        }
    })
}

fn through(through: &Through) -> Result<Markup> {
    let Through { title, key, lines } = through;
    let draw = |width| chart::lines(lines, &format!("{title}. {key}"), width);
    Ok(html! {
        h3 { (title) }
        p.key { (key) }
        figure {
            div.desk { (PreEscaped(draw(Width::Desk)?)) }
            div.phone { (PreEscaped(draw(Width::Phone)?)) }
        }
    })
}

fn key() -> Markup {
    html! {
        p.key {
            span { b.worse { "▶" } " slower" }
            span { b.better { "◀" } " faster" }
            span { b.even { "●" } " no difference: the whole interval within ±2 %, the shaded band" }
            span { b.open { "○" } " not resolved: too wide to tell" }
            span { "bars: 95 % intervals" }
            span { "ticks: single cells or runs" }
        }
    }
}

fn table(table: &Table, cards: bool) -> Markup {
    html! {
        div.scroll role="region" tabindex="0" aria-label=(table.title) {
            table.sortable.cards[cards] id=(table.id) {
                thead { tr {
                    @for column in &table.columns {
                        th.n[column.numeric] scope="col" { (column.title) }
                    }
                } }
                tbody {
                    @for row in &table.rows {
                        @let of = Of::row(row);
                        tr
                            data-session=[of.session]
                            data-cell=[of.cell]
                            data-side=[of.side]
                            data-what=[of.what]
                            data-statistic=[of.statistic] {
                            @for (column, entry) in table.columns.iter().zip(row) {
                                (cell(entry, &of, column.numeric, cards.then_some(column.title.as_str())))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Where numbers come from, as far as it is the same of a whole row: said once, or a page of all records has twice the size.
#[derive(Debug, Default, PartialEq)]
struct Of<'a> {
    session: Option<&'a str>,
    cell: Option<&'a str>,
    side: Option<&'a str>,
    what: Option<&'a str>,
    statistic: Option<&'a str>,
}

impl<'a> Of<'a> {
    fn entry(entry: &'a Entry) -> Self {
        let origin = entry.origin.as_ref();
        Self {
            session: origin.map(|origin| origin.session.as_str()),
            cell: origin.map(|origin| origin.cell.as_str()),
            side: origin.map(|origin| origin.side.as_str()),
            what: origin.map(|origin| origin.what.as_str()),
            statistic: origin.map(|origin| origin.statistic.as_str()),
        }
    }

    fn row(row: &'a [Entry]) -> Self {
        let mut numbers = row.iter().filter(|entry| entry.origin.is_some()).map(Self::entry);
        let Some(first) = numbers.next() else { return Self::default() };
        numbers.fold(first, |row, number| row.both(&number, |same| same))
    }

    /// What is the same of both, or what `number` has of its own.
    fn both(&self, number: &Self, keep: impl Fn(bool) -> bool) -> Self {
        let of =
            |row: Option<&'a str>, number: Option<&'a str>| number.filter(|_| keep(row == number));
        Self {
            session: of(self.session, number.session),
            cell: of(self.cell, number.cell),
            side: of(self.side, number.side),
            what: of(self.what, number.what),
            statistic: of(self.statistic, number.statistic),
        }
    }
}

fn cell(entry: &Entry, row: &Of, numeric: bool, label: Option<&str>) -> Markup {
    let own = row.both(&Of::entry(entry), |same| !same);
    let word = entry.word.map(|word| match word {
        Word::Worse => "worse",
        Word::Better => "better",
        Word::NoDifference => "even",
        Word::NotResolved | Word::Told => "open",
    });
    html! {
        td.n[numeric]
            .none[entry.text == "–"]
            data-label=[label]
            data-value=[entry.value]
            data-low=[entry.ends.map(|ends| ends.0)]
            data-high=[entry.ends.map(|ends| ends.1)]
            data-session=[own.session]
            data-cell=[own.cell]
            data-side=[own.side]
            data-what=[own.what]
            data-statistic=[own.statistic] {
            @match word {
                Some(word) => span class=(word) { (entry.text) },
                None => (entry.text),
            }
        }
    }
}

fn method(report: &Report) -> Markup {
    html! {
        section #machine {
            h2 { "Machine and method" }
            (table(&report.machines, true))
            ul.method {
                li { "Paired: every figure is a ratio, side to base, of the same round on the same machine; no time stands alone." }
                li { "Interleaved: a round runs every side once, in an order drawn from the seed. The warm-up round is recorded and is in no figure." }
                li { "The mean is that of the logarithms of the ratios, with Student's t at 95 % for each cell alone; the first screen's is the mean over a kind's cells, each with the same weight." }
                li { "“No difference” is said only when the whole interval lies within ±2 %; an interval that holds 0 and is wider is “not resolved”. Neither says that there is none." }
                li { "An article's figure is made of means over all runs, by the article's own formula; its interval is a jackknife over the rounds." }
                li { "Nothing is dropped. “Without outliers” is the mean of what lies within one and a half interquartile ranges of the quartiles; it stands beside the mean of all, and the number in brackets is of runs outside." }
                li { "Made of records alone: each number carries its session, cell, side and quantity, and its value to the last bit." }
            }
            details {
                summary { (report.sessions.title) " (" (report.sessions.rows.len()) ")" }
                (table(&report.sessions, true))
            }
        }
    }
}
