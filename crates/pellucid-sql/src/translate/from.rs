//! FROM: tables, derived tables, joins.

use pellucid_tsql::ast::{
    Expression, FunctionArguments, FunctionCall, Join, JoinKind, Name, ObjectName, TableAlias,
    TablePrimary, TableSource,
};

use super::module::Named;
use super::narrow::Equations;
use super::scope::{called, same, Clause, Column, Level, Relation, ScopeColumn, ScopeTable};
use super::{quoted, typed, Stored, Table, Typed, View, Work};
use crate::known;
use crate::message::{table, Message, Result};
use crate::values::types::{Family, SqlType};

impl Work<'_> {
    /// ` FROM ..`, or nothing. The tables are added to `level`.
    pub(super) fn from(
        &mut self,
        sources: &[TableSource],
        level: &mut Level,
        outer: View<'_>,
    ) -> Result<String> {
        self.sources_where(sources, Equations::default(), level, outer)
    }

    /// The same of which WHERE requires these equations.
    pub(super) fn sources_where(
        &mut self,
        sources: &[TableSource],
        equations: Equations,
        level: &mut Level,
        outer: View<'_>,
    ) -> Result<String> {
        let others = std::mem::replace(&mut self.equations, equations);
        let text = self.sources(sources, level, outer);
        self.equations = others;
        text
    }

    fn sources(
        &mut self,
        sources: &[TableSource],
        level: &mut Level,
        outer: View<'_>,
    ) -> Result<String> {
        let mut all = Vec::new();
        for source in sources {
            let text = self.source(source, level, outer)?;
            // A comma binds less than JOIN.
            let apart = sources.len() > 1 && !source.joins.is_empty();
            all.push(if apart { format!("({text})") } else { text });
        }
        match all.is_empty() {
            true => Ok(String::new()),
            false => Ok(format!(" FROM {}", all.join(", "))),
        }
    }

    pub(super) fn source(
        &mut self,
        source: &TableSource,
        level: &mut Level,
        outer: View<'_>,
    ) -> Result<String> {
        let first = level.tables.len();
        let mut text = self.primary(&source.table, level, outer)?;
        for join in &source.joins {
            self.join(join, level, first, outer, &mut text)?;
        }
        Ok(text)
    }

    fn join(
        &mut self,
        join: &Join,
        level: &mut Level,
        first: usize,
        outer: View<'_>,
        text: &mut String,
    ) -> Result<()> {
        let (word, condition) = match &join.kind {
            JoinKind::CrossApply => return self.apply(&join.right, false, level, outer, text),
            JoinKind::OuterApply => return self.apply(&join.right, true, level, outer, text),
            JoinKind::Cross => ("JOIN", None),
            JoinKind::Inner(condition) => ("JOIN", Some(condition)),
            JoinKind::Left(condition) => ("LEFT JOIN", Some(condition)),
            JoinKind::Right(condition) => ("RIGHT JOIN", Some(condition)),
            JoinKind::Full(condition) => ("FULL JOIN", Some(condition)),
        };
        let between = level.tables.len();
        let right = self.primary(&join.right, level, outer)?;
        let kept = |kinds: &[&str], tables: &[ScopeTable]| {
            kinds.contains(&word) && tables.iter().any(|table| table.computed)
        };
        if kept(&["RIGHT JOIN", "FULL JOIN"], &level.tables[first..between])
            || kept(&["LEFT JOIN", "FULL JOIN"], &level.tables[between..])
        {
            return Err(Message::unsupported("an outer join of what APPLY computes"));
        }
        text.push_str(&format!(" {word} {right}"));
        if let Some(condition) = condition {
            let condition = self.condition(condition, View::inner(&outer, level, Clause::On))?;
            text.push_str(&format!(" ON {condition}"));
        }
        Ok(())
    }

    /// One table. `outer` is what its queries may see.
    pub(super) fn primary(
        &mut self,
        primary: &TablePrimary,
        level: &mut Level,
        outer: View<'_>,
    ) -> Result<String> {
        match primary {
            TablePrimary::Table { name, alias, .. } => {
                let common = match name.is_bare() {
                    true => outer.common(name.object.as_str()),
                    false => None,
                };
                if let Some(common) = common {
                    let t = self.alias();
                    let text = format!("{} AS {t}", common.sqlite);
                    common.aliases.borrow_mut().push(t.clone());
                    let called = alias.as_ref().unwrap_or(&name.object).clone();
                    add(level, derived(called, &t, &common.columns, &[])?)?;
                    return Ok(text);
                }
                super::table_function::refuse_without_arguments(name)?;
                let called = match alias {
                    Some(alias) => alias.clone().into(),
                    None => name.clone(),
                };
                if let Some(key) = self.row_key(name, alias.as_ref()) {
                    if let Some(table) = self.catalog.table_of(&self.placed(name), &key)? {
                        level.narrowed.push((level.tables.len(), key));
                        return self.stored(table, called, level);
                    }
                }
                match self.named(name)? {
                    Named::Table(table) => self.stored(table, called, level),
                    Named::View(view) => self.viewed(&view, called, level),
                }
            }
            TablePrimary::Variable { variable, alias } => {
                let table = self
                    .table_variable(&variable.0)
                    .ok_or_else(|| Message::undeclared_table(&variable.0))?;
                let called = match alias {
                    Some(alias) => alias.clone(),
                    None => Name::new(format!("@{}", variable.0))
                        .ok_or_else(|| Message::undeclared_table(&variable.0))?,
                };
                self.stored(table, called.into(), level)
            }
            TablePrimary::Function { call, alias } => {
                self.table_function(call, alias.as_ref(), level, outer)
            }
            TablePrimary::Nodes { variable, path, alias } => {
                let operand = Expression::Variable(variable.clone());
                self.xml_nodes(&operand, &path.text, Some(alias), level, outer)
            }
            TablePrimary::Query { query, alias } => {
                let relation = self.query(query, outer, true)?;
                self.derived(relation, alias, level)
            }
            TablePrimary::Values { rows, alias } => {
                let relation = self.values(rows, outer)?;
                self.derived(relation, alias, level)
            }
            TablePrimary::Pivot(pivot) => self.pivoted(pivot, level, outer),
            TablePrimary::Unpivot(unpivot) => self.unpivoted(unpivot, level, outer),
            TablePrimary::Joined(source) => {
                let text = self.source(source, level, outer)?;
                // A table alone in parentheses would lose its alias.
                Ok(if source.joins.is_empty() { text } else { format!("({text})") })
            }
        }
    }

    pub(super) fn stored(
        &mut self,
        table: Table,
        called: ObjectName,
        level: &mut Level,
    ) -> Result<String> {
        let t = self.alias();
        let text = format!("{} AS {t}", table.sqlite);
        let columns = table
            .columns
            .iter()
            .map(|column| {
                let sql = format!("{t}.{}", quoted(&column.sqlite));
                ScopeColumn {
                    name: column.name.clone(),
                    value: Typed {
                        sensitive: column.sensitive,
                        ..typed(read(sql, column.data_type, column.stored), column.data_type)
                    },
                }
            })
            .collect();
        let row = table.row.map(|row| format!("{t}.{row}"));
        add(level, ScopeTable { name: called, columns, computed: false, row, is_prefixed: false })?;
        Ok(text)
    }

    pub(super) fn derived(
        &mut self,
        relation: Relation,
        alias: &TableAlias,
        level: &mut Level,
    ) -> Result<String> {
        let t = self.alias();
        let table = derived(alias.name.clone(), &t, &relation.columns, &alias.columns)?;
        add(level, table)?;
        Ok(format!("({}) AS {t}", relation.sql))
    }

    /// `VALUES`, each column of the type that all its values become.
    pub(super) fn values(&mut self, rows: &[Vec<Expression>], outer: View<'_>) -> Result<Relation> {
        let (columns, rows) = self.value_rows(rows, outer)?;
        let rows: Vec<String> = rows.iter().map(|row| format!("({})", row.join(", "))).collect();
        let names: Vec<String> =
            (1..=columns.len()).map(|at| format!("column{at} AS c{at}")).collect();
        let sql = format!("SELECT {} FROM (VALUES {})", names.join(", "), rows.join(", "));
        Ok(Relation { sql, columns, single: rows.len() == 1 })
    }

    pub(super) fn value_rows(
        &mut self,
        rows: &[Vec<Expression>],
        view: View<'_>,
    ) -> Result<(Vec<Column>, Vec<Vec<String>>)> {
        let width = rows.first().map_or(0, Vec::len);
        let mut by_column: Vec<Vec<Typed>> = vec![Vec::new(); width];
        for row in rows {
            if row.len() != width {
                return Err(Message::of(table::UNEQUAL_ROWS, []));
            }
            for (value, column) in row.iter().zip(&mut by_column) {
                column.push(self.expression(value, view)?);
            }
        }
        let mut columns = Vec::new();
        let mut texts: Vec<Vec<String>> = vec![Vec::new(); rows.len()];
        for values in by_column {
            let data_type = self.common_type(&values)?;
            let sensitive = values.iter().any(|value| value.sensitive);
            columns.push(Column { name: None, data_type, sensitive });
            for (value, row) in values.into_iter().zip(&mut texts) {
                row.push(self.converted(value, data_type).sql);
            }
        }
        Ok((columns, texts))
    }

    /// STRING_SPLIT is the one there is.
    fn table_function(
        &mut self,
        call: &FunctionCall,
        alias: Option<&TableAlias>,
        level: &mut Level,
        outer: View<'_>,
    ) -> Result<String> {
        let name = super::scope::object_text(&call.name);
        if let Some(rows) = self.server_table(call, alias, level, outer)? {
            return Ok(rows);
        }
        if let Some(rows) = self.scripted_table(call, alias, level, outer)? {
            return Ok(rows);
        }
        if let Some(nodes) = self.xml_nodes_of_column(call, alias, level, outer)? {
            return Ok(nodes);
        }
        if !call.name.is_bare() || !same(&name, "STRING_SPLIT") {
            return Err(match call.name.is_bare() {
                true if known::is_table_function(&call.name) => {
                    Message::unsupported(name.to_uppercase())
                }
                false if known::is_table_function(&call.name) => Message::unsupported(&name),
                _ => Message::of(table::UNKNOWN_OBJECT, [&name]),
            });
        }
        let FunctionArguments::Values(values) = &call.arguments else {
            return Err(Message::of(table::INCORRECT_SYNTAX, [&"*"]));
        };
        if values.len() == 3 {
            return Err(Message::unsupported("STRING_SPLIT with ordinals"));
        }
        super::function::counted("STRING_SPLIT", values.len(), 2, 2)?;
        let text = self.expression(&values[0], outer)?;
        let text = self.as_text(text, 1, "string_split")?;
        let separator = self.expression(&values[1], outer)?;
        let separator = self.as_text(separator, 2, "string_split")?;
        let t = self.alias();
        let called = match alias {
            Some(alias) => alias.name.clone(),
            None => call.name.object.clone(),
        };
        let value = match alias.map(|alias| &alias.columns[..]) {
            Some([only]) => only.as_str().to_owned(),
            Some([_, _, ..]) => return Err(column_count(&called, false)),
            _ => "value".to_owned(),
        };
        let data_type = text.data_type;
        let columns =
            vec![ScopeColumn { name: value, value: typed(format!("{t}.value"), data_type) }];
        add(
            level,
            ScopeTable {
                name: called.into(),
                columns,
                computed: false,
                row: None,
                is_prefixed: false,
            },
        )?;
        Ok(format!("json_each(tsql_split({}, {})) AS {t}", text.sql, separator.sql))
    }
}

