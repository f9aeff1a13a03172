//! Sentences on a terminal: broken between words, never within one.

use comfy_table::Table;

use super::STYLES;

/// A terminal with fewer columns is one that does not know how many it has.
const LEAST: u16 = 20;

/// The columns of the terminal that this process is at; none if it is at none.
pub fn columns() -> Option<u16> {
    Table::new().width().filter(|columns| *columns >= LEAST)
}

/// `text` in lines of at most `width` columns. A longer word stays whole, since it may be a path to copy.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let mut begun = String::new();
        for word in line.split_inclusive(' ') {
            let is_full = seen(&begun) + seen(word.trim_end()) > width;
            if is_full && !begun.trim().is_empty() {
                lines.push(begun.trim_end().to_owned());
                begun.clear();
            }
            begun += word;
        }
        lines.push(begun);
    }
    lines.join("\n")
}

/// The columns that a text takes: styles take none.
fn seen(text: &str) -> usize {
    let styles: usize = STYLES.iter().map(|style| text.matches(style).count() * style.len()).sum();
    text.chars().count() - styles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_take_no_columns() {
        let painted = "pellucid: \x1b[33mwarning:\x1b[0m a sentence";
        assert_eq!(wrapped(painted, 29), painted);
        assert_eq!(wrapped(painted, 28), painted.replace(" a sentence", " a\nsentence"));
    }

    #[test]
    fn words_stay_whole_and_nothing_is_lost() {
        let text = "pellucid: warning: a sentence\n  with an indent and /a/path/that/is/longer/than/any/line of it\n";
        assert_eq!(wrapped(text, 200), text);
        assert_eq!(
            wrapped(text, 20),
            "pellucid: warning: a\nsentence\n  with an indent and\n/a/path/that/is/longer/than/any/line\nof it\n"
        );
        for width in 1..90 {
            let lines = wrapped(text, width);
            assert_eq!(
                lines.split_whitespace().collect::<String>(),
                text.split_whitespace().collect::<String>()
            );
            assert!(
                lines
                    .lines()
                    .all(|line| line.chars().count() <= width || !line.trim().contains(' ')),
                "{width}: {lines}"
            );
        }
    }
}
