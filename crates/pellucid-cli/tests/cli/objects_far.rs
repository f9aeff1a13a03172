//! Goal: a store that is far away is read at the speed of the line: few requests, several at once, and whatever is read is of one
//! object; a store that lies, or exchanges the object, gets an error that names it.
//!
//! Method: the servers of tests/cli/objects.rs. Their proxy counts requests and holds a number of them until all are there, so
//! that no test counts on time. How long it takes where each request takes 30 ms:
//! PELLUCID_OBJECT_MIB=1024 cargo test --workspace --test cli objects_far::a_store_30_ms -- --nocapture.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::objects::{database, rows};
use crate::support::store::{servers, Server};
use crate::support::Place;

/// Makes a database of `mib` MiB that cannot be compressed.
fn large(place: &Place, mib: u32) {
    let rows = mib * 16;
    let sql = format!(
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b BLOB);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         INSERT INTO t SELECT i, randomblob(65000) FROM n;"
    );
    place.sqlite3("app.db", &sql).succeeded();
    place.pellucid(&["encrypt", "app.db"]).succeeded();
}

fn requests(server: &mut Server, place: &Place, arguments: &[&str]) -> u32 {
    server.ask("count any");
    server.pellucid(place, arguments).succeeded();
    let requests = server.ask("count any").parse().unwrap();
    println!("{}: {requests} requests for {arguments:?}", server.name);
    requests
}

#[test]
fn a_backup_is_read_in_few_requests_and_several_at_once() {
    for mut server in servers() {
        let place = Place::new();
        large(&place, 48);
        let url = "s3://backups/far.bak";
        server
            .pellucid(&place, &["backup", "app.db", "--compression", "none", "--to", url])
            .succeeded();
        // Two for the name, two for the bytes' beginning and end.
        assert!(requests(&mut server, &place, &["header", url]) <= 4);
        // 48 MiB in parts of 2 MiB.
        assert!(requests(&mut server, &place, &["verify", url]) <= 40);
        assert!(requests(&mut server, &place, &["verify", "--open", url]) <= 70);
        assert!(requests(&mut server, &place, &["restore", url, "--to", "one.db"]) <= 40);
        for arguments in [&["verify", url][..], &["restore", url, "--to", "two.db"]] {
            // A part that takes 5 s, as on a busy machine, makes a reading ask for fewer; not each of five readings.
            let several = (0..5).any(|_| {
                // Behind those with which a reading begins: it asks for more the longer it goes on.
                server.ask("get 16 8 gather");
                let before: u32 = server.ask("gathered").parse().unwrap();
                server.pellucid(&place, arguments).succeeded();
                server.ask("clear");
                let _ = std::fs::remove_file(place.path("two.db"));
                server.ask("gathered") == (before + 8).to_string()
            });
            assert!(several, "{arguments:?}");
        }
    }
}

/// A store's lies, and what is said of them.
const LIES: [(&str, &str); 7] = [
    ("short", "object `"),
    ("long", "object `"),
    ("other", "damaged"),
    ("elsewhere", "object `"),
    ("whole", "object `"),
    ("exchanged", "changed while it was read"),
    ("unpinned", "changed while it was read"),
];

