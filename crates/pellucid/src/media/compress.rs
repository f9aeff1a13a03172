//! Compression of one chunk. Each chunk is a frame of its own, so that all can be unpacked at once.

use super::chunk::Stored;
use super::set_header::Compression;
use crate::error::{Error, Result, Subject};

/// The fraction by which compression has to make a chunk smaller, else it is stored as it is: a
/// thirty-second.
const LEAST_GAIN: usize = 32;

/// A compressor of chunks. It keeps its tables from one chunk to the next.
pub struct Compressor(Inner);

enum Inner {
    None,
    Zstd(zstd::bulk::Compressor<'static>),
    Lz4,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Compressor(..)")
    }
}

impl Compressor {
    /// Makes a compressor for `compression`. Only Zstandard has levels.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a level that it does not have.
    pub fn new(compression: Compression, level: i32) -> Result<Self> {
        Ok(Self(match compression {
            Compression::None => Inner::None,
            Compression::Lz4 => Inner::Lz4,
            Compression::Zstd => {
                if !zstd::compression_level_range().contains(&level) {
                    return Err(Error::misuse(
                        Subject::Option("compression level".into()),
                        format!("zstd has no level {level}"),
                    ));
                }
                let misuse = |error: std::io::Error| {
                    Error::misuse(Subject::Option("compression level".into()), error.to_string())
                };
                Inner::Zstd(zstd::bulk::Compressor::new(level).map_err(misuse)?)
            }
        }))
    }

    /// Compresses `content` into `out`, which it clears first.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the library refuses.
    pub fn compress(&mut self, content: &[u8], out: &mut Vec<u8>) -> Result<Stored> {
        out.clear();
        let refused = |what: String| Error::misuse(Subject::Option("compression".into()), what);
        let stored = match &mut self.0 {
            Inner::None => Stored::Raw,
            Inner::Zstd(compressor) => {
                out.reserve(zstd::zstd_safe::compress_bound(content.len()));
                compressor.compress_to_buffer(content, out).map_err(|e| refused(e.to_string()))?;
                Stored::Zstd
            }
            Inner::Lz4 => {
                out.resize(lz4_flex::block::get_maximum_output_size(content.len()), 0);
                let bytes = lz4_flex::block::compress_into(content, out)
                    .map_err(|error| refused(error.to_string()))?;
                out.truncate(bytes);
                Stored::Lz4
            }
        };
        if stored == Stored::Raw || out.len() + content.len() / LEAST_GAIN > content.len() {
            out.clear();
            out.extend_from_slice(content);
            return Ok(Stored::Raw);
        }
        Ok(stored)
    }
}

/// Unpacks `packed` into `content`, which has the exact length of the result.
///
/// # Errors
/// [`Error::Corrupt`] about `subject` if it cannot be unpacked, or to another length.
pub fn decompress(
    stored: Stored,
    packed: &[u8],
    content: &mut Vec<u8>,
    bytes: usize,
    subject: Subject,
) -> Result<()> {
    content.clear();
    content.reserve(bytes);
    let unpacked = match stored {
        Stored::Raw => {
            content.extend_from_slice(packed);
            Some(())
        }
        Stored::Zstd => {
            // The buffer limits the length, whatever the frame says.
            let mut room = vec![0; bytes];
            let unpacked = zstd::bulk::decompress_to_buffer(packed, &mut room[..]).ok();
            unpacked.map(|bytes| content.extend_from_slice(&room[..bytes]))
        }
        Stored::Lz4 => {
            content.resize(bytes, 0);
            let unpacked = lz4_flex::block::decompress_into(packed, content).ok();
            unpacked.map(|bytes| content.truncate(bytes))
        }
    };
    if unpacked.is_some() && content.len() == bytes {
        return Ok(());
    }
    content.clear();
    Err(Error::corrupt(subject, "it cannot be decompressed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Compression; 3] = [Compression::None, Compression::Zstd, Compression::Lz4];

    #[test]
    fn what_is_compressed_comes_back_and_noise_is_stored_as_it_is() {
        let mut noise = vec![0; 70_000];
        crate::secret::fill_random(&mut noise).unwrap();
        let text = b"the same again and ".repeat(4000);
        for compression in ALL {
            let mut compressor = Compressor::new(compression, 1).unwrap();
            let (mut packed, mut back) = (Vec::new(), Vec::new());
            for content in [&noise[..], &text[..], &[]] {
                let stored = compressor.compress(content, &mut packed).unwrap();
                let small = content.len() == text.len() && compression != Compression::None;
                assert_eq!(stored != Stored::Raw, small, "{compression:?}");
                assert!(packed.len() <= content.len());
                decompress(stored, &packed, &mut back, content.len(), Subject::Index).unwrap();
                assert_eq!(back, content);
            }
        }
    }

    #[test]
    fn a_frame_that_would_be_longer_than_its_prefix_says_is_refused() {
        let text = vec![7; 100_000];
        for compression in [Compression::Zstd, Compression::Lz4] {
            let mut packed = Vec::new();
            let mut compressor = Compressor::new(compression, 1).unwrap();
            let stored = compressor.compress(&text, &mut packed).unwrap();
            for bytes in [0, 99_999, 100_001] {
                let done = decompress(stored, &packed, &mut Vec::new(), bytes, Subject::Index);
                assert!(done.is_err(), "{compression:?} to {bytes}");
            }
        }
    }

    #[test]
    fn a_level_that_zstd_does_not_have_is_refused() {
        assert!(Compressor::new(Compression::Zstd, 23).is_err());
    }
}
