//! INSERT, UPDATE and DELETE.
//!
//! What stands in a FROM clause finds the rows first, by what identifies them; the change goes by that. Where several
//! joined rows belong to one row, UPDATE takes any of them, as SQL Server does.

use std::cmp::Ordering;

use pellucid_tsql::ast::{
    ChangeTarget, ColumnName, CommonTable, Condition, Delete, Insert, InsertSource, Name,
    ObjectName, SetTarget, TablePrimary, TableSource, Top, Update,
};

use super::module::Named;
use super::scope::{called, same, Clause, Level, Typed, View};
use super::{
    quoted, Parameter, ResultColumn, Statement, Stored, Table, TableColumn, Translator, Work,
};
use crate::message::{table, Message, Result};
use crate::values::types::{Family, Length};

/// The rows that are changed.
pub(super) struct Target {
    pub table: Table,
    /// How it is written.
    pub name: String,
    /// Its number among the tables of the level.
    pub at: usize,
    pub level: Level,
    /// From FROM on.
    pub tail: String,
}

/// The parts of an UPDATE or a DELETE.
pub(super) struct Changed {
    pub with: String,
    pub found: Target,
    /// What identifies a row of it.
    pub row: String,
    pub limit: String,
    /// What UPDATE sets, quoted.
    pub names: Vec<String>,
    /// To what.
    pub values: Vec<String>,
}

impl Changed {
    /// `name = alias.v1, ..`
    pub fn set(&self, alias: &str) -> Vec<String> {
        let names = self.names.iter().enumerate();
        names.map(|(at, name)| format!("{name} = {alias}.v{}", at + 1)).collect()
    }
}

impl Translator<'_> {
    /// How many columns INSERT .. EXECUTE gives values to.
    ///
    /// # Errors
    /// As [`Self::select`].
    pub fn inserted_columns(self, insert: &Insert) -> Result<usize> {
        Ok(self.work().executed_columns(insert)?.2.len())
    }

    /// INSERT of one row of a result of INSERT .. EXECUTE, whose values are its parameters.
    ///
    /// # Errors
    /// As [`Self::select`]; 213 for another number of columns.
    pub fn insert_row(self, insert: &Insert, given: &[ResultColumn]) -> Result<Statement> {
        let mut work = self.work();
        let sql = work.executed_row(insert, given)?;
        Ok(work.finish(sql, &[]))
    }
}

