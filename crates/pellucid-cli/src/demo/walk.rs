//! The steps of the demo, in order, each with its checks.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pellucid::hash::hex;
use pellucid::header::REGION_BYTES;
use pellucid::shown::Shown;

use super::commands::{Commands, Program};
use super::image::{io, Encoding, Form, Found, Image};
use super::source::{self, Choice};
use super::words::{file_url, quoted, visible};
use super::{dump, picture};
use crate::exit;
use crate::output::{Failure, Id, Output};

/// So much of a file is shown in hexadecimal.
const HEX_BYTES: u64 = 64;

/// Where it goes, and with what.
pub struct Walk<'a> {
    pub output: &'a Output,
    pub directory: PathBuf,
    pub commands: Commands<'a>,
    /// Not empty; the first one does what needs one program only.
    pub programs: Vec<Program>,
    /// Extensions that the schema needs.
    pub load: Vec<String>,
}

/// The database, and what was found out about it on the way.
struct Database {
    choice: Choice,
    form: Form,
    /// `choice.text` as it stands in the plain file.
    needle: Vec<u8>,
    plain: Image,
    plain_found: Found,
    /// What each program answered.
    answers: Vec<String>,
    dump: [u8; 32],
}

/// What a flipped bit did.
struct Flip {
    page: u64,
    offset: u64,
    error: String,
}

