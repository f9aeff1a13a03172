//! Goal: the service master key lies under a key of a PKCS#11 token, moves from there to every other place and back, and
//! nothing of it or of the PIN is anywhere else; whatever is wrong with the token is an error that says who must act.
//!
//! Method: SoftHSM's tokens and the plugin as it is shipped. Each move is killed before each call that changes a file of the
//! instance. Only root can try it: plugins are root's.

use std::path::Path;

use crate::support::token::{
    command, open_at_once, pellucid, place, plugin, script, shell, Token, PIN,
};
use crate::support::{kill_stride, said, Place};

fn bind(place: &Place, key: &str) -> String {
    pellucid(place, &["key", "bind", "--plugin", "pkcs11", "--key", key]).succeeded()
}

fn words<'a>(place: &Place, words: &'a str) -> crate::support::Said {
    pellucid(place, &words.split(' ').collect::<Vec<&'a str>>())
}

#[test]
fn a_key_of_a_token_takes_the_place_of_the_file_in_clear() {
    let place = place();
    let Some(token) = Token::make(&place) else { return };
    let key = std::fs::read(place.path("keys/service.key")).unwrap();
    let told = bind(&place, &token.key("smk"));
    assert!(
        told.contains("a key of the plugin pkcs11") && told.contains("key backup service"),
        "{told}"
    );
    assert!(!place.path("keys/service.key").exists());
    // It lies nowhere, nor does the PIN but in its file; in the token neither is in clear.
    let holds = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).any(|part| part == what);
    for (path, _) in place.snapshot() {
        let bytes = std::fs::read(&path).unwrap_or_default();
        assert!(!holds(&bytes, &key), "{}", path.display());
        assert!(path.ends_with("pin") || !holds(&bytes, PIN.as_bytes()), "{}", path.display());
    }
    assert!(!holds(&token.bytes(), &key));
    words(&place, "check app.db").succeeded();
    let told = words(&place, "key status").succeeded();
    assert!(
        told.contains(
            "service.provider, under a key of the plugin pkcs11: pkcs11:token=T;object=smk"
        ),
        "{told}"
    );
    for one in ["status", "doctor"] {
        let told = words(&place, one).stdout;
        assert!(told.contains("under a key of the plugin pkcs11"), "{one}: {told}");
        assert!(!told.contains("lies in clear"), "{one}: {told}");
    }
    // Any program's SQLite.
    let told = said(&mut shell(&place, &[".open app.db", "SELECT count(*) FROM t"]));
    assert_eq!(told.stdout.trim(), "200", "{told:?}");
    // Nothing opens without plugins, and no key is made in the place of the one that is there.
    place.plain("other.db");
    for (name, value) in [("PELLUCID_PLUGINS", "0"), ("PELLUCID_PLUGIN_PATH", "/nowhere")] {
        for one in [["check", "app.db"], ["encrypt", "other.db"]] {
            let told = said(command(&place).env(name, value).args(one));
            assert!(told.code != 0 && told.stderr.contains("pellucid-plugin-pkcs11"), "{told:?}");
        }
    }
    assert!(!place.path("keys/service.key").exists());
    // It is not exchanged past the token, and the steps that are named do it.
    let told = words(&place, "key regenerate service");
    assert!(told.code == 1 && told.stderr.contains("key bind --here"), "{told:?}");
    words(&place, "key bind --here").succeeded();
    assert_eq!(std::fs::read(place.path("keys/service.key")).unwrap(), key);
    assert!(!place.path("keys/service.provider").exists());
    words(&place, "key regenerate service").succeeded();
    bind(&place, &token.key("smk"));
    words(&place, "check app.db").succeeded();
}

#[test]
fn it_moves_between_all_places() {
    let place = place();
    let Some(token) = Token::make(&place) else { return };
    token.pkcs11("--keygen --key-type AES:32 --label second --sensitive");
    token.pkcs11("--keypairgen --key-type RSA:3072 --label pair");
    let files = ["service.key", "service.sealed", "service.provider"];
    for (move_, there) in [
        ("plugin smk", "service.provider"),
        ("plugin second", "service.provider"),
        ("plugin pair", "service.provider"),
        ("key bind --passphrase-file phrase", "service.sealed"),
        ("plugin smk", "service.provider"),
        ("key bind --here", "service.key"),
        ("key bind --passphrase-file phrase", "service.sealed"),
        ("plugin pair", "service.provider"),
    ] {
        match move_.strip_prefix("plugin ") {
            Some(object) => drop(bind(&place, &token.key(object))),
            None => drop(words(&place, move_).succeeded()),
        }
        for file in files {
            assert_eq!(place.path("keys").join(file).exists(), file == there, "{move_}: {file}");
        }
        words(&place, "check app.db").succeeded();
    }
    // A lost token: a backup of the key helps, whatever the plugin says.
    words(&place, "key backup service --file smk.backup --password-file password").succeeded();
    std::fs::remove_dir_all(place.path("tokens")).unwrap();
    std::fs::create_dir(place.path("tokens")).unwrap();
    assert_ne!(words(&place, "check app.db").code, 0);
    words(&place, "key restore service --file smk.backup --password-file password").succeeded();
    assert!(!place.path("keys/service.provider").exists());
    words(&place, "check app.db").succeeded();
}

