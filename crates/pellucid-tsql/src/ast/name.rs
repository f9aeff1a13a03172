//! Names, variables and the literals that options take.

/// Characters of a name (SQL Server's sysname).
pub const NAME_CHARS_MOST: usize = 128;

/// A name without its quotes: 1 to 128 characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// `None` if `text` is empty or too long.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let fits = text.len() <= NAME_CHARS_MOST || text.chars().count() <= NAME_CHARS_MOST;
        (fits && !text.is_empty()).then_some(Self(text))
    }

    /// Its text, as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// `server.database.schema.object`, of which only the last has to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// Linked server.
    pub server: Option<Name>,
    /// Database.
    pub database: Option<Name>,
    /// Schema; `None` in `db..t`.
    pub schema: Option<Name>,
    /// The object itself.
    pub object: Name,
}

impl ObjectName {
    /// Whether nothing stands before the object.
    pub fn is_bare(&self) -> bool {
        self.server.is_none() && self.database.is_none() && self.schema.is_none()
    }
}

impl From<Name> for ObjectName {
    fn from(object: Name) -> Self {
        Self { server: None, database: None, schema: None, object }
    }
}

/// `@v`, without the `@`. May be empty: `@` alone is a variable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Variable(pub String);

/// `'..'` or `N'..'`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringLiteral {
    /// Its text.
    pub text: String,
    /// Written with `N`.
    pub national: bool,
}

/// What may be written down or come from a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrVariable<T> {
    /// Written down.
    Given(T),
    /// From a variable.
    Variable(Variable),
}

/// A path, a name, a date, as text.
pub type Text = OrVariable<StringLiteral>;
/// A count.
pub type Number = OrVariable<u64>;

/// `int`, `nvarchar(max)`, `decimal(20, 0)`, `dbo.phone`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataType {
    /// Its name.
    pub name: ObjectName,
    /// What stands in parentheses.
    pub size: TypeSize,
}

/// What stands in parentheses behind a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeSize {
    /// Nothing.
    Default,
    /// `(max)`
    Max,
    /// `(n)`: length or precision.
    One(u32),
    /// `(p, s)`: precision and scale.
    Two(u32, u32),
}
