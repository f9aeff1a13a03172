//! sp_spaceused, sp_helpfilegroup, sp_who, sp_who2

use rusqlite::{Connection, OptionalExtension};

use super::{log_bytes, named, Arguments};
use crate::execute::{Done, Raised};
use crate::instance::{MASTER, MSDB, TEMPDB};
use crate::message::{table, Message};
use crate::session::Session;
use crate::translate::quoted;
use crate::values::convert::Value;
use crate::values::types::SqlType;

const SPACE: SqlType = SqlType::varchar(18);
const N128: SqlType = SqlType::nvarchar(128);
const KB: i64 = 1024;

/// Pages of tables and of indexes, in bytes.
struct Used {
    data: i64,
    indexes: i64,
}

impl Session {
    /// Of the current database, or of a table of it. Source: Microsoft's "sp_spaceused".
    pub(super) fn sp_spaceused(&mut self, arguments: &Arguments<'_>) -> Done {
        let mode = arguments.text(2)?.unwrap_or_else(|| "ALL".to_owned());
        if !["ALL", "LOCAL_ONLY", "REMOTE_ONLY"].iter().any(|one| one.eq_ignore_ascii_case(&mode)) {
            return Err(Message::unsupported(format!("sp_spaceused @mode = '{mode}'")).into());
        }
        if arguments.integer(4)?.is_some_and(|wanted| wanted != 0) {
            let what = "sp_spaceused @include_total_xtp_storage = 1";
            return Err(Message::unsupported(what).into());
        }
        // As there, where it has something to do.
        if arguments.text(1)?.is_some_and(|update| update.trim().eq_ignore_ascii_case("true")) {
            self.inform(Message::text(" ".to_owned()));
        }
        let is_one = arguments.integer(3)?.is_some_and(|wanted| wanted != 0);
        match arguments.text(0)? {
            Some(name) => self.space_of_table(&name),
            None => self.space_of_database(is_one),
        }
    }

    fn space_of_table(&mut self, text: &str) -> Done {
        let columns = [
            ("name", N128),
            ("rows", SqlType::Char(20)),
            ("reserved", SPACE),
            ("data", SPACE),
            ("index_size", SPACE),
            ("unused", SPACE),
        ];
        let found = match named(text) {
            Some(name) => self.find(&name)?,
            None => None,
        };
        let Some((schema, sqlite, false)) = found else {
            let unknown =
                Message::of(table::UNKNOWN_OBJECT_IN, [&text, &self.databases.current_name()]);
            return Err(Raised::from(unknown).in_procedure("sp_spaceused"));
        };
        let count = format!("SELECT count(*) FROM {}.{}", quoted(&schema), quoted(&sqlite));
        let rows: i64 = self.databases.connection.query_row(&count, [], |row| row.get(0))?;
        let used = used(&self.databases.connection, &schema, Some(&sqlite))?;
        let name = crate::session::split(&sqlite).1.to_owned();
        let row = vec![
            Value::Text(name),
            Value::Text(format!("{rows:<20}")),
            kilobytes(used.data + used.indexes),
            kilobytes(used.data),
            kilobytes(used.indexes),
            kilobytes(0),
        ];
        self.give_rows(&columns, vec![row])
    }

    /// In two results, or in one.
    fn space_of_database(&mut self, is_one: bool) -> Done {
        let database =
            [("database_name", N128), ("database_size", SPACE), ("unallocated space", SPACE)];
        let pages =
            [("reserved", SPACE), ("data", SPACE), ("index_size", SPACE), ("unused", SPACE)];
        let give = |session: &mut Self, mut whole: Vec<Value>, parts: Vec<Value>| -> Done {
            if is_one {
                whole.extend(parts);
                return session.give_rows(&[&database[..], &pages[..]].concat(), vec![whole]);
            }
            session.give_rows(&database, vec![whole])?;
            session.give_rows(&pages, vec![parts])
        };
        let known = self.databases.current()?;
        let schema = match known.id {
            MASTER => self.databases.attach_master()?,
            TEMPDB => Some("temp".to_owned()),
            MSDB => Some("main".to_owned()),
            _ if known.is_system() => None,
            _ => Some(self.databases.attach(&known)?),
        };
        let Some(schema) = schema else {
            // Nobody has made anything in it.
            let row = vec![Value::Text(known.name.clone()), megabytes(0), megabytes(0)];
            return give(self, row, [0; 4].map(kilobytes).to_vec());
        };
        let connection = match known.id {
            MSDB => self.databases.instance.msdb(),
            _ => &self.databases.connection,
        };
        let pragma = |name: &str| -> Done<i64> {
            let sql = format!("PRAGMA {}.{name}", quoted(&schema));
            Ok(connection.query_row(&sql, [], |row| row.get(0))?)
        };
        let size = pragma("page_size")?;
        let (all, free) = (pragma("page_count")? * size, pragma("freelist_count")? * size);
        let log = i64::try_from(log_bytes(&known)).unwrap_or(0);
        let used = used(connection, &schema, None)?;
        let row = vec![Value::Text(known.name.clone()), megabytes(all + log), megabytes(free)];
        let reserved = all - free;
        let unused = (reserved - used.data - used.indexes).max(0);
        let parts = [reserved, used.data, used.indexes, unused].map(kilobytes).to_vec();
        give(self, row, parts)
    }

