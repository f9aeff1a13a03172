//! Backup media as bytes: what is in a media family, from its first byte to the end of its last backup set.
//!
//! Layout: docs/format.md, "Backup media". A media family is one file (or object): a media header,
//! then backup sets one after the other, each a set header, chunks, and a manifest that commits it.
//! A set with several families (stripes) has its chunks spread over them. Does no I/O; the crate
//! `pellucid-backup` writes and reads media.

mod block;
mod chunk;
mod commits;
mod compress;
mod header;
mod index;
mod keys;
mod manifest;
mod padding;
mod set_header;
mod signature;
mod tails;
mod version;

pub use block::{ChainPlace, LogFacts, Version2, BLOCK_BYTES};
pub use chunk::{
    ChunkKind, ChunkPrefix, Stored, CHUNK_BYTES, MOST_CHUNK_BYTES, PREFIX_BYTES,
    RESERVED_KINDS as RESERVED_CHUNK_KINDS,
};
pub(crate) use commits::is_mark;
pub use commits::{check_commits, LogCommit, MOST_MARK_BYTES, MOST_MARK_CHARACTERS};
pub use compress::{decompress, Compressor};
pub(crate) use header::is_readable;
pub use header::{MediaHeader, MEDIA_HEADER_BYTES};
pub use index::{page_hash, Entry, Index, ENTRY_BYTES, PAGE_HASH_BYTES};
pub use keys::SetKeys;
pub use manifest::{FamilyEnd, Manifest, Root, END_BYTES as MANIFEST_END_BYTES};
pub use padding::padding_of;
pub use set_header::{
    Compression, Description, Kind, ServerFacts, SetHeader, MAGIC as SET_MAGIC,
    MOST_SET_HEADER_BYTES,
};
pub use signature::{Signature, Signing, MOST_SIGNATURE_BYTES, RESERVED_SIGNATURE};
pub use tails::{cut as cut_tails, lay as lay_tails, VERSION_BYTES};
pub use version::MediaVersion;

/// The most media families (stripes) of a media set.
pub const MOST_FAMILIES: u16 = 64;
/// The most mirrors, the first one included.
pub const MOST_MIRRORS: u8 = 4;
