//! Goal: an administrator's keys: certificates travel between instances, master keys are backed up, restored and
//! exchanged without losing a database, and every refusal has SQL Server's own words.
//!
//! Method: the program itself in a place of its own; openssl as the other side; each exchange of a master key is killed
//! before each of its calls that change files (tests/tools/killat.c), after which the database has to open.

use std::os::unix::fs::PermissionsExt;

use crate::support::{at_a_terminal, kill_stride, said, Place, Said, PELLUCID};

pub const PASSWORD: &str = "a Pa55word of some length";

/// With that password, a wrong one and one that is too short, in files.
pub fn place() -> Place {
    let place = Place::new();
    place.secret("password", PASSWORD.as_bytes());
    place.secret("wrong", b"another password");
    place.secret("short", b"short");
    place
}

/// Words split at blanks.
fn pellucid(place: &Place, words: &str) -> Said {
    place.pellucid(&words.split(' ').collect::<Vec<_>>())
}

#[track_caller]
fn works(place: &Place, words: &str) -> String {
    pellucid(place, words).succeeded()
}

/// Refused with this message, word for word, and its number; nothing was changed.
#[track_caller]
fn refused(place: &Place, words: &str, number: u16, text: &str) {
    refused_with(place, words, 1, number, text);
}

/// Likewise, with another exit status: 3 for damage.
#[track_caller]
fn refused_with(place: &Place, words: &str, exit: i32, number: u16, text: &str) {
    let before = place.snapshot();
    let told = pellucid(place, &format!("--json {words}"));
    assert_eq!(told.code, exit, "{words}: {told:?}");
    let facts: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(facts["message"], number, "{words}: {told:?}");
    let error = facts["error"].as_str().unwrap();
    assert!(error == text || error.ends_with(&format!(": {text}")), "{words}: {error}");
    assert!(told.stderr.contains(&format!("({number})")), "{words}: {told:?}");
    let mut after = place.snapshot();
    after.retain(|path, _| before.contains_key(path) || !path.ends_with("keyring/lock"));
    assert_eq!(before, after, "{words}: something was changed");
}

fn export(name: &str) -> String {
    format!(
        "cert export {name} --cert-file {name}.pem --key-file {name}.key --password-file password"
    )
}

