//! One HTML page of a database before and after `pellucid encrypt`: two files as a thief has them.
//!
//! Only kinds of pages and names of tables, in the map of the plain file, come from SQLite.

use std::fmt::Write;
use std::path::Path;

use super::dump::shown;
use super::image::{Found, Image, SAMPLE_BYTES_MAX};
use super::pages::{cells, group, Cell, Kind, Kinds};
use super::svg::{dots, grid, histogram, histogram_top, map, DOTS_MAX};
use crate::output::{Failure, Id};

const TEMPLATE: &str = include_str!("picture.html");

/// What the page is made of.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The database's name on the page.
    pub name: &'a str,
    /// The plain file, for SQLite.
    pub plain_path: &'a Path,
    pub plain: &'a Image,
    pub sealed: &'a Image,
    /// What was looked for, as text and as it stands in the plain file.
    pub text: &'a str,
    pub needle: &'a [u8],
    pub plain_found: &'a Found,
    pub sealed_found: &'a Found,
    /// What was said about a changed copy.
    pub error: &'a str,
}

/// The page.
pub fn page(subject: &Subject) -> Result<String, Failure> {
    let Subject { plain, sealed, .. } = subject;
    let plain_cells = cells(plain, &Kinds::plain(subject.plain_path, plain)?);
    let sealed_cells = cells(sealed, &Kinds::sealed(sealed));
    let grid = grid(plain_cells.len().max(sealed_cells.len()));
    let top = histogram_top(&plain.counts);

    let first = subject.plain_found.places.first().copied();
    let here = first.unwrap_or(plain.page_size);
    let there = subject.sealed_found.places.first().map_or(here + sealed.header_bytes, |at| *at);
    let dots_from = (here / plain.page_size).saturating_sub(1) * plain.page_size;
    let read = |image: &Image| image.read(dots_from + image.header_bytes, DOTS_MAX);
    let (plain_bytes, sealed_bytes) = (read(plain)?, read(sealed)?);
    let dotted = |bytes: &[u8]| {
        dots(bytes, plain_bytes.len().max(sealed_bytes.len())).map_err(|error| {
            Failure::new(Id::Defect, format!("the picture's dots: {error}"), "try again")
        })
    };
    fill(
        TEMPLATE,
        &[
            ("name", escape(subject.name)),
            ("find", escape(subject.text)),
            ("plain_map", map(&plain_cells, grid, "Pages of the plain file")),
            ("sealed_map", map(&sealed_cells, grid, "Pages of the sealed file")),
            ("plain_size", size(plain.bytes)),
            ("sealed_size", size(sealed.bytes)),
            ("plain_legend", legend(&plain_cells)),
            ("sealed_legend", legend(&sealed_cells)),
            ("plain_dots", dotted(&plain_bytes)?),
            ("sealed_dots", dotted(&sealed_bytes)?),
            ("plain_histogram", histogram(&plain.counts, "leaf", top)),
            ("sealed_histogram", histogram(&sealed.counts, "sealed", top)),
            ("most", most(plain)),
            ("spread", spread(sealed)),
            ("plain_found", found(subject.plain_found)),
            ("sealed_found", found(subject.sealed_found)),
            (
                "sealed_class",
                if subject.sealed_found.count == 0 { "good" } else { "bad" }.to_owned(),
            ),
            ("plain_dump", hex_dump(plain, here, subject.needle)?),
            ("sealed_dump", hex_dump(sealed, there, subject.needle)?),
            ("facts", facts(plain, sealed)?),
            ("error", escape(subject.error.trim())),
            ("notes", notes(plain, sealed)),
        ],
    )
}

/// Puts the values into the template, in one pass: what a value holds is not looked at again.
pub fn fill(template: &str, values: &[(&str, String)]) -> Result<String, Failure> {
    let mut out = String::with_capacity(template.len() * 8);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let value = after.split_once("}}").and_then(|(name, after)| {
            let value = values.iter().find(|(known, _)| *known == name)?;
            Some((&value.1, after))
        });
        let Some((value, after)) = value else {
            let message = "the picture's template asks for something that is not there";
            return Err(Failure::new(Id::Defect, message, "report this as a bug"));
        };
        out.push_str(value);
        rest = after;
    }
    Ok(out + rest)
}

/// `text` for HTML, in elements and in quoted attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(character),
        }
    }
    out
}

/// `561 152 bytes`, with narrow spaces that do not break.
fn size(bytes: u64) -> String {
    let digits = bytes.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out + " bytes"
}

fn legend(cells: &[Cell]) -> String {
    let present = |kind: &Kind| cells.iter().any(|cell| cell.kind == *kind);
    let item = |kind: Kind| {
        let (class, name) = kind.names();
        format!("<li><i class=\"k-{class}\"></i>{name}</li>")
    };
    Kind::ALL.into_iter().filter(present).map(item).collect()
}

