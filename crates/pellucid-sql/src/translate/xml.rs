//! FOR XML, and the methods of xml: value, query, exist, nodes.

use pellucid_tsql::ast::{
    ColumnName, Declaration, Expression, ForXml, FunctionArguments, FunctionCall, Literal,
    ObjectName, StatementKind, TableAlias, XmlAsked, XmlMethod, XmlMode,
};

use super::from::add;
use super::scope::{Column, Level, Relation, ScopeColumn, ScopeTable};
use super::{text_literal, typed, Typed, View, Work};
use crate::message::{table, Message, Result};
use crate::values::types::{Family, SqlType};
use crate::values::xml::path::Path;

/// Values of a row at most: SQLite's functions have 127 arguments.
const COLUMNS_MOST: usize = 100;
/// What SQL Server calls the column of a result.
const RESULT: &str = "XML_F52E2B61-18A1-11d1-B105-00805F49916B";

impl Work<'_> {
    /// The rows of a query as one value; `nested` within another query.
    pub(super) fn for_xml(
        &mut self,
        relation: Relation,
        xml: &ForXml,
        nested: bool,
    ) -> Result<Relation> {
        if relation.columns.len() > COLUMNS_MOST {
            return Err(Message::unsupported(format!(
                "FOR XML of more than {COLUMNS_MOST} columns"
            )));
        }
        if !xml.element.is_empty() {
            check_name("Row", &xml.element)?;
        }
        let root = xml.root.as_deref().unwrap_or_default();
        match &xml.root {
            Some(root) if root.is_empty() => return Err(Message::of(table::XML_EMPTY_ROOT, [])),
            Some(root) => check_name("ROOT", root)?,
            None => {}
        }
        let mode = if xml.typed { "T" } else { "S" };
        let mut shape = format!("{mode}\n{}\n{root}", xml.element);
        let mut values = Vec::new();
        let mut paths: Vec<String> = Vec::new();
        for (at, column) in relation.columns.iter().enumerate() {
            let value = self.xml_text(column.of("x", at))?;
            let is_xml = column.data_type == SqlType::Xml;
            let (kind, path) = match xml.mode {
                XmlMode::Path => path_of(column, is_xml)?,
                XmlMode::Raw | XmlMode::RawElements => {
                    let unnamed = || Message::of(table::XML_UNNAMED, []);
                    let name = encoded(column.name.as_deref().ok_or_else(unnamed)?);
                    let sign = if xml.mode == XmlMode::Raw { "@" } else { "" };
                    (if is_xml { 'x' } else { 't' }, format!("{sign}{name}"))
                }
            };
            check_attribute(&path, column, &paths, &xml.element, is_xml)?;
            if xml.mode == XmlMode::RawElements && paths.contains(&path) {
                return Err(Message::unsupported("two elements of one name in FOR XML RAW"));
            }
            shape.push_str(&format!("\n{kind} {path}"));
            paths.push(path);
            values.push(value);
        }
        let values: Vec<String> = values.into_iter().map(|value| format!(", {value}")).collect();
        let made = format!("tsql_xml({}{})", text_literal(&shape), values.concat());
        let sql = format!("SELECT {made} AS c1 FROM ({}) AS x", relation.sql);
        // Of no rows a statement gives none, and a sub-query NULL.
        let sql = match nested || xml.typed {
            true => sql,
            false => format!("SELECT c1 FROM ({sql}) WHERE c1 IS NOT NULL"),
        };
        let data_type = if xml.typed { SqlType::Xml } else { SqlType::NVARCHAR_MAX };
        let name = (!nested && !xml.typed).then(|| RESULT.to_owned());
        let columns = vec![Column { name, data_type, sensitive: false }];
        Ok(Relation { sql, columns, single: true })
    }

    /// A value as XML writes it.
    fn xml_text(&self, value: Typed) -> Result<String> {
        let from = value.data_type;
        let style = match from.family() {
            Family::Text | Family::Xml | Family::Null => return Ok(value.sql),
            Family::Binary | Family::Variant => {
                return Err(Message::unsupported(format!("{} in FOR XML", from.name())))
            }
            // ISO 8601.
            Family::Moment => 126,
            // All digits.
            Family::Float => 2,
            Family::Decimal if matches!(from, SqlType::Money | SqlType::SmallMoney) => 2,
            _ => 0,
        };
        let to = SqlType::NVARCHAR_MAX.code();
        Ok(format!("tsql_convert({}, {}, {to}, {style})", value.sql, from.code()))
    }

    /// `x.value('path', 'type')` and its like.
    pub(super) fn xml_method(&mut self, xml: &XmlMethod, view: View<'_>) -> Result<Typed> {
        let operand = self.xml_operand(&xml.operand, view)?;
        self.asked_of_xml(operand, &xml.asked, &xml.path.text)
    }

    /// What a method is called on: a column that nodes() gives, too.
    pub(super) fn xml_operand(&mut self, operand: &Expression, view: View<'_>) -> Result<Typed> {
        match operand {
            Expression::Column(column) => {
                let column = view.column(column)?;
                self.repeat(column.sql.len())?;
                Ok(column)
            }
            operand => self.expression(operand, view),
        }
    }

    /// The same of a column, which is written as the call of a function in a schema.
    pub(super) fn xml_method_of_column(
        &mut self,
        call: &FunctionCall,
        view: View<'_>,
    ) -> Result<Option<Typed>> {
        let Some((column, values)) = of_column(call) else { return Ok(None) };
        let text = |value: &Expression| match value {
            Expression::Literal(Literal::String(text)) => Some(text.clone()),
            _ => None,
        };
        let texts: Option<Vec<_>> = values.iter().map(text).collect();
        let (path, asked) = match (call.name.object.as_str(), texts.as_deref()) {
            ("value", Some([path, to])) => (path, XmlAsked::Value(to.clone())),
            ("query", Some([path])) => (path, XmlAsked::Query),
            ("exist", Some([path])) => (path, XmlAsked::Exist),
            _ => return Ok(None),
        };
        // Not of a script's function that has such a name.
        if view.column(&column).is_err_and(is_not_found) {
            return Ok(None);
        }
        let operand = self.xml_operand(&Expression::Column(Box::new(column)), view)?;
        self.asked_of_xml(operand, &asked, &path.text).map(Some)
    }

    fn asked_of_xml(&mut self, operand: Typed, asked: &XmlAsked, path: &str) -> Result<Typed> {
        let read = path_in(&operand, path)?;
        // An attribute is no xml by itself.
        if *asked == XmlAsked::Query && read.gives_attributes() {
            return Err(refused_path(path));
        }
        let (xml, path) = (&operand.sql, text_literal(path));
        Ok(match asked {
            XmlAsked::Value(to) => {
                if !read.is_single() {
                    return Err(Message::of(table::XML_NOT_SINGLE, []));
                }
                let to = type_of(&to.text)?;
                let text = format!("tsql_xml_value({xml}, {path})");
                self.converted(typed(text, SqlType::NVARCHAR_MAX), to)
            }
            XmlAsked::Query => typed(format!("tsql_xml_query({xml}, {path})"), SqlType::Xml),
            XmlAsked::Exist => typed(format!("tsql_xml_exist({xml}, {path})"), SqlType::Bit),
        })
    }

    /// `x.nodes('path') AS a (column)`: a row for each node.
    pub(super) fn xml_nodes(
        &mut self,
        operand: &Expression,
        path: &str,
        alias: Option<&TableAlias>,
        level: &mut Level,
        outer: View<'_>,
    ) -> Result<String> {
        let operand = self.xml_operand(operand, outer)?;
        if !path_in(&operand, path)?.gives_nodes() {
            return Err(refused_path(path));
        }
        let Some((alias, [column])) = alias.map(|alias| (alias, &alias.columns[..])) else {
            return Err(Message::of(table::XML_NODES_WITHOUT_ALIAS, []));
        };
        let t = self.alias();
        let value = typed(format!("{t}.value"), SqlType::XmlNode);
        let columns = vec![ScopeColumn { name: column.as_str().to_owned(), value }];
        let name = alias.name.clone().into();
        add(level, ScopeTable { name, columns, computed: false, row: None, is_prefixed: false })?;
        Ok(format!("json_each(tsql_xml_nodes({}, {})) AS {t}", operand.sql, text_literal(path)))
    }

    /// The same of a column, which is written as the call of a function; `None` for another function.
    pub(super) fn xml_nodes_of_column(
        &mut self,
        call: &FunctionCall,
        alias: Option<&TableAlias>,
        level: &mut Level,
        outer: View<'_>,
    ) -> Result<Option<String>> {
        if call.name.object.as_str() != "nodes" {
            return Ok(None);
        }
        match of_column(call) {
            Some((column, [Expression::Literal(Literal::String(path))])) => {
                if outer.column(&column).is_err_and(is_not_found) {
                    return Ok(None);
                }
                let operand = Expression::Column(Box::new(column));
                self.xml_nodes(&operand, &path.text, alias, level, outer).map(Some)
            }
            _ => Ok(None),
        }
    }
}

