//! Goal: the catalog and the functions and procedures about it say what is there, and what there is not by its number.
//!
//! Method: a database that the script makes; expected rows are worked out by hand after Microsoft's pages.

use crate::sql_queries::prints;
use crate::sql_server::Server;

const TABLES: &str = "CREATE TABLE p (id int IDENTITY PRIMARY KEY, n varchar(10) NOT NULL, u int UNIQUE, d int DEFAULT (5))
    CREATE TABLE c (id int, pid int CONSTRAINT fkp REFERENCES p(id) ON DELETE CASCADE, other int REFERENCES p(u))
    INSERT p (n, u) VALUES ('x', 1), ('y', 2)\n";

/// Source: Microsoft's "sys.columns", "sys.types", "COLUMNS".
#[test]
fn columns_have_the_types_that_they_were_declared_with() {
    const DECLARED: &str = "CREATE TABLE t (a real, b varchar(max), c text, d ntext, e image, f decimal(5, 2), g sysname,
          h nvarchar(max), i varbinary(max), j numeric(5, 2), k dec, l float(24), m float, n INTEGER)
        INSERT t (a, b, c, g, j) VALUES (0.1, 'abc', 'abc', '007', 1)\n";
    prints(
        &format!(
            "{DECLARED}SELECT * INTO u FROM t
             SELECT c.name, t.name, i.name, c.max_length, s.DATA_TYPE, s.CHARACTER_MAXIMUM_LENGTH
             FROM sys.columns c JOIN sys.types t ON t.user_type_id = c.user_type_id
             JOIN sys.types i ON i.user_type_id = c.system_type_id
             JOIN INFORMATION_SCHEMA.COLUMNS s ON s.TABLE_NAME = 'u' AND s.COLUMN_NAME = c.name
             WHERE c.object_id = OBJECT_ID('t') ORDER BY c.column_id"
        ),
        &[
            "a real real 4 real NULL",
            "b varchar varchar -1 varchar -1",
            "c text text 16 text 2147483647",
            "d ntext ntext 16 ntext 1073741823",
            "e image image 16 image 2147483647",
            "f decimal decimal 5 decimal NULL",
            "g sysname nvarchar 256 nvarchar 128",
            "h nvarchar nvarchar -1 nvarchar -1",
            "i varbinary varbinary -1 varbinary -1",
            "j numeric numeric 5 numeric NULL",
            "k decimal decimal 9 decimal NULL",
            "l real real 4 real NULL",
            "m float float 8 float NULL",
            "n int int 4 int NULL",
        ],
    );
    // Values are those of the type, and texts of digits stay texts.
    prints(
        &format!(
            "{DECLARED}DECLARE @t TABLE (a real, b varchar(max), g sysname)
             INSERT @t SELECT a, b, g FROM t
             SELECT a, DATALENGTH(b), DATALENGTH(c), g, k FROM t WHERE a = CAST(0.1 AS real)
             SELECT a, DATALENGTH(b), g FROM @t
             SELECT SUM(a), MAX(a) FROM t
             CREATE TABLE v (x xml, v sql_variant)
             INSERT v VALUES ('007', '1e3')
             SELECT x, v FROM v"
        ),
        &["0.1 3 3 007 NULL", "0.1 3 007", "0.10000000149011612 0.1", "007 1e3"],
    );
}

