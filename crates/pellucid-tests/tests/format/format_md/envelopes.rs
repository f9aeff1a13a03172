//! "Key envelopes" of docs/format.md: protectors and the keyring.

use std::os::unix::fs::MetadataExt;

use aws_lc_rs::signature::{UnparsedPublicKey, RSA_PSS_2048_8192_SHA256};
use aws_lc_rs::{digest, hmac};
use pellucid::certificate::{Certificate, CertificateRequest, RSA_BITS};
use pellucid::cipher::Cipher;
use pellucid::derive::commitment;
use pellucid::hash::hex;
use pellucid::lsn::Lsn;
use pellucid::protector::{
    self, Argon2Cost, Binding, KeyFile, Passphrase, Protector, Purpose, Wrapping,
};
use pellucid::{Algorithm, Error};
use pellucid_keyring::policy::Policy;
use pellucid_keyring::{
    Account, Action, CheckFound, DatabaseMemory, Event, Keyring, Pair, Pin, Provider, Role,
    Witness, DEFAULT_CERTIFICATE,
};
use pellucid_tests::container::{dek, FILE_ID};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::doc::{hkdf_sha256, literal, numbered, Doc, Table};

const CHEAP: Argon2Cost = Argon2Cost { memory_kib: 64, passes: 2, lanes: 3 };

fn wrap(with: &Wrapping<'_>) -> Vec<u8> {
    let commitment = commitment(&dek(), &FILE_ID).unwrap();
    let binding = Binding {
        purpose: Purpose::Database,
        id: &FILE_ID,
        algorithm: Algorithm::Aes256,
        commitment: &commitment,
    };
    let mut bytes = Vec::new();
    protector::wrap(&dek(), &binding, with).unwrap().encode(&mut bytes);
    bytes
}

/// The binding the page describes.
fn binding(section: &Doc) -> Vec<u8> {
    let layout = section.table(1);
    let mut bytes = vec![0; layout.is_without_gaps()];
    assert_eq!(layout.field("purpose"), "purpose: 1 database, 2 backup, 3 bundle");
    assert_eq!((Purpose::Database as u8, Purpose::Backup as u8), (1, 2));
    bytes[layout.at("purpose")].copy_from_slice(&[1]);
    bytes[layout.at("file id")].copy_from_slice(&FILE_ID);
    bytes[layout.at("algorithm")].copy_from_slice(&[Algorithm::Aes256.id()]);
    let commitment = commitment(&dek(), &FILE_ID).unwrap();
    bytes[layout.at("key commitment")].copy_from_slice(&commitment);
    bytes
}

/// Payload of a protector whose type and length are as the page says.
fn payload<'a>(section: &Doc, name: &str, flags: u8, bytes: &'a [u8]) -> &'a [u8] {
    let layout = section.table(0);
    let types = numbered(layout.field("type: ").strip_prefix("type: ").unwrap());
    let (kind, _) = types.iter().find(|(_, found)| found == name).unwrap();
    assert_eq!(layout.of("type", bytes), [*kind]);
    assert_eq!(layout.of("flags", bytes), [flags]);
    let begin = layout.at("length of the payload").end;
    assert_eq!(layout.rows[3][0], begin.to_string());
    let length = layout.of("length of the payload", bytes);
    assert_eq!(length, ((bytes.len() - begin) as u16).to_be_bytes());
    &bytes[begin..]
}

fn unwraps(section: &Doc, kek: &[u8], kind: u8, wrapped: &[u8]) {
    let layout = section.from("**Wrapped DEK** of both").table(0);
    assert_eq!(layout.is_without_gaps(), wrapped.len());
    let aad = [&[kind], &binding(section)[..]].concat();
    let mut plain = [0; 32];
    Cipher::new(Algorithm::Aes256, kek)
        .unwrap()
        .open(
            layout.of("nonce", wrapped).try_into().unwrap(),
            &aad,
            layout.of("DEK", wrapped),
            layout.of("tag", wrapped).try_into().unwrap(),
            &mut plain,
        )
        .unwrap();
    assert_eq!(&plain, dek().expose());
}