#[test]
fn a_certificate_travels_to_another_instance() {
    let place = place();
    place.sealed("app.db", &[]);
    let thumbprint = {
        let shown = works(&place, "--json cert show pellucid");
        let facts: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(facts["backed_up"], serde_json::Value::Null);
        facts["thumbprint_sha256"].as_str().unwrap().to_owned()
    };
    works(&place, &export("pellucid"));
    assert!(works(&place, "cert show pellucid").contains("in the keyring"));
    assert!(!works(&place, "cert list").contains("NEVER"));
    let mode = std::fs::metadata(place.path("pellucid.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let other = |words: &str| {
        let mut command = place.command(PELLUCID);
        command.env("PELLUCID_HOME", place.path("other-keys"));
        said(command.args(words.split(' ')))
    };
    other("cert create something").succeeded();
    let before = place.snapshot();
    let told = other("check app.db");
    assert_eq!(told.code, 1, "{told:?}");
    let text = format!(
        "Cannot find server certificate with thumbprint '0x{}'.",
        thumbprint.to_uppercase()
    );
    assert!(told.stderr.contains(&text) && told.stderr.contains("(33111)"), "{told:?}");
    assert_eq!(before, place.snapshot());

    let files = "cert import ours --cert-file pellucid.pem --key-file pellucid.key --password-file";
    assert_eq!(other(&format!("{files} wrong")).code, 1);
    other(&format!("{files} password")).succeeded();
    other("check app.db").succeeded();
    // Two names for one certificate would let a drop look like a loss.
    let told = other(&format!("{} password", files.replace("ours", "again")));
    assert!(told.code == 1 && told.stderr.contains("(15232)"), "{told:?}");
}

#[test]
fn each_refusal_has_sql_servers_words() {
    let place = place();
    refused(
        &place,
        "key backup service --file out --password-file short",
        33062,
        "Password validation failed. The password does not meet SQL Server password policy requirements because it is \
         too short. The password must be at least 8 characters.",
    );
    place.sealed("app.db", &[]);
    works(&place, &export("pellucid"));
    works(&place, "cert create second");
    refused(
        &place,
        "cert create second",
        15232,
        "A certificate with name 'second' already exists or this certificate already has been added to the database.",
    );
    refused(
        &place,
        "cert import again --cert-file pellucid.pem",
        15232,
        "A certificate with name 'pellucid' already exists or this certificate already has been added to the database.",
    );
    refused(
        &place,
        &export("pellucid"),
        15240,
        "Cannot write into file 'pellucid.key'. Verify that you have write permissions, that the file path is valid, \
         and that the file does not already exist.",
    );
    refused(
        &place,
        "cert export second --cert-file s.pem --key-file s.key --password-file short",
        33062,
        "Password validation failed. The password does not meet SQL Server password policy requirements because it is \
         too short. The password must be at least 8 characters.",
    );
    refused(
        &place,
        "cert create backwards --start 2026-05-01 --expiry 2026-04-01",
        15213,
        "Warning: The certificate you created has an invalid validity period; its expiration date precedes its start \
         date.",
    );
    refused(
        &place,
        "cert drop pellucid",
        33127,
        "The certificate cannot be dropped because it is used by one or more databases to encrypt a Database \
         Encryption Key.",
    );
    let import = "cert import third --cert-file second.pem --key-file";
    works(&place, "cert export second --cert-file second.pem");
    works(&place, "cert drop second");
    refused(
        &place,
        &format!("{import} pellucid.key --password-file wrong"),
        15465,
        "The private key password is invalid.",
    );
    refused(
        &place,
        &format!("{import} pellucid.key"),
        15465,
        "The private key password is invalid.",
    );
    refused(
        &place,
        &format!("{import} pellucid.key --password-file password"),
        15474,
        "Invalid private key. The private key does not match the public key of the certificate.",
    );
    let not_valid = "The certificate, asymmetric key, or private key file is not valid or does not exist; or you do \
                     not have permissions for it.";
    refused(&place, &format!("{import} app.db"), 15208, not_valid);
    refused(&place, "cert import third --cert-file nothing", 15208, not_valid);
    refused(&place, "cert import third --cert-file app.db", 15208, not_valid);
    works(&place, "cert import third --cert-file second.pem");
    refused(
        &place,
        "cert export third --cert-file t.pem --key-file t.key --password-file password",
        15246,
        "Cannot dump the private key of certificate 'third' because the private key cannot be found.",
    );
    let told = pellucid(&place, "cert create old --start 2020-01-01 --expiry 2020-12-31");
    assert!(told.stderr.contains("The certificate you created is expired."), "{told:?}");
    let told = pellucid(&place, "cert create new --start 2090-01-01 --expiry 2090-12-31");
    let text = "The certificate you created is not yet valid; its start date is in the future.";
    assert!(told.stderr.contains(text), "{told:?}");

    for (words, verb) in [
        ("cert show nobody", "find"),
        ("cert export nobody --cert-file n.pem", "find"),
        ("encrypt plain.db --certificate nobody", "find"),
        ("protector add app.db --certificate nobody", "find"),
        ("cert drop nobody", "find"),
    ] {
        place.plain("plain.db");
        let text = format!(
            "Cannot {verb} the certificate 'nobody', because it does not exist or you do not have permission."
        );
        refused(&place, words, 15151, &text);
        std::fs::remove_file(place.path("plain.db")).unwrap();
    }
    place.plain("plain.db");
    refused(
        &place,
        "encrypt plain.db --certificate third",
        33101,
        "Cannot use certificate 'third', because its private key is not present or it is not protected by the \
         database master key. SQL Server requires the ability to automatically access the private key of the \
         certificate used for this operation.",
    );
    crate::support::edit(&place.path("keys/keyring/certificates/third"), |bytes| bytes[60] ^= 1);
    refused_with(
        &place,
        "cert show third",
        3,
        15507,
        "A key required by this operation appears to be corrupted.",
    );
    works(&place, "cert drop third --force");
    let service = std::fs::read(place.path("keys/service.key")).unwrap();
    crate::support::edit(&place.path("keys/service.key"), |bytes| bytes[0] ^= 1);
    refused(&place, "check app.db", 15466, "An error occurred during decryption.");
    std::fs::write(place.path("keys/service.key"), service).unwrap();

    works(&place, "key backup master --file master.backup --password-file password");
    refused(
        &place,
        "key restore master --file app.db --password-file password",
        15317,
        "The master key file does not exist or has invalid format.",
    );
    refused(
        &place,
        "key restore service --file master.backup --password-file password",
        15317,
        "The master key file does not exist or has invalid format.",
    );
    refused(
        &place,
        "key restore master --file master.backup --password-file wrong",
        15465,
        "The private key password is invalid.",
    );
    std::fs::rename(place.path("keys/keyring/master.key"), place.path("aside")).unwrap();
    refused(
        &place,
        "cert list",
        15581,
        "Please create a master key in the database or open the master key in the session before performing this \
         operation.",
    );
    refused(
        &place,
        "key regenerate master",
        15329,
        "The current master key cannot be decrypted. If this is a database master key, you should attempt to open it \
         in the session before performing this operation. The FORCE option can be used to ignore this error and \
         continue the operation but the data encrypted by the old master key will be lost.",
    );
    works(&place, "key restore master --file master.backup --password-file password");
    works(&place, "check app.db");
}

/// A command is given the name that a database has in the directory where it runs; the keyring is asked anywhere.
#[test]
fn a_database_is_known_by_its_whole_path() {
    let place = place();
    place.sealed("app.db", &[]);
    let elsewhere =
        |words: &str| said(place.command(PELLUCID).current_dir("/").args(words.split(' ')));
    for changed in ["rekey app.db", "rewrap app.db --certificate pellucid"] {
        works(&place, changed);
        let told = elsewhere("cert drop pellucid");
        assert!(told.code == 1 && told.stderr.contains("(33127)"), "{changed}: {told:?}");
        let whole = place.path("app.db").display().to_string();
        assert!(elsewhere("status").succeeded().contains(&whole), "{changed}");
    }
}

/// What counts is whose certificate opens it, not whether its pages are sealed at the moment.
#[test]
fn a_certificate_is_dropped_when_no_database_needs_it_any_more() {
    let place = place();
    let text = "The certificate cannot be dropped because it is used by one or more databases to encrypt a Database \
                Encryption Key.";
    place.sealed("app.db", &[]);
    works(&place, "decrypt --keep-container app.db");
    refused(&place, "cert drop pellucid", 33127, text);
    let told = pellucid(&place, "status");
    assert!(told.stderr.contains("NOT encrypted: its encryption is switched off"), "{told:?}");

    works(&place, "cert create C2");
    works(&place, "rewrap --all-under pellucid --certificate C2");
    works(&place, "cert drop pellucid");
    refused(&place, "cert drop C2", 33127, text);
    works(&place, "encrypt app.db");
    place.secret("key", &[7; 32]);
    works(&place, "rewrap app.db --new-key-file key");
    works(&place, "cert drop C2");
    works(&place, "check app.db --key-file key");
}

#[test]
fn lost_master_keys_come_back_from_their_backups() {
    let place = place();
    place.sealed("app.db", &[]);
    works(&place, "key backup service --file service.backup --password-file password");
    works(&place, "key backup master --file master.backup --password-file password");
    for (lost, which) in [("keys/service.key", "service"), ("keys/keyring/master.key", "master")] {
        std::fs::remove_file(place.path(lost)).unwrap();
        assert_eq!(pellucid(&place, "check app.db").code, 1);
        let words = format!("key restore {which} --file {which}.backup --password-file password");
        works(&place, &words);
        works(&place, "check app.db");
    }
    // The whole instance is gone but for its certificates: both keys, in either order.
    std::fs::remove_file(place.path("keys/keyring/master.key")).unwrap();
    works(&place, "key regenerate service");
    works(&place, "key restore master --file master.backup --password-file password");
    works(&place, "check app.db");
}

#[test]
fn force_says_what_it_loses() {
    let place = place();
    place.sealed("app.db", &[]);
    works(&place, "cert create good");
    let file = place.path("keys/keyring/certificates/good");
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(pellucid(&place, "key regenerate master").code, 1);
    let told = pellucid(&place, "key regenerate master --force");
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.stderr.contains("certificates/good` will be lost"), "{told:?}");
    works(&place, "check app.db");

    // The service master key is another one, and nothing else opens the database master key.
    std::fs::write(place.path("keys/service.key"), [9; 32]).unwrap();
    assert_eq!(pellucid(&place, "key regenerate service").code, 1);
    let before = place.snapshot();
    let told = at_a_terminal(&place, "key regenerate service --force", "n").all();
    assert!(told.contains("every certificate under it") && told.contains("[y/N]"), "{told}");
    assert_eq!(before, place.snapshot());
    let told = at_a_terminal(&place, "key regenerate service --force --yes", "n").all();
    assert!(told.contains("every certificate under it") && !told.contains("[y/N]"), "{told}");
    assert_ne!(before, place.snapshot());
}

