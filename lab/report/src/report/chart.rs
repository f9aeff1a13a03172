//! Charts as SVG that a page holds: intervals as error bars, and bars of values.
//!
//! Colours are drawn as marks that the page's variables take the place of, so that one drawing is
//! dark and light; shapes and words say the same as the colours. Each chart is drawn twice, for a
//! desk and for a phone.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::figures::Word;
use crate::error::{Error, Result};
use crate::statistics::NO_DIFFERENCE;

const INK: RGBColor = RGBColor(1, 2, 3);
const MUTED: RGBColor = RGBColor(1, 2, 4);
const GRID: RGBColor = RGBColor(1, 2, 5);
const BAND: RGBColor = RGBColor(1, 2, 6);
const WORSE: RGBColor = RGBColor(1, 2, 7);
const BETTER: RGBColor = RGBColor(1, 2, 8);
const EVEN: RGBColor = RGBColor(1, 2, 9);
const OPEN: RGBColor = RGBColor(1, 2, 10);
const PAPER: RGBColor = RGBColor(1, 2, 11);
const BAR: RGBColor = RGBColor(1, 2, 12);
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
const UNITS: i32 = 2;
/// A cost beyond this is an arrow at the edge if others lie within: its number is beside it.
const FAR: f64 = 2.0;
/// What the backend divides a font's size by.
const FONT: f64 = 1.24;
/// Width of a chart on a desk.
const DESK: i32 = 1040;
/// Sizes of what is written, in pixels.
const LABEL: f64 = 13.5;
const TEXT: f64 = 13.0;
const TICK: f64 = 12.0;

/// One line of a chart of costs.
#[derive(Debug, Clone)]
pub struct Row {
    pub label: String,
    /// What the numbers say, in words.
    pub text: String,
    /// Ratio of costs: above 1 takes more.
    pub mean: Option<f64>,
    pub ends: Option<(f64, f64)>,
    /// Of each round.
    pub dots: Vec<f64>,
    pub word: Word,
    /// Of a case that surprises.
    pub star: Option<Star>,
}

/// How a surprising case is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Star {
    Full,
    /// Surprising only by some of the runs.
    Open,
}

/// One bar: a mean, and from the lowest to the highest run.
#[derive(Debug, Clone)]
pub struct Bar {
    pub label: String,
    pub text: String,
    pub mean: f64,
    pub range: (f64, f64),
    /// The mean of another quantity in the same unit, as a mark.
    pub beside: Option<f64>,
    pub base: bool,
}

/// Bars that belong together.
#[derive(Debug, Clone)]
pub struct Group {
    pub name: String,
    pub bars: Vec<Bar>,
}

/// Percent through the seconds of a run.
#[derive(Debug, Clone)]
pub struct Line {
    pub points: Vec<(f64, f64)>,
    pub stroke: Stroke,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    Solid,
    Dashed,
    Dotted,
}

/// For which screen a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    Desk,
    Phone,
}

/// Where things lie, in pixels of the page.
struct Layout {
    width: i32,
    left: i32,
    right: i32,
    row: i32,
    /// Of the mark, within its row.
    centre: f64,
    ticks: usize,
}

impl Layout {
    /// With the lengths of the longest label and the longest text, in pixels.
    fn of(width: Width, longest_label: i32, longest_text: i32) -> Self {
        let fits = |length: i32, most: i32| (length + 26).min(most);
        match width {
            Width::Desk => Self {
                width: DESK,
                left: fits(longest_label, 310),
                right: fits(longest_text, 390),
                row: 30,
                centre: 0.5,
                ticks: 9,
            },
            Width::Phone => {
                Self { width: 358, left: 12, right: 12, row: 62, centre: 0.8, ticks: 5 }
            }
        }
    }

    fn phone(&self) -> bool {
        self.centre > 0.5
    }
}

