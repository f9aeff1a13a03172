use nix::unistd::{getuid, User};
use pellucid::derive::commitment;
use pellucid::header::Header;
use pellucid::header::{DekRow, EncryptionState};
use pellucid::keys::HeaderKey;
use pellucid::protector::{wrap, Wrapping};
use pellucid::Algorithm;

use pellucid::secret::Dek;

use super::*;
use crate::broker::wire::Reader;
use crate::broker::MAGIC;
use crate::policy::{Limit, Policy};
use crate::{DatabaseMemory, Pair, Witness};

const ID: [u8; 16] = [7; 16];

fn header(keyring: &Keyring, dek: &Dek, file_id: [u8; 16]) -> Box<[u8; COPY_BYTES]> {
    let row = DekRow {
        first_generation: 1,
        last_generation: u32::MAX,
        algorithm: Algorithm::Aes256,
        plain: false,
        commitment: commitment(dek, &file_id).unwrap(),
        wrapped: None,
    };
    let (certificate, _) = keyring.ensure_default_certificate().unwrap();
    let wrapping = Wrapping::Certificate(&certificate);
    let protector = wrap(dek, &row.binding(&file_id), &wrapping).unwrap();
    let header = Header {
        sequence: 1,
        file_id,
        page_size: 4096,
        state: EncryptionState::Encrypted,
        generation: 1,
        created: 1,
        scan: pellucid::scan::Scan::default(),
        flags: pellucid::flags::Flags::default(),
        second: None,
        deks: vec![row],
        protectors: vec![protector.encoded()],
    };
    header.encode(&HeaderKey::derive(dek, &file_id).unwrap()).unwrap()
}

fn peer() -> Peer {
    Peer { uid: getuid().as_raw(), pid: std::process::id(), program: None }
}

fn own() -> Account {
    let name = User::from_uid(getuid()).unwrap().unwrap().name;
    Account { uid: getuid().as_raw(), name }
}

fn opener(account: Account, file_id: [u8; 16]) -> Pair {
    Pair { role: Role::Opens, account, file_id }
}

/// Status and bytes of the answer to a question.
fn asked(home: &Path, peer: &Peer, operation: Operation, bytes: &[u8]) -> (Status, Vec<u8>) {
    let answer = Answer::to(home, peer, MAGIC, operation as u8, bytes).bytes;
    let mut reader = Reader(&answer);
    let status = Status::of(reader.byte().unwrap()).unwrap();
    let bytes = reader.block().unwrap().to_vec();
    reader.end().unwrap();
    (status, bytes)
}

fn opened(home: &Path, peer: &Peer, header: &[u8; COPY_BYTES]) -> (Status, Vec<u8>) {
    asked(home, peer, Operation::Open, &[&[0][..], header].concat())
}

#[test]
fn a_key_goes_to_who_was_let_in_and_is_recorded_first() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (keyring, _) = Keyring::open_or_create(home).unwrap();
    let dek = Dek::random().unwrap();
    let bytes = header(&keyring, &dek, ID);
    assert_eq!(opened(home, &peer(), &bytes), (Status::Denied, Vec::new()));
    keyring.allow(&opener(Account { name: "another".into(), ..own() }, ID)).unwrap();
    assert_eq!(opened(home, &peer(), &bytes).0, Status::Trouble, "the number had another name");
    keyring.deny(&opener(Account { name: "another".into(), ..own() }, ID)).unwrap();
    keyring.allow(&opener(own(), ID)).unwrap();
    assert_eq!(opened(home, &peer(), &bytes), (Status::Done, dek.expose().to_vec()));
    let nobody = Peer { uid: 4_000_000_000, ..peer() };
    assert_eq!(opened(home, &nobody, &bytes).0, Status::Denied);
    // Where the log cannot be written no key leaves.
    let log = home.join("keyring/events.lock");
    std::fs::remove_file(&log).unwrap();
    std::fs::create_dir(&log).unwrap();
    let (status, told) = opened(home, &peer(), &bytes);
    assert!(status == Status::Trouble && !told.windows(32).any(|one| one == dek.expose()));
    std::fs::remove_dir(&log).unwrap();
    let lines = crate::read_events(home).unwrap();
    let of_keys: Vec<_> = lines.iter().filter(|line| line.contains("\"by_broker\":true")).collect();
    assert_eq!(of_keys.len(), 1, "{lines:?}");
    assert!(of_keys[0].contains("\"opened\"") && of_keys[0].contains(&pellucid::hash::hex(&ID)));
}

