//! The functions of T-SQL that are one function here: what they take and give.

use crate::values::types::SqlType;

/// What an argument is converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parameter {
    /// Text as it is; what is none becomes varchar.
    Text,
    /// nvarchar
    National,
    /// int; a fraction is cut off
    Int,
    /// float
    Float,
    /// varbinary
    Binary,
    /// As it is, with its type behind it.
    Typed,
    /// A number as it is, text as float, with its type behind it.
    Number,
    /// A date or time as it is, text and numbers as datetime2 or datetime, with its type behind it.
    Moment,
}

/// What a function gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultType {
    /// This.
    Is(SqlType),
    /// Text as long as that argument.
    TextLike(usize),
    /// Text of 8000 bytes, or max if that argument is.
    TextMost(usize),
    /// The numeric type of that argument; int at least.
    NumberLike(usize),
    /// As [`Self::NumberLike`], but a numeric has 38 digits, so many of them before the point at least.
    NumberMost(usize, u8),
    /// As [`Self::NumberLike`], without digits behind the point.
    WholeLike(usize),
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Builtin {
    /// In capitals.
    pub name: &'static str,
    /// The function within SQLite.
    pub within: &'static str,
    /// Arguments at least and at most.
    pub least: usize,
    pub most: usize,
    /// What they are converted to; the last one counts for all that follow.
    pub parameters: &'static [Parameter],
    /// What it gives.
    pub result: ResultType,
}

use Parameter::{Binary as B, Float as F, Int as I, Moment as M, National as N, Number as U};
use Parameter::{Text as T, Typed as Y};
use ResultType::{Is, NumberLike, NumberMost, TextLike, TextMost, WholeLike};

const fn f(
    name: &'static str,
    within: &'static str,
    (least, most): (usize, usize),
    parameters: &'static [Parameter],
    result: ResultType,
) -> Builtin {
    Builtin { name, within, least, most, parameters, result }
}

const INT: ResultType = Is(SqlType::Int);
const FLOAT: ResultType = Is(SqlType::Float);

/// Its name where it is not that of a function of every database.
pub(crate) const AGENT_DATETIME: &str = "MSDB.DBO.AGENT_DATETIME";

/// All of them.
pub(crate) const BUILTINS: &[Builtin] = &[
    f("ABS", "tsql_abs", (1, 1), &[U], NumberLike(0)),
    f("ACOS", "tsql_acos", (1, 1), &[F], FLOAT),
    f(AGENT_DATETIME, "tsql_agent_datetime", (2, 2), &[I], Is(SqlType::DateTime)),
    f("ASCII", "tsql_ascii", (1, 1), &[T], INT),
    f("ASIN", "tsql_asin", (1, 1), &[F], FLOAT),
    f("ATAN", "tsql_atan", (1, 1), &[F], FLOAT),
    f("ATN2", "tsql_atn2", (2, 2), &[F], FLOAT),
    f("CEILING", "tsql_ceiling", (1, 1), &[U], WholeLike(0)),
    f("CHAR", "tsql_char", (1, 1), &[I], Is(SqlType::Char(1))),
    f("COS", "tsql_cos", (1, 1), &[F], FLOAT),
    f(
        "CRYPT_GEN_RANDOM",
        "tsql_crypt_gen_random",
        (1, 2),
        &[I, B],
        Is(SqlType::VarBinary(crate::values::types::Length::Of(8000))),
    ),
    f("DATALENGTH", "tsql_datalength", (1, 1), &[Y], INT),
    f("DATEFROMPARTS", "tsql_datefromparts", (3, 3), &[I], Is(SqlType::Date)),
    f("DATETIMEFROMPARTS", "tsql_datetimefromparts", (7, 7), &[I], Is(SqlType::DateTime)),
    f("DEGREES", "tsql_degrees", (1, 1), &[F], FLOAT),
    f("EOMONTH", "tsql_eomonth", (1, 2), &[M, I], Is(SqlType::Date)),
    f("EXP", "tsql_exp", (1, 1), &[F], FLOAT),
    f("FLOOR", "tsql_floor", (1, 1), &[U], WholeLike(0)),
    f(
        "HASHBYTES",
        "tsql_hashbytes",
        (2, 2),
        &[T, B],
        Is(SqlType::VarBinary(crate::values::types::Length::Of(8000))),
    ),
    f("ISDATE", "tsql_isdate", (1, 1), &[Y], INT),
    f("ISNUMERIC", "tsql_isnumeric", (1, 1), &[Y], INT),
    f("LEFT", "tsql_left", (2, 2), &[T, I], TextLike(0)),
    f("LEN", "tsql_len", (1, 1), &[T], INT),
    f("LOG", "tsql_log", (1, 2), &[F], FLOAT),
    f("LOG10", "tsql_log10", (1, 1), &[F], FLOAT),
    f("LOWER", "tsql_lower", (1, 1), &[T], TextLike(0)),
    f("LTRIM", "tsql_ltrim", (1, 2), &[T], TextLike(0)),
    f("NCHAR", "tsql_nchar", (1, 1), &[I], Is(SqlType::NChar(1))),
    f("NEWID", "tsql_newid", (0, 0), &[], Is(SqlType::UniqueIdentifier)),
    f("PARSENAME", "tsql_parsename", (2, 2), &[N, I], Is(SqlType::SYSNAME)),
    f("PI", "tsql_pi", (0, 0), &[], FLOAT),
    f("POWER", "tsql_power", (2, 2), &[U, F], NumberMost(0, 0)),
    f("QUOTENAME", "tsql_quotename", (1, 2), &[N], Is(SqlType::nvarchar(258))),
    f("RADIANS", "tsql_radians", (1, 1), &[F], FLOAT),
    f("RAND", "tsql_rand", (0, 1), &[I], FLOAT),
    f("REVERSE", "tsql_reverse", (1, 1), &[T], TextLike(0)),
    f("RIGHT", "tsql_right", (2, 2), &[T, I], TextLike(0)),
    f("ROUND", "tsql_round", (2, 3), &[U, I], NumberLike(0)),
    f("RTRIM", "tsql_rtrim", (1, 2), &[T], TextLike(0)),
    f("SIGN", "tsql_sign", (1, 1), &[U], NumberMost(0, 1)),
    f("SIN", "tsql_sin", (1, 1), &[F], FLOAT),
    f("SOUNDEX", "tsql_soundex", (1, 1), &[T], Is(SqlType::varchar(5))),
    f("SPACE", "tsql_space", (1, 1), &[I], Is(SqlType::varchar(8000))),
    f("SQRT", "tsql_sqrt", (1, 1), &[F], FLOAT),
    f("SQUARE", "tsql_square", (1, 1), &[F], FLOAT),
    f("STR", "tsql_str", (1, 3), &[F, I], Is(SqlType::varchar(8000))),
    f("TAN", "tsql_tan", (1, 1), &[F], FLOAT),
    f("TRANSLATE", "tsql_translate", (3, 3), &[T], TextLike(0)),
    f("TRIM", "tsql_trim", (1, 1), &[T], TextLike(0)),
    f("UNICODE", "tsql_unicode", (1, 1), &[N], INT),
    f("UPPER", "tsql_upper", (1, 1), &[T], TextLike(0)),
    f("CONCAT_WS", "tsql_concat_ws", (3, 254), &[T], TextMost(1)),
];

/// The function of this name, which is in capitals.
pub(crate) fn builtin(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.name == name)
}
