//! INSERT, UPDATE, DELETE and EXECUTE.

use pellucid_tsql::ast::{
    Argument, ArgumentValue, ChangeTarget, Delete, Execute, Expression, Insert, InsertSource,
    OutputClause, ProcedureName, SetClause, SetTarget, Top, Update,
};

use super::name::Called;
use super::query::{Hints, Row};
use super::{put, If, List, Listed, Maybe, Print, Printer};

/// `TOP (n) `
struct Limit<'a>(&'a Option<Top>);

impl Print for Limit<'_> {
    fn print(&self, to: &mut Printer) {
        put!(to, Maybe("", self.0), If(self.0.is_some(), " "));
    }
}

impl Print for ChangeTarget {
    fn print(&self, to: &mut Printer) {
        match self {
            ChangeTarget::Table { name, hints } => put!(to, name, Hints(hints)),
            ChangeTarget::Variable(variable) => variable.print(to),
        }
    }
}

/// A value, or `DEFAULT`.
struct Default<'a>(&'a Option<Expression>);

impl Print for Default<'_> {
    fn print(&self, to: &mut Printer) {
        match self.0 {
            Some(value) => value.print(to),
            None => put!(to, "DEFAULT"),
        }
    }
}

/// ` OUTPUT ..`, as often as it is there.
struct Outputs<'a>(&'a [OutputClause]);

impl Print for Outputs<'_> {
    fn print(&self, to: &mut Printer) {
        for clause in self.0 {
            put!(to, " OUTPUT ", List(&clause.items));
            if let Some(into) = &clause.into {
                put!(to, " INTO ", into.target, Listed(" (", &into.columns, ")"));
            }
        }
    }
}

impl Print for Insert {
    fn print(&self, to: &mut Printer) {
        put!(to, Listed("WITH ", &self.with, " "), "INSERT ", Limit(&self.top), "INTO ");
        put!(to, self.target, Listed(" (", &self.columns, ")"), Outputs(&self.output), " ");
        match &self.source {
            InsertSource::Values(rows) => {
                let rows: Vec<Vec<_>> =
                    rows.iter().map(|row| row.iter().map(Default).collect()).collect();
                let rows: Vec<_> = rows.iter().map(|row| Row(row)).collect();
                put!(to, "VALUES ", List(&rows));
            }
            InsertSource::Query(query) => query.print(to),
            InsertSource::Execute(execute) => execute.print(to),
            InsertSource::DefaultValues => put!(to, "DEFAULT VALUES"),
        }
    }
}

impl Print for Update {
    fn print(&self, to: &mut Printer) {
        put!(to, Listed("WITH ", &self.with, " "), "UPDATE ", Limit(&self.top), self.target);
        put!(to, " SET ", List(&self.set), Outputs(&self.output));
        put!(to, Listed(" FROM ", &self.from, ""));
        put!(to, Maybe(" WHERE ", &self.filter), Listed(" OPTION (", &self.options, ")"));
    }
}

impl Print for SetClause {
    fn print(&self, to: &mut Printer) {
        match &self.target {
            SetTarget::Column(column) => column.print(to),
            SetTarget::Variable(variable) => variable.print(to),
            SetTarget::Both(variable, column) => put!(to, variable, " = ", column),
        }
        put!(to, " ", self.operator, " ", Default(&self.value));
    }
}

impl Print for Delete {
    fn print(&self, to: &mut Printer) {
        put!(to, Listed("WITH ", &self.with, " "), "DELETE ", Limit(&self.top), "FROM ");
        put!(to, self.target, Outputs(&self.output), Listed(" FROM ", &self.from, ""));
        put!(to, Maybe(" WHERE ", &self.filter), Listed(" OPTION (", &self.options, ")"));
    }
}

impl Print for Execute {
    fn print(&self, to: &mut Printer) {
        match self {
            Execute::Statements(statements) => put!(to, "EXECUTE (", statements, ")"),
            Execute::Procedure { result, procedure, arguments } => {
                put!(to, "EXECUTE ", Maybe("", result), If(result.is_some(), " = "));
                match procedure {
                    ProcedureName::Name(name) => put!(to, Called(name)),
                    ProcedureName::Variable(variable) => variable.print(to),
                }
                put!(to, Listed(" ", arguments, ""));
            }
        }
    }
}

impl Print for Argument {
    fn print(&self, to: &mut Printer) {
        put!(to, Maybe("", &self.parameter), If(self.parameter.is_some(), " = "), self.value);
    }
}

impl Print for ArgumentValue {
    fn print(&self, to: &mut Printer) {
        match self {
            ArgumentValue::Literal { negative, value } => put!(to, If(*negative, "-"), value),
            ArgumentValue::Word(word) => word.print(to),
            ArgumentValue::Variable { variable, output } => {
                put!(to, variable, If(*output, " OUTPUT"));
            }
            ArgumentValue::SystemVariable(name) => put!(to, "@@", name.as_str()),
            ArgumentValue::Default => put!(to, "DEFAULT"),
        }
    }
}