    /// There is one filegroup. Source: Microsoft's "sp_helpfilegroup".
    pub(super) fn sp_helpfilegroup(&mut self, arguments: &Arguments<'_>) -> Done {
        let columns = [
            ("groupname", SqlType::SYSNAME),
            ("groupid", SqlType::SmallInt),
            ("filecount", SqlType::Int),
        ];
        if let Some(name) = arguments.text(0)? {
            if !name.eq_ignore_ascii_case("PRIMARY") {
                let unknown = Message::of(table::UNKNOWN_FILEGROUP, [&name]);
                return Err(Raised::from(unknown).in_procedure("sp_helpfilegroup"));
            }
        }
        let row = vec![Value::Text("PRIMARY".to_owned()), Value::Integer(1), Value::Integer(1)];
        self.give_rows(&columns, vec![row])
    }

    /// This session: none knows of those of other processes. Source: Microsoft's "sp_who".
    pub(super) fn sp_who(&mut self, arguments: &Arguments<'_>) -> Done {
        let columns = [
            ("spid", SqlType::SmallInt),
            ("ecid", SqlType::SmallInt),
            ("status", SqlType::NChar(30)),
            ("loginame", SqlType::NChar(128)),
            ("hostname", SqlType::NChar(128)),
            ("blk", SqlType::Char(5)),
            ("dbname", SqlType::NChar(128)),
            ("cmd", SqlType::NChar(26)),
            ("request_id", SqlType::Int),
        ];
        let text = |text: &str| Value::Text(text.to_owned());
        let mut rows = Vec::new();
        if self.is_wanted(arguments, "sp_who")? {
            rows.push(vec![
                Value::Integer(self.shared.session_id()),
                Value::Integer(0),
                text("runnable"),
                text(self.shared.user()),
                text(self.shared.server_name()),
                text("0"),
                text(&self.databases.current_name()),
                text("EXECUTE"),
                Value::Integer(0),
            ]);
        }
        self.give_rows(&columns, rows)
    }

    /// The same with what a process has used, which is not counted.
    pub(super) fn sp_who2(&mut self, arguments: &Arguments<'_>) -> Done {
        let columns = [
            ("SPID", SqlType::Char(5)),
            ("Status", SqlType::nvarchar(30)),
            ("Login", N128),
            ("HostName", N128),
            ("BlkBy", SqlType::Char(5)),
            ("DBName", N128),
            ("Command", SqlType::nvarchar(26)),
            ("CPUTime", SqlType::varchar(20)),
            ("DiskIO", SqlType::varchar(20)),
            ("LastBatch", SqlType::varchar(14)),
            ("ProgramName", N128),
            ("SPID", SqlType::Char(5)),
            ("REQUESTID", SqlType::Char(5)),
        ];
        let text = |text: &str| Value::Text(text.to_owned());
        let mut rows = Vec::new();
        if self.is_wanted(arguments, "sp_who2")? {
            let session = self.shared.session_id().to_string();
            rows.push(vec![
                text(&session),
                text("RUNNABLE"),
                text(self.shared.user()),
                text(self.shared.server_name()),
                text("  ."),
                text(&self.databases.current_name()),
                text("EXECUTE"),
                text("0"),
                text("0"),
                Value::Null,
                text(self.shared.application()),
                text(&session),
                text("0"),
            ]);
        }
        self.give_rows(&columns, rows)
    }

    /// Whether a login, a session's number or `active` is this session; 15007 for another login.
    fn is_wanted(&self, arguments: &Arguments<'_>, procedure: &'static str) -> Done<bool> {
        let Some(wanted) = arguments.text(0)? else { return Ok(true) };
        let wanted = wanted.trim();
        if let Ok(number) = wanted.parse::<i64>() {
            return Ok(number == self.shared.session_id());
        }
        let own = ["active", "sa", self.shared.user()];
        match own.iter().any(|own| own.eq_ignore_ascii_case(wanted)) {
            true => Ok(true),
            false => {
                let unknown = Message::of(table::NO_SUCH_LOGIN, [&wanted]);
                Err(Raised::from(unknown).in_procedure(procedure))
            }
        }
    }
}

/// Every page is looked at.
fn used(connection: &Connection, schema: &str, table: Option<&str>) -> Done<Used> {
    let sql = format!(
        "SELECT coalesce(sum(s.pgsize) FILTER (WHERE m.type = 'table' OR m.type IS NULL), 0), \
         coalesce(sum(s.pgsize) FILTER (WHERE m.type = 'index'), 0) \
         FROM dbstat AS s LEFT JOIN {}.sqlite_schema AS m ON m.name = s.name \
         WHERE s.schema = ?1 AND s.aggregate = TRUE AND (?2 IS NULL OR m.tbl_name = ?2 COLLATE NOCASE)",
        quoted(schema)
    );
    let found = connection.query_row(&sql, (schema, table), |row| {
        Ok(Used { data: row.get(0)?, indexes: row.get(1)? })
    });
    Ok(found.optional()?.unwrap_or(Used { data: 0, indexes: 0 }))
}

fn kilobytes(bytes: i64) -> Value {
    Value::Text(format!("{} KB", bytes / KB))
}

fn megabytes(bytes: i64) -> Value {
    let hundredths = bytes * 100 / (KB * KB);
    Value::Text(format!("{}.{:02} MB", hundredths / 100, hundredths % 100))
}
