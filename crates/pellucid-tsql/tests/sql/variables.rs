//! Goal: the text of a batch alone says which variables it uses without having declared them.
//!
//! Method: each form that declares, names or uses one, and what is told of it.

use pellucid_tsql::parse_as;

/// `@name`, `@name!` for a table, with line and statement.
fn undeclared(batch: &str) -> Vec<String> {
    let parsed = parse_as(batch, true).unwrap();
    let told = parsed.undeclared.iter().map(|one| {
        let table = if one.is_table { "!" } else { "" };
        format!("@{}{table} {} {}", one.variable.0, one.line, one.statement)
    });
    told.collect()
}

#[test]
fn what_is_declared_is_known_from_there_on() {
    for batch in [
        "DECLARE @a int SELECT @a, @A",
        "DECLARE @a int, @b int = 1 SET @a = @b",
        "DECLARE @t TABLE (a int) INSERT @t VALUES (1) SELECT * FROM @t DELETE @t OUTPUT deleted.a INTO @t",
        "DECLARE @c CURSOR SET @c = CURSOR FOR SELECT 1 OPEN @c FETCH FROM @c CLOSE @c",
        "DECLARE @x xml SELECT n.value('.', 'int') FROM @x.nodes('/a') AS t(n)",
        "IF 1 = 0 DECLARE @a int PRINT @a",
        "EXEC p @a = 1, @b = 'x', @c = DEFAULT",
        "CREATE PROCEDURE p @a int, @b int = 1 OUTPUT AS SET @b = @a",
        "CREATE FUNCTION f(@a int) RETURNS int AS BEGIN DECLARE @b int = @a RETURN @b END",
        "CREATE FUNCTION f(@a int) RETURNS TABLE AS RETURN SELECT @a AS a",
        "SELECT @@VERSION",
    ] {
        assert_eq!(undeclared(batch), Vec::<String>::new(), "{batch}");
    }
}

#[test]
fn what_is_not_is_told_with_its_place() {
    for (batch, told) in [
        ("SELECT @a", vec!["@a 1 1"]),
        ("PRINT 'x'\nSELECT 1,\n@a + @b", vec!["@a 3 2", "@b 3 2"]),
        ("SET @a = 1 DECLARE @a int SET @a = 2", vec!["@a 1 1"]),
        ("DECLARE @a int = @a", vec!["@a 1 1"]),
        ("INSERT @t VALUES (@a)", vec!["@t! 1 1", "@a 1 1"]),
        ("DELETE FROM t OUTPUT deleted.a INTO @t", vec!["@t! 1 1"]),
        ("SELECT 1 FROM @t AS t JOIN @x.nodes('/a') AS n(c) ON 1 = 1", vec!["@t! 1 1", "@x 1 1"]),
        ("EXEC @r = p @a = @b, @c = @d OUTPUT", vec!["@r 1 1", "@b 1 1", "@d 1 1"]),
        ("EXEC @p", vec!["@p 1 1"]),
        ("BACKUP DATABASE @d TO DISK = @f", vec!["@d 1 1", "@f 1 1"]),
        ("IF @a = 1 BEGIN PRINT @b END", vec!["@a 1 1", "@b 1 3"]),
        ("OPEN @c", vec!["@c 1 1"]),
        ("UPDATE t SET @a = b = 1", vec!["@a 1 1"]),
        ("SELECT TOP (@n) * FROM t ORDER BY a OFFSET @o ROWS", vec!["@n 1 1", "@o 1 1"]),
        ("CREATE PROCEDURE p @a int AS SELECT @b", vec!["@b 1 2"]),
        ("CREATE VIEW v AS SELECT @a AS a", vec!["@a 1 1"]),
        ("DECLARE c CURSOR FOR SELECT @a", vec!["@a 1 1"]),
    ] {
        assert_eq!(undeclared(batch), told, "{batch}");
    }
}
