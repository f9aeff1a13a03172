//! Older DEKs come back under the current one, and only where they belong.

use super::*;
use crate::header::EncryptionState;
use crate::nonce::SystemNonces;

const ID: [u8; 16] = [9; 16];

fn header(rows: Vec<DekRow>) -> Header {
    Header {
        sequence: 1,
        file_id: ID,
        page_size: 512,
        state: EncryptionState::Encrypted,
        generation: 3,
        created: 0,
        scan: crate::scan::Scan::default(),
        flags: crate::flags::Flags::default(),
        second: None,
        deks: rows,
        protectors: vec![],
    }
}

fn current_row(dek: &Dek) -> DekRow {
    DekRow {
        first_generation: 3,
        last_generation: u32::MAX,
        algorithm: Algorithm::Aes256,
        commitment: commitment(dek, &ID).unwrap(),
        plain: false,
        wrapped: None,
    }
}

#[test]
fn pages_of_an_older_dek_open_and_new_ones_are_sealed_under_the_current() {
    let (older, current) = (Dek::random().unwrap(), Dek::random().unwrap());
    let row = DekRow::wrap_older(
        &older,
        1..=2,
        Algorithm::TripleDes3Key,
        &current,
        &ID,
        &mut SystemNonces,
    )
    .unwrap();
    assert_eq!(row.unwrap_older(&current, &ID, &ID).unwrap(), older);
    let keys = ContainerKeys::new(&header(vec![row, current_row(&current)]), &current).unwrap();

    let cipher =
        generation_cipher(&older, &ID, 2, Algorithm::TripleDes3Key, FileKind::Database).unwrap();
    let place = Place::page(&ID, 7);
    let (mut unit, mut page) = ([0; 512], [0; 480]);
    unit::seal(&cipher, 2, &[1; 12], &place, &[5; 480], &mut unit).unwrap();
    keys.open(FileKind::Database, &place, &unit, &mut page, || Subject::Page(7)).unwrap();
    assert_eq!(page, [5; 480]);
    let mut in_place = unit;
    keys.open_in_place(FileKind::Database, &place, &mut in_place, || Subject::Page(7)).unwrap();
    assert_eq!(in_place, [[5; 480].as_slice(), &[0; 32]].concat()[..]);
    keys.seal(FileKind::Database, &place, &mut SystemNonces, &page, &mut unit).unwrap();
    assert_eq!(unit::generation(&unit), Some(3));
    for (at, says) in [(100, "does not match"), (511, "does not match"), (494, "does not list")] {
        let mut forged = unit;
        forged[at] ^= 8;
        let opened =
            keys.open_in_place(FileKind::Database, &place, &mut forged, || Subject::Page(7));
        let error = opened.unwrap_err().to_string();
        assert!(error.contains("page 7") && error.contains(says), "{error}");
        assert!(forged.iter().all(|byte| *byte == 0), "bytes handed out");
    }
    keys.open_in_place(FileKind::Database, &place, &mut [7; 31], || Subject::Page(7)).unwrap_err();
}

#[test]
fn an_older_dek_in_another_row_file_or_container_does_not_unwrap() {
    let (older, current) = (Dek::random().unwrap(), Dek::random().unwrap());
    let wrap = |first| {
        DekRow::wrap_older(
            &older,
            first..=first + 1,
            Algorithm::Aes128,
            &current,
            &ID,
            &mut SystemNonces,
        )
        .unwrap()
    };
    let row = wrap(1);
    assert!(row.unwrap_older(&older, &ID, &ID).is_err(), "another current DEK");
    assert!(row.unwrap_older(&current, &[8; 16], &ID).is_err(), "another file");
    assert!(row.unwrap_older(&current, &ID, &[8; 16]).is_err(), "of another file");
    assert!(DekRow { first_generation: 2, ..row.clone() }
        .unwrap_older(&current, &ID, &ID)
        .is_err());
    assert!(DekRow { commitment: [0; 32], ..row.clone() }
        .unwrap_older(&current, &ID, &ID)
        .is_err());
    let mut flipped = row.clone();
    if let Some(wrapped) = &mut flipped.wrapped {
        wrapped[20] ^= 1;
    }
    assert!(flipped.unwrap_older(&current, &ID, &ID).is_err());
    assert!(current_row(&current).unwrap_older(&current, &ID, &ID).is_err());
    assert_ne!(wrap(1).wrapped, row.wrapped, "a nonce of its own each time");
}
