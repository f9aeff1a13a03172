//! Paths in xml: the part of XQuery that scripts use. `(/Record/Event[@id="1"]/text())[1]`, `./@name`, `//row`, `count(/a/b)`.
//!
//! Source: Microsoft's "Path Expressions (XQuery)". What is outside of it is refused by its text.

use roxmltree::Node;

use super::{escape, written, Content};
use crate::values::Result;

/// What stands before the text of a node that nodes() has given: no xml has it.
pub(crate) const NODE: char = '\u{1}';
/// Behind it: an element, or the text of what is none.
const ELEMENT: char = 'e';
const TEXT: char = 't';

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Itself,
    Element(String),
    Any,
    Text,
    Node,
    Attribute(String),
    AnyAttribute,
}

#[derive(Debug, Clone, PartialEq)]
enum Predicate {
    /// From 1.
    Position(usize),
    Last,
    Has(Path),
    /// To a number, if it is one, and to its text.
    Equals(Path, String),
}

#[derive(Debug, Clone, PartialEq)]
struct Step {
    /// Behind `//`.
    is_deep: bool,
    test: Test,
    predicates: Vec<Predicate>,
}

/// A path, read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Path {
    is_absolute: bool,
    steps: Vec<Step>,
    /// Behind the parentheses around all of it.
    whole: Vec<Predicate>,
    is_count: bool,
}

#[derive(Debug, Clone, Copy)]
enum Item<'t> {
    Node(Node<'t, 't>),
    Attribute(&'t str),
}

impl Path {
    /// `None` for what is no path of those that there are here.
    pub fn parse(text: &str) -> Option<Self> {
        let mut reader = Reader { rest: text, depth: 0 };
        let path = reader.whole()?;
        reader.skip();
        reader.rest.is_empty().then_some(path)
    }

    /// From the root of what it is asked of.
    pub fn is_absolute(&self) -> bool {
        self.is_absolute
    }

    /// Whether it has one node at most, as its text says.
    pub fn is_single(&self) -> bool {
        let is_one = |predicates: &[Predicate]| {
            predicates.iter().any(|one| matches!(one, Predicate::Position(_) | Predicate::Last))
        };
        let step = |step: &Step| {
            let is_named = matches!(step.test, Test::Itself | Test::Attribute(_));
            !step.is_deep && (is_named || is_one(&step.predicates))
        };
        self.is_count || is_one(&self.whole) || self.steps.iter().all(step)
    }

    /// The text of the first node; `None` if there is none.
    ///
    /// # Errors
    /// What is no xml.
    pub fn value(&self, xml: &str) -> Result<Option<String>> {
        self.within(xml, |found| match self.is_count {
            true => Some(found.len().to_string()),
            false => found.first().map(|item| text_of(*item)),
        })
    }

    /// Whether there is a node.
    ///
    /// # Errors
    /// What is no xml.
    pub fn exists(&self, xml: &str) -> Result<bool> {
        self.within(xml, |found| self.is_count || !found.is_empty())
    }

    /// All nodes as xml.
    ///
    /// # Errors
    /// What is no xml.
    pub fn query(&self, xml: &str) -> Result<String> {
        self.within(xml, |found| {
            let mut out = String::new();
            match self.is_count {
                true => out.push_str(&found.len().to_string()),
                false => found.iter().for_each(|item| out.push_str(&xml_of(*item))),
            }
            out
        })
    }

