//! Functions about objects that the catalog views answer: each is a query of those, in the language itself.
//!
//! Source: Microsoft's "Metadata functions" and the pages of the functions. A property that the text does not name is NULL.

use std::collections::HashMap;

use pellucid_tsql::ast::{Expression, StatementKind};

use super::function::counted;
use super::{visit, Typed, View, Work};
use crate::message::{Message, Result};
use crate::values::types::SqlType;

/// One of them.
pub(crate) struct MetadataFunction {
    /// In capitals.
    pub name: &'static str,
    parameters: &'static [(&'static str, SqlType)],
    text: &'static str,
}

const NAME: SqlType = SqlType::nvarchar(776);
const INT: SqlType = SqlType::Int;

/// Of an object of the current database.
const OF_OBJECT: &str = "SELECT CASE UPPER(@property)
    WHEN 'ISTABLE' THEN CASE WHEN o.type IN ('U', 'S') THEN 1 ELSE 0 END
    WHEN 'ISUSERTABLE' THEN CASE o.type WHEN 'U' THEN 1 ELSE 0 END
    WHEN 'ISVIEW' THEN CASE o.type WHEN 'V' THEN 1 ELSE 0 END
    WHEN 'ISPROCEDURE' THEN CASE o.type WHEN 'P' THEN 1 ELSE 0 END
    WHEN 'ISSCALARFUNCTION' THEN CASE o.type WHEN 'FN' THEN 1 ELSE 0 END
    WHEN 'ISINLINEFUNCTION' THEN CASE o.type WHEN 'IF' THEN 1 ELSE 0 END
    WHEN 'ISTABLEFUNCTION' THEN CASE o.type WHEN 'IF' THEN 1 ELSE 0 END
    WHEN 'ISEXECUTED' THEN CASE WHEN o.type IN ('P', 'FN', 'IF') THEN 1 ELSE 0 END
    WHEN 'ISPRIMARYKEY' THEN CASE o.type WHEN 'PK' THEN 1 ELSE 0 END
    WHEN 'ISUNIQUECNST' THEN CASE o.type WHEN 'UQ' THEN 1 ELSE 0 END
    WHEN 'ISCONSTRAINT' THEN CASE WHEN o.type IN ('PK', 'UQ', 'F', 'C', 'D') THEN 1 ELSE 0 END
    WHEN 'ISMSSHIPPED' THEN CAST(o.is_ms_shipped AS int)
    WHEN 'ISSYSTEMTABLE' THEN 0 WHEN 'ISTRIGGER' THEN 0 WHEN 'ISCHECKCNST' THEN 0 WHEN 'ISDEFAULTCNST' THEN 0
    WHEN 'ISFOREIGNKEY' THEN 0 WHEN 'ISEXTENDEDPROC' THEN 0 WHEN 'ISREPLPROC' THEN 0 WHEN 'ISRULE' THEN 0
    WHEN 'ISQUEUE' THEN 0 WHEN 'EXECISSTARTUP' THEN 0 WHEN 'TABLEISFAKE' THEN 0
    WHEN 'ISANSINULLSON' THEN 1 WHEN 'ISQUOTEDIDENTON' THEN 1
    WHEN 'EXECISANSINULLSON' THEN 1 WHEN 'EXECISQUOTEDIDENTON' THEN 1
    WHEN 'OWNERID' THEN 1
    WHEN 'SCHEMAID' THEN o.schema_id
    WHEN 'TABLEHASPRIMARYKEY' THEN CASE WHEN EXISTS (SELECT * FROM sys.key_constraints k
        WHERE k.parent_object_id = o.object_id AND k.type = 'PK') THEN 1 ELSE 0 END
    WHEN 'TABLEHASUNIQUECNST' THEN CASE WHEN EXISTS (SELECT * FROM sys.key_constraints k
        WHERE k.parent_object_id = o.object_id AND k.type = 'UQ') THEN 1 ELSE 0 END
    WHEN 'TABLEHASIDENTITY' THEN CASE WHEN EXISTS (SELECT * FROM sys.columns c
        WHERE c.object_id = o.object_id AND c.is_identity = 1) THEN 1 ELSE 0 END
    WHEN 'TABLEHASINDEX' THEN CASE WHEN EXISTS (SELECT * FROM sys.indexes i
        WHERE i.object_id = o.object_id AND i.index_id > 0) THEN 1 ELSE 0 END
    WHEN 'TABLEHASCLUSTINDEX' THEN CASE WHEN EXISTS (SELECT * FROM sys.indexes i
        WHERE i.object_id = o.object_id AND i.index_id = 1) THEN 1 ELSE 0 END
    WHEN 'TABLEHASNONCLUSTINDEX' THEN CASE WHEN EXISTS (SELECT * FROM sys.indexes i
        WHERE i.object_id = o.object_id AND i.index_id > 1) THEN 1 ELSE 0 END
    WHEN 'TABLEHASFOREIGNKEY' THEN CASE WHEN EXISTS (SELECT * FROM sys.foreign_keys f
        WHERE f.parent_object_id = o.object_id) THEN 1 ELSE 0 END
    WHEN 'TABLEHASFOREIGNREF' THEN CASE WHEN EXISTS (SELECT * FROM sys.foreign_keys f
        WHERE f.referenced_object_id = o.object_id) THEN 1 ELSE 0 END
    WHEN 'TABLEHASCHECKCNST' THEN CASE WHEN EXISTS (SELECT * FROM sys.check_constraints k
        WHERE k.parent_object_id = o.object_id) THEN 1 ELSE 0 END
    WHEN 'TABLEHASDEFAULTCNST' THEN CASE WHEN EXISTS (SELECT * FROM sys.default_constraints d
        WHERE d.parent_object_id = o.object_id) THEN 1 ELSE 0 END
    END AS v FROM sys.all_objects o WHERE o.object_id = @id";

