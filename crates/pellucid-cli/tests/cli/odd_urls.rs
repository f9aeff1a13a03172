//! Goal: each command that takes an object's URL takes every name that an object can have, or says what is wrong with the name;
//! and of two names none is taken for the other.
//!
//! Method: a table of URLs times the commands that take one, against each server of S3's interface that is here. What is made
//! under a URL is read from there by every command; what is refused is refused by each of them, exit 1, in words about the name.

use std::collections::BTreeSet;

use crate::support::store::{servers, Server};
use crate::support::{Place, Said};

/// Commands that read: `@` stands for the URL.
const READS: [&str; 6] = [
    "header @",
    "files @",
    "label @",
    "verify @ --open",
    "restore @ --to back.db --replace",
    "history rebuild @",
];

/// Names behind `s3://backups/`, and the object's name that each stands for.
const NAMES: [(&str, &str); 40] = [
    ("a b", "a b"),
    ("c%20d", "c d"),
    ("a+b", "a+b"),
    ("c%2Bd", "c+d"),
    ("q/a%2Fb", "q/a/b"),
    ("üñí", "üñí"),
    ("%C3%BC", "ü"),
    ("\u{1f512}", "\u{1f512}"),
    ("e\u{301}", "e\u{301}"),
    ("\u{202e}x", "\u{202e}x"),
    ("a&b=c", "a&b=c"),
    ("a;b", "a;b"),
    ("q'uote", "q'uote"),
    ("\"dq\"", "\"dq\""),
    ("a:b", "a:b"),
    ("a@b", "a@b"),
    ("a,b", "a,b"),
    ("[a]", "[a]"),
    ("{x}", "{x}"),
    ("a|b", "a|b"),
    ("`id`", "`id`"),
    ("$HOME", "$HOME"),
    ("*", "*"),
    ("~", "~"),
    ("^x", "^x"),
    ("<x>", "<x>"),
    ("a\\..\\b", "a\\..\\b"),
    ("a%25b", "a%b"),
    ("%2541", "%41"),
    ("what%3F", "what?"),
    ("hash%23", "hash#"),
    ("...", "..."),
    ("..x", "..x"),
    (".hidden", ".hidden"),
    ("-dash", "-dash"),
    ("--to", "--to"),
    ("%7Bdb%7D", "{db}"),
    ("C:/x", "C:/x"),
    ("deep/er/and/deep/er/x", "deep/er/and/deep/er/x"),
    ("985", ""),
];

/// URLs that nothing can be under, and what is said of each.
const REFUSED: [(&str, &str); 39] = [
    ("s3://backups/", "names no object"),
    ("s3://backups", "names no object"),
    ("s3://backups/folder/", "names no object"),
    ("s3://backups/folder%2F", "names no object"),
    ("s3://backups//a", "two slashes"),
    ("s3://backups/a//b", "two slashes"),
    ("s3://backups/a%2F%2Fb", "two slashes"),
    ("s3://backups/%2Fa", "two slashes"),
    ("s3://backups/..", "`..`"),
    ("s3://backups/../x", "`..`"),
    ("s3://backups/a/./x", "`..`"),
    ("s3://backups/a/%2e%2E/x", "`..`"),
    ("s3://backups/a%2F..%2Fx", "`..`"),
    ("s3://backups/a%2F.", "`..`"),
    ("s3://backups/%00", "`%00`"),
    ("s3://backups/a%0Ab", "`%0A`"),
    ("s3://backups/a%1b%5B31m", "`%1B`"),
    ("s3://backups/a\nb", "`%0A`"),
    ("s3://backups/caf%E9", "UTF-8"),
    ("s3://backups/%C3", "UTF-8"),
    ("s3://backups/ends ", "`%20`"),
    ("s3://backups/what?", "`%3F`"),
    ("s3://backups/a#b", "`%23`"),
    ("s3://missing/a", "bucket `missing`"),
    ("s3://localhost/backups/a", "bucket `localhost`"),
    ("s3://b\u{fc}cket/a", "name of a bucket"),
    ("s3://[::1]/backups/a", "name of a bucket"),
    ("s3://127.0.0.1:9000/backups/a", "AWS_ENDPOINT"),
    ("s3://store:9000/backups/a", "AWS_ENDPOINT"),
    ("s3:///backups/a", "names no bucket"),
    ("s3:/backups/a", "two slashes"),
    ("s3n://backups/a", "no store that is known"),
    ("http://127.0.0.1/backups/a", "`https://`"),
    ("https://127.0.0.1/a\\..\\b", "`%5C`"),
    ("file://srv/a.bak", "three slashes"),
    ("s3://me:hunter2@backups/a", "environment"),
    ("986", "too long"),
    ("1024", "too long"),
    ("1025", "too long"),
];

