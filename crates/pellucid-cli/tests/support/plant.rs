//! Headers that say, authentically, what a test wants them to say: written with the keys of the place's own keyring.

use pellucid::certificate::Certificate;
use pellucid::header::{Header, COPY_OFFSETS};
use pellucid::keys::HeaderKey;
use pellucid::protector::KeySource;
use pellucid::scan::{Progress, PROGRESS_BYTES, PROGRESS_OFFSET};
use pellucid_keyring::Keyring;

use super::{edit, header, Place};

struct Keys(Keyring);

impl KeySource for Keys {
    fn certificate(&self, thumbprint: &[u8; 32]) -> pellucid::Result<Option<Certificate>> {
        self.0.certificate_by_thumbprint(thumbprint)
    }
}

/// Writes the header that `change` makes of the present one, and puts the progress of a scan back by `earlier` seconds.
pub fn rewrite_header(place: &Place, name: &str, earlier: u64, change: impl FnOnce(&mut Header)) {
    let path = place.path(name);
    let (mut header, key) = header_and_key(place, name);
    change(&mut header);
    let copy = header.encode(&key).unwrap();
    edit(&path, |bytes| {
        for at in COPY_OFFSETS {
            bytes[at as usize..][..copy.len()].copy_from_slice(&copy[..]);
        }
        let at = PROGRESS_OFFSET as usize;
        let progress: [u8; PROGRESS_BYTES] = bytes[at..][..PROGRESS_BYTES].try_into().unwrap();
        if let Some(progress) = Progress::parse(&progress) {
            let progress = Progress { at: progress.at - earlier, ..progress };
            bytes[at..][..PROGRESS_BYTES].copy_from_slice(&progress.encode(&key));
        }
    });
}

/// Keeps in the file that the scan of its present generation has looked at so many pages.
pub fn put_progress(place: &Place, name: &str, done: u32, pages: u32) {
    let path = place.path(name);
    let (header, key) = header_and_key(place, name);
    let progress = Progress { generation: header.generation, done, pages, at: header.created };
    edit(&path, |bytes| {
        bytes[PROGRESS_OFFSET as usize..][..PROGRESS_BYTES].copy_from_slice(&progress.encode(&key));
    });
}

pub fn header_and_key(place: &Place, name: &str) -> (Header, HeaderKey) {
    let header = header(&place.path(name));
    let dek = header.unwrap(&Keys(Keyring::open(&place.path("keys")).unwrap())).unwrap();
    let key = HeaderKey::derive(&dek, &header.file_id).unwrap();
    (header, key)
}