#[test]
fn constraints_and_columns_are_in_the_catalog() {
    for (query, expected) in [
        (
            "SELECT name, OBJECT_NAME(parent_object_id), OBJECT_NAME(referenced_object_id), delete_referential_action_desc,
               is_system_named FROM sys.foreign_keys WHERE name = 'fkp'
             SELECT COL_NAME(parent_object_id, parent_column_id), COL_NAME(referenced_object_id, referenced_column_id)
             FROM sys.foreign_key_columns ORDER BY 1",
            &["fkp c p CASCADE 0", "other u", "pid id"][..],
        ),
        (
            "SELECT d.definition FROM sys.default_constraints d JOIN sys.columns c ON c.default_object_id = d.object_id
               AND c.object_id = d.parent_object_id WHERE c.name = 'd'
             SELECT name, seed_value, increment_value, last_value FROM sys.identity_columns
             SELECT COUNT(*) FROM sys.check_constraints
             SELECT COUNT(*) FROM sys.stats s JOIN sys.stats_columns k ON k.object_id = s.object_id AND k.stats_id = s.stats_id",
            &["(5)", "id 1 1 2", "0", "2"],
        ),
        (
            "SELECT OBJECTPROPERTY(OBJECT_ID('p'), 'IsUserTable'), OBJECTPROPERTY(OBJECT_ID('p'), 'TableHasIdentity'),
               OBJECTPROPERTY(OBJECT_ID('c'), 'TableHasForeignKey'), OBJECTPROPERTY(OBJECT_ID('c'), 'TableHasPrimaryKey'),
               OBJECTPROPERTY(OBJECT_ID('sys.databases'), 'IsMSShipped'), OBJECTPROPERTY(NULL, 'IsTable'),
               OBJECTPROPERTY(OBJECT_ID('p'), 'nothing')
             SELECT COLUMNPROPERTY(OBJECT_ID('p'), 'id', 'IsIdentity'), COLUMNPROPERTY(OBJECT_ID('p'), 'n', 'AllowsNull'),
               COLUMNPROPERTY(OBJECT_ID('p'), 'none', 'AllowsNull'), INDEX_COL('p', 1, 1), IDENT_CURRENT('p'),
               IDENT_SEED('p'), IDENT_INCR('p'), IDENT_CURRENT('c')
             SELECT name FROM sys.objects WHERE OBJECTPROPERTY(object_id, 'IsUserTable') = 1 ORDER BY name",
            &["1 1 1 0 1 NULL NULL", "1 0 NULL id 2 1 1 NULL", "c", "p"],
        ),
        (
            "SELECT CASE WHEN OBJECT_ID('sys.dm_db_log_info') > 0 THEN 'there' END, LOGINPROPERTY('sa', 'IsLocked'),
               LOGINPROPERTY('nobody', 'IsLocked')
             SELECT severity, text FROM sys.messages WHERE message_id = 208
             SELECT description FROM master.dbo.sysmessages WHERE error = 208",
            &["there 0 NULL", "16 Invalid object name '%ls'.", "Invalid object name '%ls'."],
        ),
        (
            "SELECT index_id, index_type_desc, avg_fragmentation_in_percent, page_count
             FROM sys.dm_db_index_physical_stats(DB_ID(), OBJECT_ID('p'), NULL, NULL, 'LIMITED') ORDER BY index_id
             SELECT COUNT(*) FROM sys.dm_db_index_physical_stats(DB_ID(), OBJECT_ID('c'), 1, 0, DEFAULT)
             SELECT COUNT(*) FROM sys.dm_db_index_physical_stats(DB_ID(), 0, -1, 0, NULL)
             SELECT rows, rowcnt FROM sys.sysindexes WHERE id = OBJECT_ID('p') AND indid < 2
             SELECT type_desc, total_pages FROM sys.allocation_units u JOIN sys.partitions p ON p.hobt_id = u.container_id
             WHERE p.object_id = OBJECT_ID('p') AND p.index_id = 1",
            &["1 CLUSTERED INDEX 0.0 1", "2 NONCLUSTERED INDEX 0.0 1", "0", "3", "2 2", "IN_ROW_DATA 1"],
        ),
    ] {
        prints(&format!("{TABLES}{query}"), expected);
    }
}

