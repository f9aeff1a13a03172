//! Keys from files, descriptors and prompts; never from arguments.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args};
use pellucid::protector::{KeyFile, Passphrase};
use pellucid_keyring::Keyring;
use pellucid_vfs::seal_request::{offer, Offer, Protection};
use zeroize::Zeroizing;

use crate::output::{Failure, Id};

/// Keys to open databases with.
#[derive(Debug, Args)]
pub struct OpenWith {
    /// File with a raw key: 32 bytes or 64 hexadecimal digits; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// File with the passphrase; its last line end is not part of it. `-` reads standard input, or asks at a terminal
    #[arg(long, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,
    /// Allow a recovery certificate to open it
    #[arg(long)]
    pub recovery: bool,
}

impl OpenWith {
    /// Offers the keys to every connection of this process.
    pub fn offer(&self) -> Result<(), Failure> {
        self.read(false)?.offer();
        Ok(())
    }

    /// Reads the keys, once: standard input and a prompt give nothing twice. A `new` passphrase is asked for twice.
    pub fn read(&self, new: bool) -> Result<Keys, Failure> {
        let keys = Keys::read(self.key_file.as_deref(), self.passphrase_file.as_deref(), new)?;
        Ok(Keys { recovery: self.recovery, ..keys })
    }
}

/// Keys that were read.
#[derive(Debug, Default)]
pub struct Keys {
    key_file: Option<KeyFile>,
    passphrase: Option<Passphrase>,
    recovery: bool,
}

impl Keys {
    /// Reads what is named.
    pub fn read(key: Option<&Path>, phrase: Option<&Path>, new: bool) -> Result<Self, Failure> {
        Ok(Self {
            key_file: key.map(key_file).transpose()?,
            passphrase: phrase.map(|path| passphrase(path, new)).transpose()?,
            recovery: false,
        })
    }

    /// Offers them to every connection of this process.
    pub fn offer(&self) {
        self.key_file.iter().for_each(|key| offer(Offer::KeyFile(key.clone())));
        self.passphrase.iter().for_each(|phrase| offer(Offer::Passphrase(phrase.clone())));
        if self.recovery {
            offer(Offer::Recovery);
        }
    }

    /// What they protect a database or backup by.
    pub fn protections(self) -> Vec<Protection> {
        let key = self.key_file.map(Protection::KeyFile);
        key.into_iter().chain(self.passphrase.map(Protection::Passphrase)).collect()
    }
}

/// A certificate of the keyring, with its private key, for a protection.
pub fn certificate(name: &str) -> Result<Protection, Failure> {
    Keyring::open(&Keyring::locate()?)?.certificate(name)?;
    Ok(Protection::Certificate(Some(name.to_owned())))
}

/// The one new key that is named.
pub fn only_new(key: Option<&Path>, phrase: Option<&Path>) -> Result<Protection, Failure> {
    let read = Keys::read(key, phrase, true)?.protections().pop();
    read.ok_or_else(|| {
        Failure::new(
            Id::NoNewKey,
            "no new key is named",
            "name one with `--certificate`, `--new-key-file` or `--new-passphrase-file`",
        )
    })
}

/// The arguments, of whatever command, that read standard input where they are `-`.
const FROM_INPUT: [&str; 4] = ["key_file", "new_key_file", "media", "base"];
/// Those that ask instead where that is a terminal: any number of times ([`passphrase`]).
const FROM_INPUT_OR_ASKED: [&str; 4] =
    ["passphrase_file", "password_file", "new_passphrase_file", "raw_key_file"];

/// How many things are to be read from standard input, which gives one only.
pub fn inputs(matches: &ArgMatches) -> usize {
    let named = |id: &&str| matches.try_get_raw(id).ok().flatten().into_iter().flatten();
    let asked = std::io::stdin().is_terminal();
    let read = FROM_INPUT_OR_ASKED.iter().filter(|_| !asked).chain(&FROM_INPUT);
    let here = read.flat_map(named).filter(|value| *value == "-").count();
    here + matches.subcommand().map_or(0, |(_, matches)| inputs(matches))
}

/// Reads a key file, or standard input.
fn key_file(path: &Path) -> Result<KeyFile, Failure> {
    if path != Path::new("-") {
        return Ok(pellucid_files::secrets::key_file(path)?);
    }
    KeyFile::parse(&standard_input()?).ok_or_else(|| {
        Failure::new(
            Id::NotAKeyFile,
            "standard input is not a key file",
            "give it 32 raw bytes or 64 hexadecimal digits",
        )
    })
}

/// Reads a passphrase: from a file, standard input, or a terminal, twice when it is a new one.
pub fn passphrase(path: &Path, new: bool) -> Result<Passphrase, Failure> {
    if path != Path::new("-") {
        return Ok(pellucid_files::secrets::passphrase(path)?);
    }
    if !std::io::stdin().is_terminal() {
        return refuse_empty(Passphrase::new(&standard_input()?));
    }
    let ask = |prompt: &str| {
        rpassword::prompt_password(prompt)
            .map(|typed| Passphrase::new(Zeroizing::new(typed).as_bytes()))
            .map_err(|error| {
                Failure::new(Id::NoTerminal, error, "a terminal is needed to ask for a passphrase")
            })
    };
    // Where an old one is asked for as well, nobody could tell which it is.
    let first = refuse_empty(ask(if new { "New passphrase: " } else { "Passphrase: " })?)?;
    if new && ask("Again: ")?.identity() != first.identity() {
        return Err(Failure::new(
            Id::PassphrasesDiffer,
            "the two passphrases differ",
            "nothing was changed; try again",
        ));
    }
    Ok(first)
}

/// Reads a secret of another program's as it is: from a file, standard input, or a terminal.
pub fn secret(path: &Path, prompt: &str) -> Result<Zeroizing<Vec<u8>>, Failure> {
    if path != Path::new("-") {
        return Ok(pellucid_files::secrets::read_private(path)?);
    }
    if !std::io::stdin().is_terminal() {
        return standard_input();
    }
    rpassword::prompt_password(prompt).map(|typed| Zeroizing::new(typed.into_bytes())).map_err(
        |error| Failure::new(Id::NoTerminal, error, "a terminal is needed to ask for a secret"),
    )
}

fn refuse_empty(passphrase: Passphrase) -> Result<Passphrase, Failure> {
    if passphrase.is_empty() {
        return Err(Failure::new(
            Id::PassphraseEmpty,
            "the passphrase is empty",
            "give a passphrase of at least one character",
        ));
    }
    Ok(passphrase)
}

fn standard_input() -> Result<Zeroizing<Vec<u8>>, Failure> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(4096));
    std::io::stdin().take(4096).read_to_end(&mut bytes).map_err(|error| {
        Failure::new(
            Id::InputUnread,
            error,
            "the secret is read from standard input: pipe it in, or name a file",
        )
    })?;
    Ok(bytes)
}
