//! What sqlcmd's own commands show and do: `:listvar`, `:help`, `EXIT(..)`.

use pellucid_sql::features::State;
use pellucid_tsql::batch::Variables;

use super::screen::First;
use super::server;

/// What `:help` shows.
pub const HELP: &str = "\
GO [COUNT]            executes what was typed, so many times
:r FILE               reads a file as if it were typed
:setvar NAME [VALUE]  sets a variable for $(NAME), or takes it away
:listvar              shows the variables
:on error exit        leaves at an error; :on error ignore goes on
:out FILE             writes results to a file; :out stdout shows them again
:error FILE           writes errors to a file; :perftrace FILE the times of -p
:xml on               writes values one behind the other; :xml off in columns
:connect .            begins a new session
:serverlist           shows the servers
:list                 shows what was typed since GO, without secrets
:reset, reset         forgets it, as Ctrl-C does
exit(QUERY)           executes it and leaves with its value as exit status
:quit, quit, exit     leaves, as Ctrl-D does
";

/// The commands of sqlcmd, and what becomes of each.
pub const COMMANDS: &[(&str, State)] = &[
    ("!!", State::Refused),
    (":!!", State::Refused),
    (":connect", State::Works),
    (":ed", State::Refused),
    (":error", State::Works),
    (":exit", State::Works),
    (":help", State::Works),
    (":list", State::Works),
    (":listvar", State::Works),
    (":on error", State::Works),
    (":out", State::Works),
    (":perftrace", State::Works),
    (":quit", State::Works),
    (":r", State::Works),
    (":reset", State::Works),
    (":serverlist", State::Works),
    (":setvar", State::Works),
    (":xml", State::Works),
    ("ed", State::Refused),
    ("exit", State::Works),
    ("go", State::Works),
    ("quit", State::Works),
    ("reset", State::Works),
];

/// Words in the names of variables whose values may be secrets.
const SECRET: &[&str] = &["PASS", "PWD", "PW", "SECRET", "KEY", "TOKEN", "CREDENTIAL"];

/// The variables that are set, sqlcmd's own first; no value of one that is named as a secret is.
pub fn variables(variables: &Variables) -> String {
    let (mut own, mut others) = (String::new(), String::new());
    for (name, value) in variables.all() {
        let is_secret = SECRET.iter().any(|word| name.contains(word));
        match () {
            () if name == super::files::DOLLAR => {}
            () if is_secret && name != "SQLCMDPACKETSIZE" => {
                others.push_str(&format!("{name} = \"***\"\n"));
            }
            () if name.starts_with("SQLCMD") => own.push_str(&format!("{name} = \"{value}\"\n")),
            () => others.push_str(&format!("{name} = \"{value}\"\n")),
        }
    }
    own + &others
}

/// The servers, which is this machine.
pub fn servers(has_heading: bool) -> String {
    match has_heading {
        true => format!("\nServers:\n   {}\n", server::machine()),
        false => format!("{}\n", server::machine()),
    }
}

/// sqlcmd's values where `EXIT(..)` has none: an error came first, there was no row, it was no number.
const ERROR_CAME_FIRST: i64 = -100;
const NO_ROW: i64 = -101;
const NO_NUMBER: i64 = -102;

/// The exit status that `EXIT(..)` asks for: the lowest byte of its value, as for every program, but 255 in the place of a 0
/// that the value is not.
pub fn status(first: &First, failed: bool) -> u8 {
    let value = match first {
        First::NoRow if failed => ERROR_CAME_FIRST,
        First::NoRow => NO_ROW,
        First::Value(text) => text.as_deref().and_then(whole).unwrap_or(NO_NUMBER),
    };
    match value.to_le_bytes()[0] {
        0 if value != 0 => u8::MAX,
        byte => byte,
    }
}

/// The whole number that `text` is or begins with, before its point.
fn whole(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let number: f64 = text.parse().ok()?;
    (number.abs() < 2_147_483_648.0).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zeroize::Zeroizing;

    #[test]
    fn an_exit_status_is_the_value_of_the_query() {
        for (text, code) in [
            ("0", 0),
            ("3", 3),
            ("255", 255),
            ("256", 255),
            ("257", 1),
            ("-1", 255),
            (" 7 ", 7),
            ("2.9", 2),
            (".5", 0),
            ("many", 154),
            ("", 154),
        ] {
            assert_eq!(status(&First::Value(Some(text.to_owned())), false), code, "{text}");
        }
        assert_eq!(status(&First::Value(None), false), 154);
        assert_eq!(status(&First::NoRow, false), 155);
        assert_eq!(status(&First::NoRow, true), 156);
    }

    #[test]
    fn no_value_of_a_secret_is_shown() {
        let mut all = Variables::new();
        for (name, value) in [
            ("db", "sales"),
            ("MasterPassword", "MARKER"),
            ("sa_pw", "MARKER"),
            ("SQLCMDPASSWORD", "MARKER"),
            ("SQLCMDPACKETSIZE", "4096"),
        ] {
            all.set(name, Some(Zeroizing::new(value.to_owned())));
        }
        let shown = variables(&all);
        assert!(!shown.contains("MARKER"), "{shown}");
        assert!(shown.starts_with("SQLCMDPACKETSIZE = \"4096\"\n"), "{shown}");
        assert!(shown.contains("DB = \"sales\"\n"), "{shown}");
    }
}