fn is_not_found(told: Message) -> bool {
    matches!(told.number, 207 | 4104)
}

/// The column that a method is called on, and its arguments; none of a function's call.
fn of_column(call: &FunctionCall) -> Option<(ColumnName, &[Expression])> {
    let column = call.name.schema.clone()?;
    let FunctionArguments::Values(values) = &call.arguments else { return None };
    if call.name.server.is_some() || call.over.is_some() || call.distinct {
        return None;
    }
    let table = call.name.database.clone().map(ObjectName::from);
    Some((ColumnName { table, column }, values))
}

/// The path, where it is one that there is here and may be asked of `operand`.
fn path_in(operand: &Typed, path: &str) -> Result<Path> {
    if !matches!(operand.data_type, SqlType::Xml | SqlType::XmlNode) {
        return Err(Message::of(table::NO_METHODS, [&operand.data_type.name()]));
    }
    let read = Path::parse(path).ok_or_else(|| refused_path(path))?;
    // A node is known without what is around it.
    match operand.data_type == SqlType::XmlNode && read.is_absolute() {
        true => Err(refused_path(path)),
        false => Ok(read),
    }
}

/// Without what stands between quotes in it, which is a value.
fn refused_path(path: &str) -> Message {
    let shown = path.split_once(['"', '\'']).map_or(path, |(before, _)| before);
    let rest = if shown.len() < path.len() { ".." } else { "" };
    Message::unsupported(format!("the path '{shown}{rest}' in xml"))
}