#[test]
fn identities_take_values_where_a_session_says_so() {
    let script = "CREATE TABLE t (id int IDENTITY PRIMARY KEY, n varchar(10))
        CREATE TABLE u (id int IDENTITY PRIMARY KEY)
        CREATE TABLE v (id int)
        GO
        SET IDENTITY_INSERT dbo.t ON
        INSERT t (id, n) VALUES (10, 'ten')
        GO
        INSERT t VALUES ('x')
        GO
        INSERT t (n) VALUES ('x')
        GO
        INSERT t (id, n) SELECT NULL, 'x'
        GO
        INSERT t (id, n) VALUES (DEFAULT, 'x')
        GO
        UPDATE t SET id = 3
        GO
        SET IDENTITY_INSERT u ON
        GO
        SET IDENTITY_INSERT v ON
        GO
        SET IDENTITY_INSERT none ON
        GO
        EXEC('SET IDENTITY_INSERT t OFF; INSERT t (n) VALUES (''inner'')')
        INSERT t (id, n) SELECT id + 20, n FROM t
        GO
        SET IDENTITY_INSERT t OFF
        INSERT t (n) VALUES ('next')
        GO
        INSERT t (id, n) VALUES (1, 'x')
        GO
        SELECT id, n FROM t ORDER BY id";
    prints(
        script,
        &[
            "Msg 8101",
            "An explicit value for the identity column in table 't' can only be specified when a column list is used and \
             IDENTITY_INSERT is ON.",
            "Msg 545",
            "Explicit value must be specified for identity column in table 't' either when IDENTITY_INSERT is set to ON or \
             when a replication user is inserting into a NOT FOR REPLICATION identity column.",
            "Msg 339",
            "DEFAULT or NULL are not allowed as explicit identity values.",
            "Msg 339",
            "DEFAULT or NULL are not allowed as explicit identity values.",
            "Msg 8102",
            "Cannot update identity column 'id'.",
            "Msg 8107",
            "IDENTITY_INSERT is already ON for table 'q.dbo.t'. Cannot perform SET operation for table 'u'.",
            "Msg 8106",
            "Table 'v' does not have the identity property. Cannot perform SET operation.",
            "Msg 1088",
            "Cannot find the object \"none\" because it does not exist or you do not have permissions.",
            "Msg 544",
            "Cannot insert explicit value for identity column in table 't' when IDENTITY_INSERT is set to OFF.",
            "10 ten",
            "11 inner",
            "30 ten",
            "31 inner",
            "32 next",
        ],
    );
}

/// A query answers these functions, within which an aggregate would be its own.
#[test]
fn an_aggregate_is_no_argument_of_what_a_query_answers() {
    prints(
        "CREATE TABLE t (id int)
        GO
        SELECT OBJECTPROPERTY(MAX(object_id), 'IsTable') FROM sys.objects
        GO
        SELECT COLUMNPROPERTY(MAX(object_id) OVER (), 'id', 'ColumnId') FROM sys.objects
        GO
        SELECT OBJECT_NAME(MAX(object_id)) FROM sys.tables
        SELECT MAX(OBJECTPROPERTY(object_id, 'IsTable')) FROM sys.tables
        SELECT OBJECTPROPERTY((SELECT MAX(object_id) FROM sys.tables), 'IsTable')",
        &[
            "Msg 50001",
            "'an aggregate or a window as an argument of OBJECTPROPERTY' is not supported.",
            "Msg 50001",
            "'an aggregate or a window as an argument of COLUMNPROPERTY' is not supported.",
            "t",
            "1",
            "1",
        ],
    );
}

/// Also where the table is dropped within a frame that would give the setting back.
#[test]
fn identities_take_values_no_more_when_their_table_is_dropped() {
    prints(
        "CREATE TABLE t (id int IDENTITY PRIMARY KEY)
        CREATE TABLE u (id int IDENTITY PRIMARY KEY)
        CREATE TABLE #t (id int IDENTITY PRIMARY KEY)
        SET IDENTITY_INSERT t ON
        DROP TABLE t
        SET IDENTITY_INSERT u ON
        CREATE TABLE t (id int IDENTITY PRIMARY KEY)
        GO
        INSERT t (id) VALUES (1)
        GO
        EXEC('SET IDENTITY_INSERT u OFF; DROP TABLE u; CREATE TABLE u (id int IDENTITY PRIMARY KEY)')
        SET IDENTITY_INSERT #t ON
        INSERT #t (id) VALUES (7)
        GO
        SET IDENTITY_INSERT u ON
        GO
        SELECT id FROM #t",
        &[
            "Msg 544",
            "Cannot insert explicit value for identity column in table 't' when IDENTITY_INSERT is set to OFF.",
            "Msg 8107",
            "IDENTITY_INSERT is already ON for table 'tempdb.dbo.#t'. Cannot perform SET operation for table 'u'.",
            "7",
        ],
    );
}