/// The intervals of `rows` on one axis of costs.
///
/// # Errors
/// [`Error::Invalid`] if it cannot be drawn.
pub fn forest(rows: &[Row], title: &str, width: Width) -> Result<String> {
    let longest = |of: fn(&Row) -> i32| rows.iter().map(of).max().unwrap_or(0);
    let layout = Layout::of(
        width,
        longest(|row| length(&row.label, LABEL)),
        longest(|row| length(&row.text, TEXT)),
    );
    let (low, high) = reach(rows);
    let height = rows.len() as i32 * layout.row + 44;
    draw(&layout, height, title, |root| {
        let plot = f64::from(layout.width - layout.left - layout.right);
        let (ticks, label) = ticks(low, high, layout.ticks, plot);
        let n = rows.len() as f64;
        let mut chart = ChartBuilder::on(root)
            .margin_left(layout.left * UNITS)
            .margin_right(layout.right * UNITS)
            .x_label_area_size(44 * UNITS)
            .build_cartesian_2d(low..high, n..0.0)
            .map_err(drawing)?;
        chart
            .draw_series([Rectangle::new(
                [(-NO_DIFFERENCE.ln(), n), (NO_DIFFERENCE.ln(), 0.0)],
                BAND.filled(),
            )])
            .map_err(drawing)?;
        for tick in ticks {
            let line = PathElement::new([(tick, n), (tick, 0.0)], GRID.stroke_width(2));
            chart.draw_series([line]).map_err(drawing)?;
            let (x, y) = chart.backend_coord(&(tick, n));
            let half = length(&label(tick), TICK) * UNITS / 2;
            if x < half || x + half > layout.width * UNITS {
                continue;
            }
            let style = font(TICK, MUTED).pos(Pos::new(HPos::Center, VPos::Top));
            root.draw(&Text::new(label(tick), (x, y + 6 * UNITS), style)).map_err(drawing)?;
        }
        chart
            .draw_series([PathElement::new([(0.0, n), (0.0, 0.0)], MUTED.stroke_width(2))])
            .map_err(drawing)?;
        for (at, row) in rows.iter().enumerate() {
            let y = at as f64 + layout.centre;
            write_row(root, &layout, at, &row.label, &row.text)?;
            if at > 0 && layout.phone() {
                let line = PathElement::new([(low, at as f64), (high, at as f64)], GRID);
                chart.draw_series([line]).map_err(drawing)?;
            }
            let Some(mean) = row.mean.map(f64::ln) else { continue };
            let colour = colour(row.word);
            let faint = colour.mix(0.35).filled();
            for dot in row.dots.iter().map(|dot| dot.ln()).filter(|dot| (low..=high).contains(dot))
            {
                let dot = EmptyElement::at((dot, y))
                    + Rectangle::new([(-1, -4 * UNITS), (1, 4 * UNITS)], faint);
                chart.draw_series([dot]).map_err(drawing)?;
            }
            if let Some((from, to)) = row.ends {
                let (from, to) = (from.ln().clamp(low, high), to.ln().clamp(low, high));
                let style = colour.stroke_width(2 * UNITS as u32);
                // Not the library's error bar: its dot would show through the mark.
                let bar = PathElement::new([(from, y), (to, y)], style);
                chart.draw_series([bar]).map_err(drawing)?;
                let cap = |at| {
                    EmptyElement::at((at, y))
                        + PathElement::new([(0, -3 * UNITS), (0, 3 * UNITS)], style)
                };
                chart.draw_series([cap(from), cap(to)]).map_err(drawing)?;
            }
            let point = chart.backend_coord(&(mean.clamp(low, high), y));
            let outside = (mean > high) as i32 - (mean < low) as i32;
            match row.star.filter(|_| outside == 0) {
                Some(kind) => star(root, point, colour, kind)?,
                None => mark(root, point, row.word, outside)?,
            }
        }
        let (ends, bottom) = ((low, high), height * UNITS - 6 * UNITS);
        let (from, to) = (chart.backend_coord(&(ends.0, n)).0, chart.backend_coord(&(ends.1, n)).0);
        let below = font(11.0, MUTED);
        let write = |text: &str, x: i32, side: HPos| {
            let style = below.clone().pos(Pos::new(side, VPos::Bottom));
            root.draw(&Text::new(text.to_string(), (x, bottom), style)).map_err(drawing)
        };
        write("◂ takes less", from, HPos::Left)?;
        write("takes more ▸", to, HPos::Right)
    })
}