/// A number is that many bytes in steps of 20, because a server that keeps files has steps of 255 bytes at most.
fn url(name: &str) -> String {
    match name.parse::<usize>() {
        Ok(length) => {
            format!("s3://backups/{}", &"nnnnnnnnnnnnnnnnnnn/".repeat(length / 20 + 1)[..length])
        }
        Err(_) if name.contains(":/") && !name.starts_with("C:") => name.to_owned(),
        Err(_) => format!("s3://backups/{name}"),
    }
}

fn run(server: &Server, place: &Place, line: &str, url: &str) -> Said {
    let words = line.split(' ').map(|word| if word == "@" { url } else { word });
    server.pellucid(place, &std::iter::once("--quiet").chain(words).collect::<Vec<_>>())
}

#[test]
fn every_name_of_an_object_works_and_is_its_own() {
    let all = servers();
    let last = all.len() - 1;
    for (number, mut server) in all.into_iter().enumerate() {
        // A process for each takes its time: the slower server has a third of the names, and answers the two that read all there is.
        let (reads, step) = if number == last { (&READS[..], 1) } else { (&READS[3..5], 3) };
        let place = Place::new();
        place.sealed("app.db", &[]);
        let mut expected = BTreeSet::new();
        for (name, object) in NAMES.into_iter().step_by(step) {
            let url = url(name);
            let what = format!("{}, {url}", server.name);
            let told = run(&server, &place, "backup app.db --to @", &url);
            assert_eq!(told.code, 0, "{what}: {told:?}");
            let again = run(&server, &place, "backup app.db --to @", &url);
            assert!(again.code == 1 && again.stderr.contains("there already"), "{what}: {again:?}");
            for line in reads {
                let told = run(&server, &place, line, &url);
                assert_eq!(told.code, 0, "{what}: {line}: {told:?}");
            }
            if !object.is_empty() {
                assert!(expected.insert(object), "{what}: a name of another one");
            }
        }
        let known = place.pellucid(&["--json", "history"]).succeeded();
        assert!(known.contains("s3://backups/a b"), "{known}");
        assert!(known.contains("s3://backups/c%20d") || step > 1, "{known}");
        // A line for an object; a name with a space is in two parts, and is told from its parts.
        let there = server.ask("objects");
        for object in expected {
            assert!(there.contains(object), "{}: no `{object}` in {there}", server.name);
        }
    }
}

#[test]
fn a_url_that_names_no_object_is_told_why_by_every_command() {
    // Where a name is refused, no server is asked: one is enough.
    if let Some(mut server) = servers().pop() {
        let place = Place::new();
        place.sealed("app.db", &[]);
        let before = server.objects();
        for (name, says) in REFUSED {
            let url = url(name);
            for line in ["backup app.db --to @"].iter().chain(&READS) {
                let what = format!("{}, {url}: {line}", server.name);
                let told = run(&server, &place, line, &url);
                assert_eq!(told.code, 1, "{what}: {told:?}");
                // What is too long to be made is not there either.
                let is_read = says == "too long" && !line.starts_with("backup");
                assert!(is_read || told.stderr.contains(says), "{what}: {told:?}");
                assert!(!told.stderr.contains("Generic"), "{what}: {told:?}");
                assert!(!told.stderr.contains("hunter2"), "{what}: a secret is repeated: {told:?}");
            }
            let made = !place.path("back.db").exists() && !place.path("s3:").exists();
            assert!(made, "{}, {url}: something was made", server.name);
        }
        assert_eq!(server.objects(), before, "{}", server.name);
    }
}
