//! How each kind of object in `vectors/` is opened, compared, and sealed again.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use aws_lc_rs::hkdf;
use pellucid::certificate::{enable_hybrid, Certificate, Companion, KeyPlace};
use pellucid::cipher::{Cipher, NONCE_BYTES};
use pellucid::derive::commitment;
use pellucid::header::{DekRow, EncryptionState, Header, RecoveryModel, Second};
use pellucid::journal::{self, JournalHeader};
use pellucid::keys::{ContainerKeys, HeaderKey, TemporaryKey};
use pellucid::log_sector::LogSector;
use pellucid::nonce::{NonceSource, UnitNonce};
use pellucid::protector::{KeyFile, KeySource, Passphrase};
use pellucid::secret::Secret32;
use pellucid::sector::{SectorZero, Wear};
use pellucid::unit::{self, FileKind, Place, TAIL_BYTES};
use pellucid::wal::{self, WalHeader};
use pellucid::{Algorithm, Dek, Error, Result, Subject};
use pellucid_keyring::{read_key_backup, Bundle, DatabaseMemory, Keyring, MasterKey};
use pellucid_tests::elsewhere::Held;

use super::archives;
use super::case::Case;
use super::logs;

/// Gives the nonces of the case, in order.
struct Nonces(Vec<u8>);

impl NonceSource for Nonces {
    fn next_nonce(&mut self) -> Result<[u8; NONCE_BYTES]> {
        Ok(self.0.drain(..NONCE_BYTES).as_slice().try_into().unwrap())
    }
}

/// Opens the case; a success is compared with what the case says.
pub fn run(case: &Case) -> Result<()> {
    match case.text("object") {
        "unit" | "page" => page(case),
        "wal-header" => wal_header(case),
        "wal-frame" => wal_frame(case),
        "journal-header" => journal_header(case),
        "journal-record" => journal_record(case),
        "temporary-block" => temporary_block(case),
        "sector-0" => sector_zero(case),
        "wear" => wear(case),
        "log-sector" => log_sector(case),
        "archive-state" => archives::state(case),
        "archive-segment" => archives::segment(case),
        "archive-header" => archives::header(case),
        "archive-changed" => archives::changed(case),
        "archive-mark" => archives::mark(case),
        "log-archive" => archives::archive(case),
        "header" => header(case),
        "wal" => logs::wal(case),
        "super-journal" => logs::super_journal(case),
        "index-object" => logs::index_object(case),
        "event-log" => logs::event_log(case),
        "keyring" => keyring(case),
        "password-file" => password_file(case),
        "bundle" => bundle(case),
        "media" => super::media::media(case),
        object => panic!("no object is called `{object}`"),
    }
}

pub fn dek(case: &Case) -> Dek {
    Dek::from_secret(Secret32::new(&mut case.array("dek")))
}

fn algorithm(case: &Case) -> Algorithm {
    case.text("algorithm").parse().unwrap()
}

fn nonces(case: &Case) -> Nonces {
    Nonces(case.bytes("nonce"))
}

/// The version of the database that an object belongs to.
pub fn version(case: &Case) -> wal::Version {
    match case.get("database-version") {
        None => wal::Version::First,
        Some("2") => wal::Version::Second,
        Some(other) => panic!("no version {other}"),
    }
}

pub fn container(case: &Case) -> Result<ContainerKeys> {
    ContainerKeys::new(&container_header(case)?, &dek(case))
}

/// The header of the database that an object belongs to, without protectors.
pub fn container_header(case: &Case) -> Result<Header> {
    let (dek, file_id) = (dek(case), case.array("file-id"));
    let row = DekRow {
        first_generation: 1,
        last_generation: u32::MAX,
        algorithm: algorithm(case),
        commitment: commitment(&dek, &file_id)?,
        plain: false,
        wrapped: None,
    };
    Ok(Header {
        sequence: 1,
        file_id,
        page_size: 512,
        state: EncryptionState::Encrypted,
        generation: case.number("generation") as u32,
        created: 0,
        scan: pellucid::scan::Scan::default(),
        flags: pellucid::flags::Flags::default(),
        second: (version(case) == wal::Version::Second).then(Second::default),
        deks: vec![row],
        protectors: vec![],
    })
}

