//! DBCC about the session and the logs: OPENTRAN, INPUTBUFFER, USEROPTIONS, SQLPERF, LOGINFO.

use pellucid_tsql::ast::{DbccArgument, DbccOption, Expression, Literal};
use pellucid_tsql::secret::redact;

use super::procedure::log_bytes;
use super::Done;
use crate::message::{table, Message};
use crate::session::Session;
use crate::values::convert::Value;
use crate::values::types::SqlType;
use crate::views::{LOG_FILE, LOG_IN_USE};

/// Source: Microsoft's "DBCC SQLPERF".
const LOG_SPACE: [(&str, SqlType); 4] = [
    ("Database Name", SqlType::SYSNAME),
    ("Log Size (MB)", SqlType::Real),
    ("Log Space Used (%)", SqlType::Real),
    ("Status", SqlType::Int),
];
/// It has no page of Microsoft's; sys.dm_db_log_info, which took its place, has the same by other names.
const LOG_INFO: [(&str, SqlType); 8] = [
    ("RecoveryUnitId", SqlType::Int),
    ("FileId", SqlType::Int),
    ("FileSize", SqlType::BigInt),
    ("StartOffset", SqlType::BigInt),
    ("FSeqNo", SqlType::Int),
    ("Status", SqlType::Int),
    ("Parity", SqlType::TinyInt),
    ("CreateLSN", SqlType::numeric(25, 0)),
];
/// Source: Microsoft's "DBCC INPUTBUFFER".
const INPUT: [(&str, SqlType); 3] = [
    ("EventType", SqlType::nvarchar(30)),
    ("Parameters", SqlType::SmallInt),
    ("EventInfo", SqlType::nvarchar(4000)),
];
/// Source: Microsoft's "DBCC USEROPTIONS".
const USER_OPTIONS: [(&str, SqlType); 2] =
    [("Set Option", SqlType::nvarchar(128)), ("Value", SqlType::nvarchar(128))];
/// Characters of a batch that are shown.
const INPUT_MOST: usize = 4000;

impl Session {
    /// The transaction of this session; none knows of those of other processes.
    pub(super) fn open_transaction(
        &mut self,
        arguments: &[DbccArgument],
        options: &[DbccOption],
    ) -> Done {
        if has(options, "TABLERESULTS") {
            return Err(Message::unsupported("DBCC OPENTRAN WITH TABLERESULTS").into());
        }
        let known = self.database_of_dbcc(arguments.first())?;
        let told = match self.transactions {
            0 => "No active open transactions.".to_owned(),
            _ => {
                let name = self.savepoints.first().filter(|name| !name.is_empty());
                format!(
                    "Transaction information for database '{}'.\n\nOldest active transaction:\n    \
                     SPID (server process ID): {}\n    Name          : {}",
                    known.name,
                    self.shared.session_id(),
                    name.map_or("user_transaction", String::as_str)
                )
            }
        };
        self.inform(Message::text(told));
        self.end_of_dbcc(has(options, "NO_INFOMSGS"));
        Ok(())
    }

    /// The batch of this session, with `***` for its secrets.
    pub(super) fn input_buffer(
        &mut self,
        arguments: &[DbccArgument],
        options: &[DbccOption],
    ) -> Done {
        let session = match arguments.first() {
            Some(DbccArgument::Literal { negative: false, value: Literal::Integer(number) }) => {
                number.parse::<i64>().unwrap_or(0)
            }
            Some(argument @ (DbccArgument::Variable(_) | DbccArgument::SystemVariable(_))) => {
                self.integer(&variable_of(argument))?
            }
            _ => {
                return Err(Message::unsupported("DBCC INPUTBUFFER of what is no number").into());
            }
        };
        if session != self.shared.session_id() {
            return Err(Message::of(table::UNKNOWN_SESSION, [&session]).into());
        }
        let text = self.frames.first().map(|frame| frame.text.to_string()).unwrap_or_default();
        let text: String = redact(&text).chars().take(INPUT_MOST).collect();
        let row =
            vec![Value::Text("Language Event".to_owned()), Value::Integer(0), Value::Text(text)];
        self.give_rows(&INPUT, vec![row])?;
        self.end_of_dbcc(has(options, "NO_INFOMSGS"));
        Ok(())
    }