impl Work<'_> {
    pub(super) fn insert(&mut self, insert: &Insert) -> Result<String> {
        if let InsertSource::Query(query) = &insert.source {
            self.options(&query.options)?;
        }
        let mut level = Level::default();
        let with = self.with(&insert.with, &mut level, View::EMPTY)?;
        if insert.top.is_some() {
            return Err(Message::unsupported("INSERT TOP"));
        }
        let view = View::inner(&View::EMPTY, &level, Clause::Other);
        let (table, name) = self.target_table(&insert.target, view)?;
        refuse_rows_of_server(&table, &name)?;
        self.gives_identity = table.columns.iter().any(|column| column.identity);
        let columns = target_columns(&table, &insert.columns, &name)?;
        let listed = !insert.columns.is_empty();
        let into = format!("INSERT INTO {}", table.sqlite);
        let list: Vec<String> = columns.iter().map(|column| quoted(&column.sqlite)).collect();
        let list = list.join(", ");
        match &insert.source {
            InsertSource::DefaultValues => {
                let defaulted: Vec<&TableColumn> =
                    table.columns.iter().filter(|column| column.default.is_some()).collect();
                if defaulted.is_empty() {
                    return Ok(format!("{with}{into} DEFAULT VALUES"));
                }
                let names: Vec<String> = defaulted.iter().map(|c| quoted(&c.sqlite)).collect();
                let values: Vec<String> = defaulted.iter().map(|c| default_of(c)).collect();
                Ok(format!("{into} ({}) VALUES ({})", names.join(", "), values.join(", ")))
            }
            InsertSource::Values(rows) => {
                let mut texts = Vec::new();
                let width = rows.first().map_or(0, Vec::len);
                if rows.iter().any(|row| row.len() != width) {
                    return Err(Message::of(table::UNEQUAL_ROWS, []));
                }
                let told = (table::FEWER_VALUES, table::MORE_VALUES);
                counts_match(width, columns.len(), listed.then_some(told))?;
                for row in rows {
                    let mut values = Vec::new();
                    for (value, column) in row.iter().zip(&columns) {
                        values.push(match value {
                            None => default_of(column),
                            Some(value) => {
                                let value = self.expression(value, view)?;
                                self.written(value, column, &name)?
                            }
                        });
                    }
                    texts.push(format!("({})", values.join(", ")));
                }
                let values = texts.join(", ");
                Ok(match reads_by_itself(&values) {
                    true => format!(
                        "{with}{into} ({list}) SELECT * FROM (VALUES {values}){}",
                        read_first(&table)
                    ),
                    false => format!("{with}{into} ({list}) VALUES {values}"),
                })
            }
            InsertSource::Query(query) if query.xml.is_some() => {
                Err(Message::of(table::XML_NOT_IN, [&"INSERT"]))
            }
            InsertSource::Query(query) => {
                let relation = self.query(query, view, false)?;
                let told = (table::FEWER_ITEMS, table::MORE_ITEMS);
                counts_match(relation.columns.len(), columns.len(), listed.then_some(told))?;
                let mut values = Vec::new();
                for (at, (from, column)) in relation.columns.iter().zip(&columns).enumerate() {
                    let value = Typed {
                        sql: format!("c{}", at + 1),
                        data_type: from.data_type,
                        sensitive: false,
                        constant: None,
                    };
                    values.push(self.written(value, column, &name)?);
                }
                let values = values.join(", ");
                let is_read =
                    [&with, &values, &relation.sql].into_iter().any(|text| reads_by_itself(text));
                let first = if is_read { read_first(&table) } else { String::new() };
                Ok(format!("{with}{into} ({list}) SELECT {values} FROM ({}){first}", relation.sql))
            }
            InsertSource::Execute(_) => Err(Message::unsupported("INSERT .. EXECUTE")),
        }
    }

    /// The columns that INSERT .. EXECUTE gives values to.
    pub(super) fn executed_columns(
        &mut self,
        insert: &Insert,
    ) -> Result<(Table, String, Vec<TableColumn>)> {
        if insert.top.is_some() {
            return Err(Message::unsupported("INSERT TOP"));
        }
        let (table, name) = self.target_table(&insert.target, View::EMPTY)?;
        refuse_rows_of_server(&table, &name)?;
        self.gives_identity = table.columns.iter().any(|column| column.identity);
        let columns = target_columns(&table, &insert.columns, &name)?;
        Ok((table, name, columns))
    }

    /// INSERT of one row that EXECUTE has given, whose values are the parameters.
    fn executed_row(&mut self, insert: &Insert, given: &[ResultColumn]) -> Result<String> {
        let (table, name, columns) = self.executed_columns(insert)?;
        counts_match(given.len(), columns.len(), None)?;
        let mut values = Vec::new();
        for (at, (from, column)) in given.iter().zip(&columns).enumerate() {
            let number = self.parameter(Parameter::Row(at));
            let value = super::typed(format!("?{number}"), from.data_type);
            values.push(self.written(value, column, &name)?);
        }
        let list: Vec<String> = columns.iter().map(|column| quoted(&column.sqlite)).collect();
        let (list, values) = (list.join(", "), values.join(", "));
        Ok(format!("INSERT INTO {} ({list}) VALUES ({values})", table.sqlite))
    }

    pub(super) fn update(&mut self, update: &Update) -> Result<String> {
        let updated = self.updated(update)?;
        let list: Vec<String> = updated
            .values
            .iter()
            .enumerate()
            .map(|(at, value)| format!("{value} AS v{}", at + 1))
            .collect();
        let found = &updated.found;
        Ok(format!(
            "{}UPDATE {} AS u SET {} FROM (SELECT {} AS k, {}{}{}) AS s WHERE u.{} = s.k",
            updated.with,
            found.table.sqlite,
            updated.set("s").join(", "),
            updated.row,
            list.join(", "),
            found.tail,
            updated.limit,
            found.table.row.as_deref().unwrap_or_default(),
        ))
    }

    pub(super) fn updated(&mut self, update: &Update) -> Result<Changed> {
        self.options(&update.options)?;
        let mut common = Level::default();
        let with = self.with(&update.with, &mut common, View::EMPTY)?;
        let outer = View::inner(&View::EMPTY, &common, Clause::Other);
        let among = (&update.with[..], &update.from[..]);
        let found = self.found(&update.target, among, update.filter.as_ref(), outer)?;
        let limit = self.change_limit(update.top.as_ref())?;
        let view = View::inner(&outer, &found.level, Clause::Where);
        let mut names = Vec::new();
        let mut values = Vec::new();
        for clause in &update.set {
            let SetTarget::Column(column) = &clause.target else {
                return Err(Message::unsupported("UPDATE that assigns to a variable"));
            };
            let target = found
                .table
                .columns
                .iter()
                .find(|other| same(&other.name, column.column.as_str()))
                .ok_or_else(|| Message::of(table::UNKNOWN_COLUMN, [&column.column.as_str()]))?;
            if target.derived {
                return Err(super::change_common::derived_field(&found.name));
            }
            if target.identity || !target.writable {
                return Err(Message::of(table::IDENTITY_UPDATED, [&target.name]));
            }
            if names.contains(&quoted(&target.sqlite)) {
                return Err(assigned_twice(target));
            }
            let value = match &clause.value {
                None => default_of(target),
                Some(value) => {
                    let value = self.expression(value, view)?;
                    let value = match super::assign::binary(clause.operator) {
                        None => value,
                        Some(operator) => {
                            let old = self.own_column(&found, column)?;
                            self.operated(old, operator, value)?
                        }
                    };
                    self.written(value, target, &found.name)?
                }
            };
            names.push(quoted(&target.sqlite));
            values.push(value);
        }
        let row = row_of(&found)?;
        Ok(Changed { with, found, row, limit, names, values })
    }

    pub(super) fn delete(&mut self, delete: &Delete) -> Result<String> {
        let deleted = self.deleted(delete)?;
        let table = &deleted.found.table;
        Ok(format!(
            "{}DELETE FROM {} WHERE {} IN (SELECT {}{}{})",
            deleted.with,
            table.sqlite,
            table.row.as_deref().unwrap_or_default(),
            deleted.row,
            deleted.found.tail,
            deleted.limit
        ))
    }

    pub(super) fn deleted(&mut self, delete: &Delete) -> Result<Changed> {
        self.options(&delete.options)?;
        let mut common = Level::default();
        let with = self.with(&delete.with, &mut common, View::EMPTY)?;
        let outer = View::inner(&View::EMPTY, &common, Clause::Other);
        let among = (&delete.with[..], &delete.from[..]);
        let found = self.found(&delete.target, among, delete.filter.as_ref(), outer)?;
        let limit = self.change_limit(delete.top.as_ref())?;
        let row = row_of(&found)?;
        Ok(Changed { with, found, row, limit, names: Vec::new(), values: Vec::new() })
    }

    fn change_limit(&mut self, top: Option<&Top>) -> Result<String> {
        match top {
            Some(top) if top.percent => Err(Message::unsupported("UPDATE and DELETE TOP PERCENT")),
            top => self.limit(top, None),
        }
    }

    /// The table that is changed, and what its row is among the joined ones.
    fn found(
        &mut self,
        target: &ChangeTarget,
        (with, from): (&[CommonTable], &[TableSource]),
        filter: Option<&Condition>,
        outer: View<'_>,
    ) -> Result<Target> {
        if let Some((at, called)) = common_of(target, with, from) {
            let mut found = self.common_target(&with[at], called, at, outer)?;
            if let Some(filter) = filter {
                let view = View::inner(&outer, &found.level, Clause::Where);
                let filter = self.condition(filter, view)?;
                found.tail.push_str(&format!(" WHERE {filter}"));
            }
            return Ok(found);
        }
        let mut level = Level::default();
        let (table, name, at, mut tail) = if from.is_empty() {
            let (table, name) = self.target_table(target, outer)?;
            let text = self.primary(&primary_of(target), &mut level, View::EMPTY)?;
            (table, name, 0, format!(" FROM {text}"))
        } else {
            let mut tail = self.from(from, &mut level, outer)?;
            let (table, name, at) = match self.among(target, from, &level, outer)? {
                Some(found) => found,
                None => {
                    // A table that FROM does not name is joined to what it does name.
                    let (table, name) = self.target_table(target, outer)?;
                    let at = level.tables.len();
                    let text = self.primary(&primary_of(target), &mut level, View::EMPTY)?;
                    tail.push_str(&format!(", {text}"));
                    (table, name, at)
                }
            };
            (table, name, at, tail)
        };
        if let Some(filter) = filter {
            let filter = self.condition(filter, View::inner(&outer, &level, Clause::Where))?;
            tail.push_str(&format!(" WHERE {filter}"));
        }
        Ok(Target { table, name, at, level, tail })
    }

    /// The table of a FROM clause that a change is of: the one that is called like the target, else the only one that is
    /// the target under another name. `None` if it is not among them.
    fn among(
        &mut self,
        target: &ChangeTarget,
        from: &[TableSource],
        level: &Level,
        outer: View<'_>,
    ) -> Result<Option<(Table, String, usize)>> {
        let written = primaries(from);
        if written.len() != level.tables.len() {
            return Err(Message::unsupported("UPDATE and DELETE with such a FROM"));
        }
        let ambiguous = |name: &str| Message::of(table::AMBIGUOUS_TABLE, [&name]);
        if let ChangeTarget::Table { name, .. } = target {
            // An alias has no schema.
            let is_called = |at: &usize| {
                (name.is_bare() || !has_alias(written[*at])) && called(&level.tables[*at], name)
            };
            let mut found = (0..written.len()).filter(is_called);
            match (found.next(), found.next()) {
                (Some(_), Some(_)) => return Err(ambiguous(&super::scope::object_text(name))),
                (Some(at), None) => {
                    let (table, shown) = self.changed(written[at], outer)?;
                    let other = !has_alias(written[at])
                        && self.target_table(target, outer)?.0.sqlite != table.sqlite;
                    if other {
                        return Err(Message::unsupported(
                            "UPDATE and DELETE with a FROM that names another table so",
                        ));
                    }
                    return Ok(Some((table, shown, at)));
                }
                (None, _) => {}
            }
        }
        let (wanted, shown) = self.target_table(target, outer)?;
        let mut found = None;
        for (at, primary) in written.into_iter().enumerate() {
            let may_be = match (primary, target) {
                (TablePrimary::Variable { variable, .. }, ChangeTarget::Variable(wanted)) => {
                    same(&variable.0, &wanted.0)
                }
                (TablePrimary::Table { name, .. }, ChangeTarget::Table { name: wanted, .. }) => {
                    let is_common = name.is_bare() && outer.common(name.object.as_str()).is_some();
                    !is_common && same(name.object.as_str(), wanted.object.as_str())
                }
                _ => false,
            };
            if !may_be {
                continue;
            }
            let (table, name) = self.changed(primary, outer)?;
            if table.sqlite == wanted.sqlite {
                if found.is_some() {
                    return Err(ambiguous(&shown));
                }
                found = Some((table, name, at));
            }
        }
        Ok(found)
    }

    /// The stored table that a FROM clause names.
    pub(super) fn changed(
        &mut self,
        primary: &TablePrimary,
        outer: View<'_>,
    ) -> Result<(Table, String)> {
        match primary {
            TablePrimary::Table { name, .. } => {
                not_common(name, outer)?;
                Ok((self.named_table(name)?, super::scope::object_text(name)))
            }
            TablePrimary::Variable { variable, .. } => {
                self.target_table(&ChangeTarget::Variable(variable.clone()), outer)
            }
            _ => Err(Message::unsupported("change of a derived table")),
        }
    }

    fn target_table(&mut self, target: &ChangeTarget, outer: View<'_>) -> Result<(Table, String)> {
        match target {
            ChangeTarget::Table { name, .. } => {
                not_common(name, outer)?;
                let table = self.named_table(name)?;
                refuse_of_server(&table, name)?;
                Ok((table, super::scope::object_text(name)))
            }
            ChangeTarget::Variable(variable) => {
                let table = self.table_variable(&variable.0);
                let table = table.ok_or_else(|| Message::undeclared_table(&variable.0))?;
                Ok((table, format!("@{}", variable.0)))
            }
        }
    }

    fn named_table(&mut self, name: &ObjectName) -> Result<Table> {
        match self.named(name)? {
            Named::Table(table) => Ok(table),
            Named::View(_) => Err(Message::unsupported("change of rows through a view")),
        }
    }

    /// The column of the changed table itself.
    fn own_column(&self, found: &Target, column: &ColumnName) -> Result<Typed> {
        let table = &found.level.tables[found.at];
        let own = table.columns.iter().find(|other| same(&other.name, column.column.as_str()));
        own.map(|own| own.value.clone())
            .ok_or_else(|| Message::of(table::UNKNOWN_COLUMN, [&column.column.as_str()]))
    }

    /// A value as the column holds it. What is too long is refused, not cut off.
    pub(super) fn written(
        &self,
        value: Typed,
        column: &TableColumn,
        table: &str,
    ) -> Result<String> {
        let to = column.data_type;
        let from = value.data_type;
        let bounded = matches!(to.length(), Some(Length::Of(_)));
        if bounded && from.family() == to.family() && !crate::values::convert::is_same(from, to) {
            return Ok(format!(
                "tsql_fitting({}, {}, {}, {}, {})",
                value.sql,
                from.code(),
                to.code(),
                super::text_literal(table),
                super::text_literal(&column.name)
            ));
        }
        let value = self.coerced(value, column.data_type)?;
        if column.identity {
            return Ok(format!("tsql_identity({})", value.sql));
        }
        let plain = column.stored == Stored::Plain;
        Ok(match column.data_type.family() {
            Family::Decimal if plain => {
                format!("tsql_store({}, {})", value.sql, column.data_type.code())
            }
            _ => value.sql,
        })
    }
}

