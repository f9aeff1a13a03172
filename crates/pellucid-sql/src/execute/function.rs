//! CREATE, ALTER and DROP FUNCTION.
//!
//! Source: Microsoft's "CREATE FUNCTION". The definition is kept as it was written and translated where a query calls it.

use std::rc::Rc;

use pellucid_tsql::ast::{Function, FunctionBody, Name, ObjectName, ProcedureParameter};

use super::Done;
use crate::instance::{ModuleKind, MASTER};
use crate::message::{table, Message};
use crate::session::{sqlite_name, Session};
use crate::translate::FunctionDefinition;

impl Session {
    pub(super) fn create_function(&mut self, function: &Function) -> Done {
        if function.name.database.is_some() || function.name.server.is_some() {
            return Err(Message::of(table::NO_DATABASE_PREFIX, [&"CREATE/ALTER FUNCTION"]).into());
        }
        self.outside_transaction("CREATE/ALTER FUNCTION")?;
        let known = self.databases.current()?;
        if known.is_system() && known.id != MASTER {
            return Err(Message::unsupported(format!("functions in {}", known.name)).into());
        }
        for (at, parameter) in function.parameters.iter().enumerate() {
            let name = &parameter.variable.0;
            let is_same = |other: &ProcedureParameter| other.variable.0.eq_ignore_ascii_case(name);
            if function.parameters[..at].iter().any(is_same) {
                return Err(Message::of(table::DECLARED_TWICE, [name]).into());
            }
        }
        let kind = match &function.body {
            FunctionBody::Scalar { .. } => ModuleKind::Function,
            FunctionBody::Table(_) => ModuleKind::TableFunction,
        };
        self.check_module_name(&known, kind, function.verb, &function.name)?;
        let definition = self.definition(function.verb);
        let made = FunctionDefinition {
            database: Name::new(known.name.clone())
                .ok_or_else(|| Message::unsupported("functions in a database of this name"))?,
            function: Rc::new(function.clone()),
            ansi_nulls: !self.settings.nulls_are_equal,
            bytes: definition.len(),
        };
        self.translated(|translator| translator.function(&made))?;
        let as_set = (!self.settings.nulls_are_equal, !self.settings.quotes_are_strings);
        let name = sqlite_name(&function.name);
        let instance = &self.databases.instance;
        Ok(instance.keep_module(&known, (kind, name.as_str()), &definition, as_set)?)
    }

    pub(super) fn drop_functions(&mut self, names: &[ObjectName], if_exists: bool) -> Done {
        for name in names {
            if name.database.is_some() || name.server.is_some() {
                return Err(Message::of(table::NO_DATABASE_PREFIX, [&"DROP FUNCTION"]).into());
            }
            let known = self.databases.current()?;
            let module = self.databases.instance.module(&known, &sqlite_name(name))?;
            let kind = module.map(|module| module.kind).filter(|kind| kind.is_function());
            let kind = kind.unwrap_or(ModuleKind::Function);
            self.drop_module_of(&known, kind, name, if_exists)?;
        }
        Ok(())
    }
}
