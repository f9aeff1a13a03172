//! A plugin that does anything but answer costs an error that names it, within its time, and nothing else.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use super::*;

const KEY: &str = "test:key";

/// A plugin of a shell script: `$line` is the question, `$id` its id.
fn plugin(place: &tempfile::TempDir, body: &str) -> Plugin {
    let file = place.path().join("pellucid-plugin-test");
    let script = format!(
        "#!/bin/bash\nread -r line\nid=${{line#*\\\"id\\\":\\\"}}; id=${{id%%\\\"*}}\n{body}\n"
    );
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    Plugin { name: "test".to_owned(), file, pin: None }
}

fn asked(body: &str) -> Result<Secret> {
    let place = tempfile::tempdir().unwrap();
    plugin(&place, body).unwrap(KEY, b"wrapped", b"context")
}

fn told(body: &str) -> String {
    let error = asked(body).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("pellucid-plugin-test") && text.contains(KEY), "{text}");
    assert!(matches!(error, Error::Io { .. }), "{text}");
    text
}

#[test]
fn one_line_is_an_answer() {
    let secret = asked(r#"echo "{\"v\":1,\"id\":\"$id\",\"secret\":\"AQID\"}""#).unwrap();
    assert_eq!(secret.as_slice(), [1, 2, 3]);
    // Another field that a later version has is no trouble.
    asked(r#"echo "{\"v\":1,\"id\":\"$id\",\"secret\":\"AQID\",\"more\":[{}]}""#).unwrap();
}

#[test]
fn what_is_no_answer_is_an_error() {
    for (body, part) in [
        ("", "one line"),
        ("echo; echo", "one line"),
        ("echo hello", "no line of JSON"),
        (r#"echo "{\"v\":1,\"id\":\"$id\",\"secret\":\"AQID\"}"; echo more"#, "one line"),
        (r#"echo "{\"v\":2,\"id\":\"$id\",\"secret\":\"AQID\"}""#, "another version"),
        (r#"echo "{\"v\":1,\"id\":\"0\",\"secret\":\"AQID\"}""#, "another question"),
        (r#"echo "{\"v\":1,\"id\":\"$id\"}""#, "lacks the bytes"),
        (r#"echo "{\"v\":1,\"id\":\"$id\",\"secret\":\"\"}""#, "lacks the bytes"),
        (r#"echo "{\"v\":1,\"id\":\"$id\",\"secret\":\"AQI\"}""#, "lacks the bytes"),
        (r#"echo "{\"v\":1,\"id\":\"$id\",\"secret\":7}""#, "lacks the bytes"),
        (r#"echo "{\"v\":1,\"id\":\"$id\",\"plaintext\":\"AQID\"}""#, "lacks the bytes"),
        (r#"printf "{\"v\":1,\"id\":\"$id\",\"secret\":\"%02000d\"}" 0"#, "lacks the bytes"),
        (r#"printf '\xff\n'"#, "no line of JSON"),
        (r#"echo "{\"v\":1,\"id\":\"$id\",\"secret\":\"AQID\"}"; exit 3"#, "exit status 3"),
        ("echo first >&2; printf 'the \\033[2Jlast\\n' >&2; exit 1", "the \\x1b[2Jlast"),
        ("kill -9 $$", "signal 9"),
        ("exec yes", "more than an answer"),
        ("yes >&2", "more than an answer"),
    ] {
        let text = told(body);
        assert!(text.contains(part), "{body}: {text}");
        assert!(!text.contains("AQID"), "{text}");
    }
}

#[test]
fn who_must_act_is_told_by_the_kind() {
    let refused = |kind: &str| {
        let answer = r#"{\"v\":1,\"id\":\"$id\",\"error\":{\"kind\":\"KIND\",\"text\":\"why\"}}"#;
        asked(&format!("echo \"{}\"", answer.replace("KIND", kind))).unwrap_err()
    };
    assert!(matches!(refused("missing-key"), Error::MissingKey { .. }));
    assert!(matches!(refused("misuse"), Error::Misuse { .. }));
    assert!(matches!(refused("unauthentic"), Error::Unauthentic { .. }));
    assert!(matches!(refused("trouble"), Error::Io { .. }));
    assert!(matches!(refused("anything"), Error::Io { .. }));
    assert!(refused("misuse").to_string().contains("why"));
}

#[test]
fn one_that_hangs_is_killed_with_all_that_it_started() {
    let place = tempfile::tempdir().unwrap();
    let mark = place.path().join("still-there");
    let body = format!(
        "trap '' TERM INT HUP; (trap '' TERM; sleep 14; touch '{}') & sleep 60",
        mark.display()
    );
    let began = Instant::now();
    let text = plugin(&place, &body).unwrap(KEY, b"w", b"c").unwrap_err().to_string();
    assert!(text.contains("no answer within 10 s"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    std::thread::sleep(Duration::from_secs(6));
    assert!(!mark.exists());
}

#[test]
fn a_child_that_keeps_standard_output_open_delays_nothing() {
    let began = Instant::now();
    asked(r#"sleep 60 & echo "{\"v\":1,\"id\":\"$id\",\"secret\":\"AQID\"}""#).unwrap();
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[test]
fn it_gets_no_environment_and_no_descriptor_of_the_host() {
    std::env::set_var("PELLUCID_PLUGIN_TEST_SECRET", "do not tell");
    // One that the host leaves open across exec(2).
    let left = rustix::io::fcntl_dupfd_cloexec(File::open("/dev/null").unwrap(), 77).unwrap();
    rustix::io::fcntl_setfd(&left, rustix::io::FdFlags::empty()).unwrap();
    let number = left.as_raw_fd();
    let text =
        told(&format!("[ -e /proc/$$/fd/{number} ] && echo open >&2 || echo closed >&2; exit 1"));
    assert!(text.contains("it says: closed)"), "{text}");
    let mut bare = std::process::Command::new("/bin/sh");
    bare.arg("-c").arg(format!("[ -e /proc/$$/fd/{number} ]"));
    assert!(bare.status().unwrap().success(), "it would be there");
    drop(left);
    let text = told("env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= | sort | tr '\\n' ' ' >&2; exit 1");
    assert!(text.contains("it says: LANG=C PATH=/usr/sbin:/usr/bin:/sbin:/bin)"), "{text}");
}

#[test]
fn one_that_hands_back_the_secret_wraps_nothing() {
    let place = tempfile::tempdir().unwrap();
    let body = r#"s=${line#*\"secret\":\"}; s=${s%%\"*}; echo "{\"v\":1,\"id\":\"$id\",\"wrapped\":\"$s\"}""#;
    let error = plugin(&place, body).wrap(KEY, &[7; 32], b"context").unwrap_err();
    assert!(error.to_string().contains("in clear"), "{error}");
}

#[test]
fn one_that_reads_nothing_and_one_that_does_not_run_are_errors() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("pellucid-plugin-test");
    for (content, mode) in [("#!/bin/true\n", 0o755), ("#!/none/such\n", 0o755), ("", 0o644)] {
        std::fs::write(&file, content).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let plugin = Plugin { name: "test".to_owned(), file: file.clone(), pin: None };
        let error = plugin.sign(KEY, &[7; BYTES_MOST]).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
    }
}

#[test]
fn a_name_is_a_name_and_a_key_has_no_pin() {
    for name in ["", "../x", "a/b", "A", "a_b", &"a".repeat(33), "a\0", "é"] {
        assert!(matches!(Plugin::find(name), Err(Error::Misuse { .. })), "{name}");
    }
    for key in ["", "a\nb", &"k".repeat(KEY_BYTES_MOST + 1), "pkcs11:?pin-value=1234"] {
        let error = check_key(key).unwrap_err().to_string();
        assert!(!error.contains("1234"), "{error}");
    }
    check_key("pkcs11:token=T;object=smk?pin-source=file:/etc/pin").unwrap();
}
