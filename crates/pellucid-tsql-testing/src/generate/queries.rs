//! Trees of queries and of what they read from.

use pellucid_tsql::ast::*;

use super::Choices;

impl Choices<'_> {
    pub(super) fn order(&mut self) -> Vec<OrderItem> {
        self.list(0, |c| OrderItem { value: c.expression(), descending: c.flag() })
    }

    /// A query without WITH.
    pub(super) fn query(&mut self) -> Query {
        let order = self.order();
        let offset = (!order.is_empty()).then(|| {
            self.maybe(|c| Offset { skip: c.expression(), fetch: c.maybe(Self::expression) })
        });
        Query {
            with: Vec::new(),
            body: self.body(),
            order,
            offset: offset.flatten(),
            xml: self.xml(),
            options: self.options(),
        }
    }

    fn xml(&mut self) -> Option<ForXml> {
        (self.below(8) == 7).then(|| ForXml {
            element: self.string().text,
            typed: self.flag(),
            root: self.maybe(|c| c.string().text),
            mode: [XmlMode::Path, XmlMode::Raw, XmlMode::RawElements][self.below(3)],
        })
    }

    pub(super) fn options(&mut self) -> Vec<QueryOption> {
        self.list(0, |c| match c.below(3) {
            0 => QueryOption::Recompile,
            1 => QueryOption::MaxDop(c.number()),
            _ => QueryOption::MaxRecursion(c.number()),
        })
    }

    pub(super) fn with(&mut self) -> Vec<CommonTable> {
        self.list(0, |c| CommonTable { name: c.name(), columns: c.names(0), query: c.query() })
    }

    fn body(&mut self) -> QueryBody {
        self.deeper(
            |c| QueryBody::Select(Box::new(c.select(true))),
            |c| match c.below(3) {
                0 => {
                    let operator = [
                        SetOperator::Union,
                        SetOperator::UnionAll,
                        SetOperator::Except,
                        SetOperator::Intersect,
                    ][c.below(4)];
                    QueryBody::set(c.body(), operator, c.body())
                }
                _ => QueryBody::Select(Box::new(c.select(false))),
            },
        )
    }

    pub(super) fn top(&mut self) -> Top {
        Top { count: self.expression(), percent: self.flag(), with_ties: self.flag() }
    }

    fn select(&mut self, small: bool) -> Select {
        let assigns = self.below(4) == 3;
        let items = self.list(1, |c| match c.below(4) {
            _ if assigns => SelectItem::Assign {
                variable: c.variable(),
                operator: c.assignment(),
                value: c.expression(),
            },
            0 => SelectItem::Star(c.maybe(Self::object)),
            _ => SelectItem::Value { value: c.expression(), alias: c.maybe(Self::name) },
        });
        if small {
            return Select {
                distinct: false,
                top: None,
                items,
                into: None,
                from: Vec::new(),
                filter: None,
                group: Vec::new(),
                having: None,
            };
        }
        Select {
            distinct: self.flag(),
            top: self.maybe(Self::top),
            items,
            into: self.maybe(Self::object),
            from: self.sources(),
            filter: self.maybe(Self::condition),
            group: self.list(0, Self::expression),
            having: self.maybe(Self::condition),
        }
    }

    pub(super) fn assignment(&mut self) -> AssignmentOperator {
        [
            AssignmentOperator::Set,
            AssignmentOperator::Add,
            AssignmentOperator::Subtract,
            AssignmentOperator::Multiply,
            AssignmentOperator::Divide,
            AssignmentOperator::Modulo,
            AssignmentOperator::BitAnd,
            AssignmentOperator::BitOr,
            AssignmentOperator::BitXor,
        ][self.below(9)]
    }

    pub(super) fn sources(&mut self) -> Vec<TableSource> {
        self.list(0, |c| c.source(0))
    }

    fn source(&mut self, least: usize) -> TableSource {
        TableSource { table: self.primary(), joins: self.list(least, Self::join) }
    }

    fn join(&mut self) -> Join {
        let kind = match self.below(7) {
            0 => JoinKind::Cross,
            1 => JoinKind::CrossApply,
            2 => JoinKind::OuterApply,
            3 => JoinKind::Left(self.condition()),
            4 => JoinKind::Right(self.condition()),
            5 => JoinKind::Full(self.condition()),
            _ => JoinKind::Inner(self.condition()),
        };
        Join { kind, right: self.primary() }
    }

    pub(super) fn hints(&mut self) -> Vec<TableHint> {
        self.words(0)
    }

    fn alias(&mut self) -> TableAlias {
        TableAlias { name: self.name(), columns: self.names(0) }
    }

    fn table(&mut self) -> TablePrimary {
        TablePrimary::Table {
            name: self.object(),
            alias: self.maybe(Self::name),
            hints: self.hints(),
        }
    }

    fn primary(&mut self) -> TablePrimary {
        self.deeper(Self::table, |c| match c.below(9) {
            0 => c.table(),
            7 => TablePrimary::Pivot(Box::new(Pivot {
                source: c.source(0),
                aggregate: c.name(),
                value: c.column(),
                column: c.column(),
                values: c.names(1),
                alias: c.alias(),
            })),
            8 => TablePrimary::Unpivot(Box::new(Unpivot {
                source: c.source(0),
                value: c.name(),
                name: c.name(),
                columns: c.list(1, Self::column),
                alias: c.alias(),
            })),
            5 => TablePrimary::Nodes { variable: c.variable(), path: c.string(), alias: c.alias() },
            1 => TablePrimary::Variable { variable: c.variable(), alias: c.maybe(Self::name) },
            2 => {
                let mut call = c.call();
                call.distinct = false;
                TablePrimary::Function { call, alias: c.maybe(Self::alias) }
            }
            3 => TablePrimary::Query { query: Box::new(c.query()), alias: c.alias() },
            4 => TablePrimary::Values {
                rows: c.list(1, |c| c.list(1, Self::expression)),
                alias: c.alias(),
            },
            _ => TablePrimary::Joined(Box::new(c.source(1))),
        })
    }
}