/// An index among the columns is made with the table, or neither is.
#[test]
fn an_index_stands_among_the_columns() {
    prints(
        "DECLARE @t TABLE (a int, b int, INDEX ia NONCLUSTERED (a, b), INDEX ib UNIQUE (b DESC))
         INSERT @t VALUES (1, 2)
         CREATE TABLE t (a int, INDEX ia CLUSTERED (a) WITH (FILLFACTOR = 80), INDEX ib (a) INCLUDE (a))
         CREATE TABLE u (a int, INDEX ia (a))
         SELECT name FROM sys.indexes WHERE object_id = OBJECT_ID('t') AND name LIKE '%i_' ORDER BY name
         INSERT @t VALUES (1, 2)
         GO
         CREATE TABLE v (a int, INDEX ia (none))
         GO
         CREATE INDEX ic ON t (a) INCLUDE (none)
         GO
         SELECT COUNT(*) FROM sys.tables WHERE name = 'v'
         SELECT COUNT(*) FROM sys.indexes WHERE object_id = OBJECT_ID('t') AND name IS NOT NULL",
        &[
            "ia",
            "ib",
            "Msg 2601",
            "Cannot insert duplicate key row in object 'dbo.@t' with unique index 'ib'. The duplicate key value is (2).",
            "The statement has been terminated.",
            "Msg 1911",
            "Column name 'none' does not exist in the target table or view.",
            "Msg 1911",
            "Column name 'none' does not exist in the target table or view.",
            "0",
            "2",
        ],
    );
}

#[test]
fn what_a_server_counts_is_there_without_rows() {
    prints(
        "SELECT COUNT(*) FROM sys.dm_exec_query_stats qs CROSS APPLY sys.dm_exec_sql_text(qs.sql_handle) st
           OUTER APPLY sys.dm_exec_query_plan(qs.plan_handle) qp
         SELECT COUNT(*) FROM ::fn_trace_gettable('x.trc', default) t JOIN sys.trace_events e
           ON e.trace_event_id = t.EventClass
         SELECT COUNT(*) FROM sys.dm_io_virtual_file_stats(NULL, NULL)
         SELECT COUNT(*), MAX(wait_time_ms) FROM sys.dm_os_wait_stats
         SELECT COUNT(*) FROM sys.dm_db_log_info(DB_ID())
         SELECT MIN(vlf_status), MIN(li.file_id) FROM sys.databases d CROSS APPLY sys.dm_db_log_info(d.database_id) li
         SELECT CASE WHEN COUNT(*) = (SELECT cpu_count FROM sys.dm_os_sys_info) THEN 'as many' END FROM sys.dm_os_schedulers
         SELECT system_memory_state_desc FROM sys.dm_os_sys_memory WHERE total_physical_memory_kb < available_physical_memory_kb
         CREATE TABLE #l (u int, f int, s bigint, o bigint, q int, st int, p int, lsn numeric(25, 0))
         INSERT #l EXEC ('DBCC LOGINFO (q) WITH NO_INFOMSGS')
         DECLARE @d sysname = 'q'
         INSERT #l EXEC sp_executesql N'DBCC LOGINFO (@d) WITH NO_INFOMSGS', N'@d sysname', @d
         SELECT COUNT(*), MIN(st) FROM #l
         SELECT MIN(size) FROM sys.master_files WHERE database_id = DB_ID('tempdb')",
        &["0", "0", "0", "0 NULL", "1", "2 2", "as many", "2 2", "8"],
    );
}