fn states_length(section: &Doc, begin: &str, table: &Table, payload: &[u8]) {
    assert_eq!(table.is_without_gaps(), payload.len());
    section.from(begin).says(&format!("Payload, {} bytes", payload.len()));
}

#[test]
fn key_file_protectors() {
    let section = Doc::read().section("### Protectors");
    let bytes = wrap(&Wrapping::KeyFile(&KeyFile::parse(&[5; 32]).unwrap()));
    let payload = payload(&section, "key file", 0, &bytes);
    let layout = section.from("**Key file.**").table(0);
    states_length(&section, "**Key file.**", &layout, payload);
    let info = section.info("KEK of a key file");
    let kek = hkdf_sha256(&[5; 32], layout.of("salt", payload), &[info.as_bytes()], 32);
    unwraps(&section, &kek, 1, layout.of("wrapped DEK", payload));
    assert!(KeyFile::parse(&[b'0'; 64]).is_some() && KeyFile::parse(&[0; 31]).is_none());
}

#[test]
fn passphrase_protectors() {
    let section = Doc::read().section("### Protectors");
    let passphrase = Passphrase::new(b"correct horse\r\n");
    assert_eq!(passphrase.expose(), b"correct horse");
    let bytes = wrap(&Wrapping::Passphrase(&passphrase, CHEAP));
    let payload = payload(&section, "passphrase", 0, &bytes);
    let layout = section.from("**Passphrase.**").table(0);
    states_length(&section, "**Passphrase.**", &layout, payload);
    assert_eq!(layout.of("memory, KiB", payload), 64u32.to_be_bytes());
    assert_eq!(layout.of("passes", payload), 2u32.to_be_bytes());
    assert_eq!(layout.of("lanes", payload), 3u32.to_be_bytes());
    let params = argon2::Params::new(64, 2, 3, Some(32)).unwrap();
    let mut kek = [0; 32];
    argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params)
        .hash_password_into(b"correct horse", layout.of("salt", payload), &mut kek)
        .unwrap();
    section.says("version 0x13, 32 bytes");
    unwraps(&section, &kek, 2, layout.of("wrapped DEK", payload));

    let default = Argon2Cost::default();
    section.says(&format!(
        "The default is {} KiB, {} passes, {} lanes",
        default.memory_kib, default.passes, default.lanes
    ));
    section.says("More than 1048576 KiB, 16 passes or 16 lanes are refused");
    section.says("less than 8 KiB a lane");
    let (memory_kib, passes, lanes) = (1 << 20, 16, 16);
    let refused = [
        Argon2Cost { memory_kib: memory_kib + 1, ..CHEAP },
        Argon2Cost { passes: passes + 1, ..CHEAP },
        Argon2Cost { lanes: lanes + 1, memory_kib: 1024, ..CHEAP },
        Argon2Cost { memory_kib: 23, ..CHEAP },
        Argon2Cost { passes: 0, ..CHEAP },
        Argon2Cost { lanes: 0, ..CHEAP },
    ];
    for cost in refused {
        let told = cost.stretch(&passphrase, &[0; 16]);
        assert!(matches!(told, Err(Error::Unsupported { .. })), "{cost:?}");
    }
    for cost in [Argon2Cost { memory_kib: 24, ..CHEAP }, Argon2Cost { passes, ..CHEAP }] {
        cost.stretch(&passphrase, &[0; 16]).unwrap();
    }
    Argon2Cost { memory_kib: 128, lanes, passes: 1 }.stretch(&passphrase, &[0; 16]).unwrap();
}

