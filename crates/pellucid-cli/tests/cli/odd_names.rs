//! Goal: each command that takes a file's name takes every name that a file can have, or says that it is the name and why.
//!
//! Method: 64 names times 17 uses, of a database, of media and of what is restored or salvaged. Two kinds of names are refused: too
//! long ones, and those of files beside a database; no other error passes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::support::{said, Place, PELLUCID};

/// Uses of a name: `@` stands for it, `%` for it in a folder, `&` for it with another letter in front.
const USES: [&str; 18] = [
    "encrypt @",
    "status @",
    "check @",
    "protector list @",
    "rekey @",
    "scan status @",
    "rewrap @ --certificate pellucid",
    "upgrade @",
    "backup @ --to med.bak",
    "restore med.bak --to % --replace",
    "restore med.bak --to & --replace",
    "salvage @ --to saved.db",
    "backup @ --to &m",
    "header &m",
    "verify &m",
    "restore &m --to back.db",
    "run -- sqlite3 @ SELECT/*name*/count(*)/*name*/FROM/*name*/t",
    "decrypt @",
];

pub fn names() -> Vec<Vec<u8>> {
    let lengths =
        [200, 220, 231, 235, 237, 238, 239, 240, 241, 242, 243, 244, 245, 246, 247, 248, 251, 255];
    let mut names: Vec<_> = lengths.iter().map(|length| vec![b'x'; *length]).collect();
    names.extend([110, 120, 122, 127].map(|letters| "\u{e4}".repeat(letters).into_bytes()));
    let others: [&[u8]; 42] = [
        b"caf\xe9.db",
        b"\xff\xfe",
        b"a b.db",
        b" lead",
        b"trail ",
        b"q'uote",
        b"dq\"uote",
        b"q?mark.db",
        b"h#ash.db",
        b"per%cent",
        b"%41%00",
        b"file:x.db",
        b"file:x.db?mode=ro",
        b"-dash",
        b"--to",
        b"new\nline",
        b"tab\tx",
        b"cr\rx",
        b"\x01\x1b[31mx",
        b"dots...",
        b".hidden",
        b"..x",
        b"...",
        b":memory:",
        b"a&b=c",
        b"a;b",
        b"$HOME",
        b"`id`",
        b"*",
        b"\\back",
        b"[a]",
        b"e\xcc\x81.db",
        b"\xf0\x9f\x94\x92.db",
        b"\xe2\x80\xae.db",
        b"NUL",
        b"CON",
        b"a:b",
        b"a,b",
        b"a|b",
        b"s3:",
        b"~",
        b"{x}",
    ];
    names.extend(others.map(<[u8]>::to_vec));
    names
}

fn words(line: &str, front: &str, name: &[u8]) -> Vec<OsString> {
    let with = |front: &str, end: &str| {
        OsString::from_vec([front.as_bytes(), name, end.as_bytes()].concat())
    };
    let word = |word: &str| match word.split_at(1) {
        ("@", end) => with(front, end),
        ("%", end) => with("sub/", end),
        ("&", end) => with("sub/y", end),
        _ => OsString::from(word.replace("/*name*/", " ")),
    };
    line.split(' ').map(word).collect()
}

#[test]
fn every_name_works_or_is_told_as_what_is_wrong() {
    let (mut worked, mut refused) = (0, 0);
    for name in names() {
        let is_long = name.len() > 200;
        let odd = name == b"caf\xe9.db" || name == b"...";
        let fronts: &[&str] = if odd { &["./", ".//", "sub/../"] } else { &["./"] };
        for front in fronts {
            let place = Place::new();
            place.instance();
            std::fs::create_dir(place.path("sub")).unwrap();
            place.plain("app.db");
            std::fs::rename(place.path("app.db"), place.path(".").join(OsStr::from_bytes(&name)))
                .unwrap();
            for line in USES {
                let mut command = place.command(PELLUCID);
                let told = said(command.arg("--yes").args(words(line, front, &name)));
                let what = format!(
                    "{front}{:?}, {} bytes, {line}: {told:?}",
                    OsStr::from_bytes(&name),
                    name.len()
                );
                if told.code == 0 {
                    worked += 1;
                    continue;
                }
                refused += 1;
                assert!(is_long && told.code == 1, "{what}");
                let is_gone = line.contains("&m") && told.stderr.contains("No such file");
                // Without its medium, as without its encryption, what follows has nothing to do.
                let follows = ["med.bak", "plain", "not encrypted", "needs no"]
                    .iter()
                    .any(|word| told.stderr.contains(word));
                assert!(told.stderr.contains("too long") || is_gone || follows, "{what}");
            }
        }
    }
    println!("{worked} uses of names worked, {refused} were refused");
    assert!(worked > 900 && refused > 0);
}
