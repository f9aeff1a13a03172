//! Looks at text before it is read as xml: what would take a reader long, or be read as something else than it is.
//!
//! What is not well-formed is the reader's to tell: the scan ends where it finds no end.

use super::{column, DEPTH_MOST};
use crate::values::{Error, Result};

/// Attributes of an element at most: each is compared with all before it.
const ATTRIBUTES_MOST: usize = 256;

/// # Errors
/// 6335; 9420 for a reference to what is no character; namespaces and too many attributes are refused.
pub(super) fn check(text: &str) -> Result<()> {
    // The element around all content is one more.
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        let rest = &text[at..];
        let Some(length) = rest.find('<') else { return references(text, at, text.len()) };
        references(text, at, at + length)?;
        at += length;
        let rest = &text[at..];
        if rest.starts_with("<!DOCTYPE") && depth < 2 {
            return Err(Error::Unsupported("a document type definition in xml".to_owned()));
        }
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">")];
        if let Some((open, close)) = skipped.iter().find(|(open, _)| rest.starts_with(open)) {
            let Some(length) = rest[open.len()..].find(close) else { return Ok(()) };
            at += open.len() + length + close.len();
            continue;
        }
        let Some(length) = end_of_tag(rest) else { return Ok(()) };
        let tag = &rest[..length];
        references(text, at, at + length)?;
        at += length;
        if tag.starts_with("</") {
            depth = depth.saturating_sub(1);
            continue;
        }
        attributes(tag)?;
        if !tag.ends_with("/>") {
            depth += 1;
        }
        if depth > DEPTH_MOST + 1 {
            return Err(Error::XmlTooDeep(DEPTH_MOST));
        }
    }
}

/// Behind the `>` that is in no value.
fn end_of_tag(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, next) in text.char_indices() {
        match (quote, next) {
            (None, '"' | '\'') => quote = Some(next),
            (None, '>') => return Some(at + 1),
            (Some(open), _) if open == next => quote = None,
            _ => {}
        }
    }
    None
}

/// The names of a start tag's attributes stand before `=` that are in no value.
fn attributes(tag: &str) -> Result<()> {
    let (mut quote, mut count) = (None, 0);
    for (at, next) in tag.char_indices() {
        match (quote, next) {
            (None, '"' | '\'') => quote = Some(next),
            (Some(open), _) if open == next => quote = None,
            (None, '=') => {
                count += 1;
                if count > ATTRIBUTES_MOST {
                    let told =
                        format!("more than {ATTRIBUTES_MOST} attributes of an element in xml");
                    return Err(Error::Unsupported(told));
                }
                let name = tag[..at].trim_end();
                let name =
                    name.rsplit(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '='));
                let name = name.into_iter().next().unwrap_or_default();
                if name == "xmlns" || name.starts_with("xmlns:") {
                    return Err(Error::Unsupported("a namespace in xml".to_owned()));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Refuses `&#..;` of what is no character, which the reader takes for another one.
fn references(text: &str, from: usize, to: usize) -> Result<()> {
    for (at, _) in text[from..to].match_indices("&#") {
        let rest = &text[from + at + 2..to];
        // No further than it goes: text may be full of beginnings.
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        if !behind.starts_with(';') {
            continue;
        }
        let (digits, radix) = match number.strip_prefix('x') {
            Some(digits) => (digits, 16),
            None => (number, 10),
        };
        if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
            continue;
        }
        let code = u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
        let is_character = code.is_some_and(
            |code| matches!(code, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..),
        );
        if !is_character {
            let before = &text[..from + at];
            let line = 1 + before.matches('\n').count() as u32;
            let within = before.rsplit('\n').next().unwrap_or_default();
            let column = column(line, 1 + within.chars().count() as u32);
            return Err(Error::Xml { number: 9420, line, column, text: "illegal xml character" });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_told_before_it_is_read() {
        let spaces: String = (0..5_000).map(|at| format!("<a xmlns:p{at}=\"u\">")).collect();
        let attributes: String = (0..20_000).map(|at| format!(" a{at}=\"1\"")).collect();
        let deep = "<a>".repeat(100_000);
        assert!(matches!(check(&spaces), Err(Error::Unsupported(_))));
        assert!(matches!(check(&format!("<a{attributes}/>")), Err(Error::Unsupported(_))));
        assert!(matches!(check(&deep), Err(Error::XmlTooDeep(_))));
        // The scan itself takes as long as the text.
        check(&"&#".repeat(1_000_000)).unwrap();
        check(&"&#1".repeat(1_000_000)).unwrap();
        check(&("&#".repeat(1_000_000) + ";")).unwrap();
        assert!(check(&format!("<a {}>", "=".repeat(1_000_000))).is_err());
    }

    #[test]
    fn what_only_looks_so_is_taken() {
        for text in [
            "<a>xmlns=\"u\"</a>",
            "<a b=\"xmlns='u' <\"/>",
            "<!-- <a xmlns='u'> &#0; -->",
            "<![CDATA[ <a xmlns='u'> &#0; ]]>",
            "<?p <a xmlns='u'> &#0; ?>",
            "<a>&#x20;&#10;&#x10FFFF;&lt;</a>",
            &"<a/>".repeat(1_000),
            &"<a></a>".repeat(1_000),
            "<a",
            "<!--",
            "<a b='",
            "&#",
            "&#x;",
            "&#12",
            "</",
            "<",
            ">",
            "<>",
            "</x></x></x>",
        ] {
            check(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
        for text in ["&#xD800;", "<a b='&#x110000;'/>", "&#0;", "&#xFFFE;", "&#99999999999;"] {
            let told = check(text);
            assert!(matches!(told, Err(Error::Xml { number: 9420, .. })), "{text}: {told:?}");
        }
    }
}
