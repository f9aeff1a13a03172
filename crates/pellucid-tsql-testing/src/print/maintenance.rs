//! DBCC, ALTER INDEX, UPDATE STATISTICS and their like.

use pellucid_tsql::ast::{
    DbccArgument, DbccOption, IndexAction, IndexOption, MaintenanceStatement, Partition,
    StatisticsOption,
};

use super::{put, If, List, Listed, Maybe, OnOff, One, Print, Printer};

impl Print for MaintenanceStatement {
    fn print(&self, to: &mut Printer) {
        match self {
            MaintenanceStatement::Dbcc { command, arguments, options } => {
                put!(to, "DBCC ", command, Listed(" (", arguments, ")"));
                put!(to, Listed(" WITH ", options, ""));
            }
            MaintenanceStatement::AlterIndex { index, table, action } => {
                put!(to, "ALTER INDEX ");
                match index {
                    Some(index) => index.print(to),
                    None => put!(to, "ALL"),
                }
                put!(to, " ON ", table, " ", action);
            }
            MaintenanceStatement::UpdateStatistics { table, targets, options } => {
                put!(to, "UPDATE STATISTICS ", table, Listed(" (", targets, ")"));
                put!(to, Listed(" WITH ", options, ""));
            }
            MaintenanceStatement::Checkpoint(seconds) => {
                put!(to, "CHECKPOINT", Maybe(" ", seconds));
            }
            MaintenanceStatement::Reconfigure { with_override } => {
                put!(to, "RECONFIGURE", If(*with_override, " WITH OVERRIDE"));
            }
        }
    }
}

impl Print for DbccArgument {
    fn print(&self, to: &mut Printer) {
        match self {
            DbccArgument::Name(name) => name.print(to),
            DbccArgument::Literal { negative, value } => put!(to, If(*negative, "-"), value),
            DbccArgument::Variable(variable) => variable.print(to),
            DbccArgument::SystemVariable(name) => put!(to, "@@", name.as_str()),
        }
    }
}

impl Print for DbccOption {
    fn print(&self, to: &mut Printer) {
        put!(to, self.name, Maybe(" = ", &self.value));
    }
}

impl Print for IndexAction {
    fn print(&self, to: &mut Printer) {
        match self {
            IndexAction::Rebuild { partition, options } => {
                put!(to, "REBUILD", Maybe(" PARTITION = ", partition), Options(options));
            }
            IndexAction::Reorganize { partition, options } => {
                put!(to, "REORGANIZE", Maybe(" PARTITION = ", partition), Options(options));
            }
            IndexAction::Disable => put!(to, "DISABLE"),
            IndexAction::Set(options) => put!(to, "SET (", List(options), ")"),
        }
    }
}

impl Print for Partition {
    fn print(&self, to: &mut Printer) {
        match self {
            Partition::All => put!(to, "ALL"),
            Partition::Number(number) => number.print(to),
        }
    }
}

/// `WITH (..)` behind an index or a table.
pub(super) struct Options<'a>(pub &'a [IndexOption]);

impl Print for Options<'_> {
    fn print(&self, to: &mut Printer) {
        put!(to, Listed(" WITH (", self.0, ")"));
    }
}

impl Print for IndexOption {
    fn print(&self, to: &mut Printer) {
        match self {
            IndexOption::Switch { switch, on } => put!(to, One(*switch), " = ", OnOff(*on)),
            IndexOption::FillFactor(percent) => put!(to, "FILLFACTOR = ", percent),
            IndexOption::MaxDop(most) => put!(to, "MAXDOP = ", most),
            IndexOption::MaxDurationMinutes(most) => put!(to, "MAX_DURATION = ", most, " MINUTES"),
            IndexOption::CompressionDelayMinutes(delay) => {
                put!(to, "COMPRESSION_DELAY = ", delay, " MINUTES");
            }
            IndexOption::DataCompression(how) => put!(to, "DATA_COMPRESSION = ", One(*how)),
        }
    }
}

impl Print for StatisticsOption {
    fn print(&self, to: &mut Printer) {
        match self {
            StatisticsOption::FullScan => put!(to, "FULLSCAN"),
            StatisticsOption::Resample => put!(to, "RESAMPLE"),
            StatisticsOption::SamplePercent(percent) => put!(to, "SAMPLE ", percent, " PERCENT"),
            StatisticsOption::SampleRows(rows) => put!(to, "SAMPLE ", rows, " ROWS"),
            StatisticsOption::NoRecompute => put!(to, "NORECOMPUTE"),
            StatisticsOption::Scope(scope) => put!(to, One(*scope)),
            StatisticsOption::Incremental(on) => put!(to, "INCREMENTAL = ", OnOff(*on)),
            StatisticsOption::MaxDop(most) => put!(to, "MAXDOP = ", most),
        }
    }
}
