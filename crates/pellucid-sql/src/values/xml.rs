//! The type xml: text that is well-formed, written as SQL Server writes it.
//!
//! Source: Microsoft's "xml data type". Namespaces and document type definitions are refused by name.

pub(crate) mod path;
mod scan;

use std::fmt::Write;

use roxmltree::{Document, Error as Fault, Node, NodeType, ParsingOptions};

use super::{Error, Result};

/// Elements within one another at most (message 6335).
const DEPTH_MOST: usize = 128;
/// What content is read within: it may have several elements, or none.
const OPEN: &str = "<x>";
const CLOSE: &str = "</x>";

/// Content as it is read.
pub(crate) struct Content(String);

impl Content {
    /// Of text as a value of the type has it, or as a script writes it.
    pub fn new(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let body = match text.strip_prefix("<?xml ").and_then(|rest| rest.split_once("?>")) {
            Some((_, body)) => body,
            None => text,
        };
        Self(format!("{OPEN}{body}{CLOSE}"))
    }

    /// Its tree; what is in the element around it is the content.
    ///
    /// # Errors
    /// What is not well-formed; 6335; what is refused.
    pub fn tree(&self) -> Result<Document<'_>> {
        scan::check(&self.0)?;
        let options = ParsingOptions { allow_dtd: false, ..ParsingOptions::default() };
        let tree = Document::parse_with_options(&self.0, options).map_err(told)?;
        let mut most = 0;
        for node in tree.root_element().descendants() {
            let is_own = |name: &roxmltree::Namespace<'_>| name.name() != Some("xml");
            // `xml:space` and its like change what a value is.
            let is_prefixed = node.attributes().any(|one| one.namespace().is_some());
            if node.tag_name().namespace().is_some() || node.namespaces().any(is_own) || is_prefixed
            {
                return Err(Error::Unsupported("a namespace in xml".to_owned()));
            }
            if node.is_element() {
                most = most.max(node.ancestors().skip(1).take(DEPTH_MOST + 3).count());
            }
        }
        // The element around it and the root are none of its own.
        match most > DEPTH_MOST + 1 {
            true => Err(Error::XmlTooDeep(DEPTH_MOST)),
            false => Ok(tree),
        }
    }
}

/// Text as a value of the type: without white space between elements, its characters and attributes as XML writes them. White space
/// that an entity or CDATA writes stays.
///
/// # Errors
/// As [`Content::tree`].
pub(crate) fn normal(text: &str) -> Result<String> {
    let content = Content::new(text);
    let tree = content.tree()?;
    let is_kept = |node: Node<'_, '_>| {
        let text = node.text().unwrap_or_default();
        // Text and CDATA beside each other are one node, with the range of the first.
        let end = match node.next_sibling() {
            Some(next) => next.range().start,
            None => node.parent().map_or(node.range().end, |parent| parent.range().end),
        };
        let source = tree.input_text().get(node.range().start..end).unwrap_or_default();
        !is_white(text) || source.contains('&') || source.contains("<![CDATA[")
    };
    let mut out = String::new();
    tree.root_element().children().for_each(|node| write_node(node, &is_kept, &mut out));
    Ok(out)
}

/// Nodes as they are written.
pub(crate) fn written<'t>(nodes: impl Iterator<Item = Node<'t, 't>>) -> String {
    let mut out = String::new();
    nodes.for_each(|node| write_node(node, &|_| true, &mut out));
    out
}

fn is_white(text: &str) -> bool {
    text.trim_matches([' ', '\t', '\r', '\n']).is_empty()
}

/// No deeper than [`DEPTH_MOST`].
fn write_node(node: Node<'_, '_>, is_kept: &dyn Fn(Node<'_, '_>) -> bool, out: &mut String) {
    match node.node_type() {
        NodeType::Element => {
            let name = node.tag_name().name();
            let _ = write!(out, "<{name}");
            for attribute in node.attributes() {
                let _ = write!(out, " {}=\"", attribute.name());
                escape(attribute.value(), true, out);
                out.push('"');
            }
            let before = out.len();
            out.push('>');
            node.children().for_each(|child| write_node(child, is_kept, out));
            match out.len() == before + 1 {
                true => out.replace_range(before.., "/>"),
                false => drop(write!(out, "</{name}>")),
            }
        }
        NodeType::Text if is_kept(node) => {
            let text = node.text().unwrap_or_default();
            match text.chars().last().filter(|_| is_white(text)) {
                // So that whoever reads it again keeps it.
                Some(last) => {
                    escape(&text[..text.len() - 1], false, out);
                    let _ = write!(out, "&#x{:02X};", u32::from(last));
                }
                None => escape(text, false, out),
            }
        }
        NodeType::Comment => drop(write!(out, "<!--{}-->", node.text().unwrap_or_default())),
        NodeType::PI => {
            if let Some(found) = node.pi() {
                let space = if found.value.is_some() { " " } else { "" };
                let _ =
                    write!(out, "<?{}{space}{}?>", found.target, found.value.unwrap_or_default());
            }
        }
        NodeType::Text | NodeType::Root => {}
    }
}

