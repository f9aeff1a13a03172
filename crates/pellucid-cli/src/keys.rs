//! Keys from files, descriptors and prompts; never from arguments.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use pellucid::protector::{KeyFile, Passphrase};
use pellucid_sqlite::seal_request::{offer, Offer};
use zeroize::Zeroizing;

use crate::output::Failure;

/// Keys to open databases with.
#[derive(Debug, Args)]
pub struct OpenWith {
    /// A file with a raw key: 32 bytes or 64 hexadecimal digits; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// A file with the passphrase, without its last line end; `-` reads standard input, or asks at a terminal
    #[arg(long, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,
    /// Also open it by a recovery certificate
    #[arg(long)]
    pub recovery: bool,
}

impl OpenWith {
    /// Offers the keys to every connection of this process.
    pub fn offer(&self) -> Result<(), Failure> {
        if let Some(path) = &self.key_file {
            offer(Offer::KeyFile(key_file(path)?));
        }
        if let Some(path) = &self.passphrase_file {
            offer(Offer::Passphrase(passphrase(path, false)?));
        }
        if self.recovery {
            offer(Offer::Recovery);
        }
        Ok(())
    }
}

/// Reads a key file, or standard input.
pub fn key_file(path: &Path) -> Result<KeyFile, Failure> {
    if path != Path::new("-") {
        return Ok(KeyFile::read(path)?);
    }
    KeyFile::parse(&standard_input()?).ok_or_else(|| {
        Failure::new(
            "standard input is not a key file",
            "32 raw bytes or 64 hexadecimal digits are expected",
        )
    })
}

/// Reads a passphrase: from a file, standard input, or a terminal, twice when it is a new one.
pub fn passphrase(path: &Path, new: bool) -> Result<Passphrase, Failure> {
    if path != Path::new("-") {
        return Ok(Passphrase::read(path)?);
    }
    if !std::io::stdin().is_terminal() {
        return refuse_empty(Passphrase::new(&standard_input()?));
    }
    let ask = |prompt: &str| {
        rpassword::prompt_password(prompt)
            .map(|typed| Passphrase::new(Zeroizing::new(typed).as_bytes()))
            .map_err(|error| Failure::new(error, "a terminal is needed to ask for a passphrase"))
    };
    let first = refuse_empty(ask("Passphrase: ")?)?;
    if new && ask("Again: ")?.identity() != first.identity() {
        return Err(Failure::new("the two passphrases differ", "nothing was changed; try again"));
    }
    Ok(first)
}

fn refuse_empty(passphrase: Passphrase) -> Result<Passphrase, Failure> {
    if passphrase.is_empty() {
        return Err(Failure::new("the passphrase is empty", "give one with at least a character"));
    }
    Ok(passphrase)
}

fn standard_input() -> Result<Zeroizing<Vec<u8>>, Failure> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(4096));
    std::io::stdin()
        .take(4096)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::new(error, "standard input has to carry the secret"))?;
    Ok(bytes)
}