fn page(case: &Case) -> Result<()> {
    let keys = container(case)?;
    let page = case.number("position") as u32;
    let place = Place::page(keys.file_id(), page);
    let mut plain = vec![0xAA; case.body.len() - TAIL_BYTES];
    let opened =
        keys.open(FileKind::Database, &place, &case.body, &mut plain, || Subject::Page(page));
    if opened.is_err() {
        assert!(plain.iter().all(|byte| *byte == 0), "plaintext of a refused unit");
        return opened;
    }
    assert_eq!(plain, case.bytes("plaintext"));
    if unit::generation(&case.body) == Some(keys.generation()) {
        let mut sealed = vec![0; case.body.len()];
        keys.seal(FileKind::Database, &place, &mut nonces(case), &plain, &mut sealed)?;
        assert_eq!(sealed, case.body, "sealed again");
    }
    if case.get("aad").is_some() {
        intermediate_values(case);
    }
    Ok(())
}

/// The key and AAD a case states are those that open it.
fn intermediate_values(case: &Case) {
    struct Length(usize);
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let algorithm = algorithm(case);
    let generation = (case.number("generation") as u32).to_be_bytes();
    let mut key = vec![0; Cipher::key_bytes(algorithm)];
    hkdf::Salt::new(hkdf::HKDF_SHA256, &case.bytes("file-id"))
        .extract(&case.bytes("dek"))
        .expand(
            &[b"pellucid/1 unit", &generation, &[algorithm.id(), 1]],
            Length(Cipher::key_bytes(algorithm)),
        )
        .and_then(|okm| okm.fill(&mut key))
        .unwrap();
    assert_eq!(key, case.bytes("generation-key"));
    let (ciphertext, tail) = case.body.split_at(case.body.len() - TAIL_BYTES);
    let mut plain = vec![0; ciphertext.len()];
    let nonce = UnitNonce {
        drawn: *tail.first_chunk().unwrap(),
        generation: u32::from_be_bytes(generation),
        kind: 1,
        position: case.number("position"),
    };
    Cipher::new(algorithm, &key)
        .unwrap()
        .open_unit(&nonce, &case.bytes("aad"), ciphertext, tail.last_chunk().unwrap(), &mut plain)
        .unwrap();
    assert_eq!(plain, case.bytes("plaintext"));
}

/// A WAL header gives no error but for a later version: what is not ours is handed to SQLite so that it finds no log.
fn wal_header(case: &Case) -> Result<()> {
    let sealed: [u8; wal::HEADER_BYTES] = case.body.clone().try_into().unwrap();
    let (mut handed, version) = (sealed, version(case));
    wal::unmark_header(&mut handed, version);
    // Who does not ask, still finds no log.
    wal::refuse_other(&sealed, version)
        .inspect_err(|_| assert_eq!(WalHeader::parse(&handed), None))?;
    assert_eq!(handed, case.array("sqlite"), "as handed to SQLite");
    if WalHeader::parse_sealed(&sealed, version).is_none() {
        assert_eq!(WalHeader::parse(&handed), None, "SQLite would accept it");
        return Err(Error::corrupt(Subject::WalHeader, "not of a sealed WAL, or damaged"));
    }
    wal::mark_header(&mut handed, version);
    assert_eq!(handed, sealed, "marked again");
    Ok(())
}

fn wal_frame(case: &Case) -> Result<()> {
    let keys = container(case)?;
    let number = case.number("frame") as u32;
    let (run, stamp) = match case.get("run") {
        None => (wal::Run::of(&[0; wal::HEADER_BYTES], wal::Version::First), wal::Stamp::default()),
        Some(_) => (wal::Run::second(&case.array("run")), stamp(case)),
    };
    let mut frame = vec![0xAA; case.body.len()];
    let opened = wal::open_frame(&keys, &run, number, &case.body, &mut frame);
    if opened.is_err() {
        assert!(frame[wal::FRAME_CLEAR_BYTES..].iter().all(|byte| *byte == 0));
        return opened;
    }
    assert_eq!(frame, case.bytes("sqlite"));
    if run.version() == wal::Version::Second {
        assert_eq!(wal::Stamp::of(&case.body), stamp);
    }
    let mut sealed = vec![0; frame.len()];
    wal::seal_frame(&keys, &mut nonces(case), (&run, stamp), number, &frame, &mut sealed)?;
    assert_eq!(sealed, case.body, "sealed again");
    Ok(())
}