#[test]
fn certificate_protectors() {
    let section = Doc::read().section("### Protectors");
    section.says(&format!("an RSA key of {} to {} bits", RSA_BITS.start(), RSA_BITS.end()));
    let certificate = Certificate::generate("app", &CertificateRequest::new("App", 1)).unwrap();
    let public = certificate.public();
    let rsa_bytes = public.rsa_bits() / 8;
    let signed = wrap(&Wrapping::Certificate(&certificate));
    let recovery = wrap(&Wrapping::Recovery(public));
    let table = section.from("**Certificate.**").table(0);
    let begin = payload(&section, "certificate", 0, &signed);
    for (flags, bytes, signature) in [(0, &signed, rsa_bytes), (1, &recovery, 0)] {
        let payload = payload(&section, "certificate", flags, bytes);
        let layout = table.clone().with(&[("n", 3), ("w", rsa_bytes), ("s", signature)]);
        assert_eq!(layout.is_without_gaps(), payload.len());
        assert_eq!(layout.of("n, length", payload), [3]);
        assert_eq!(layout.of("s, length", payload), (signature as u16).to_be_bytes());
        assert_eq!(layout.of("name the certificate had", payload), b"app");
        assert_eq!(layout.of("SHA-256 thumbprint", payload), public.thumbprint());
        assert_eq!(layout.of("w, length", payload), (rsa_bytes as u16).to_be_bytes());
        let Protector::Certificate(read) = Protector::decode(bytes).unwrap().0 else { panic!() };
        assert_eq!(read.is_recovery(), flags == 1);
    }
    let layout = table.with(&[("n", 3), ("w", rsa_bytes), ("s", rsa_bytes)]);
    let prefix = section.info("signature of a certificate");
    let message = [
        prefix.as_bytes(),
        &binding(&section),
        public.thumbprint(),
        layout.of("wrapped DEK", begin),
    ]
    .concat();
    let parsed = X509Certificate::from_der(public.der()).unwrap().1;
    UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, parsed.public_key().raw)
        .verify(&message, layout.of("signature", begin))
        .unwrap();
    section.says("`RSA-OAEP(public key, DEK; label = \"pellucid/1\" ‖ purpose ‖ id)`");
}

/// Content of a sealed file, opened as the page describes.
fn open_file(section: &Doc, parent: &[u8], kind: u8, name: &str, file: &[u8]) -> Vec<u8> {
    let table = section.from("**Sealed file**").table(0);
    let layout = table.with(&[("n", file.len() - 64)]);
    assert_eq!(layout.is_without_gaps(), file.len());
    assert_eq!(layout.of("`Pellucid key", file), literal(layout.field("`Pellucid key")));
    assert_eq!(layout.of("version", file), 1u16.to_be_bytes());
    let versions = "version, 1; 2 of a certificate with a companion key";
    assert_eq!(layout.field("version"), versions);
    assert_eq!(layout.of("kind", file), [kind]);
    assert_eq!(
        layout.field("kind"),
        "kind: 1 master key, 2 certificate, 3 database, 4 settings, 5 history, 6 events, 7 pin, 8 retired key, 9 checks, 10 witness, 11 providers, 12 roles"
    );
    let info = section.info("check value");
    let check = hkdf_sha256(parent, b"", &[info.as_bytes()], 16);
    assert_eq!(layout.of("check value", file), check);
    let info = section.info("file key");
    let key = hkdf_sha256(parent, b"", &[info.as_bytes(), &[kind]], 32);
    section.says("AAD = bytes 0-47 ‖ NAME");
    let aad = [&file[..layout.at("nonce").end], name.as_bytes()].concat();
    let ciphertext = layout.of("content", file);
    let mut content = vec![0; ciphertext.len()];
    Cipher::new(Algorithm::Aes256, &key)
        .unwrap()
        .open(
            layout.of("nonce", file).try_into().unwrap(),
            &aad,
            ciphertext,
            layout.of("tag", file).try_into().unwrap(),
            &mut content,
        )
        .unwrap();
    content
}

