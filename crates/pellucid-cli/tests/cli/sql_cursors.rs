//! Goal: scripts with cursors and GOTO do what they do on SQL Server.
//!
//! Method: the loops that backup scripts are made of, each kind of FETCH, scopes, and every message, by `pellucid sql`.

use crate::sql_server::{errors, Server};

/// What PRINT has said.
fn printed(server: &Server, script: &str) -> Vec<String> {
    let told = server.run(script).all();
    assert!(!told.contains("Msg "), "{script}\n{told}");
    told.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// The number of the first error.
fn refused(server: &Server, script: &str) -> String {
    let told = server.run(script).all();
    let errors = errors(&told);
    assert!(!errors.is_empty(), "{script}\n{told}");
    errors[0].0.trim_start_matches("Msg ").to_owned()
}

/// The best-known backup script of all.
#[test]
fn a_cursor_over_the_databases_backs_each_up() {
    let server = Server::with(&["bk"]);
    let folder = server.drive("bk").display().to_string();
    let told = server
        .run(&format!(
            "CREATE DATABASE q1; CREATE DATABASE q2
GO
DECLARE @n sysname, @f nvarchar(260);
DECLARE c CURSOR LOCAL FAST_FORWARD READ_ONLY FOR SELECT name FROM sys.databases WHERE database_id > 4 ORDER BY name;
OPEN c;
FETCH NEXT FROM c INTO @n;
WHILE @@FETCH_STATUS = 0
BEGIN
  SET @f = N'{folder}/' + @n + N'.bak';
  BACKUP DATABASE @n TO DISK = @f;
  FETCH NEXT FROM c INTO @n;
END
CLOSE c;
DEALLOCATE c;
"
        ))
        .succeeded();
    assert!(!told.contains("Msg "), "{told}");
    for name in ["q1", "q2"] {
        assert!(server.drive("bk").join(format!("{name}.bak")).exists(), "{told}");
    }
}

const NUMBERS: &str = "SELECT n FROM (VALUES (1), (2), (3)) AS v (n) ORDER BY n";

#[test]
fn each_fetch_goes_where_it_says() {
    let server = Server::with(&[]);
    let script = format!(
        "DECLARE @n int;
DECLARE c SCROLL CURSOR FOR {NUMBERS};
OPEN c;
PRINT @@CURSOR_ROWS;
FETCH LAST FROM c INTO @n; PRINT @n;
FETCH PRIOR FROM c INTO @n; PRINT @n;
FETCH FIRST FROM c INTO @n; PRINT @n;
FETCH ABSOLUTE 2 FROM c INTO @n; PRINT @n;
FETCH ABSOLUTE -1 FROM c INTO @n; PRINT @n;
DECLARE @by int = -2;
FETCH RELATIVE @by FROM c INTO @n; PRINT @n;
FETCH PRIOR FROM c INTO @n; PRINT CONCAT(@n, ' ', @@FETCH_STATUS);
FETCH c INTO @n; PRINT CONCAT(@n, ' ', @@FETCH_STATUS);
FETCH ABSOLUTE 9 FROM c INTO @n; PRINT CONCAT(@n, ' ', @@FETCH_STATUS);
FETCH PRIOR FROM c INTO @n; PRINT @n;
CLOSE c; DEALLOCATE c;"
    );
    let expected = ["3", "3", "2", "1", "2", "3", "1", "1 -1", "1 0", "1 -1", "3"];
    assert_eq!(printed(&server, &script), expected);
    // Without INTO the row goes to the client.
    let rows = server.rows(&format!(
        "SET NOCOUNT ON; DECLARE c CURSOR FOR {NUMBERS}; OPEN c; FETCH NEXT FROM c"
    ));
    assert_eq!(rows, ["1"]);
}

/// The variables of its query are those of its declaration, its rows those of the moment when it was opened.
#[test]
fn a_cursor_keeps_what_it_was_declared_with() {
    let server = Server::with(&[]);
    let script = "CREATE TABLE #t (a int, b varchar(10));
INSERT INTO #t VALUES (1, 'x'), (2, 'y');
DECLARE @most int = 2, @a int, @b varchar(10);
DECLARE c CURSOR STATIC LOCAL FOR SELECT a, b FROM #t WHERE a <= @most ORDER BY a DESC;
SET @most = 0;
OPEN c;
DELETE FROM #t;
FETCH NEXT FROM c INTO @a, @b;
WHILE @@FETCH_STATUS = 0
BEGIN
  PRINT CONCAT(@a, @b);
  IF @a = 2 BEGIN FETCH NEXT FROM c INTO @a, @b; CONTINUE; END
  BREAK;
END
PRINT CURSOR_STATUS('local', 'c');
CLOSE c;
PRINT CURSOR_STATUS('local', 'c');
DEALLOCATE c;
PRINT CURSOR_STATUS('local', 'c');";
    let shown: Vec<String> =
        printed(&server, script).into_iter().filter(|line| !line.ends_with("affected)")).collect();
    assert_eq!(shown, ["2y", "1x", "1", "-1", "-3"]);
}

#[test]
fn scopes_and_variables() {
    let server = Server::with(&[]);
    // GLOBAL ones outlive their batch, LOCAL ones do not, and a string sees the session's alone.
    let script = "DECLARE g CURSOR GLOBAL FOR SELECT 7;
DECLARE l CURSOR LOCAL FOR SELECT 8;
OPEN g;
GO
DECLARE @n int;
FETCH NEXT FROM g INTO @n; PRINT @n;
PRINT CURSOR_STATUS('global', 'g');
PRINT CURSOR_STATUS('local', 'l');
EXEC ('DECLARE @n int; CLOSE GLOBAL g; OPEN g; FETCH NEXT FROM g INTO @n; PRINT @n');
DEALLOCATE g;
DECLARE @c CURSOR, @d CURSOR;
PRINT CURSOR_STATUS('variable', '@c');
SET @c = CURSOR LOCAL STATIC FOR SELECT 9;
SET @d = @c;
OPEN @d;
FETCH NEXT FROM @c INTO @n; PRINT @n;
DEALLOCATE @c;
PRINT CURSOR_STATUS('variable', '@c');
PRINT CURSOR_STATUS('variable', '@d');";
    assert_eq!(printed(&server, script), ["7", "1", "-3", "7", "-2", "9", "-2", "1"]);
}

#[test]
fn what_a_cursor_cannot_do_is_said() {
    let server = Server::with(&[]);
    for (script, number) in [
        ("OPEN c", "16916"),
        ("DECLARE c CURSOR FOR SELECT 1 DECLARE c CURSOR FOR SELECT 1", "16915"),
        ("DECLARE c CURSOR FOR SELECT 1 OPEN c OPEN c", "16905"),
        ("DECLARE c CURSOR FOR SELECT 1 FETCH NEXT FROM c", "16917"),
        ("DECLARE c CURSOR FOR SELECT 1 CLOSE c", "16917"),
        ("DECLARE c CURSOR FOR SELECT 1 OPEN c FETCH FIRST FROM c", "16911"),
        (
            "DECLARE @a int, @b int DECLARE c CURSOR FOR SELECT 1 OPEN c FETCH c INTO @a, @b",
            "16924",
        ),
        ("DECLARE c CURSOR FOR SELECT 1 OPEN c FETCH c INTO @none", "137"),
        ("DECLARE @c CURSOR OPEN @c", "16950"),
        ("DECLARE @c int OPEN @c", "16948"),
        ("DECLARE c CURSOR FOR SELECT x FROM nowhere", "208"),
        ("DECLARE c CURSOR FOR SELECT name FROM sys.databases FOR UPDATE", "50001"),
        ("DECLARE @n int DECLARE c CURSOR FOR SELECT 'x' OPEN c FETCH c INTO @n", "245"),
    ] {
        assert_eq!(refused(&server, script), number, "{script}");
    }
}

#[test]
fn goto_goes_to_its_label() {
    let server = Server::with(&[]);
    // The frame that Management Studio writes around the jobs of Agent.
    let script = "DECLARE @ReturnCode INT = 0;
IF (@@ERROR <> 0 OR @ReturnCode <> 0) GOTO QuitWithRollback
PRINT 'made'
GOTO EndSave
QuitWithRollback:
    IF (@@TRANCOUNT > 0) ROLLBACK TRANSACTION
    PRINT 'rolled back'
EndSave:
PRINT 'done'";
    assert_eq!(printed(&server, script), ["made", "done"]);
    let script = "DECLARE @i int = 0;
again:
SET @i += 1;
WHILE @i < 10
BEGIN
  BEGIN TRY
    IF @i = 2 GOTO out
  END TRY
  BEGIN CATCH
    PRINT 'never'
  END CATCH
  PRINT @i
  GOTO again
END
out: PRINT 'out'
GOTO branch
IF 1 = 0 BEGIN PRINT 'never' branch: PRINT 'in a branch' END ELSE PRINT 'never'";
    assert_eq!(printed(&server, script), ["1", "out", "in a branch"]);
}

/// Before anything of the batch is executed.
#[test]
fn labels_are_checked_first() {
    let server = Server::with(&[]);
    for (script, number) in [
        ("PRINT 'x' GOTO nowhere", "133"),
        ("PRINT 'x' a: a: PRINT 'y'", "132"),
        ("PRINT 'x' GOTO a BEGIN TRY a: PRINT 'y' END TRY BEGIN CATCH END CATCH", "1026"),
    ] {
        let told = server.run(script).all();
        assert!(told.contains(&format!("Msg {number},")), "{script}\n{told}");
        assert!(!told.lines().any(|line| line == "x"), "{script}\n{told}");
    }
}

/// As Microsoft's "ROLLBACK TRANSACTION" says with CURSOR_CLOSE_ON_COMMIT OFF.
#[test]
fn rollback_closes_what_is_not_static() {
    let server = Server::with(&[]);
    let script = "CREATE TABLE t(a int); INSERT INTO t VALUES (1), (2);
DECLARE dynamics CURSOR FOR SELECT a FROM t;
DECLARE keys CURSOR LOCAL KEYSET FOR SELECT a FROM t;
DECLARE fast CURSOR LOCAL FAST_FORWARD FOR SELECT a FROM t;
DECLARE statics CURSOR LOCAL STATIC FOR SELECT a FROM t;
DECLARE iso INSENSITIVE CURSOR FOR SELECT a FROM t;
DECLARE made CURSOR LOCAL FOR SELECT DISTINCT a FROM t;
DECLARE @held CURSOR; SET @held = CURSOR FOR SELECT a FROM t;
OPEN dynamics; OPEN keys; OPEN fast; OPEN statics; OPEN iso; OPEN made; OPEN @held;
BEGIN TRAN; SAVE TRAN s; ROLLBACK TRAN s; COMMIT;
PRINT CONCAT(CURSOR_STATUS('global', 'dynamics'), CURSOR_STATUS('variable', '@held'));
BEGIN TRAN; ROLLBACK;
PRINT CONCAT(CURSOR_STATUS('global', 'dynamics'), CURSOR_STATUS('local', 'keys'), CURSOR_STATUS('local', 'fast'),
  CURSOR_STATUS('variable', '@held'));
PRINT CONCAT(CURSOR_STATUS('local', 'statics'), CURSOR_STATUS('global', 'iso'), CURSOR_STATUS('local', 'made'));
OPEN dynamics; FETCH NEXT FROM statics; CLOSE statics;";
    let told = printed(&server, script);
    assert_eq!(told[1..4], ["11", "-1-1-1-1", "111"], "{told:?}");
    // An error that rolls back takes what its batch has declared, of whatever kind.
    let script = "DECLARE earlier CURSOR GLOBAL STATIC FOR SELECT 1 AS a; OPEN earlier;
GO
SET XACT_ABORT ON; DECLARE now CURSOR GLOBAL STATIC FOR SELECT 1 AS a; OPEN now;
BEGIN TRAN; SELECT 1 / 0 AS x;
GO
PRINT CONCAT(CURSOR_STATUS('global', 'earlier'), CURSOR_STATUS('global', 'now'));";
    let told = server.run(script).all();
    assert!(told.contains("Msg 8134") && told.lines().any(|line| line == "1-3"), "{told}");
    let told = server.run("SET CURSOR_CLOSE_ON_COMMIT ON").all();
    assert!(told.contains("'SET CURSOR_CLOSE_ON_COMMIT ON' is not supported."), "{told}");
}