fn found(found: &Found) -> String {
    match found.count {
        0 => "not found".to_owned(),
        1 => "found once".to_owned(),
        count => format!("found {count} times"),
    }
}

fn percent(count: u64, image: &Image) -> f64 {
    100.0 * count as f64 / image.counted().max(1) as f64
}

fn most(image: &Image) -> String {
    let most = image.counts.iter().enumerate().max_by_key(|(_, count)| **count);
    let (value, count) = most.map_or((0, 0), |(value, count)| (value, *count));
    let share = percent(count, image);
    format!("The most frequent value, 0x{value:02X}, makes up {share:.0} %.")
}

fn spread(image: &Image) -> String {
    let bounds = image
        .counts
        .iter()
        .fold((u64::MAX, 0), |(low, high), count| (low.min(*count), high.max(*count)));
    format!(
        "Each value makes up between {:.2} and {:.2} %; even would be 0.39 %.",
        percent(bounds.0, image),
        percent(bounds.1, image)
    )
}

/// Eight lines as `hexdump -C` prints them, two of them before `at`; what was searched for is marked.
fn hex_dump(image: &Image, at: u64, needle: &[u8]) -> Result<String, Failure> {
    let start = (at / 16 * 16).saturating_sub(32);
    let bytes = image.read(start, 128)?;
    let marked = memchr::memmem::find(&bytes, needle).map(|at| at..at + needle.len());
    let is_marked = |at: usize| marked.as_ref().is_some_and(|marked| marked.contains(&at));
    let mut lines = Vec::new();
    for (row, chunk) in bytes.chunks(16).enumerate() {
        let (mut hex, mut text) = (String::new(), String::new());
        for (column, byte) in chunk.iter().enumerate() {
            let at = row * 16 + column;
            let gap = if column > 0 { " " } else { "" };
            let begins = is_marked(at) && (column == 0 || !is_marked(at - 1));
            let ends = is_marked(at) && (column == chunk.len() - 1 || !is_marked(at + 1));
            let (open, close) =
                (if begins { "<mark>" } else { "" }, if ends { "</mark>" } else { "" });
            let _ = write!(hex, "{gap}{open}{byte:02x}{close}");
            let shown = escape(&shown(*byte, '·').to_string());
            let _ = write!(text, "{open}{shown}{close}");
        }
        // Tags have no width, so the last row is filled up by hand.
        let fill = "   ".repeat(16 - chunk.len());
        let offset = start + row as u64 * 16;
        lines.push(format!("<span class=\"at\">{offset:08x}</span>  {hex}{fill}  {text}"));
    }
    Ok(format!("<pre>{}</pre>", lines.join("\n")))
}

fn facts(plain: &Image, sealed: &Image) -> Result<String, Failure> {
    let start: String = sealed.read(0, 16)?.iter().map(|byte| shown(*byte, '·')).collect();
    let rows = [
        (
            "First bytes",
            "<code>SQLite format 3</code>".to_owned(),
            format!("<code>{}</code>", escape(&start)),
        ),
        ("Size", size(plain.bytes), size(sealed.bytes)),
        (
            "Pages",
            format!("{} of {} bytes", plain.pages(), plain.page_size),
            format!(
                "{} of {} bytes, of which 32 hold nonce, generation and tag",
                sealed.pages(),
                sealed.page_size
            ),
        ),
        (
            "Readable strings, 8 or longer",
            plain.strings()?.to_string(),
            format!("{}, by chance or in the header", sealed.strings()?),
        ),
        (
            "Entropy of the pages, bits per byte",
            format!("{:.4}", plain.entropy),
            format!("{:.4}", sealed.entropy),
        ),
        (
            "A page compresses to",
            format!("{:.0} %", plain.packed * 100.0),
            format!("{:.0} %", sealed.packed * 100.0),
        ),
    ];
    let row = |(name, plain, sealed): &(&str, String, String)| {
        format!("<tr><th scope=row>{name}</th><td>{plain}</td><td>{sealed}</td></tr>")
    };
    Ok(rows.iter().map(row).collect())
}

fn notes(plain: &Image, sealed: &Image) -> String {
    let mut notes = String::new();
    let grouped = group(plain).max(group(sealed));
    if grouped > 1 {
        let _ = write!(notes, "Each cell stands for up to {grouped} pages. ");
    }
    if plain.step.max(sealed.step) > 1 {
        let _ = write!(
            notes,
            "Counts come from evenly spread pages, {} MiB of each file; the search went through \
             all of it.",
            SAMPLE_BYTES_MAX >> 20
        );
    }
    notes
}
