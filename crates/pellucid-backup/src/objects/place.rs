//! Where in which store: a URL, and what the environment says of the store.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use pellucid_files::way::Way;
use rustix::fs::Mode;
use url::Url;

use super::{io_error, runtime};
use crate::job::Content;

/// Variables that stores are configured by, credentials among them.
const VARIABLES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

/// How long a small object may take to be put.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes of an object's name at most (S3, "Object key naming guidelines"; Google and Azure allow as many).
const MOST_NAME_BYTES: usize = 1024;
/// What a backup adds to the name at most: a random one, and `.probe`.
const ADDED_BYTES: usize = 1 + 32 + 6;
/// How stores call a bucket that there is not, and a name that is too long.
const NO_BUCKET: [&str; 3] =
    ["NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist"];
const TOO_LONG: [&str; 3] = ["KeyTooLong", "File name too long", "name too long"];

/// An object's name in a store.
#[derive(Debug, Clone)]
pub struct Place {
    pub store: Arc<dyn ObjectStore>,
    pub path: Path,
    /// For messages.
    pub url: String,
    /// The bucket, where the URL names one.
    bucket: Option<String>,
}

impl Place {
    /// From `s3://bucket/name`, `az://`, `gs://`, `https://`.
    ///
    /// # Errors
    /// `InvalidInput` for a URL that is none, names a secret, or a store that is not known.
    pub fn find(url: &str) -> io::Result<Self> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
        check_text(url).map_err(&invalid)?;
        let parsed = Url::parse(url).map_err(|error| invalid(error.to_string()))?;
        check_parts(&parsed).map_err(&invalid)?;
        check_endpoints(variables()).map_err(&invalid)?;
        let own = |name: &str| VARIABLES.iter().any(|prefix| name.starts_with(prefix));
        let options = variables()
            .filter(|(name, _)| own(name))
            .map(|(name, value)| (name.to_ascii_lowercase(), value));
        let parsed = if parsed.scheme() == "file" { file(&parsed)? } else { parsed };
        let (store, path) = object_store::parse_url_opts(&parsed, options).map_err(io_error)?;
        let bucket = parsed.host_str().filter(|_| is_bucket(&parsed)).map(str::to_owned);
        Ok(Self { store: Arc::from(store), path, url: url.to_owned(), bucket })
    }

    /// Whether the store is a directory of this machine.
    pub fn is_a_file(&self) -> bool {
        self.url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
    }

    /// Lets this process make files that nobody else may read, if the store is a directory: it makes them as the umask says,
    /// and media are for who makes them, as all others are.
    pub fn keep_to_oneself(&self) {
        if self.is_a_file() {
            rustix::process::umask(Mode::RWXG | Mode::RWXO);
        }
    }

    /// Refuses a name that no store would take with what a backup adds to it.
    ///
    /// # Errors
    /// `InvalidInput`, saying how long it is.
    pub fn check_length(&self) -> io::Result<()> {
        let bytes = self.path.as_ref().len();
        if self.bucket.is_none() || bytes + ADDED_BYTES <= MOST_NAME_BYTES {
            return Ok(());
        }
        let most = MOST_NAME_BYTES - ADDED_BYTES;
        let what = format!(
            "the name is too long: it has {bytes} bytes, and {most} are the most that leave room for what is added"
        );
        Err(io::Error::new(io::ErrorKind::InvalidInput, what))
    }

    /// An error of the store, in words about the bucket or the name where it is about them.
    pub fn tell(&self, error: object_store::Error) -> io::Error {
        let said = error.to_string();
        let told = io_error(error);
        let bucket = self.bucket.as_deref().unwrap_or_default();
        let what = match &told.kind() {
            _ if NO_BUCKET.iter().any(|code| said.contains(code)) => {
                format!("the store has no bucket `{bucket}`")
            }
            _ if TOO_LONG.iter().any(|code| said.contains(code)) => format!(
                "the name is too long for this store: it has {} bytes, and up to {ADDED_BYTES} are added",
                self.path.as_ref().len()
            ),
            io::ErrorKind::NotFound => "the store has no object of that name".to_owned(),
            // An answer to HEAD has no words.
            io::ErrorKind::Other if said.contains(" 400 Bad Request") => format!(
                "the store refuses the request; look at the names of bucket and object: {said}"
            ),
            _ => return told,
        };
        io::Error::new(told.kind(), what)
    }

    /// What it means that there is nothing of that name: the question has no words in its answer, and reading has.
    pub async fn why_nothing(&self) -> io::Error {
        match self.store.get(&self.path).await {
            Err(error) => self.tell(error),
            Ok(_) => io::Error::new(io::ErrorKind::NotFound, "it was not there a moment ago"),
        }
    }

    /// The same store, another name behind this one's.
    pub fn with_suffix(&self, suffix: &str) -> io::Result<Path> {
        Path::parse(format!("{}{suffix}", self.path))
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))
    }

    /// Whether there is something of that name.
    ///
    /// # Errors
    /// The store's.
    pub fn exists(&self) -> io::Result<bool> {
        match runtime()?.block_on(self.store.head(&self.path)) {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.tell(error)),
        }
    }

    /// What an object has in it; none if there is none.
    ///
    /// # Errors
    /// The store's.
    pub fn content(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let read = async { self.store.get(path).await?.bytes().await };
        match runtime()?.block_on(read) {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.tell(error)),
        }
    }

    /// The bytes of an object, `most` at most, and which content that is; none if there is none.
    ///
    /// # Errors
    /// `InvalidData` if it is larger; the store's.
    pub fn small(&self, most: u64) -> io::Result<Option<(Vec<u8>, Content)>> {
        let read = async {
            let got = match self.store.get(&self.path).await {
                Err(object_store::Error::NotFound { .. }) => return Ok(None),
                got => got.map_err(|error| self.tell(error))?,
            };
            if got.meta.size > most {
                let what = format!("it has {} bytes, and {most} are the most", got.meta.size);
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            let content =
                Content { tag: got.meta.e_tag.clone(), version: got.meta.version.clone() };
            let bytes = got.bytes().await.map_err(|error| self.tell(error))?;
            Ok(Some((bytes.to_vec(), content)))
        };
        runtime()?.block_on(read)
    }

    /// Puts bytes in the place of the content `over`, or where there is none.
    ///
    /// # Errors
    /// `AlreadyExists` if another content is there; `Unsupported` if the store cannot be told that; `TimedOut`; the store's.
    pub fn replace(&self, bytes: Vec<u8>, over: Option<&Content>) -> io::Result<Content> {
        self.keep_to_oneself();
        let mode = match over {
            None => PutMode::Create,
            Some(over) => PutMode::Update(UpdateVersion {
                e_tag: over.tag.clone(),
                version: over.version.clone(),
            }),
        };
        let options = PutOptions { mode, ..PutOptions::default() };
        let put = self.store.put_opts(&self.path, Bytes::from(bytes).into(), options);
        let done = runtime()?.block_on(async { tokio::time::timeout(PATIENCE, put).await });
        let late = |_| {
            let what = format!("the store has not taken it within {} s", PATIENCE.as_secs());
            io::Error::new(io::ErrorKind::TimedOut, what)
        };
        match done.map_err(late)? {
            Ok(put) => Ok(Content { tag: put.e_tag, version: put.version }),
            Err(error @ object_store::Error::Precondition { .. }) => {
                Err(io::Error::new(io::ErrorKind::AlreadyExists, error.to_string()))
            }
            Err(error) => Err(self.tell(error)),
        }
    }

    /// Creates an object; fails if there is one.
    ///
    /// # Errors
    /// `AlreadyExists`, or the store's.
    pub fn create(&self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        self.keep_to_oneself();
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = self.store.put_opts(path, Bytes::from(bytes).into(), options);
        runtime()?.block_on(put).map(|_| ()).map_err(|error| self.tell(error))
    }

    /// The same, given up after so long. The store may have it all the same.
    ///
    /// # Errors
    /// `AlreadyExists`, `TimedOut`, or the store's.
    pub fn create_within(&self, path: &Path, bytes: Vec<u8>, patience: Duration) -> io::Result<()> {
        self.keep_to_oneself();
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = self.store.put_opts(path, Bytes::from(bytes).into(), options);
        let done = runtime()?.block_on(async { tokio::time::timeout(patience, put).await });
        let late = |_| {
            let what = format!("the store has not taken it within {} s", patience.as_secs());
            io::Error::new(io::ErrorKind::TimedOut, what)
        };
        done.map_err(late)?.map(|_| ()).map_err(|error| self.tell(error))
    }

    /// Where objects with a name in common lie: a bucket, or a name that a slash follows.
    ///
    /// # Errors
    /// As [`Place::find`].
    pub fn of_many(url: &str) -> io::Result<Self> {
        let url = url.trim_end_matches('/');
        let probe = Self::find(&format!("{url}/x"))?;
        let above = probe.path.as_ref().strip_suffix('x').unwrap_or_default();
        let path = Path::from(above.trim_end_matches('/'));
        Ok(Self { path, url: url.to_owned(), ..probe })
    }

    /// The names of the objects below, behind a slash.
    ///
    /// # Errors
    /// The store's.
    pub fn list(&self) -> io::Result<Vec<String>> {
        let listed = self.store.list(Some(&self.path)).try_collect::<Vec<_>>();
        let found = runtime()?.block_on(listed).map_err(|error| self.tell(error))?;
        let above = match self.path.as_ref() {
            "" => String::new(),
            path => format!("{path}/"),
        };
        let behind =
            |meta: &ObjectMeta| Some(meta.location.as_ref().strip_prefix(&above)?.to_owned());
        Ok(found.iter().filter_map(behind).collect())
    }

    /// Removes an object; it is no error if there is none.
    ///
    /// # Errors
    /// The store's.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        match runtime()?.block_on(self.store.delete(path)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(io_error(error)),
        }
    }

    /// Whether the store heeds "only if there is none". One that does not would let a backup overwrite another.
    ///
    /// # Errors
    /// `Unsupported` if it does not.
    pub fn check_conditions(&self) -> io::Result<()> {
        let probe = self.with_suffix(&format!(".{}.probe", super::pointer::random_name()?))?;
        match self.create(&probe, b"first".to_vec()) {
            // A second try, because the answer to the first was lost: nobody else knows the name.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => created?,
        }
        let second = self.create(&probe, b"second".to_vec());
        // What is left of it is five bytes of nobody's.
        let _ = runtime()?.block_on(self.store.delete(&probe));
        match second {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
            Ok(()) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this store overwrites an object although it was told not to: backups there would \
                 not be safe from each other",
            )),
        }
    }
}