/// The common table expression that the target is, where it stands alone or FROM names nothing but it: its place in WITH, and
/// what it is called.
fn common_of<'t>(
    target: &'t ChangeTarget,
    with: &[CommonTable],
    from: &'t [TableSource],
) -> Option<(usize, &'t Name)> {
    let ChangeTarget::Table { name, .. } = target else { return None };
    let of = |name: &ObjectName| {
        let is_it = |common: &CommonTable| same(common.name.as_str(), name.object.as_str());
        with.iter().position(is_it).filter(|_| name.is_bare())
    };
    match from {
        [] => of(name).map(|at| (at, &name.object)),
        [TableSource { table: TablePrimary::Table { name: only, alias, .. }, joins }]
            if joins.is_empty() && name.is_bare() =>
        {
            let called = alias.as_ref().unwrap_or(&only.object);
            let is_meant = same(called.as_str(), name.object.as_str());
            of(only).filter(|_| is_meant).map(|at| (at, called))
        }
        _ => None,
    }
}

/// The view of the server that a table is, as `msdb.backupset`: its rows are made for the statement that names it, and what is
/// put there would be nowhere.
fn of_server(table: &Table) -> Option<&str> {
    let own = table.sqlite.strip_prefix("temp.\"")?;
    let digits = own.bytes().take_while(u8::is_ascii_digit).count();
    own[digits..].strip_prefix('.').filter(|_| digits > 0)
}

