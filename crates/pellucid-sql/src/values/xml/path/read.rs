//! Reads the text of a path.

use super::{Function, Path, Predicate, Step, Test, Wanted};

/// `None` for what is no path of those that there are here.
pub(super) fn path(text: &str) -> Option<Path> {
    let mut reader = Reader { rest: text, depth: 0 };
    let path = reader.whole()?;
    reader.skip();
    reader.rest.is_empty().then_some(path)
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
        let path = match self.function() {
            Some(function) => {
                let path = self.in_parentheses()?;
                // Of one node at most, as its text says; and of what is not made already.
                let is_fit = function != Function::Text || path.is_single();
                if path.function.is_some() || !is_fit {
                    return None;
                }
                Path { function: Some(function), ..path }
            }
            None if self.rest.starts_with('(') => {
                let mut path = self.in_parentheses()?;
                path.whole.extend(self.predicates()?);
                // What a function makes has no place among others.
                if path.function.is_some() && !path.whole.is_empty() {
                    return None;
                }
                path
            }
            None => self.steps()?,
        };
        self.depth -= 1;
        Some(path)
    }

    /// The function whose parenthesis is next.
    fn function(&mut self) -> Option<Function> {
        let all =
            [("count", Function::Count), ("data", Function::Data), ("string", Function::Text)];
        all.into_iter().find_map(|(name, function)| {
            let behind = self.rest.strip_prefix(name)?.trim_start();
            behind.starts_with('(').then(|| {
                self.rest = behind;
                function
            })
        })
    }

    fn in_parentheses(&mut self) -> Option<Path> {
        self.require("(")?;
        let inner = self.whole()?;
        self.require(")")?;
        Some(inner)
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
            return Some(Path { is_absolute, steps, whole: Vec::new(), function: None });
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
        Some(Path { is_absolute, steps, whole: Vec::new(), function: None })
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
            // What a function makes is a number or a text, not whether there is something.
            return path.function.is_none().then_some(Predicate::Has(path));
        }
        self.skip();
        let quote = self.rest.chars().next().filter(|quote| matches!(quote, '"' | '\''));
        let wanted = match quote {
            None => Wanted::Number(self.number()?),
            Some(quote) => {
                let (text, rest) = self.rest.get(1..)?.split_once(quote)?;
                self.rest = rest;
                // An entity would be another text than it looks.
                Wanted::Text((!text.contains('&')).then(|| text.to_owned())?)
            }
        };
        // To a count only a number is compared.
        let is_odd = path.function == Some(Function::Count) && matches!(wanted, Wanted::Text(_));
        (!is_odd).then_some(Predicate::Equals(path, wanted))
    }

    fn number(&mut self) -> Option<usize> {
        self.skip();
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        // `1.5` and `1e3` are none of those that there are here.
        (!rest.starts_with(['.', 'e', 'E'])).then(|| number.parse().ok())?
    }
}