/// Values side by side, from zero.
///
/// # Errors
/// [`Error::Invalid`] if it cannot be drawn.
pub fn bars(groups: &[Group], title: &str, unit: &str, width: Width) -> Result<String> {
    let all = || groups.iter().flat_map(|group| &group.bars);
    let longest = |of: fn(&Bar) -> i32| all().map(of).max().unwrap_or(0);
    let layout = Layout {
        row: if width == Width::Phone { 46 } else { 22 },
        centre: if width == Width::Phone { 0.75 } else { 0.5 },
        ..Layout::of(
            width,
            longest(|bar| length(&bar.label, LABEL)),
            longest(|bar| length(&bar.text, TEXT)),
        )
    };
    // A group's name has a line of its own.
    let lines = all().count() + groups.len();
    let most = all().map(|bar| bar.range.1).fold(0.0, f64::max) * 1.02;
    let height = lines as i32 * layout.row + 44;
    draw(&layout, height, title, |root| {
        let n = lines as f64;
        let mut chart = ChartBuilder::on(root)
            .margin_left(layout.left * UNITS)
            .margin_right(layout.right * UNITS)
            .x_label_area_size(44 * UNITS)
            .build_cartesian_2d(0.0..most.max(f64::MIN_POSITIVE), n..0.0)
            .map_err(drawing)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_labels(layout.ticks)
            .bold_line_style(GRID.stroke_width(1))
            .light_line_style(TRANSPARENT)
            .axis_style(GRID.stroke_width(2))
            .x_label_formatter(&|value: &f64| plain(*value))
            .label_style(font(12.0, MUTED))
            .draw()
            .map_err(drawing)?;
        let mut at = 0;
        for group in groups {
            if layout.phone() {
                blank(root, &layout, at * layout.row, layout.row)?;
            }
            let place = (4 * UNITS, (at * layout.row + layout.row * 2 / 3) * UNITS);
            let style = font(13.0, INK).pos(Pos::new(HPos::Left, VPos::Center));
            root.draw(&Text::new(group.name.clone(), place, style)).map_err(drawing)?;
            at += 1;
            for bar in &group.bars {
                write_row(root, &layout, at as usize, &bar.label, &bar.text)?;
                let y = f64::from(at) + layout.centre;
                let half = if layout.phone() { 0.14 } else { 0.3 };
                let fill = if bar.base { OPEN.mix(0.5).filled() } else { BAR.filled() };
                let body = Rectangle::new([(0.0, y - half), (bar.mean, y + half)], fill);
                chart.draw_series([body]).map_err(drawing)?;
                let (low, high) = bar.range;
                let style = INK.stroke_width(UNITS as u32);
                let whisker =
                    ErrorBar::new_horizontal(y, low, bar.mean, high, style, 5 * UNITS as u32);
                chart.draw_series([whisker]).map_err(drawing)?;
                if let Some(beside) = bar.beside {
                    let (x, y) = chart.backend_coord(&(beside.min(most), y));
                    let size = 5 * UNITS;
                    let points = vec![(x, y - size), (x + size, y), (x, y + size), (x - size, y)];
                    outlined(root, points, INK)?;
                }
                at += 1;
            }
        }
        let place = (chart.backend_coord(&(most, n)).0, height * UNITS - 6 * UNITS);
        let style = font(11.0, MUTED).pos(Pos::new(HPos::Right, VPos::Bottom));
        root.draw(&Text::new(unit.to_string(), place, style)).map_err(drawing)
    })
}