#[test]
fn nobody_else_is_there_and_no_mail_goes_out() {
    prints(
        "EXECUTE AS USER = 'dbo'
         REVERT
         EXECUTE AS LOGIN = 'sa'
         REVERT
         GO
         CREATE PROCEDURE pr WITH RECOMPILE, EXECUTE AS OWNER AS SELECT 'ran'
         GO
         EXEC pr
         EXECUTE AS USER = 'nobody'
         GO
         EXECUTE AS LOGIN = 'nobody'
         GO
         ALTER AUTHORIZATION ON DATABASE::q TO sa
         EXEC sp_changedbowner 'sa'
         ALTER AUTHORIZATION ON DATABASE::q TO nobody
         GO
         ALTER AUTHORIZATION ON DATABASE::none TO sa
         GO
         EXEC msdb.dbo.sp_send_dbmail @recipients = 'a@b', @subject = 's'
         GO
         EXEC msdb.dbo.sysmail_delete_mailitems_sp @sent_before = '2020-01-01'
         EXEC msdb.dbo.sysmail_help_status_sp
         EXEC sp_change_users_login 'Report'
         EXEC xp_loginconfig 'login mode'
         EXEC master.sys.xp_regread @key = 'Software\\None', @rootkey = 'HKEY_LOCAL_MACHINE'
         EXEC sp_cycle_errorlog
         DELETE FROM msdb.dbo.sysssislog WHERE endtime < '20110101'
         SELECT @@ROWCOUNT
         CREATE INDEX i ON msdb.dbo.backupset (backup_finish_date)
         GO
         DELETE FROM msdb.dbo.backupset
         GO
         EXEC none..sp_send_dbmail
         GO
         RESTORE DATABASE q FROM DATABASE_SNAPSHOT = 'x'",
        &[
            "ran",
            "Msg 15517",
            "Cannot execute as the database principal because the principal \"nobody\" does not exist, this type of \
             principal cannot be impersonated, or you do not have permission.",
            "Msg 15406",
            "Cannot execute as the server principal because the principal \"nobody\" does not exist, this type of \
             principal cannot be impersonated, or you do not have permission.",
            "Msg 15151",
            "Cannot find the principal 'nobody', because it does not exist or you do not have permission.",
            "Msg 15151",
            "Cannot find the database 'none', because it does not exist or you do not have permission.",
            "Msg 15281",
            "SQL Server blocked access to procedure 'dbo.sp_send_dbmail' of component 'Database Mail XPs' because this \
             component is turned off as part of the security configuration for this server. A system administrator can \
             enable the use of 'Database Mail XPs' by using sp_configure. For more information about enabling 'Database \
             Mail XPs', search for 'Database Mail XPs' in SQL Server Books Online.",
            "STOPPED",
            "login mode Mixed",
            "0",
            "DBCC execution completed. If DBCC printed error messages, contact your system administrator.",
            "The log of events is one file here, and goes on: nothing of it is put away.",
            "0",
            "No index 'i' is made: what 'msdb.dbo.backupset' shows has indexes of its own.",
            "Msg 50001",
            "'change of msdb.dbo.backupset' is not supported.",
            "Msg 911",
            "Database 'none' does not exist. Make sure that the name is entered correctly.",
            "Msg 3137",
            "Database cannot be reverted. Either the primary or the snapshot names are improperly specified, all other \
             snapshots have not been dropped, or there are missing files.",
            "Msg 3013",
            "RESTORE DATABASE is terminating abnormally.",
        ],
    );
}

#[test]
fn help_and_space_are_told_in_one_place() {
    let server = Server::with(&[]);
    let script = "CREATE DATABASE q\nGO\nUSE q\nCREATE TABLE t (id int IDENTITY PRIMARY KEY, n nvarchar(20) NULL)\n
        CREATE INDEX ix ON t (n DESC)\nGO\nEXEC sp_help 't'\nEXEC sp_help 'none'\nGO\nEXEC sp_help\n
        EXEC sp_spaceused @oneresultset = 1\nUSE msdb\nEXEC sp_spaceused";
    let said = server.run(script);
    for shown in [
        "t dbo user table",
        "id int no 4 10 0 no",
        "n nvarchar no 40   yes",
        "ix nonclustered located on PRIMARY n(-)",
        "PRIMARY KEY PK_t",
        "The object 'none' does not exist in database 'q' or is invalid for this operation.",
        "Name Owner Object_type",
        "PK_t dbo primary key cns",
        "database_name database_size unallocated space reserved data index_size unused",
        "msdb ",
    ] {
        assert!(said.stdout.contains(shown), "{shown}: {said:?}");
    }
}

