//! What is wrong with a batch: SQL Server's own messages, with line and place.
//!
//! Source of numbers and texts: Microsoft's list of database engine errors; all are of severity 15. Secrets never
//! appear: near-text that could be part of one is `***`.

use std::borrow::Cow;

/// Characters of the source that a message repeats at most.
pub(crate) const NEAR_CHARS_MOST: usize = 128;

/// Why a batch was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct ParseError {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Line within the batch, from 1.
    pub line: u32,
    /// Place within the batch, in bytes.
    pub offset: usize,
}

/// Result with [`ParseError`].
pub type Result<T> = std::result::Result<T, ParseError>;

/// What is wrong, with the text SQL Server has for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A token that does not fit here; at the end of the batch, the last one.
    #[error("Incorrect syntax near '{near}'.")]
    Syntax { near: String },
    /// A name longer than 128 characters.
    #[error("The identifier that starts with '{start}' is too long. Maximum length is 128.")]
    NameTooLong { start: String },
    /// A string or a bracket that does not end.
    #[error("Unclosed quotation mark after the character string '{text}'.")]
    UnclosedQuote { text: String },
    /// A statement that has to be alone in its batch.
    #[error("'{statement}' must be the first statement in a query batch.")]
    NotFirst { statement: &'static str },
    /// A comment that does not end.
    #[error("Missing end comment mark '*/'.")]
    UnclosedComment,
    /// More parts than a name has.
    #[error(
        "The object name '{name}' contains more than the maximum number of prefixes. The maximum is {most}."
    )]
    TooManyPrefixes { name: String, most: usize },
    /// Positional arguments behind named ones.
    #[error(
        "Must pass parameter number {number} and subsequent parameters as '@name = value'. After the form \
         '@name = value' has been used, all subsequent parameters must be passed in the form '@name = value'."
    )]
    PositionalAfterNamed { number: usize },
    /// A batch longer than is read.
    #[error("Batch/procedure exceeds maximum length of {most} characters.")]
    BatchTooLong { most: usize },
    /// BREAK that breaks nothing.
    #[error("Cannot use a BREAK statement outside the scope of a WHILE statement.")]
    BreakOutsideWhile,
    /// CONTINUE that continues nothing.
    #[error("Cannot use a CONTINUE statement outside the scope of a WHILE statement.")]
    ContinueOutsideWhile,
    /// A SELECT that both assigns and returns rows.
    #[error(
        "A SELECT statement that assigns a value to a variable must not be combined with data-retrieval operations."
    )]
    AssignsAndRetrieves,
    /// RETURN with a value outside a procedure.
    #[error("A RETURN statement with a return value cannot be used in this context.")]
    ReturnsValue,
    /// OUTPUT behind a constant.
    #[error("Cannot use the OUTPUT option when passing a constant to a stored procedure.")]
    OutputOfConstant,
    /// An option that its statement does not have.
    #[error("'{option}' is not a recognized {statement} option.")]
    UnknownOption { option: String, statement: &'static str },
    /// A reserved word that does not fit here.
    #[error("Incorrect syntax near the keyword '{near}'.")]
    SyntaxKeyword { near: String },
    /// Nested deeper than [`crate::MAX_DEPTH`].
    #[error(
        "Some part of your SQL statement is nested too deeply. Rewrite the query or break it up into smaller queries."
    )]
    TooDeep,
    /// A setting that there is not.
    #[error("'{name}' is not a recognized SET option.")]
    UnknownSetOption { name: String },
    /// WITH behind a statement without semicolon, or where no WITH belongs.
    #[error(
        "Incorrect syntax near the keyword 'with'. If this statement is a common table expression, an \
         xmlnamespaces clause or a change tracking context clause, the previous statement must be terminated with a \
         semicolon."
    )]
    WithNeedsSemicolon,
    /// CREATE, ALTER or DROP of something unheard of.
    #[error("Unknown object type '{word}' used in a CREATE, DROP, or ALTER statement.")]
    UnknownObject { word: String },
    /// `[]` or `""`.
    #[error(
        "An object or column name is missing or empty. For SELECT INTO statements, verify each column has a name. \
         For other statements, look for empty alias names. Aliases defined as \"\" or [] are not allowed. Change the \
         alias to a valid name."
    )]
    EmptyName,
    /// A value where a condition belongs.
    #[error("An expression of non-boolean type specified in a context where a condition is expected, near '{near}'.")]
    NotACondition { near: String },
    /// THROW without arguments that has nothing to throw.
    #[error(
        "To rethrow an error, a THROW statement must be used inside a CATCH block. Insert the THROW statement inside \
         a CATCH block, or add error parameters to the THROW statement."
    )]
    ThrowOutsideCatch,
    /// SQL Server knows it, Pellucid does not do it. A number of our own.
    #[error("'{construct}' is not supported.")]
    Unsupported { construct: Cow<'static, str> },
}

impl ErrorKind {
    /// The number, as `sys.messages` has it; from 50000, one of our own.
    pub fn number(&self) -> u32 {
        match self {
            ErrorKind::Syntax { .. } => 102,
            ErrorKind::NameTooLong { .. } => 103,
            ErrorKind::UnclosedQuote { .. } => 105,
            ErrorKind::NotFirst { .. } => 111,
            ErrorKind::UnclosedComment => 113,
            ErrorKind::TooManyPrefixes { .. } => 117,
            ErrorKind::PositionalAfterNamed { .. } => 119,
            ErrorKind::BatchTooLong { .. } => 123,
            ErrorKind::BreakOutsideWhile => 135,
            ErrorKind::ContinueOutsideWhile => 136,
            ErrorKind::AssignsAndRetrieves => 141,
            ErrorKind::UnknownOption { .. } => 155,
            ErrorKind::SyntaxKeyword { .. } => 156,
            ErrorKind::ReturnsValue => 178,
            ErrorKind::OutputOfConstant => 179,
            ErrorKind::TooDeep => 191,
            ErrorKind::UnknownSetOption { .. } => 195,
            ErrorKind::WithNeedsSemicolon => 319,
            ErrorKind::UnknownObject { .. } => 343,
            ErrorKind::EmptyName => 1038,
            ErrorKind::NotACondition { .. } => 4145,
            ErrorKind::ThrowOutsideCatch => 10704,
            ErrorKind::Unsupported { .. } => 50_001,
        }
    }
}

impl ParseError {
    /// Severity of every message here.
    pub const SEVERITY: u8 = 15;

    /// The number of its message.
    pub fn number(&self) -> u32 {
        self.kind.number()
    }
}

/// The beginning of `text`, as much as a message repeats.
pub(crate) fn shortened(text: &str) -> &str {
    text.char_indices().nth(NEAR_CHARS_MOST).map_or(text, |(end, _)| &text[..end])
}
