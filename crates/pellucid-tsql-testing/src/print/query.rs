//! SELECT and FROM.

use pellucid_tsql::ast::{
    AssignmentOperator, CommonTable, Expression, Join, JoinKind, Query, QueryBody, QueryOption,
    Select, SelectItem, SetOperator, StringLiteral, TableAlias, TableHint, TablePrimary,
    TableSource, Top, XmlMode,
};

use super::expression::Arguments;
use super::name::Called;
use super::{put, If, List, Listed, Maybe, One, Print, Printer};

impl Print for Query {
    fn print(&self, to: &mut Printer) {
        put!(to, Listed("WITH ", &self.with, " "), self.body);
        put!(to, Listed(" ORDER BY ", &self.order, ""));
        if let Some(offset) = &self.offset {
            put!(to, " OFFSET ", offset.skip, " ROWS");
            if let Some(fetch) = &offset.fetch {
                put!(to, " FETCH NEXT ", fetch, " ROWS ONLY");
            }
        }
        if let Some(xml) = &self.xml {
            put!(to, " FOR XML ", if xml.mode == XmlMode::Path { "PATH" } else { "RAW" });
            put!(to, "(", Quoted(&xml.element), ")", If(xml.typed, ", TYPE"));
            put!(to, If(xml.mode == XmlMode::RawElements, ", ELEMENTS"));
            if let Some(root) = &xml.root {
                put!(to, ", ROOT(", Quoted(root), ")");
            }
        }
        put!(to, Listed(" OPTION (", &self.options, ")"));
    }
}

/// A text as a string.
struct Quoted<'a>(&'a str);

impl Print for Quoted<'_> {
    fn print(&self, to: &mut Printer) {
        let text = StringLiteral { text: self.0.to_owned(), national: false };
        text.print(to);
    }
}

impl Print for CommonTable {
    fn print(&self, to: &mut Printer) {
        put!(to, self.name, Listed(" (", &self.columns, ")"), " AS (", self.query, ")");
    }
}

impl Print for QueryBody {
    fn print(&self, to: &mut Printer) {
        let chain = match self {
            QueryBody::Select(select) => return select.print(to),
            QueryBody::Sets(chain) => chain,
        };
        // INTERSECT holds its operands together more than the others do.
        let holds = |body: &QueryBody, first: bool| match body {
            QueryBody::Select(_) => true,
            QueryBody::Sets(inner) => match (chain.is_intersect(), inner.is_intersect()) {
                (false, true) => true,
                (false, false) => first,
                (true, _) => false,
            },
        };
        let term = |body: &QueryBody, first: bool, to: &mut Printer| match holds(body, first) {
            true => body.print(to),
            false => put!(to, "(", body, ")"),
        };
        term(&chain.first, true, to);
        for (operator, body) in &chain.rest {
            put!(to, " ", operator, " ");
            term(body, false, to);
        }
    }
}

impl Print for SetOperator {
    fn print(&self, to: &mut Printer) {
        let text = match self {
            SetOperator::Union => "UNION",
            SetOperator::UnionAll => "UNION ALL",
            SetOperator::Except => "EXCEPT",
            SetOperator::Intersect => "INTERSECT",
        };
        put!(to, text);
    }
}

impl Print for Select {
    fn print(&self, to: &mut Printer) {
        put!(to, "SELECT ", If(self.distinct, "DISTINCT "), Maybe("", &self.top));
        put!(to, If(self.top.is_some(), " "), List(&self.items), Maybe(" INTO ", &self.into));
        put!(to, Listed(" FROM ", &self.from, ""), Maybe(" WHERE ", &self.filter));
        put!(to, Listed(" GROUP BY ", &self.group, ""), Maybe(" HAVING ", &self.having));
    }
}

impl Print for Top {
    fn print(&self, to: &mut Printer) {
        put!(to, "TOP (", self.count, ")", If(self.percent, " PERCENT"));
        put!(to, If(self.with_ties, " WITH TIES"));
    }
}

impl Print for SelectItem {
    fn print(&self, to: &mut Printer) {
        match self {
            SelectItem::Star(None) => put!(to, "*"),
            SelectItem::Star(Some(table)) => put!(to, table, ".*"),
            SelectItem::Value { value, alias } => put!(to, value, Maybe(" AS ", alias)),
            SelectItem::Assign { variable, operator, value } => {
                put!(to, variable, " ", operator, " ", value);
            }
        }
    }
}