pub(crate) const METADATA: [MetadataFunction; 11] = [
    MetadataFunction {
        name: "COLUMNPROPERTY",
        parameters: &[("id", INT), ("column", NAME), ("property", NAME)],
        text: "SELECT CASE UPPER(@property)
            WHEN 'ISIDENTITY' THEN CAST(c.is_identity AS int) WHEN 'ISCOMPUTED' THEN CAST(c.is_computed AS int)
            WHEN 'ALLOWSNULL' THEN CAST(c.is_nullable AS int) WHEN 'COLUMNID' THEN c.column_id
            WHEN 'ORDINAL' THEN c.column_id WHEN 'SCALE' THEN CAST(c.scale AS int)
            WHEN 'PRECISION' THEN CASE WHEN c.precision > 0 THEN CAST(c.precision AS int)
                WHEN c.max_length > 0 AND TYPE_NAME(c.system_type_id) IN ('nchar', 'nvarchar') THEN c.max_length / 2
                ELSE CAST(c.max_length AS int) END
            WHEN 'CHARMAXLEN' THEN CASE WHEN c.collation_name IS NULL THEN NULL
                WHEN c.max_length > 0 AND TYPE_NAME(c.system_type_id) IN ('nchar', 'nvarchar') THEN c.max_length / 2
                ELSE CAST(c.max_length AS int) END
            WHEN 'ISROWGUIDCOL' THEN 0 WHEN 'ISSPARSE' THEN 0 WHEN 'ISHIDDEN' THEN 0 WHEN 'ISXMLINDEXABLE' THEN 0
            WHEN 'ISFULLTEXTINDEXED' THEN 0 WHEN 'ISCOLUMNSET' THEN 0 WHEN 'ISOUTPARAM' THEN 0
            WHEN 'USESANSITRIM' THEN CAST(c.is_ansi_padded AS int)
            END AS v FROM sys.all_columns c WHERE c.object_id = @id AND c.name = @column",
    },
    MetadataFunction {
        name: "FULLTEXTSERVICEPROPERTY",
        parameters: &[("property", NAME)],
        text: "SELECT CASE WHEN UPPER(@property) IN ('ISFULLTEXTINSTALLED', 'LOADOSRESOURCES', 'VERIFYSIGNATURE')
            THEN 0 END AS v",
    },
    MetadataFunction {
        name: "IDENT_CURRENT",
        parameters: &[("table", NAME)],
        text: "SELECT CAST(COALESCE(c.last_value, c.seed_value) AS numeric(38, 0)) AS v
            FROM sys.identity_columns c WHERE c.object_id = OBJECT_ID(@table)",
    },
    MetadataFunction {
        name: "IDENT_INCR",
        parameters: &[("table", NAME)],
        text: "SELECT CAST(c.increment_value AS numeric(38, 0)) AS v
            FROM sys.identity_columns c WHERE c.object_id = OBJECT_ID(@table)",
    },
    MetadataFunction {
        name: "IDENT_SEED",
        parameters: &[("table", NAME)],
        text: "SELECT CAST(c.seed_value AS numeric(38, 0)) AS v
            FROM sys.identity_columns c WHERE c.object_id = OBJECT_ID(@table)",
    },
    MetadataFunction {
        name: "INDEXPROPERTY",
        parameters: &[("id", INT), ("index", NAME), ("property", NAME)],
        text: "SELECT CASE UPPER(@property)
            WHEN 'INDEXID' THEN i.index_id WHEN 'ISUNIQUE' THEN CAST(i.is_unique AS int)
            WHEN 'ISCLUSTERED' THEN CASE i.index_id WHEN 1 THEN 1 ELSE 0 END
            WHEN 'INDEXFILLFACTOR' THEN 0 WHEN 'ISDISABLED' THEN 0 WHEN 'ISPADINDEX' THEN 0 WHEN 'ISHYPOTHETICAL' THEN 0
            WHEN 'ISSTATISTICS' THEN 0 WHEN 'ISFULLTEXTKEY' THEN 0 WHEN 'ISCOLUMNSTORE' THEN 0
            WHEN 'ISPAGELOCKDISALLOWED' THEN 0 WHEN 'ISROWLOCKDISALLOWED' THEN 0
            END AS v FROM sys.indexes i WHERE i.object_id = @id AND i.name = @index",
    },
    MetadataFunction {
        name: "INDEX_COL",
        parameters: &[("table", NAME), ("index", INT), ("key", INT)],
        text: "SELECT c.name AS v FROM sys.index_columns k
            JOIN sys.columns c ON c.object_id = k.object_id AND c.column_id = k.column_id
            WHERE k.object_id = OBJECT_ID(@table) AND k.index_id = @index AND k.key_ordinal = @key",
    },
    MetadataFunction {
        name: "LOGINPROPERTY",
        parameters: &[("login", NAME), ("property", NAME)],
        text: "SELECT CASE
            WHEN UPPER(@property) IN ('ISLOCKED', 'ISEXPIRED', 'ISMUSTCHANGE', 'BADPASSWORDCOUNT', 'HISTORYLENGTH')
                THEN CAST(0 AS sql_variant)
            WHEN UPPER(@property) = 'DEFAULTDATABASE' THEN CAST(p.default_database_name AS sql_variant)
            WHEN UPPER(@property) = 'DEFAULTLANGUAGE' THEN CAST(p.default_language_name AS sql_variant)
            END AS v FROM sys.server_principals p WHERE p.name = @login AND p.type <> 'R'",
    },
    MetadataFunction {
        name: "OBJECTPROPERTY",
        parameters: &[("id", INT), ("property", NAME)],
        text: OF_OBJECT,
    },
    MetadataFunction {
        name: "OBJECTPROPERTYEX",
        parameters: &[("id", INT), ("property", NAME)],
        text: OF_OBJECT,
    },
    // SQLite keeps no date of its statistics.
    MetadataFunction {
        name: "STATS_DATE",
        parameters: &[("id", INT), ("statistics", INT)],
        text: "SELECT CAST(NULL AS datetime) AS v",
    },
];

