//! `key bind`: the service master key under a passphrase, in a credential of systemd's, under a key that a plugin asks for, or
//! back in a file in clear.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use pellucid::secret::Secret32;
use pellucid::shown::Shown;
use pellucid::{Error, Result as Outcome, Subject};
use pellucid_keyring::{Change, CredentialTool, SERVICE_PASSPHRASE_FILE};
use zeroize::Zeroizing;

use crate::keys::passphrase;
use crate::output::{Failure, Output};

const TOOL: &str = "systemd-creds";
/// The name that the keyring asks systemd for.
const NAME: &str = "pellucid-smk";

/// What `key bind` takes.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("place").required(true).args(["passphrase_file", "credential", "plugin", "here"]))]
pub struct BindArgs {
    /// Bind it to the passphrase in this file, which should lie on another file system; `-` reads standard input, or asks.
    /// `PELLUCID_SERVICE_PASSPHRASE_FILE` names the file from then on
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Bind it to this machine's TPM or systemd's key: write the credential `pellucid-smk` to this new file, for
    /// `LoadCredentialEncrypted=` of units
    #[arg(long, value_name = "FILE")]
    credential: Option<PathBuf>,
    /// Bind it to a key that lies elsewhere, in a token, a TPM or a key service: the name of the plugin that asks for it
    /// (`pellucid plugin list`)
    #[arg(long, value_name = "NAME", requires = "key")]
    plugin: Option<String>,
    /// Put it back into the instance's file, in clear
    #[arg(long)]
    here: bool,
    /// With `--plugin`: which key, as the plugin names keys
    #[arg(long, value_name = "KEY", requires = "plugin", conflicts_with_all = ["passphrase_file", "credential", "here"])]
    key: Option<String>,
}

/// Binds it.
pub fn run(home: &Path, args: &BindArgs, output: &Output) -> Result<(), Failure> {
    let change = Change::begin(home)?;
    let (place, next) = match (&args.passphrase_file, &args.credential) {
        _ if args.plugin.is_some() => {
            let (name, key) = (args.plugin.as_deref(), args.key.as_deref());
            let (name, key) = (name.unwrap_or_default(), key.unwrap_or_default());
            let file = change.bind_to_plugin(name, key)?;
            let next = "back up the service master key (`pellucid key backup service`): without the other key nothing opens it";
            (format!("a key of the plugin {name}, in {}", file.shown()), next.to_owned())
        }
        (Some(file), _) => {
            let sealed = change.bind_to_passphrase(&passphrase(file, true)?)?;
            let named = match file == Path::new("-") {
                true => "FILE".to_owned(),
                false => {
                    std::path::absolute(file).unwrap_or_else(|_| file.clone()).shown().to_string()
                }
            };
            let next = format!("set {SERVICE_PASSPHRASE_FILE}={named} where databases are opened");
            (format!("a passphrase, in {}", sealed.shown()), next)
        }
        (None, Some(file)) => {
            let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            change.bind_to_credential(&file, &Systemd)?;
            let next = format!(
                "put LoadCredentialEncrypted={NAME}:{} into the units that open databases",
                file.shown()
            );
            (format!("the credential {}", file.shown()), next)
        }
        (None, None) => {
            let clear = change.bind_here()?;
            output.line(format!("bound  service master key   to {}, in clear", clear.shown()));
            output.facts(&serde_json::json!({"key": "service master key", "bound": "here"}));
            return Ok(());
        }
    };
    output.line(format!("bound  service master key   to {place}; it opened from there before service.key was removed"));
    output.line(format!("next   {next}"));
    output.line(
        "note   blocks of service.key may stay on the medium until they are written over, and copies and backups keep it: \
         docs/guide/keys.md says how to make a key that never lies there",
    );
    if args.credential.is_some() && !Systemd::has_tpm() {
        output.line(
            "note   no TPM was found: the credential is as safe as /var/lib/systemd/credential.secret, which sealed it; who \
             takes the disk that has both opens it",
        );
    }
    let bound = match (&args.credential, &args.plugin) {
        (Some(_), _) => "credential",
        (None, Some(_)) => "plugin",
        (None, None) => "passphrase",
    };
    output.facts(&serde_json::json!({"key": "service master key", "bound": bound, "next": next}));
    Ok(())
}

/// systemd-creds(1): seals by the TPM where there is one, and by the machine's own key.
struct Systemd;

impl Systemd {
    /// Whether it seals by a TPM; one that is there in part does not count.
    fn has_tpm() -> bool {
        let mut asked = Command::new(TOOL);
        asked.args(["has-tpm2", "--quiet"]).stdin(Stdio::null());
        asked
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    fn run(
        &self,
        arguments: &[&str],
        from: &str,
        to: &str,
        input: Option<&[u8]>,
    ) -> Outcome<Zeroizing<Vec<u8>>> {
        let failed = |error: std::io::Error| Error::io(Subject::Option(TOOL.into()), error);
        let mut child = Command::new(TOOL)
            .args(arguments)
            .args([&format!("--name={NAME}"), from, to])
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        if let (Some(input), Some(mut pipe)) = (input, child.stdin.take()) {
            pipe.write_all(input).map_err(failed)?;
        }
        let done = child.wait_with_output().map_err(failed)?;
        let given = Zeroizing::new(done.stdout);
        match done.status.success() {
            true => Ok(given),
            false => {
                let told = String::from_utf8_lossy(&done.stderr).trim().to_owned();
                Err(Error::misuse(Subject::Option(TOOL.into()), format!("{}: {told}", done.status)))
            }
        }
    }
}

impl CredentialTool for Systemd {
    fn seal(&self, key: &Secret32, to: &Path) -> Outcome<()> {
        let sealed = self.run(&["encrypt"], "-", "-", Some(key.expose()))?;
        let io = |error| Error::io(Subject::File(to.to_owned()), error);
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(to).and_then(|mut file| file.write_all(&sealed)).map_err(io)
    }

    fn open(&self, from: &Path) -> Outcome<Secret32> {
        let sealed = std::fs::read(from)
            .map_err(|error| Error::io(Subject::File(from.to_owned()), error))?;
        let key = self.run(&["decrypt"], "-", "-", Some(&sealed))?;
        Secret32::from_slice(&key).ok_or_else(|| {
            Error::corrupt(Subject::File(from.to_owned()), "no key of 32 bytes comes out of it")
        })
    }
}