const RETIRED: [u8; 32] = [9; 32];

#[test]
fn keyring_files() {
    let section = Doc::read().section("### Keyring");
    let home = tempfile::tempdir().unwrap();
    let (keyring, _) = Keyring::open_or_create(home.path()).unwrap();
    let (certificate, _) = keyring.ensure_default_certificate().unwrap();
    let memory = DatabaseMemory {
        sequence: 0x0102_0304,
        sealed: true,
        certificates: vec![[0xc1; 32], [0xc2; 32]],
        path: "/srv/app.db".into(),
    };
    keyring.remember_database(&FILE_ID, &memory).unwrap();
    let limit = Policy::RekeyAfter.parse("365d").unwrap();
    keyring.set_policy(Policy::RekeyAfter, Some(limit)).unwrap();
    keyring.ensure_history_key().unwrap();
    let pin = Pin {
        path: "/srv/app.db".into(),
        file_id: FILE_ID,
        sequence: 0x0102_0304,
        dek: [1; 32],
        sealed: true,
        may_off: true,
        other: Some([2; 16]),
        next: Some([3; 16]),
        former: Some([4; 16]),
        retired: Some([5; 32]),
        plain: Some([6; 32]),
        has_pages: true,
    };
    keyring.change_pin(&pin.path, |_| Some(pin.clone())).unwrap();
    keyring.retire(&RETIRED).unwrap();
    let found =
        CheckFound { findings: 5, of_content: true, pages: vec![7, 8], ..CheckFound::default() };
    keyring.remember_check(&pin.path, &FILE_ID, None, &CheckFound::default(), 0x0a0b).unwrap();
    keyring.remember_check(&pin.path, &FILE_ID, None, &found, 0x0c0d).unwrap();
    let witness = Witness {
        path: pin.path.clone(),
        file_id: FILE_ID,
        fork: [7; 16],
        header_sequence: 0x0e0f,
        archive_sequence: 0x1011,
        lsn: Lsn::new(0x1213, 0x1415),
        base: Lsn::new(0x1819, 0x1a1b),
        last_set: [8; 32],
        at: 0x1617,
    };
    keyring.remember_witness(&witness).unwrap();
    let provider = Provider {
        name: "p".into(),
        file: "/x.so".into(),
        plugin: "pkcs11".into(),
        guid: [0x1c; 16],
        is_enabled: true,
    };
    let event = Event::new(Action::Created, "cryptographic provider");
    keyring
        .change_providers(event, |all| {
            all.providers.push(provider);
            Ok(())
        })
        .unwrap();
    let account = Account { uid: 0x1d1e, name: "notes".into() };
    keyring.allow(&Pair { role: Role::BacksUp, account, file_id: FILE_ID }).unwrap();
    let id = hex(&FILE_ID);
    let pin_name = hex(&hash(b"/srv/app.db"))[..32].to_owned();
    let retired_name = hex(&RETIRED)[..32].to_owned();
    let files: Vec<Vec<u8>> = section
        .table(0)
        .rows
        .iter()
        .map(|row| {
            let path = String::from_utf8(literal(&row[0])).unwrap();
            let name = match &path {
                path if ["/paths/", "/checks/", "/witnesses/"]
                    .iter()
                    .any(|of| path.contains(of)) =>
                {
                    &pin_name
                }
                path if path.contains("/retired/") => &retired_name,
                _ => DEFAULT_CERTIFICATE,
            };
            let path = path.replace("NAME", name).replace("FILE-ID", &id);
            std::fs::read(home.path().join(path)).unwrap()
        })
        .collect();
    let [service, master, sealed_certificate, database, sealed_pin, retired, checks, sealed_witness, providers, roles, settings, history, events] =
        &files[..]
    else {
        panic!("13 files")
    };
    assert_eq!(service.len(), 32);
    let mode = std::fs::metadata(home.path().join("service.key")).unwrap().mode() & 0o7777;
    section.says(&format!("mode {mode:04o} | service master key, {} raw bytes", service.len()));
    let master = open_file(&section, service, 1, "", master);
    assert_eq!(master.len(), 32);

    let content = open_file(&section, &master, 2, DEFAULT_CERTIFICATE, sealed_certificate);
    let der = certificate.public().der();
    let layout = section.from("A certificate's content is").table(0).with(&[("d", der.len())]);
    assert_eq!(layout.of("when its private key was last backed up", &content), [0; 8]);
    assert_eq!(layout.of("d, length", &content), (der.len() as u32).to_be_bytes());
    assert_eq!(layout.of("certificate, DER", &content), der);
    let (fields, key_at) = layout.before("private key");
    assert_eq!(fields.is_without_gaps(), key_at);
    assert_eq!(&content[key_at..], certificate.private_key().unwrap());

    let content = open_file(&section, &master, 3, &id, database);
    let layout = section.from("A database's").table(0).with(&[("t", 64)]);
    let (fields, path_at) = layout.before("where it lay");
    assert_eq!(fields.is_without_gaps(), path_at);
    assert_eq!(&content[path_at..], b"/srv/app.db");
    assert_eq!(layout.of("number of certificates", &content), [2]);
    assert_eq!(
        layout.of("their SHA-256 thumbprints", &content),
        memory.certificates.as_flattened()
    );
    assert_eq!(layout.of("header sequence", &content), 0x0102_0304u64.to_be_bytes());
    assert_eq!(layout.of("1 if it was encrypted", &content), [1]);

    let content = open_file(&section, &master, 7, &pin_name, sealed_pin);
    let layout = section.from("A pin's").table(0).with(&[]);
    let (fields, path_at) = layout.before("the path, as");
    assert_eq!(fields.is_without_gaps(), path_at);
    assert_eq!(&content[path_at..], b"/srv/app.db");
    assert_eq!(layout.of("version of a pin", &content), [1]);
    assert_eq!(layout.of("what counts", &content), [255]);
    assert_eq!(layout.of("file id of the database that is expected", &content), FILE_ID);
    assert_eq!(layout.of("highest header sequence", &content), 0x0102_0304u64.to_be_bytes());
    assert_eq!(layout.of("commitment of that header's", &content), [1; 32]);
    for (field, byte) in [("other:", 2), ("next:", 3), ("former:", 4)] {
        assert_eq!(layout.of(field, &content), [byte; 16], "{field}");
    }
    assert_eq!(layout.of("retired: commitment", &content), [5; 32]);
    assert_eq!(layout.of("plain: SHA-256", &content), [6; 32]);
    assert_eq!(open_file(&section, &master, 8, &retired_name, retired), RETIRED);

    let guid = "1c".repeat(16);
    let fields =
        ["p", "/x.so", "pkcs11", &guid, "1"].map(|field| format!(" ={}", hex(field.as_bytes())));
    let content = open_file(&section, &master, 11, "providers", providers);
    assert_eq!(content, format!("provider{}\n", fields.concat()).as_bytes());

    let content = open_file(&section, &master, 12, "roles", roles);
    let layout = section.from("The roles begin with").table(0).with(&[("l", 5)]);
    let (version, role) = content.split_first().unwrap();
    assert_eq!((*version, layout.is_without_gaps()), (1, role.len()));
    section.says("role: 1 opens the database, 2 has it backed up, 3 the directory of such backups");
    assert_eq!(layout.of("role", role), [2]);
    assert_eq!(layout.of("file id of the database", role), FILE_ID);
    assert_eq!(layout.of("number of the account", role), 0x1d1eu32.to_be_bytes());
    assert_eq!(layout.of("l, length of the name", role), [5]);
    assert_eq!(layout.of("name of the account", role), b"notes");

    let content = open_file(&section, &master, 9, &pin_name, checks);
    let layout = section.from("What is remembered of checks").table(0).with(&[("p", 8)]);
    assert_eq!(layout.of("version, 1", &content), [1]);
    section.says("4 damage stands, 8 SQLite's own checks have found some of it");
    assert_eq!(layout.of("1 the last check", &content), [4 | 8]);
    assert_eq!(layout.of("file id", &content), FILE_ID);
    assert_eq!(layout.of("when the last check ended", &content), 0x0c0du64.to_be_bytes());
    assert_eq!(
        layout.of("when the last one that found nothing", &content),
        0x0a0bu64.to_be_bytes()
    );
    assert_eq!(layout.of("when the check ended whose", &content), 0x0c0du64.to_be_bytes());
    assert_eq!(layout.of("how many findings", &content), 5u32.to_be_bytes());
    assert_eq!(layout.of("number of damaged pages", &content), 2u16.to_be_bytes());
    assert_eq!(layout.of("their page numbers", &content), [0, 0, 0, 7, 0, 0, 0, 8]);
    let (fields, path_at) = layout.before("the path, as the system writes it");
    assert_eq!(fields.is_without_gaps(), path_at);
    assert_eq!(&content[path_at..], b"/srv/app.db");

    let content = open_file(&section, &master, 10, &pin_name, sealed_witness);
    let layout = section.from("A witness's").table(0).with(&[]);
    let (fields, path_at) = layout.before("the path, as the system writes it");
    assert_eq!(fields.is_without_gaps(), path_at);
    assert_eq!(&content[path_at..], b"/srv/app.db");
    assert_eq!(layout.of("version, 1", &content), [1]);
    assert_eq!(layout.of("file id", &content), FILE_ID);
    assert_eq!(layout.of("recovery fork", &content), [7; 16]);
    assert_eq!(layout.of("sequence of the database's header", &content), 0x0e0fu64.to_be_bytes());
    assert_eq!(layout.of("sequence of the archive's state", &content), 0x1011u64.to_be_bytes());
    assert_eq!(layout.of("LSN up to which", &content), Lsn::new(0x1213, 0x1415).encode());
    assert_eq!(layout.of("SHA-256 of the manifest", &content), [8; 32]);
    assert_eq!(layout.of("when that was", &content), 0x1617u64.to_be_bytes());
    assert_eq!(layout.of("LSN of the snapshot", &content), Lsn::new(0x1819, 0x1a1b).encode());

    section.says("`policy NAME LIMIT`");
    let content = open_file(&section, &master, 4, "settings", settings);
    assert_eq!(content, b"policy rekey-after 365d\n");
    assert_eq!(open_file(&section, &master, 5, "history", history).len(), 32);
    event_log(home.path(), &open_file(&section, &master, 6, "events", events));

    let path = home.path().join("keyring/master.key");
    std::fs::write(path, vec![0; 65537]).unwrap();
    section.says("No file is longer than 65536 bytes");
    let told = Keyring::open(home.path()).unwrap_err().to_string();
    assert!(told.contains("longer"), "{told}");
}