#[test]
fn a_store_that_lies_about_what_is_read_gives_an_error_that_names_the_object() {
    // It signs nothing, so that the proxy can lie.
    let mut server = Server::start("moto", "moto");
    let place = Place::new();
    let before = database(&place);
    for (lie, says) in LIES {
        for at in [2, 5] {
            let url = format!("s3://backups/{lie}-{at}.bak");
            let backup = ["backup", "app.db", "--compression", "none", "--to", &url];
            server.pellucid(&place, &backup).succeeded();
            let what = format!("{lie} at {at}");
            for words in [&["verify", &url][..], &["restore", &url, "--to", "back.db"]] {
                server.ask(&format!("get {at} 1 {lie}"));
                let told = server.pellucid(&place, words);
                server.ask("clear");
                // Another manifest's bytes are no manifest: the sets are found from the beginning then.
                if lie == "other" && told.code == 0 {
                    if words[0] == "restore" {
                        assert_eq!(rows(&place, "back.db"), before, "{what}");
                        std::fs::remove_file(place.path("back.db")).unwrap();
                    }
                    continue;
                }
                assert!(told.code != 0 && told.stderr.contains(says), "{what}: {told:?}");
                assert!(!place.path("back.db").exists(), "{what}");
                // The bytes of the object are other ones for good where it was exchanged.
                if lie != "exchanged" && lie != "unpinned" {
                    let to = format!("{lie}-{at}-{}.db", words[0]);
                    server.pellucid(&place, &["restore", &url, "--to", &to]).succeeded();
                    assert_eq!(rows(&place, &to), before, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_set_that_is_cut_or_followed_by_other_bytes_in_a_store_is_told_as_in_a_file() {
    let place = Place::new();
    database(&place);
    place.pellucid(&["backup", "app.db", "--to", "app.bak"]).succeeded();
    for _ in 0..2 {
        place.pellucid(&["backup", "app.db", "--append", "--to", "app.bak"]).succeeded();
    }
    let whole = std::fs::read(place.path("app.bak")).unwrap();
    std::fs::create_dir(place.path("store")).unwrap();
    let mut cases = vec![("whole", whole.clone())];
    for (name, bytes) in
        [("cut in the manifest", 60), ("cut in the index", 4000), ("cut in a set", 300_000)]
    {
        cases.push((name, whole[..whole.len() - bytes].to_vec()));
    }
    for (name, bytes) in [("a byte behind", 1), ("a block behind", 512)] {
        cases.push((name, [&whole[..], &vec![7; bytes]].concat()));
    }
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    cases.push(("the last manifest damaged", flipped(whole.len() - 100)));
    cases.push(("the first set header damaged", flipped(4096 + 90)));
    for (name, bytes) in cases {
        std::fs::write(place.path("copy.bak"), &bytes).unwrap();
        std::fs::write(place.path("store/copy.bak"), &bytes).unwrap();
        let url = format!("file://{}", place.path("store/copy.bak").display());
        for words in
            [&["--json", "header"][..], &["verify", "--open"], &["verify", "--position", "1"]]
        {
            let told = |medium: &str| {
                let said = place.pellucid(&[words, &[medium]].concat());
                let lines = said.stdout.lines().map(|line| line.split(" in ").next());
                let lines: Vec<_> =
                    lines.map(|line| line.map(|text| text.replace(medium, ""))).collect();
                (said.code, lines)
            };
            assert_eq!(told("copy.bak"), told(&url), "{name}, {words:?}");
        }
    }
}

/// A line to `port` on which each request takes `delay` more. Returns its port.
fn line(port: u16, delay: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let far = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (mut asks, mut hears) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            let (send, sent) = channel::<(Instant, Vec<u8>)>();
            std::thread::spawn(move || {
                let mut bytes = vec![0; 1 << 16];
                while let Ok(count @ 1..) = asks.read(&mut bytes) {
                    let _ = send.send((Instant::now() + delay, bytes[..count].to_vec()));
                }
            });
            std::thread::spawn(move || {
                let mut far = far;
                for (when, bytes) in sent {
                    std::thread::sleep(when.saturating_duration_since(Instant::now()));
                    let _ = far.write_all(&bytes);
                }
                let _ = far.shutdown(Shutdown::Write);
            });
            std::thread::spawn(move || {
                let mut near = near;
                let _ = std::io::copy(&mut hears, &mut near);
                let _ = near.shutdown(Shutdown::Both);
            });
        }
    });
    own
}

/// Prints how long commands take over a line of 0 ms and of 30 ms.
#[test]
fn a_store_30_ms_away_is_read_through_a_slow_line() {
    let mib: u32 = std::env::var("PELLUCID_OBJECT_MIB").map_or(8, |text| text.parse().unwrap());
    let Some(mut server) = servers().pop() else { return };
    let place = Place::new();
    large(&place, mib);
    let port: u16 = server.ask("port").parse().unwrap();
    server.port = port.to_string();
    let url = "s3://backups/line.bak";
    server
        .pellucid(&place, &["backup", "app.db", "--compression", "none", "--to", url])
        .succeeded();
    let rounds = if mib > 100 { 6 } else { 1 };
    for round in 0..rounds {
        for milliseconds in [0, 30] {
            server.port = line(port, Duration::from_millis(milliseconds)).to_string();
            for words in [
                &["header", url][..],
                &["verify", url],
                &["verify", "--open", url],
                &["restore", url, "--to", "back.db"],
            ] {
                let begun = Instant::now();
                server.pellucid(&place, &[&["--quiet"], words].concat()).succeeded();
                let took = begun.elapsed();
                println!("{mib} MiB, {milliseconds} ms, round {round}: {took:.2?} for {words:?}");
            }
            std::fs::remove_file(place.path("back.db")).unwrap();
        }
    }
}