/// INSERT
fn refuse_rows_of_server(table: &Table, shown: &str) -> Result<()> {
    match of_server(table).is_some_and(|view| view.starts_with("msdb.")) {
        true => Err(Message::unsupported(format!("INSERT into {shown}"))),
        false => Ok(()),
    }
}

/// Any change, but for one of what never has a row, which changes none.
fn refuse_of_server(table: &Table, name: &ObjectName) -> Result<()> {
    let Some(view) = of_server(table) else { return Ok(()) };
    match (view.starts_with("msdb."), &table.row) {
        (false, _) => Err(Message::of(table::CATALOG_CHANGED, [])),
        (true, Some(_)) => Ok(()),
        (true, None) => {
            let shown = super::scope::object_text(name);
            Err(Message::unsupported(format!("change of {shown}")))
        }
    }
}

/// Whether a function of a script is called, which may read what the statement changes.
fn reads_by_itself(sql: &str) -> bool {
    sql.contains("tsql_scripted(")
}

/// A condition that holds and reads the target: SQLite then has all rows before it puts in the first one
/// (<https://sqlite.org/lang_insert.html>), as it does by itself where it sees that the source reads the target.
fn read_first(target: &Table) -> String {
    format!(" WHERE (SELECT count(*) FROM (SELECT 1 FROM {} LIMIT 1)) < 2", target.sqlite)
}

