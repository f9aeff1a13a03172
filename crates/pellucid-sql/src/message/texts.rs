//! Texts of the messages that queries meet.

use super::{type_name, Message};
use crate::values::types::SqlType;
use crate::values::Error;

impl Message {
    /// 127
    pub fn negative_top() -> Self {
        Self::new(127, 15, "A TOP N or FETCH rowcount value may not be negative.")
    }

    /// 137
    pub fn undeclared(variable: &str) -> Self {
        let mut message =
            Self::new(137, 15, format!("Must declare the scalar variable \"@{variable}\"."));
        message.state = 2;
        message
    }

    /// 1087
    pub fn undeclared_table(variable: &str) -> Self {
        let mut message =
            Self::new(1087, 15, format!("Must declare the table variable \"@{variable}\"."));
        message.state = 2;
        message
    }

    /// 174, 189
    pub fn argument_count(function: &str, least: usize, most: usize) -> Self {
        let function = function.to_lowercase();
        match least == most {
            true => {
                Self::new(174, 15, format!("The {function} function requires {least} argument(s)."))
            }
            false => Self::new(
                189,
                15,
                format!("The {function} function requires {least} to {most} arguments."),
            ),
        }
    }

    /// 195
    pub fn unknown_function(name: &str) -> Self {
        let mut message =
            Self::new(195, 15, format!("'{name}' is not a recognized built-in function name."));
        message.state = 10;
        message
    }

    /// 155
    pub fn unknown_date_part(part: &str, function: &str) -> Self {
        Self::new(
            155,
            15,
            format!("'{part}' is not a recognized {} option.", function.to_lowercase()),
        )
    }

    /// 206
    pub fn type_clash(left: SqlType, right: SqlType) -> Self {
        Error::TypeClash(left, right).into()
    }

    /// 207
    pub fn unknown_column(name: &str) -> Self {
        Self::new(207, 16, format!("Invalid column name '{name}'."))
    }

    /// 208
    pub fn unknown_object(name: &str) -> Self {
        Self::new(208, 16, format!("Invalid object name '{name}'."))
    }

    /// 209
    pub fn ambiguous_column(name: &str) -> Self {
        Self::new(209, 16, format!("Ambiguous column name '{name}'."))
    }

    /// 4104
    pub fn unbound(name: &str) -> Self {
        Self::new(4104, 16, format!("The multi-part identifier \"{name}\" could not be bound."))
    }

    /// 241
    pub fn not_a_date() -> Self {
        Error::NotADate.into()
    }

    /// 242
    pub fn date_out_of_range(from: SqlType, to: SqlType) -> Self {
        Error::DateOutOfRange(from, to).into()
    }

    /// 257
    pub fn no_implicit_conversion(from: SqlType, to: SqlType) -> Self {
        let mut message = Self::new(
            257,
            16,
            format!(
                "Implicit conversion from data type {} to {} is not allowed. Use the CONVERT function to run this \
                 query.",
                type_name(from),
                type_name(to)
            ),
        );
        message.state = 3;
        message
    }

    /// 529
    pub fn no_conversion(from: SqlType, to: SqlType) -> Self {
        Error::NoConversion(from, to).into()
    }

    /// 8115
    pub fn overflow(from: &'static str, to: &'static str) -> Self {
        Error::Overflow(from, to).into()
    }

    /// 8117
    pub fn bad_operand(data_type: SqlType, operator: &str) -> Self {
        Error::BadOperand(data_type, operator.to_owned()).into()
    }

    /// 8116
    pub fn bad_argument(data_type: SqlType, number: usize, function: &str) -> Self {
        Self::new(
            8116,
            16,
            format!(
                "Argument data type {} is invalid for argument {number} of {} function.",
                type_name(data_type),
                function.to_lowercase()
            ),
        )
    }

    /// 8134
    pub fn division_by_zero() -> Self {
        Self::new(8134, 16, "Divide by zero error encountered.")
    }

    /// 8120, 8121, 8127
    pub fn not_grouped(number: u32, clause: &str, column: &str) -> Self {
        let either = match number {
            8120 | 8121 | 8127 => "either an aggregate function or the GROUP BY clause",
            _ => "the GROUP BY clause",
        };
        Self::new(
            number,
            16,
            format!(
                "Column '{column}' is invalid in the {clause} because it is not contained in {either}."
            ),
        )
    }

    /// 147
    pub fn aggregate_in_where() -> Self {
        Self::new(
            147,
            15,
            "An aggregate may not appear in the WHERE clause unless it is in a subquery contained in a HAVING \
             clause or a select list, and the column being aggregated is an outer reference.",
        )
    }

    /// 4108
    pub fn window_outside_select() -> Self {
        Self::new(4108, 15, "Windowed functions can only appear in the SELECT or ORDER BY clauses.")
    }

    /// 512
    pub fn more_than_one_row() -> Self {
        Self::new(
            512,
            16,
            "Subquery returned more than 1 value. This is not permitted when the subquery follows =, !=, <, <= , >, \
             >= or when the subquery is used as an expression.",
        )
    }

    /// 116
    pub fn more_than_one_column() -> Self {
        Self::new(
            116,
            16,
            "Only one expression can be specified in the select list when the subquery is not introduced with EXISTS.",
        )
    }

    /// 205
    pub fn unequal_columns() -> Self {
        Self::new(
            205,
            16,
            "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of \
             expressions in their target lists.",
        )
    }

    /// 515
    pub fn null_refused(column: &str, table: &str) -> Self {
        let mut message = Self::new(
            515,
            16,
            format!(
                "Cannot insert the value NULL into column '{column}', table '{table}'; column does not allow nulls. \
                 INSERT fails."
            ),
        );
        message.state = 2;
        message
    }

    /// 2627
    pub fn duplicate_key(columns: &str, table: &str) -> Self {
        Self::new(
            2627,
            14,
            format!(
                "Violation of UNIQUE KEY constraint '{columns}'. Cannot insert duplicate key in object '{table}'."
            ),
        )
    }
}