    /// Each node as [`NODE`] and its text.
    ///
    /// # Errors
    /// What is no xml.
    pub fn nodes(&self, xml: &str) -> Result<Vec<String>> {
        self.within(xml, |found| {
            let node = |item: &Item<'_>| match item {
                Item::Node(node) if node.is_element() => {
                    format!("{NODE}{ELEMENT}{}", xml_of(*item))
                }
                _ => {
                    let mut text = format!("{NODE}{TEXT}");
                    escape(&text_of(*item), false, &mut text);
                    text
                }
            };
            found.iter().map(node).collect()
        })
    }

    fn within<T>(&self, xml: &str, take: impl FnOnce(&[Item<'_>]) -> T) -> Result<T> {
        let behind = xml.strip_prefix(NODE);
        let body = behind.and_then(|rest| rest.strip_prefix([ELEMENT, TEXT])).unwrap_or(xml);
        let content = Content::new(body);
        let tree = content.tree()?;
        let root = tree.root_element();
        let start = match behind.is_some_and(|rest| rest.starts_with(ELEMENT)) {
            true => root.first_child().unwrap_or(root),
            false => root,
        };
        Ok(take(&self.from(Item::Node(start))))
    }

    fn from<'t>(&self, start: Item<'t>) -> Vec<Item<'t>> {
        let mut items = vec![start];
        for step in &self.steps {
            items = items.into_iter().flat_map(|item| step.from(item)).collect();
            // Below nodes that are within one another the same is found twice.
            if step.is_deep {
                let mut seen = std::collections::HashSet::new();
                items.retain(|item| match item {
                    Item::Node(node) => seen.insert(node.id()),
                    Item::Attribute(_) => true,
                });
                // As they stand; attributes come in that order by themselves.
                items.sort_by_key(|item| match item {
                    Item::Node(node) => node.id().get_usize(),
                    Item::Attribute(_) => 0,
                });
            }
        }
        self.whole.iter().fold(items, |items, predicate| predicate.of(items))
    }
}

impl Step {
    fn from<'t>(&self, item: Item<'t>) -> Vec<Item<'t>> {
        let Item::Node(node) = item else {
            return match self.test {
                Test::Itself => vec![item],
                _ => Vec::new(),
            };
        };
        let bases: Vec<Node<'t, 't>> =
            if self.is_deep { node.descendants().collect() } else { vec![node] };
        bases.into_iter().flat_map(|base| self.of_one(base)).collect()
    }

    fn of_one<'t>(&self, base: Node<'t, 't>) -> Vec<Item<'t>> {
        let children = |is_it: &dyn Fn(&Node<'t, 't>) -> bool| -> Vec<Item<'t>> {
            base.children().filter(|child| is_it(child)).map(Item::Node).collect()
        };
        let attributes = |name: Option<&str>| -> Vec<Item<'t>> {
            let is_it =
                |one: &roxmltree::Attribute<'t, 't>| name.is_none_or(|name| one.name() == name);
            base.attributes().filter(is_it).map(|one| Item::Attribute(one.value())).collect()
        };
        let found = match &self.test {
            Test::Itself => vec![Item::Node(base)],
            Test::Element(name) => {
                children(&|node| node.is_element() && node.tag_name().name() == name)
            }
            Test::Any => children(&Node::is_element),
            Test::Text => children(&Node::is_text),
            Test::Node => children(&|_| true),
            Test::Attribute(name) => attributes(Some(name)),
            Test::AnyAttribute => attributes(None),
        };
        self.predicates.iter().fold(found, |items, predicate| predicate.of(items))
    }
}

impl Predicate {
    fn of<'t>(&self, items: Vec<Item<'t>>) -> Vec<Item<'t>> {
        match self {
            Predicate::Position(at) => {
                items.into_iter().skip(at.saturating_sub(1)).take(usize::from(*at > 0)).collect()
            }
            Predicate::Last => items.last().copied().into_iter().collect(),
            Predicate::Has(path) => {
                items.into_iter().filter(|item| !path.from(*item).is_empty()).collect()
            }
            Predicate::Equals(path, wanted) => {
                let is_equal = |item: Item<'t>| {
                    let text = text_of(item);
                    match (text.trim().parse::<f64>(), wanted.parse::<f64>()) {
                        (Ok(one), Ok(other)) => one.total_cmp(&other).is_eq(),
                        _ => text == *wanted,
                    }
                };
                let has = |item: &Item<'t>| path.from(*item).into_iter().any(is_equal);
                items.into_iter().filter(has).collect()
            }
        }
    }
}

fn text_of(item: Item<'_>) -> String {
    match item {
        Item::Attribute(value) => value.to_owned(),
        Item::Node(node) if node.is_element() => {
            node.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect()
        }
        Item::Node(node) => node.text().unwrap_or_default().to_owned(),
    }
}

