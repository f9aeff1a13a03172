//! Goal: a backup to an object store is whole or not there, restores from there, and no secret of the store is in an
//! argument, a message or the history.
//!
//! Method: a server of S3's interface on this machine (moto; `.ci/deps` installs it), and a store of files by URL.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{said, Place, Said, PELLUCID};

const SECRET: &str = "a-secret-that-nobody-may-see";

/// A Python with moto: the system's, or the one that `.ci/deps` made.
fn python() -> PathBuf {
    let own = Path::new(PELLUCID).with_file_name("../tools/moto/bin/python3");
    let has_moto = |python: &PathBuf| {
        let look = Command::new(python).args(["-c", "import boto3, moto.server"]).output();
        look.is_ok_and(|looked| looked.status.success())
    };
    let found = [PathBuf::from("python3"), own].into_iter().find(has_moto);
    found.expect("moto is missing: .ci/deps installs it")
}

/// A server with a bucket `backups`.
struct Server {
    child: Child,
    port: String,
}

impl Server {
    fn start() -> Self {
        let program = "import sys
from moto.server import ThreadedMotoServer
import boto3
server = ThreadedMotoServer(ip_address='127.0.0.1', port=0)
server.start()
host, port = server.get_host_and_port()
boto3.client('s3', endpoint_url=f'http://127.0.0.1:{port}', region_name='us-east-1', aws_access_key_id='x',
             aws_secret_access_key='y').create_bucket(Bucket='backups')
print(port, flush=True)
sys.stdin.read()
";
        let mut command = Command::new(python());
        command.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        // It says that it starts before it says where.
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.map_while(Result::ok).find(|line| line.parse::<u16>().is_ok());
        Self { child, port: port.expect("moto does not say its port") }
    }

    fn pellucid(&self, place: &Place, arguments: &[&str]) -> Said {
        let mut command = place.command(PELLUCID);
        command.env("AWS_ENDPOINT", format!("http://127.0.0.1:{}", self.port));
        command.env("AWS_ALLOW_HTTP", "true").env("AWS_REGION", "us-east-1");
        command.env("AWS_ACCESS_KEY_ID", "x").env("AWS_SECRET_ACCESS_KEY", SECRET);
        let told = said(command.args(arguments));
        assert!(!told.all().contains(SECRET), "{told:?}");
        told
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends with its input, too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn database(place: &Place) -> String {
    let sql = "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
        INSERT INTO t SELECT i, 'marked-plaintext ' || hex(randomblob(150)) FROM n;";
    place.sqlite3("app.db", sql).succeeded();
    place.pellucid(&["encrypt", "app.db"]).succeeded();
    rows(place, "app.db")
}

fn rows(place: &Place, name: &str) -> String {
    place.pellucid(&["run", "--", "sqlite3", name, "SELECT count(*), max(b) FROM t"]).succeeded()
}

#[test]
fn a_store_of_s3s_kind_keeps_backups_that_restore() {
    let server = Server::start();
    let place = Place::new();
    let before = database(&place);
    // More than one part: it does not compress.
    let backup = ["backup", "app.db", "--compression", "none", "--to"];
    let to = ["s3://backups/nightly/1.bak", "s3://backups/nightly/2.bak"];
    server.pellucid(&place, &[&backup[..], &to].concat()).succeeded();
    let again = server.pellucid(&place, &[&backup[..], &to].concat());
    assert!(again.code == 1 && again.stderr.contains("it is there already"), "{again:?}");
    for more in ["--append", "--overwrite", "--format"] {
        let refused = server.pellucid(&place, &[&backup[..], &to, &[more]].concat());
        assert!(refused.code == 1 && refused.stderr.contains("another name"), "{refused:?}");
    }
    server.pellucid(&place, &[&["verify", "--open"], &to[..]].concat()).succeeded();
    server.pellucid(&place, &[&["restore"], &to[..], &["--to", "back.db"]].concat()).succeeded();
    assert_eq!(rows(&place, "back.db"), before);
    let update = "UPDATE t SET b = 'z' WHERE a = 7";
    place.pellucid(&["run", "--", "sqlite3", "app.db", update]).succeeded();
    let differential = ["s3://backups/nightly/d.bak", "--differential", "--base", to[0], to[1]];
    server.pellucid(&place, &[&backup[..], &differential].concat()).succeeded();
    let restore = ["restore", "s3://backups/nightly/d.bak", "--base", to[0], to[1], "--to", "d.db"];
    server.pellucid(&place, &restore).succeeded();
    assert_eq!(rows(&place, "d.db"), rows(&place, "app.db"));
    let known = place.pellucid(&["--json", "history"]).succeeded();
    assert!(known.contains("s3://backups/nightly/1.bak") && !known.contains(SECRET), "{known}");
    let missing = server.pellucid(&place, &["header", "s3://backups/nothing.bak"]);
    assert!(missing.code == 1, "{missing:?}");
    let nowhere = server.pellucid(&place, &[&backup[..], &["s3://no-such-bucket/x.bak"]].concat());
    assert!(nowhere.code == 1, "{nowhere:?}");
    let mut command = place.command(PELLUCID);
    command.env("AWS_ENDPOINT", "http://127.0.0.1:no port").args([&backup[..], &[to[0]]].concat());
    let refused = said(&mut command);
    assert!(refused.code == 1 && refused.stderr.contains("AWS_ENDPOINT"), "{refused:?}");
    let secret = format!("s3://key:{SECRET}@backups/x.bak");
    let refused = place.pellucid(&[&backup[..], &[&secret]].concat());
    assert!(refused.code == 1 && refused.stderr.contains("from the environment"), "{refused:?}");
}

#[test]
fn a_killed_backup_leaves_no_object_under_its_name() {
    let place = Place::new();
    database(&place);
    std::fs::create_dir(place.path("store")).unwrap();
    let url = format!("file://{}", place.path("store/app.bak").display());
    for wait in [5, 20, 40, 60, 80] {
        let mut backup = place.command(PELLUCID);
        backup.args(["backup", "app.db", "--compression", "none", "--quiet", "--to", &url]);
        let mut backup = backup.stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        backup.kill().unwrap();
        backup.wait().unwrap();
        if place.path("store/app.bak").exists() {
            place.pellucid(&["verify", &url, "--open"]).succeeded();
            std::fs::remove_file(place.path("store/app.bak")).unwrap();
        }
    }
    place.pellucid(&["backup", "app.db", "--to", &url]).succeeded();
    let bytes = std::fs::read(place.path("store/app.bak")).unwrap();
    assert!(bytes.starts_with(b"{"), "the name is a pointer");
    for entry in std::fs::read_dir(place.path("store")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(16).any(|window| window == b"marked-plaintext"));
    }
    place.pellucid(&["restore", &url, "--to", "back.db"]).succeeded();
    assert_eq!(rows(&place, "back.db"), rows(&place, "app.db"));
}