/// The log of an instance, with what the keyring holds of it.
fn event_log(home: &std::path::Path, content: &[u8]) {
    let section = Doc::read().section("### Event log");
    let layout = section.from("**What the keyring holds.**").table(0);
    assert_eq!(layout.is_without_gaps(), content.len());
    let key = hkdf_sha256(layout.of("secret", content), b"", &[section.info("key").as_bytes()], 32);
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let log = std::fs::read(home.join("events.log")).unwrap();
    assert_eq!(layout.of("length of the log", content), (log.len() as u64).to_be_bytes());
    let (mut at, mut before, mut chained) = (0, Vec::new(), 0u64);
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        let facts: serde_json::Value = serde_json::from_slice(line).unwrap();
        if let Some(seq) = facts["seq"].as_u64() {
            chained += 1;
            assert_eq!(seq, chained);
            let text = std::str::from_utf8(line).unwrap();
            let (signed, mac) = text.split_once(",\"mac\":").unwrap();
            let signed = hex(hmac::sign(&key, signed.as_bytes()).as_ref());
            assert_eq!(mac, format!("\"{signed}\"}}\n"));
            let begins = facts.get("begins").is_some();
            assert_eq!(begins, chained == 1);
            let before = if begins { &log[..at] } else { &before[..] };
            assert_eq!(facts["prev"], hex(&sha256(before)));
        }
        (at, before) = (at + line.len(), line.to_vec());
    }
    assert!(chained > 1, "{chained} lines");
    assert_eq!(layout.of("`seq` of the last line", content), chained.to_be_bytes());
    assert_eq!(layout.of("SHA-256 of that line", content), sha256(&before));
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest::digest(&digest::SHA256, bytes).as_ref().try_into().unwrap()
}

