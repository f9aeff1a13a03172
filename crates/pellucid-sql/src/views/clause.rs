//! The CHECK, REFERENCES and DEFAULT of a table, which SQLite keeps in the text that made it.
//!
//! Source: SQLite's "CREATE TABLE" (<https://sqlite.org/lang_createtable.html>). Whoever made the table wrote the text.

use crate::execute::{first_name_of, unquoted};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Reference,
    /// With its condition, in parentheses.
    Check(String),
    /// Of the column of this name.
    Default(String),
}

/// A constraint in the text of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clause {
    pub kind: Kind,
    pub name: Option<String>,
}

/// Those of the text of a table, in its order; none of a text of another form.
pub(super) fn clauses(sql: &str) -> Vec<Clause> {
    let Some(head) = sql.strip_prefix("CREATE TABLE ") else { return Vec::new() };
    let text = without_comments(head);
    let parts = parts(&text).unwrap_or_default();
    parts.into_iter().flat_map(clauses_of).collect()
}

/// The text with a space for each comment.
fn without_comments(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(next) = rest.chars().next() {
        let closed_by = match next {
            '"' | '`' | '\'' => Some(next),
            '[' => Some(']'),
            _ => None,
        };
        let is_comment = rest.starts_with("--") || rest.starts_with("/*");
        let length = match (is_comment, closed_by) {
            (true, _) if next == '-' => rest.find('\n'),
            (true, _) => rest[2..].find("*/").map(|at| at + 4),
            (false, Some(close)) => rest[1..].find(close).map(|at| at + 2),
            (false, None) => Some(next.len_utf8()),
        };
        let (one, others) = rest.split_at(length.unwrap_or(rest.len()));
        text.push_str(if is_comment { " " } else { one });
        rest = others;
    }
    text
}

/// The columns and constraints of a table, between its parentheses; what is behind them says nothing of those.
fn parts(text: &str) -> Option<Vec<&str>> {
    let (mut depth, mut start, mut parts) = (0_u32, 0, Vec::new());
    for (at, next) in unquoted(text) {
        match next {
            '(' => {
                depth += 1;
                if depth == 1 {
                    start = at + 1;
                }
            }
            ',' if depth == 1 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            ')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    parts.push(&text[start..at]);
                    return Some(parts);
                }
            }
            _ => {}
        }
    }
    None
}