/// Percent over seconds.
///
/// # Errors
/// [`Error::Invalid`] if it cannot be drawn.
pub fn lines(lines: &[Line], title: &str, width: Width) -> Result<String> {
    let layout = Layout { row: 170, ..Layout::of(width, 0, 0) };
    let last = lines.iter().flat_map(|line| &line.points).map(|point| point.0).fold(0.0, f64::max);
    draw(&layout, layout.row, title, |root| {
        let mut chart = ChartBuilder::on(root)
            .margin_top(8 * UNITS)
            .margin_right(24 * UNITS)
            .x_label_area_size(26 * UNITS)
            .y_label_area_size(46 * UNITS)
            .build_cartesian_2d(0.0..last.max(f64::MIN_POSITIVE), 0.0..100.0)
            .map_err(drawing)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(layout.ticks)
            .y_labels(3)
            .bold_line_style(GRID.stroke_width(1))
            .light_line_style(TRANSPARENT)
            .axis_style(GRID.stroke_width(2))
            .x_label_formatter(&|seconds: &f64| format!("{} s", plain(*seconds)))
            .y_label_formatter(&|percent: &f64| format!("{} %", plain(*percent)))
            .label_style(font(12.0, MUTED))
            .draw()
            .map_err(drawing)?;
        for Line { points, stroke } in lines {
            let dashes = |on: i32, off: i32, colour: RGBColor| {
                let style = colour.stroke_width(2 * UNITS as u32);
                DashedLineSeries::new(points.iter().copied(), on * UNITS, off * UNITS, style)
            };
            match stroke {
                Stroke::Solid => {
                    let style = BAR.stroke_width(2 * UNITS as u32);
                    let line = LineSeries::new(points.iter().copied(), style);
                    chart.draw_series(line).map_err(drawing)?;
                }
                Stroke::Dashed => {
                    chart.draw_series(dashes(8, 5, INK)).map_err(drawing)?;
                }
                Stroke::Dotted => {
                    chart.draw_series(dashes(2, 5, OPEN)).map_err(drawing)?;
                }
            }
        }
        Ok(())
    })
}

type Root<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw(
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
    text.push_str(body.trim_start());
    for (colour, name) in VARIABLES {
        let RGBColor(r, g, b) = colour;
        text = text.replace(&format!("\"#{r:02X}{g:02X}{b:02X}\""), &format!("\"var(--{name})\""));
    }
    text
}

fn write_row(root: &Root<'_>, layout: &Layout, at: usize, label: &str, text: &str) -> Result<()> {
    let top = at as i32 * layout.row;
    let write = |text: &str, x: i32, y: i32, size: f64, colour, side| {
        let style = font(size, colour).pos(Pos::new(side, VPos::Center));
        root.draw(&Text::new(text.to_string(), (x * UNITS, y * UNITS), style)).map_err(drawing)
    };
    if layout.phone() {
        let second = layout.row > 50;
        blank(root, layout, top, if second { 40 } else { 24 })?;
        let (x, y, side) =
            if second { (4, top + 31, HPos::Left) } else { (354, top + 14, HPos::Right) };
        let text = cut(text, 12.0, layout.width - 8);
        let beside = if second { 0 } else { length(&text, 12.0) + 12 };
        write(&cut(label, 13.0, layout.width - 8 - beside), 4, top + 14, 13.0, INK, HPos::Left)?;
        return write(&text, x, y, 12.0, MUTED, side);
    }
    let middle = top + layout.row / 2;
    // A label that is too long has two lines where its row has the place, and says where it was cut.
    let place = layout.left - 18;
    match two_lines(label, LABEL, place).filter(|_| layout.row >= 28) {
        Some((first, second)) => {
            write(&first, layout.left - 14, middle - 7, 12.0, INK, HPos::Right)?;
            write(&second, layout.left - 14, middle + 7, 12.0, INK, HPos::Right)?;
        }
        None => {
            let label = cut(label, LABEL, place);
            write(&label, layout.left - 14, middle, LABEL, INK, HPos::Right)?;
        }
    }
    let (place, left) = (layout.right - 18, layout.width - layout.right + 14);
    match two_lines(text, TEXT, place).filter(|_| layout.row >= 28) {
        Some((first, second)) => {
            write(&first, left, middle - 7, 12.0, INK, HPos::Left)?;
            write(&second, left, middle + 7, 12.0, INK, HPos::Left)
        }
        None => write(&cut(text, TEXT, place), left, middle, TEXT, INK, HPos::Left),
    }
}

/// About how wide `text` is in pixels, by the wider of the fonts that a page may find.
fn length(text: &str, size: f64) -> i32 {
    let of = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '(' | ')' | '[' | ']' | ' ' => 0.36,
        'f' | 'r' | 't' | '/' | '-' | '"' | '*' | '_' => 0.44,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '×' | '−' | '+' | '…' => 0.92,
        'A'..='Z' => 0.70,
        _ => 0.61,
    };
    (text.chars().map(of).sum::<f64>() * size).ceil() as i32
}