#[test]
fn at_a_terminal_each_passphrase_is_asked_for() {
    let place = place();
    place.secret("old", b"the old passphrase");
    place.secret("raw.key", &[7; 32]);
    place.sealed("app.db", &["--passphrase-file", "old"]);
    let rewrap = "rewrap app.db --passphrase-file - --new-passphrase-file -";
    let told = at_a_terminal(&place, rewrap, "the new one\nthe new one\nthe old passphrase");
    assert_eq!(told.code, 0, "{told:?}");
    for prompt in ["New passphrase: ", "Again: ", "\nPassphrase: "] {
        assert_eq!(told.stdout.matches(prompt).count(), 1, "{prompt}: {told:?}");
    }
    place.secret("new", b"the new one");
    works(&place, "check app.db --passphrase-file new");
    assert_eq!(pellucid(&place, "check app.db --passphrase-file old").code, 1);
    // What is read, and not asked for, is one thing there as well.
    let told = at_a_terminal(&place, "rewrap app.db --key-file - --new-key-file -", "");
    assert!(told.code == 2 && told.stdout.contains("more than once"), "{told:?}");
    let told = pellucid(&place, rewrap);
    assert!(told.code == 2 && told.stderr.contains("more than once"), "{told:?}");
}

#[test]
fn the_database_master_key_is_closed_and_opened() {
    let place = place();
    place.sealed("app.db", &[]);
    let told = pellucid(&place, "key close");
    assert!(told.code == 1 && told.stderr.contains("add a password"), "{told:?}");
    works(&place, "check app.db");
    works(&place, "key password add --password-file password");
    works(&place, "key close");
    let missing = "Please create a master key in the database or open the master key in the session before performing \
                   this operation.";
    refused(&place, "check app.db", 15581, missing);
    refused(&place, "cert list", 15581, missing);
    refused(
        &place,
        "key open --password-file wrong",
        15465,
        "The private key password is invalid.",
    );
    works(&place, "key open --password-file password");
    works(&place, "check app.db");
}

