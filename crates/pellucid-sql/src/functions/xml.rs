//! FOR XML PATH: rows as XML; and the text in it.
//!
//! `tsql_xml(shape, v1, v2, ..)` is an aggregate. The shape is a text of lines: `T` for xml or `S` for text, the element of a
//! row, that of all rows, and for each value its kind and its path, the last step of which may be an attribute:
//! `t a/b`, `t a/@b`. Kinds are `t` text, `x` xml, `d` text that a space parts from such text before it.

use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::Connection;

use super::{arguments, bounded, text_at, with_nulls, Scalar};
use crate::message::{table, Message, Result};
use crate::values::convert::Value;
use crate::values::xml::{escape, path::Path};

pub(super) const SCALARS: &[Scalar] = &[
    with_nulls("tsql_xml_value", xml_value),
    with_nulls("tsql_xml_query", xml_query),
    with_nulls("tsql_xml_exist", xml_exist),
    with_nulls("tsql_xml_nodes", xml_nodes),
];

pub(super) fn register(connection: &Connection) -> rusqlite::Result<()> {
    let pure = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_aggregate_function("tsql_xml", -1, pure, Rows)
}

struct Rows;

impl Aggregate<Option<Writer>, Value> for Rows {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<Option<Writer>> {
        Ok(None)
    }

    fn step(&self, context: &mut Context<'_>, writer: &mut Option<Writer>) -> rusqlite::Result<()> {
        let values = arguments(context)?;
        let mut add = || -> Result<()> {
            if writer.is_none() {
                *writer = Some(Writer::new(text_at(&values, 0)?));
            }
            match writer {
                Some(writer) => writer.row(&values),
                None => Ok(()),
            }
        };
        add().map_err(Message::raise)
    }

    fn finalize(
        &self,
        _: &mut Context<'_>,
        writer: Option<Option<Writer>>,
    ) -> rusqlite::Result<Value> {
        Ok(writer.flatten().map_or(Value::Null, |writer| Value::Text(writer.finished())))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Xml,
    Data,
}

/// Where a value stands within its row.
#[derive(Debug)]
struct Place {
    kind: Kind,
    elements: Vec<String>,
    attribute: Option<String>,
}

impl Place {
    fn new(line: &str) -> Self {
        let (kind, path) = line.split_once(' ').unwrap_or((line, ""));
        let mut elements: Vec<String> =
            path.split('/').filter(|step| !step.is_empty()).map(str::to_owned).collect();
        let attribute = elements.last().and_then(|last| last.strip_prefix('@')).map(str::to_owned);
        if attribute.is_some() {
            elements.pop();
        }
        let kind = match kind {
            "x" => Kind::Xml,
            "d" => Kind::Data,
            _ => Kind::Text,
        };
        Self { kind, elements, attribute }
    }
}

/// The XML so far.
#[derive(Debug)]
struct Writer {
    is_xml: bool,
    root: String,
    places: Vec<Place>,
    out: String,
    /// The elements that are open; the row's is the first, if it has one.
    open: Vec<String>,
    /// How many of them are the row's own.
    base: usize,
    row: String,
    /// The start tag of the last one lacks its `>`.
    is_pending: bool,
    /// What was written last was `data()`.
    after_data: bool,
}

impl Writer {
    fn new(shape: &str) -> Self {
        let mut lines = shape.lines();
        let is_xml = lines.next() == Some("T");
        let row = lines.next().unwrap_or_default().to_owned();
        let root = lines.next().unwrap_or_default().to_owned();
        let base = usize::from(!row.is_empty());
        let places = lines.map(Place::new).collect();
        let (out, open) = (String::new(), Vec::new());
        let (is_pending, after_data) = (false, false);
        Self { is_xml, root, places, out, open, base, row, is_pending, after_data }
    }

    fn row(&mut self, values: &[Value]) -> Result<()> {
        if self.base > 0 {
            self.begin(self.row.clone());
        }
        let places = std::mem::take(&mut self.places);
        let done = places.iter().zip(values.iter().skip(1)).try_for_each(|(place, value)| {
            let text = match value {
                Value::Null => None,
                Value::Text(text) => Some(text.as_str()),
                _ => return Err(super::unexpected(1)),
            };
            self.value(place, text)
        });
        self.places = places;
        done?;
        self.close_to(0);
        bounded(self.out.len())
    }

    /// A value; one that is NULL ends what it is not part of, and opens nothing.
    fn value(&mut self, place: &Place, text: Option<&str>) -> Result<()> {
        let opened = &self.open[self.base.min(self.open.len())..];
        let common = opened.iter().zip(&place.elements).take_while(|(one, other)| one == other);
        let common = common.count();
        self.close_to(self.base + common);
        let Some(text) = text else { return Ok(()) };
        for element in &place.elements[common..] {
            self.begin(element.clone());
        }
        if let Some(attribute) = &place.attribute {
            let text = entities(text, true, self.is_xml)?;
            self.out.push_str(&format!(" {attribute}=\"{text}\""));
            return Ok(());
        }
        if place.kind == Kind::Data && self.after_data {
            self.out.push(' ');
        }
        // An empty element of xml has no end tag.
        if !(text.is_empty() && self.is_xml) {
            self.end_tag();
        }
        match place.kind {
            Kind::Xml => self.out.push_str(text),
            _ => self.out.push_str(&entities(text, false, self.is_xml)?),
        }
        self.after_data = place.kind == Kind::Data;
        Ok(())
    }

