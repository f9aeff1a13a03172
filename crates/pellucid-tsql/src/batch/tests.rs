//! Batches, commands and variables.

use std::cell::Cell;
use std::io::Cursor;
use std::rc::Rc;

use super::*;

/// Files by name.
struct Shelf(Vec<(&'static str, &'static str)>);

impl Files for Shelf {
    fn open(&mut self, name: &str) -> io::Result<Box<dyn BufRead>> {
        let found = self.0.iter().find(|(file, _)| *file == name);
        let (_, text) = found.ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(text.as_bytes()))
    }
}

fn read(script: &[u8], files: Shelf) -> Vec<Result<Item, ScriptError>> {
    Script::new("s.sql", Cursor::new(script.to_vec()), files, Variables::new()).collect()
}

/// Text, repeat, line and file of each batch; what else there is, in words.
fn batches_of(script: &[u8], files: Shelf) -> Vec<String> {
    read(script, files)
        .into_iter()
        .map(|item| match item {
            Ok(Item::Batch(b)) => format!("{:?} x{} {}:{}", b.text(), b.repeat, b.file, b.line),
            Ok(other) => format!("{other:?}"),
            Err(error) => error.to_string(),
        })
        .collect()
}

fn batches(script: &str) -> Vec<String> {
    batches_of(script.as_bytes(), Shelf(Vec::new()))
}

#[test]
fn go_alone_on_its_line_ends_a_batch() {
    for (script, found) in [
        ("a\nGO\nb", &["\"a\\n\" x1 s.sql:1", "\"b\" x1 s.sql:3"][..]),
        ("a\r\n  go  \r\nb\r\n", &["\"a\\r\\n\" x1 s.sql:1", "\"b\\r\\n\" x1 s.sql:3"]),
        ("a\nGo 10\n\n\nb", &["\"a\\n\" x10 s.sql:1", "\"b\" x1 s.sql:5"]),
        ("a\nGO -- GO 3\nb\n\tGO\t2 /* x */ -- y", &["\"a\\n\" x1 s.sql:1", "\"b\\n\" x2 s.sql:3"]),
        ("GO\n\nGO 5\n-- c\n", &["\"-- c\\n\" x1 s.sql:4"]),
        ("a\nGO 0", &["\"a\\n\" x0 s.sql:1"]),
        // Not alone, or not it.
        ("GOTO x\nGO_ON\n[GO]\nx GO\n", &["\"GOTO x\\nGO_ON\\n[GO]\\nx GO\\n\" x1 s.sql:1"]),
        ("", &[]),
    ] {
        assert_eq!(batches(script), found, "{script:?}");
    }
    for wrong in ["a\nGO x", "a\nGO -1", "a\nGO 1 2", "a\nGO (1)", "a\nGO /* x"] {
        let told = batches(wrong);
        assert_eq!(
            told,
            ["Sqlcmd: Error: syntax error near command 'GO' at line 2 of `s.sql`"],
            "{wrong}"
        );
    }
}

#[test]
fn go_in_a_string_a_name_or_a_comment_is_text() {
    for script in [
        "PRINT 'a\nGO\nb'",
        "PRINT 'it''s\nGO\n'",
        "SELECT [a\nGO\n]",
        "SELECT [a]]\nGO\n]",
        "SELECT \"a\nGO\n\"",
        "/* a\nGO\n*/",
        "/* a /* b */\nGO\n*/",
        "PRINT 'a' + '\n:quit\n'",
    ] {
        assert_eq!(batches(script), [format!("{script:?} x1 s.sql:1")]);
    }
    for script in
        ["-- it's\nGO\nb", "PRINT '--'\nGO\nb", "/* ' */\nGO\nb", "PRINT '/*'\nGO\nb", "[']\nGO\nb"]
    {
        assert_eq!(batches(script).len(), 2, "{script}");
    }
}