/// The URL of a file without the symbolic links on its way: the client follows each, and would open anything that has the name.
fn file(url: &Url) -> io::Result<Url> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    let path =
        url.to_file_path().map_err(|()| invalid("a file has a path from `/` on, and no host"))?;
    let way = Way::of(&path)?;
    match way.look() {
        Ok(found) if !found.is_file() => return Err(invalid("not a regular file")),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    Url::from_file_path(way.path()).map_err(|()| invalid("its path is no URL"))
}

/// What a parser of URLs would take out without a word, so that another object were named.
fn check_text(url: &str) -> Result<(), String> {
    match url.chars().find(|letter| letter.is_control()) {
        Some(letter) => Err(format!(
            "a URL has no control characters in it: `{}` is `%{:02X}` there",
            letter.escape_default(),
            u32::from(letter)
        )),
        None if turns_around(url) => Err(
            "`\\` would be taken for `/` there, and another file be named: in a name it is `%5C`"
                .to_owned(),
        ),
        None if steps_back(url) => {
            Err("a URL has neither `.` nor `..` between its slashes: it would be another object's"
                .to_owned())
        }
        None if url.trim() != url => {
            Err("a URL neither begins nor ends with a space: it is `%20` there".to_owned())
        }
        None => Ok(()),
    }
}