#[test]
fn moving_is_killed_everywhere_and_every_database_opens() {
    let model = place();
    if Token::make(&model).is_none() {
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools/killat.c");
    let preload = model.compile_library(&source, "killat.so");
    let to_token = "key bind --plugin pkcs11 --key";
    let mut calls = 0;
    for (before, what) in [
        ("", to_token),
        (to_token, "key bind --here"),
        (to_token, "key bind --passphrase-file phrase"),
        ("key bind --passphrase-file phrase", to_token),
        (to_token, to_token),
    ] {
        let mut at = 1;
        loop {
            let live = place();
            let token = Token::make(&live).unwrap();
            let key = token.key("smk");
            let whole = |one: &str| {
                let mut all: Vec<String> = one.split(' ').map(str::to_owned).collect();
                all.extend((one == to_token).then(|| key.clone()));
                all
            };
            if !before.is_empty() {
                said(command(&live).args(whole(before))).succeeded();
            }
            let mut killed = command(&live);
            killed.env("LD_PRELOAD", &preload).env("KILL_DIR", live.path("keys").join(""));
            let told = said(killed.env("KILL_AT", at.to_string()).args(whole(what)));
            let name = format!("{before} -> {what} killed at {at}");
            assert!(told.code == 0 || told.code == 128 + 9, "{name}: {told:?}");
            words(&live, "check app.db").succeeded();
            said(command(&live).args(whole(what))).succeeded();
            words(&live, "check app.db").succeeded();
            if told.code == 0 {
                break;
            }
            // Each asks the token five times.
            at += 3 * kill_stride();
        }
        calls += at;
        assert!(at > 4, "{what}: killed at {at} only");
    }
    println!("RESULT {calls}");
}

#[test]
fn whatever_is_wrong_with_the_token_says_who_must_act() {
    let place = place();
    let Some(token) = Token::make(&place) else { return };
    bind(&place, &token.key("smk"));
    let refused = |what: &str| {
        let told = words(&place, "check app.db");
        assert!(told.code != 0 && told.stderr.contains(what), "{what}: {told:?}");
        assert!(!told.all().contains(PIN) && !told.all().contains("wrong-pin"), "{told:?}");
    };
    // A wrong PIN is tried once, and never again before somebody has logged in.
    token.pin("wrong-pin");
    refused("is not the token's; it was tried once");
    refused("nothing was tried");
    token.pin(PIN);
    refused("nothing was tried");
    token.pkcs11("--list-objects");
    words(&place, "check app.db").succeeded();
    std::fs::remove_file(place.path("pin")).unwrap();
    refused("No such file");
    std::fs::write(place.path("pin"), PIN).unwrap();
    refused("others can read");
    token.pin(PIN);
    // Two keys of one name: neither.
    token.pkcs11("--keygen --key-type AES:32 --label smk --sensitive");
    refused("2 keys that fit");
    // A token that is out, and two that fit.
    std::fs::rename(place.path("tokens"), place.path("elsewhere")).unwrap();
    std::fs::create_dir(place.path("tokens")).unwrap();
    refused("is it in");
    std::fs::remove_dir(place.path("tokens")).unwrap();
    std::fs::rename(place.path("elsewhere"), place.path("tokens")).unwrap();
    token.tool("softhsm2-util --init-token --free --label T --so-pin OFFICER --pin PIN");
    refused("2 tokens fit");
}

#[test]
fn settings_of_roots_alone_say_which_module_is_loaded() {
    let place = place();
    let Some(token) = Token::make(&place) else { return };
    let refused = |key: &str, what: &str| {
        let told = pellucid(&place, &["key", "bind", "--plugin", "pkcs11", "--key", key]);
        assert!(told.code != 0 && told.stderr.contains(what), "{what}: {told:?}");
        assert!(
            place.path("keys/service.key").exists()
                && !place.path("keys/service.provider").exists()
        );
    };
    let key = token.key("smk");
    std::fs::copy("/usr/bin/true", place.path("evil.so")).unwrap();
    refused(&format!("{key}&module-path={}", place.path("evil.so").display()), "none that");
    refused(&format!("{key}&module-name=other"), "none that");
    refused("pkcs11:token=T;object=smk?pin-value=4711-user-pin", "no PIN belongs");
    refused("pkcs11:token=T;object=smk", "wants a PIN");
    refused("pkcs11:token=T?pin-source=file:/nowhere", "No such file");
    refused(&token.key("none"), "no private RSA key of this name");
    refused("aws:x", "a PKCS#11 URI");
    // The settings' file with the PIN is the only one where they name one.
    token.settings(&format!("pin-source = {}", place.path("pin").display()));
    refused(&key, "leave `pin-source` out");
    bind(&place, "pkcs11:token=T;object=smk;type=secret-key?module-name=softhsm2");
    words(&place, "check app.db").succeeded();
    words(&place, "key bind --here").succeeded();
    // What somebody else could have written is not read.
    let conf = place.path("plugins/pkcs11.conf");
    std::os::unix::fs::chown(&conf, Some(65533), None).unwrap();
    refused("pkcs11:token=T;object=smk", "only what is root's");
    std::os::unix::fs::chown(&conf, Some(0), None).unwrap();
    std::os::unix::fs::chown(place.path("plugins"), Some(65533), None).unwrap();
    refused("pkcs11:token=T;object=smk", "only what is root's");
}

#[test]
fn a_process_asks_once_and_many_at_once_all_open() {
    let place = place();
    let Some(token) = Token::make(&place) else { return };
    // Counts, and hands on.
    plugin(&place, "pkcs11");
    let (inner, log) = (place.path("plugins/pellucid-plugin-pkcs11"), place.path("asked"));
    let body = format!("echo x >> {}; echo \"$line\" | {}", log.display(), inner.display());
    script(&place, "counted", &body);
    let key = token.key("smk");
    pellucid(&place, &["key", "bind", "--plugin", "counted", "--key", &key]).succeeded();
    std::fs::remove_file(&log).unwrap();
    let mut sqlite = shell(&place, &[]);
    for _ in 0..10 {
        sqlite.args([".open app.db", "SELECT count(*) FROM t"]);
    }
    let told = said(&mut sqlite);
    assert_eq!(told.stdout.matches("200").count(), 10, "{told:?}");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "x\n");
    bind(&place, &key);
    // A token serves one after the other, and who waits does so for 8 s: a hundred where a machine is idle.
    let many = std::env::var("PELLUCID_TEST_PROCESSES").map_or(30, |many| many.parse().unwrap());
    open_at_once(&place, many);
}

