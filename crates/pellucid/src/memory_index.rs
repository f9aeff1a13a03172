//! The wal-index in the machine's memory: the name of the object that has it, the object's head, and the token in `-shm`.
//!
//! Layout: docs/format.md, "Wal-index in memory". Nothing here is on a disk longer than connections are open.

use crate::hash::Sha256;

/// Bytes of a token.
pub const TOKEN_BYTES: usize = 16;
/// What one opening of a database has drawn: it is in the object and in the first region of `-shm`.
pub type Token = [u8; TOKEN_BYTES];

/// Where the token stands in `-shm`: behind the bytes that SQLite locks and those that it keeps when it cuts the file.
pub const RECORD_AT: u64 = 136;
/// Bytes of the record: a magic and the token.
pub const RECORD_BYTES: usize = MAGIC.len() + TOKEN_BYTES;
/// Bytes of the object's head.
pub const HEAD_BYTES: usize = 72;
/// Where the first region of the wal-index begins in the object: a multiple of every page size.
pub const REGIONS_AT: u64 = 64 * 1024;

const MAGIC: &[u8; 8] = b"PELINDEX";
const PURPOSE: &[u8] = b"pellucid/2 index";
const PREFIX: &str = "pellucid-index-";

/// A file of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The device that it lies on (`st_dev`).
    pub device: u64,
    /// Its number there (`st_ino`).
    pub inode: u64,
}

/// The name of the object of a database.
pub fn object_name(database: Place, boot: &[u8; 16]) -> String {
    let mut hash = Sha256::new();
    hash.update(PURPOSE);
    hash.update(&database.device.to_be_bytes());
    hash.update(&database.inode.to_be_bytes());
    hash.update(boot);
    let digits: String = hash.finish().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}{digits}")
}

/// What stands in `-shm`.
pub fn record(token: &Token) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[..MAGIC.len()].copy_from_slice(MAGIC);
    record[MAGIC.len()..].copy_from_slice(token);
    record
}

/// The token of a record. `None` if nobody has written one since SQLite cut the file.
pub fn token_of(record: &[u8; RECORD_BYTES]) -> Option<Token> {
    let (magic, rest) = record.split_at(MAGIC.len());
    let token: Token = rest.try_into().ok()?;
    (magic == MAGIC && token != [0; TOKEN_BYTES]).then_some(token)
}

/// What the object says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The token, as it stands in `-shm`.
    pub token: Token,
    /// The start of the machine in which it was made.
    pub boot: [u8; 16],
    /// The database.
    pub database: Place,
    /// The file `-shm` whose locks belong to it.
    pub index: Place,
}

impl Head {
    /// The head's bytes.
    pub fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut out = [0; HEAD_BYTES];
        out[..8].copy_from_slice(MAGIC);
        out[8..24].copy_from_slice(&self.token);
        out[24..40].copy_from_slice(&self.boot);
        let numbers =
            [self.database.device, self.database.inode, self.index.device, self.index.inode];
        for (number, out) in numbers.iter().zip(out[40..].chunks_exact_mut(8)) {
            out.copy_from_slice(&number.to_be_bytes());
        }
        out
    }

    /// Reads a head. `None` if it is none.
    pub fn parse(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[40 + 8 * at..48 + 8 * at]);
            u64::from_be_bytes(number)
        };
        let mut head = Self {
            token: [0; TOKEN_BYTES],
            boot: [0; 16],
            database: Place { device: number(0), inode: number(1) },
            index: Place { device: number(2), inode: number(3) },
        };
        head.token.copy_from_slice(&bytes[8..24]);
        head.boot.copy_from_slice(&bytes[24..40]);
        (bytes[..8] == *MAGIC).then_some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_record_read_back() {
        let head = Head {
            token: [1; 16],
            boot: [2; 16],
            database: Place { device: 3, inode: 4 },
            index: Place { device: 5, inode: 6 },
        };
        let mut bytes = head.encode();
        assert_eq!(Head::parse(&bytes), Some(head));
        bytes[0] ^= 1;
        assert_eq!(Head::parse(&bytes), None);
        assert_eq!(token_of(&record(&[7; 16])), Some([7; 16]));
        for blank in [[0; RECORD_BYTES], record(&[0; 16])] {
            assert_eq!(token_of(&blank), None);
        }
    }

    #[test]
    fn each_part_of_the_name_counts() {
        let place = Place { device: 1, inode: 2 };
        let name = object_name(place, &[3; 16]);
        assert_eq!(name.len(), PREFIX.len() + 64);
        let others = [
            object_name(Place { device: 2, inode: 1 }, &[3; 16]),
            object_name(Place { device: 1, inode: 3 }, &[3; 16]),
            object_name(place, &[4; 16]),
        ];
        assert!(others.iter().all(|other| *other != name));
    }
}
