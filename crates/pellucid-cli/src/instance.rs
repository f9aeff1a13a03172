//! `instance`: what an instance is made of, as one sealed bundle, out and in.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use pellucid::certificate::Certificate;
use pellucid::error::Error;
use pellucid::hash::hex;
use pellucid::protector::{Argon2Cost, KeySource, Passphrase, Wrapping};
use pellucid::shown::Shown;
use pellucid_keyring::{
    is_classical_allowed, is_cost_allowed, Bundle, Carried, Fate, Keyring, Stored,
};

use crate::keys::passphrase;
use crate::output::{date, table, Failure, Id, Output};

/// What `instance` does.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid instance export --to keys.bundle --password-file -\n  pellucid \
                  instance import keys.bundle --password-file - --dry-run"
)]
pub struct InstanceArgs {
    #[command(subcommand)]
    command: InstanceCommand,
}

#[derive(Debug, Subcommand)]
enum InstanceCommand {
    /// Export the database master key, the certificates and the list of known databases to one sealed file, a bundle
    Export(ExportArgs),
    /// Import a bundle: all of it into an empty instance; into another one, what it does not have yet
    Import(ImportArgs),
}

#[derive(Debug, Args)]
struct ExportArgs {
    /// File to write; an existing file is not overwritten
    #[arg(long, value_name = "BUNDLE")]
    to: PathBuf,
    #[command(flatten)]
    with: SealWith,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct SealWith {
    /// File with the password; its last line end is not part of it. `-` reads standard input, or asks at a terminal
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Certificate of the other instance, imported here without its private key; only that instance opens the bundle
    #[arg(long, value_name = "NAME")]
    certificate: Option<String>,
}

#[derive(Debug, Args)]
struct ImportArgs {
    /// Bundle that `instance export` wrote
    bundle: PathBuf,
    /// File with the password of the bundle; its last line end is not part of it. `-` reads standard input, or asks at a
    /// terminal
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Change nothing; show what would happen to each entry of the bundle
    #[arg(long)]
    dry_run: bool,
}

/// Does it.
pub fn run(args: &InstanceArgs, output: &Output) -> Result<ExitCode, Failure> {
    let home = Keyring::locate()?;
    match &args.command {
        InstanceCommand::Export(args) => export(&home, args, output),
        InstanceCommand::Import(args) => import(&home, args, output),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn export(home: &Path, args: &ExportArgs, output: &Output) -> Result<(), Failure> {
    let keyring = Keyring::open(home)?;
    let carried = match (&args.with.password_file, &args.with.certificate) {
        (Some(path), _) => {
            let password = passphrase(path, true)?;
            password.check_new()?;
            let with = Wrapping::Passphrase(&password, Argon2Cost::default());
            keyring.export_instance(&args.to, &with)?
        }
        (_, Some(name)) => match keyring.stored_certificate(name)? {
            Stored::Whole(certificate) => {
                let carried =
                    keyring.export_instance(&args.to, &Wrapping::Certificate(&certificate))?;
                if certificate.needs_backup() {
                    output.warning(format_args!(
                        "this bundle is no backup: the private key that opens it, of certificate `{name}`, has not been \
                         backed up and is in it; `pellucid cert export {name}` backs it up, or use `--password-file`"
                    ));
                }
                carried
            }
            Stored::Public(public) => {
                keyring.export_instance(&args.to, &Wrapping::Recovery(&public))?
            }
        },
        _ => {
            return Err(Failure::new(
                Id::BundleNotSealed,
                "nothing is named that seals the bundle",
                "name a password with `--password-file`, or `--certificate NAME`",
            ))
        }
    };
    show(&carried, "written", output);
    output.line(format!("wrote  instance   {}", args.to.shown()));
    output.facts(
        &serde_json::json!({"bundle": crate::output::name(&args.to), "entries": facts(&carried)}),
    );
    Ok(())
}

fn import(home: &Path, args: &ImportArgs, output: &Output) -> Result<(), Failure> {
    let about = |error: Error| Failure::from(error).about(&args.bundle);
    let keys = AtHand {
        home: home.to_owned(),
        passwords: match &args.password_file {
            Some(path) => vec![passphrase(path, false)?],
            None => Vec::new(),
        },
    };
    let bundle = Bundle::read(&args.bundle, &keys).map_err(|error| match error {
        Error::MissingKey { .. } => Failure {
            hint: Some(
                "give the password of the bundle with `--password-file`, or import it into the instance that has the \
                 certificate it was sealed for"
                    .to_owned(),
            ),
            ..about(error)
        },
        error => about(error),
    })?;
    if !bundle.proves_origin() {
        output.warning(
            "the bundle does not prove where it comes from: anyone with the public half of the certificate can make \
             one; compare the thumbprints (in full with `--json`) with those of the instance that it is said to come from",
        );
    }
    let (carried, done) = match args.dry_run {
        true => (bundle.plan(home)?, "nothing was changed"),
        false => (bundle.import(home, &args.bundle)?, "imported"),
    };
    show(&carried, "what becomes of it", output);
    output.line(format!(
        "{done}  {}, made on {}, into {}",
        args.bundle.shown(),
        date(bundle.made()),
        home.shown()
    ));
    output.facts(&serde_json::json!({
        "bundle": crate::output::name(&args.bundle), "home": crate::output::name(home), "made": bundle.made(), "dry_run": args.dry_run,
        "opened_by": bundle.opened_by(), "proves_origin": bundle.proves_origin(),
        "entries": facts(&carried),
    }));
    Ok(())
}

/// What opens a bundle: its password, or a certificate of this instance.
struct AtHand {
    home: PathBuf,
    passwords: Vec<Passphrase>,
}

impl KeySource for AtHand {
    fn passphrases(&self) -> &[Passphrase] {
        &self.passwords
    }

    fn certificate(&self, thumbprint: &[u8; 32]) -> pellucid::Result<Option<Certificate>> {
        match Keyring::is_at(&self.home) {
            true => Keyring::open(&self.home)?.certificate_by_thumbprint(thumbprint),
            false => Ok(None),
        }
    }

    /// Whoever imports a bundle asks for it.
    fn allow_recovery(&self) -> bool {
        true
    }

    fn allow_classical(&self) -> bool {
        is_classical_allowed()
    }

    fn allow_cost(&self) -> bool {
        is_cost_allowed()
    }
}

fn show(carried: &[Carried], last: &str, output: &Output) {
    let mut table = table(["what", "name", "SHA-256 thumbprint", last]);
    for one in carried {
        let print =
            one.thumbprint.map_or_else(String::new, |print| format!("{}..", hex(&print[..8])));
        let fate = if last == "written" { "yes".to_owned() } else { one.fate.describe() };
        table.add_row([one.what.to_owned(), one.name.shown().to_string(), print, fate]);
    }
    output.line(table);
}

fn facts(carried: &[Carried]) -> Vec<serde_json::Value> {
    let fate = |fate: &Fate| match fate {
        Fate::New | Fate::KeyFor(_) | Fate::CompanionFor(_) => "new",
        Fate::Same | Fate::SameAs(_) => "same",
        Fate::Kept => "kept",
        Fate::Conflict => "conflict",
        _ => "other",
    };
    carried
        .iter()
        .map(|one| {
            serde_json::json!({
                "what": one.what, "name": one.name, "fate": fate(&one.fate),
                "thumbprint_sha256": one.thumbprint.map(|print| hex(&print)),
            })
        })
        .collect()
}