/// The stamp that a frame of version 2 has.
fn stamp(case: &Case) -> wal::Stamp {
    let marks: Vec<&str> = case.text("stamp").split_whitespace().collect();
    let known =
        ["first", "synced-before", "stepped-back", "reseals-only", "mark-follows", "nothing"];
    assert!(marks.iter().all(|mark| known.contains(mark)), "{marks:?}");
    wal::Stamp {
        time: wal::Time::from_units(case.number("time")),
        count: case.number("recoveries") as u16,
        first: marks.contains(&"first"),
        synced_before: marks.contains(&"synced-before"),
        stepped_back: marks.contains(&"stepped-back"),
        reseals_only: marks.contains(&"reseals-only"),
        mark_follows: marks.contains(&"mark-follows"),
    }
}

fn journal_header(case: &Case) -> Result<()> {
    let keys = container(case)?;
    let offset = case.number("offset");
    let (header, damaged) = JournalHeader::open(&keys, &case.body, offset)?;
    journal::check_rest(&case.body, offset)?;
    assert_eq!(header.fields.to_vec(), case.bytes("sqlite"));
    assert_eq!(header.id, case.array("journal-id"));
    assert_eq!(damaged, case.text("damaged") == "yes");
    let sealed = header.seal(&keys, &mut nonces(case), offset)?;
    assert_eq!(sealed[..] == case.body, !damaged, "sealed again");
    Ok(())
}

fn journal_record(case: &Case) -> Result<()> {
    let keys = container(case)?;
    let (id, offset) = (case.array("journal-id"), case.number("offset"));
    let mut record = vec![0xAA; case.body.len()];
    let opened = journal::open_record(&keys, &id, offset, &case.body, &mut record);
    if opened.is_err() {
        assert!(record[4..].iter().all(|byte| *byte == 0));
        return opened;
    }
    assert_eq!(record, case.bytes("sqlite"));
    let mut sealed = vec![0; record.len()];
    journal::seal_record(&keys, &mut nonces(case), &id, offset, &mut record, &mut sealed)?;
    assert_eq!(sealed, case.body, "sealed again");
    Ok(())
}

fn temporary_block(case: &Case) -> Result<()> {
    let algorithm = case.get("algorithm").map_or(Ok(Algorithm::Aes256), str::parse::<Algorithm>)?;
    let key = TemporaryKey::from_secret(algorithm, &Secret32::new(&mut case.array("key")))?;
    let block = case.number("position");
    let mut plain = vec![0xAA; case.body.len() - TAIL_BYTES];
    key.open(block, &case.body, &mut plain)?;
    assert_eq!(plain, case.bytes("plaintext"));
    let mut sealed = vec![0; case.body.len()];
    key.seal(algorithm, block, &mut nonces(case), &plain, &mut sealed)?;
    assert_eq!(sealed, case.body, "sealed again");
    Ok(())
}

fn sector_zero(case: &Case) -> Result<()> {
    let parsed = SectorZero::parse(&case.body)?;
    let expected = match case.text("says") {
        "sealed" => Some(SectorZero::Sealed { file_id: case.array("file-id") }),
        "laying" => Some(SectorZero::LayingPlain {
            file_id: case.array("file-id"),
            copy_bytes: case.number("copy-bytes"),
            copy_sha256: case.array("copy-sha256"),
        }),
        _ => None,
    };
    assert_eq!(parsed, expected);
    if let Some(parsed) = parsed {
        assert_eq!(parsed.encode(case.number("page-size") as u32).to_vec(), case.body);
    }
    Ok(())
}

