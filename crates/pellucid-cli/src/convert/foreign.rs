//! `encrypt --from`: a database of another encrypting SQLite, in a new sealed one.

mod arguments;
mod source;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use pellucid::hash::hex;
use pellucid::shown::Shown;
use pellucid_engine::convert::adopt::{adopt, check_place, Adoption};
use pellucid_vfs::seal_request::Protection;

pub use arguments::FromArgs;
use source::Foreign;

use super::{
    bytes, describe, make_default_certificate, protections, seconds, tell_of_key, tell_of_mount,
    warn_about_backup, Birth, EncryptArgs, Failure, Id, Keyring, Keys, Output, Stage, Unit,
};
use crate::interrupted;

/// Makes the new database, if one of another program is named. `None` if none is.
pub fn run(args: &EncryptArgs, output: &Output) -> Result<Option<ExitCode>, Failure> {
    let Some(arguments::Named(program)) = args.from.program else { return Ok(None) };
    let ([from], Some(to)) = (&args.databases[..], &args.from.to) else {
        return Err(usage(
            "`--from` makes one new database of one old one",
            "pellucid encrypt OLD.db --from sqlcipher --passphrase-file FILE --to NEW.db",
        ));
    };
    refuse_others(args)?;
    check_place(to).map_err(Failure::from)?;
    let about = |failure: Failure| failure.about(from);
    let settings = args.from.settings()?;
    let candidate =
        source::Candidate::open(from, &settings, args.waiting.options().timeout).map_err(about)?;
    let secret = args.from.secret(args.with.passphrase_file.as_deref())?;
    let (key, phrase) = (&args.from.new_key_file, &args.from.new_passphrase_file);
    let keys = Keys::read(key.as_deref(), phrase.as_deref(), true)?;
    let has_own_key = key.is_some() || phrase.is_some();
    if args.certificate.is_some() || !has_own_key {
        crate::owner::check(from, &Keyring::locate()?).map_err(about)?;
    }
    tell_of_mount(to, output);
    let protections = protections(args, keys)?;
    let source = candidate.unlock(program, &settings, &secret).map_err(about)?;
    drop(secret);
    write(args, from, to, Arc::new(source), &protections, output).map(Some)
}

fn write(
    args: &EncryptArgs,
    from: &Path,
    to: &Path,
    source: Arc<Foreign>,
    protections: &[Protection],
    output: &Output,
) -> Result<ExitCode, Failure> {
    pellucid_bundled::register().map_err(|error| {
        Failure::new(Id::SqliteNotStarted, error, "the bundled SQLite could not start")
    })?;
    let started = Instant::now();
    if !source.is_authenticated() {
        output.warning(format!(
            "`{}`: its pages have no tag, so that nobody can tell whether somebody changed them; SQLite's check is run over \
             them",
            from.shown()
        ));
    }
    let birth = || {
        if protections.iter().any(|one| matches!(one, Protection::Certificate(None))) {
            make_default_certificate(output)?;
        }
        let birth = Birth::new(args.algorithm, protections)?;
        if super::has_certificate(protections) {
            crate::broker::let_owner_in(from, birth.file_id(), output)?;
        }
        Ok(birth)
    };
    let job = Adoption {
        from,
        pages: source.clone(),
        was_wal: source.was_wal(),
        check: !source.is_authenticated(),
        to,
    };
    let bar = output.progress("encrypting", Unit::Bytes);
    let untouched = format!(
        "`{}` is as it was, and there is no `{}`; the next run removes what was written of it",
        from.shown(),
        to.shown()
    );
    interrupted::answer_with(format_args!("{untouched}"));
    let header = adopt(&job, birth, &args.waiting.options(), &mut |_: Stage, done, all| {
        bar.set_length(all.max(done));
        bar.set_position(done);
    });
    let header = header.map_err(|error| Failure::from(error).about(from))?;
    bar.finish_and_clear();
    let size = pellucid_files::paths::look(to).map_or(0, |found| found.len());
    let under: Vec<String> = protections.iter().map(describe).collect();
    output.line(format!("{}: {}", from.shown(), source.told()));
    output.line(format!(
        "{}: encrypted, {} under {}, {} in {}",
        to.shown(),
        args.algorithm,
        under.join(" and "),
        bytes(size),
        seconds(started.elapsed()),
    ));
    output.facts(&serde_json::json!({
        "database": crate::output::name(to), "state": "encrypted", "algorithm": args.algorithm.name(),
        "protectors": under, "bytes": size, "file_id": hex(&header.file_id),
        "from": {
            "database": crate::output::name(from), "settings": source.settings(),
            "authenticated": source.is_authenticated(), "log_commits": source.commits(),
        },
        "seconds": started.elapsed().as_secs_f64(),
    }));
    warn_about_backup(protections, output)?;
    tell_of_key(&[to.to_owned()], protections, output)?;
    output.line(format!(
        "`{}` is as it was, under its old key: remove it once `{}` is what you expect",
        from.shown(),
        to.shown()
    ));
    Ok(ExitCode::SUCCESS)
}

/// What `encrypt` takes that has no sense with `--from`.
fn refuse_others(args: &EncryptArgs) -> Result<(), Failure> {
    if args.with.key_file.is_some() {
        return Err(usage(
            "`--key-file` is a key of pellucid's, which the old database does not have",
            "name the old raw key with `--raw-key-file`, and a new key file with `--new-key-file`",
        ));
    }
    if args.background {
        return Err(usage(
            "a new database cannot be made in the background",
            "leave out `--background`",
        ));
    }
    Ok(())
}

fn usage(message: &str, hint: &str) -> Failure {
    Failure { exit: crate::exit::USAGE, ..Failure::new(Id::ForeignSettings, message, hint) }
}