/// However the table went, a new one has it off, and another one may have it on.
#[test]
fn identities_take_values_no_more_when_their_database_or_transaction_is_gone() {
    prints(
        "CREATE DATABASE other
        GO
        USE other
        CREATE TABLE t (id int IDENTITY)
        SET IDENTITY_INSERT t ON
        GO
        USE q
        DROP DATABASE other
        CREATE TABLE u (id int IDENTITY, a int)
        SET IDENTITY_INSERT u ON
        SET IDENTITY_INSERT u OFF
        GO
        BEGIN TRANSACTION
        CREATE TABLE t (id int IDENTITY, a int)
        SET IDENTITY_INSERT t ON
        INSERT t (id, a) VALUES (7, 7)
        ROLLBACK
        SET IDENTITY_INSERT u ON
        INSERT u (id, a) VALUES (8, 8)
        SET IDENTITY_INSERT u OFF
        GO
        BEGIN TRANSACTION
        CREATE TABLE t (id int IDENTITY, a int)
        SET IDENTITY_INSERT t ON
        ROLLBACK
        CREATE TABLE t (id int IDENTITY, a int)
        INSERT t (id, a) VALUES (5, 5)
        GO
        SELECT id FROM u",
        &[
            "Msg 544",
            "Cannot insert explicit value for identity column in table 't' when IDENTITY_INSERT is set to OFF.",
            "8",
        ],
    );
}

/// What SQLite would number from 1 on is refused.
#[test]
fn an_identity_begins_where_its_table_says() {
    prints(
        "CREATE TABLE t (id int IDENTITY(1000, 1) PRIMARY KEY, a int)
        CREATE TABLE u (id bigint IDENTITY, a int)
        SELECT t.name, seed_value, last_value, IDENT_CURRENT(t.name), IDENT_SEED(t.name)
        FROM sys.identity_columns i JOIN sys.tables t ON t.object_id = i.object_id ORDER BY t.name
        INSERT t (a) VALUES (1), (2)
        SELECT last_value, IDENT_CURRENT('t'), IDENT_SEED('t') FROM sys.identity_columns WHERE seed_value = 1000
        TRUNCATE TABLE t
        INSERT t (a) VALUES (3)
        ALTER TABLE t ADD CONSTRAINT UQ_a UNIQUE (a)
        INSERT t (a) VALUES (4)
        SELECT id, a FROM t ORDER BY id
        GO
        CREATE TABLE v (id int IDENTITY(0, 1))
        GO
        CREATE TABLE v (id bigint IDENTITY(-9223372036854775808, 1))
        GO
        SELECT COUNT(*) FROM sys.tables",
        &[
            "t 1000 NULL 1000 1000",
            "u 1 NULL 1 1",
            "1001 1001 1000",
            "1000 3",
            "1001 4",
            "Msg 50001",
            "'an IDENTITY that begins below 1' is not supported.",
            "Msg 50001",
            "'an IDENTITY that begins below 1' is not supported.",
            "2",
        ],
    );
}

