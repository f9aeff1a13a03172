//! Charts as SVG that a page holds: intervals as error bars, and bars of values.
//!
//! Colours are drawn as marks that the page's variables take the place of, so that one drawing is
//! dark and light; shapes and words say the same as the colours. Each chart is drawn twice, for a
//! desk and for a phone.

mod axis;
mod paint;
mod words;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::figures::Word;
use crate::error::Result;
use crate::statistics::NO_DIFFERENCE;

use axis::{plain, reach, ticks, TICK};
use paint::{
    blank, colour, draw, drawing, font, mark, outlined, star, BAND, BAR, GRID, INK, MUTED, OPEN,
    UNITS,
};
use words::{length, write_row};

/// Width of a chart on a desk.
const DESK: i32 = 1040;
/// Sizes of what is written, in pixels.
const LABEL: f64 = 13.5;
const TEXT: f64 = 13.0;

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
/// [`Error::Invalid`](crate::error::Error::Invalid) if it cannot be drawn.
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
/// [`Error::Invalid`](crate::error::Error::Invalid) if it cannot be drawn.
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
/// [`Error::Invalid`](crate::error::Error::Invalid) if it cannot be drawn.
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(super) fn row(mean: f64, low: f64, high: f64) -> Row {
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
            assert!(svg.contains("var(--worse)") && svg.ends_with("</svg>"), "{svg}");
            assert!(svg.contains("a &lt;b&gt; &amp; &quot;c&quot;"), "{svg}");
            assert!(!svg.contains("<b>") && !svg.contains("<x>"), "{svg}");
        }
    }

    #[test]
    fn a_row_of_a_phone_has_no_grid_behind_its_words_and_no_mark_a_dot() {
        let phone = forest(&[row(1.1, 1.05, 1.15)], "title", Width::Phone).unwrap();
        let blank = r#"<rect x="0" y="0" width="716" height="80" fill="var(--paper)""#;
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
