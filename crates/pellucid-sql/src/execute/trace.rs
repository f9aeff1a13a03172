//! DBCC TRACEON, TRACEOFF, TRACESTATUS, DBINFO
//!
//! Trace flags change how SQL Server works inside. Nothing here has one: they are remembered by the session, and shown.

use pellucid_tsql::ast::{DbccArgument, DbccOption, Literal};

use super::Done;
use crate::message::Message;
use crate::session::Session;
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// Source: Microsoft's "DBCC TRACESTATUS".
const STATUS: [(&str, SqlType); 4] = [
    ("TraceFlag", SqlType::SmallInt),
    ("Status", SqlType::SmallInt),
    ("Global", SqlType::SmallInt),
    ("Session", SqlType::SmallInt),
];

/// What SQL Server gives WITH TABLERESULTS.
const INFO: [(&str, SqlType); 4] = [
    ("ParentObject", SqlType::varchar(255)),
    ("Object", SqlType::varchar(255)),
    ("Field", SqlType::varchar(255)),
    ("VALUE", SqlType::varchar(255)),
];

/// The flag that stands for all of the server.
const GLOBAL: i64 = -1;

impl Session {
    pub(super) fn trace_on_or_off(
        &mut self,
        arguments: &[DbccArgument],
        options: &[DbccOption],
        on: bool,
    ) -> Done {
        let numbers = self.flags(arguments)?;
        let is_global = numbers.contains(&GLOBAL);
        for flag in numbers.into_iter().filter(|flag| *flag != GLOBAL) {
            self.shared.set_trace_flag(flag, is_global, on);
        }
        self.end_of_dbcc(is_quiet(options));
        Ok(())
    }

    /// The flags that are named, else those that are on.
    pub(super) fn trace_status(
        &mut self,
        arguments: &[DbccArgument],
        options: &[DbccOption],
    ) -> Done {
        let numbers = self.flags(arguments)?;
        let set = self.shared.trace_flags();
        let named: Vec<i64> = numbers.iter().copied().filter(|flag| *flag != GLOBAL).collect();
        let shown = match named.is_empty() {
            true => set.iter().map(|(flag, _)| *flag).collect(),
            false => named,
        };
        let row = |flag: i64| {
            let found = set.iter().find(|(other, _)| *other == flag).map(|(_, global)| *global);
            [
                flag,
                found.is_some().into(),
                (found == Some(true)).into(),
                (found == Some(false)).into(),
            ]
            .map(Value::Integer)
            .into()
        };
        let rows: Vec<Vec<Value>> = shown.into_iter().map(row).collect();
        if !rows.is_empty() {
            self.give_rows(&STATUS, rows)?;
        }
        self.end_of_dbcc(is_quiet(options));
        Ok(())
    }

    fn flags(&mut self, arguments: &[DbccArgument]) -> Done<Vec<i64>> {
        let mut flags = Vec::new();
        for argument in arguments {
            flags.push(match argument {
                DbccArgument::Literal { negative, value: Literal::Integer(digits) } => {
                    let number: i64 = digits.parse().unwrap_or(0);
                    if *negative {
                        -number
                    } else {
                        number
                    }
                }
                _ => return Err(Message::unsupported("a trace flag that is no number").into()),
            });
        }
        Ok(flags)
    }

    /// Of the header of a database what has a source here. CHECKDB's last good run is what scripts look for.
    pub(super) fn database_info(
        &mut self,
        arguments: &[DbccArgument],
        options: &[DbccOption],
    ) -> Done {
        let has_table =
            options.iter().any(|option| option.name.as_str().eq_ignore_ascii_case("TABLERESULTS"));
        if !has_table {
            return Err(Message::unsupported("DBCC DBINFO without TABLERESULTS").into());
        }
        let known = self.database_of_dbcc(arguments.first())?;
        let good = self.databases.good_check(&known).to_iso(SqlType::DateTime).replace('T', " ");
        let fields = [
            ("dbi_dbid", known.id.to_string()),
            ("dbi_cmptlevel", known.compatibility_level.to_string()),
            ("dbi_crdate", known.created.clone()),
            ("dbi_dbname", known.name.clone()),
            ("dbi_dbccLastKnownGood", good),
        ];
        let rows = fields.map(|(field, value)| {
            ["DBINFO STRUCTURE:", "DBINFO", field, value.as_str()]
                .map(|text| Value::Text(text.to_owned()))
                .into()
        });
        self.give_rows(&INFO, rows.into())?;
        self.end_of_dbcc(is_quiet(options));
        Ok(())
    }
}

fn is_quiet(options: &[DbccOption]) -> bool {
    options.iter().any(|option| option.name.as_str().eq_ignore_ascii_case("NO_INFOMSGS"))
}