/// Whether a parser would take a step out, and that before it; also one that stands behind a slash that is written `%2F`.
fn steps_back(url: &str) -> bool {
    let path = url.split_once("://").map_or("", |(_, rest)| rest);
    let path = path.to_ascii_lowercase().replace("%2f", "/").replace("%2e", ".");
    path.split('/').skip(1).any(|step| step == "." || step == "..")
}

/// Whether a parser would turn a backslash around (WHATWG URL, "path state", of special schemes).
fn turns_around(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
    matches!(scheme.as_str(), "http" | "https" | "file") && url.contains('\\')
}

/// What the `%XX` of a text stand for. A `%` that begins none stands for itself.
fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let value = match (*byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => u8::try_from(high * 16 + low).ok(),
            _ => None,
        };
        out.push(value.unwrap_or(*byte));
        at += if value.is_some() { 3 } else { 1 };
    }
    out
}

/// Whether a bucket stands behind `://`.
fn is_bucket(url: &Url) -> bool {
    !matches!(url.scheme(), "http" | "https" | "file")
}

/// The object's name as the store has it: text, and words between slashes.
fn check_name(path: &str) -> Result<(), String> {
    let name = decoded(path);
    let Ok(name) = String::from_utf8(name) else {
        return Err(
            "an object's name is text in UTF-8, and what its `%XX` stand for is none".to_owned()
        );
    };
    if let Some(letter) = name.chars().find(|letter| letter.is_control()) {
        return Err(format!(
            "an object's name has no control characters in it, and `%{:02X}` stands for one",
            u32::from(letter)
        ));
    }
    if name.is_empty() || name.ends_with('/') {
        return Err("it names no object: it ends where the name should".to_owned());
    }
    if name.contains("//") {
        return Err(
            "it has two slashes on end, and an object's name has a word between them".to_owned()
        );
    }
    Ok(())
}

