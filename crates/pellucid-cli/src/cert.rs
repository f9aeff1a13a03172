//! `cert`: certificates of the keyring.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use pellucid::certificate::{
    CertificateRequest, Companion, KeyPlace, PublicCertificate, VALID_DAYS_DEFAULT,
};
use pellucid::hash::hex;
use pellucid::message;
use pellucid::shown::Shown;
use pellucid::Error;
use pellucid_backup::history::{History, KnownSet};
use pellucid_engine::inspect::{inspect, Kind};
use pellucid_exchange::{import, FILE_BYTES_MOST};
use pellucid_keyring::{Damaged, Keyring, Stored};
use pellucid_plugin::Plugin;

use crate::init::say_made;
use crate::keys::passphrase;
use crate::known::{databases_under, User};
use crate::output::{self, date, now, table, Failure, Id, Output};

/// What `cert` does.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid cert export pellucid --cert-file pellucid.pem --key-file \
                  pellucid.key --password-file -"
)]
pub struct CertArgs {
    #[command(subcommand)]
    command: CertCommand,
}

#[derive(Debug, Subcommand)]
enum CertCommand {
    /// Create a self-signed certificate with a new RSA key
    Create(CreateArgs),
    /// Give a certificate a companion key (ML-KEM-768): from then on backups and bundles under it open with both keys only, never
    /// with one
    AddHybrid(NameArgs),
    /// List the certificates of the keyring
    List,
    /// Show one certificate
    Show(NameArgs),
    /// Export a certificate and its private key, encrypted with a password, to new files: the backup that saves your
    /// databases
    Export(FilesArgs),
    /// Import a certificate that pellucid exported or another program made: PEM, DER, PKCS#8, PFX, PVK
    Import(FilesArgs),
    /// Remove a certificate from the keyring
    Drop(DropArgs),
}

#[derive(Debug, Args)]
struct NameArgs {
    /// Name of the certificate in the keyring
    name: String,
}

#[derive(Debug, Args)]
struct CreateArgs {
    /// Name of the certificate in the keyring: letters, digits, `-`, `_`, `.`
    name: String,
    /// Common name of the certificate, 1 to 64 characters [default: NAME]
    #[arg(long)]
    subject: Option<String>,
    /// First day of its validity, YYYY-MM-DD [default: today]
    #[arg(long, value_name = "DATE", value_parser = day)]
    start: Option<i64>,
    /// Last day of its validity, YYYY-MM-DD [default: a year after the first]
    #[arg(long, value_name = "DATE", value_parser = day)]
    expiry: Option<i64>,
    /// Size of its RSA key in bits
    #[arg(long, default_value_t = 3072, value_parser = clap::value_parser!(u16).range(2048..=4096))]
    bits: u16,
    /// Take a key whose private half never leaves a token or a key service, without a certificate around it: the name of the
    /// plugin that asks for it (`pellucid plugin list`)
    #[arg(long, value_name = "NAME", requires = "key", conflicts_with_all = ["subject", "start", "expiry"])]
    plugin: Option<String>,
    /// With `--plugin`: which key, as the plugin names keys
    #[arg(long, value_name = "KEY", requires = "plugin")]
    key: Option<String>,
    /// With `--plugin`: have the key made there, of `--bits`
    #[arg(long, requires = "plugin")]
    new_key: bool,
    /// Make a companion key (ML-KEM-768), too: backups and bundles under the certificate open with both keys only, never with
    /// one
    #[arg(long)]
    hybrid: bool,
}

#[derive(Debug, Args)]
struct FilesArgs {
    /// Name of the certificate in the keyring
    name: String,
    /// File of the certificate; for an import also a PFX file, which contains the private key
    #[arg(long, value_name = "FILE")]
    cert_file: PathBuf,
    /// File of the private key
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// File with the password of the private key; its last line end is not part of it. `-` reads standard input, or asks at
    /// a terminal
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct DropArgs {
    /// Name of the certificate in the keyring
    name: String,
    /// Drop it even if databases or backups need it, which cannot be opened afterwards, or if that cannot be known
    #[arg(long)]
    force: bool,
}

/// `YYYY-MM-DD` or SQL Server's `YYYYMMDD`, as the seconds since 1970 at its beginning.
pub fn day(text: &str) -> Result<i64, String> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let dashes = text.len() - digits.len();
    let number = |range: std::ops::Range<usize>| digits.get(range)?.parse::<i32>().ok();
    let parsed = (digits.len() == 8 && (dashes == 0 || dashes == 2))
        .then(|| Some((number(0..4)?, number(4..6)?, number(6..8)?)))
        .flatten()
        .and_then(|(year, month, day)| {
            let month = time::Month::try_from(u8::try_from(month).ok()?).ok()?;
            time::Date::from_calendar_date(year, month, u8::try_from(day).ok()?).ok()
        });
    parsed
        .map(|date| date.midnight().assume_utc().unix_timestamp())
        .ok_or_else(|| "a day is written YYYY-MM-DD".to_owned())
}

