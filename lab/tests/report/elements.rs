//! The numbers of a page: of its text, or of the DOM that a browser made of it.

use std::collections::BTreeMap;

/// `data-` attributes of one element.
pub type Element = BTreeMap<String, String>;

/// Every element with a `data-value`, with the attributes of its row; the ends of its interval are elements of their own.
pub fn numbers(page: &str) -> Vec<Element> {
    let (mut numbers, mut row) = (Vec::new(), Element::new());
    for tag in page.split('<') {
        if tag.starts_with("tr") {
            row = attributes(&tag[..end(tag)]);
        } else if tag.starts_with("td") && tag.contains("data-value=\"") {
            let mut element = row.clone();
            element.extend(attributes(&tag[..end(tag)]));
            for end in ["low", "high"] {
                if let Some(value) = element.remove(end) {
                    let mut of_end = element.clone();
                    of_end.insert("value".into(), value);
                    of_end.insert("statistic".into(), format!("{}-{end}", element["statistic"]));
                    numbers.push(of_end);
                }
            }
            numbers.push(element);
        }
    }
    numbers
}

/// Where the tag ends: `>` may stand within quotes.
fn end(tag: &str) -> usize {
    let mut quoted = false;
    for (at, c) in tag.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '>' if !quoted => return at,
            _ => {}
        }
    }
    tag.len()
}

fn attributes(tag: &str) -> Element {
    let mut element = Element::new();
    let mut rest = tag;
    while let Some((name, behind)) = rest.split_once("=\"") {
        let name = name.rsplit(' ').next().unwrap();
        let (value, behind) = behind.split_once('"').unwrap();
        if let Some(name) = name.strip_prefix("data-") {
            let value = value
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&quot;", "\"")
                .replace("&amp;", "&");
            element.insert(name.into(), value);
        }
        rest = behind;
    }
    element
}
