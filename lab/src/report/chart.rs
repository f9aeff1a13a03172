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
}

/// One bar: a mean, and from the lowest to the highest run.
#[derive(Debug, Clone)]
pub struct Bar {
    pub label: String,
    pub text: String,
    pub mean: f64,
    pub range: (f64, f64),
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    Solid,
    Dashed,
    Dotted,
}

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
    fn of(width: Width, longest_label: usize, longest_text: usize) -> Self {
        let fits = |characters: usize, most: i32| (characters as i32 * 15 / 2 + 24).min(most);
        match width {
            Width::Desk => Self {
                width: 1040,
                left: fits(longest_label, 400),
                right: fits(longest_text, 330),
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
    let longest = |of: fn(&Row) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let layout = Layout::of(
        width,
        longest(|row| row.label.chars().count()),
        longest(|row| row.text.chars().count()),
    );
    let (low, high) = reach(rows);
    let height = rows.len() as i32 * layout.row + 44;
    draw(&layout, height, title, |root| {
        let (ticks, label) = ticks(low, high, layout.ticks);
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
            let style = font(12.0, MUTED).pos(Pos::new(HPos::Center, VPos::Top));
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
            mark(root, point, row.word, outside)?;
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
    let longest = |of: fn(&Bar) -> usize| all().map(of).max().unwrap_or(0);
    let layout = Layout {
        row: if width == Width::Phone { 46 } else { 22 },
        centre: if width == Width::Phone { 0.75 } else { 0.5 },
        ..Layout::of(
            width,
            longest(|bar| bar.label.chars().count()),
            longest(|bar| bar.text.chars().count()),
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
            .x_label_formatter(&|value: &f64| format!("{value}"))
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
            .x_label_formatter(&|seconds: &f64| format!("{seconds} s"))
            .y_label_formatter(&|percent: &f64| format!("{percent} %"))
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
        write(label, 4, top + 14, 13.0, INK, HPos::Left)?;
        let (x, y, side) =
            if second { (4, top + 31, HPos::Left) } else { (354, top + 14, HPos::Right) };
        return write(text, x, y, 12.0, MUTED, side);
    }
    let middle = top + layout.row / 2;
    write(label, layout.left - 14, middle, 13.5, INK, HPos::Right)?;
    write(text, layout.width - layout.right + 14, middle, 13.0, INK, HPos::Left)
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

/// Logarithms that hold all intervals but those of far rows, and a little more.
fn reach(rows: &[Row]) -> (f64, f64) {
    let near = |row: &&Row| row.mean.is_some_and(|mean| mean.ln().abs() <= FAR.ln());
    let some_near = rows.iter().any(|row| near(&row));
    let mut reach = (-0.045_f64, 0.045_f64);
    for row in rows.iter().filter(|row| !some_near || near(row)) {
        let ends = row.ends.or(row.mean.map(|mean| (mean, mean)));
        if let Some((low, high)) = ends {
            // A wide interval may go beyond what is near, but not without end.
            let most = if some_near { 2.0 * FAR.ln() } else { 20.0 };
            reach = (reach.0.min(low.ln().max(-most)), reach.1.max(high.ln().min(most)));
        }
    }
    let air = (reach.1 - reach.0) * 0.06;
    (reach.0 - air, reach.1 + air)
}

type Label = fn(f64) -> String;

/// At most `most` places on the axis: percents of one step, or factors where it is long.
fn ticks(low: f64, high: f64, most: usize) -> (Vec<f64>, Label) {
    let within = |ratio: &f64| *ratio > 0.0 && (low..=high).contains(&ratio.ln());
    for step in [1, 2, 5, 10, 20, 25, 50] {
        let percents = (-100 / step..=200 / step).map(|k| k * step);
        let places: Vec<f64> =
            percents.map(|percent| 1.0 + f64::from(percent) / 100.0).filter(within).collect();
        if places.len() <= most && high < 3.0_f64.ln() && low > 0.4_f64.ln() {
            return (places.iter().map(|ratio| ratio.ln()).collect(), percents_of);
        }
    }
    let factors = |of: &[f64]| -> Vec<f64> {
        let all = (-4..=4).flat_map(|power| of.iter().map(move |digit| digit * 10_f64.powi(power)));
        all.filter(within).map(f64::ln).collect()
    };
    let places = [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]].map(factors);
    let chosen = places.iter().find(|places| places.len() <= most).or(places.last());
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
                let (places, label) = ticks(low, high, most);
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
            base: false,
        };
        let group = Group { name: "a < b".into(), bars: vec![bar] };
        let svg = bars(&[group], "title", "s", Width::Desk).unwrap();
        assert!(svg.contains("var(--bar)") && svg.contains("a &lt; b"), "{svg}");
    }
}