    /// Of the settings those that are set, as there.
    pub(super) fn user_options(&mut self, options: &[DbccOption]) -> Done {
        let mut set = vec![
            ("textsize", "2147483647"),
            ("language", "us_english"),
            ("dateformat", "mdy"),
            ("datefirst", "7"),
            ("lock_timeout", "-1"),
        ];
        if !self.settings.quotes_are_strings {
            set.push(("quoted_identifier", "SET"));
        }
        set.push(("ansi_null_dflt_on", "SET"));
        set.push(("ansi_warnings", "SET"));
        set.push(("ansi_padding", "SET"));
        if !self.settings.nulls_are_equal {
            set.push(("ansi_nulls", "SET"));
        }
        set.push(("concat_null_yields_null", "SET"));
        if self.settings.no_count {
            set.push(("nocount", "SET"));
        }
        if self.settings.abort {
            set.push(("xact_abort", "SET"));
        }
        set.push(("isolation level", "serializable"));
        let text = |text: &str| Value::Text(text.to_owned());
        let rows = set.into_iter().map(|(name, value)| vec![text(name), text(value)]).collect();
        self.give_rows(&USER_OPTIONS, rows)?;
        self.end_of_dbcc(has(options, "NO_INFOMSGS"));
        Ok(())
    }

    /// LOGSPACE: of each database the log as it lies on the disk; all of it is in use.
    pub(super) fn log_space(&mut self, arguments: &[DbccArgument], options: &[DbccOption]) -> Done {
        let is_log_space = match arguments {
            [DbccArgument::Name(name)] => name.object.as_str().eq_ignore_ascii_case("LOGSPACE"),
            [DbccArgument::Literal { value: Literal::String(text), .. }] => {
                text.text.eq_ignore_ascii_case("LOGSPACE")
            }
            _ => false,
        };
        if !is_log_space {
            return Err(Message::unsupported("DBCC SQLPERF other than LOGSPACE").into());
        }
        let mut rows = Vec::new();
        for known in self.databases.instance.databases()? {
            let bytes = log_bytes(&known);
            let megabytes = bytes as f64 / f64::from(1 << 20);
            rows.push(vec![
                Value::Text(known.name.clone()),
                Value::Real(megabytes),
                Value::Real(if bytes > 0 { 100.0 } else { 0.0 }),
                Value::Integer(0),
            ]);
        }
        self.give_rows(&LOG_SPACE, rows)?;
        self.end_of_dbcc(has(options, "NO_INFOMSGS"));
        Ok(())
    }

    /// The log as it lies on the disk is one piece, which is in use.
    pub(super) fn log_pieces(
        &mut self,
        arguments: &[DbccArgument],
        options: &[DbccOption],
    ) -> Done {
        let known = self.database_of_dbcc(arguments.first())?;
        let row = vec![
            Value::Integer(0),
            Value::Integer(LOG_FILE),
            Value::Integer(i64::try_from(log_bytes(&known)).unwrap_or(i64::MAX)),
            Value::Integer(0),
            Value::Integer(1),
            Value::Integer(LOG_IN_USE),
            Value::Null,
            Value::Text("0".to_owned()),
        ];
        self.give_rows(&LOG_INFO, vec![row])?;
        self.end_of_dbcc(has(options, "NO_INFOMSGS"));
        Ok(())
    }

    /// Caches of the server's own, which there are not: nothing is to be emptied.
    pub(super) fn no_cache(&mut self, options: &[DbccOption]) {
        self.end_of_dbcc(has(options, "NO_INFOMSGS"));
    }
}

/// A variable as an expression; anything else is NULL.
pub(super) fn variable_of(argument: &DbccArgument) -> Expression {
    match argument {
        DbccArgument::Variable(variable) => Expression::Variable(variable.clone()),
        DbccArgument::SystemVariable(name) => Expression::SystemVariable(name.clone()),
        _ => Expression::Literal(Literal::Null),
    }
}

fn has(options: &[DbccOption], name: &str) -> bool {
    options.iter().any(|option| option.name.as_str().eq_ignore_ascii_case(name))
}
