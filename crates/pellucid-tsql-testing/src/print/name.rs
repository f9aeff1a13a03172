//! Names, variables, literals and secrets.

use pellucid_tsql::ast::{
    DataType, Name, ObjectName, OrVariable, StringLiteral, TableHint, TypeSize, Variable,
};
use pellucid_tsql::keyword::{Keyword, Word};
use pellucid_tsql::secret::{redact, Secret, MASK};

use super::{put, If, Print, Printer};

/// Whether `name` is read as a name without brackets, if it is no keyword.
fn is_regular(name: &str) -> bool {
    let letter =
        |c: char| c.is_ascii_alphabetic() || c == '_' || (!c.is_ascii() && c.is_alphabetic());
    let follows = |c: char| {
        c.is_ascii_alphanumeric() || "_@#$".contains(c) || (!c.is_ascii() && c.is_alphanumeric())
    };
    let mut all = name.chars();
    all.next().is_some_and(|first| letter(first) || first == '#') && all.all(follows)
}

fn print_name(name: &Name, bare: bool, to: &mut Printer) {
    if bare && is_regular(name.as_str()) {
        put!(to, name.as_str());
    } else {
        put!(to, "[", name.as_str().replace(']', "]]").as_str(), "]");
    }
}

impl Print for Name {
    fn print(&self, to: &mut Printer) {
        print_name(self, Keyword::find(self.as_str()).is_none(), to);
    }
}

/// A name where few words would be read as something else: of a type, a function, a procedure.
pub(super) struct Called<'a>(pub &'a ObjectName);

impl Print for Called<'_> {
    fn print(&self, to: &mut Printer) {
        let special = Keyword::find(self.0.object.as_str()).is_some_and(|word| {
            use Keyword::{CAST, IIF, OPENJSON, PARSE, TRY_CAST, TRY_PARSE};
            let has_syntax = matches!(word, CAST | IIF | OPENJSON | PARSE | TRY_CAST | TRY_PARSE);
            // Behind a table's name `(NOLOCK` begins hints, not the arguments of a function.
            word.is_reserved() || has_syntax || TableHint::from_keyword(word).is_some()
        });
        prefixes(self.0, to);
        print_name(&self.0.object, !special, to);
    }
}

fn prefixes(name: &ObjectName, to: &mut Printer) {
    let mut begun = false;
    for part in [&name.server, &name.database, &name.schema] {
        match part {
            Some(part) => put!(to, part, "."),
            None => put!(to, If(begun, ".")),
        }
        begun |= part.is_some();
    }
}

impl Print for ObjectName {
    fn print(&self, to: &mut Printer) {
        prefixes(self, to);
        self.object.print(to);
    }
}

impl Print for Variable {
    fn print(&self, to: &mut Printer) {
        put!(to, "@", self.0.as_str());
    }
}

impl<T: Print> Print for OrVariable<T> {
    fn print(&self, to: &mut Printer) {
        match self {
            OrVariable::Given(given) => given.print(to),
            OrVariable::Variable(variable) => variable.print(to),
        }
    }
}

/// The text between quotes. A backslash before a line's end joins lines, so another one is put between.
fn quoted(text: &str, to: &mut Printer) {
    let mut text = std::borrow::Cow::Borrowed(text);
    if text.contains("\\\n") || text.contains("\\\r\n") {
        text = text.replace("\\\r\n", "\\\\\r\n\r\n").replace("\\\n", "\\\\\n\n").into();
    }
    put!(to, "'", text.replace('\'', "''").as_str(), "'");
}

impl Print for StringLiteral {
    /// A string that holds a statement with a secret shows it no more than the statement does.
    fn print(&self, to: &mut Printer) {
        put!(to, If(self.national, "N"));
        match to.reveal {
            true => quoted(&self.text, to),
            false => quoted(&redact(&self.text), to),
        }
    }
}

impl Print for Secret {
    fn print(&self, to: &mut Printer) {
        match to.reveal {
            true => quoted(self.reveal(), to),
            false => put!(to, "'", MASK, "'"),
        }
    }
}

impl Print for DataType {
    fn print(&self, to: &mut Printer) {
        put!(to, Called(&self.name));
        match self.size {
            TypeSize::Default => {}
            TypeSize::Max => put!(to, "(max)"),
            TypeSize::One(size) => put!(to, "(", u64::from(size), ")"),
            TypeSize::Two(precision, scale) => {
                put!(to, "(", u64::from(precision), ", ", u64::from(scale), ")");
            }
        }
    }
}