/// Does it.
pub fn run(args: &CertArgs, output: &Output) -> Result<ExitCode, Failure> {
    let home = Keyring::locate()?;
    match &args.command {
        CertCommand::Create(args) => create(&home, args, output),
        CertCommand::AddHybrid(args) => add_hybrid(&Keyring::open(&home)?, &args.name, output),
        CertCommand::List => list(&Keyring::open(&home)?, output),
        CertCommand::Show(args) => {
            show(&Keyring::open(&home)?.stored_certificate(&args.name)?, output);
            Ok(())
        }
        CertCommand::Export(args) => export(&Keyring::open(&home)?, args, output),
        CertCommand::Import(args) => take_in(&home, args, output),
        CertCommand::Drop(args) => drop_one(&Keyring::open(&home)?, args, output),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn create(home: &Path, args: &CreateArgs, output: &Output) -> Result<(), Failure> {
    let (keyring, made) = Keyring::open_or_create(home)?;
    say_made(&made, output);
    if let (Some(plugin), Some(key)) = (&args.plugin, &args.key) {
        return create_elsewhere(&keyring, args, (plugin, key), output);
    }
    let subject = args.subject.as_deref().unwrap_or(&args.name);
    let mut request = CertificateRequest::new(subject, VALID_DAYS_DEFAULT);
    request.rsa_bits = usize::from(args.bits);
    request.hybrid = args.hybrid;
    if let Some(start) = args.start {
        request.not_before = start;
        request.not_after = start + VALID_DAYS_DEFAULT * DAY_SECONDS;
    }
    if let Some(expiry) = args.expiry {
        // Valid on its last day, too.
        request.not_after = expiry + DAY_SECONDS - 1;
    }
    let certificate = keyring.create_certificate(&args.name, &request)?;
    warn_about_validity(certificate.public(), output);
    show(&Stored::Whole(certificate), output);
    output.message(&message::NOT_BACKED_UP);
    Ok(())
}

fn create_elsewhere(
    keyring: &Keyring,
    args: &CreateArgs,
    (plugin, key): (&str, &str),
    output: &Output,
) -> Result<(), Failure> {
    let place = KeyPlace::new(plugin, key)?;
    // Before a key is made that nobody would know of.
    keyring.check_new_key(&args.name)?;
    let found = Plugin::find(plugin)?;
    let public_key = match args.new_key {
        true => found.create(key, args.bits.into())?,
        false => found.public(key)?,
    };
    let certificate = keyring.add_provider_key(&args.name, &public_key, place, None)?;
    show(&Stored::Whole(certificate), output);
    output
        .line("Databases and backups under it open where that key can be asked, and nowhere else.");
    Ok(())
}

fn add_hybrid(keyring: &Keyring, name: &str, output: &Output) -> Result<(), Failure> {
    let certificate = keyring.add_companion(name)?;
    show(&Stored::Whole(certificate), output);
    output.warning(format!(
        "exports of `{name}` made before today do not open new backups: `pellucid cert export {name}` makes one with both keys, \
         and every other instance that has the certificate needs it"
    ));
    output.message(&message::NOT_BACKED_UP);
    Ok(())
}

const DAY_SECONDS: i64 = 24 * 3600;

fn warn_about_validity(public: &PublicCertificate, output: &Output) {
    let (from, to) = public.validity();
    if to < now() {
        output.message(&message::CREATED_EXPIRED);
    } else if from > now() {
        output.message(&message::CREATED_FUTURE);
    }
}

fn list(keyring: &Keyring, output: &Output) -> Result<(), Failure> {
    let found = keyring.find_certificates()?;
    for damaged in &found.damaged {
        let name = damaged.name();
        output.warning(format!(
            "certificate `{name}` cannot be read: {}; `pellucid doctor` says what to do",
            damaged.error
        ));
    }
    let certificates = found.whole;
    let mut table = table(["certificate", "subject", "key", "valid", "private key", "backed up"]);
    for stored in &certificates {
        let public = stored.public();
        table.add_row([
            public.name().to_owned(),
            public.subject().shown().to_string(),
            key(public),
            format!("{} to {}", date(public.validity().0), date(public.validity().1)),
            if stored.has_private_key() { "yes" } else { "no" }.to_owned(),
            backed_up(stored),
        ]);
    }
    output.line(table);
    output.facts(&serde_json::json!({
        "certificates": certificates.iter().map(facts).collect::<Vec<_>>(),
        "damaged": found.damaged.iter().map(Damaged::name).collect::<Vec<_>>(),
    }));
    Ok(())
}

fn key(public: &PublicCertificate) -> String {
    let companion = if public.companion().is_some() { " and ML-KEM-768" } else { "" };
    format!("RSA-{}{companion}", public.rsa_bits())
}

fn backed_up(stored: &Stored) -> String {
    match (stored.has_private_key() && stored.place().is_none(), stored.backed_up()) {
        (false, _) => String::new(),
        (true, Some(at)) => date(at),
        (true, None) => "NEVER".to_owned(),
    }
}

fn show(stored: &Stored, output: &Output) {
    let public = stored.public();
    let since = |own: &Companion| format!(", since {}", date(own.added()));
    let since = public.companion().map(since).unwrap_or_default();
    let mut table = output::list();
    for (what, value) in [
        ("certificate", public.name().to_owned()),
        ("subject", public.subject().shown().to_string()),
        ("key", key(public) + &since),
        ("valid", format!("{} to {}", date(public.validity().0), date(public.validity().1))),
        ("private key", private_key(stored)),
        ("backed up", backed_up(stored)),
        ("SHA-256 thumbprint", hex(public.thumbprint())),
        ("SHA-1 thumbprint", hex(&public.sha1_thumbprint())),
    ] {
        table.add_row([what.to_owned(), value]);
    }
    output::pad(&mut table);
    output.line(table);
    output.facts(&facts(stored));
}

fn private_key(stored: &Stored) -> String {
    match stored.place() {
        Some(place) => place.to_string(),
        None if stored.has_private_key() => "in the keyring".to_owned(),
        None => "no".to_owned(),
    }
}

fn facts(stored: &Stored) -> serde_json::Value {
    let public = stored.public();
    serde_json::json!({
        "name": public.name(), "subject": public.subject(), "rsa_bits": public.rsa_bits(),
        "valid_from": date(public.validity().0), "valid_to": date(public.validity().1),
        "private_key": stored.has_private_key(),
        "provider": stored.place().map(|place| place.provider()),
        "provider_key": stored.place().map(|place| place.key()),
        "backed_up": stored.backed_up().map(date),
        "hybrid_since": public.companion().map(|own| date(own.added())),
        "companion_thumbprint_sha256": public.companion().map(|own| hex(own.thumbprint())),
        "thumbprint_sha256": hex(public.thumbprint()),
        "thumbprint_sha1": hex(&public.sha1_thumbprint()),
    })
}

fn export(keyring: &Keyring, args: &FilesArgs, output: &Output) -> Result<(), Failure> {
    let password = match (&args.key_file, &args.password_file) {
        (None, _) => None,
        (Some(_), None) => {
            return Err(Failure::new(
                Id::PasswordNotNamed,
                "a private key is exported under a password only",
                "name it with `--password-file`, or `--password-file -` to be asked",
            ))
        }
        (Some(_), Some(path)) => Some(passphrase(path, true)?),
    };
    let private_key = args.key_file.as_deref().zip(password.as_ref());
    keyring.export_certificate(
        &args.name,
        &args.cert_file,
        private_key,
        &pellucid_exchange::PEM,
    )?;
    output.line(format!("wrote  certificate   {}", args.cert_file.shown()));
    match &args.key_file {
        Some(path) => output.line(format!("wrote  private key   {}", path.shown())),
        None => output.warning(
            "the private key was not exported: with the certificate alone no database can be opened",
        ),
    }
    output.facts(&serde_json::json!({
        "name": args.name, "certificate_file": crate::output::name(&args.cert_file),
        "key_file": args.key_file.as_ref().map(crate::output::name),
    }));
    Ok(())
}

/// Reads a file that is no secret, or one that is under a password.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    use std::io::Read;
    let mut bytes = Vec::new();
    pellucid_files::regular::open_given(path)
        .and_then(|file| file.take(FILE_BYTES_MOST as u64 + 1).read_to_end(&mut bytes))
        .map_err(|_| Failure::from(Error::message(message::FILE_NOT_VALID, "")).about(path))?;
    Ok(bytes)
}

fn take_in(home: &Path, args: &FilesArgs, output: &Output) -> Result<(), Failure> {
    let certificate = read(&args.cert_file)?;
    let key = args.key_file.as_deref().map(read).transpose()?.map(zeroize::Zeroizing::new);
    let password = args.password_file.as_deref().map(|path| passphrase(path, false)).transpose()?;
    let imported =
        import(&args.name, &certificate, key.as_ref().map(|key| &key[..]), password.as_ref())?;
    let (keyring, made) = Keyring::open_or_create(home)?;
    say_made(&made, output);
    let stored = keyring.add_certificate(imported)?;
    warn_about_validity(stored.public(), output);
    show(&stored, output);
    Ok(())
}

fn drop_one(keyring: &Keyring, args: &DropArgs, output: &Output) -> Result<(), Failure> {
    let (users, sets) = match keyring.stored_certificate(&args.name) {
        Ok(stored) => {
            let users = users(keyring, stored.public())?;
            (users, sets_under(stored.public(), args, output)?)
        }
        // A damaged one opens nothing any more; which databases it opened is not known.
        Err(error @ (Error::Unauthentic { .. } | Error::Corrupt { .. })) if args.force => {
            output.warning(&error);
            Default::default()
        }
        Err(error) => return Err(error.into()),
    };
    let named = names(&users);
    let lost = sets.iter().map(told).collect::<Vec<_>>().join("; ");
    let is_free = users.is_empty() && sets.is_empty();
    if !args.force && !is_free {
        let refusal = if users.is_empty() { message::BOUND } else { message::CERTIFICATE_IN_USE };
        let users = (!users.is_empty()).then(|| format!("used by {named}; "));
        let sets = (!sets.is_empty()).then(|| format!("backups that only it opens: {lost}; "));
        let [users, sets] = [users, sets].map(Option::unwrap_or_default);
        let hint = format!("{users}{sets}`--force` drops it all the same");
        return Err(
            Failure::new(Id::InUse, refusal.with("certificate"), hint).number(refusal.number)
        );
    }
    if !users.is_empty() {
        output.warning(format!("no longer opened by it: {named}"));
    }
    if !sets.is_empty() {
        output.warning(format!("backups that only another copy of it opens now: {lost}"));
    }
    if !(users.is_empty() && sets.is_empty()) {
        output.confirm("Drop it?")?;
    }
    keyring.drop_certificate(&args.name)?;
    output.line(format!("dropped  certificate `{}`", args.name));
    let lost: Vec<_> = sets.iter().map(|set| &set.set).collect();
    output.facts(&serde_json::json!({
        "name": args.name, "dropped": true,
        "used_by": crate::output::names(users.iter().map(|user| &user.path)), "backup_sets": lost,
    }));
    Ok(())
}

/// A backup set in words.
fn told(set: &KnownSet) -> String {
    let files = set.files.join(" ");
    format!("{} of {} (position {} of {files})", set.begun, set.database, set.position)
}

/// The backup sets that the history knows and nothing but this certificate opens.
fn sets_under(
    public: &PublicCertificate,
    args: &DropArgs,
    output: &Output,
) -> Result<Vec<KnownSet>, Failure> {
    pellucid_bundled::register().map_err(|error| {
        Failure::new(Id::SqliteNotStarted, error, "the bundled SQLite could not start")
    })?;
    let known = History::open().and_then(|history| match history {
        Some(history) => history.sets_under(public.thumbprint()),
        None => Ok(Vec::new()),
    });
    match known {
        Ok(sets) => Ok(sets),
        Err(error) if args.force => {
            output.warning(format!("the history cannot say which backups the certificate opens: {error}"));
            Ok(Vec::new())
        }
        Err(error) => Err(Failure::new(Id::HistoryUnreadable,
            format!("the history cannot say which backups the certificate opens: {error}"),
            "`pellucid history rebuild MEDIA...` makes a new history where this one is lost; `--force` drops the \
             certificate without that knowledge",
        )),
    }
}

/// Their names, and which of them cannot be seen.
fn names(users: &[User]) -> String {
    let name = |user: &User| match (user.path.as_os_str().is_empty(), user.is_there) {
        (true, _) => "a database that lies nobody knows where".to_owned(),
        (_, true) => format!("`{}`", user.path.shown()),
        (_, false) => format!("`{}` (cannot be seen now)", user.path.shown()),
    };
    users.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// What would not open any more without the certificate: the databases that the keyring knows under it.
fn users(keyring: &Keyring, public: &PublicCertificate) -> Result<Vec<User>, Failure> {
    let mut users = databases_under(keyring, public.thumbprint())?;
    // A plain one was meant to be encrypted once, and was not.
    users.retain(|user| !inspect(&user.path).is_ok_and(|found| matches!(found.kind, Kind::Plain)));
    Ok(users)
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn days_are_read_as_sql_server_and_people_write_them() {
        assert_eq!(day("1970-01-02"), Ok(86_400));
        assert_eq!(day("19700102"), Ok(86_400));
        for wrong in
            ["", "1970", "1970-13-01", "1970-02-30", "1970/01/02", "197O0102", "1-9-7-0-01"]
        {
            assert!(day(wrong).is_err(), "{wrong}");
        }
    }
}