/// SQLite takes NULL in each key but the rowid, and has one key beside which another one is unique.
#[test]
fn no_key_has_a_null_in_it() {
    prints(
        "CREATE TABLE t (a int, b int, PRIMARY KEY (a, b))
        CREATE TABLE u (id int IDENTITY, a varchar(5) PRIMARY KEY)
        CREATE TABLE v (id int IDENTITY, a int, CONSTRAINT PK_v PRIMARY KEY (a))
        SELECT CONCAT(OBJECT_NAME(object_id), '.', name), is_nullable FROM sys.columns WHERE name IN ('a', 'b') ORDER BY 1
        GO
        INSERT t VALUES (1, NULL)
        GO
        INSERT u (a) VALUES (NULL)
        GO
        CREATE TABLE w (a int NULL, PRIMARY KEY (a))
        GO
        ALTER TABLE t ADD c int UNIQUE
        GO
        SELECT COUNT(*) FROM sys.tables",
        &[
            "t.a 0",
            "t.b 0",
            "u.a 0",
            "v.a 0",
            "Msg 515",
            "Cannot insert the value NULL into column 'b', table 'q.dbo.t'; column does not allow nulls. INSERT fails.",
            "The statement has been terminated.",
            "Msg 515",
            "Cannot insert the value NULL into column 'a', table 'q.dbo.u'; column does not allow nulls. INSERT fails.",
            "The statement has been terminated.",
            "Msg 8111",
            "Cannot define PRIMARY KEY constraint on nullable column in table 'w'.",
            "Msg 1750",
            "Could not create constraint or index. See previous errors.",
            "Msg 50001",
            "'ADD of a column with a key' is not supported.",
            "3",
        ],
    );
}

/// Keys, defaults and foreign keys are objects by the names that they were given.
#[test]
fn constraints_are_found_by_their_names() {
    prints(
        "CREATE TABLE p (id int NOT NULL CONSTRAINT PK_p PRIMARY KEY, x int CONSTRAINT UQ_x UNIQUE)
        CREATE TABLE c (a int, b int CONSTRAINT DF_b DEFAULT 3, d int CONSTRAINT FK_d REFERENCES p(id), e int DEFAULT 4,
            [f] int, CONSTRAINT PK_c PRIMARY KEY CLUSTERED (a, b))
        ALTER TABLE c ADD CONSTRAINT [DF f] DEFAULT 5 FOR [f]
        SELECT name, RTRIM(type), OBJECT_NAME(parent_object_id), OBJECT_ID(QUOTENAME(name), type) - object_id
        FROM sys.objects WHERE name NOT LIKE 'DF[_][_]%' AND type <> 'U' ORDER BY name
        SELECT name, definition, is_system_named FROM sys.default_constraints WHERE name NOT LIKE 'DF[_][_]%' ORDER BY name
        SELECT i.name, i.is_primary_key FROM sys.indexes i WHERE i.index_id > 0 ORDER BY i.name
        SELECT k.name FROM sys.key_constraints k JOIN sys.objects o ON o.object_id = k.object_id ORDER BY k.name
        SELECT COUNT(*) FROM sysobjects WHERE xtype = 'PK' AND name IN ('PK_p', 'PK_c')
        IF OBJECT_ID('dbo.DF_b', 'D') IS NULL OR OBJECT_ID('FK_d', 'U') IS NOT NULL PRINT 'wrong'
        DROP TABLE c
        IF OBJECT_ID('DF_b') IS NOT NULL PRINT 'still there'",
        &[
            "DF f D c 0",
            "DF_b D c 0",
            "FK_d F c 0",
            "PK_c PK c 0",
            "PK_p PK p 0",
            "UQ_x UQ p 0",
            "DF f (5) 0",
            "DF_b (3) 0",
            "PK_c 1",
            "PK_p 1",
            "UQ_x 0",
            "PK_c",
            "PK_p",
            "UQ_x",
            "2",
        ],
    );
}

/// Of whatever kind they are.
#[test]
fn help_tells_the_constraints_of_a_table() {
    let server = Server::with(&[]);
    let said = server.run(
        "CREATE DATABASE q\nGO\nUSE q\n
        CREATE TABLE p (id int PRIMARY KEY)
        CREATE TABLE c (pid int CONSTRAINT fkp REFERENCES p(id))
        CREATE TABLE d (a int DEFAULT 5)
        CREATE TABLE none (a int)\nGO
        EXEC sp_help 'c'\nEXEC sp_help 'd'\nEXEC sp_help 'none'",
    );
    for shown in ["FOREIGN KEY fkp", "DEFAULT on column a DF__d__a__"] {
        assert!(said.stdout.contains(shown), "{shown}: {said:?}");
    }
    let without = said.stdout.matches("No constraints are defined on object ").count();
    assert_eq!(without, 1, "{said:?}");
}
