//! Goal: the service master key lies under a key of AWS KMS, or of the transit engine of Vault and OpenBao.
//!
//! Method: the plugins as they are shipped, against moto's KMS and a server that does what Vault's documents say of transit
//! (support/key_services.py): bound, opened, the token taken away, the server sealed and gone, each changed part refused.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::provider_keys::matrix;
use crate::support::store::python;
use crate::support::token::{pellucid, script};
use crate::support::{said, write_script, Place, PELLUCID};

const TOKEN: &str = "s.token-of-the-test";

struct Service {
    child: Child,
    ask: ChildStdin,
    hear: BufReader<ChildStdout>,
    /// What it said first.
    words: Vec<String>,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Service {
    fn start(kind: &str) -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/key_services.py");
        let mut command = Command::new(python());
        command.arg(program).arg(kind);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let ask = child.stdin.take().unwrap();
        let mut hear = BufReader::new(child.stdout.take().unwrap());
        let words = loop {
            let mut line = String::new();
            assert!(hear.read_line(&mut line).unwrap() > 0, "{kind} does not say its port");
            let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
            if words.first().is_some_and(|port| port.parse::<u16>().is_ok()) {
                break words;
            }
        };
        Self { child, ask, hear, words }
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.ask, "{line}").unwrap();
        let mut done = String::new();
        self.hear.read_line(&mut done).unwrap();
        assert_eq!(done.trim(), "done");
    }
}

/// The plugin as it is shipped, but for the Python that runs it.
fn shipped(place: &Place, name: &str, python: &str) {
    let file = format!("pellucid-plugin-{name}");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/plugins").join(&file);
    let text = std::fs::read_to_string(source).unwrap();
    let text = text.replacen("/usr/bin/python3", python, 1);
    std::fs::create_dir_all(place.path("plugins")).unwrap();
    write_script(&place.path(&format!("plugins/{file}")), &text);
}

fn place() -> Option<Place> {
    if !rustix::process::geteuid().is_root() {
        println!("SKIP: only what is root's is a plugin, and this is not root: nothing is tested");
        return None;
    }
    let place = Place::new();
    place.sealed("app.db", &[]);
    Some(place)
}

#[test]
fn a_key_of_aws_kms() {
    let Some(place) = place() else { return };
    let service = Service::start("kms");
    let executable = said(Command::new(python()).args(["-c", "import sys; print(sys.executable)"]));
    shipped(&place, "aws-kms", executable.succeeded().trim());
    let credentials = "[default]\naws_access_key_id = test\naws_secret_access_key = test\n";
    let credentials = place.secret("aws", credentials.as_bytes());
    let conf = format!(
        "region = us-east-1\ncredentials = {}\nendpoint = http://127.0.0.1:{}\n",
        credentials.display(),
        service.words[0]
    );
    std::fs::write(place.path("plugins/aws-kms.conf"), &conf).unwrap();
    let key = format!("aws-kms:{}", service.words[1]);
    let told = pellucid(&place, &["plugin", "test", "aws-kms", "--key", &key]);
    assert!(told.code == 0 && told.stdout.contains("7 passed, 0 failed"), "{told:?}");
    let bind = |key: &str| pellucid(&place, &["key", "bind", "--plugin", "aws-kms", "--key", key]);
    for (wrong, part) in [("aws-kms:no-such-key", "NotFoundException"), ("x", "`aws-kms:KEY`")] {
        let told = bind(wrong);
        assert!(told.code != 0 && told.stderr.contains(part), "{told:?}");
    }
    bind(&key).succeeded();
    assert!(!place.path("keys/service.key").exists());
    let check = || pellucid(&place, &["check", "app.db"]);
    check().succeeded();
    pellucid(&place, &["cert", "create", "of-kms"]).succeeded();
    matrix(&place, "of-kms");
    std::fs::write(place.path("plugins/aws-kms.conf"), conf.replace("http://127", "http://128"))
        .unwrap();
    let told = check();
    assert!(told.code != 0 && told.stderr.contains("has to be https"), "{told:?}");
    std::fs::write(place.path("plugins/aws-kms.conf"), &conf).unwrap();
    drop(service);
    let told = check();
    assert!(told.code != 0 && told.stderr.contains("EndpointConnectionError"), "{told:?}");
    assert!(!place.path("keys/service.key").exists());
}