/// Refuses what belongs to no object's name. Nothing of it is repeated: it may be a secret.
fn check_parts(url: &Url) -> Result<(), String> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a URL has no credentials in it: they come from the environment".to_owned());
    }
    const SCHEMES: [&str; 11] =
        ["s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "http", "https", "file"];
    if !SCHEMES.contains(&url.scheme()) {
        return Err(format!(
            "`{}://` is no store that is known: `s3://`, `az://`, `gs://`, `https://` and `file://` are",
            url.scheme()
        ));
    }
    let host = url.host_str().unwrap_or_default();
    if url.scheme() == "http" {
        return Err("`http://` goes over the network without encryption: use `https://`, or `s3://` with `AWS_ENDPOINT` for a \
                    store of your own"
            .to_owned());
    }
    if url.scheme() == "file" && !matches!(host, "" | "localhost") {
        return Err("a file of this machine has three slashes: `file:///srv/app.bak`".to_owned());
    }
    if url.scheme() != "file" && host.is_empty() {
        return Err("it names no bucket: one stands behind `://`".to_owned());
    }
    let of_bucket = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if is_bucket(url) && !host.bytes().all(of_bucket) {
        return Err(
            "the name of a bucket has the letters a to z, digits, `-`, `.` and `_`".to_owned()
        );
    }
    check_name(url.path())?;
    if url.query().is_some() {
        return Err(
            "`?` begins a query, and an object has none: in its name it is `%3F`".to_owned()
        );
    }
    if url.fragment().is_some() {
        return Err(
            "`#` begins a fragment, and an object has none: in its name it is `%23`".to_owned()
        );
    }
    if is_bucket(url) && url.port().is_some() {
        let endpoint = match url.scheme() {
            "s3" | "s3a" => "AWS_ENDPOINT",
            "gs" => "GOOGLE_BASE_URL",
            _ => "AZURE_ENDPOINT",
        };
        return Err(format!(
            "a bucket has no port: behind `{}://` stand the bucket and the name, and `{endpoint}` says where the store is",
            url.scheme()
        ));
    }
    Ok(())
}

