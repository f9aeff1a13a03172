//! CREATE, ALTER and DROP: of what.

use super::Parser;
use crate::ast::{ObjectStatement, StatementKind, TriggerPlace, ViewVerb};
use crate::error::{ErrorKind, Result};
use crate::keyword::Keyword as K;
use crate::known;
use crate::lexer::TokenKind;

impl Parser<'_> {
    pub(super) fn create(&mut self) -> Result<StatementKind> {
        self.advance();
        if self.at_both(K::OR, K::ALTER) {
            self.require_all(&[K::OR, K::ALTER])?;
            return match self.keyword() {
                Some(K::VIEW) => self.view(ViewVerb::CreateOrAlter),
                Some(K::PROC | K::PROCEDURE) => self.procedure(ViewVerb::CreateOrAlter),
                Some(K::FUNCTION) => self.create_function(ViewVerb::CreateOrAlter),
                _ => self.unknown_object("CREATE OR ALTER"),
            };
        }
        match self.keyword() {
            Some(K::MASTER) => self.create_master_key(),
            Some(K::CERTIFICATE) => self.create_certificate(),
            Some(K::DATABASE) => match self.of_database() {
                Some(DatabasePart::EncryptionKey) => {
                    self.advance();
                    self.create_database_encryption_key()
                }
                Some(DatabasePart::Other) => self.unknown_object("CREATE"),
                None => self.create_database(),
            },
            Some(K::CRYPTOGRAPHIC) => self.create_provider(),
            Some(K::CREDENTIAL) => self.create_credential(),
            Some(K::ASYMMETRIC) => self.create_asymmetric_key(),
            Some(K::LOGIN) => self.create_login(),
            Some(K::TABLE) => self.create_table(),
            Some(K::UNIQUE | K::CLUSTERED | K::NONCLUSTERED | K::COLUMNSTORE | K::INDEX) => {
                self.create_index()
            }
            Some(K::VIEW) => self.view(ViewVerb::Create),
            Some(K::PROC | K::PROCEDURE) => self.procedure(ViewVerb::Create),
            Some(K::FUNCTION) => self.create_function(ViewVerb::Create),
            Some(K::SCHEMA) => self.create_schema(),
            _ => self.unknown_object("CREATE"),
        }
    }

    pub(super) fn alter(&mut self) -> Result<StatementKind> {
        self.advance();
        match self.keyword() {
            Some(K::MASTER) => self.alter_master_key(),
            Some(K::SERVICE) if self.peek() == TokenKind::Keyword(K::MASTER) => {
                self.alter_service_master_key()
            }
            Some(K::CERTIFICATE) => self.alter_certificate(),
            Some(K::DATABASE) => match self.of_database() {
                Some(DatabasePart::EncryptionKey) => {
                    self.advance();
                    self.alter_database_encryption_key()
                }
                Some(DatabasePart::Other) => self.unknown_object("ALTER"),
                None => self.alter_database(),
            },
            Some(K::LOGIN) => self.alter_login(),
            Some(K::CRYPTOGRAPHIC) => self.alter_provider(),
            Some(K::CREDENTIAL) => self.alter_credential(),
            Some(K::TABLE) => self.alter_table(),
            Some(K::INDEX) => self.alter_index(),
            Some(K::VIEW) => self.view(ViewVerb::Alter),
            Some(K::PROC | K::PROCEDURE) => self.procedure(ViewVerb::Alter),
            Some(K::FUNCTION) => self.create_function(ViewVerb::Alter),
            Some(K::ASYMMETRIC) => self.unsupported("ALTER ASYMMETRIC KEY"),
            Some(K::SCHEMA) => self.unsupported("ALTER SCHEMA"),
            Some(K::AUTHORIZATION) => self.alter_authorization(),
            _ => self.unknown_object("ALTER"),
        }
    }

    pub(super) fn drop(&mut self) -> Result<StatementKind> {
        self.advance();
        match self.keyword() {
            Some(K::MASTER) => self.drop_master_key(),
            Some(K::CERTIFICATE) => self.drop_certificate(),
            Some(K::DATABASE) => match self.of_database() {
                Some(DatabasePart::EncryptionKey) => {
                    self.advance();
                    self.drop_database_encryption_key()
                }
                Some(DatabasePart::Other) => self.unknown_object("DROP"),
                None => self.drop_database(),
            },
            Some(K::CRYPTOGRAPHIC) => self.drop_provider(),
            Some(K::CREDENTIAL) => self.drop_credential(),
            Some(K::ASYMMETRIC) => self.drop_asymmetric_key(),
            Some(K::LOGIN) => self.drop_login(),
            Some(K::TABLE) => {
                let (if_exists, tables) = self.drop_objects()?;
                Ok(StatementKind::Object(ObjectStatement::DropTables { if_exists, tables }))
            }
            Some(K::VIEW) => {
                let (if_exists, views) = self.drop_objects()?;
                Ok(StatementKind::Object(ObjectStatement::DropViews { if_exists, views }))
            }
            Some(K::PROC | K::PROCEDURE) => {
                let (if_exists, procedures) = self.drop_objects()?;
                Ok(StatementKind::Object(ObjectStatement::DropProcedures { if_exists, procedures }))
            }
            Some(K::FUNCTION) => {
                let (if_exists, functions) = self.drop_objects()?;
                Ok(StatementKind::Object(ObjectStatement::DropFunctions { if_exists, functions }))
            }
            Some(K::INDEX) => self.drop_indexes(),
            Some(K::SCHEMA) => self.drop_schema(),
            _ => match self.words_of(known::DROPS) {
                Some(what) => self.drop_absent(what),
                None => self.unknown_object("DROP"),
            },
        }
    }

    /// `TRIGGER [IF EXISTS] a, b [ON ..]`
    fn drop_absent(&mut self, what: &'static str) -> Result<StatementKind> {
        for _ in what.split(' ') {
            self.advance();
        }
        let (if_exists, names) = (self.if_exists()?, self.comma_list(Self::object_name)?);
        let on = match what == "TRIGGER" && self.at(K::ON) {
            true => Some(self.trigger_place()?),
            false => None,
        };
        let drop = ObjectStatement::DropAbsent { what, if_exists, names, on };
        Ok(StatementKind::Object(drop))
    }

    /// `{ENABLE | DISABLE} TRIGGER {a, b | ALL} ON ..`
    pub(super) fn switch_triggers(&mut self) -> Result<StatementKind> {
        let enable = self.accept(K::ENABLE);
        if !enable {
            self.require(K::DISABLE)?;
        }
        self.advance();
        let names = match self.accept(K::ALL) {
            true => Vec::new(),
            false => self.comma_list(Self::object_name)?,
        };
        let on = self.trigger_place()?;
        Ok(StatementKind::Object(ObjectStatement::SwitchTriggers { enable, names, on }))
    }

    fn trigger_place(&mut self) -> Result<TriggerPlace> {
        self.require(K::ON)?;
        if self.accept(K::DATABASE) {
            return Ok(TriggerPlace::Database);
        }
        match self.at_both(K::ALL, K::SERVER) {
            true => self.require_all(&[K::ALL, K::SERVER]).map(|()| TriggerPlace::Server),
            false => self.object_name().map(TriggerPlace::Object),
        }
    }

    /// What DATABASE is followed by, if it is not a name.
    fn of_database(&self) -> Option<DatabasePart> {
        let mut ahead = self.lexer.clone();
        let mut next = || ahead.token().ok().map(|token| token.kind);
        match (next()?, next()?) {
            (TokenKind::Keyword(K::ENCRYPTION), TokenKind::Keyword(K::KEY)) => {
                Some(DatabasePart::EncryptionKey)
            }
            (
                TokenKind::Keyword(K::SCOPED),
                TokenKind::Keyword(K::CREDENTIAL | K::CONFIGURATION),
            )
            | (TokenKind::Keyword(K::AUDIT), TokenKind::Keyword(K::SPECIFICATION)) => {
                Some(DatabasePart::Other)
            }
            _ => None,
        }
    }

    /// What Pellucid cannot create, or what nobody can.
    fn unknown_object<T>(&self, verb: &str) -> Result<T> {
        let known = self.words_of(known::OBJECTS);
        match (known, self.current.kind) {
            (Some(known), _) => self.unsupported(format!("{verb} {known}")),
            (None, TokenKind::Name) => {
                self.fail(ErrorKind::UnknownObject { word: self.near(self.current) })
            }
            _ => self.unexpected(),
        }
    }
}

/// What belongs to a database and is not one.
enum DatabasePart {
    EncryptionKey,
    Other,
}