/// A stored column as a value.
pub(super) fn read(sql: String, data_type: SqlType, stored: Stored) -> String {
    match (stored, data_type.family()) {
        (Stored::AsTyped, _)
        | (
            _,
            Family::Integer
            | Family::Float
            | Family::Text
            | Family::Binary
            | Family::Xml
            | Family::Variant
            | Family::Null,
        ) => sql,
        (Stored::Plain, Family::Decimal | Family::Moment | Family::Guid) => {
            format!("tsql_stored({sql}, {})", data_type.code())
        }
    }
}

fn column_count(table: &Name, more: bool) -> Message {
    match more {
        true => Message::of(table::MORE_COLUMNS, [&table.as_str()]),
        false => Message::of(table::FEWER_COLUMNS, [&table.as_str()]),
    }
}

/// The names that a derived table's columns have: `names`, if there are any.
pub(super) fn named_columns(
    table: &Name,
    columns: &[Column],
    names: &[Name],
) -> Result<Vec<String>> {
    if !names.is_empty() && names.len() != columns.len() {
        return Err(column_count(table, columns.len() > names.len()));
    }
    let mut found: Vec<String> = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        let name = match names.get(at) {
            Some(name) => name.as_str().to_owned(),
            None => column.name.clone().ok_or_else(|| {
                Message::of(table::COLUMN_WITHOUT_NAME, [&(at + 1), &table.as_str()])
            })?,
        };
        if found.iter().any(|other| same(other, &name)) {
            return Err(Message::of(table::COLUMN_NAMED_TWICE, [&name, &table.as_str()]));
        }
        found.push(name);
    }
    Ok(found)
}

fn derived(called: Name, t: &str, columns: &[Column], names: &[Name]) -> Result<ScopeTable> {
    let names = named_columns(&called, columns, names)?;
    let columns = names
        .into_iter()
        .zip(columns)
        .enumerate()
        .map(|(at, (name, column))| ScopeColumn { name, value: column.of(t, at) })
        .collect();
    Ok(ScopeTable { name: called.into(), columns, computed: false, row: None, is_prefixed: false })
}

/// Adds a table to those of a FROM clause, whose names have to differ.
pub(super) fn add(level: &mut Level, table: ScopeTable) -> Result<()> {
    let clash = level.tables.iter().any(|other| {
        called(other, &table.name)
            && other.name.schema.is_some() == table.name.schema.is_some()
            && other.name.database.is_some() == table.name.database.is_some()
    });
    if clash {
        let name = super::scope::object_text(&table.name);
        return Err(Message::of(table::CORRELATION_NAMED_TWICE, [&name]));
    }
    level.tables.push(table);
    Ok(())
}