#[test]
fn bundles() {
    let section = Doc::read().section("### Bundle");
    let home = tempfile::tempdir().unwrap();
    let (keyring, _) = Keyring::open_or_create(&home.path().join("keys")).unwrap();
    keyring.ensure_default_certificate().unwrap();
    keyring.remember_database(&FILE_ID, &DatabaseMemory::default()).unwrap();
    keyring.ensure_history_key().unwrap();
    let path = home.path().join("bundle");
    let password = Passphrase::new(b"a Pa55word");
    keyring.export_instance(&path, &Wrapping::Passphrase(&password, CHEAP)).unwrap();
    let file = std::fs::read(&path).unwrap();

    let p = usize::from(u16::from_be_bytes([file[18], file[19]]));
    let n = file.len() - p - 136;
    let layout = section.table(0).with(&[("p", p), ("n", n)]);
    assert_eq!(layout.is_without_gaps(), file.len());
    assert_eq!(layout.of("`Pellucid bundle", &file), literal(layout.field("`Pellucid bundle")));
    assert_eq!(layout.of("version, 1", &file), 1u16.to_be_bytes());
    assert_eq!(layout.of("p, length of the protector", &file), (p as u16).to_be_bytes());
    let (id, committed) =
        (layout.of("bundle id", &file), layout.of("key commitment", &file).try_into().unwrap());
    let protector = layout.of("protector of the bundle's key", &file);
    let (Protector::Passphrase(_), read) = Protector::decode(protector).unwrap() else { panic!() };
    assert_eq!(read, p);
    struct Password([Passphrase; 1]);
    impl pellucid::protector::KeySource for Password {
        fn key_files(&self) -> &[KeyFile] {
            &[]
        }
        fn passphrases(&self) -> &[Passphrase] {
            &self.0
        }
        fn certificate(&self, _: &[u8; 32]) -> pellucid::Result<Option<Certificate>> {
            Ok(None)
        }
    }
    let binding = Binding {
        purpose: Purpose::Bundle,
        id: id.try_into().unwrap(),
        algorithm: Algorithm::Aes256,
        commitment: &committed,
    };
    assert_eq!(Purpose::Bundle as u8, 3);
    let protector = [Protector::decode(protector).unwrap().0];
    let key = pellucid::protector::unwrap(&protector, &binding, &Password([password])).unwrap();
    section.says("`HKDF(bundle's key, bundle id; \"pellucid/1 bundle\")`, AAD = all before it");
    let own = hkdf_sha256(key.expose(), id, &[b"pellucid/1 bundle"], 32);
    let sealed = layout.of("entries, encrypted", &file);
    let mut content = vec![0; n];
    Cipher::new(Algorithm::Aes256, &own)
        .unwrap()
        .open(
            layout.of("nonce", &file).try_into().unwrap(),
            &file[..layout.at("nonce").end],
            sealed,
            layout.of("tag", &file).try_into().unwrap(),
            &mut content,
        )
        .unwrap();
    let sum = layout.at("SHA-256 of all before");
    assert_eq!(&file[sum.clone()], hash(&file[..sum.start]));
    section.says(&format!("longer than {} bytes", pellucid_keyring::BUNDLE_BYTES_MOST));

    let kinds = "kind: 1 database master key, 2 password of it, 3 certificate, 4 database, 5 certificate with a companion key, 6 the history's key";
    let names = ["", DEFAULT_CERTIFICATE, &hex(&FILE_ID), ""];
    let mut rest = &content[..];
    for (kind, name) in [1u8, 3, 4, 6].into_iter().zip(names) {
        let m = usize::from(rest[1]);
        let c = u32::from_be_bytes(rest[m + 2..m + 6].try_into().unwrap()) as usize;
        let layout = section.table(1).with(&[("m", m), ("c", c)]);
        assert_eq!(layout.field("kind"), kinds);
        assert_eq!(layout.of("kind", rest), [kind]);
        assert_eq!(layout.of("name of its file", rest), name.as_bytes());
        assert_eq!(layout.of("m, length", rest), [m as u8]);
        assert_eq!(layout.of("content", rest).len(), c);
        rest = &rest[layout.is_without_gaps()..];
    }
    assert!(rest.is_empty());
}

