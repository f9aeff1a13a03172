//! The nodes of a path.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;

use roxmltree::Node;

use super::{is_document, Function, Path, Predicate, Step, Test, Wanted};
use crate::values::xml::{escape, written};
use crate::values::{Error, Result};

/// Nodes that a call looks at, at most: predicates within one another ask each for all of them.
const LOOKS_MOST: usize = 10_000_000;
/// Bytes of a text that is compared that count as a look.
const BYTES_OF_A_LOOK: usize = 64;
/// Nodes found from which on those found twice are taken out before the step ends.
const FOUND_MANY: usize = 1 << 16;

#[derive(Debug, Clone, Copy)]
pub(super) enum Item<'t> {
    Node(Node<'t, 't>),
    /// An attribute's element, its place there, and its value.
    Attribute(Node<'t, 't>, usize, &'t str),
}

impl Item<'_> {
    /// Its place in the document.
    fn place(&self) -> (usize, usize) {
        match self {
            Self::Node(node) => (node.id().get_usize(), 0),
            Self::Attribute(node, at, _) => (node.id().get_usize(), at + 1),
        }
    }
}

/// One search in a document.
pub(super) struct Finder<'t> {
    root: Node<'t, 't>,
    looks: Cell<usize>,
}

impl<'t> Finder<'t> {
    pub(super) fn new(root: Node<'t, 't>) -> Self {
        Self { root, looks: Cell::new(0) }
    }

    pub(super) fn path(&self, path: &Path, from: Item<'t>) -> Result<Vec<Item<'t>>> {
        let start = if path.is_absolute { Item::Node(self.root) } else { from };
        let mut items = vec![start];
        for step in &path.steps {
            let mut found = Vec::new();
            let mut many = FOUND_MANY;
            for item in items {
                self.step(step, item, &mut found)?;
                if found.len() > many {
                    in_order(&mut found);
                    many = found.len() + FOUND_MANY.max(found.len());
                }
            }
            in_order(&mut found);
            items = found;
        }
        self.filtered(&path.whole, items)
    }

    /// Counts what is looked at.
    fn look(&self, nodes: usize) -> Result<()> {
        let looks = self.looks.get() + nodes;
        self.looks.set(looks);
        match looks <= LOOKS_MOST {
            true => Ok(()),
            false => {
                Err(Error::Unsupported(format!("a path that looks at {LOOKS_MOST} nodes of xml")))
            }
        }
    }

    fn step(&self, step: &Step, item: Item<'t>, found: &mut Vec<Item<'t>>) -> Result<()> {
        let Item::Node(node) = item else {
            self.look(1)?;
            if step.test == Test::Itself {
                found.extend(self.filtered(&step.predicates, vec![item])?);
            }
            return Ok(());
        };
        if !step.is_deep {
            return self.below(step, node, found);
        }
        node.descendants().try_for_each(|base| self.below(step, base, found))
    }

    fn below(&self, step: &Step, base: Node<'t, 't>, found: &mut Vec<Item<'t>>) -> Result<()> {
        let is_it = |node: &Node<'t, 't>| match &step.test {
            Test::Element(name) => node.is_element() && node.tag_name().name() == name,
            Test::Any => node.is_element(),
            Test::Text => node.is_text(),
            _ => true,
        };
        let mut looks = 1;
        let items: Vec<_> = match &step.test {
            Test::Itself => vec![Item::Node(base)],
            Test::Attribute(_) | Test::AnyAttribute => {
                let all = base.attributes().enumerate().inspect(|_| looks += 1);
                all.filter(|(_, one)| match &step.test {
                    Test::Attribute(name) => one.name() == name,
                    _ => true,
                })
                .map(|(at, one)| Item::Attribute(base, at, one.value()))
                .collect()
            }
            _ => base.children().inspect(|_| looks += 1).filter(is_it).map(Item::Node).collect(),
        };
        self.look(looks)?;
        found.extend(self.filtered(&step.predicates, items)?);
        Ok(())
    }

    fn filtered(
        &self,
        predicates: &[Predicate],
        mut items: Vec<Item<'t>>,
    ) -> Result<Vec<Item<'t>>> {
        for predicate in predicates {
            items = match predicate {
                Predicate::Position(at) => {
                    let at = at.checked_sub(1);
                    at.and_then(|at| items.get(at)).copied().into_iter().collect()
                }
                Predicate::Last => items.last().copied().into_iter().collect(),
                Predicate::Has(path) => {
                    self.where_(items, |item| Ok(!self.path(path, item)?.is_empty()))?
                }
                Predicate::Equals(path, wanted) => {
                    self.where_(items, |item| self.is_equal(path, item, wanted))?
                }
            };
        }
        Ok(items)
    }

    fn where_(
        &self,
        items: Vec<Item<'t>>,
        is_it: impl Fn(Item<'t>) -> Result<bool>,
    ) -> Result<Vec<Item<'t>>> {
        let mut kept = Vec::new();
        for item in items {
            if is_it(item)? {
                kept.push(item);
            }
        }
        Ok(kept)
    }

    /// Whether any value of the path is it.
    fn is_equal(&self, path: &Path, from: Item<'t>, wanted: &Wanted) -> Result<bool> {
        let found = self.path(path, from)?;
        if path.function == Some(Function::Count) {
            return Ok(wanted.is(&found.len().to_string()));
        }
        if path.function == Some(Function::Text) && found.is_empty() {
            return Ok(wanted.is(""));
        }
        for item in found {
            self.look(nodes_in(item))?;
            let text = text_of(item);
            self.look(text.len() / BYTES_OF_A_LOOK)?;
            if wanted.is(&text) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Nodes that are within one another find the same more than once, and not as it stands.
fn in_order(found: &mut Vec<Item<'_>>) {
    found.sort_by_key(Item::place);
    found.dedup_by_key(|item| item.place());
}

fn nodes_in(item: Item<'_>) -> usize {
    match item {
        Item::Node(node) => node.descendants().count(),
        Item::Attribute(..) => 1,
    }
}

impl Wanted {
    fn is(&self, text: &str) -> bool {
        let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
        match self {
            Self::Text(wanted) => text == wanted,
            // What is no number is not equal to any.
            Self::Number(wanted) => {
                let text = text.trim_matches([' ', '\t', '\r', '\n']);
                let number = text.chars().all(is_of_number).then(|| text.parse::<f64>().ok());
                let is_it = |number: f64| number.partial_cmp(&(*wanted as f64));
                number.flatten().and_then(is_it) == Some(Ordering::Equal)
            }
        }
    }
}

pub(super) fn text_of(item: Item<'_>) -> Cow<'_, str> {
    let node = match item {
        Item::Attribute(_, _, value) => return value.into(),
        Item::Node(node) => node,
    };
    if let Some(instruction) = node.pi() {
        return instruction.value.unwrap_or_default().into();
    }
    if !node.is_element() {
        return node.text().unwrap_or_default().into();
    }
    let mut texts = node.descendants().filter(Node::is_text).filter_map(|node| node.text());
    match (texts.next(), texts.next()) {
        (first, None) => first.unwrap_or_default().into(),
        (first, second) => first.into_iter().chain(second).chain(texts).collect(),
    }
}

/// The element around all content is none of its own.
pub(super) fn xml_of(item: Item<'_>) -> String {
    match item {
        Item::Node(node) if is_document(node) => written(node.children()),
        Item::Node(node) => written(std::iter::once(node)),
        Item::Attribute(_, _, value) => {
            let mut text = String::new();
            escape(value, false, &mut text);
            text
        }
    }
}
