//! How a chart is painted: its colours, its marks, and the SVG that a page holds.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Layout, Star};
use crate::error::{Error, Result};
use crate::report::figures::Word;

pub(super) const INK: RGBColor = RGBColor(1, 2, 3);
pub(super) const MUTED: RGBColor = RGBColor(1, 2, 4);
pub(super) const GRID: RGBColor = RGBColor(1, 2, 5);
pub(super) const BAND: RGBColor = RGBColor(1, 2, 6);
const WORSE: RGBColor = RGBColor(1, 2, 7);
const BETTER: RGBColor = RGBColor(1, 2, 8);
const EVEN: RGBColor = RGBColor(1, 2, 9);
pub(super) const OPEN: RGBColor = RGBColor(1, 2, 10);
const PAPER: RGBColor = RGBColor(1, 2, 11);
pub(super) const BAR: RGBColor = RGBColor(1, 2, 12);
const VARIABLES: [(RGBColor, &str); 10] = [
    (INK, "ink"),
    (MUTED, "muted"),
    (GRID, "grid"),
    (BAND, "band"),
    (WORSE, "worse"),
    (BETTER, "better"),
    (EVEN, "even"),
    (OPEN, "open"),
    (PAPER, "paper"),
    (BAR, "bar"),
];
/// The backend draws at whole units: two of them are one pixel of the page.
pub(super) const UNITS: i32 = 2;
/// What the backend divides a font's size by.
const FONT: f64 = 1.24;

