//! What was recorded below the VFS, in order.

use std::collections::{BTreeMap, BTreeSet};

pub type FileId = usize;

/// The directory that a name lies in; that which is watched has no name.
pub fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// One thing that happened below the VFS, or that the application was told.
#[derive(Debug, Clone)]
pub enum Event {
    Create {
        name: String,
        file: FileId,
    },
    Write {
        file: FileId,
        offset: u64,
        bytes: Vec<u8>,
    },
    Truncate {
        file: FileId,
        size: u64,
    },
    Sync {
        file: FileId,
    },
    Unlink {
        name: String,
    },
    /// In one step: whatever had the other name is gone.
    Rename {
        from: String,
        to: String,
    },
    MakeFolder {
        name: String,
    },
    RemoveFolder {
        name: String,
    },
    /// Of the directory that is watched (no name), or of one in it.
    SyncDirectory {
        folder: String,
    },
    /// The application begins the commit of this number.
    Begun(usize),
    /// Its COMMIT returned.
    Acknowledged(usize),
}

/// Everything since the watch began.
#[derive(Debug, Default, Clone)]
pub struct Trace {
    /// The files there were, all of them durable.
    pub base: BTreeMap<String, Vec<u8>>,
    /// The directories there were in it, durable too.
    pub folders: BTreeSet<String>,
    /// The name each file was first seen under, or was renamed to; those of `base` come first, in its order.
    pub files: Vec<String>,
    pub events: Vec<Event>,
}

impl Trace {
    /// Prints events.
    pub fn explain(&self, from: usize, to: usize) {
        for (number, event) in self.events.iter().enumerate().take(to).skip(from) {
            let name = |file: &FileId| &self.files[*file];
            match event {
                Event::Write { file, offset, bytes } => {
                    println!("{number}: write {} {offset}+{}", name(file), bytes.len());
                }
                Event::Truncate { file, size } => {
                    println!("{number}: cut {} to {size}", name(file));
                }
                Event::Sync { file } => println!("{number}: sync {}", name(file)),
                other => println!("{number}: {other:?}"),
            }
        }
    }

    /// The same as it was after event `at`.
    pub fn up_to(&self, at: usize) -> Self {
        Self {
            base: self.base.clone(),
            folders: self.folders.clone(),
            files: self.files.clone(),
            events: self.events[..=at].to_vec(),
        }
    }

    /// What came next, in a record that began where this one ends.
    pub fn and_then(mut self, next: &Self) -> Self {
        let mut names: BTreeMap<&str, FileId> = BTreeMap::new();
        for (file, name) in self.base.keys().enumerate() {
            names.insert(name, file);
        }
        for event in &self.events {
            match event {
                Event::Create { name, file } => drop(names.insert(name, *file)),
                Event::Unlink { name } => drop(names.remove(name.as_str())),
                Event::Rename { from, to } => {
                    if let Some(file) = names.remove(from.as_str()) {
                        names.insert(to, file);
                    }
                }
                _ => {}
            }
        }
        let began_with: Vec<&String> = next.base.keys().collect();
        // The files of the later record by their numbers here: those it began with, then new ones.
        let known = next.base.len();
        let first_new = self.files.len();
        let number: Vec<FileId> = (0..next.files.len())
            .map(|file| match file < known {
                true => names[began_with[file].as_str()],
                false => first_new + file - known,
            })
            .collect();
        let renumbered = next.events.iter().cloned().map(|event| match event {
            Event::Create { name, file } => Event::Create { name, file: number[file] },
            Event::Write { file, offset, bytes } => {
                Event::Write { file: number[file], offset, bytes }
            }
            Event::Truncate { file, size } => Event::Truncate { file: number[file], size },
            Event::Sync { file } => Event::Sync { file: number[file] },
            event => event,
        });
        let renumbered: Vec<Event> = renumbered.collect();
        self.files.extend_from_slice(&next.files[known..]);
        self.events.extend(renumbered);
        self
    }
}