#[test]
fn variables_are_replaced_in_statements_and_strings_but_not_in_comments() {
    let script = ":setvar db Sales\n:SETVAR path \"C:\\my files\"\nUSE $(db) -- $(none)\nPRINT '$(PATH)\\$(Db)' /* $(none) */\nGO $(n)";
    let told = batches(script);
    assert_eq!(told, ["Sqlcmd: Error: 'n' scripting variable not defined at line 5 of `s.sql`"]);
    let script = script.replace("GO $(n)", ":setvar n 3\nGO $(n)");
    assert_eq!(
        batches(&script),
        ["\"USE Sales -- $(none)\\nPRINT 'C:\\\\my files\\\\Sales' /* $(none) */\\n\" x3 s.sql:3"]
    );
    for (wrong, told) in [
        ("PRINT $(x", "syntax error in a variable reference"),
        ("PRINT $(a b)", "syntax error in a variable reference"),
        ("PRINT '$()'", "syntax error in a variable reference"),
        (":setvar", "syntax error near command ':SETVAR'"),
        (":setvar a!b c", "syntax error near command ':SETVAR'"),
        (":setvar a b\n:setvar a\nPRINT $(a)", "'a' scripting variable not defined"),
    ] {
        let found = batches(wrong);
        assert!(found[0].contains(told), "{wrong}: {found:?}");
    }
    // What a variable stands for opens nothing.
    assert_eq!(batches(":setvar q '\nPRINT $(q)\nGO\nb").len(), 2);
}

#[test]
fn files_are_read_into_the_batch() {
    let files =
        || Shelf(vec![("a b.sql", "A1\n:r c\nA2\nGO\nA3\n"), ("c", "C1"), ("self", ":r self\n")]);
    assert_eq!(
        batches_of(b"S1\n:r \"a b.sql\"\nS2\n", files()),
        ["\"S1\\nA1\\nC1A2\\n\" x1 s.sql:1", "\"A3\\nS2\\n\" x1 a b.sql:5"]
    );
    let told = batches_of(b":r self", files());
    assert_eq!(told, ["Sqlcmd: Error: more than 32 files within one another at line 1 of `self`"]);
    let told = batches_of(b"\n:r none", files());
    assert!(told[0].starts_with("Sqlcmd: Error: cannot open `none`: "), "{told:?}");
    assert!(told[0].ends_with("at line 2 of `s.sql`"), "{told:?}");
}

#[test]
fn commands() {
    assert_eq!(
        batches(":on error exit\na\n:On Error Ignore"),
        ["OnError { exit: true }", "OnError { exit: false }", "\"a\\n\" x1 s.sql:2"]
    );
    for quit in [":quit", "QUIT", "  exit", ":EXIT -- now"] {
        assert_eq!(
            batches(&format!("a\nGO\nb\n{quit}\nc\nGO")),
            ["\"a\\n\" x1 s.sql:1", "Quit"],
            "{quit}"
        );
    }
    for (command, told) in [
        (":connect server", "command ':CONNECT' is not supported"),
        (":!!dir", "command ':!!' is not supported"),
        ("!! mkdir x", "command '!!' is not supported (a script starts no program)"),
        (":ed", "command ':ED' is not supported"),
        ("exit(select 1", "syntax error near command 'EXIT'"),
        ("exit(select 1) x", "syntax error near command 'EXIT'"),
        ("quit(select 1)", "syntax error near command 'EXIT'"),
        (":out", "syntax error near command ':OUT'"),
        (":xml maybe", "syntax error near command ':XML'"),
        (":setvar SQLCMDUSER x", "the scripting variable 'SQLCMDUSER' is read-only"),
        (":setvar sqlcmdheaders x", "the scripting variable 'SQLCMDHEADERS' has an invalid value"),
        (":setvar SQLCMDCOLWIDTH 8", "the scripting variable 'SQLCMDCOLWIDTH' has an invalid"),
        (":nonsense", "there is no command ':nonsense'"),
        (":on error", "syntax error near command ':ON ERROR'"),
        (":r", "syntax error near command ':R'"),
    ] {
        assert!(batches(command)[0].contains(told), "{command}: {:?}", batches(command));
    }
}