/// Those of a part of the text: a column, or a constraint of the table.
fn clauses_of(part: &str) -> Vec<Clause> {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii();
    let column = first_name_of(part).unwrap_or_default();
    let (mut depth, mut clauses, mut name) = (0_u32, Vec::new(), None);
    // Where the last character ended, if it was one of a word: a quote between ends the word.
    let mut end_of_word = None;
    for (at, next) in unquoted(part) {
        let starts = is_of_word(next) && end_of_word != Some(at);
        end_of_word = is_of_word(next).then_some(at + next.len_utf8());
        match next {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if starts && depth == 0 => {
                let rest = &part[at..];
                let (word, rest) =
                    rest.split_at(rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()));
                match word.to_ascii_uppercase().as_str() {
                    "CONSTRAINT" => name = first_name_of(rest),
                    "REFERENCES" => {
                        clauses.push(Clause { kind: Kind::Reference, name: name.take() });
                    }
                    "CHECK" => {
                        let condition = in_parentheses(rest);
                        clauses.push(Clause { kind: Kind::Check(condition), name: name.take() });
                    }
                    "DEFAULT" => {
                        let column = column.clone();
                        clauses.push(Clause { kind: Kind::Default(column), name: name.take() });
                    }
                    "UNIQUE" | "PRIMARY" | "NULL" | "COLLATE" | "GENERATED" | "AS" => name = None,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    clauses
}

/// `(..)` at the beginning of a text.
fn in_parentheses(text: &str) -> String {
    let mut depth = 0_u32;
    let mut start = None;
    if !text.trim_start().starts_with('(') {
        return String::new();
    }
    for (at, next) in unquoted(text) {
        match (next, start) {
            ('(', _) => {
                depth += 1;
                start.get_or_insert(at);
            }
            (')', Some(start)) => {
                depth -= 1;
                if depth == 0 {
                    return text[start..=at].to_owned();
                }
            }
            _ => {}
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(condition: &str, name: Option<&str>) -> Clause {
        Clause { kind: Kind::Check(condition.to_owned()), name: name.map(str::to_owned) }
    }

    fn default(column: &str, name: Option<&str>) -> Clause {
        Clause { kind: Kind::Default(column.to_owned()), name: name.map(str::to_owned) }
    }

    fn reference(name: Option<&str>) -> Clause {
        Clause { kind: Kind::Reference, name: name.map(str::to_owned) }
    }

    #[test]
    fn constraints_are_found_in_the_text() {
        assert_eq!(
            clauses_of("\"a\" int CONSTRAINT \"c k\" CHECK (a > 0 AND b <> ')') REFERENCES u(x)"),
            [check("(a > 0 AND b <> ')')", Some("c k")), reference(None)]
        );
        assert_eq!(
            clauses_of("CONSTRAINT fk FOREIGN KEY (a) REFERENCES u(check)"),
            [reference(Some("fk"))]
        );
        assert_eq!(clauses_of("\"check\" int DEFAULT ('check (1)')"), [default("check", None)]);
        assert_eq!(
            clauses_of("a int CONSTRAINT d DEFAULT 1 check(a in (1, 2))"),
            [default("a", Some("d")), check("(a in (1, 2))", None)]
        );
    }

    #[test]
    fn comments_and_quotes_hide_what_is_in_them() {
        let sql = "CREATE TABLE \"t(--\"(a int, -- it's CHECK (x), (\n\
                   [b),CHECK(] int /* ' CHECK (y) */ CONSTRAINT[k]CHECK(\"a\"\">\" > /* ) */ 0), \
                   `c``(` text DEFAULT '/* it''s ), CHECK (z)' CONSTRAINT 'l' CHECK (c <> '--'), \
                   écheck int, checked$check int, CHECK (a < 9) CHECK (a < 8)) WITHOUT ROWID, STRICT -- CHECK (w)";
        let expected = [
            check("(\"a\"\">\" >   0)", Some("k")),
            default("c`(", None),
            check("(c <> '--')", Some("l")),
            check("(a < 9)", None),
            check("(a < 8)", None),
        ];
        assert_eq!(clauses(sql), expected);
    }

    /// Each word is looked at once, however many there are.
    #[test]
    fn a_long_text_takes_as_long_as_it_is() {
        for word in ["CONSTRAINT c ", "DEFAULT 1 ", "CHECK "] {
            clauses(&format!("CREATE TABLE t(a int {})", word.repeat(100_000)));
        }
    }

    #[test]
    fn no_text_is_too_odd() {
        let odd = [
            "(",
            ")",
            ",",
            "'",
            "\"",
            "[",
            "]",
            "`",
            "--",
            "/*",
            "*/",
            "\n",
            "é",
            " CHECK",
            "CONSTRAINT ",
            "REFERENCES",
            "x",
        ];
        for first in odd {
            for second in odd {
                for third in odd {
                    clauses(&format!("CREATE TABLE {first}{second}{third}"));
                    clauses(&format!("CREATE TABLE t({first}{second}{third}) STRICT"));
                    clauses(&format!("CREATE TABLE t(CHECK{first}{second}{third}"));
                    clauses_of(&format!("CHECK{first}{second}{third}"));
                }
            }
        }
        for sql in
            ["", "CREATE TABLE ", "CREATE VIRTUAL TABLE t USING fts5(a, CHECK (a))", "SELECT (1)"]
        {
            assert_eq!(clauses(sql), []);
        }
    }
}
