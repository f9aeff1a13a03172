//! Statements out of bytes.

use pellucid_tsql::ast::*;
use pellucid_tsql::secret::Secret;

use super::Choices;

/// Where a statement stands: what only fits in a loop or a CATCH is not made elsewhere.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    in_loop: bool,
    in_catch: bool,
    in_module: bool,
}

impl Choices<'_> {
    /// A batch of one to four statements.
    pub fn batch(&mut self) -> Vec<Statement> {
        match self.below(16) {
            15 => vec![self.alone().into()],
            _ => self.list(1, |c| c.statement(Place::default())),
        }
    }

    /// What has to be alone in its batch.
    fn alone(&mut self) -> StatementKind {
        let verb = [ViewVerb::Create, ViewVerb::CreateOrAlter, ViewVerb::Alter][self.below(3)];
        let alone = match self.below(4) {
            0 => ObjectStatement::Procedure(Box::new(Procedure {
                verb,
                name: self.object(),
                parameters: self.list(0, |c| ProcedureParameter {
                    variable: c.variable(),
                    data_type: c.data_type(),
                    default: c.maybe(|c| Expression::Literal(Literal::String(c.string()))),
                    output: c.flag(),
                }),
                recompile: self.flag(),
                body: self.list(0, |c| c.statement(Place { in_module: true, ..Place::default() })),
            })),
            1 => ObjectStatement::Function(Box::new(Function {
                verb,
                name: self.object(),
                parameters: self.list(0, |c| ProcedureParameter {
                    variable: c.variable(),
                    data_type: c.data_type(),
                    default: c.maybe(|c| Expression::Literal(Literal::String(c.string()))),
                    output: false,
                }),
                schema_binding: self.flag(),
                null_on_null: self.flag(),
                body: match self.flag() {
                    true => FunctionBody::Scalar {
                        data_type: self.data_type(),
                        statements: self.list(1, |c| {
                            c.statement(Place { in_module: true, ..Place::default() })
                        }),
                    },
                    false => {
                        let mut query = self.query();
                        query.with = self.with();
                        query.options.clear();
                        FunctionBody::Table(Box::new(query))
                    }
                },
            })),
            2 => ObjectStatement::CreateSchema {
                name: self.name(),
                authorization: self.maybe(Self::name),
            },
            _ => {
                let mut query = self.query();
                query.with = self.with();
                query.options.clear();
                ObjectStatement::View(View {
                    verb,
                    name: self.object(),
                    columns: self.names(0),
                    schema_binding: self.flag(),
                    metadata: self.flag(),
                    query: Box::new(query),
                    check_option: self.flag(),
                })
            }
        };
        StatementKind::Object(alone)
    }

    pub(super) fn statement(&mut self, place: Place) -> Statement {
        self.deeper(|c| StatementKind::Control(Control::Print(c.expression())), |c| c.kind(place))
            .into()
    }

    fn kind(&mut self, place: Place) -> StatementKind {
        match self.below(20) {
            0 => StatementKind::MasterKey(self.master_key()),
            1 => StatementKind::Certificate(self.certificate()),
            2 => StatementKind::DatabaseEncryptionKey(self.database_key()),
            3 => StatementKind::Provider(self.provider()),
            4 => StatementKind::Backup(Box::new(self.backup())),
            5 => StatementKind::Restore(Box::new(self.restore())),
            6 => StatementKind::Inspect(Box::new(Inspect {
                kind: self.word(),
                devices: self.list(1, Self::device),
                options: self.list(0, Self::restore_option),
            })),
            7 => StatementKind::Database(self.database()),
            8 => StatementKind::Object(self.object_statement()),
            9 => StatementKind::Maintenance(self.maintenance()),
            10 => {
                let mut query = self.query();
                query.with = self.with();
                StatementKind::Select(Box::new(query))
            }
            11 => StatementKind::Insert(Box::new(self.insert())),
            12 => StatementKind::Update(Box::new(Update {
                with: self.with(),
                top: self.maybe(|c| Top { with_ties: false, ..c.top() }),
                target: self.target(),
                set: self.list(1, Self::set_clause),
                output: self.output(),
                from: self.sources(),
                filter: self.maybe(Self::condition),
                options: self.options(),
            })),
            13 => StatementKind::Delete(Box::new(Delete {
                with: self.with(),
                top: self.maybe(|c| Top { with_ties: false, ..c.top() }),
                target: self.target(),
                output: self.output(),
                from: self.sources(),
                filter: self.maybe(Self::condition),
                options: self.options(),
            })),
            14 => StatementKind::Execute(Box::new(self.execute())),
            15 => StatementKind::Declare(self.list(1, |c| match c.below(3) {
                0 => Declaration::Table { variable: c.variable(), elements: c.elements() },
                1 => Declaration::Cursor(c.variable()),
                _ => Declaration::Scalar {
                    variable: c.variable(),
                    data_type: c.data_type(),
                    value: c.maybe(Self::expression),
                },
            })),
            16 => StatementKind::Session(self.session()),
            17 => StatementKind::Transaction(self.transaction()),
            18 => StatementKind::Cursor(self.cursor_statement()),
            _ => StatementKind::Control(self.control(place)),
        }
    }

    fn secret(&mut self) -> Secret {
        Secret::new(self.string().text)
    }

    fn master_key(&mut self) -> MasterKeyStatement {
        use MasterKeyStatement::*;
        let (force, file, password) = (self.flag(), self.string(), self.secret());
        let by = match self.flag() {
            true => MasterKeyEncryption::ServiceMasterKey,
            false => MasterKeyEncryption::Password(self.secret()),
        };
        match self.below(12) {
            0 => RegenerateService { force },
            1 => BackupService { file, password },
            2 => RestoreService { file, password, force },
            3 => Create { password: self.maybe(Self::secret) },
            4 => Open { password },
            5 => Close,
            6 => Drop,
            7 => Regenerate { force, password },
            8 => AddEncryption(by),
            9 => DropEncryption(by),
            10 => Backup { file, password },
            _ => Restore { file, decryption: password, encryption: self.secret(), force },
        }
    }

    fn private_key(&mut self) -> PrivateKey {
        let source = match self.flag() {
            true => PrivateKeySource::File(self.string()),
            false => PrivateKeySource::Binary(Secret::new("00FF".to_owned())),
        };
        PrivateKey {
            source: Some(source),
            decryption: self.maybe(Self::secret),
            encryption: self.maybe(Self::secret),
            algorithm: self.maybe(Self::string),
        }
    }

    fn format(&mut self) -> CertificateFormat {
        [CertificateFormat::Der, CertificateFormat::Pfx][self.below(2)]
    }

    fn certificate(&mut self) -> CertificateStatement {
        let name = self.name();
        match self.below(4) {
            0 => CertificateStatement::Drop { name },
            1 => CertificateStatement::Backup(BackupCertificate {
                name,
                file: self.string(),
                format: self.maybe(Self::format),
                private_key: self.maybe(Self::private_key),
            }),
            2 => {
                let action = match self.below(3) {
                    0 => AlterCertificate::RemovePrivateKey,
                    1 => AlterCertificate::PrivateKey(self.private_key()),
                    _ => AlterCertificate::ActiveForBeginDialog(self.flag()),
                };
                CertificateStatement::Alter { name, action }
            }
            _ => {
                let source = match self.below(4) {
                    0 => CertificateSource::Assembly(self.name()),
                    1 => CertificateSource::File {
                        executable: self.flag(),
                        path: self.string(),
                        format: self.maybe(Self::format),
                        private_key: self.maybe(Self::private_key),
                    },
                    2 => CertificateSource::Binary {
                        bytes: self.binary(),
                        private_key: self.maybe(Self::private_key),
                    },
                    _ => CertificateSource::SelfSigned {
                        password: self.maybe(Self::secret),
                        subject: self.string(),
                        start_date: self.maybe(Self::string),
                        expiry_date: self.maybe(Self::string),
                    },
                };
                CertificateStatement::Create(CreateCertificate {
                    name,
                    authorization: self.maybe(Self::name),
                    source,
                    active_for_begin_dialog: self.maybe(Self::flag),
                })
            }
        }
    }

    fn encryptor(&mut self) -> Encryptor {
        match self.flag() {
            true => Encryptor::AsymmetricKey(self.name()),
            false => Encryptor::Certificate(self.name()),
        }
    }

    fn database_key(&mut self) -> DatabaseEncryptionKeyStatement {
        use DatabaseEncryptionKeyStatement::*;
        match self.below(4) {
            0 => Drop,
            1 => Create { algorithm: self.word(), encryptor: self.encryptor() },
            2 => Regenerate { algorithm: self.word() },
            _ => EncryptBy(self.encryptor()),
        }
    }

    fn provider(&mut self) -> ProviderStatement {
        use ProviderStatement::*;
        let name = self.name();
        match self.below(11) {
            8 => AlterProvider {
                name,
                change: match self.below(3) {
                    0 => ProviderChange::File(self.string()),
                    one => ProviderChange::Enable(one == 1),
                },
            },
            9 => {
                AlterCredential { name, identity: self.string(), secret: self.maybe(Self::secret) }
            }
            10 => DropLogin { name },
            0 => DropProvider { name },
            1 => CreateProvider { name, file: self.string() },
            2 => CreateCredential {
                name,
                identity: self.string(),
                secret: self.maybe(Self::secret),
                provider: self.maybe(Self::name),
            },
            3 => DropCredential { name },
            4 => CreateAsymmetricKey {
                name,
                authorization: self.maybe(Self::name),
                provider: self.name(),
                options: self.list(1, |c| match c.below(3) {
                    0 => AsymmetricKeyOption::Algorithm(c.word()),
                    1 => AsymmetricKeyOption::ProviderKeyName(c.string()),
                    _ => AsymmetricKeyOption::OpenExisting(c.flag()),
                }),
            },
            5 => DropAsymmetricKey { name, remove_provider_key: self.flag() },
            6 => CreateLogin { name, key: self.name() },
            _ => LoginCredential { login: name, add: self.flag(), credential: self.name() },
        }
    }

    fn target(&mut self) -> ChangeTarget {
        match self.flag() {
            true => ChangeTarget::Variable(self.variable()),
            false => ChangeTarget::Table { name: self.object(), hints: self.hints() },
        }
    }

    fn insert(&mut self) -> Insert {
        let source = match self.below(4) {
            0 => InsertSource::DefaultValues,
            1 => InsertSource::Values(self.list(1, |c| c.list(1, |c| c.maybe(Self::expression)))),
            2 => InsertSource::Query(Box::new(self.query())),
            _ => InsertSource::Execute(Box::new(self.execute())),
        };
        Insert {
            with: self.with(),
            top: self.maybe(|c| Top { with_ties: false, ..c.top() }),
            target: self.target(),
            columns: self.names(0),
            output: self.output(),
            source,
        }
    }

    fn output(&mut self) -> Vec<OutputClause> {
        let mut clauses = Vec::new();
        if self.below(4) == 0 {
            let target = match self.flag() {
                true => ChangeTarget::Variable(self.variable()),
                false => ChangeTarget::Table { name: self.object(), hints: Vec::new() },
            };
            let into = Some(OutputInto { target, columns: self.names(0) });
            clauses.push(OutputClause { items: self.list(1, Self::output_item), into });
        }
        if self.below(4) == 0 {
            clauses.push(OutputClause { items: self.list(1, Self::output_item), into: None });
        }
        clauses
    }

    fn output_item(&mut self) -> SelectItem {
        let own = if self.flag() { "inserted" } else { "deleted" };
        let table = Name::new(own).unwrap_or_else(|| self.name());
        match self.below(3) {
            0 => SelectItem::Star(Some(table.into())),
            // Without an alias a query in parentheses behind it would be its arguments.
            1 => SelectItem::Value { value: self.expression(), alias: Some(self.name()) },
            _ => {
                let column = ColumnName { table: Some(table.into()), column: self.name() };
                SelectItem::Value {
                    value: Expression::Column(Box::new(column)),
                    alias: Some(self.name()),
                }
            }
        }
    }

    fn set_clause(&mut self) -> SetClause {
        let target = match self.below(3) {
            0 => SetTarget::Column(self.column()),
            1 => SetTarget::Variable(self.variable()),
            _ => SetTarget::Both(self.variable(), self.column()),
        };
        SetClause { target, operator: self.assignment(), value: self.maybe(Self::expression) }
    }

    fn execute(&mut self) -> Execute {
        if self.below(4) == 3 {
            return Execute::Statements(self.expression());
        }
        let procedure = match self.below(4) {
            0 => ProcedureName::Variable(self.variable()),
            _ => ProcedureName::Name(self.object()),
        };
        let positional = self.list(0, |c| Argument { parameter: None, value: c.argument() });
        let named = self.list(0, |c| {
            let parameter = Some(c.variable());
            Argument { parameter, value: c.argument() }
        });
        let arguments = positional.into_iter().chain(named).collect();
        Execute::Procedure { result: self.maybe(Self::variable), procedure, arguments }
    }

    fn argument(&mut self) -> ArgumentValue {
        match self.below(5) {
            0 => {
                let (negative, value) = self.signed();
                ArgumentValue::Literal { negative, value }
            }
            1 => ArgumentValue::Word(self.name()),
            2 => ArgumentValue::Variable { variable: self.variable(), output: self.flag() },
            3 => ArgumentValue::SystemVariable("SPID".to_owned()),
            _ => ArgumentValue::Default,
        }
    }

    fn session(&mut self) -> SessionStatement {
        use SessionStatement::*;
        match self.below(9) {
            6 => Revert,
            7 => ExecuteAs(match self.below(3) {
                0 => Principal::Caller,
                1 => Principal::Login(self.or_variable(Self::string)),
                _ => Principal::User(self.or_variable(Self::string)),
            }),
            0 => Use(self.name()),
            1 => SetVariable {
                variable: self.variable(),
                operator: self.assignment(),
                value: self.expression(),
            },
            2 => SetStatistics { kinds: self.words(1), on: self.flag() },
            3 => SetSwitches { switches: self.words(1), on: self.flag() },
            4 => {
                let value = match self.below(4) {
                    0 => SettingValue::Number { negative: self.flag(), value: self.number() },
                    1 => SettingValue::Binary(self.binary()),
                    2 => SettingValue::Text(self.string()),
                    _ => SettingValue::Word(self.or_variable(Self::name)),
                };
                SetValue { setting: self.word(), value }
            }
            5 => SetIsolation(
                [
                    IsolationLevel::ReadCommitted,
                    IsolationLevel::ReadUncommitted,
                    IsolationLevel::RepeatableRead,
                    IsolationLevel::Snapshot,
                    IsolationLevel::Serializable,
                ][self.below(5)],
            ),
            _ => SetIdentityInsert { table: self.object(), on: self.flag() },
        }
    }

    fn transaction(&mut self) -> TransactionStatement {
        use TransactionStatement::*;
        let name = self.maybe(|c| c.or_variable(Self::name));
        match self.below(4) {
            0 => Commit { name },
            1 => Rollback { name },
            2 => Save { name: self.or_variable(Self::name) },
            _ => {
                let mark =
                    if name.is_some() { self.maybe(|c| c.maybe(Self::string)) } else { None };
                Begin { name, mark }
            }
        }
    }

    fn cursor_statement(&mut self) -> CursorStatement {
        let cursor = |c: &mut Self| {
            let mut query = c.query();
            query.with = c.with();
            let update = c.maybe(|c| c.list(0, Self::column));
            Box::new(Cursor { options: c.words(0), query, update })
        };
        match self.below(6) {
            0 => CursorStatement::Declare { name: self.name(), cursor: cursor(self) },
            1 => CursorStatement::Assign { variable: self.variable(), cursor: cursor(self) },
            2 => CursorStatement::Open(self.cursor_name()),
            3 => CursorStatement::Close(self.cursor_name()),
            4 => CursorStatement::Deallocate(self.cursor_name()),
            _ => {
                let number = Expression::Variable(self.variable());
                let direction = match self.below(6) {
                    0 => FetchDirection::Next,
                    1 => FetchDirection::Prior,
                    2 => FetchDirection::First,
                    3 => FetchDirection::Last,
                    4 => FetchDirection::Absolute(number),
                    _ => FetchDirection::Relative(number),
                };
                let (cursor, into) = (self.cursor_name(), self.list(0, Self::variable));
                CursorStatement::Fetch(Box::new(Fetch { direction, cursor, into }))
            }
        }
    }

    fn cursor_name(&mut self) -> CursorName {
        match self.flag() {
            true => CursorName::Variable(self.variable()),
            false => CursorName::Named { global: self.flag(), name: self.name() },
        }
    }

    fn control(&mut self, place: Place) -> Control {
        match self.below(14) {
            0 => Control::Print(self.expression()),
            1 | 2 => {
                let then = Box::new(self.statement(place));
                let otherwise = match ends_open(&then) {
                    true => None,
                    false => self.maybe(|c| Box::new(c.statement(place))),
                };
                Control::If { condition: self.condition(), then, otherwise }
            }
            3 => Control::While {
                condition: self.condition(),
                body: Box::new(self.statement(Place { in_loop: true, ..place })),
            },
            4 | 5 => Control::Block(self.list(1, |c| c.statement(place))),
            6 => Control::Try {
                body: self.list(1, |c| c.statement(place)),
                catch: self.list(0, |c| c.statement(Place { in_catch: true, ..place })),
            },
            7 if place.in_loop => [Control::Break, Control::Continue][self.below(2)].clone(),
            8 if place.in_catch => Control::Throw(None),
            9 => Control::Throw(Some(Throw {
                number: self.count(),
                message: self.text(),
                state: self.count(),
            })),
            10 => Control::RaiseError(Box::new(RaiseError {
                message: self.expression(),
                severity: self.expression(),
                state: self.expression(),
                arguments: self.list(0, Self::expression),
                options: self.words(0),
            })),
            11 => Control::WaitFor { kind: self.word(), time: self.text() },
            12 => Control::Goto(self.name()),
            13 => Control::Label(self.name()),
            _ => Control::Return(match place.in_module {
                true => self.maybe(|c| Expression::Variable(c.variable())),
                false => None,
            }),
        }
    }
}

/// Whether an ELSE behind it would belong to it.
fn ends_open(statement: &Statement) -> bool {
    match &statement.kind {
        StatementKind::Control(Control::If { otherwise, .. }) => {
            otherwise.as_ref().is_none_or(|otherwise| ends_open(otherwise))
        }
        StatementKind::Control(Control::While { body, .. }) => ends_open(body),
        _ => false,
    }
}
