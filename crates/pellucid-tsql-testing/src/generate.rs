//! Trees out of bytes: every choice takes one, and where they end, the choice is the smallest one.

mod objects;
mod queries;
mod statements;

use pellucid_tsql::ast::*;
use pellucid_tsql::keyword::Word;

/// Choices, taken from bytes.
#[derive(Debug)]
pub struct Choices<'b> {
    bytes: &'b [u8],
    depth: u32,
}

/// Levels of expressions, queries and statements within one another.
const DEPTH_MOST: u32 = 8;

const NAMES: &[&str] = &[
    "a",
    "db",
    "TestCert",
    "a b",
    "a]b",
    "a\"b",
    "it's",
    "select",
    "ENCRYPTION",
    "name",
    "N",
    "#t",
    "größe",
    "1a",
    "x$1",
    "cast",
    "THROW",
    "left",
    ".",
    "a--b",
    "NOLOCK",
    "master",
    "OUTPUT",
    "/*",
    "key",
    "\n",
    "_",
    "ON",
    "OFF",
    "log",
];

const TEXTS: &[&str] = &[
    "",
    "x",
    "it's",
    "''",
    "a\nb",
    "C:\\temp\\x.bak",
    "\\\nb",
    "\\\\\r\n",
    "größe",
    "--",
    "/* x",
    "GO\nGO",
    "$(x)",
    "[",
    "\"",
];