/// Text, or the value of an attribute.
pub(crate) fn escape(text: &str, is_attribute: bool, out: &mut String) {
    for next in text.chars() {
        match next {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' if is_attribute => out.push_str("&quot;"),
            '\r' => out.push_str("&#x0D;"),
            '\n' if is_attribute => out.push_str("&#x0A;"),
            '\t' if is_attribute => out.push_str("&#x09;"),
            other => out.push(other),
        }
    }
}

fn column(line: u32, column: u32) -> u32 {
    match line {
        1 => column.saturating_sub(OPEN.len() as u32),
        _ => column,
    }
}

/// As SQL Server's parser says it.
fn told(fault: Fault) -> Error {
    let at = fault.pos();
    let column = column(at.row, at.col);
    let (number, text) = match fault {
        Fault::DtdDetected => {
            return Error::Unsupported("a document type definition in xml".to_owned())
        }
        Fault::UnknownNamespace(..) | Fault::DuplicatedNamespace(..) => {
            return Error::Unsupported("a namespace in xml".to_owned())
        }
        // The last is what stands behind an end tag too many.
        Fault::UnexpectedCloseTag(..)
        | Fault::UnexpectedEntityCloseTag(_)
        | Fault::UnknownToken(_) => (9436, "end tag does not match start tag"),
        Fault::UnclosedRootNode | Fault::UnexpectedEndOfStream => (9400, "unexpected end of input"),
        Fault::UnknownEntityReference(..) => (9448, "well formed check: undeclared entity"),
        Fault::MalformedEntityReference(_) => (9411, "semicolon expected"),
        Fault::DuplicatedAttribute(..) => (9437, "duplicate attribute"),
        Fault::InvalidAttributeValue(_) => {
            (9422, "incorrect character in the value of an attribute")
        }
        Fault::NonXmlChar(..) => (9420, "illegal xml character"),
        Fault::InvalidName(_) => (9455, "illegal qualified name character"),
        _ => (9410, "whitespace expected"),
    };
    Error::Xml { number, line: at.row, column, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_written_as_a_value_of_the_type() {
        for (given, expected) in [
            ("<a>1</a><a/>", "<a>1</a><a/>"),
            (
                "<?xml version=\"1.0\"?>\n<a  b='1\"'>\r\n  <c></c> </a>",
                "<a b=\"1&quot;\"><c/></a>",
            ),
            ("a&lt;b", "a&lt;b"),
            ("<a><![CDATA[<&>]]></a>", "<a>&lt;&amp;&gt;</a>"),
            ("<!-- x --><a/><?p q?>", "<!-- x --><a/><?p q?>"),
            ("", ""),
            ("<a> </a><b>\n <c/>x</b>", "<a/><b><c/>x</b>"),
            ("<a>&#x20;</a>", "<a>&#x20;</a>"),
            ("<a>&#x20; </a><b> <![CDATA[ ]]></b>", "<a> &#x20;</a><b> &#x20;</b>"),
            ("<b><![CDATA[\n]]></b>", "<b>&#x0A;</b>"),
        ] {
            assert_eq!(normal(given).unwrap(), expected, "{given}");
        }
    }

    #[test]
    fn what_is_not_well_formed_is_told() {
        for (given, number) in [
            ("<a>", 9436),
            ("<a></b>", 9436),
            ("</x><x>", 9436),
            ("<a b='1' b='2'/>", 9437),
            ("a & b", 9411),
            ("&none;", 9448),
        ] {
            match normal(given) {
                Err(Error::Xml { number: found, .. }) => assert_eq!(found, number, "{given}"),
                other => panic!("{given}: {other:?}"),
            }
        }
        for given in ["<a xmlns='x'/>", "<a xml:space='preserve'> </a>", "<a xml:lang='en'/>"] {
            assert!(matches!(normal(given), Err(Error::Unsupported(_))), "{given}");
        }
        for given in [
            "<!DOCTYPE a><a/>",
            "<!-- c --> <!DOCTYPE a><a/>",
            "<?p?><!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
        ] {
            assert!(matches!(normal(given), Err(Error::Unsupported(_))), "{given}");
        }
        let deep = |count: usize| "<a>".repeat(count) + &"</a>".repeat(count);
        assert!(normal(&deep(DEPTH_MOST)).is_ok());
        assert!(matches!(normal(&deep(DEPTH_MOST + 1)), Err(Error::XmlTooDeep(_))));
        assert!(matches!(normal(&deep(100_000)), Err(Error::XmlTooDeep(_) | Error::Xml { .. })));
    }
}
