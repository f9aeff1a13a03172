//! SELECT, INSERT, UPDATE, DELETE, and values of expressions.

use std::rc::Rc;

use pellucid_tsql::ast::{
    ChangeTarget, Condition, Delete, Expression, Insert, InsertSource, ObjectName, Query,
    TableElement, Update,
};

use super::insert_execute::Output;
use super::output::STAGE;
use super::violation::Change;
use super::{is_of_compilation, Done, Raised};
use crate::instance::Known;
use crate::message::{table, Message, Result};
use crate::session::{
    declared_type, row_name, Frame, Names, Recorder, Session, SourceRef, TableVariable, Translated,
};
use crate::translate::{
    execute_assignments, without_into, Catalog, Selection, Statement, Stored, Table, TableColumn,
    Translator, VariableTypes,
};
use crate::values::convert::Value;
use crate::values::types::SqlType;

impl Session {
    /// Translates with the names and variables of the frame at hand.
    pub(super) fn translated<T>(
        &mut self,
        translate: impl FnOnce(Translator<'_>) -> Result<T>,
    ) -> Done<T> {
        self.frame();
        let Some(frame) = self.frames.last() else { return Err(Raised::cancelled()) };
        let names = Names { databases: &self.databases, frame };
        self.translated_by(&names, frame, translate)
    }

    /// The translation of a statement that may come again: the one of before where it is the same.
    fn translation(&mut self, source: SourceRef<'_>) -> Done<Rc<Translated>> {
        self.frame();
        let Some(frame) = self.frames.last() else { return Err(Raised::cancelled()) };
        let names = Names { databases: &self.databases, frame };
        let ansi_nulls = !self.settings.nulls_are_equal;
        self.databases.begin_translation();
        if let Some(found) = self.translations.find(source, ansi_nulls, &names, frame) {
            return Ok(found);
        }
        let recorder = Recorder::new(&names, frame);
        let translated = self.translated_by(&recorder, &recorder, |translator| {
            let at_once = translator.at_once();
            Ok(match source {
                SourceRef::Select(query) => Translated::Selection(at_once.select(query)?),
                SourceRef::Value(value, to) => Translated::Statement(at_once.value(value, to)?),
                SourceRef::Condition(condition) => {
                    Translated::Statement(at_once.condition(condition)?)
                }
                SourceRef::Insert(insert) => Translated::Statement(translator.insert(insert)?),
                SourceRef::Update(update) => Translated::Statement(translator.update(update)?),
                SourceRef::Delete(delete) => Translated::Statement(translator.delete(delete)?),
            })
        })?;
        let translated = Rc::new(translated);
        self.translations.keep(source, ansi_nulls, recorder, &translated);
        Ok(translated)
    }

    fn translated_by<T>(
        &self,
        catalog: &dyn Catalog,
        variables: &dyn VariableTypes,
        translate: impl FnOnce(Translator<'_>) -> Result<T>,
    ) -> Done<T> {
        self.shared.programs.begin_statement();
        self.databases.begin_translation();
        let ansi_nulls = !self.settings.nulls_are_equal;
        let translator = Translator::new(catalog, variables).ansi_nulls(ansi_nulls);
        let failed_views = &self.databases.failed_views;
        failed_views.borrow_mut().clear();
        translate(translator).map_err(|message| {
            let of_view = |view: String| Message::of(table::VIEW_NOT_BOUND, [&view]);
            let mut failed = failed_views.take();
            // APPLY translates its right side again.
            failed.dedup();
            let raised = failed.into_iter().map(of_view).fold(Raised::from(message), Raised::and);
            let is_uncompiled = raised.messages.iter().any(is_of_compilation);
            Raised { uncompiled: is_uncompiled.then_some(self.frames.len()), ..raised }
        })
    }

    /// The table that a name stands for.
    pub(super) fn table(&mut self, name: &ObjectName) -> Done<Option<Table>> {
        self.frame();
        let Some(frame) = self.frames.last() else { return Err(Raised::cancelled()) };
        Ok(Names { databases: &self.databases, frame }.table(name)?)
    }

    pub(super) fn select(&mut self, query: &Query) -> Done {
        if let Some((into, query)) = without_into(query) {
            return self.select_into(&into, &query);
        }
        match &*self.translation(SourceRef::Select(query))? {
            Translated::Statement(statement)
            | Translated::Selection(Selection::Rows(statement)) => {
                let rows = self.give(statement)?;
                self.count(rows);
            }
            Translated::Selection(Selection::Assign(assignments)) => {
                self.databases.refresh(&assignments.rows.sql)?;
                for assignment in &assignments.each {
                    self.databases.refresh(&assignment.step.sql)?;
                }
                let Some(frame) = self.frames.last_mut() else { return Err(Raised::cancelled()) };
                let connection = |sql: &str| self.databases.connection_for(sql);
                let rows = execute_assignments(connection, assignments, frame)?;
                self.shared.set_row_count(rows);
            }
        }
        Ok(())
    }

    /// Gives the rows to the sink, and says how many there were.
    fn give(&mut self, statement: &Statement) -> Done<u64> {
        self.databases.refresh(&statement.sql)?;
        let Some(frame) = self.frames.last() else { return Err(Raised::cancelled()) };
        let mut output = Output { kept: &mut self.kept, sink: &mut *self.sink };
        let mut prepared = statement.prepare(&self.databases.connection, frame)?;
        let columns = statement.columns.len();
        let most = if self.settings.row_count == 0 { u64::MAX } else { self.settings.row_count };
        let mut rows = prepared.raw_query();
        // An error in the first row comes before any heading, as the server's does.
        let mut count = 0;
        let mut next = rows.next()?;
        output.columns(&statement.columns);
        while let Some(row) = next {
            if count == most {
                break;
            }
            let values = (0..columns)
                .map(|at| row.get_ref(at).map(owned))
                .collect::<rusqlite::Result<_>>()?;
            output.row(values);
            count += 1;
            if self.cancel.is_asked() {
                return Err(Raised::cancelled());
            }
            next = rows.next()?;
        }
        Ok(count)
    }

    pub(super) fn insert(&mut self, insert: &Insert) -> Done {
        self.check_writable(&insert.target)?;
        if let InsertSource::Execute(execute) = &insert.source {
            if !insert.output.is_empty() {
                return Err(Message::of(table::OUTPUT_OF_INSERT_EXEC, []).into());
            }
            return self.insert_execute(insert, execute);
        }
        let change = Change::of("INSERT", &insert.target, &[]);
        if !insert.output.is_empty() {
            let done = self.change_with_output(&insert.output, true, |translator| {
                translator.insert_output(insert, STAGE)
            });
            return done.map_err(|raised| self.with_constraint(raised, change));
        }
        let translated = self.translation(SourceRef::Insert(insert))?;
        let rows = self.change_named(translated.statement(), change)?;
        if rows > 0 && translated.statement().gives_identity {
            self.shared.set_identity(self.databases.connection.last_insert_rowid());
        }
        self.count(rows);
        Ok(())
    }

    pub(super) fn update(&mut self, update: &Update) -> Done {
        self.check_writable(&update.target)?;
        let change = Change::of("UPDATE", &update.target, &update.from);
        if !update.output.is_empty() {
            let done = self.change_with_output(&update.output, false, |translator| {
                translator.update_output(update, STAGE)
            });
            return done.map_err(|raised| self.with_constraint(raised, change));
        }
        let translated = self.translation(SourceRef::Update(update))?;
        let rows = self.change_named(translated.statement(), change)?;
        self.count(rows);
        Ok(())
    }

    pub(super) fn delete(&mut self, delete: &Delete) -> Done {
        self.check_writable(&delete.target)?;
        let change = Change::of("DELETE", &delete.target, &delete.from);
        if !delete.output.is_empty() {
            let done = self.change_with_output(&delete.output, false, |translator| {
                translator.delete_output(delete, STAGE)
            });
            return done.map_err(|raised| self.with_constraint(raised, change));
        }
        let translated = self.translation(SourceRef::Delete(delete))?;
        let rows = self.change_named(translated.statement(), change)?;
        self.count(rows);
        Ok(())
    }

    /// 3906 for a table of a database that was set READ_ONLY, and of a standby.
    pub(super) fn check_writable_table(&self, name: &ObjectName) -> Done {
        if name.object.as_str().starts_with('#') {
            return Ok(());
        }
        let database = match &name.database {
            Some(database) => self.databases.instance.find(database.as_str())?,
            None => Some(self.databases.current()?),
        };
        let is_closed =
            |known: &Known| known.is_read_only || self.databases.is_opened_read_only(known);
        match database.filter(is_closed) {
            Some(known) => Err(Message::of(table::READ_ONLY, [&known.name]).into()),
            None => Ok(()),
        }
    }

    pub(super) fn check_writable(&self, target: &ChangeTarget) -> Done {
        match target {
            ChangeTarget::Table { name, .. } => self.check_writable_table(name),
            ChangeTarget::Variable(_) => Ok(()),
        }
    }

    pub(super) fn check_row_count(&self) -> Done {
        match self.settings.row_count {
            0 => Ok(()),
            // TOP says it within the statement.
            _ => Err(Message::unsupported("SET ROWCOUNT for changes").into()),
        }
    }

    pub(super) fn change(&mut self, statement: &Statement) -> Done<u64> {
        self.check_row_count()?;
        self.databases.refresh(&statement.sql)?;
        let Some(frame) = self.frames.last() else { return Err(Raised::cancelled()) };
        let mut prepared = statement.prepare(&self.databases.connection, frame)?;
        Ok(prepared.raw_execute()? as u64)
    }

    fn change_named(&mut self, statement: &Statement, change: Change<'_>) -> Done<u64> {
        let done = self.change(statement);
        let change = Change { statement: Some(statement), ..change };
        done.map_err(|raised| self.with_constraint(raised, change))
    }

    /// The value of an expression, of its own type if no other is asked for.
    pub(crate) fn value(&mut self, value: &Expression, to: Option<SqlType>) -> Done<Value> {
        let translated = self.translation(SourceRef::Value(value, to))?;
        self.first(translated.statement())
    }

    /// The type of an expression.
    pub(super) fn type_of(&mut self, value: &Expression) -> Done<SqlType> {
        let translated = self.translation(SourceRef::Value(value, None))?;
        let column = translated.statement().columns.first();
        Ok(column.map_or(SqlType::Null, |column| column.data_type))
    }

    /// Whether a condition holds; unknown does not.
    pub(super) fn holds(&mut self, condition: &Condition) -> Done<bool> {
        let translated = self.translation(SourceRef::Condition(condition))?;
        let holds = self.first(translated.statement())? == Value::Integer(1);
        self.warn_of_nulls();
        Ok(holds)
    }

    fn first(&mut self, statement: &Statement) -> Done<Value> {
        self.databases.refresh(&statement.sql)?;
        let Some(frame) = self.frames.last() else { return Err(Raised::cancelled()) };
        let connection = self.databases.connection_for(&statement.sql);
        let mut prepared = statement.prepare_cached(connection, frame)?;
        let mut rows = prepared.raw_query();
        match rows.next()? {
            Some(row) => Ok(owned(row.get_ref(0)?)),
            None => Ok(Value::Null),
        }
    }

    /// DECLARE @name TABLE (..): a temporary table of the batch.
    pub(super) fn declare_table(&mut self, name: &str, elements: &[TableElement]) -> Done {
        if self.frame().table(name).is_some() {
            return Ok(());
        }
        let sqlite = format!("@{}", self.databases.next_temporary());
        let (sql, columns) = super::object::table_text("temp", &sqlite, elements)?;
        self.databases
            .connection
            .execute_batch(&format!("DROP TABLE IF EXISTS temp.\"{sqlite}\""))?;
        self.make_table("temp", &sqlite, &sql, elements)?;
        let own = self.databases.row_column("temp", &sqlite)?;
        let columns = columns
            .into_iter()
            .map(|(name, declared, writable)| TableColumn {
                stored: Stored::Plain,
                writable,
                is_row: own.as_deref() == Some(&name),
                declared: Some(declared.clone()),
                ..TableColumn::new(&name, declared_type(&declared))
            })
            .collect();
        let columns: Vec<TableColumn> = columns;
        let row = row_name(columns.iter().map(|column| column.sqlite.as_str()));
        let table = Table { sqlite: format!("temp.\"{sqlite}\""), columns, row };
        let frame: &mut Frame = self.frame();
        match frame.declare_table(name, TableVariable { table }) {
            true => Ok(()),
            false => Err(Message::of(table::DECLARED_TWICE, [&name]).into()),
        }
    }
}

/// Text that is no UTF-8 is still text.
pub(super) fn owned(value: rusqlite::types::ValueRef<'_>) -> Value {
    use rusqlite::types::ValueRef;
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}