/// `text`, with `…` for the end that does not fit into `place` pixels.
fn cut(text: &str, size: f64, place: i32) -> String {
    if length(text, size) <= place {
        return text.into();
    }
    let mut kept: String = text.into();
    while !kept.is_empty() && length(&kept, size) + length("…", size) > place {
        kept.pop();
    }
    format!("{}…", kept.trim_end())
}

/// A label that is too long, in two lines: broken at a space, or cut at the end of the second.
fn two_lines(label: &str, size: f64, place: i32) -> Option<(String, String)> {
    if length(label, size) <= place {
        return None;
    }
    let fits = |(at, _): &(usize, &str)| length(&label[..*at], 12.0) <= place;
    let last = |mark: &str| label.match_indices(mark).filter(fits).last().map(|(at, _)| at);
    // Before a part that stands for itself rather than within it.
    let at = last(" · ").or_else(|| last(", ").map(|at| at + 1)).or_else(|| last(" "))?;
    let second = label[at..].trim_start_matches([' ', '·']);
    Some((label[..at].into(), cut(second, 12.0, place)))
}

/// A number of an axis without what floating point adds to it.
fn plain(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".into()
    } else {
        text.into()
    }
}

/// Takes the grid away behind what is written there.
fn blank(root: &Root<'_>, layout: &Layout, top: i32, height: i32) -> Result<()> {
    let corners = [(0, top * UNITS), (layout.width * UNITS, (top + height) * UNITS)];
    root.draw(&Rectangle::new(corners, PAPER.filled())).map_err(drawing)
}