/// The element around all content is none of its own.
fn xml_of(item: Item<'_>) -> String {
    match item {
        Item::Node(node) if node.parent().is_some_and(|parent| parent.is_root()) => {
            written(node.children())
        }
        Item::Node(node) => written(std::iter::once(node)),
        Item::Attribute(value) => {
            let mut text = String::new();
            escape(value, false, &mut text);
            text
        }
    }
}

/// What is not read yet.
struct Reader<'t> {
    rest: &'t str,
    depth: u8,
}

impl<'t> Reader<'t> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn accept(&mut self, what: &str) -> bool {
        self.skip();
        match self.rest.strip_prefix(what) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn require(&mut self, what: &str) -> Option<()> {
        self.accept(what).then_some(())
    }

    /// `path`, `(path)[1]`, `count(path)`, `data(path)`, `string(path)`
    fn whole(&mut self) -> Option<Path> {
        const NESTED_MOST: u8 = 16;
        self.depth += 1;
        if self.depth > NESTED_MOST {
            return None;
        }
        self.skip();
        for function in ["count", "data", "string"] {
            let behind = self.rest.strip_prefix(function).map(str::trim_start);
            if let Some(behind) = behind.filter(|behind| behind.starts_with('(')) {
                self.rest = behind;
                let path = self.in_parentheses()?;
                return Some(Path { is_count: function == "count", ..path });
            }
        }
        let path = match self.rest.starts_with('(') {
            true => self.in_parentheses()?,
            false => self.steps()?,
        };
        self.depth -= 1;
        Some(path)
    }

    fn in_parentheses(&mut self) -> Option<Path> {
        self.require("(")?;
        let inner = self.whole()?;
        self.require(")")?;
        let mut path = inner;
        path.whole.extend(self.predicates()?);
        Some(path)
    }

    fn steps(&mut self) -> Option<Path> {
        self.skip();
        let is_absolute = self.rest.starts_with('/');
        let mut steps = Vec::new();
        let mut is_deep = false;
        if is_absolute {
            is_deep = self.accept("//");
            if !is_deep {
                self.require("/")?;
            }
        }
        // `/` alone is the root.
        self.skip();
        let is_root =
            is_absolute && !is_deep && (self.rest.is_empty() || self.rest.starts_with(')'));
        if is_root {
            return Some(Path { is_absolute, steps, whole: Vec::new(), is_count: false });
        }
        loop {
            let test = self.test()?;
            let predicates = self.predicates()?;
            steps.push(Step { is_deep, test, predicates });
            is_deep = self.accept("//");
            if !is_deep && !self.accept("/") {
                break;
            }
        }
        Some(Path { is_absolute, steps, whole: Vec::new(), is_count: false })
    }

    fn test(&mut self) -> Option<Test> {
        if self.accept("..") {
            return None;
        }
        if self.accept(".") {
            return Some(Test::Itself);
        }
        if self.accept("@") {
            return match self.accept("*") {
                true => Some(Test::AnyAttribute),
                false => self.name().map(Test::Attribute),
            };
        }
        if self.accept("*") {
            return Some(Test::Any);
        }
        let name = self.name()?;
        self.skip();
        if !self.rest.starts_with('(') {
            return Some(Test::Element(name));
        }
        self.require("(")?;
        self.require(")")?;
        match name.as_str() {
            "text" => Some(Test::Text),
            "node" => Some(Test::Node),
            _ => None,
        }
    }