impl<'b> Choices<'b> {
    /// Choices that `bytes` make.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, depth: 0 }
    }

    fn is_over(&self) -> bool {
        self.bytes.is_empty()
    }

    fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((first, rest)) => {
                self.bytes = rest;
                *first
            }
            None => 0,
        }
    }

    /// A number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    fn flag(&mut self) -> bool {
        self.byte() % 2 == 1
    }

    fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => u64::from(self.byte()),
            1 => u64::MAX,
            2 => 1 << self.below(64),
            _ => 10_u64.pow(self.below(20) as u32),
        }
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| make(self))
    }

    /// At least `least` of them.
    fn list<T>(&mut self, least: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = least + self.below(3);
        (0..count).map(|_| make(self)).collect()
    }

    fn word<W: Word>(&mut self) -> W {
        W::ALL[self.below(W::ALL.len())]
    }

    fn words<W: Word>(&mut self, least: usize) -> Vec<W> {
        self.list(least, Self::word)
    }

    fn name(&mut self) -> Name {
        match Name::new(NAMES[self.below(NAMES.len())]) {
            Some(name) => name,
            None => panic!("a name of the list is none"),
        }
    }

    fn names(&mut self, least: usize) -> Vec<Name> {
        self.list(least, Self::name)
    }

    fn object(&mut self) -> ObjectName {
        let mut name = ObjectName::from(self.name());
        let parts = self.below(8);
        name.schema = (parts & 1 != 0).then(|| self.name());
        name.database = (parts & 2 != 0).then(|| self.name());
        name.server = (parts & 4 != 0).then(|| self.name());
        name
    }

    fn variable(&mut self) -> Variable {
        Variable(["v", "sql", "größe", "select", "v$1", ""][self.below(6)].to_owned())
    }

    fn string(&mut self) -> StringLiteral {
        let text = TEXTS[self.below(TEXTS.len())].to_owned();
        StringLiteral { text, national: self.flag() }
    }

    fn or_variable<T>(&mut self, given: impl FnOnce(&mut Self) -> T) -> OrVariable<T> {
        match self.flag() {
            true => OrVariable::Variable(self.variable()),
            false => OrVariable::Given(given(self)),
        }
    }

    fn text(&mut self) -> Text {
        self.or_variable(Self::string)
    }

    fn count(&mut self) -> Number {
        self.or_variable(Self::number)
    }

    fn binary(&mut self) -> Vec<u8> {
        self.list(0, Self::byte)
    }

    fn data_type(&mut self) -> DataType {
        let size = match self.below(4) {
            0 => TypeSize::Default,
            1 => TypeSize::Max,
            2 => TypeSize::One(self.byte().into()),
            _ => TypeSize::Two(38, self.byte().into()),
        };
        DataType { name: self.object(), size }
    }

    /// One level deeper; at the bottom, `leaf`.
    fn deeper<T>(
        &mut self,
        leaf: impl FnOnce(&mut Self) -> T,
        inner: impl FnOnce(&mut Self) -> T,
    ) -> T {
        if self.depth == DEPTH_MOST || self.is_over() {
            return leaf(self);
        }
        self.depth += 1;
        let made = inner(self);
        self.depth -= 1;
        made
    }

    fn literal(&mut self) -> Literal {
        match self.below(7) {
            0 => Literal::Integer(self.number().to_string()),
            1 => Literal::Null,
            2 => Literal::String(self.string()),
            3 => Literal::Decimal(["1.5", ".5", "1.", "00.10"][self.below(4)].to_owned()),
            4 => Literal::Float(["1e5", "1.5E-3", ".5e+1"][self.below(3)].to_owned()),
            5 => Literal::Money(["1", "1.50"][self.below(2)].to_owned()),
            _ => Literal::Binary(self.binary()),
        }
    }

    /// A constant, and whether it is negative.
    fn signed(&mut self) -> (bool, Literal) {
        let literal = self.literal();
        let signed = !matches!(literal, Literal::Null | Literal::String(_)) && self.flag();
        (signed, literal)
    }

    fn column(&mut self) -> ColumnName {
        ColumnName { table: self.maybe(Self::object), column: self.name() }
    }

    /// An expression of any kind.
    pub fn expression(&mut self) -> Expression {
        self.deeper(|c| Expression::Literal(c.literal()), Self::inner_expression)
    }

    fn boxed(&mut self) -> Box<Expression> {
        Box::new(self.expression())
    }

    fn inner_expression(&mut self) -> Expression {
        match self.below(13) {
            0 => Expression::Literal(self.literal()),
            1 => Expression::Column(Box::new(self.column())),
            2 => Expression::Variable(self.variable()),
            3 => Expression::SystemVariable("ROWCOUNT".to_owned()),
            4 => {
                let operator =
                    [UnaryOperator::Minus, UnaryOperator::Plus, UnaryOperator::Not][self.below(3)];
                Expression::Unary { operator, operand: self.boxed() }
            }
            5 | 6 => self.chain(),
            7 => self.case(),
            8 => Expression::Iif(Box::new(Iif {
                condition: self.condition(),
                then: self.expression(),
                otherwise: self.expression(),
            })),
            9 => Expression::Convert(Box::new(Convert {
                operand: self.expression(),
                data_type: self.data_type(),
                style: self.maybe(Self::expression),
                or_null: self.flag(),
            })),
            10 => Expression::Function(Box::new(self.call())),
            11 => match self.flag() {
                true => Expression::Niladic(self.word()),
                false => self.query_or_its_value(),
            },
            _ => Expression::Collate { operand: self.boxed(), collation: self.name() },
        }
    }

    fn query_or_its_value(&mut self) -> Expression {
        let operand = Expression::Subquery(Box::new(self.query()));
        if self.below(4) < 3 {
            return operand;
        }
        let operand = if self.flag() { operand } else { Expression::Variable(self.variable()) };
        let asked = match self.below(3) {
            0 => XmlAsked::Value(self.string()),
            1 => XmlAsked::Query,
            _ => XmlAsked::Exist,
        };
        Expression::XmlMethod(Box::new(XmlMethod { operand, asked, path: self.string() }))
    }

    fn chain(&mut self) -> Expression {
        const OPERATORS: [BinaryOperator; 8] = [
            BinaryOperator::Add,
            BinaryOperator::Subtract,
            BinaryOperator::BitAnd,
            BinaryOperator::BitOr,
            BinaryOperator::BitXor,
            BinaryOperator::Multiply,
            BinaryOperator::Divide,
            BinaryOperator::Modulo,
        ];
        let mut left = self.expression();
        for _ in 0..=self.below(3) {
            let operator = OPERATORS[self.below(OPERATORS.len())];
            left = Expression::binary(left, operator, self.expression());
        }
        left
    }

    fn case(&mut self) -> Expression {
        let branches = match self.flag() {
            true => CaseBranches::Simple {
                operand: self.expression(),
                branches: self.list(1, |c| (c.expression(), c.expression())),
            },
            false => CaseBranches::Searched(self.list(1, |c| (c.condition(), c.expression()))),
        };
        Expression::Case(Box::new(Case { branches, otherwise: self.maybe(Self::expression) }))
    }

    fn call(&mut self) -> FunctionCall {
        let distinct = self.flag();
        let arguments = match self.below(4) {
            0 => FunctionArguments::Star,
            _ => FunctionArguments::Values(self.list(usize::from(distinct), Self::expression)),
        };
        FunctionCall {
            name: self.object(),
            distinct,
            arguments,
            within_group: self.order(),
            over: self.maybe(Self::over),
        }
    }

    fn over(&mut self) -> Over {
        let partition = self.list(0, Self::expression);
        let order = self.order();
        let frame = (!order.is_empty()).then(|| Frame {
            unit: self.word(),
            start: self.bound(),
            end: self.maybe(Self::bound),
        });
        Over { partition, order, frame }
    }

    fn bound(&mut self) -> FrameBound {
        match self.below(5) {
            0 => FrameBound::CurrentRow,
            1 => FrameBound::UnboundedPreceding,
            2 => FrameBound::Preceding(self.number()),
            3 => FrameBound::Following(self.number()),
            _ => FrameBound::UnboundedFollowing,
        }
    }

    fn comparison(&mut self) -> Comparison {
        [
            Comparison::Equal,
            Comparison::NotEqual,
            Comparison::Less,
            Comparison::LessOrEqual,
            Comparison::Greater,
            Comparison::GreaterOrEqual,
        ][self.below(6)]
    }

    fn compare(&mut self) -> Condition {
        Condition::Compare {
            left: self.expression(),
            comparison: self.comparison(),
            right: self.expression(),
        }
    }

    /// A condition of any kind.
    pub fn condition(&mut self) -> Condition {
        self.deeper(Self::compare, Self::inner_condition)
    }

    fn inner_condition(&mut self) -> Condition {
        let negated = self.flag();
        match self.below(10) {
            0 => self.compare(),
            1 => Condition::and(self.condition(), self.condition()),
            2 => Condition::or(self.condition(), self.condition()),
            3 => Condition::Not(Box::new(self.condition())),
            4 => Condition::Quantified {
                left: self.expression(),
                comparison: self.comparison(),
                quantifier: self.word(),
                query: Box::new(self.query()),
            },
            5 => Condition::Between {
                operand: self.expression(),
                negated,
                low: self.expression(),
                high: self.expression(),
            },
            6 => Condition::In {
                operand: self.expression(),
                negated,
                list: match self.flag() {
                    true => InList::Query(Box::new(self.query())),
                    false => InList::Values(self.list(1, Self::expression)),
                },
            },
            7 => Condition::Like {
                operand: self.expression(),
                negated,
                pattern: self.expression(),
                escape: self.maybe(Self::expression),
            },
            8 => match self.flag() {
                true => Condition::IsNull { operand: self.expression(), negated },
                false => Condition::IsDistinct {
                    left: self.expression(),
                    negated,
                    right: self.expression(),
                },
            },
            _ => Condition::Exists(Box::new(self.query())),
        }
    }
}