/// The function of this name, which is in capitals.
pub(super) fn metadata_function(name: &str) -> Option<&'static MetadataFunction> {
    METADATA.iter().find(|function| function.name == name)
}

impl MetadataFunction {
    /// How many arguments it takes.
    pub(crate) fn arguments(&self) -> usize {
        self.parameters.len()
    }
}

impl Work<'_> {
    pub(super) fn metadata(
        &mut self,
        function: &MetadataFunction,
        arguments: &[Expression],
        view: View<'_>,
    ) -> Result<Typed> {
        let count = function.parameters.len();
        counted(function.name, arguments.len(), count, count)?;
        // Within the query it would be an aggregate of that one's.
        if arguments.iter().any(visit::has_of_rows) {
            let what = format!("an aggregate or a window as an argument of {}", function.name);
            return Err(Message::unsupported(what));
        }
        let mut given = HashMap::with_capacity(count);
        for (argument, (name, data_type)) in arguments.iter().zip(function.parameters) {
            let value = self.expression(argument, view)?;
            given.insert((*name).to_owned(), self.coerced(value, *data_type)?);
        }
        let parsed = pellucid_tsql::parse(function.text).map_err(Message::from)?;
        let query = parsed.into_iter().next().and_then(|statement| match statement.kind {
            StatementKind::Select(query) => Some(query),
            _ => None,
        });
        let Some(query) = query else { return Err(Message::unsupported(function.name)) };
        let others = self.arguments.replace(given);
        let value = self.expression(&Expression::Subquery(query), View::EMPTY);
        self.arguments = others;
        value
    }
}