#[test]
fn a_key_of_vaults_transit() {
    let Some(place) = place() else { return };
    let mut service = Service::start("transit");
    shipped(&place, "vault", "/usr/bin/python3");
    let token = place.secret("token", TOKEN.as_bytes());
    let conf = format!(
        "address = http://127.0.0.1:{}\ntoken-file = {}\n",
        service.words[0],
        token.display()
    );
    std::fs::write(place.path("plugins/vault.conf"), &conf).unwrap();
    let key = "vault:transit/pellucid";
    let told = pellucid(&place, &["plugin", "test", "vault", "--key", key]);
    assert!(told.code == 0 && told.stdout.contains("7 passed, 0 failed"), "{told:?}");
    let bind = |key: &str| pellucid(&place, &["key", "bind", "--plugin", "vault", "--key", key]);
    for (wrong, part) in [
        ("vault:transit/other", "no such key"),
        ("vault:../sys/x", "`vault:MOUNT/NAME`"),
        ("vault:transit/a?b", "`vault:MOUNT/NAME`"),
    ] {
        let told = bind(wrong);
        assert!(told.code != 0 && told.stderr.contains(part), "{told:?}");
    }
    bind(key).succeeded();
    let check = || pellucid(&place, &["check", "app.db"]);
    let refused = |part: &str| {
        let told = check();
        assert!(told.code != 0 && told.stderr.contains(part), "{part}: {told:?}");
        assert!(!told.all().contains(TOKEN) && !place.path("keys/service.key").exists());
    };
    check().succeeded();
    pellucid(&place, &["cert", "create", "of-vault"]).succeeded();
    matrix(&place, "of-vault");
    service.tell("seal");
    refused("the server is sealed");
    service.tell("unseal");
    service.tell("token s.another");
    refused("refuses the token");
    service.tell(&format!("token {TOKEN}"));
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    refused("others can read");
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let other = conf.replace("http://127", "http://128");
    std::fs::write(place.path("plugins/vault.conf"), other).unwrap();
    refused("has to be https");
    std::fs::write(place.path("plugins/vault.conf"), &conf).unwrap();
    check().succeeded();
    // A server that passes the associated data over is caught by what is wrapped.
    service.tell("forget");
    let told = pellucid(&place, &["plugin", "test", "vault", "--key", key]);
    assert!(told.code == 0 && told.stdout.contains("7 passed, 0 failed"), "{told:?}");
    drop(service);
    refused("the server does not answer");
    // Nothing of this place is the plugin's to decide by.
    script(&place, "vault", "exit 1");
    refused("exit status 1");
}

/// The lines under a heading of the guide's page, as they are typed.
fn lines_of_the_page(heading: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/tokens.md");
    let page = std::fs::read_to_string(page).unwrap();
    let section = page.split(&format!("\n## {heading}\n")).nth(1).unwrap();
    let block = section.split("```").nth(1).unwrap();
    block.trim().lines().map(str::to_owned).collect()
}

/// The page's own lines, one after the other: what is changed in them is where the test's places and servers are.
#[test]
fn the_guides_lines_for_key_services_do_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/plugins");
    let python = said(Command::new(python()).args(["-c", "import sys; print(sys.executable)"]));
    let python = python.succeeded().trim().to_owned();
    for (heading, name, kind) in
        [("AWS KMS", "aws-kms", "kms"), ("Vault and OpenBao", "vault", "transit")]
    {
        let Some(place) = place() else { return };
        let service = Service::start(kind);
        std::fs::create_dir_all(place.path("plugins")).unwrap();
        let plugins = format!("{}/", place.path("plugins").display());
        let token = place.secret("token", TOKEN.as_bytes());
        let credentials = "[default]\naws_access_key_id = test\naws_secret_access_key = test\n";
        let credentials = place.secret("aws", credentials.as_bytes());
        let address = format!("http://127.0.0.1:{}", service.words[0]);
        let programs = format!("{}:/usr/bin:/bin", Path::new(PELLUCID).parent().unwrap().display());
        let mut done = Vec::new();
        for line in lines_of_the_page(heading) {
            // The server of the tests has its key already.
            if line.starts_with("vault write ") {
                continue;
            }
            let line = line
                .replace("/usr/share/doc/pellucid/examples/plugins", source.to_str().unwrap())
                .replace("/usr/local/lib/pellucid/plugins/", &plugins)
                .replace("/etc/pellucid/plugins/", &plugins)
                .replace("/etc/pellucid/vault-token", token.to_str().unwrap())
                .replace("https://vault.example:8200", &address)
                .replace("eu-central-1", "us-east-1");
            let mut shell = place.command("/bin/sh");
            shell.env("PATH", &programs).env("PELLUCID_PLUGIN_PATH", place.path("plugins"));
            let told = said(shell.args(["-ec", &line]));
            assert!(told.code == 0, "{line}\n{told:?}");
            if line.starts_with("install ") {
                // The Python that has boto3 here.
                let file = place.path(&format!("plugins/pellucid-plugin-{name}"));
                let text = std::fs::read_to_string(&file).unwrap();
                write_script(&file, &text.replacen("/usr/bin/python3", &python, 1));
            }
            if line.ends_with("aws-kms.conf") {
                let conf = place.path("plugins/aws-kms.conf");
                let text = std::fs::read_to_string(&conf).unwrap();
                let here =
                    format!("credentials = {}\nendpoint = {address}\n", credentials.display());
                std::fs::write(&conf, text + &here).unwrap();
            }
            done.push(line);
        }
        assert!(done.len() >= 4 && !place.path("keys/service.key").exists(), "{done:?}");
        pellucid(&place, &["check", "app.db"]).succeeded();
    }
}
