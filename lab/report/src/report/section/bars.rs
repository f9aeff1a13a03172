//! Bars of one quantity: each cell with its base and its sides.

use std::collections::BTreeSet;

use super::{natural, one_device};
use crate::record::Session;
use crate::report::articles::Drawn;
use crate::report::chart::{Bar, Group};
use crate::report::figures::Figure;
use crate::report::text;

/// Bars of one quantity, in groups.
#[derive(Debug)]
pub struct Bars {
    pub title: String,
    /// What the marks are.
    pub caption: String,
    pub unit: String,
    pub groups: Vec<Group>,
}

impl Bars {
    /// Of every cell that is wanted: the base and each side.
    pub(super) fn of(drawn: &Drawn, figures: &[&Figure], sessions: &[&Session]) -> Option<Self> {
        let wanted = |figure: &&&Figure| drawn.wants(&figure.cell);
        let has = |what: &&String| figures.iter().filter(wanted).any(|one| one.what == **what);
        let what = drawn.what.iter().find(has)?.as_str();
        let beside = drawn.beside.as_ref().filter(|beside| beside.what != what);
        let mut groups: Vec<Group> = Vec::new();
        let mut seen = BTreeSet::new();
        // Of each cell the newest session, as for the articles' figures; their names begin with the time.
        let mut newest: Vec<_> =
            figures.iter().filter(wanted).filter(|figure| figure.what == what).collect();
        newest.sort_by(|a, b| b.session.cmp(&a.session));
        newest.sort_by_cached_key(|figure| natural(&figure.cell));
        let mut devices = Vec::new();
        for figure in newest {
            if !seen.insert((&figure.cell, &figure.side)) {
                continue;
            }
            let other = beside.and_then(|beside| {
                let same = |other: &&&&Figure| {
                    (&other.session, &other.cell, &other.side)
                        == (&figure.session, &figure.cell, &figure.side)
                };
                let found =
                    figures.iter().filter(|one| same(&one)).find(|one| one.what == beside.what);
                Some((beside.name.as_str(), *found?))
            });
            let bar = |label: &str, of: fn(&Figure) -> &[f64], base: bool| {
                let values = of(figure);
                let shown = |value: f64| if what.ends_with("_bytes") { value / 1e6 } else { value };
                let average = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
                let mean = average(values);
                let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                let high = values.iter().copied().fold(0.0, f64::max);
                let mut text = match (low == high, what.ends_with("_bytes")) {
                    (true, _) => text::value(what, mean),
                    (false, true) => {
                        format!("{} to {}", text::value(what, low), text::value(what, high))
                    }
                    (false, false) => format!(
                        "{} ({} to {})",
                        text::value(what, mean),
                        text::value(what, low),
                        text::value(what, high)
                    ),
                };
                let beside = other.map(|(name, other)| (name, average(of(other))));
                if let Some((name, value)) = beside {
                    text.push_str(&format!(", {name} {}", text::value(what, value)));
                }
                Bar {
                    label: label.into(),
                    text,
                    mean: shown(mean),
                    range: (shown(low), shown(high)),
                    beside: beside.map(|(_, value)| shown(value)),
                    base,
                }
            };
            let side = bar(&figure.side, |figure| &figure.side_values, false);
            let one = one_device(sessions, &figure.session, &figure.cell);
            let name = format!("{}{}", figure.cell, if one { " (same device)" } else { "" });
            devices.push(one);
            match groups.iter_mut().find(|group| group.name == name) {
                Some(group) => group.bars.push(side),
                None => groups.push(Group {
                    name,
                    bars: vec![bar(&figure.base, |figure| &figure.base_values, true), side],
                }),
            }
        }
        let mut caption =
            format!("{}: mean, and from the least to the most of the runs.", text::quantity(what));
        if let Some(beside) = beside {
            caption.push_str(&format!(" ◇ {}.", beside.name));
        }
        let unit =
            if what.ends_with("_bytes") { "MB" } else { what.rsplit('_').next().unwrap_or("") };
        let all_one = devices.iter().all(|one| *one);
        let unit = format!(
            "{unit}{}",
            if all_one { ", source and target on the same device" } else { "" }
        );
        (!groups.is_empty()).then(|| Self { title: drawn.title.clone(), caption, unit, groups })
    }
}
