//! What Tab offers: words of statements and of their options, databases, certificates, views and procedures.

use std::cell::RefCell;
use std::rc::Rc;

use pellucid_sql::session::Session;
use pellucid_tsql::keyword::Keyword;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

/// Commands of the prompt.
const COMMANDS: [&str; 7] = [":help", ":list", ":on error", ":quit", ":r", ":reset", ":setvar"];

/// Views, tables and procedures that administrators ask for.
const OBJECTS: [&str; 20] = [
    "msdb.dbo.backupfile",
    "msdb.dbo.backupmediafamily",
    "msdb.dbo.backupmediaset",
    "msdb.dbo.backupset",
    "msdb.dbo.restorehistory",
    "sp_configure",
    "sp_delete_backuphistory",
    "sp_executesql",
    "sp_helpdb",
    "sp_helpfile",
    "sp_readerrorlog",
    "sys.certificates",
    "sys.databases",
    "sys.dm_database_encryption_keys",
    "sys.dm_exec_requests",
    "sys.key_encryptions",
    "sys.master_files",
    "sys.symmetric_keys",
    "xp_instance_regread",
    "xp_instance_regwrite",
];

/// Completes words at the prompt.
pub struct Completion {
    session: Rc<RefCell<Session>>,
}

impl Completion {
    /// With the databases and certificates that `session` sees.
    pub fn new(session: Rc<RefCell<Session>>) -> Self {
        Self { session }
    }
}

impl Completer for Completion {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let (start, word) = word_at(line, position);
        let mut found = Vec::new();
        if let Ok(session) = self.session.try_borrow() {
            let before = line[..start].trim_end_matches(['[', ' ', '=']);
            let last = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            // Names come first where one is expected; asking for certificates reads the keyring.
            if last.eq_ignore_ascii_case("CERTIFICATE") {
                found = session.certificate_names();
            } else {
                found = session.database_names();
            }
            found.retain(|name| begins(name, word));
        }
        if !line[..start].ends_with('[') {
            found.extend(words(word));
        }
        Ok((start, found))
    }
}

/// Words that begin so, as they are typed: in small letters if `word` is.
fn words(word: &str) -> Vec<String> {
    if word.is_empty() {
        return Vec::new();
    }
    let is_small = !word.chars().any(char::is_uppercase);
    let keyword = |keyword: &Keyword| match is_small {
        true => keyword.text().to_lowercase(),
        false => keyword.text().to_owned(),
    };
    let mut found: Vec<String> =
        Keyword::EVERY.iter().filter(|keyword| begins(keyword.text(), word)).map(keyword).collect();
    found.sort();
    let others = COMMANDS.iter().chain(&OBJECTS).filter(|name| begins(name, word));
    found.extend(others.map(|name| (*name).to_owned()));
    found
}

fn begins(name: &str, word: &str) -> bool {
    let mut letters = name.chars().flat_map(char::to_lowercase);
    word.chars().flat_map(char::to_lowercase).all(|letter| letters.next() == Some(letter))
}

/// The word that ends at `position`, and where it begins.
fn word_at(line: &str, position: usize) -> (usize, &str) {
    let before = &line[..position];
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '@' | '#' | '$');
    let start = before
        .rfind(|c| !is_part(c))
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    (start, &before[start..])
}

impl Hinter for Completion {
    type Hint = String;
}

impl Highlighter for Completion {}

impl Validator for Completion {}

impl Helper for Completion {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_ends_where_one_stands() {
        assert_eq!(word_at("BACKUP DATABASE [Ad", 19), (17, "Ad"));
        assert_eq!(word_at("select * from sys.da where", 20), (14, "sys.da"));
        assert_eq!(word_at("", 0), (0, ""));
        assert_eq!(word_at("é", 2), (0, "é"));
        assert_eq!(word_at("('ü", 4), (2, "ü"));
    }

    #[test]
    fn words_are_offered_as_they_are_typed() {
        assert!(words("BACK").contains(&"BACKUP".to_owned()));
        assert!(words("compr").contains(&"compression".to_owned()));
        assert_eq!(words("sys.dm_da"), ["sys.dm_database_encryption_keys"]);
        assert_eq!(words(":qu"), [":quit"]);
        assert_eq!(words("SP_HELPF"), ["sp_helpfile"]);
        assert!(words("").is_empty() && words("nothing so").is_empty());
    }
}