#[test]
fn a_database_master_key_may_have_passwords() {
    let place = place();
    place.sealed("app.db", &[]);
    works(&place, "key password add --password-file password");
    assert!(works(&place, "key status").contains("the service master key and a password"));
    assert_eq!(pellucid(&place, "key password drop --password-file wrong").code, 1);
    works(&place, "key regenerate master");
    assert!(!works(&place, "key status").contains("password"), "an old password outlived its key");
    works(&place, "key regenerate master --password-file password");
    assert!(works(&place, "key status").contains("the service master key and a password"));
    works(&place, "key password drop --password-file password");
    works(&place, "check app.db");
}

#[test]
fn several_protectors_open_a_database_and_the_last_one_stays() {
    let place = place();
    place.secret("raw.key", &[7; 32]);
    place.sealed("app.db", &["--key-file", "raw.key"]);
    let alone = |words: &str| {
        let mut command = place.command(PELLUCID);
        command.env("PELLUCID_HOME", place.path("nothing"));
        said(command.args(words.split(' '))).code
    };
    works(&place, "cert create main");
    works(&place, "protector add app.db --certificate main --key-file raw.key");
    works(&place, "protector add app.db --new-passphrase-file password");
    works(&place, "check app.db");
    assert_eq!(alone("check app.db --passphrase-file password"), 0);
    assert_eq!(alone("check app.db --key-file raw.key"), 0);
    assert_eq!(alone("check app.db"), 1);
    works(&place, "protector drop app.db --number 1");
    assert_eq!(alone("check app.db --key-file raw.key"), 1);
    works(&place, "protector drop app.db --number 2");
    assert_eq!(alone("check app.db --passphrase-file password"), 1);
    let told = pellucid(&place, "protector drop app.db --number 1");
    assert!(told.code == 1 && told.stderr.contains("the last one"), "{told:?}");
    works(&place, "check app.db");

    // A recovery certificate opens only when asked to.
    works(&place, "cert create safe");
    works(
        &place,
        "cert export safe --cert-file safe.pem --key-file safe.key --password-file password",
    );
    works(&place, "cert drop safe");
    works(&place, "cert import safe --cert-file safe.pem");
    works(&place, "protector add app.db --recovery-certificate safe");
    assert!(works(&place, "protector list app.db").contains("for recovery"));
    let recover = |words: &str| {
        let mut command = place.command(PELLUCID);
        command.env("PELLUCID_HOME", place.path("recovery-keys"));
        said(command.args(words.split(' ')))
    };
    recover("cert import safe --cert-file safe.pem --key-file safe.key --password-file password")
        .succeeded();
    let told = recover("check app.db");
    assert!(told.code == 1 && told.stderr.contains("recovery"), "{told:?}");
    recover("check app.db --recovery").succeeded();
}

