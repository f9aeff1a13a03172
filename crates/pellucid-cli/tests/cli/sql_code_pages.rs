//! Goal: scripts in the code page of their machine are read with -f, and results are written in one; what is not in the
//! code page that is named is told and never becomes something else.
//!
//! Method: the program from outside; bytes are typed by hand.

use crate::support::{Place, Said};

fn sql(place: &Place, arguments: &[&str]) -> Said {
    place.pellucid(&[&["sql"], arguments].concat())
}

#[test]
fn a_script_is_read_in_its_code_page() {
    let place = Place::new();
    for (page, bytes, text) in [
        ("1252", &b"-- \xa9 by Jos\xe9\nPRINT N'Jos\xe9 \x80'\nGO\n"[..], "José €"),
        ("i:1252", b"PRINT N'\xe9'\r\nGO\r\n", "é"),
        ("1251", b"PRINT N'\xcf\xf0'", "Пр"),
        ("437", b"PRINT N'\x82'", "é"),
        ("850", b"PRINT N'\xd5'", "ı"),
        ("932", b"PRINT N'\x93\xfa'", "日"),
        ("28591", b"PRINT N'\xfc'", "ü"),
        ("65001", "PRINT N'ü'".as_bytes(), "ü"),
        ("1200", b"P\0R\0I\0N\0T\0 \0\x31\0", "1"),
        // A byte order mark comes before the code page.
        ("1252", b"\xef\xbb\xbfPRINT N'\xc3\xa9'", "é"),
        ("1252", b"\xff\xfeP\0R\0I\0N\0T\0 \0\x31\0", "1"),
    ] {
        place.secret("given.sql", bytes);
        let page = format!("i:{}", page.trim_start_matches("i:"));
        let told = sql(&place, &["-f", &page, "-i", "given.sql"]);
        assert_eq!(told.succeeded(), format!("{text}\n"), "{page}");
    }
    // Standard input and files within scripts, too.
    place.secret("inner.sql", b"PRINT N'\xe9'\n");
    place.secret("given.sql", b":r inner.sql\n");
    assert_eq!(sql(&place, &["-f", "i:1252", "-i", "given.sql"]).succeeded(), "é\n");
    // Arguments are text already.
    assert_eq!(sql(&place, &["-f", "i:1252", "-Q", "PRINT N'é'"]).succeeded(), "é\n");
}

#[test]
fn what_is_no_text_is_told() {
    let place = Place::new();
    place.secret("given.sql", b"-- \xa9\nPRINT 'ran'\nGO\n");
    let told = sql(&place, &["-i", "given.sql"]);
    assert_eq!((told.code, told.stdout.as_str()), (1, ""), "{told:?}");
    assert!(told.stderr.contains("neither UTF-8 nor UTF-16 (`-f 1252`"), "{told:?}");
    let told = sql(&place, &["-f", "20127", "-i", "given.sql"]);
    assert_eq!((told.code, told.stdout.as_str()), (1, ""), "{told:?}");
    assert!(told.stderr.contains("no characters of code page 20127"), "{told:?}");
    let told = sql(&place, &["-f", "37", "-i", "given.sql"]);
    assert_eq!((told.code, told.stdout.as_str()), (2, ""), "{told:?}");
    assert!(told.stderr.contains("code page `37` is not known here"), "{told:?}");
}

#[test]
fn results_are_written_in_a_code_page() {
    let place = Place::new();
    let written = |options: &[&str]| {
        let text = "PRINT N'é日'";
        sql(&place, &[&["-o", "out", "-Q", text], options].concat()).succeeded();
        std::fs::read(place.path("out")).unwrap()
    };
    assert_eq!(written(&[]), "é日\n".as_bytes());
    assert_eq!(written(&["-f", "1252"]), b"\xe9?\n");
    assert_eq!(written(&["-f", "i:437,o:932"]), b"?\x93\xfa\n");
    assert_eq!(written(&["-f", "i:1252"]), "é日\n".as_bytes());
    let utf_16 = b"\xff\xfe\xe9\0\xe5\x65\n\0";
    for options in [&["-u"][..], &["-f", "o:1200"], &["--unicode-output-file", "-f", "1252"]] {
        assert_eq!(written(options), utf_16, "{options:?}");
    }
    place.secret("given.sql", ":out more\nPRINT N'é日'\n".as_bytes());
    assert_eq!(sql(&place, &["-u", "-i", "given.sql"]).succeeded(), "");
    assert_eq!(std::fs::read(place.path("more")).unwrap(), utf_16);
}