#[test]
fn exit_takes_its_query_over_lines() {
    let exits = |script: &str| match read(script.as_bytes(), Shelf(Vec::new())).pop() {
        Some(Ok(Item::Exit { batch, returns })) => {
            (batch.map(|batch| batch.text().to_owned()).unwrap_or_default(), returns)
        }
        other => panic!("{script}: {other:?}"),
    };
    for (script, text, returns) in [
        ("exit()\nx", "", false),
        ("a\n:EXIT( )", "a\n", false),
        ("a\nExit(SELECT (1))", "a\nSELECT (1)", true),
        ("EXIT (SELECT ')', '--'\n, 2) -- c\nx", "SELECT ')', '--'\n, 2", true),
        (":setvar n 3\nEXIT(SELECT $(n))", "SELECT 3", true),
    ] {
        assert_eq!(exits(script), (text.to_owned(), returns), "{script}");
    }
}

#[test]
fn a_dialect_has_its_own_terminator_and_passes_over_programs() {
    let dialect = Dialect {
        terminator: "go!".to_owned(),
        passes_over_programs: true,
        is_here: |name| name == "here",
    };
    let text = "a\nGO\nGO! 2\n!!rm x\n:connect here -U sa\n:reset\nb\nreset\n:list\n:connect there";
    let script = Script::new("s", Cursor::new(text), NoFiles, Variables::new()).with(dialect);
    let items: Vec<_> = script.map(|item| format!("{item:?}")).collect();
    assert_eq!(items.len(), 5, "{items:?}");
    assert!(items[0].contains("5 bytes, repeat: 2"), "{items:?}");
    assert_eq!(
        items[1..4],
        ["Ok(PassedOver { command: \"!!\" })", "Ok(Connect)", "Ok(List(\"\"))"]
    );
    assert!(items[4].contains("Elsewhere { server: \"there\" }"), "{items:?}");
}

#[test]
fn encodings() {
    let text = "PRINT 'größe €'\r\nGO\r\nPRINT 2";
    let found = batches(text);
    assert_eq!(found.len(), 2);
    let utf16 = |bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(bytes).collect()
    };
    assert_eq!(batches_of(&utf16(u16::to_le_bytes), Shelf(Vec::new())), found);
    assert_eq!(batches_of(&utf16(u16::to_be_bytes), Shelf(Vec::new())), found);
    assert_eq!(batches(&format!("\u{feff}{text}")), found);
    assert_eq!(batches("\n"), [""; 0]);
    assert_eq!(batches("a"), ["\"a\" x1 s.sql:1"]);
    assert_eq!(batches("\nGO\na"), ["\"a\" x1 s.sql:3"]);
    for wrong in [&b"PRINT '\xff'"[..], b"\xff\xfe\x00\xd8", b"\xef\xbb"] {
        let told = batches_of(wrong, Shelf(Vec::new()));
        assert!(told[0].contains("the text is neither UTF-8 nor UTF-16"), "{told:?}");
    }
}

/// Counts what is read from it.
struct Counted<R>(R, Rc<Cell<usize>>);

impl<R: BufRead> io::Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(to)?;
        self.1.set(self.1.get() + read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.0.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.1.set(self.1.get() + bytes);
        self.0.consume(bytes);
    }
}

#[test]
fn the_first_batch_is_there_before_the_second_is_read() {
    let statement = "BACKUP DATABASE db TO DISK = 'f' WITH INIT, STATS = 5;\nGO\n";
    let read = Rc::new(Cell::new(0));
    let reader = Counted(Cursor::new(statement.repeat(10_000).into_bytes()), Rc::clone(&read));
    let script = Script::new("s.sql", reader, NoFiles, Variables::new());
    for (at, item) in script.enumerate() {
        assert!(matches!(item.unwrap(), Item::Batch(_)));
        assert_eq!(read.get(), (at + 1) * statement.len());
    }
    assert_eq!(read.get(), 10_000 * statement.len());
}

#[test]
fn debug_shows_no_text() {
    let script = b":setvar p MARKER\nOPEN MASTER KEY DECRYPTION BY PASSWORD = '$(p)'";
    let mut script = Script::new("s.sql", Cursor::new(script), NoFiles, Variables::new());
    let item = script.next().unwrap().unwrap();
    let Item::Batch(batch) = &item else { panic!() };
    assert!(batch.text().contains("'MARKER'"));
    assert!(!format!("{item:?} {script:?} {:?}", script.variables).contains("MARKER"));
}