/// A target as FROM would name it.
fn primary_of(target: &ChangeTarget) -> TablePrimary {
    match target {
        ChangeTarget::Table { name, .. } => {
            TablePrimary::Table { name: name.clone(), alias: None, hints: Vec::new() }
        }
        ChangeTarget::Variable(variable) => {
            TablePrimary::Variable { variable: variable.clone(), alias: None }
        }
    }
}

fn has_alias(primary: &TablePrimary) -> bool {
    !matches!(
        primary,
        TablePrimary::Table { alias: None, .. } | TablePrimary::Variable { alias: None, .. }
    )
}

/// What a common table expression stands for is not changed, and the table that it hides is not meant.
fn not_common(name: &ObjectName, outer: View<'_>) -> Result<()> {
    match name.is_bare() && outer.common(name.object.as_str()).is_some() {
        true => Err(Message::unsupported("change of a common table expression")),
        false => Ok(()),
    }
}

/// 264
fn assigned_twice(column: &TableColumn) -> Message {
    Message::of(table::ASSIGNED_TWICE, [&column.name])
}

fn row_of(found: &Target) -> Result<String> {
    found.level.tables[found.at]
        .row
        .clone()
        .ok_or_else(|| Message::unsupported("change of a view or a table without row identity"))
}

fn default_of(column: &TableColumn) -> String {
    if column.identity {
        return "tsql_identity(NULL)".to_owned();
    }
    column.default.clone().map_or_else(|| "NULL".to_owned(), |default| format!("({default})"))
}