#[test]
fn anybodys_plugin_can_be_tested() {
    let place = place();
    let Some(token) = Token::make(&place) else { return };
    token.pkcs11("--keypairgen --key-type RSA:3072 --label pair");
    for (object, checks) in [("smk", 7), ("pair", 13)] {
        let told = pellucid(&place, &["plugin", "test", "pkcs11", "--key", &token.key(object)]);
        assert_eq!(told.code, 0, "{told:?}");
        assert!(told.stdout.contains(&format!("{checks} passed, 0 failed")), "{told:?}");
        let json =
            pellucid(&place, &["--json", "plugin", "test", "pkcs11", "--key", &token.key(object)]);
        assert!(json.code == 0 && json.stdout.contains("\"failed\":0"), "{json:?}");
    }
    // One that opens whatever it gets.
    let can = r#"echo "{\"v\":1,\"id\":\"$id\",\"name\":\"x\",\"version\":\"1\",\"can\":[\"wrap\",\"unwrap\"]}""#;
    let secret = r#"s=${line#*\"secret\":\"}; s=${s%%\"*}"#;
    let body = format!(
        "case $line in *describe*) {can};; *unwrap*) echo \"{{\\\"v\\\":1,\\\"id\\\":\\\"$id\\\",\\\"secret\\\":\\\"$(cat {0})\\\"}}\";; \
         *) {secret}; echo \"$s\" > {0}; echo \"{{\\\"v\\\":1,\\\"id\\\":\\\"$id\\\",\\\"wrapped\\\":\\\"AQIDBAUGBwg=\\\"}}\";; esac",
        place.path("kept").display()
    );
    script(&place, "open", &body);
    let told = pellucid(&place, &["plugin", "test", "open", "--key", "x"]);
    assert!(told.code == 1 && told.stdout.contains("2 passed, 5 failed"), "{told:?}");
    let told = words(&place, "plugin list").succeeded();
    assert!(
        told.contains("pkcs11") && told.contains("wrap unwrap public decrypt sign create"),
        "{told}"
    );
    // Somebody else's is named, and not run.
    std::os::unix::fs::chown(place.path("plugins/pellucid-plugin-open"), Some(65533), None)
        .unwrap();
    let told = words(&place, "plugin list").succeeded();
    assert!(told.contains("!!") && told.contains("only what is root's"), "{told}");
    words(&place, "--json plugin list").succeeded();
}