/// Worse points to more, better to less; no difference is full, not resolved is open.
fn mark(root: &Root<'_>, (x, y): (i32, i32), word: Word, outside: i32) -> Result<()> {
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
fn star(root: &Root<'_>, (x, y): (i32, i32), colour: RGBColor, kind: Star) -> Result<()> {
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
fn outlined(root: &Root<'_>, mut points: Vec<(i32, i32)>, colour: RGBColor) -> Result<()> {
    root.draw(&Polygon::new(points.clone(), PAPER.filled())).map_err(drawing)?;
    // The first two again, or its first corner is open.
    points.extend_from_within(..2);
    root.draw(&PathElement::new(points, colour.stroke_width(3))).map_err(drawing)
}

fn colour(word: Word) -> RGBColor {
    match word {
        Word::Worse => WORSE,
        Word::Better => BETTER,
        Word::NoDifference => EVEN,
        Word::NotResolved | Word::Told => OPEN,
    }
}

fn font(size: f64, colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", size * FONT * f64::from(UNITS)).into_font().color(&colour)
}

fn drawing(error: impl std::fmt::Display) -> Error {
    Error::invalid(format!("a chart: {error}"))
}

/// Logarithms that hold all intervals but those of far rows, and a little more. Where far rows are more than a tenth they are
/// no exception: the axis holds them all.
fn reach(rows: &[Row]) -> (f64, f64) {
    let near = |row: &&Row| row.mean.is_some_and(|mean| mean.ln().abs() <= FAR.ln());
    let far = rows.iter().filter(|row| row.mean.is_some() && !near(row)).count();
    // What surprises is near: there a far row stays the exception.
    let few = far * 10 <= rows.len().max(10) || rows.iter().any(|row| row.star.is_some());
    let some_near = few && rows.iter().any(|row| near(&row));
    let mut reach = (-0.045_f64, 0.045_f64);
    for row in rows.iter().filter(|row| !some_near || near(row)) {
        let ends = row.ends.or(row.mean.map(|mean| (mean, mean)));
        let dots = row.dots.iter().copied().filter(|dot| *dot > 0.0);
        // An outlier is shown, as an interval's end is.
        let ends = ends.into_iter().chain(dots.map(|dot| (dot, dot)));
        for (low, high) in ends {
            // A wide interval may go beyond what is near, but not without end.
            let most = if some_near { 2.0 * FAR.ln() } else { 20.0 };
            reach = (reach.0.min(low.ln().max(-most)), reach.1.max(high.ln().min(most)));
        }
    }
    let air = (reach.1 - reach.0) * 0.06;
    (reach.0 - air, reach.1 + air)
}

type Label = fn(f64) -> String;

/// At most `most` places on the axis that is `plot` pixels long: percents of one step, or factors where it is long. No two
/// labels touch.
fn ticks(low: f64, high: f64, most: usize, plot: f64) -> (Vec<f64>, Label) {
    let apart = |places: &[f64], label: Label| {
        places.windows(2).all(|two| {
            let [one, other] = [two[0], two[1]].map(|place| f64::from(length(&label(place), TICK)));
            (two[1] - two[0]) / (high - low) * plot > (one + other) / 2.0 + 8.0
        })
    };
    let within = |ratio: &f64| *ratio > 0.0 && (low..=high).contains(&ratio.ln());
    for step in [1, 2, 5, 10, 20, 25, 50] {
        let percents = (-100 / step..=200 / step).map(|k| k * step);
        let places = percents.map(|percent| 1.0 + f64::from(percent) / 100.0).filter(within);
        let places: Vec<f64> = places.map(f64::ln).collect();
        let short = high < 3.0_f64.ln() && low > 0.4_f64.ln();
        if short && places.len() <= most && apart(&places, percents_of) {
            return (places, percents_of);
        }
    }
    let factors = |of: &[f64]| -> Vec<f64> {
        let all = (-4..=4).flat_map(|power| of.iter().map(move |digit| digit * 10_f64.powi(power)));
        all.filter(within).map(f64::ln).collect()
    };
    let mut places = Vec::from([&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]].map(factors));
    for place in &mut places {
        place.sort_by(f64::total_cmp);
    }
    let fits = |places: &&Vec<f64>| places.len() <= most && apart(places, factor_of);
    let chosen = places.iter().find(fits).or(places.last());
    (chosen.cloned().unwrap_or_default(), factor_of)
}

fn percents_of(log: f64) -> String {
    match ((log.exp() - 1.0) * 100.0).round() {
        percent if percent > 0.0 => format!("+{percent} %"),
        percent if percent < 0.0 => format!("−{} %", -percent),
        _ => "0 %".into(),
    }
}

fn factor_of(log: f64) -> String {
    let ratio = log.exp();
    let digits = if ratio < 0.95 { 2 } else { 0 };
    format!("×{ratio:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(mean: f64, low: f64, high: f64) -> Row {
        Row {
            label: "a <b> & \"c\"".into(),
            text: "slower".into(),
            mean: Some(mean),
            ends: Some((low, high)),
            dots: vec![low, mean, high],
            word: Word::Worse,
            star: None,
        }
    }

    #[test]
    fn a_chart_has_no_colour_of_its_own_and_no_address() {
        for width in [Width::Desk, Width::Phone] {
            let svg = forest(&[row(1.1, 1.05, 1.15)], "a \"title\" <x>", width).unwrap();
            assert!(!svg.contains("http") && !svg.contains("#0102"), "{svg}");
            assert!(svg.contains("var(--worse)") && svg.ends_with("</svg>\n"), "{svg}");
            assert!(svg.contains("a &lt;b&gt; &amp; &quot;c&quot;"), "{svg}");
            assert!(!svg.contains("<b>") && !svg.contains("<x>"), "{svg}");
        }
    }

    #[test]
    fn one_far_row_does_not_squeeze_the_others() {
        let (low, high) = reach(&[row(1.02, 1.0, 1.04), row(22.0, 21.0, 23.0)]);
        assert!(high < 0.1 && low < 0.0, "{low} {high}");
        let (_, high) = reach(&[row(22.0, 21.0, 23.0)]);
        assert!(high > 23.0_f64.ln());
        // Nothing measured still has an axis.
        assert!(reach(&[]).1 > 0.0);
    }

    #[test]
    fn an_axis_has_its_middle_and_not_too_many_places() {
        for (low, high) in [(-0.05, 0.05), (-0.2, 0.3), (-0.7, 1.0), (-3.0, 3.5), (-0.01, 7.0)] {
            for most in [5, 9] {
                let (places, label) = ticks(low, high, most, if most == 5 { 334.0 } else { 500.0 });
                assert!(places.len() <= most && places.len() >= 2, "{low} {high}: {places:?}");
                assert!(places.iter().any(|place| place.abs() < 1e-12), "{low} {high}");
                assert!(["0 %", "×1"].contains(&label(0.0).as_str()));
            }
        }
    }

    #[test]
    fn a_row_of_a_phone_has_no_grid_behind_its_words_and_no_mark_a_dot() {
        let phone = forest(&[row(1.1, 1.05, 1.15)], "title", Width::Phone).unwrap();
        let blank = r#"<rect x="0" y="0" width="716" height="80" opacity="1" fill="var(--paper)""#;
        let (before, after) = phone.split_once(blank).unwrap_or_else(|| panic!("{phone}"));
        assert!(before.contains("var(--grid)") && !after.contains("var(--grid)"), "{phone}");
        assert!(!before.contains("slower") && after.contains("slower"), "{phone}");
        assert!(!phone.contains("<circle"), "{phone}");
        let desk = forest(&[row(1.1, 1.05, 1.15)], "title", Width::Desk).unwrap();
        assert!(!desk.contains("<circle") && !desk.contains("var(--paper)"), "{desk}");
    }

    #[test]
    fn a_tenth_of_far_rows_is_no_exception() {
        let rows = [vec![row(1.02, 1.0, 1.04); 8], vec![row(5.0, 4.9, 5.1); 2]].concat();
        assert!(reach(&rows).1 > 5.1_f64.ln());
        let svg = forest(&rows, "title", Width::Desk).unwrap();
        assert!(svg.contains("×5") && !svg.contains("+5 %"), "{svg}");
    }

    #[test]
    fn labels_of_an_axis_do_not_touch() {
        let (places, label) = ticks(-0.1, 0.68, 9, 300.0);
        let widths: i32 = places.iter().map(|place| length(&label(*place), TICK) + 8).sum();
        assert!(places.len() > 2 && widths < 300, "{places:?}");
        assert_eq!([0.6000000000000001, 2.0, 0.0, -0.0].map(plain), ["0.6", "2", "0", "0"]);
    }

    #[test]
    fn a_long_label_keeps_its_beginning() {
        let label = "10: SELECT ProductName, sum(d.UnitPrice * d.Quantity * (1 - d.Discount)) FROM Products";
        let short = cut(label, LABEL, 200);
        assert!(short.starts_with("10: SELECT") && short.ends_with('…'), "{short}");
        assert!(length(&short, LABEL) <= 200);
        let (first, second) = two_lines(label, LABEL, 282).unwrap();
        assert!(label.starts_with(&first) && second.ends_with('…'), "{first} / {second}");
        assert_eq!(two_lines("CHECKDB", LABEL, 282), None);
    }

    #[test]
    fn what_surprises_has_a_shape_of_its_own() {
        let corners = |star| {
            let rows = [Row { star, ..row(0.95, 0.9, 1.0) }];
            let svg = forest(&rows, "title", Width::Desk).unwrap();
            let shape = svg.split("<polygon").nth(1).unwrap().split("points=\"").nth(1).unwrap();
            shape.split('"').next().unwrap().split_whitespace().count()
        };
        assert_eq!(
            (corners(None), corners(Some(Star::Full)), corners(Some(Star::Open))),
            (3, 10, 10)
        );
    }

    #[test]
    fn lines_through_a_run() {
        let line = |stroke| Line { points: vec![(0.5, 40.0), (1.5, 60.0), (2.5, 50.0)], stroke };
        let all = [line(Stroke::Dashed), line(Stroke::Dotted), line(Stroke::Solid)];
        for width in [Width::Desk, Width::Phone] {
            let svg = lines(&all, "title", width).unwrap();
            for text in ["var(--bar)", "var(--open)", "var(--ink)", "100 %", "2 s"] {
                assert!(svg.contains(text), "{text}: {svg}");
            }
            assert!(!svg.contains("#0102"), "{svg}");
        }
    }

    #[test]
    fn bars_of_groups() {
        let bar = Bar {
            label: "AES_128".into(),
            text: "1 s".into(),
            mean: 1.0,
            range: (0.9, 1.2),
            beside: Some(1.1),
            base: false,
        };
        let group = Group { name: "a < b".into(), bars: vec![bar] };
        let svg = bars(&[group], "title", "s", Width::Desk).unwrap();
        assert!(svg.contains("var(--bar)") && svg.contains("a &lt; b"), "{svg}");
    }
}
