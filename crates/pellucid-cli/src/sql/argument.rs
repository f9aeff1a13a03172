//! Whether the value of a scripting variable that an argument gives becomes a password of a statement.
//!
//! Before anything is executed, the scripts that can be read twice are read with a mark in the place of each such value:
//! where masking the secrets of a batch takes a mark away, the value is one. What comes from standard input or is typed is
//! looked at batch by batch, by the values themselves.

use std::io::{BufRead, Cursor};

use pellucid_tsql::batch::{Files, Item, Script, ScriptError, ScriptErrorKind};
use pellucid_tsql::secret::redact_behind_the_word;
use zeroize::Zeroizing;

use super::files::Disk;
use super::settings;
use super::SqlArgs;

/// A number, so that it can stand wherever a script counts.
const MARK: &str = "917364820";
/// A value shorter than any password is looked for as a whole literal only: it may be a part of any word.
const PART_CHARS_LEAST: usize = 8;

/// Values of variables that arguments have given.
#[derive(Default)]
pub struct Given(Vec<Zeroizing<String>>);

impl Given {
    /// Those of -v, and the names of -U, -S and -H.
    pub fn of(args: &SqlArgs) -> Self {
        let names = [&args.user, &args.server, &args.workstation].into_iter().flatten();
        let values = args.variable.iter().map(|(_, value)| value).chain(names);
        let values = values.map(|value| Zeroizing::new(value.clone()));
        Self(values.filter(|value| !value.is_empty()).collect())
    }

    /// Whether one of them is a secret of `batch`.
    pub fn is_secret_of(&self, batch: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let shown = redact_behind_the_word(batch);
        let hides = |text: &str| batch.matches(text).count() > shown.matches(text).count();
        self.0.iter().any(|value| {
            let literal = Zeroizing::new(value.replace('\'', "''"));
            let quoted = [("'", "'"), ("''", "''"), ("\"", "\"")];
            let whole = |(before, behind): (&str, &str)| {
                hides(&Zeroizing::new(format!("{before}{}{behind}", *literal)))
            };
            quoted.into_iter().any(whole)
                || (value.chars().count() >= PART_CHARS_LEAST && hides(value))
        })
    }
}

/// Whether a script that is given, or the text of -Q or -q, uses the value of an argument as a secret.
pub fn becomes_secret(args: &SqlArgs, disk: &Disk) -> bool {
    let mut texts = args.query.iter().chain(&args.initial).flat_map(|text| text.lines());
    let given = Given::of(args);
    if given.0.is_empty() && texts.all(|line| setting(line).is_none()) {
        return false;
    }
    let marks = |text: &str| text.matches(MARK).count();
    let hides_mark = |batch: &str| marks(batch) > marks(&redact_behind_the_word(batch));
    let mark = |_: &str| MARK.to_owned();
    let is_one = |item: &Result<Item, ScriptError>, says: &dyn Fn(&str) -> bool| match item {
        Ok(Item::Batch(batch) | Item::Exit { batch: Some(batch), .. }) => says(batch.text()),
        _ => false,
    };
    // A value may bring its quotes along: then a mark in its place is no literal.
    find(args, disk, &mark, &|item| is_one(item, &hides_mark)).is_some()
        || find(args, disk, &str::to_owned, &|item| {
            is_one(item, &|batch| given.is_secret_of(batch))
        })
        .is_some()
}

/// The first command of a script that would do something else than in sqlcmd: it is refused before anything is executed.
pub fn refused(args: &SqlArgs, disk: &Disk) -> Option<ScriptError> {
    let is_one = |item: &Result<Item, ScriptError>| match item {
        Err(error) => matches!(
            error.kind,
            ScriptErrorKind::Program { .. } | ScriptErrorKind::Elsewhere { .. }
        ),
        Ok(_) => false,
    };
    find(args, disk, &str::to_owned, &is_one)?.err()
}