fn wear(case: &Case) -> Result<()> {
    let key = HeaderKey::derive(&dek(case), &case.array("file-id"))?;
    let bytes = case.body.clone().try_into().unwrap();
    let wear = Wear::parse(&bytes, &key, case.number("offset"))?;
    let expected =
        Wear { generation: case.number("generation") as u32, reserved: case.number("reserved") };
    assert_eq!(wear, expected);
    assert_eq!(wear.encode(&key, case.number("offset")), bytes);
    Ok(())
}

/// Sector 2 of a database of version 2, which any DEK of the header may have signed.
fn log_sector(case: &Case) -> Result<()> {
    let id = case.array("file-id");
    let older = case.get("older-dek").map(|_| case.array("older-dek"));
    let older = older.map(|mut bytes| Dek::from_secret(Secret32::new(&mut bytes)));
    let current = dek(case);
    let keys = std::iter::once(&current).chain(&older).map(|dek| HeaderKey::derive(dek, &id));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let sector = LogSector::parse(&case.body.clone().try_into().unwrap(), &keys)?;
    let expected = LogSector {
        wear: Wear {
            generation: case.number("generation") as u32,
            reserved: case.number("reserved"),
        },
        recoveries: case.number("recoveries") as u32,
        counted: case.number("counted") as u32,
        under_way: case.text("under-way") == "yes",
        run: case.array("run"),
        before: case.array("run-before"),
        before_ended: wal::Time::from_units(case.number("ended")),
        epoch: case.number("epoch") as u32,
        kept: case.number("kept") as u32,
        has_ended: case.text("has-ended") == "yes",
        is_lost: case.text("is-lost") == "yes",
    };
    assert_eq!(sector, expected);
    let by = keys.last().unwrap();
    assert_eq!(sector.encode(by)[..], case.body, "encoded again");
    Ok(())
}

/// What a case has at hand.
pub struct Keys<'a> {
    key_files: Vec<KeyFile>,
    passphrases: Vec<Passphrase>,
    case: &'a Case,
}

impl<'a> Keys<'a> {
    pub fn of(case: &'a Case) -> Self {
        enable_hybrid();
        let key_file = case.get("key-file").map(|_| case.bytes("key-file"));
        Self {
            key_files: key_file.iter().filter_map(|bytes| KeyFile::parse(bytes)).collect(),
            passphrases: case
                .get("passphrase")
                .map(|text| Passphrase::new(text.as_bytes()))
                .into_iter()
                .collect(),
            case,
        }
    }
}

/// The companion of the certificate at hand.
fn companion(case: &Case) -> Option<Companion> {
    let added = case.get("companion-added").filter(|added| *added != "none")?;
    let (key, signature) = (case.bytes("companion"), case.bytes("companion-signature"));
    Companion::new(added.parse().unwrap(), &key, &signature)
}

impl KeySource for Keys<'_> {
    fn key_files(&self) -> &[KeyFile] {
        &self.key_files
    }

    fn passphrases(&self) -> &[Passphrase] {
        &self.passphrases
    }

    fn certificate(&self, thumbprint_sha256: &[u8; 32]) -> Result<Option<Certificate>> {
        if self.case.get("public-key").is_some() {
            let place = ["provider", "provider-key"].map(|name| self.case.get(name).unwrap());
            let place = KeyPlace::new(place[0], place[1])?;
            let held = Held::new(place, &self.case.bytes("private-key"));
            let public_key = self.case.bytes("public-key");
            let key = Certificate::elsewhere("tde", &public_key, Arc::new(held))?;
            return Ok(Some(key).filter(|key| key.public().thumbprint() == thumbprint_sha256));
        }
        if self.case.get("certificate").is_none() {
            return Ok(None);
        }
        let (der, key) = (self.case.bytes("certificate"), self.case.bytes("private-key"));
        let mut certificate = Certificate::from_parts("app", &der, &key, None)?;
        if let Some(companion) = companion(self.case) {
            let private_key = self.case.bytes("companion-private-key");
            certificate = certificate.with_companion(companion, &private_key)?;
        }
        Ok(Some(certificate).filter(|c| c.public().thumbprint() == thumbprint_sha256))
    }

    fn allow_recovery(&self) -> bool {
        self.case.get("allow-recovery") == Some("yes")
    }
}

