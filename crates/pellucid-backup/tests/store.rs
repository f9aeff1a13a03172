//! Goal: a family of media goes into an object whole or not at all, never over another, and comes back byte for byte.
//!
//! Method: the crate's own store of files, through a URL; then the writer and reader of the core over it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use pellucid::media::{MediaHeader, MEDIA_HEADER_BYTES};
use pellucid_backup::job::{Created, Store};
use pellucid_backup::objects::ObjectStores;
use pellucid_backup::restore::Family;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn url(&self, name: &str) -> String {
        format!("file://{}/{name}", self.0.path().display())
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// A media header, then bytes that are no set.
fn content(bytes: usize) -> Vec<u8> {
    let header = MediaHeader::single([7; 16], true, true, 1);
    let mut content = header.encode().unwrap();
    content.extend((0..bytes).map(|at| (at * 7 / 3) as u8));
    content
}

fn write(created: &mut Created, content: &[u8]) {
    for piece in content.chunks(700_001) {
        created.sink.write(piece).unwrap();
    }
    created.sink.sync().unwrap();
}

fn finish(created: &mut Created) -> std::io::Result<()> {
    created.commit.complete()?;
    created.commit.give_name()
}

#[test]
fn what_is_complete_has_no_name_yet_and_a_name_can_be_taken_back() {
    let place = Place::new();
    let url = place.url("app.bak");
    let write_whole = || {
        let mut created = ObjectStores.create(&url, 0).unwrap();
        write(&mut created, &content(9 << 20));
        created.commit.complete().unwrap();
        assert!(!ObjectStores.exists(&url).unwrap());
        created
    };
    drop(write_whole());
    assert_eq!(place.files(), Vec::<String>::new(), "given up before it had a name");
    let mut created = write_whole();
    created.commit.give_name().unwrap();
    assert!(ObjectStores.open(&url).is_ok());
    created.commit.take_back().unwrap();
    assert_eq!(place.files(), Vec::<String>::new());
    // The name of another one is left alone.
    let (mut one, mut two) = (write_whole(), write_whole());
    two.commit.give_name().unwrap();
    assert!(one.commit.give_name().is_err());
    one.commit.take_back().unwrap();
    drop(one);
    assert!(ObjectStores.open(&url).is_ok());
    assert_eq!(place.files().len(), 2);
}

#[test]
fn nothing_is_begun_of_one_that_is_too_long_for_an_object() {
    let place = Place::new();
    let refused = ObjectStores.create(&place.url("app.bak"), 6 << 40).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
    assert_eq!(place.files(), Vec::<String>::new());
}

#[test]
fn what_was_written_is_read_at_any_place_and_is_there_only_when_it_is_whole() {
    let place = Place::new();
    let url = place.url("app.bak");
    let content = content(40 << 20);
    let mut created = ObjectStores.create(&url, content.len() as u64).unwrap();
    assert_eq!(created.sink.name().to_str(), Some(url.as_str()));
    write(&mut created, &content);
    assert!(!ObjectStores.exists(&url).unwrap() && ObjectStores.open(&url).is_err());
    finish(&mut created).unwrap();
    assert!(ObjectStores.exists(&url).unwrap());
    let source = ObjectStores.open(&url).unwrap();
    assert_eq!(source.bytes().unwrap(), content.len() as u64);
    for (at, bytes) in
        [(0, 48), (4096, 24), (9 << 20, 3 << 20), (content.len() - 10, 10), (5, 70_000)]
    {
        let mut read = vec![0; bytes];
        assert_eq!(source.read_at(&mut read, at as u64).unwrap(), bytes);
        assert_eq!(read, content[at..at + bytes], "{bytes} bytes at {at}");
    }
    let mut beyond = [0; 20];
    assert_eq!(source.read_at(&mut beyond, content.len() as u64 - 5).unwrap(), 5);
    assert_eq!(source.read_at(&mut beyond, content.len() as u64 + 5).unwrap(), 0);
    let family = Family::open(source).unwrap();
    assert_eq!(family.header.media_set, [7; 16]);
}

#[test]
fn nothing_is_left_of_one_that_was_given_up() {
    let place = Place::new();
    let mut created = ObjectStores.create(&place.url("app.bak"), 0).unwrap();
    write(&mut created, &content(20 << 20));
    drop(created);
    assert_eq!(place.files(), Vec::<String>::new());
}

#[test]
fn two_writers_race_for_a_name_and_one_of_them_has_it() {
    let place = Place::new();
    let url = place.url("app.bak");
    let (first, second) = (content(1000), content(2000));
    let mut one = ObjectStores.create(&url, 0).unwrap();
    let mut two = ObjectStores.create(&url, 0).unwrap();
    write(&mut one, &first);
    write(&mut two, &second);
    finish(&mut two).unwrap();
    let refused = finish(&mut one).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::AlreadyExists);
    let source = ObjectStores.open(&url).unwrap();
    assert_eq!(source.bytes().unwrap(), second.len() as u64);
    assert_eq!(
        place.files().len(),
        2,
        "the name, and the bytes of the one that won: {:?}",
        place.files()
    );
}

#[test]
fn an_object_that_is_media_itself_is_read_too_and_anything_else_is_named() {
    let place = Place::new();
    let content = content(5000);
    std::fs::write(place.0.path().join("copied.bak"), &content).unwrap();
    let source = ObjectStores.open(&place.url("copied.bak")).unwrap();
    let mut read = vec![0; MEDIA_HEADER_BYTES];
    source.read_at(&mut read, 0).unwrap();
    assert_eq!(read, content[..MEDIA_HEADER_BYTES]);
    std::fs::write(place.0.path().join("text"), "somebody's notes").unwrap();
    let told = ObjectStores.open(&place.url("text")).err().unwrap();
    assert!(told.to_string().contains("no backup of Pellucid's"), "{told}");
}