    /// A name without a namespace.
    fn name(&mut self) -> Option<String> {
        self.skip();
        let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let end = self.rest.find(|c| !is_of_name(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if !starts || rest.starts_with(':') {
            return None;
        }
        self.rest = rest;
        Some(name.to_owned())
    }

    fn predicates(&mut self) -> Option<Vec<Predicate>> {
        let mut all = Vec::new();
        while self.accept("[") {
            all.push(self.predicate()?);
            self.require("]")?;
        }
        Some(all)
    }

    fn predicate(&mut self) -> Option<Predicate> {
        self.skip();
        if self.accept("last()") {
            return Some(Predicate::Last);
        }
        if self.accept("position()") {
            self.require("=")?;
            return self.number().map(Predicate::Position);
        }
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return self.number().map(Predicate::Position);
        }
        let path = self.whole()?;
        if !self.accept("=") && !self.accept("eq ") {
            return Some(Predicate::Has(path));
        }
        self.skip();
        let quote = self.rest.chars().next().filter(|quote| matches!(quote, '"' | '\''));
        let Some(quote) = quote else {
            return self.number().map(|number| Predicate::Equals(path, number.to_string()));
        };
        let (text, rest) = self.rest.get(1..)?.split_once(quote)?;
        self.rest = rest;
        Some(Predicate::Equals(path, text.to_owned()))
    }

    fn number(&mut self) -> Option<usize> {
        self.skip();
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        number.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const XML: &str = "<r id=\"7\"><a n=\"1\">x</a><a n=\"2\">y<b>z</b></a><c/></r><a>t</a>";

    fn value(path: &str) -> Option<String> {
        Path::parse(path).unwrap_or_else(|| panic!("{path}")).value(XML).unwrap()
    }

    #[test]
    fn paths_find_what_they_name() {
        for (path, expected) in [
            (".", Some("xyzt")),
            ("/a", Some("t")),
            ("(/r/a)[2]", Some("yz")),
            ("/r[1]/a[2]/text()[1]", Some("y")),
            ("(//b)[1]", Some("z")),
            ("/r[1]/@id", Some("7")),
            ("(/r/a[@n=\"2\"]/b)[1]", Some("z")),
            ("(/r/a[@n=2]/b/text())[1]", Some("z")),
            ("(/r/a[b])[1]/@n", None),
            ("(/r/a[last()]/@n)[1]", Some("2")),
            ("count(/r/a)", Some("2")),
            ("(/r/c)[1]", Some("")),
            ("(/r/d)[1]", None),
            ("(./r/*)[3]", Some("")),
            ("data(/r[1]/@id)", Some("7")),
        ] {
            let Some(read) = Path::parse(path) else {
                assert_eq!(expected, None, "{path}");
                continue;
            };
            assert_eq!(read.value(XML).unwrap().as_deref(), expected, "{path}");
        }
        assert_eq!(value("(//a)[3]").as_deref(), Some("t"));
    }

    #[test]
    fn one_node_at_most_is_told_by_the_text() {
        let is_single = |path: &str| Path::parse(path).unwrap().is_single();
        for path in
            [".", "@id", "./@id", "(/a/b)[1]", "/a[1]/@id", "/a[1]/b[1]/text()[1]", "count(//a)"]
        {
            assert!(is_single(path), "{path}");
        }
        for path in ["/a/b", "/a/@id", "a", "//a[1]", "text()", "/a[1]/*"] {
            assert!(!is_single(path), "{path}");
        }
    }

    #[test]
    fn what_is_outside_of_it_is_none() {
        for path in
            ["", "..", "/a/..", "x:a", "for $a in /b return $a", "/a[", "(/a", "a b", "child::a"]
        {
            assert_eq!(Path::parse(path), None, "{path}");
        }
        assert_eq!(Path::parse(&"(".repeat(100_000)), None);
        assert_eq!(Path::parse(&"a[".repeat(100_000)), None);
    }

    #[test]
    fn nodes_are_asked_as_they_are() {
        let nodes = Path::parse("/r/a").unwrap().nodes(XML).unwrap();
        assert_eq!(nodes.len(), 2);
        let of = |path: &str| Path::parse(path).unwrap().value(&nodes[1]).unwrap();
        assert_eq!(of(".").as_deref(), Some("yz"));
        assert_eq!(of("./@n").as_deref(), Some("2"));
        assert_eq!(of("(b)[1]").as_deref(), Some("z"));
        let nodes = Path::parse("/r/a/@n").unwrap().nodes(XML).unwrap();
        assert_eq!(Path::parse(".").unwrap().value(&nodes[0]).unwrap().as_deref(), Some("1"));
        assert_eq!(
            Path::parse("/r/a").unwrap().query(XML).unwrap(),
            "<a n=\"1\">x</a><a n=\"2\">y<b>z</b></a>"
        );
        assert_eq!(Path::parse(".").unwrap().query(XML).unwrap(), XML);
        assert!(Path::parse("/r[@id=7]").unwrap().exists(XML).unwrap());
        assert!(!Path::parse("/r[@id=8]").unwrap().exists(XML).unwrap());
    }
}