impl Print for AssignmentOperator {
    fn print(&self, to: &mut Printer) {
        let text = match self {
            AssignmentOperator::Set => "=",
            AssignmentOperator::Add => "+=",
            AssignmentOperator::Subtract => "-=",
            AssignmentOperator::Multiply => "*=",
            AssignmentOperator::Divide => "/=",
            AssignmentOperator::Modulo => "%=",
            AssignmentOperator::BitAnd => "&=",
            AssignmentOperator::BitOr => "|=",
            AssignmentOperator::BitXor => "^=",
        };
        put!(to, text);
    }
}

impl Print for TableSource {
    fn print(&self, to: &mut Printer) {
        put!(to, self.table);
        for join in &self.joins {
            join.print(to);
        }
    }
}

/// A row of VALUES.
pub(super) struct Row<'a, T>(pub &'a [T]);

impl<T: Print> Print for Row<'_, T> {
    fn print(&self, to: &mut Printer) {
        put!(to, "(", List(self.0), ")");
    }
}

impl Print for TablePrimary {
    fn print(&self, to: &mut Printer) {
        match self {
            TablePrimary::Table { name, alias, hints } => {
                put!(to, name, Maybe(" AS ", alias), Hints(hints));
            }
            TablePrimary::Variable { variable, alias } => {
                put!(to, variable, Maybe(" AS ", alias));
            }
            TablePrimary::Function { call, alias } => {
                put!(to, Called(&call.name), Arguments(call), Maybe(" AS ", alias));
            }
            TablePrimary::Nodes { variable, path, alias } => {
                put!(to, variable, ".nodes(", path, ") AS ", alias);
            }
            TablePrimary::Query { query, alias } => put!(to, "(", query, ") AS ", alias),
            TablePrimary::Values { rows, alias } => {
                let rows: Vec<Row<'_, Expression>> = rows.iter().map(|row| Row(row)).collect();
                put!(to, "(VALUES ", List(&rows), ") AS ", alias);
            }
            TablePrimary::Joined(source) => put!(to, "(", source, ")"),
            TablePrimary::Pivot(pivot) => {
                put!(
                    to,
                    "(",
                    pivot.source,
                    " PIVOT (",
                    pivot.aggregate,
                    "(",
                    pivot.value,
                    ") FOR "
                );
                put!(to, pivot.column, " IN (", List(&pivot.values), ")) AS ", pivot.alias, ")");
            }
            TablePrimary::Unpivot(unpivot) => {
                put!(to, "(", unpivot.source, " UNPIVOT (", unpivot.value, " FOR ", unpivot.name);
                put!(to, " IN (", List(&unpivot.columns), ")) AS ", unpivot.alias, ")");
            }
        }
    }
}

/// `WITH (..)` behind a table.
pub(super) struct Hints<'a>(pub &'a [TableHint]);

impl Print for Hints<'_> {
    fn print(&self, to: &mut Printer) {
        let hints: Vec<_> = self.0.iter().map(|hint| One(*hint)).collect();
        put!(to, Listed(" WITH (", &hints, ")"));
    }
}

impl Print for TableAlias {
    fn print(&self, to: &mut Printer) {
        put!(to, self.name, Listed(" (", &self.columns, ")"));
    }
}

impl Print for Join {
    fn print(&self, to: &mut Printer) {
        let (word, on) = match &self.kind {
            JoinKind::Inner(on) => (" JOIN ", Some(on)),
            JoinKind::Left(on) => (" LEFT JOIN ", Some(on)),
            JoinKind::Right(on) => (" RIGHT JOIN ", Some(on)),
            JoinKind::Full(on) => (" FULL JOIN ", Some(on)),
            JoinKind::Cross => (" CROSS JOIN ", None),
            JoinKind::CrossApply => (" CROSS APPLY ", None),
            JoinKind::OuterApply => (" OUTER APPLY ", None),
        };
        match &self.right {
            // What is joined before ON belongs to the right side.
            TablePrimary::Joined(source) if on.is_some() && !source.joins.is_empty() => {
                put!(to, word, source, Maybe(" ON ", &on));
            }
            right => put!(to, word, right, Maybe(" ON ", &on)),
        }
    }
}

impl Print for QueryOption {
    fn print(&self, to: &mut Printer) {
        match self {
            QueryOption::Recompile => put!(to, "RECOMPILE"),
            QueryOption::MaxRecursion(most) => put!(to, "MAXRECURSION ", most),
            QueryOption::MaxDop(most) => put!(to, "MAXDOP ", most),
        }
    }
}