#[test]
fn nothing_but_an_authentic_header_of_the_database_opens() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (keyring, _) = Keyring::open_or_create(home).unwrap();
    keyring.allow(&opener(own(), ID)).unwrap();
    let (dek, other) = (Dek::random().unwrap(), [8; 16]);
    let others = header(&keyring, &dek, other);
    assert_eq!(opened(home, &peer(), &others).0, Status::Denied);
    let sealed = |mut bytes: Box<[u8; COPY_BYTES]>| {
        let at = COPY_BYTES - 32;
        let mut sum = pellucid::hash::Sha256::new();
        sum.update(&bytes[..at]);
        let sum = sum.finish();
        bytes[at..].copy_from_slice(&sum);
        bytes
    };
    // The other database's wrap under one's own file id.
    let mut mixed = others.clone();
    let at = mixed.windows(16).position(|bytes| bytes == other).unwrap();
    mixed[at..at + 16].copy_from_slice(&ID);
    let (status, told) = opened(home, &peer(), &sealed(mixed));
    assert!(status == Status::Unauthentic && !told.windows(32).any(|one| one == dek.expose()));
    // A header that was changed under its own key: who writes the storage is told nothing by the key's owner.
    let mut changed = header(&keyring, &dek, ID);
    let mac = COPY_BYTES - 64;
    changed[mac] ^= 1;
    let (status, told) = opened(home, &peer(), &sealed(changed));
    assert!(status == Status::Unauthentic && !told.windows(32).any(|one| one == dek.expose()));
    assert_eq!(opened(home, &peer(), &header(&keyring, &dek, ID)).0, Status::Done);
}

#[test]
fn what_is_remembered_goes_to_everybody_who_opens_something_there() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (keyring, _) = Keyring::open_or_create(home).unwrap();
    let path = PathBuf::from("/srv/app.db");
    let pin = Pin { path: path.clone(), file_id: ID, sequence: 3, sealed: true, ..Pin::default() };
    keyring.change_pin(&path, |_| Some(pin.clone())).unwrap();
    keyring.retire(&[3; 32]).unwrap();
    let memory = DatabaseMemory { sequence: 9, sealed: true, ..DatabaseMemory::default() };
    keyring.remember_database(&ID, &memory).unwrap();
    let query = Query {
        paths: vec![path, "/srv/other.db".into()],
        file_ids: vec![[1; 16], ID],
        commitments: vec![[3; 32], [4; 32]],
        policies: true,
        witnesses: Some(Vec::new()),
    };
    keyring.set_policy(Policy::StrictPaths, Some(Limit::On)).unwrap();
    let question = query.encode();
    let (status, answer) = asked(home, &peer(), Operation::Recall, &question);
    assert_eq!(status, Status::Done);
    let found = Memory::decode(&answer, &query).unwrap();
    assert_eq!((found.pins, found.retired), (vec![pin.encode()], vec![true, false]));
    assert_eq!(found.databases, [Vec::new(), memory.encode()]);
    assert_eq!(found.home, home);
    assert_eq!(found.policies, [("strict-paths".to_owned(), "on".to_owned())]);
    // An answer that leaves something out is none.
    for end in 0..answer.len() {
        assert!(Memory::decode(&answer[..end], &query).is_none(), "{end}");
    }
    for other in [
        Query { file_ids: vec![ID], ..query.clone() },
        Query { commitments: Vec::new(), ..query.clone() },
    ] {
        assert!(Memory::decode(&answer, &other).is_none(), "{other:?}");
    }
}