/// 213, or what is said of fewer and of more values where the columns are listed.
fn counts_match(
    values: usize,
    columns: usize,
    listed: Option<(table::Row<0>, table::Row<0>)>,
) -> Result<()> {
    match (values.cmp(&columns), listed) {
        (Ordering::Equal, _) => Ok(()),
        (Ordering::Less, Some((fewer, _))) => Err(Message::of(fewer, [])),
        (Ordering::Greater, Some((_, more))) => Err(Message::of(more, [])),
        (_, None) => Err(Message::of(table::VALUES_DO_NOT_MATCH, [])),
    }
}

/// The columns that INSERT gives values to.
fn target_columns(table: &Table, names: &[Name], shown: &str) -> Result<Vec<TableColumn>> {
    let identity = table.columns.iter().find(|column| column.identity && column.writable);
    if names.is_empty() {
        if identity.is_some() {
            return Err(Message::of(table::IDENTITY_WITHOUT_LIST, [&shown]));
        }
        return Ok(table.columns.iter().filter(|column| column.writable).cloned().collect());
    }
    let mut columns: Vec<TableColumn> = Vec::new();
    for name in names {
        let column = table
            .columns
            .iter()
            .find(|column| same(&column.name, name.as_str()))
            .ok_or_else(|| Message::of(table::UNKNOWN_COLUMN, [&name.as_str()]))?;
        if !column.writable {
            return Err(Message::of(table::IDENTITY_INSERT_OFF, [&shown]));
        }
        if columns.contains(column) {
            return Err(assigned_twice(column));
        }
        columns.push(column.clone());
    }
    if identity.is_some_and(|identity| !columns.contains(identity)) {
        return Err(Message::of(table::IDENTITY_WITHOUT_VALUE, [&shown]));
    }
    Ok(columns)
}

/// The name of the table that a target is: of the table that FROM gives the name as an alias.
pub(crate) fn changed_table<'a>(name: &'a ObjectName, from: &'a [TableSource]) -> &'a ObjectName {
    let meant = |primary: &&'a TablePrimary| match primary {
        TablePrimary::Table { alias: Some(alias), .. } => {
            name.is_bare() && same(alias.as_str(), name.object.as_str())
        }
        _ => false,
    };
    match primaries(from).into_iter().find(meant) {
        Some(TablePrimary::Table { name, .. }) => name,
        _ => name,
    }
}

/// The tables of a FROM clause as they are written.
fn primaries(from: &[TableSource]) -> Vec<&TablePrimary> {
    let mut all = Vec::new();
    for source in from {
        for primary in
            std::iter::once(&source.table).chain(source.joins.iter().map(|join| &join.right))
        {
            match primary {
                TablePrimary::Joined(inner) => {
                    all.extend(primaries(std::slice::from_ref(inner)));
                }
                primary => all.push(primary),
            }
        }
    }
    all
}
