//! Files and keys as docs/format.md has them, by the page, by the vectors, by themselves and by openssl.
//!
//! `mutations`, which watches the memory of its process, and `provider`, of which a process has one, are apart.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod format_md;
mod hybrid;
mod media;
mod openssl;
mod properties;
mod refusals;
mod reserved;
mod tampered_media;
mod vectors;
