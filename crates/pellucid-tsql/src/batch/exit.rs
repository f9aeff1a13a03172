//! `EXIT(..)`: the query between the parentheses, over as many lines as it takes.

/// Where the query ends in `text`: before the parenthesis that closes it. None if that is still to come.
pub(super) fn end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at + 1..];
        at += 1;
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(at - 1),
            b')' => depth -= 1,
            // A doubled quote closes and opens again.
            b'\'' | b'"' => at += past(rest, &[byte])?,
            b'[' => at += past(rest, b"]")?,
            b'-' if rest.starts_with(b"-") => at += past(rest, b"\n")?,
            b'/' if rest.starts_with(b"*") => at += past(rest, b"*/")?,
            _ => {}
        }
    }
    None
}

/// The bytes up to the end of `mark`.
fn past(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|found| found == mark).map(|at| at + mark.len())
}

/// Whether nothing but a comment stands behind it.
pub(super) fn is_all(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text.starts_with("--")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parenthesis_that_closes_is_found() {
        for (text, query) in [
            (")", ""),
            ("SELECT 1) -- x", "SELECT 1"),
            ("SELECT (1))", "SELECT (1)"),
            ("SELECT ')')", "SELECT ')'"),
            ("SELECT [)] -- )\n)", "SELECT [)] -- )\n"),
            ("/* ) */ SELECT 'it''s )')", "/* ) */ SELECT 'it''s )'"),
        ] {
            assert_eq!(end(text).map(|at| &text[..at]), Some(query), "{text}");
        }
        for open in ["", "SELECT 1", "SELECT (1)", "SELECT ')", "-- )", "/* )", "[)"] {
            assert_eq!(end(open), None, "{open}");
        }
        assert!(is_all(" -- c\n") && is_all("\n") && !is_all(" x"));
    }
}
