//! Tables, views and schemas.

use super::Parser;
use crate::ast::{
    AlterTable, Column, ColumnConstraint, ColumnProperty, Condition, CreateTable, Identity, Key,
    Name, ObjectName, ObjectStatement, References, ReferentialAction, StatementKind,
    TableConstraint, TableElement, TableRule, View, ViewVerb,
};
use crate::error::{ErrorKind, Result};
use crate::keyword::Keyword as K;
use crate::lexer::{Symbol, TokenKind};

/// Statements begin behind their verb.
impl Parser<'_> {
    pub(super) fn create_table(&mut self) -> Result<StatementKind> {
        self.require(K::TABLE)?;
        let name = self.object_name()?;
        if self.at(K::AS) {
            return self.unsupported("CREATE TABLE AS");
        }
        let elements = self.parenthesized_list(Self::table_element)?;
        if let Some(words) = self.words_of(&["AS EDGE", "AS NODE"]) {
            return self.unsupported(format!("CREATE TABLE {words}"));
        }
        let filegroup = self.on_filegroup()?;
        let text_filegroup = match self.accept(K::TEXTIMAGE_ON) {
            true => Some(self.name_or_string()?),
            false => None,
        };
        let options = self.with_index_options()?;
        let create = CreateTable { name, elements, filegroup, text_filegroup, options };
        Ok(StatementKind::Object(ObjectStatement::CreateTable(create)))
    }

    /// `[ON filegroup]`
    pub(super) fn on_filegroup(&mut self) -> Result<Option<Name>> {
        if !self.accept(K::ON) {
            return Ok(None);
        }
        let name = match self.at(K::PRIMARY) {
            true => {
                let token = self.advance();
                self.name_of(token)?
            }
            false => self.name_or_string()?,
        };
        match self.at_symbol(Symbol::LeftParenthesis) {
            true => self.unsupported("partition scheme"),
            false => Ok(Some(name)),
        }
    }

    /// A column or a constraint.
    pub(super) fn table_element(&mut self) -> Result<TableElement> {
        match self.keyword() {
            Some(K::CONSTRAINT | K::PRIMARY | K::UNIQUE | K::FOREIGN | K::CHECK | K::DEFAULT) => {
                let name = self.constraint_name()?;
                let rule = self.table_rule()?;
                return Ok(TableElement::Constraint(TableConstraint { name, rule }));
            }
            Some(K::INDEX) => return self.table_index().map(TableElement::Index),
            _ => {}
        }
        // A column that has no name of its own.
        if self.words_of(&["TIMESTAMP )", "TIMESTAMP ,"]).is_some() {
            return self.unsupported("timestamp");
        }
        let name = self.name()?;
        if !self.accept(K::AS) {
            return Ok(TableElement::Column(Box::new(self.column_from(name)?)));
        }
        let value = self.expression()?;
        let persisted = self.accept(K::PERSISTED);
        Ok(TableElement::Computed { name, value, persisted })
    }

    /// The rest of a column of which the name is taken.
    fn column_from(&mut self, name: Name) -> Result<Column> {
        let data_type = self.data_type()?;
        let collation = match self.accept(K::COLLATE) {
            true => Some(self.name()?),
            false => None,
        };
        let mut properties = Vec::new();
        while let Some(property) = self.column_property()? {
            properties.push(property);
        }
        Ok(Column { name, data_type, collation, properties })
    }

    fn column_property(&mut self) -> Result<Option<ColumnProperty>> {
        let property = match self.keyword() {
            Some(K::NULL) => {
                self.advance();
                ColumnProperty::Nullable(true)
            }
            Some(K::NOT) => {
                self.advance();
                if self.accept(K::FOR) {
                    return self.unsupported("NOT FOR REPLICATION");
                }
                self.require(K::NULL)?;
                ColumnProperty::Nullable(false)
            }
            Some(K::IDENTITY) => {
                self.advance();
                ColumnProperty::Identity(self.identity()?)
            }
            Some(K::ROWGUIDCOL) => {
                self.advance();
                ColumnProperty::RowGuid
            }
            Some(K::SPARSE) => {
                self.advance();
                ColumnProperty::Sparse
            }
            Some(K::GENERATED) => return self.unsupported("GENERATED ALWAYS"),
            Some(K::ENCRYPTION) => return self.unsupported("ENCRYPTED WITH"),
            Some(K::FILESTREAM) => return self.unsupported("FILESTREAM"),
            _ if self.words_of(&["MASKED WITH"]).is_some() => {
                return self.unsupported("MASKED WITH");
            }
            _ if self.words_of(&["ENCRYPTED WITH"]).is_some() => {
                return self.unsupported("ENCRYPTED WITH");
            }
            Some(
                K::CONSTRAINT
                | K::DEFAULT
                | K::PRIMARY
                | K::UNIQUE
                | K::CHECK
                | K::FOREIGN
                | K::REFERENCES,
            ) => {
                let name = self.constraint_name()?;
                ColumnProperty::Constraint { name, constraint: self.column_constraint()? }
            }
            _ => return Ok(None),
        };
        Ok(Some(property))
    }

    /// `[(seed, increment)]`
    fn identity(&mut self) -> Result<Option<Identity>> {
        if !self.accept_symbol(Symbol::LeftParenthesis) {
            return Ok(None);
        }
        let seed = self.signed_integer()?;
        self.require_symbol(Symbol::Comma)?;
        let increment = self.signed_integer()?;
        self.require_symbol(Symbol::RightParenthesis)?;
        Ok(Some(Identity { seed, increment }))
    }

    fn signed_integer(&mut self) -> Result<i64> {
        let negative = self.accept_symbol(Symbol::Minus);
        let value = i128::from(self.integer()?);
        match i64::try_from(if negative { -value } else { value }) {
            Ok(value) => Ok(value),
            Err(_) => self.unexpected(),
        }
    }

    /// `[CONSTRAINT name]`
    fn constraint_name(&mut self) -> Result<Option<Name>> {
        match self.accept(K::CONSTRAINT) {
            true => self.name().map(Some),
            false => Ok(None),
        }
    }

    fn column_constraint(&mut self) -> Result<ColumnConstraint> {
        match self.keyword() {
            Some(K::DEFAULT) => {
                self.advance();
                self.expression().map(ColumnConstraint::Default)
            }
            Some(K::PRIMARY | K::UNIQUE) => {
                let mut key = self.key_kind()?;
                self.key_storage(&mut key)?;
                Ok(ColumnConstraint::Key(key))
            }
            Some(K::CHECK) => self.check().map(ColumnConstraint::Check),
            _ => {
                if self.accept(K::FOREIGN) {
                    self.require(K::KEY)?;
                }
                self.references().map(ColumnConstraint::References)
            }
        }
    }

    fn table_rule(&mut self) -> Result<TableRule> {
        match self.keyword() {
            Some(K::PRIMARY | K::UNIQUE) => {
                let mut key = self.key_kind()?;
                let columns = self.parenthesized_list(Self::index_column)?;
                self.key_storage(&mut key)?;
                Ok(TableRule::Key { key, columns })
            }
            Some(K::FOREIGN) => {
                self.require_all(&[K::FOREIGN, K::KEY])?;
                let columns = self.parenthesized_list(Self::name)?;
                Ok(TableRule::ForeignKey { columns, references: self.references()? })
            }
            Some(K::DEFAULT) => {
                self.advance();
                let value = self.expression()?;
                self.require(K::FOR)?;
                Ok(TableRule::Default { value, column: self.name()? })
            }
            _ => self.check().map(TableRule::Check),
        }
    }

    /// `{PRIMARY KEY | UNIQUE} [CLUSTERED | NONCLUSTERED]`
    fn key_kind(&mut self) -> Result<Key> {
        let primary = self.accept(K::PRIMARY);
        self.require(if primary { K::KEY } else { K::UNIQUE })?;
        let clustering = self.accept_word();
        Ok(Key { primary, clustering, options: Vec::new(), filegroup: None })
    }

    /// `[WITH (..)] [ON filegroup]`
    fn key_storage(&mut self, key: &mut Key) -> Result<()> {
        key.options = self.with_index_options()?;
        key.filegroup = self.on_filegroup()?;
        Ok(())
    }

    fn check(&mut self) -> Result<Condition> {
        self.require(K::CHECK)?;
        if self.accept(K::NOT) {
            return self.unsupported("NOT FOR REPLICATION");
        }
        self.require_symbol(Symbol::LeftParenthesis)?;
        let condition = self.condition()?;
        self.require_symbol(Symbol::RightParenthesis)?;
        Ok(condition)
    }

    fn references(&mut self) -> Result<References> {
        self.require(K::REFERENCES)?;
        let table = self.object_name()?;
        let columns = self.optional_names()?;
        let mut references = References { table, columns, on_delete: None, on_update: None };
        while self.at(K::ON) {
            let action = match self.peek() {
                TokenKind::Keyword(K::DELETE) if references.on_delete.is_none() => {
                    &mut references.on_delete
                }
                TokenKind::Keyword(K::UPDATE) if references.on_update.is_none() => {
                    &mut references.on_update
                }
                _ => break,
            };
            self.advance();
            self.advance();
            *action = Some(self.referential_action()?);
        }
        Ok(references)
    }

    fn referential_action(&mut self) -> Result<ReferentialAction> {
        match self.keyword() {
            Some(K::CASCADE) => {
                self.advance();
                Ok(ReferentialAction::Cascade)
            }
            Some(K::SET) => {
                self.advance();
                match self.accept(K::DEFAULT) {
                    true => Ok(ReferentialAction::SetDefault),
                    false => self.require(K::NULL).map(|()| ReferentialAction::SetNull),
                }
            }
            _ => self.require_all(&[K::NO, K::ACTION]).map(|()| ReferentialAction::NoAction),
        }
    }

    pub(super) fn alter_table(&mut self) -> Result<StatementKind> {
        self.require(K::TABLE)?;
        let table: ObjectName = self.object_name()?;
        let action = self.alter_table_action()?;
        Ok(StatementKind::Object(ObjectStatement::AlterTable { table, action }))
    }

    fn alter_table_action(&mut self) -> Result<AlterTable> {
        let mut check = None;
        if self.accept(K::WITH) {
            check = Some(self.check_or_nocheck()?);
        }
        match self.keyword() {
            Some(K::ADD) => {
                self.advance();
                let elements = self.comma_list(Self::table_element)?;
                Ok(AlterTable::Add { check, elements })
            }
            Some(K::CHECK | K::NOCHECK) => {
                let enable = self.check_or_nocheck()?;
                self.require(K::CONSTRAINT)?;
                let constraints = match self.accept(K::ALL) {
                    true => Vec::new(),
                    false => self.comma_list(Self::name)?,
                };
                Ok(AlterTable::CheckConstraints { check, enable, constraints })
            }
            _ if check.is_some() => self.unexpected(),
            Some(K::ALTER) => {
                self.require_all(&[K::ALTER, K::COLUMN])?;
                let name = self.name()?;
                if let Some(word @ (K::ADD | K::DROP)) = self.keyword() {
                    return self.unsupported(format!("ALTER COLUMN {}", word.text()));
                }
                self.column_from(name).map(AlterTable::AlterColumn)
            }
            Some(K::DROP) => self.alter_table_drop(),
            Some(K::REBUILD) => {
                self.advance();
                self.with_index_options().map(AlterTable::Rebuild)
            }
            Some(word @ (K::SWITCH | K::SET | K::SPLIT | K::MERGE | K::ENABLE | K::DISABLE)) => {
                self.unsupported(format!("ALTER TABLE {}", word.text()))
            }
            _ => self.unexpected(),
        }
    }

    fn check_or_nocheck(&mut self) -> Result<bool> {
        match self.accept(K::NOCHECK) {
            true => Ok(false),
            false => self.require(K::CHECK).map(|()| true),
        }
    }

    fn alter_table_drop(&mut self) -> Result<AlterTable> {
        self.advance();
        if self.accept(K::COLUMN) {
            let if_exists = self.if_exists()?;
            let columns = self.comma_list(Self::name)?;
            return Ok(AlterTable::DropColumns { if_exists, columns });
        }
        self.accept(K::CONSTRAINT);
        let if_exists = self.if_exists()?;
        let constraints = self.comma_list(Self::name)?;
        Ok(AlterTable::DropConstraints { if_exists, constraints })
    }

    /// `{TABLE | VIEW} [IF EXISTS] a, b`
    pub(super) fn drop_objects(&mut self) -> Result<(bool, Vec<ObjectName>)> {
        self.advance();
        Ok((self.if_exists()?, self.comma_list(Self::object_name)?))
    }

    pub(super) fn truncate(&mut self) -> Result<StatementKind> {
        self.require_all(&[K::TRUNCATE, K::TABLE])?;
        let table = self.object_name()?;
        Ok(StatementKind::Object(ObjectStatement::TruncateTable(table)))
    }

    pub(super) fn view(&mut self, verb: ViewVerb) -> Result<StatementKind> {
        self.require_first(match verb {
            ViewVerb::Create | ViewVerb::CreateOrAlter => "CREATE VIEW",
            ViewVerb::Alter => "ALTER VIEW",
        })?;
        self.require(K::VIEW)?;
        let name = self.object_name()?;
        let columns = self.optional_names()?;
        let (mut schema_binding, mut metadata) = (false, false);
        if self.accept(K::WITH) {
            self.comma_list(|p| {
                if p.at(K::ENCRYPTION) {
                    // It hides from nobody who has the key.
                    return p.unsupported("VIEW WITH ENCRYPTION");
                }
                let is_metadata =
                    p.at_name() && p.text(p.current).eq_ignore_ascii_case("VIEW_METADATA");
                if is_metadata {
                    p.advance();
                } else {
                    p.require(K::SCHEMABINDING)?;
                }
                metadata |= is_metadata;
                schema_binding |= !is_metadata;
                Ok(())
            })?;
        }
        self.require(K::AS)?;
        let with = self.with()?;
        let query = Box::new(self.query_with(with)?);
        if !query.options.is_empty() {
            let near = "OPTION".to_owned();
            return self.fail_at(self.last, ErrorKind::SyntaxKeyword { near });
        }
        let check_option = self.at_both(K::WITH, K::CHECK);
        if check_option {
            self.require_all(&[K::WITH, K::CHECK, K::OPTION])?;
        }
        self.closed = true;
        let view = View { verb, name, columns, schema_binding, metadata, query, check_option };
        Ok(StatementKind::Object(ObjectStatement::View(view)))
    }

    pub(super) fn create_schema(&mut self) -> Result<StatementKind> {
        self.require_first("CREATE SCHEMA")?;
        self.require(K::SCHEMA)?;
        let name = self.name()?;
        let authorization = self.authorization()?;
        self.closed = true;
        Ok(StatementKind::Object(ObjectStatement::CreateSchema { name, authorization }))
    }

    pub(super) fn drop_schema(&mut self) -> Result<StatementKind> {
        self.require(K::SCHEMA)?;
        let if_exists = self.if_exists()?;
        let name = self.name()?;
        Ok(StatementKind::Object(ObjectStatement::DropSchema { if_exists, name }))
    }
}
