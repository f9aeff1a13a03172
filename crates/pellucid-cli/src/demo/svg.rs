//! The drawings of the picture: page map, histogram, bytes as dots.

use std::fmt::Write;

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use png::{BitDepth, ColorType, Encoder};

use super::pages::Cell;
use super::picture::escape;

const CELL: f64 = 20.0;
const GAP: f64 = 2.5;
const DOTS_WIDE: u32 = 288;
/// At most so many bytes are shown as dots: 160 rows of them.
pub const DOTS_MAX: u64 = DOTS_WIDE as u64 * 160;
/// RGB of: zero (shown transparent), text, control bytes, high values, 0xff.
const PALETTE: [[u8; 3]; 5] =
    [[0, 0, 0], [58, 134, 214], [42, 157, 143], [233, 162, 59], [196, 84, 120]];

/// Columns and rows for so many cells: about twice as wide as high, the last row as full as it can be.
pub fn grid(cells: usize) -> (usize, usize) {
    let around = ((cells as f64 * 1.9).sqrt().ceil() as usize).max(8);
    let missing = |columns: &usize| cells.div_ceil(*columns) * columns - cells;
    let columns = (around..around + 5).min_by_key(missing).unwrap_or(around);
    (columns, cells.div_ceil(columns))
}

/// The page map: stronger colour for more disorder.
pub fn map(cells: &[Cell], (columns, rows): (usize, usize), label: &str) -> String {
    let mut out = format!(
        "<svg class=\"map\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">",
        columns as f64 * CELL - GAP,
        rows as f64 * CELL - GAP,
        escape(label),
    );
    for (at, cell) in cells.iter().enumerate() {
        let (x, y) = ((at % columns) as f64 * CELL, (at / columns) as f64 * CELL);
        let side = CELL - GAP;
        let opacity = 0.38 + 0.62 * (cell.bits_per_byte / 7.95).min(1.0).powi(2);
        let _ = write!(
            out,
            "<rect class=\"k-{}\" x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" rx=\"3\" \
             fill-opacity=\"{opacity:.2}\"><title>{}</title></rect>",
            cell.kind.names().0,
            escape(&cell.tip),
        );
    }
    out + "</svg>"
}

/// The share at which bars are cut: above all values but the most frequent one, so that the others can be seen.
pub fn histogram_top(counts: &[u64; 256]) -> f64 {
    let mut sorted = *counts;
    sorted.sort_unstable();
    let all = counts.iter().sum::<u64>().max(1) as f64;
    let second = if sorted[254] > 0 { 1.15 * sorted[254] as f64 / all } else { 1.0 };
    second.max(1.5 / 256.0)
}

/// 256 bars. Heights are square roots, so that rare values can be seen; what is above `top` is cut and labelled.
pub fn histogram(counts: &[u64; 256], class: &str, top: f64) -> String {
    let (height, base) = (168.0, 146.0);
    let all = counts.iter().sum::<u64>().max(1) as f64;
    let tall = |share: f64| base * (share / top).min(1.0).sqrt();
    let mut bars = String::new();
    let mut label = String::new();
    for (value, count) in counts.iter().enumerate() {
        let share = *count as f64 / all;
        let least: f64 = if *count > 0 { 0.4 } else { 0.0 };
        let _ = write!(
            bars,
            "<rect x=\"{}\" y=\"{:.2}\" width=\"2.05\" height=\"{:.2}\"><title>0x{value:02X}: {:.3} %</title></rect>",
            value * 2,
            base - tall(share),
            tall(share).max(least),
            share * 100.0,
        );
        if share > top && label.is_empty() {
            // Left of the bar where there is no room at its right.
            let (x, anchor) =
                if value < 192 { (value * 2 + 5, "start") } else { (value * 2 - 3, "end") };
            label = format!(
                "<text x=\"{x}\" y=\"9\" text-anchor=\"{anchor}\">{value:02X}: {:.0} %</text>",
                share * 100.0,
            );
        }
    }
    let even = base - tall(1.0 / 256.0);
    let mut ticks = String::new();
    for (x, anchor, text) in
        [(0, "start", "00"), (188, "middle", "A-Z  a-z"), (270, "middle", "80"), (512, "end", "FF")]
    {
        let y = height - 6.0;
        let _ = write!(ticks, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>");
    }
    format!(
        "<svg class=\"histogram\" viewBox=\"0 0 512 {height}\" role=\"img\" \
         aria-label=\"How often each byte value occurs\"><g class=\"k-{class}\">{bars}</g>\
         <line class=\"even\" x1=\"0\" x2=\"512\" y1=\"{even:.2}\" y2=\"{even:.2}\"/>\
         <text class=\"even-label\" x=\"510\" y=\"{:.2}\" text-anchor=\"end\">even: 1/256</text>{label}\
         <rect class=\"letters\" x=\"130\" y=\"{}\" width=\"116\" height=\"3\" rx=\"1.5\"/>{ticks}</svg>",
        even - 5.0,
        base + 2.0,
    )
}

/// Bytes as dots, by class, so that text, zeros and noise tell themselves apart; as high as `bytes_max` need.
///
/// # Errors
/// None in practice: it is written to memory.
pub fn dots(bytes: &[u8], bytes_max: usize) -> Result<String, png::EncodingError> {
    let (width, height) = (DOTS_WIDE, bytes_max.div_ceil(DOTS_WIDE as usize).max(1) as u32);
    let mut classes: Vec<u8> = bytes.iter().map(|byte| class(*byte)).collect();
    classes.resize((width * height) as usize, 0);
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height);
    encoder.set_color(ColorType::Indexed);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_palette(PALETTE.concat());
    encoder.set_trns(vec![0]);
    encoder.set_compression(png::Compression::High);
    encoder.set_filter(png::Filter::NoFilter);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&classes)?;
    writer.finish()?;
    Ok(format!(
        "<img class=\"dots\" alt=\"The bytes as coloured dots\" src=\"data:image/png;base64,{}\">",
        STANDARD.encode(&file)
    ))
}

fn class(byte: u8) -> u8 {
    match byte {
        0 => 0,
        0x20..=0x7e => 1,
        1..=0x1f => 2,
        0xff => 4,
        0x7f..=0xfe => 3,
    }
}
