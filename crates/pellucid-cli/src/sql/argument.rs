//! Whether the value of a scripting variable that an argument gives becomes a password of a statement.
//!
//! Before anything is executed, the scripts that can be read twice are read with a mark in the place of each such value:
//! where masking the secrets of a batch takes a mark away, the value is one. What comes from standard input or is typed is
//! looked at batch by batch, by the values themselves.

use std::io::{BufRead, BufReader, Cursor};

use pellucid_tsql::batch::{Files, Item, Script, Variables};
use pellucid_tsql::secret::redact;
use zeroize::Zeroizing;

use super::files::Disk;
use super::SqlArgs;

/// A number, so that it can stand wherever a script counts.
const MARK: &str = "917364820";
/// A value shorter than any password is looked for as a whole literal only: it may be a part of any word.
const PART_CHARS_LEAST: usize = 8;

/// Values of variables that arguments have given.
#[derive(Default)]
pub struct Given(Vec<Zeroizing<String>>);

impl Given {
    /// Those of -v.
    pub fn of(args: &SqlArgs) -> Self {
        let values = args.variable.iter().map(|(_, value)| Zeroizing::new(value.clone()));
        Self(values.filter(|value| !value.is_empty()).collect())
    }

    /// Whether one of them is a secret of `batch`.
    pub fn is_secret_of(&self, batch: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let shown = redact(batch);
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
    if args.variable.is_empty() && texts.all(|line| setting(line).is_none()) {
        return false;
    }
    let marks = |text: &str| text.matches(MARK).count();
    let hides_mark = |batch: &str| marks(batch) > marks(&redact(batch));
    let mark = |_: &str| MARK.to_owned();
    let given = Given::of(args);
    // A value may bring its quotes along: then a mark in its place is no literal.
    any_batch(args, disk, &mark, &hides_mark)
        || any_batch(args, disk, &str::to_owned, &|batch| given.is_secret_of(batch))
}

/// Whether `is_one` says so of a batch, with what `stand_in` gives for each value of an argument.
fn any_batch(
    args: &SqlArgs,
    disk: &Disk,
    stand_in: &dyn Fn(&str) -> String,
    is_one: &dyn Fn(&str) -> bool,
) -> bool {
    let mut variables = Variables::with_environment();
    for (name, value) in &args.variable {
        variables.set(name, Some(Zeroizing::new(stand_in(value))));
    }
    let mut variables = disk.with_dollar(variables);
    let mut files = Regular(disk.clone());
    let mut readers = Vec::new();
    for text in args.query.iter().chain(&args.initial) {
        let line = |line: &str| match setting(line) {
            Some((name, value)) => format!(":setvar {name} {}", stand_in(value)),
            None => line.to_owned(),
        };
        let lines: Vec<_> = text.lines().map(line).collect();
        readers.extend(disk.read(Cursor::new(lines.join("\n").into_bytes())).ok());
    }
    let names = args.input.iter().filter_map(|path| path.to_str());
    readers.extend(names.filter_map(|name| files.open(name).ok()));
    readers.into_iter().any(|reader| {
        let mut script = Script::new("", reader, files.clone(), std::mem::take(&mut variables));
        // What is wrong with a script is said when it is executed.
        let is_found = script.by_ref().map_while(Result::ok).any(|item| match item {
            Item::Batch(batch) => is_one(batch.text()),
            _ => false,
        });
        variables = std::mem::take(&mut script.variables);
        is_found
    })
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
        let path = super::drives::file(&self.0.drives, name);
        self.0.read(BufReader::new(pellucid_files::regular::open(&path)?))
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