/// Each exchange of a master key, killed before each call that changes a file.
#[test]
fn regeneration_is_killed_everywhere_and_nothing_is_lost() {
    let model = place();
    model.sealed("app.db", &[]);
    works(&model, "cert create second");
    works(&model, "key password add --password-file password");
    let tool = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools/killat.c");
    let preload = model.compile_library(&tool, "killat.so");
    let mut calls = 0;
    for words in [
        "key regenerate service",
        "key regenerate master",
        "key regenerate master --password-file password",
    ] {
        let mut at = 1;
        loop {
            let live = Place::new();
            model.copy_to(&live);
            let mut command = live.command(PELLUCID);
            command.env("LD_PRELOAD", &preload).env("KILL_DIR", live.path("keys").join(""));
            command.env("KILL_AT", at.to_string()).args(words.split(' '));
            let told = said(&mut command);
            let what = format!("{words} killed at {at}");
            assert!(told.code == 0 || told.code == 128 + 9, "{what}: {told:?}");
            // Before anybody finishes it, and after.
            pellucid(&live, "check app.db").succeeded();
            works(&live, "cert show second");
            works(&live, "cert create third");
            pellucid(&live, "check app.db").succeeded();
            works(&live, "cert show second");
            for left in ["keys/service.next", "keys/keyring/master.next"] {
                assert!(!live.path(left).exists(), "{what}: {left} is left");
            }
            if told.code == 0 {
                break;
            }
            at += kill_stride();
        }
        calls += at;
        println!("{words}: {at} calls");
        assert!(at > 5, "{words}: killed at {at} only");
    }
    println!("RESULT {calls}");
}