#[test]
fn password_files() {
    let section = Doc::read().section("### Keyring");
    let home = tempfile::tempdir().unwrap();
    let (keyring, _) = Keyring::open_or_create(home.path()).unwrap();
    let path = home.path().join("master.backup");
    let password = Passphrase::new(b"a Pa55word");
    keyring.back_up_database_key(&path, &password).unwrap();
    let file = std::fs::read(&path).unwrap();

    let section = section.from("**Password file**");
    let layout = section.table(0);
    assert_eq!(layout.is_without_gaps(), file.len());
    section.says(&format!("{} bytes; AES-256-GCM", file.len()));
    assert_eq!(layout.of("`Pellucid secret", &file), literal(layout.field("`Pellucid secret")));
    assert_eq!(layout.of("version, 1", &file), 1u16.to_be_bytes());
    assert_eq!(layout.field("kind"), "kind: 1 service master key, 2 database master key");
    assert_eq!(layout.of("kind", &file), [2]);
    let number = |field| u32::from_be_bytes(layout.of(field, &file).try_into().unwrap());
    let cost = Argon2Cost {
        memory_kib: number("memory"),
        passes: number("passes"),
        lanes: number("lanes"),
    };
    assert_eq!(cost, Argon2Cost::default());
    section.says("`Argon2id(password, salt; memory, passes, lanes)`, AAD = bytes 0-75");
    let kek = cost.stretch(&password, layout.of("salt", &file).try_into().unwrap()).unwrap();
    let mut key = [0; 32];
    Cipher::new(Algorithm::Aes256, kek.expose())
        .unwrap()
        .open(
            layout.of("nonce", &file).try_into().unwrap(),
            &file[..layout.at("nonce").end],
            layout.of("key, encrypted", &file),
            layout.of("tag", &file).try_into().unwrap(),
            &mut key,
        )
        .unwrap();
    let master = std::fs::read(home.path().join("keyring/master.key")).unwrap();
    let service = std::fs::read(home.path().join("service.key")).unwrap();
    let section = Doc::read().section("### Keyring");
    assert_eq!(open_file(&section, &service, 1, "", &master), key);
    let info = section.info("check value");
    let check = hkdf_sha256(&key, b"", &[info.as_bytes()], 16);
    assert_eq!(layout.of("check value", &file), check);
    let sum = layout.at("SHA-256 of bytes 0-123");
    assert_eq!(sum.start, 124);
    assert_eq!(&file[sum], hash(&file[..124]));
}

fn hash(bytes: &[u8]) -> [u8; 32] {
    let mut hash = pellucid::hash::Sha256::new();
    hash.update(bytes);
    hash.finish()
}