/// Those at the names that are asked about, and those of databases that the account opens; what cannot be read is no silence.
#[test]
fn witnesses_go_to_who_names_their_path_or_opens_the_database() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (keyring, _) = Keyring::open_or_create(home).unwrap();
    let witness = |name: &str, id: u8| Witness {
        path: home.join(name),
        file_id: [id; 16],
        fork: [1; 16],
        header_sequence: 1,
        archive_sequence: 2,
        lsn: pellucid::lsn::Lsn::decode([0; 8]),
        base: pellucid::lsn::Lsn::decode([0; 8]),
        last_set: [0; 32],
        at: 3,
    };
    for (name, id) in [("one.db", 1), ("two.db", 2), ("three.db", 3)] {
        keyring.remember_witness(&witness(name, id)).unwrap();
    }
    keyring.allow(&opener(own(), [2; 16])).unwrap();
    let names = vec![home.join("one.db")];
    let query = Query { witnesses: Some(names), ..Query::default() };
    let ask = || asked(home, &peer(), Operation::Recall, &query.encode());
    let (status, answer) = ask();
    assert_eq!(status, Status::Done);
    let found = Memory::decode(&answer, &query).unwrap().witnesses;
    let path = |bytes: &Vec<u8>| Witness::decode(bytes).unwrap().path;
    let mut paths: Vec<_> = found.iter().map(path).collect();
    paths.sort();
    assert_eq!(paths, [home.join("one.db"), home.join("two.db")]);
    let file = home.join("keyring/witnesses").join(crate::pins::name_of(&home.join("one.db")));
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(ask().0, Status::Unauthentic);
}

#[test]
fn no_question_makes_it_panic_or_take_memory() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (keyring, _) = Keyring::open_or_create(home).unwrap();
    keyring.allow(&opener(own(), ID)).unwrap();
    let query = Query { paths: vec!["/a".into()], file_ids: vec![ID], ..Query::default() };
    let question = query.encode();
    assert_eq!(Query::decode(&question), Some(query));
    for end in 0..question.len() {
        assert_eq!(Query::decode(&question[..end]), None, "{end}");
        let (status, _) = asked(home, &peer(), Operation::Recall, &question[..end]);
        assert_eq!(status, Status::Misuse, "{end}");
    }
    for at in 0..question.len() {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut bytes = question.to_vec();
            bytes[at] = byte;
            asked(home, &peer(), Operation::Recall, &bytes);
            asked(home, &peer(), Operation::Open, &bytes);
        }
    }
    let many = Query { commitments: vec![[0; 32]; 257], ..Query::default() };
    assert_eq!(asked(home, &peer(), Operation::Recall, &many.encode()).0, Status::Trouble);
    let mut whole = vec![0; COPY_BYTES + 1];
    assert_eq!(asked(home, &peer(), Operation::Open, &whole).0, Status::Trouble);
    whole.push(0);
    assert_eq!(asked(home, &peer(), Operation::Open, &whole).0, Status::Misuse);
    let other = Answer::to(home, &peer(), *b"PLB\x02", 1, &whole).bytes;
    assert_eq!(Status::of(other[0]), Some(Status::Misuse));
}

#[test]
fn a_backup_is_ordered_by_who_may_and_goes_where_root_said() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (keyring, _) = Keyring::open_or_create(home).unwrap();
    let database = PathBuf::from("/srv/app.db");
    let memory = DatabaseMemory { path: database.clone(), sealed: true, ..Default::default() };
    keyring.remember_database(&ID, &memory).unwrap();
    let asked = |name: &str, database: &Path| Asked {
        database: database.to_owned(),
        name: name.to_owned(),
        kind: BackupKind::Full,
        append: false,
    };
    let order = |asked: &Asked| {
        let bytes = asked.encode();
        assert_eq!(Asked::decode(&bytes).as_ref(), Some(asked));
        assert_eq!(Asked::decode(&bytes[..bytes.len() - 1]), None);
        Order::of(home, &peer(), &bytes).map_err(|answer| Status::of(answer.bytes[0]).unwrap())
    };
    let good = asked("app.bak", &database);
    assert_eq!(order(&good), Err(Status::Denied));
    keyring.allow(&opener(own(), ID)).unwrap();
    assert_eq!(order(&good), Err(Status::Denied), "who opens it backs nothing up");
    keyring.allow(&Pair { role: Role::BacksUp, ..opener(own(), ID) }).unwrap();
    assert_eq!(order(&good), Err(Status::Trouble), "there is no place");
    keyring.set_backup_place(Some(home)).unwrap();
    assert_eq!(order(&good).unwrap().target, home.join(own().name).join("app.bak"));
    assert_eq!(order(&asked("app.bak", Path::new("/etc/shadow"))), Err(Status::Denied));
    for name in ["", ".", "..", "../x", "/etc/x", "a/b", "-x", "{db}", "s3:x", "a\nb", "\u{e4}"] {
        assert_eq!(order(&asked(name, &database)), Err(Status::Trouble), "{name}");
    }
    let lines = crate::read_events(home).unwrap();
    assert_eq!(lines.iter().filter(|line| line.contains("by_broker")).count(), 1, "{lines:?}");
}
