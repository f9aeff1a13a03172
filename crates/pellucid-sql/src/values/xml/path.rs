//! Paths in xml: the part of XQuery that scripts use. `(/Record/Event[@id="1"]/text())[1]`, `./@name`, `//row`, `count(/a/b)`.
//!
//! Source: Microsoft's "Path Expressions (XQuery)". What is outside of it is refused by its text. Nodes come in the order of the
//! document, each once.

mod find;
mod read;

use roxmltree::Node;

use self::find::{text_of, xml_of, Finder, Item};
use super::{escape, Content};
use crate::values::{Error, Result};

/// What stands before the text of a node that nodes() has given: no xml has it.
pub(crate) const NODE: char = '\u{1}';
/// Behind it: an element, a comment or a processing instruction; all of a document; or text.
const ELEMENT: char = 'e';
const DOCUMENT: char = 'd';
const TEXT: char = 't';
/// Bytes of all nodes of a call.
const BYTES_MOST: usize = 64 << 20;

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
    Equals(Path, Wanted),
}

/// What a predicate compares with: numbers as numbers, and a text as it stands.
#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    Number(usize),
    Text(String),
}

#[derive(Debug, Clone, PartialEq)]
struct Step {
    /// Behind `//`.
    is_deep: bool,
    test: Test,
    predicates: Vec<Predicate>,
}

/// What is made of the nodes of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Count,
    Data,
    Text,
}

/// A path, read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Path {
    is_absolute: bool,
    steps: Vec<Step>,
    /// Behind the parentheses around all of it.
    whole: Vec<Predicate>,
    function: Option<Function>,
}

impl Path {
    /// `None` for what is no path of those that there are here.
    pub fn parse(text: &str) -> Option<Self> {
        read::path(text)
    }

    /// From the root of what it is asked of, or something in it is.
    pub fn is_absolute(&self) -> bool {
        let within = |predicate: &Predicate| match predicate {
            Predicate::Has(path) | Predicate::Equals(path, _) => path.is_absolute(),
            Predicate::Position(_) | Predicate::Last => false,
        };
        let predicates = self.steps.iter().flat_map(|step| &step.predicates);
        self.is_absolute || predicates.chain(&self.whole).any(within)
    }

    /// Whether it gives nodes, not what a function makes of them.
    pub fn gives_nodes(&self) -> bool {
        self.function.is_none()
    }

    /// Whether its nodes are attributes.
    pub fn gives_attributes(&self) -> bool {
        let is_attribute =
            |step: &&Step| matches!(step.test, Test::Attribute(_) | Test::AnyAttribute);
        let named = self.steps.iter().rev().find(|step| step.test != Test::Itself);
        self.gives_nodes() && named.filter(is_attribute).is_some()
    }

    /// Whether it has one value at most, as its text says.
    pub fn is_single(&self) -> bool {
        let is_one = |predicates: &[Predicate]| {
            predicates.iter().any(|one| matches!(one, Predicate::Position(_) | Predicate::Last))
        };
        let step = |step: &Step| {
            let is_named = matches!(step.test, Test::Itself | Test::Attribute(_));
            !step.is_deep && (is_named || is_one(&step.predicates))
        };
        self.function == Some(Function::Count) || is_one(&self.whole) || self.steps.iter().all(step)
    }

    /// The text of the first value; `None` if there is none.
    ///
    /// # Errors
    /// What is no xml; a path that visits too much.
    pub fn value(&self, xml: &str) -> Result<Option<String>> {
        self.within(xml, |found| {
            let first = found.first().map(|item| text_of(*item).into_owned());
            Ok(match self.function {
                Some(Function::Count) => Some(found.len().to_string()),
                // Of nothing it is empty.
                Some(Function::Text) => Some(first.unwrap_or_default()),
                Some(Function::Data) | None => first,
            })
        })
    }