    fn begin(&mut self, element: String) {
        self.end_tag();
        self.out.push('<');
        self.out.push_str(&element);
        self.open.push(element);
        self.is_pending = true;
        self.after_data = false;
    }

    fn end_tag(&mut self) {
        if std::mem::take(&mut self.is_pending) {
            self.out.push('>');
        }
    }

    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            let Some(element) = self.open.pop() else { return };
            match std::mem::take(&mut self.is_pending) {
                true => self.out.push_str("/>"),
                false => self.out.push_str(&format!("</{element}>")),
            }
            self.after_data = false;
        }
    }

    fn finished(self) -> String {
        match self.root.as_str() {
            "" => self.out,
            root => format!("<{root}>{}</{root}>", self.out),
        }
    }
}

/// Text as XML has it; what is no character of XML's is 6841 in xml, and a reference in text.
fn entities(text: &str, is_attribute: bool, is_xml: bool) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    for next in text.chars() {
        match next {
            '\t' | '\n' | '\r' => escape(next.encode_utf8(&mut [0; 4]), is_attribute, &mut out),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => {
                let code = format!("{:04X}", u32::from(next));
                match is_xml {
                    true => return Err(Message::of(table::XML_CHARACTER, [&code])),
                    false => out.push_str(&format!("&#x{:02X};", u32::from(next))),
                }
            }
            other => escape(other.encode_utf8(&mut [0; 4]), is_attribute, &mut out),
        }
    }
    Ok(out)
}

/// The path and the xml of a call; none of NULL.
fn asked(arguments: &[Value]) -> Result<Option<(Path, &str)>> {
    if arguments.first() == Some(&Value::Null) {
        return Ok(None);
    }
    let path = text_at(arguments, 1)?;
    let refused = || Message::unsupported("this path in xml");
    Ok(Some((Path::parse(path).ok_or_else(refused)?, text_at(arguments, 0)?)))
}

/// `tsql_xml_value(xml, path)`: the text of the first node.
fn xml_value(arguments: &[Value]) -> Result<Value> {
    let Some((path, xml)) = asked(arguments)? else { return Ok(Value::Null) };
    Ok(path.value(xml)?.map_or(Value::Null, Value::Text))
}

/// `tsql_xml_query(xml, path)`: the nodes.
fn xml_query(arguments: &[Value]) -> Result<Value> {
    let Some((path, xml)) = asked(arguments)? else { return Ok(Value::Null) };
    Ok(Value::Text(path.query(xml)?))
}

/// `tsql_xml_exist(xml, path)`: whether there is a node.
fn xml_exist(arguments: &[Value]) -> Result<Value> {
    let Some((path, xml)) = asked(arguments)? else { return Ok(Value::Null) };
    Ok(Value::Integer(path.exists(xml)?.into()))
}

/// `tsql_xml_nodes(xml, path)`: each node, as an array of JSON's.
fn xml_nodes(arguments: &[Value]) -> Result<Value> {
    let Some((path, xml)) = asked(arguments)? else { return Ok(Value::Text("[]".to_owned())) };
    let nodes = path.nodes(xml)?;
    let nodes: Vec<String> = nodes.iter().map(|node| super::text::json_string(node)).collect();
    Ok(Value::Text(format!("[{}]", nodes.join(","))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(shape: &str, rows: &[&[Option<&str>]]) -> String {
        let mut writer = Writer::new(shape);
        for row in rows {
            let mut values = vec![Value::Null];
            values.extend(
                row.iter().map(|one| one.map_or(Value::Null, |text| Value::Text(text.to_owned()))),
            );
            writer.row(&values).unwrap();
        }
        writer.finished()
    }

    #[test]
    fn rows_are_elements_or_text() {
        let shape = "S\nr\n\nt @id\nt a\nt a\nt \nt a\nt b/c\nt b/d";
        let row = [Some("1\""), Some("x"), Some("y"), Some("<"), Some(""), Some("c"), None];
        assert_eq!(
            rows(shape, &[&row]),
            "<r id=\"1&quot;\"><a>xy</a>&lt;<a></a><b><c>c</c></b></r>"
        );
        assert_eq!(rows(shape, &[&[None; 7]]), "<r/>");
        assert_eq!(rows("T\n\nall\nt a", &[&[Some("")], &[None]]), "<all><a/></all>");
        assert_eq!(rows("S\n\n\nd ", &[&[Some("a")], &[None], &[Some("b")]]), "a b");
        assert_eq!(rows("S\n\n\nt ", &[&[Some("a\r\n\u{1}")]]), "a&#x0D;\n&#x01;");
        assert_eq!(entities("\u{1}", false, true).unwrap_err().number, 6841);
    }

    #[test]
    fn text_comes_out_as_it_went_in() {
        let value = |xml: &str, path: &str| {
            xml_value(&[Value::Text(xml.to_owned()), Value::Text(path.to_owned())]).unwrap()
        };
        let text = |text: &str| Value::Text(text.to_owned());
        assert_eq!(value("a&lt;b&amp;amp;&#x0D;", "."), text("a<b&amp;\r"));
        assert_eq!(value("<a>1<b/></a>2<c x=\"y\">3</c>", "."), text("123"));
        assert_eq!(value("<a>1<b/></a>2<c x=\"y\">3</c>4", "text()[1]"), text("2"));
        assert_eq!(value("<a>1</a>", "(./text())[1]"), Value::Null);
        assert_eq!(value("", "."), text(""));
    }
}
