//! `pellucid-plugin-tpm`: secrets that this machine's TPM 2.0 seals, by tpm2-tools.
//!
//! Settings and examples: docs/guide/tokens.md. A key is `tpm:`, or `tpm:pcrs=7`, which binds to what the registers say when the
//! secret is wrapped. Secrets go through pipes; the files that tpm2-tools want hold what the TPM has encrypted.
//!
//! A wrapped secret: version 1 (1 byte), length of the public part (2, big-endian), the public part, the private part, as
//! tpm2_create writes them. The TPM has sealed the secret with the SHA-256 of the context behind it.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use aws_lc_rs::digest::{digest, SHA256, SHA256_OUTPUT_LEN};
use pellucid_plugin::{Operation, Refusal, Reply, Request, Secret, Settings};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

const VERSION: u8 = 1;
/// What a TPM seals (`MAX_SYM_DATA`, TPM 2.0 Library, part 2).
const SEALED_BYTES_MOST: usize = 128;
const USUAL: &str = "device:/dev/tpmrm0";
const SETTINGS: &[&str] = &["tcti"];

fn main() -> ExitCode {
    // Whoever started this may ignore it, and then the tools could not be waited for.
    let _ =
        signal_hook::flag::register(signal_hook::consts::SIGCHLD, Arc::new(AtomicBool::new(false)));
    pellucid_plugin::serve(|request, _| answer(request))
}

fn answer(request: Request) -> Result<Reply, Refusal> {
    match request {
        Request::Describe => Ok(Reply::Description {
            name: "TPM 2.0".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            can: vec![Operation::Wrap, Operation::Unwrap],
        }),
        Request::Wrap { key, secret, context } => {
            Ok(Reply::Wrapped(Tpm::open(&key)?.wrap(&secret, &context)?))
        }
        Request::Unwrap { key, wrapped, context } => {
            Ok(Reply::Secret(Tpm::open(&key)?.unwrap(&wrapped, &context)?))
        }
        _ => Err(Refusal::misuse("a TPM only wraps and unwraps here")),
    }
}

struct Tpm {
    /// `sha256:7,11`; none if no register counts.
    registers: Option<String>,
    tcti: String,
    /// Without a resource manager what is loaded stays, and the TPM has room for three.
    is_bare: bool,
    directory: tempfile::TempDir,
}

impl Tpm {
    fn open(key: &str) -> Result<Self, Refusal> {
        let settings = Settings::read("tpm")?;
        if let Some(unknown) = settings.unknown(SETTINGS) {
            let path = settings.path().display();
            return Err(Refusal::misuse(format!("`{path}` has the unknown setting `{unknown}`")));
        }
        let tcti = settings.get("tcti").unwrap_or(USUAL).to_owned();
        let directory = tempfile::Builder::new()
            .prefix("pellucid-tpm-")
            .tempdir_in("/tmp")
            .map_err(|error| Refusal::trouble(format!("no directory in /tmp: {error}")))?;
        let is_bare = !tcti.starts_with("device:") && !tcti.starts_with("tabrmd:");
        Ok(Self { registers: registers(key)?, tcti, is_bare, directory })
    }

    fn wrap(&self, secret: &[u8], context: &[u8]) -> Result<Vec<u8>, Refusal> {
        let hash = digest(&SHA256, context);
        if secret.len() + SHA256_OUTPUT_LEN > SEALED_BYTES_MOST {
            return Err(Refusal::misuse("a TPM seals 96 bytes at most"));
        }
        let sealed = Zeroizing::new([secret, hash.as_ref()].concat());
        self.primary()?;
        let mut words =
            vec!["-C", "primary", "-g", "sha256", "-i", "-", "-u", "public", "-r", "private"];
        if let Some(registers) = &self.registers {
            self.run(
                "tpm2_createpolicy",
                &["--policy-pcr", "-l", registers, "-L", "policy"],
                None,
            )?;
            // Without `userwithauth`, so that nothing but the registers opens it.
            words.extend(["-L", "policy", "-a", "fixedtpm|fixedparent|noda"]);
        } else {
            words.extend(["-a", "fixedtpm|fixedparent|userwithauth|noda"]);
        }
        self.run("tpm2_create", &words, Some(&sealed))?;
        self.flush();
        let (public, private) = (self.read("public")?, self.read("private")?);
        let length = u16::try_from(public.len())
            .map_err(|_| Refusal::trouble("the TPM's public part is too long"))?;
        Ok([&[VERSION][..], &length.to_be_bytes(), &public, &private].concat())
    }

