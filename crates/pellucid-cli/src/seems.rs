//! What a file of another program seems to be, and what to do with it. Without a key it is a guess, and told as one.

use std::io::Read;
use std::path::Path;

use pellucid::media::MediaHeader;
use pellucid_foreign::looks::{look, Looks, SAMPLE_BYTES};

use crate::output::word;

/// What a file seems to be.
#[derive(Debug)]
pub struct Seems {
    /// A word for machines.
    pub kind: &'static str,
    /// What it is, in words.
    pub told: String,
    /// What to do with it.
    pub todo: String,
}

/// Looks at the beginning of a file. `None` if it is nothing of another program's that is known here, or cannot be read.
pub fn seems(path: &Path) -> Option<Seems> {
    let file = pellucid_files::regular::open(path).ok()?;
    let bytes = file.metadata().ok()?.len();
    let mut sample = Vec::with_capacity(SAMPLE_BYTES);
    file.take(SAMPLE_BYTES as u64).read_to_end(&mut sample).ok()?;
    if sample.starts_with(b"Pellucid ") || MediaHeader::begins(&sample) {
        return None;
    }
    of(path, look(&sample, bytes))
}

fn of(path: &Path, looks: Looks) -> Option<Seems> {
    let name = word(path);
    let from = |program: &str, more: &str| {
        format!("`pellucid encrypt {name} --from {program} --passphrase-file FILE{more} --to NEW.db` makes a sealed database of it")
    };
    let import = |more: &str| format!("`pellucid cert import NAME --cert-file {more}` takes it");
    let (kind, told, todo) = match looks {
        Looks::HeaderInClear { page_bytes, reserved } => (
            "sqlite3mc",
            format!(
                "looks encrypted, with the bytes 16 to 23 of an SQLite header in clear, as SQLite3 Multiple Ciphers leaves them; \
                 by its {reserved} reserved bytes {}; page size {page_bytes}",
                ciphers_of(reserved)
            ),
            from("sqlite3mc", ""),
        ),
        Looks::PlainHeader { page_bytes, .. } => (
            "plaintext-header",
            format!(
                "looks encrypted behind an SQLite header in clear, as SQLCipher leaves it with a plaintext header; page size \
                 {page_bytes}"
            ),
            from("sqlcipher", " --plaintext-header 32 --salt HEX"),
        ),
        Looks::NoStructure => (
            "no-structure",
            "looks encrypted or compressed: it has no structure. SQLCipher, SEE and the older ciphers of SQLite3 Multiple \
             Ciphers leave a database so; which of them, only its secret tells"
                .to_owned(),
            format!("{}; or `--from sqlite3mc`. SEE's are not read", from("sqlcipher", "")),
        ),
        Looks::SqlServerBackup => (
            "sql-server-backup",
            "begins as a backup that SQL Server made".to_owned(),
            "restore it with SQL Server: its pages are not SQLite's. `pellucid cert import` takes the certificate that its \
             encryption needs"
                .to_owned(),
        ),
        Looks::Pvk => (
            "pvk",
            "is a private key as SQL Server's `BACKUP CERTIFICATE` writes it (PVK)".to_owned(),
            import(&format!("CERTIFICATE.cer --key-file {name} --password-file -")),
        ),
        Looks::Pfx => (
            "pfx",
            "looks like a certificate with its private key (PKCS#12, PFX)".to_owned(),
            import(&format!("{name} --password-file -")),
        ),
        Looks::Pem => (
            "pem",
            "is a certificate or a key as text (PEM)".to_owned(),
            import("CERTIFICATE.pem --key-file KEY.pem"),
        ),
        Looks::Der => (
            "der",
            "looks like a certificate or a key (DER)".to_owned(),
            import(&name),
        ),
        Looks::Unknown => return None,
    };
    Some(Seems { kind, told, todo })
}

/// The ciphers of SQLite3 Multiple Ciphers that reserve so many bytes.
fn ciphers_of(reserved: u8) -> &'static str {
    match reserved {
        0 => "aes128cbc or aes256cbc",
        32 => "chacha20 or ascon128",
        48 => "aegis-128 or sqlcipher with a short HMAC",
        64 => "aegis-256",
        80 => "sqlcipher",
        _ => "none of its ciphers by default",
    }
}
