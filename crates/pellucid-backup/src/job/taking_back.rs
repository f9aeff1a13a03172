//! How a set that was appended is taken back, so that a kill in between leaves no media that look as if somebody had cut them.

use std::fs::File;
use std::os::unix::fs::FileExt;

use pellucid::media::{Manifest, MediaVersion, MANIFEST_END_BYTES};

/// Takes a set back that was appended, which gives a full disk its room back: each file is cut to its length of before.
///
/// A set counts as long as one family has its manifest, if all have the rest. So all of them lose the manifest first, with
/// their last byte, and that is on disk before one of them loses more: wherever this is killed, or the machine stops, the set
/// is whole or was interrupted, and no file looks as if somebody had cut it. A file that got the name meanwhile is not
/// touched. `step` is called after each change.
pub fn take_back_appended(
    appended: &[(File, u64)],
    version: MediaVersion,
    families: usize,
    step: &mut dyn FnMut(),
) {
    for (file, before) in appended {
        let Some(bytes) = bytes_with_manifest(file, version, families) else { continue };
        if bytes > *before && file.set_len(bytes - 1).is_ok() {
            step();
        }
    }
    for (file, _) in appended {
        let _ = file.sync_all();
    }
    for (file, before) in appended {
        let _ = file.set_len(*before);
        step();
    }
}

/// The length of a file that ends with a whole manifest.
fn bytes_with_manifest(file: &File, version: MediaVersion, families: usize) -> Option<u64> {
    let bytes = file.metadata().ok()?.len();
    let length = match version {
        MediaVersion::One => Manifest::bytes_of(families),
        MediaVersion::Two => {
            let mut end = [0; MANIFEST_END_BYTES];
            file.read_exact_at(&mut end, bytes.checked_sub(MANIFEST_END_BYTES as u64)?).ok()?;
            Manifest::length_by_end(&end)?
        }
    };
    // What the end of an interrupted set says is anything.
    let from = bytes.checked_sub(length as u64)?;
    let mut manifest = vec![0; length];
    file.read_exact_at(&mut manifest, from).ok()?;
    let begins = manifest.first_chunk().is_some_and(|start| Manifest::length(start).is_ok());
    (begins && Manifest::parse(&manifest).is_ok()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use pellucid::media::{MediaHeader, SetHeader, Version2};
    use pellucid::Result;
    use pellucid_files::paths::look;
    use pellucid_files::regular;

    use super::*;
    use crate::job::chain::tests::header;
    use crate::job::media::open_media_to_write;
    use crate::set::{write_set, FamilyTarget, FileSink, NewSet, Options, PageSource};

    /// Pages of zeros.
    struct Zeros;

    impl PageSource for Zeros {
        fn read(&mut self, _: u32, into: &mut [u8]) -> Result<()> {
            into.fill(0);
            Ok(())
        }
    }

    fn set(version: MediaVersion, position: u32) -> SetHeader {
        SetHeader {
            version2: (version == MediaVersion::Two).then(Version2::default),
            set: [position as u8 + 1; 16],
            families: 3,
            position,
            page_size: 512,
            pages: 9,
            ..header(false, false)
        }
    }

    /// Writes a set behind what the files have.
    fn append(paths: &[PathBuf], version: MediaVersion, position: u32) {
        let sinks = paths.iter().map(|path| {
            let mut sink = FileSink::open(path).unwrap();
            sink.go_on_at(std::fs::metadata(path).unwrap().len()).unwrap();
            FamilyTarget::new(vec![Box::new(sink)])
        });
        let header = set(version, position);
        let set = NewSet { header, description: Default::default(), keys: None, signer: None };
        let options = Options { workers: 1, level: 1, continue_after_error: false };
        let mut sinks: Vec<_> = sinks.collect();
        write_set(&mut Zeros, &set, None, &mut sinks, &options, &mut |_, _| ()).unwrap();
    }

    #[test]
    fn a_set_that_is_taken_back_is_whole_or_interrupted_at_each_step() {
        for version in [MediaVersion::One, MediaVersion::Two] {
            let directory = tempfile::tempdir().unwrap();
            let paths: Vec<_> =
                (1..=3).map(|at| directory.path().join(format!("{at}.bak"))).collect();
            for (family, path) in (1..).zip(&paths) {
                let single = MediaHeader::single([1; 16], false, false, 1);
                let header = MediaHeader { version, families: 3, family, ..single };
                std::fs::write(path, header.encode().unwrap()).unwrap();
            }
            append(&paths, version, 1);
            let before: Vec<_> = paths.iter().map(|path| look(path).unwrap().len()).collect();
            append(&paths, version, 2);
            let whole: Vec<_> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
            // None, one or all of the files were reached by the manifest when the backup failed.
            for reached in 0..=3 {
                for (at, (path, whole)) in paths.iter().zip(&whole).enumerate() {
                    let bytes = whole.len() - if at < reached { 0 } else { 100 };
                    std::fs::write(path, &whole[..bytes]).unwrap();
                }
                let open = || open_media_to_write(&paths).unwrap().last().unwrap();
                let files = paths.iter().map(|path| regular::open_to_write(path).unwrap());
                let files: Vec<_> = files.zip(before.iter().copied()).collect();
                let mut found = vec![open()];
                take_back_appended(&files, version, 3, &mut || found.push(open()));
                assert_eq!(found.first(), Some(if reached == 0 { &1 } else { &2 }));
                assert!(found.is_sorted_by(|one, next| one >= next), "{reached}: {found:?}");
                assert_eq!(found.last(), Some(&1));
                let now: Vec<_> = paths.iter().map(|path| look(path).unwrap().len()).collect();
                assert_eq!(now, before);
            }
        }
    }
}