pub(super) type Root<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(super) fn draw(
    layout: &Layout,
    height: i32,
    title: &str,
    on: impl FnOnce(&Root<'_>) -> Result<()>,
) -> Result<String> {
    let mut svg = String::new();
    {
        let size = ((layout.width * UNITS) as u32, (height * UNITS) as u32);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        on(&root)?;
        root.present().map_err(drawing)?;
    }
    Ok(in_a_page(&svg, layout.width, height, title))
}

/// Variables for colours, a size that follows the page, and a text for those who do not see it.
fn in_a_page(svg: &str, width: i32, height: i32, title: &str) -> String {
    let body = svg.split_once('>').map_or("", |(_, body)| body);
    let mut text = format!(
        "<svg viewBox=\"0 0 {} {}\" width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\">",
        width * UNITS,
        height * UNITS,
        maud::html! { (title) }.into_string().replace('"', "&quot;"),
    );
    text.push_str(&compact(body));
    for (colour, name) in VARIABLES {
        let RGBColor(r, g, b) = colour;
        text = text.replace(&format!("\"#{r:02X}{g:02X}{b:02X}\""), &format!("\"var(--{name})\""));
    }
    text
}

/// What the backend writes out and SVG or the page's styles have as default.
const DEFAULTS: [&str; 4] =
    [" opacity=\"1\"", " font-family=\"sans-serif\"", " stroke=\"none\"", " stroke-width=\"1\""];

/// The same drawing in half the bytes: without defaults, and the ticks of a row as one path.
fn compact(body: &str) -> String {
    let mut text = String::with_capacity(body.len());
    let mut row: Option<(&str, String)> = None;
    let end = |row: &mut Option<(&str, String)>, text: &mut String| {
        if let Some((fill, path)) = row.take() {
            text.push_str(&format!(
                "<path opacity=\"0.35\" fill=\"none\" stroke-width=\"2\" stroke=\"{fill}\" d=\"{path}\"/>"
            ));
        }
    };
    for line in body.lines() {
        match tick(line) {
            Some((fill, path)) => match &mut row {
                Some((of_row, paths)) if *of_row == fill => paths.push_str(&path),
                _ => {
                    end(&mut row, &mut text);
                    row = Some((fill, path));
                }
            },
            None => {
                end(&mut row, &mut text);
                text.push_str(
                    &DEFAULTS
                        .iter()
                        .fold(line.to_owned(), |line, default| line.replace(default, "")),
                );
            }
        }
    }
    end(&mut row, &mut text);
    text
}

/// The fill of a tick, and the tick as a part of a path. A tick is two units wide.
fn tick(line: &str) -> Option<(&str, String)> {
    let rest = line.strip_prefix("<rect x=\"")?;
    let (x, rest) = rest.split_once("\" y=\"")?;
    let (y, rest) = rest.split_once("\" width=\"2\" height=\"")?;
    let (height, rest) = rest.split_once("\" opacity=\"0.35\" fill=\"")?;
    let fill = rest.strip_suffix("\" stroke=\"none\"/>")?;
    let centre = x.parse::<i32>().ok()? + 1;
    Some((fill, format!("M{centre} {y}v{height}")))
}

/// Takes the grid away behind what is written there.
pub(super) fn blank(root: &Root<'_>, layout: &Layout, top: i32, height: i32) -> Result<()> {
    let corners = [(0, top * UNITS), (layout.width * UNITS, (top + height) * UNITS)];
    root.draw(&Rectangle::new(corners, PAPER.filled())).map_err(drawing)
}

/// Worse points to more, better to less; no difference is full, not resolved is open.
pub(super) fn mark(root: &Root<'_>, (x, y): (i32, i32), word: Word, outside: i32) -> Result<()> {
    let size = 6 * UNITS;
    let colour = colour(word);
    let points = |way: i32| {
        vec![
            (x - way * size * 3 / 4, y - size),
            (x + way * size, y),
            (x - way * size * 3 / 4, y + size),
        ]
    };
    let triangle =
        |way: i32| root.draw(&Polygon::new(points(way), colour.filled())).map_err(drawing);
    match word {
        _ if outside != 0 => triangle(outside),
        Word::Worse => triangle(1),
        Word::Better => triangle(-1),
        Word::NoDifference => {
            root.draw(&Circle::new((x, y), size * 5 / 6, colour.filled())).map_err(drawing)
        }
        Word::NotResolved | Word::Told => {
            root.draw(&Circle::new((x, y), size * 5 / 6, PAPER.filled())).map_err(drawing)?;
            let line = colour.stroke_width(2 * UNITS as u32);
            root.draw(&Circle::new((x, y), size * 5 / 6, line)).map_err(drawing)
        }
    }
}

/// The mark of a case that surprises: of another shape than any word has.
pub(super) fn star(
    root: &Root<'_>,
    (x, y): (i32, i32),
    colour: RGBColor,
    kind: Star,
) -> Result<()> {
    let corner = |at: i32| {
        let radius = f64::from(9 * UNITS) * if at % 2 == 0 { 1.0 } else { 0.42 };
        let angle = std::f64::consts::PI * (f64::from(at) / 5.0 - 0.5);
        (x + (radius * angle.cos()).round() as i32, y + (radius * angle.sin()).round() as i32)
    };
    let points: Vec<(i32, i32)> = (0..10).map(corner).collect();
    match kind {
        Star::Full => root.draw(&Polygon::new(points, colour.filled())).map_err(drawing),
        Star::Open => outlined(root, points, colour),
    }
}

/// A closed line, with paper in it.
pub(super) fn outlined(
    root: &Root<'_>,
    mut points: Vec<(i32, i32)>,
    colour: RGBColor,
) -> Result<()> {
    root.draw(&Polygon::new(points.clone(), PAPER.filled())).map_err(drawing)?;
    // The first two again, or its first corner is open.
    points.extend_from_within(..2);
    root.draw(&PathElement::new(points, colour.stroke_width(3))).map_err(drawing)
}

pub(super) fn colour(word: Word) -> RGBColor {
    match word {
        Word::Worse => WORSE,
        Word::Better => BETTER,
        Word::NoDifference => EVEN,
        Word::NotResolved | Word::Told => OPEN,
    }
}

pub(super) fn font(size: f64, colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", size * FONT * f64::from(UNITS)).into_font().color(&colour)
}

pub(super) fn drawing(error: impl std::fmt::Display) -> Error {
    Error::invalid(format!("a chart: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_ticks_is_one_path_and_defaults_are_left_out() {
        let tick = |x: i32, fill: &str| {
            format!("<rect x=\"{x}\" y=\"22\" width=\"2\" height=\"16\" opacity=\"0.35\" fill=\"{fill}\" stroke=\"none\"/>\n")
        };
        let body = [
            tick(5, "#1"),
            tick(9, "#1"),
            tick(7, "#2"),
            "<rect x=\"1\" y=\"0\" width=\"80\" height=\"9\" opacity=\"1\" fill=\"#3\" stroke=\"none\"/>\n".to_owned(),
            "<text x=\"2\" opacity=\"1\" fill=\"#4\">\na < b\n</text>\n".to_owned(),
        ];
        assert_eq!(
            compact(&body.concat()),
            "<path opacity=\"0.35\" fill=\"none\" stroke-width=\"2\" stroke=\"#1\" d=\"M6 22v16M10 22v16\"/>\
             <path opacity=\"0.35\" fill=\"none\" stroke-width=\"2\" stroke=\"#2\" d=\"M8 22v16\"/>\
             <rect x=\"1\" y=\"0\" width=\"80\" height=\"9\" fill=\"#3\"/><text x=\"2\" fill=\"#4\">a < b</text>"
        );
    }
}
