//! Messages that queries meet, as functions: what each takes, and its state.

use super::{table, type_name, Message};
use crate::values::types::SqlType;
use crate::values::Error;

impl Message {
    /// 137: a variable that is not declared.
    pub fn undeclared(variable: &str) -> Self {
        Self::of(table::UNDECLARED, [&variable]).with_state(2)
    }

    /// 1087: a table variable that is not declared.
    pub fn undeclared_table(variable: &str) -> Self {
        Self::of(table::UNDECLARED_TABLE, [&variable]).with_state(2)
    }

    /// 174 or 189: a function that takes another number of arguments.
    pub fn argument_count(function: &str, least: usize, most: usize) -> Self {
        let function = function.to_lowercase();
        match least == most {
            true => Self::of(table::ARGUMENTS_EXPECTED, [&function, &least]),
            false => Self::of(table::ARGUMENTS_EXPECTED_BETWEEN, [&function, &least, &most]),
        }
    }

    /// 195: a function that there is not.
    pub fn unknown_function(name: &str) -> Self {
        Self::of(table::UNKNOWN_FUNCTION, [&name]).with_state(10)
    }

    /// 155: a word that is no part of a date.
    pub fn unknown_date_part(part: &str, function: &str) -> Self {
        Self::of(table::UNKNOWN_DATE_PART, [&part, &function.to_lowercase()])
    }

    /// 206: types that no operation brings together.
    pub fn type_clash(left: SqlType, right: SqlType) -> Self {
        Error::TypeClash(left, right).into()
    }

    /// 241: a text that is no date or time.
    pub fn not_a_date() -> Self {
        Error::NotADate.into()
    }

    /// 242: a date that its new type cannot hold.
    pub fn date_out_of_range(from: SqlType, to: SqlType) -> Self {
        Error::DateOutOfRange(from, to).into()
    }

    /// 257: a conversion that has to be written.
    pub fn no_implicit_conversion(from: SqlType, to: SqlType) -> Self {
        Self::of(table::NO_IMPLICIT_CONVERSION, [&type_name(from), &type_name(to)]).with_state(3)
    }

    /// 529: a conversion that there is not.
    pub fn no_conversion(from: SqlType, to: SqlType) -> Self {
        Error::NoConversion(from, to).into()
    }

    /// 8115: a number that its new type cannot hold.
    pub fn overflow(from: &'static str, to: &'static str) -> Self {
        Error::Overflow(from, to).into()
    }

    /// 8117: a type that an operator does not take.
    pub fn bad_operand(data_type: SqlType, operator: &str) -> Self {
        Error::BadOperand(data_type, operator.to_owned()).into()
    }

    /// 8116: a type that a function does not take as its argument `number`.
    pub fn bad_argument(data_type: SqlType, number: usize, function: &str) -> Self {
        Self::of(table::BAD_ARGUMENT, [&type_name(data_type), &number, &function.to_lowercase()])
    }

    /// 214 of STRING_SPLIT, which has a severity of its own.
    pub fn separator_not_one_letter() -> Self {
        let expected = Self::of(table::PARAMETER_TYPE, [&"separator", &"nchar(1)/nvarchar(1)"]);
        Self { severity: 11, ..expected }
    }

    /// 515: NULL for a column that takes none.
    pub fn null_refused(column: &str, table: &str, statement: &str) -> Self {
        Self::of(table::NULL_REFUSED, [&column, &table, &statement]).with_state(2)
    }

    /// 547: a constraint of this kind and name that a statement violates, and where.
    pub fn conflict(
        [statement, kind, constraint]: [&str; 3],
        database: &str,
        table: &str,
        column: Option<&str>,
    ) -> Self {
        let column = column.map_or_else(String::new, |column| format!(", column '{column}'"));
        Self::of(table::CONFLICT, [&statement, &kind, &constraint, &database, &table, &column])
            .with_state(0)
    }

    /// 547 where nobody knows which foreign key it is.
    pub fn unknown_conflict(statement: &str, database: &str, table: &str) -> Self {
        Self::of(table::CONFLICT_OF_ANY, [&statement, &table, &database]).with_state(0)
    }
}