/// The type that a string names.
fn type_of(text: &str) -> Result<SqlType> {
    let refused = || Message::unsupported(format!("the type '{text}' of a value in xml"));
    let parsed = pellucid_tsql::parse(&format!("DECLARE @v {text}")).map_err(|_| refused())?;
    let [statement] = &parsed[..] else { return Err(refused()) };
    match &statement.kind {
        StatementKind::Declare(declared) => match &declared[..] {
            [Declaration::Scalar { data_type, value: None, .. }] => {
                let declared = SqlType::declared(data_type, 1)?;
                match declared.family() {
                    // Of xs:base64Binary, and what no value of xml becomes.
                    Family::Binary | Family::Xml | Family::Variant => Err(refused()),
                    _ => Ok(declared),
                }
            }
            _ => Err(refused()),
        },
        _ => Err(refused()),
    }
}

/// The kind and path of a column by its name.
fn path_of(column: &Column, is_xml: bool) -> Result<(char, String)> {
    let kind = if is_xml { 'x' } else { 't' };
    let name = column.name.as_deref().unwrap_or_default();
    let (parents, last) =
        name.rsplit_once('/').map_or(("", name), |(parents, last)| (parents, last));
    let (kind, last) = match last {
        "" | "*" | "node()" if parents.is_empty() || !last.is_empty() => (kind, ""),
        "text()" => (kind, ""),
        "data()" => ('d', ""),
        "comment()" => return Err(Message::unsupported("comment() in FOR XML")),
        _ if last.starts_with("processing-instruction(") => {
            return Err(Message::unsupported("processing-instruction() in FOR XML"))
        }
        _ => (kind, last),
    };
    let steps = parents.split('/').chain([last.strip_prefix('@').unwrap_or(last)]);
    for step in steps.filter(|_| !name.is_empty()) {
        if !step.is_empty() {
            check_name("Column", step)?;
        }
    }
    let is_odd = (name.contains('/') && parents.split('/').any(str::is_empty))
        || name.ends_with('/')
        || last == "@";
    if is_odd {
        return Err(Message::unsupported(format!("the name '{name}' in FOR XML")));
    }
    let path = match (parents, last) {
        ("", last) => last.to_owned(),
        (parents, "") => parents.to_owned(),
        (parents, last) => format!("{parents}/{last}"),
    };
    Ok((kind, path))
}