/// Refuses an address of a store that is none, which the client would take for its own defect, and one without encryption on
/// the way unless that is allowed.
fn check_endpoints(variables: impl Iterator<Item = (String, String)>) -> Result<(), String> {
    let all: BTreeMap<_, _> = variables.collect();
    for (name, value) in all.iter().filter(|(name, _)| name.contains("_ENDPOINT")) {
        let endpoint = Url::parse(value).map_err(|error| format!("`{name}`: {error}"))?;
        let prefix = VARIABLES.iter().find(|prefix| name.starts_with(*prefix));
        let (Some(prefix), "http") = (prefix, endpoint.scheme()) else { continue };
        let switch = format!("{prefix}ALLOW_HTTP");
        if !all.get(&switch).is_some_and(|value| is_yes(value)) {
            return Err(format!(
                "`{name}` begins with http, not https: whoever is on the way sees names and sizes, and can answer for the \
                 store; backups of encrypted databases are sealed all the same. `{switch}=true` allows it"
            ));
        }
    }
    Ok(())
}

/// As the client reads its switches.
fn is_yes(value: &str) -> bool {
    ["1", "true", "on", "yes", "y"].iter().any(|yes| value.eq_ignore_ascii_case(yes))
}

/// The environment, without what is no text: nothing of a store's is called so.
fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A killed backup may leave whatever it has created, the probe of a store among it.
    #[test]
    fn what_is_created_in_a_directory_is_for_its_maker() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let url = format!("file://{}", directory.path().join("app.bak").display());
        let place = Place::find(&url).unwrap();
        // As most accounts have it. Another test of this process may narrow it as well, and none widens it.
        rustix::process::umask(Mode::WGRP | Mode::WOTH);
        let probe = place.with_suffix(".1.probe").unwrap();
        place.create(&probe, b"first".to_vec()).unwrap();
        let made = directory.path().join("app.bak.1.probe").metadata().unwrap();
        assert_eq!(made.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_name_that_would_be_another_one_is_refused_for_what_it_is() {
        for (url, says) in [
            ("s3://bucket/what?.bak", "`%3F`"),
            ("s3://bucket/what#1.bak", "`%23`"),
            ("s3://store:9000/bucket/a.bak", "AWS_ENDPOINT"),
            ("gs://store:443/bucket/a.bak", "GOOGLE_BASE_URL"),
            ("s3://bucket/a\nb.bak", "`%0A`"),
            ("s3://bucket/a\tb.bak", "`%09`"),
            ("s3://bucket/a.bak\n", "`%0A`"),
            ("s3://bucket/a.bak ", "`%20`"),
            ("s3://me@bucket/a.bak", "credentials"),
            ("s3://bucket", "no object"),
            ("s3://bucket/", "no object"),
            ("s3://bucket/folder/", "no object"),
            ("s3:///a.bak", "no bucket"),
            ("s3://bucket/a//b.bak", "two slashes"),
            ("s3://bucket/../a.bak", "`..`"),
            ("s3://bucket/a/%2E%2e/b.bak", "`..`"),
            ("s3://bucket/./a.bak", "`..`"),
            ("s3://bucket/a%2F..%2Fb.bak", "`..`"),
            ("s3://bucket/a%2f%2e%2E", "`..`"),
            ("s3://bucket/a%2F", "no object"),
            ("s3://bucket/%2Fa.bak", "two slashes"),
            ("s3://bucket/a%2F%2fb.bak", "two slashes"),
            ("s3://bucket/a%0Ab", "`%0A`"),
            ("s3://bucket/a%00", "`%00`"),
            ("s3://bucket/a%C2%9B", "`%9B`"),
            ("s3://bucket/caf%E9.bak", "UTF-8"),
            ("s3://b\u{fc}cket/a.bak", "name of a bucket"),
            ("s3://[::1]/a.bak", "name of a bucket"),
            ("file:///srv\\..\\a.bak", "`%5C`"),
            ("https://host/a\\b", "`%5C`"),
            ("file://srv/a.bak", "three slashes"),
            ("http://host/a.bak", "`https://`"),
            ("s4://bucket/a.bak", "no store that is known"),
        ] {
            let refused = Place::find(url).unwrap_err().to_string();
            assert!(refused.contains(says), "{url}: {refused}");
            assert_eq!(refused.contains("credentials"), says == "credentials", "{url}: {refused}");
        }
    }

    #[test]
    fn a_file_is_a_regular_one_and_named_without_links() {
        let place = tempfile::tempdir().unwrap();
        let whole = |name: &str| place.path().join(name);
        let find = |name: &str| Place::find(&format!("file://{}", whole(name).display()));
        std::fs::create_dir(whole("folder")).unwrap();
        std::os::unix::fs::symlink("folder", whole("link")).unwrap();
        let found = find("link/new.bak").unwrap();
        let wanted = whole("folder/new.bak").canonicalize().unwrap_or(whole("folder/new.bak"));
        assert_eq!(format!("/{}", found.path), wanted.display().to_string());
        assert!(find("folder").is_err(), "a directory");
        std::os::unix::fs::symlink("/dev/zero", whole("zeros")).unwrap();
        assert!(find("zeros").is_err(), "a device");
        // Made by this process: one that it forked would have the locks that other tests of it hold.
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(rustix::fs::CWD, whole("fifo"), kind, mode, 0).unwrap();
        assert!(find("fifo").is_err(), "a FIFO");
        // Another user's link to a file that is not that user's.
        std::fs::write(whole("mine.bak"), "{}").unwrap();
        std::os::unix::fs::symlink("mine.bak", whole("theirs")).unwrap();
        assert!(find("theirs").is_ok(), "the caller's own");
        if std::os::unix::fs::lchown(whole("theirs"), Some(12345), Some(12345)).is_ok() {
            let refused = find("theirs").unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{refused}");
        }
    }

    #[test]
    fn a_store_without_encryption_on_the_way_needs_its_switch() {
        let told = |pairs: &[(&str, &str)]| {
            let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            check_endpoints(pairs.iter().map(own))
        };
        let http = ("AWS_ENDPOINT", "http://minio:9000");
        assert!(told(&[http]).unwrap_err().contains("`AWS_ALLOW_HTTP=true`"));
        assert!(told(&[http, ("AZURE_ALLOW_HTTP", "true")]).is_err());
        assert!(told(&[http, ("AWS_ALLOW_HTTP", "false")]).is_err());
        assert_eq!(told(&[http, ("AWS_ALLOW_HTTP", "true")]), Ok(()));
        assert_eq!(told(&[("AWS_ENDPOINT", "https://minio:9000")]), Ok(()));
        assert!(told(&[("AWS_ENDPOINT_URL_S3", "http://minio")]).is_err());
        assert!(told(&[("AZURE_ENDPOINT", "no address")]).unwrap_err().contains("AZURE_ENDPOINT"));
    }

    #[test]
    fn a_url_with_a_secret_in_it_is_refused_and_not_repeated() {
        for url in ["s3://key:secret@bucket/x", "https://host/x?sig=secret", "not a url", "x://y/z"]
        {
            let refused = Place::find(url).unwrap_err();
            assert!(!refused.to_string().contains("secret"), "{refused}");
        }
    }
}