fn header(case: &Case) -> Result<()> {
    let copy = case.number("copy") as u8;
    let header = Header::parse(&case.body, copy)?;
    header.check_readable()?;
    let dek = header.unwrap(&Keys::of(case))?;
    let header_key = HeaderKey::derive(&dek, &header.file_id)?;
    Header::authenticate(&case.body, &header_key, copy)?;
    let keys = ContainerKeys::new(&header, &dek)?;

    assert_eq!(dek.expose()[..], case.bytes("dek"));
    assert_eq!(header.sequence, case.number("sequence"));
    assert_eq!(header.file_id, case.array("file-id"));
    let older_id = case.get("older-file-id").map(|_| case.array("older-file-id"));
    assert_eq!(header.scan.older_id, older_id);
    assert_eq!(u64::from(header.page_size), case.number("page-size"));
    assert_eq!(header.state.name(), case.text("state"));
    assert_eq!(u64::from(header.generation), case.number("generation"));
    assert_eq!(header.created, case.number("created"));
    assert_eq!(header.algorithm()?, algorithm(case));
    let flags = case.get("flags").map_or([0; 6], |_| case.array("flags"));
    assert_eq!(header.flags.encode(), flags);
    assert_eq!(header.second, second(case));
    let again = header.encode(&header_key);
    match flags[2..4] == [0; 2] {
        true => assert_eq!(again?[..], case.body, "encoded again"),
        false => {
            let told = again.expect_err("only a newer version may write it").to_string();
            assert!(told.contains("read-only flags"), "{told}");
        }
    }
    let is_writable = flags[2..4] == [0; 2] && case.get("writable") != Some("no");
    assert_eq!(header.check_writable().is_ok(), is_writable);
    if case.get("older-page").is_some() {
        let unit = case.bytes("older-page");
        let place = Place::page(keys.file_id(), 7);
        let mut plain = vec![0; unit.len() - TAIL_BYTES];
        keys.open(FileKind::Database, &place, &unit, &mut plain, || Subject::Page(7))?;
        assert_eq!(plain, case.bytes("plaintext"));
    }
    Ok(())
}

/// The fields that a header of version 2 has.
fn second(case: &Case) -> Option<Second> {
    let model = case.get("recovery-model")?;
    let models = [RecoveryModel::Full, RecoveryModel::BulkLogged, RecoveryModel::Simple];
    let marks: Vec<&str> = case.text("marks").split_whitespace().collect();
    let known = ["index-in-memory", "chain", "restoring", "standby", "nothing"];
    assert!(marks.iter().all(|mark| known.contains(mark)), "{marks:?}");
    Some(Second {
        model: models.into_iter().find(|known| known.name() == model).unwrap(),
        index_in_memory: marks.contains(&"index-in-memory"),
        has_chain: marks.contains(&"chain"),
        is_restoring: marks.contains(&"restoring"),
        is_standby: marks.contains(&"standby"),
        fork: case.array("fork"),
        chain_begins: case.number("chain-begins"),
        handed_out: case.number("handed-out"),
        witness: case.array("witness"),
    })
}

/// An instance with the keys of the case and these files.
pub fn in_a_home(case: &Case, files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    put("service.key", &case.bytes("service-key"));
    if case.get("master-key-file").is_some() {
        put("keyring/master.key", &case.bytes("master-key-file"));
    }
    files.iter().for_each(|(name, bytes)| put(name, bytes));
    home
}

