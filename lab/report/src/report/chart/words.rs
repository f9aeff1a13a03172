//! What is written in a chart: how wide words are, and where those of a row go.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::paint::{blank, drawing, font, Root, INK, MUTED, UNITS};
use super::{Layout, LABEL, TEXT};
use crate::error::Result;

pub(super) fn write_row(
    root: &Root<'_>,
    layout: &Layout,
    at: usize,
    label: &str,
    text: &str,
) -> Result<()> {
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
pub(super) fn length(text: &str, size: f64) -> i32 {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