/// 6852 and 6864: an attribute belongs to the start of an element.
fn check_attribute(
    path: &str,
    column: &Column,
    before: &[String],
    element: &str,
    is_xml: bool,
) -> Result<()> {
    let (parent, last) = path.rsplit_once('/').unwrap_or(("", path));
    if !last.starts_with('@') {
        return Ok(());
    }
    let name = column.name.as_deref().unwrap_or_default();
    if is_xml {
        return Err(Message::unsupported("xml in an attribute in FOR XML"));
    }
    if parent.is_empty() && element.is_empty() {
        return Err(Message::of(table::XML_ATTRIBUTE_OF_NOTHING, []));
    }
    let is_within = |other: &&String| {
        parent.is_empty()
            || *other == parent
            || other.strip_prefix(parent).is_some_and(|rest| rest.starts_with('/'))
    };
    let is_content = |other: &&String| {
        let (its_parent, its_last) = other.rsplit_once('/').unwrap_or(("", other));
        !(its_parent == parent && its_last.starts_with('@'))
    };
    // What stands elsewhere has ended the element, and a new one begins.
    let mut open = before.iter().rev().take_while(is_within);
    match open.clone().find(is_content) {
        Some(_) => Err(Message::of(table::XML_ATTRIBUTE_LATE, [&name])),
        None if open.any(|other| other == path) => {
            Err(Message::unsupported(format!("two attributes {last} in FOR XML")))
        }
        None => Ok(()),
    }
}

/// A name of a column as one of XML's: what cannot be in such a one is `_xHHHH_`.
/// Source: Microsoft's "Use Quoted Identifiers with FOR XML", "Encoding of names".
fn encoded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (at, next) in name.char_indices() {
        let is_escape = next == '_' && name[at + 1..].starts_with('x');
        if !is_escape && (if at == 0 { starts_name(next) } else { goes_on_in_name(next) }) {
            out.push(next);
        } else {
            out.push_str(&format!("_x{:04X}_", u32::from(next)));
        }
    }
    out
}

fn starts_name(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn goes_on_in_name(c: char) -> bool {
    starts_name(c) || c.is_numeric() || matches!(c, '-' | '.')
}

/// 6850: an element and an attribute have a name of XML's.
fn check_name(what: &str, name: &str) -> Result<()> {
    let fault = name.chars().enumerate().find(|(at, c)| match at {
        0 => !starts_name(*c),
        _ => !goes_on_in_name(*c),
    });
    match fault {
        None => Ok(()),
        Some((_, ':')) => {
            Err(Message::unsupported(format!("the namespace in '{name}' in FOR XML")))
        }
        Some((_, c)) => {
            let code = format!("{:04X}", u32::from(c));
            Err(Message::of(table::XML_NAME, [&what, &name, &c, &code]))
        }
    }
}