fn keyring(case: &Case) -> Result<()> {
    enable_hybrid();
    let path = case.text("path");
    let home = in_a_home(case, &[(path, &case.body)]);
    let keyring = Keyring::open(home.path())?;
    if let Some(name) = path.strip_prefix("keyring/certificates/") {
        let found = keyring.certificate(name)?;
        assert_eq!(found.public().der(), case.bytes("certificate"));
        assert_eq!(found.private_key()?, case.bytes("private-key"));
        assert_eq!(found.backed_up(), Some(case.number("backed-up")).filter(|time| *time != 0));
        assert_eq!(found.public().companion(), companion(case).as_ref());
        let private_half = found.companion_key().map(<[u8]>::to_vec);
        let stated = case.get("companion").map(|_| case.bytes("companion-private-key"));
        assert_eq!(private_half, stated);
        found.check_pair()?;
    } else if path.starts_with("keyring/databases/") {
        let memory = DatabaseMemory {
            sequence: case.number("sequence"),
            sealed: case.text("sealed") == "yes",
            ..Default::default()
        };
        assert_eq!(keyring.recall_database(&case.array("file-id"))?, Some(memory));
    } else if path.starts_with("keyring/paths/") {
        let pinned = case.text("pinned-path").into();
        let pins = Keyring::pins_at(&[home.path().to_owned()], &[pinned])?;
        let [pin] = &pins[..] else { panic!("no pin") };
        assert_eq!((pin.file_id, pin.sequence), (case.array("file-id"), case.number("sequence")));
        assert_eq!((pin.dek, pin.sealed), (case.array("commitment"), true));
    } else if path.starts_with("keyring/retired/") {
        let homes = [home.path().to_owned()];
        assert!(Keyring::is_retired_at(&homes, &case.array("commitment"))?);
    } else if path.starts_with("keyring/checks/") {
        let checked = std::path::Path::new(case.text("checked-path"));
        let check = keyring.recall_check(checked, &case.array("file-id"))?.unwrap();
        assert_eq!((check.at, check.good_at), (case.number("at"), case.number("good-at")));
        let damage = check.damage.unwrap();
        assert_eq!((damage.at, damage.pages), (case.number("at"), vec![3, 17]));
        assert_eq!(u64::from(damage.findings), case.number("findings"));
    } else if path.starts_with("keyring/witnesses/") {
        let path = std::path::Path::new(case.text("witness-path"));
        let witness = keyring.witnesses_at(&[path.to_owned()], &|_| false)?.pop().unwrap();
        assert_eq!(witness.path, path);
        assert_eq!((witness.file_id, witness.fork), (case.array("file-id"), case.array("fork")));
        assert_eq!(
            [witness.header_sequence, witness.archive_sequence, witness.lsn.word(), witness.at],
            ["header-sequence", "archive-sequence", "lsn", "at"].map(|name| case.number(name))
        );
        assert_eq!(witness.base.word(), case.number("base"));
        assert_eq!(witness.last_set, case.array::<32>("last-set"));
    }
    Ok(())
}

/// A backup of a master key, which restoring it opens.
fn password_file(case: &Case) -> Result<()> {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("key");
    std::fs::write(&path, &case.body).unwrap();
    let kind = match case.text("key") {
        "service" => MasterKey::Service,
        _ => MasterKey::Database,
    };
    let password = Passphrase::new(case.text("passphrase").as_bytes());
    let key = read_key_backup(kind, &path, &password)?;
    assert_eq!(key.expose()[..], case.bytes("master-key"));
    Ok(())
}

/// Opened, and taken into an instance of its own.
fn bundle(case: &Case) -> Result<()> {
    let bundle = Bundle::open(&case.body, &Keys::of(case))?;
    assert_eq!(bundle.made(), case.number("made"));
    assert_eq!(bundle.proves_origin(), case.get("allow-recovery").is_none());
    let home = tempfile::tempdir().unwrap();
    bundle.import(home.path(), "bundle".as_ref())?;
    let keyring = Keyring::open(home.path())?;
    let found = keyring.certificate("app")?;
    assert_eq!(found.public().der(), case.bytes("app-certificate"));
    assert_eq!(found.private_key()?, case.bytes("app-private-key"));
    let memory = keyring.recall_database(&case.array("file-id"))?.expect("the database");
    assert_eq!((memory.sequence, memory.sealed), (case.number("sequence"), true));
    assert_eq!(memory.certificates, [*found.public().thumbprint()]);
    assert_eq!(memory.path.to_str(), case.get("database-path"));
    Ok(())
}