/// The first item of a script of which `is_one` says so, with what `stand_in` gives for each value of an argument.
fn find(
    args: &SqlArgs,
    disk: &Disk,
    stand_in: &dyn Fn(&str) -> String,
    is_one: &dyn Fn(&Result<Item, ScriptError>) -> bool,
) -> Option<Result<Item, ScriptError>> {
    let mut variables = disk.with_dollar(settings::variables(args, stand_in));
    let mut files = Regular(disk.clone());
    let mut readers = Vec::new();
    for text in args.query.iter().chain(&args.initial) {
        let line = |line: &str| match setting(line) {
            Some((name, value)) => format!(":setvar {name} {}", stand_in(value)),
            None => line.to_owned(),
        };
        let lines: Vec<_> = text.lines().map(line).collect();
        let reader = disk.read(Cursor::new(lines.join("\n").into_bytes())).ok();
        readers.extend(reader.map(|reader| ("command line", reader)));
    }
    let names = args.input.iter().filter_map(|path| path.to_str());
    readers.extend(names.filter_map(|name| Some((name, files.open(name).ok()?))));
    for (name, reader) in readers {
        let mut script = Script::new(name, reader, files.clone(), std::mem::take(&mut variables))
            .with(disk.dialect.clone());
        // Any other thing that is wrong with a script is said when it is executed.
        let mut is_over = false;
        let found = script.by_ref().find(|item| {
            is_over |= matches!(item, Ok(Item::Quit | Item::Exit { .. }));
            is_one(item)
        });
        if found.is_some() || is_over {
            return found;
        }
        variables = std::mem::take(&mut script.variables);
    }
    None
}

/// The name and value of the variable that the line sets.
fn setting(line: &str) -> Option<(&str, &str)> {
    let words = line.trim_start();
    let is_setting = words.get(..7).is_some_and(|word| word.eq_ignore_ascii_case(":setvar"));
    let (name, value) = words.get(7..)?.trim_start().split_once(char::is_whitespace)?;
    is_setting.then_some((name, value.trim()))
}

/// Opens regular files only: what a pipe gives, it gives once.
#[derive(Debug, Clone)]
struct Regular(Disk);

impl Files for Regular {
    fn open(&mut self, name: &str) -> std::io::Result<Box<dyn BufRead>> {
        self.0.open_by(name, pellucid_files::regular::open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_secrets_where_a_password_stands_and_nowhere_else() {
        let values = ["Pa55word-x", "db", "O'Neill's"].map(|one| Zeroizing::new(one.to_owned()));
        let given = Given(values.to_vec());
        for batch in [
            "OPEN MASTER KEY DECRYPTION BY PASSWORD = 'Pa55word-x'",
            "OPEN MASTER KEY DECRYPTION BY PASSWORD = N'xPa55word-xy'",
            "EXEC('OPEN MASTER KEY DECRYPTION BY PASSWORD = ''Pa55word-x''')",
            "CREATE CREDENTIAL c WITH IDENTITY = 'x', SECRET = 'db'",
            "EXEC('CREATE CREDENTIAL c WITH IDENTITY = ''x'', SECRET = ''db''')",
            "OPEN MASTER KEY DECRYPTION BY PASSWORD = 'O''Neill''s'",
        ] {
            assert!(given.is_secret_of(batch), "{batch}");
        }
        for batch in [
            "SELECT 'Pa55word-x', 'db'",
            "BACKUP DATABASE db TO DISK = 'db'; OPEN MASTER KEY DECRYPTION BY PASSWORD = 'another db'",
            "",
        ] {
            assert!(!given.is_secret_of(batch), "{batch}");
        }
    }

    #[test]
    fn a_variable_that_an_argument_sets_is_found() {
        assert_eq!(setting("  :SetVar pw \"a b\""), Some(("pw", "\"a b\"")));
        assert_eq!(setting("PRINT ':setvar'"), None);
    }
}