impl Walk<'_> {
    /// The whole walk, over a copy of `original` or Northwind.
    ///
    /// # Errors
    /// [`Failure`] at the first thing that is not as shown.
    pub fn go(&self, original: Option<&Path>) -> Result<ExitCode, Failure> {
        let database = self.a_database(original)?;
        self.what_a_thief_sees(&database)?;
        self.heading("3. One command");
        self.commands.show(&self.with_load(&["pellucid", "encrypt", "app.db"]))?;
        let (sealed, sealed_found) = self.what_a_thief_sees_now(&database)?;
        self.the_same_programs(&database)?;
        let flip = self.one_flipped_bit(&database)?;
        self.heading("7. Check and status");
        self.commands.show(&self.with_load(&["pellucid", "check", "app.db"]))?;
        self.commands.show(&["pellucid", "status", "app.db"])?;
        self.and_back(&database)?;

        self.heading("9. The picture");
        let name = original.and_then(Path::file_name).unwrap_or("app.db".as_ref());
        let subject = picture::Subject {
            name: &visible(&name.to_string_lossy()),
            plain_path: &self.directory.join("before.db"),
            plain: &database.plain,
            sealed: &sealed,
            text: &database.choice.text,
            needle: &database.needle,
            plain_found: &database.plain_found,
            sealed_found: &sealed_found,
            error: &flip.error,
        };
        let path = self.directory.join("picture.html");
        std::fs::write(&path, picture::page(&subject)?).map_err(|error| io(&path, error))?;
        self.done(&path, original, &database, &sealed, &sealed_found, &flip)
    }

    /// A command with the extensions that it needs.
    fn with_load<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        let load = self.load.iter().flat_map(|path| ["--load", path]);
        words.iter().copied().chain(load).collect()
    }

    fn heading(&self, text: &str) {
        self.output.line(format!("\n{}", self.output.bold(text)));
    }

    fn copy(&self, from: &str, to: &str) -> Result<PathBuf, Failure> {
        let (from, to) = (self.directory.join(from), self.directory.join(to));
        std::fs::copy(&from, &to).map_err(|error| io(&from, error))?;
        Ok(to)
    }

    /// Something is not as it was said to be.
    fn wrong(&self, message: &str) -> Failure {
        Failure::new(Id::NotAsShown, message, self.commands.look())
    }

    fn a_database(&self, original: Option<&Path>) -> Result<Database, Failure> {
        self.heading("1. A database");
        let app = self.directory.join("app.db");
        let northwind = match original {
            None => Some(source::northwind(&app)?),
            Some(original) => {
                source::copy(original, &app, &self.load)?;
                None
            }
        };
        self.commands.say(&match original {
            None => "app.db: Northwind, as an application has it".to_owned(),
            Some(original) => format!("app.db: a copy of {}", original.shown()),
        });
        let before = self.copy("app.db", "before.db")?;
        self.commands.write_scripts()?;
        let form = Form::read(&before)?;
        let plain = Image::plain(&before, form.page_size)?;
        let choice = match northwind {
            Some(choice) => choice,
            None => source::choose(&before, &plain, form.encoding)?,
        };
        let needle = form.encoding.bytes(&choice.text);
        let mut answers = Vec::new();
        for program in &self.programs {
            let words = program.query("app.db", &choice.query);
            let said = if answers.is_empty() {
                self.commands.show(&words)?
            } else {
                self.commands.ask(&words)?
            };
            answers.push(said.text);
        }
        let plain_found = plain.search(&needle)?;
        let dump = self.commands.dump(self.programs[0], "before.db", false)?;
        Ok(Database { choice, form, needle, plain, plain_found, answers, dump })
    }

    fn search_line(&self, database: &Database) -> String {
        let encoding = match database.form.encoding {
            Encoding::Utf8 => "",
            Encoding::Utf16Le => "-e l ",
            Encoding::Utf16Be => "-e b ",
        };
        format!("strings {encoding}app.db | grep -F {}", quoted(&database.choice.text))
    }

    fn hexdump(&self, image: &Image, at: u64) -> Result<(), Failure> {
        let from = if at == 0 { String::new() } else { format!("-s {at} ") };
        self.commands.typed(&format!("hexdump -C {from}-n {HEX_BYTES} app.db"));
        self.commands.say(&dump::hexdump(&image.read(at, HEX_BYTES)?, at));
        Ok(())
    }

    fn what_a_thief_sees(&self, database: &Database) -> Result<(), Failure> {
        self.heading("2. What a thief sees");
        self.commands.typed(&self.search_line(database));
        let Database { plain, plain_found, needle, form, .. } = database;
        let lines = dump::lines(plain, plain_found, needle, form.encoding)?;
        if lines.is_empty() {
            return Err(self.wrong("the text was not found in the plain database"));
        }
        self.commands.say(&lines.join("\n"));
        self.hexdump(plain, 0)
    }

    fn what_a_thief_sees_now(&self, database: &Database) -> Result<(Image, Found), Failure> {
        self.heading("4. What a thief sees now");
        self.commands.typed(&self.search_line(database));
        let sealed = Image::sealed(&self.directory.join("app.db"), database.form.page_size)?;
        let found = sealed.search(&database.needle)?;
        if found.count > 0 {
            return Err(self.wrong("the text is still there after `pellucid encrypt`"));
        }
        self.commands.say("(nothing)");
        self.hexdump(&sealed, REGION_BYTES)?;
        self.commands.say("SQLite without the key has nothing to open:");
        let query = self.programs[0].query("app.db", &database.choice.query);
        self.commands.show_failing(&query)?;
        Ok((sealed, found))
    }

    fn the_same_programs(&self, database: &Database) -> Result<(), Failure> {
        self.heading("5. The same programs, unchanged");
        for (program, before) in self.programs.iter().zip(&database.answers) {
            let query = program.query("app.db", &database.choice.query);
            let said = self.commands.show(&[&["pellucid", "run", "--"][..], &query].concat())?;
            if said.text != *before {
                let message =
                    format!("`{}` answers otherwise than before encryption", program.name());
                return Err(self.wrong(&message));
            }
        }
        if self.commands.dump(self.programs[0], "app.db", true)? != database.dump {
            return Err(self.wrong("the sealed database's dump differs from the plain one's"));
        }
        self.commands.say("Its whole dump is the plain database's, byte for byte.");
        Ok(())
    }

    fn one_flipped_bit(&self, database: &Database) -> Result<Flip, Failure> {
        self.heading("6. One flipped bit");
        let Choice { table, query, .. } = &database.choice;
        let root = format!(
            "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = '{}'",
            table.replace('\'', "''")
        );
        let ask = self.programs[0].query("app.db", &root);
        let said = self.commands.ask(&[&["pellucid", "run", "--"][..], &ask].concat())?;
        let page: u64 = said
            .text
            .trim()
            .parse()
            .map_err(|_| self.wrong("the table's first page could not be told"))?;
        let page_size = database.form.page_size;
        let offset = REGION_BYTES + page.saturating_sub(1) * page_size + page_size / 2;
        flip(&self.copy("app.db", "flipped.db")?, offset)?;
        self.commands.say(&format!(
            "In flipped.db, a copy, one bit of byte {offset} is flipped. That is in page {page}, where \
             table {table} begins."
        ));
        let ask = self.programs[0].query("flipped.db", query);
        let said = self.commands.show_failing(&[&["pellucid", "run", "--"][..], &ask].concat())?;
        let check = self.with_load(&["pellucid", "check", "flipped.db"]);
        let checked = self.commands.show_failing(&check)?;
        if checked.status != i32::from(exit::DAMAGE) {
            let message = format!("check said {}, not 3 (damage found)", checked.status);
            return Err(self.wrong(&message));
        }
        self.commands.say(&format!("(exit {}: damage found)", checked.status));
        let named = format!("page {page}:");
        if !said.text.contains(&named) || !checked.text.contains(&named) {
            return Err(self.wrong("the errors do not name the changed page"));
        }
        if !checked.text.contains(table.as_str()) {
            return Err(self.wrong("check does not name the table of the changed page"));
        }
        // The picture may be passed on; where the files are is nobody's business then.
        let error = format!("{}\n\n{}", said.shortened(), checked.shortened())
            .replace(&format!("{}/", self.directory.display()), "");
        Ok(Flip { page, offset, error })
    }

    fn and_back(&self, database: &Database) -> Result<(), Failure> {
        self.heading("8. And back");
        self.copy("app.db", "back.db")?;
        self.commands.show(&self.with_load(&["pellucid", "decrypt", "back.db"]))?;
        let load: Vec<_> = self.load.iter().map(|path| format!(".load {}", quoted(path))).collect();
        let load = load.iter().flat_map(|line| ["-cmd", line]);
        let mut ask = self.programs[0].query("back.db", "PRAGMA integrity_check");
        ask.splice(1..1, load);
        if self.commands.show(&ask)?.text.trim() != "ok" {
            return Err(self.wrong("SQLite's own check of the decrypted database is not clean"));
        }
        if self.commands.dump(self.programs[0], "back.db", false)? != database.dump {
            return Err(self.wrong("the decrypted database's dump differs from the first one"));
        }
        self.commands.say("Stock SQLite reads it, and its dump is the one it began with.");
        Ok(())
    }

    fn done(
        &self,
        picture: &Path,
        original: Option<&Path>,
        database: &Database,
        sealed: &Image,
        sealed_found: &Found,
        flip: &Flip,
    ) -> Result<ExitCode, Failure> {
        if self.output.is_quiet() {
            self.output.path(picture)?;
            return Ok(ExitCode::SUCCESS);
        }
        let url = file_url(picture);
        self.commands.say(&url);
        self.commands.say(&format!(
            "To go on by hand: cd {}; export PELLUCID_HOME=$PWD/keys{}",
            quoted(&self.directory.to_string_lossy()),
            path_to_program()
        ));
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let figures = |image: &Image, found: &Found| {
            serde_json::json!({
                "bytes": image.bytes, "pages": image.pages(), "entropy_bits_per_byte": image.entropy,
                "compresses_to": image.packed, "found": found.count,
            })
        };
        let programs: Vec<_> = self.programs.iter().map(|program| program.name()).collect();
        self.output.facts(&serde_json::json!({
            "picture": text(picture), "url": url, "directory": text(&self.directory),
            "database": original.map(|path| text(&std::path::absolute(path).unwrap_or_default())), "sealed": text(&self.directory.join("app.db")),
            "keys": text(&self.directory.join("keys")), "programs": programs,
            "page_size": database.form.page_size, "table": database.choice.table,
            "text": database.choice.text, "dump_sha256": hex(&database.dump),
            "flipped": {"page": flip.page, "byte": flip.offset, "error": flip.error},
            "plain_figures": figures(&database.plain, &database.plain_found),
            "sealed_figures": figures(sealed, sealed_found),
        }));
        Ok(ExitCode::SUCCESS)
    }
}

/// What to export so that the shell finds this program; nothing where it does already.
fn path_to_program() -> String {
    let Ok(program) = std::env::current_exe() else { return String::new() };
    let is_this = |path: PathBuf| path.canonicalize().is_ok_and(|path| path == program);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|one| one.join("pellucid")).find(|one| one.is_file());
    match program.parent() {
        Some(directory) if !found.is_some_and(is_this) => {
            format!(" PATH={}:$PATH", quoted(&directory.to_string_lossy()))
        }
        _ => String::new(),
    }
}

/// Flips one bit of the byte at `offset`.
fn flip(path: &Path, offset: u64) -> Result<(), Failure> {
    use std::os::unix::fs::FileExt;
    let change = || -> std::io::Result<()> {
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path)?;
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset)?;
        byte[0] ^= 0x10;
        file.write_all_at(&byte, offset)
    };
    change().map_err(|error| io(path, error))
}