    /// Whether there is a value.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn exists(&self, xml: &str) -> Result<bool> {
        self.within(xml, |found| {
            Ok(matches!(self.function, Some(Function::Count | Function::Text)) || !found.is_empty())
        })
    }

    /// All nodes as xml.
    ///
    /// # Errors
    /// As [`Self::value`]; more than [`BYTES_MOST`].
    pub fn query(&self, xml: &str) -> Result<String> {
        self.within(xml, |found| {
            let mut out = String::new();
            match self.function {
                Some(Function::Count) => out.push_str(&found.len().to_string()),
                Some(Function::Text | Function::Data) => {
                    for (at, item) in found.iter().enumerate() {
                        out.push_str(if at > 0 { " " } else { "" });
                        escape(&text_of(*item), false, &mut out);
                        bounded(out.len())?;
                    }
                }
                None => {
                    for item in found {
                        out.push_str(&xml_of(*item));
                        bounded(out.len())?;
                    }
                }
            }
            Ok(out)
        })
    }

    /// Each node as [`NODE`] and its text.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn nodes(&self, xml: &str) -> Result<Vec<String>> {
        self.within(xml, |found| {
            let mut bytes = 0;
            let mut nodes = Vec::new();
            for item in found {
                let mut text = String::from(NODE);
                match item {
                    Item::Node(node) if is_document(*node) => {
                        text.push(DOCUMENT);
                        text.push_str(&xml_of(*item));
                    }
                    Item::Node(node) if !node.is_text() => {
                        text.push(ELEMENT);
                        text.push_str(&xml_of(*item));
                    }
                    _ => {
                        text.push(TEXT);
                        escape(&text_of(*item), false, &mut text);
                    }
                }
                bytes += text.len();
                bounded(bytes)?;
                nodes.push(text);
            }
            Ok(nodes)
        })
    }

    fn within<T>(&self, xml: &str, take: impl FnOnce(&[Item<'_>]) -> Result<T>) -> Result<T> {
        let behind = xml.strip_prefix(NODE);
        let body =
            behind.and_then(|rest| rest.strip_prefix([ELEMENT, DOCUMENT, TEXT])).unwrap_or(xml);
        let content = Content::new(body);
        let tree = content.tree()?;
        let root = tree.root_element();
        let start = match behind {
            Some(rest) if rest.starts_with([ELEMENT, TEXT]) => root.first_child().unwrap_or(root),
            _ => root,
        };
        take(&Finder::new(root).path(self, Item::Node(start))?)
    }
}

/// The element around all content.
fn is_document(node: Node<'_, '_>) -> bool {
    node.parent().is_some_and(|parent| parent.is_root())
}

fn bounded(bytes: usize) -> Result<()> {
    match bytes <= BYTES_MOST {
        true => Ok(()),
        false => Err(Error::Unsupported(format!("more than {BYTES_MOST} bytes of nodes of xml"))),
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
            ("(/r/a[last()]/@n)[1]", Some("2")),
            ("count(/r/a)", Some("2")),
            ("(/r/c)[1]", Some("")),
            ("(/r/d)[1]", None),
            ("(./r/*)[3]", Some("")),
            ("data(/r[1]/@id)", Some("7")),
        ] {
            let read = Path::parse(path).unwrap_or_else(|| panic!("{path} is no path"));
            assert_eq!(read.value(XML).unwrap().as_deref(), expected, "{path}");
        }
        assert!(Path::parse("(/r/a[b])[1]/@n").is_none());
        assert_eq!(value("(//a)[3]").as_deref(), Some("t"));
        for (path, expected) in [
            // From the root of the document, within a predicate too.
            ("(/r/a[/r/c])[1]", Some("x")),
            ("(/r/a[/c])[1]", None),
            // A text is compared as it stands.
            ("(/r/a[@n=\"1.0\"])[1]", None),
            ("(/r/a[@n=\"1\"])[1]", Some("x")),
            ("(/r/a[@n=1])[1]", Some("x")),
            ("(/r/a[text()=1])[1]", None),
            ("(/r[count(a)=2]/c)[1]", Some("")),
            ("string((/r/d)[1])", Some("")),
            ("(//a/@n)[2]", Some("2")),
        ] {
            assert_eq!(value(path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn nodes_come_as_they_stand_and_once() {
        let xml = "<r k=\"0\"><d><d><a k=\"1\"/></d><a k=\"2\"/></d><a k=\"3\"/></r>";
        let query = |path: &str| Path::parse(path).unwrap().query(xml).unwrap();
        assert_eq!(query("//d/a"), "<a k=\"1\"/><a k=\"2\"/>");
        assert_eq!(query("data(//d//a/@k)"), "1 2");
        assert_eq!(query("data(//@k)"), "0 1 2 3");
        assert_eq!(query("count(//d//@k)"), "2");
        assert_eq!(query("string((//a)[1])"), "");
    }

    #[test]
    fn what_asks_for_too_much_is_told() {
        let xml = "<a>".to_owned() + &"<b/>".repeat(300) + "</a>";
        let path = Path::parse("//b[//b[//b[//b[//b]]]]").unwrap();
        assert!(matches!(path.exists(&xml), Err(Error::Unsupported(_))));
        let text = "x".repeat(1 << 20);
        let deep = "<a>".repeat(100) + &text + &"</a>".repeat(100);
        assert!(matches!(Path::parse("//*").unwrap().nodes(&deep), Err(Error::Unsupported(_))));
        for path in ["//*", "data(//*)"] {
            let told = Path::parse(path).unwrap().query(&deep);
            assert!(matches!(told, Err(Error::Unsupported(_))), "{path}");
        }
        let xml = format!("<r><a>{text}</a></r><s>{}</s>", "<b/>".repeat(2_000));
        let path = Path::parse("/s/b[/r/a=\"x\"]").unwrap();
        assert!(matches!(path.exists(&xml), Err(Error::Unsupported(_))));
    }

    #[test]
    fn one_node_at_most_is_told_by_the_text() {
        let is_single = |path: &str| Path::parse(path).unwrap().is_single();
        for path in
            [".", "@id", "./@id", "(/a/b)[1]", "/a[1]/@id", "/a[1]/b[1]/text()[1]", "count(//a)"]
        {
            assert!(is_single(path), "{path}");
        }
        for path in ["/a/b", "/a/@id", "a", "//a[1]", "text()", "/a[1]/*", "data(/a)"] {
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
        for path in [
            "(count(/a))[1]",
            "count(count(a))",
            "string(/a)",
            "/a[count(b)]",
            "/a[@b=\"&amp;\"]",
            "/a[@b=1.5]",
        ] {
            assert_eq!(Path::parse(path), None, "{path}");
        }
        assert_eq!(Path::parse(&"(".repeat(100_000)), None);
        assert_eq!(Path::parse(&"a[".repeat(100_000)), None);
    }

    #[test]
    fn comments_and_instructions_are_nodes() {
        let xml = "<r><!--c1--><a>x</a><?p q?></r>";
        let nodes = Path::parse("/r/node()").unwrap().nodes(xml).unwrap();
        let of = |at: usize| {
            let itself = Path::parse(".").unwrap();
            (itself.value(&nodes[at]).unwrap().unwrap(), itself.query(&nodes[at]).unwrap())
        };
        let pair = |text: &str, xml: &str| (text.to_owned(), xml.to_owned());
        assert_eq!(of(0), pair("c1", "<!--c1-->"));
        assert_eq!(of(1), pair("x", "<a>x</a>"));
        assert_eq!(of(2), pair("q", "<?p q?>"));
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
        for path in [".", "/"] {
            let nodes = Path::parse(path).unwrap().nodes(XML).unwrap();
            assert_eq!(nodes.len(), 1);
            let count = Path::parse("count(*)").unwrap().value(&nodes[0]).unwrap();
            assert_eq!(count.as_deref(), Some("2"), "{path}");
        }
        assert!(Path::parse("/r[@id=7]").unwrap().exists(XML).unwrap());
        assert!(!Path::parse("/r[@id=8]").unwrap().exists(XML).unwrap());
    }
}