    fn unwrap(&self, wrapped: &[u8], context: &[u8]) -> Result<Secret, Refusal> {
        let unauthentic = || {
            Refusal::unauthentic(
                "this TPM does not open it: another one sealed it, or it was changed",
            )
        };
        let parts = match wrapped {
            [VERSION, high, low, rest @ ..] => {
                rest.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))
            }
            _ => None,
        };
        let (public, private) = parts.ok_or_else(unauthentic)?;
        self.write("public", public)?;
        self.write("private", private)?;
        self.primary()?;
        let load = ["-C", "primary", "-u", "public", "-r", "private", "-c", "object"];
        if self.run("tpm2_load", &load, None).is_err() {
            self.flush();
            return Err(unauthentic());
        }
        let policy = self.registers.as_ref().map(|registers| format!("pcr:{registers}"));
        let mut words = vec!["-c", "object"];
        words.extend(policy.iter().flat_map(|policy| ["-p", policy.as_str()]));
        let opened = self.run("tpm2_unseal", &words, None);
        self.flush();
        let opened = opened.map_err(|_| {
            Refusal::missing_key(match &self.registers {
                Some(registers) => format!(
                    "the TPM does not hand it out: the registers {registers} are others than when it was wrapped, or the key \
                     names others. After an update of firmware or boot loader restore the key from its backup and bind it anew"
                ),
                None => "the TPM does not hand it out: was it wrapped with `pcrs=`?".to_owned(),
            })
        })?;
        let at = opened.len().checked_sub(SHA256_OUTPUT_LEN).ok_or_else(unauthentic)?;
        let (secret, hash) = opened.split_at(at);
        match bool::from(hash.ct_eq(digest(&SHA256, context).as_ref())) && !secret.is_empty() {
            true => Ok(Zeroizing::new(secret.to_vec())),
            false => Err(unauthentic()),
        }
    }

    /// The key of the owner's hierarchy, which each TPM derives again from its own seed.
    fn primary(&self) -> Result<(), Refusal> {
        self.run(
            "tpm2_createprimary",
            &["-C", "o", "-g", "sha256", "-G", "ecc", "-c", "primary"],
            None,
        )?;
        self.flush();
        Ok(())
    }

    fn flush(&self) {
        if self.is_bare {
            let _ = self.run("tpm2_flushcontext", &["-t"], None);
        }
    }

    fn run(&self, tool: &str, words: &[&str], input: Option<&[u8]>) -> Result<Secret, Refusal> {
        let trouble = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Refusal::misuse(format!("there is no `{tool}`: install tpm2-tools"))
            }
            _ => Refusal::trouble(format!("{tool}: {error}")),
        };
        let mut child = Command::new(tool)
            .args(words)
            .current_dir(self.directory.path())
            .env("TPM2TOOLS_TCTI", &self.tcti)
            .env("TSS2_LOG", "all+none")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(trouble)?;
        if let (Some(input), Some(mut pipe)) = (input, child.stdin.take()) {
            pipe.write_all(input).map_err(trouble)?;
        }
        let done = child.wait_with_output().map_err(trouble)?;
        let given = Zeroizing::new(done.stdout);
        if done.status.success() {
            return Ok(given);
        }
        let told = String::from_utf8_lossy(&done.stderr);
        let line = told.lines().find(|line| line.contains("ERROR")).unwrap_or_default().trim();
        let is_away = told.contains("TCTI") || told.contains("tcti");
        Err(match is_away {
            true => Refusal::missing_key(format!(
                "no TPM answers at `{}`; may this account open it (group `tss`)?",
                self.tcti
            )),
            false => Refusal::trouble(format!("{tool}: {}: {line}", done.status)),
        })
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, Refusal> {
        let file = self.directory.path().join(name);
        std::fs::read(file).map_err(|error| Refusal::trouble(format!("{name}: {error}")))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Refusal> {
        let file: &Path = &self.directory.path().join(name);
        std::fs::write(file, bytes).map_err(|error| Refusal::trouble(format!("{name}: {error}")))
    }
}

/// The registers that a key names, as tpm2-tools write them.
fn registers(key: &str) -> Result<Option<String>, Refusal> {
    let invalid = || {
        Refusal::misuse("a key of a TPM is `tpm:` or `tpm:pcrs=7+11`, with registers from 0 to 23")
    };
    let rest = key.strip_prefix("tpm:").ok_or_else(invalid)?;
    if rest.is_empty() {
        return Ok(None);
    }
    let list = rest.strip_prefix("pcrs=").ok_or_else(invalid)?;
    let mut numbers = Vec::new();
    for part in list.split('+') {
        match part.parse::<u8>() {
            Ok(number @ 0..=23) if !numbers.contains(&number) => numbers.push(number),
            _ => return Err(invalid()),
        }
    }
    numbers.sort_unstable();
    let numbers: Vec<_> = numbers.iter().map(u8::to_string).collect();
    Ok(Some(format!("sha256:{}", numbers.join(","))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_key_names_registers_and_nothing_else() {
        assert_eq!(registers("tpm:").unwrap(), None);
        assert_eq!(registers("tpm:pcrs=11+7").unwrap().unwrap(), "sha256:7,11");
        for key in [
            "",
            "tpm",
            "tpm:7",
            "tpm:pcrs=",
            "tpm:pcrs=24",
            "tpm:pcrs=7+7",
            "tpm:pcrs=7,-x",
            "tpm:pcrs=7 -V",
        ] {
            assert!(registers(key).is_err(), "{key}");
        }
    }
}
