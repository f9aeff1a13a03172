//! What the text of a table of SQLite's says of its keys and references: whoever made it wrote the text.

/// A PRIMARY KEY or UNIQUE in the text of a table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Constraint {
    pub name: String,
    pub is_primary: bool,
    pub columns: Vec<String>,
}

/// The named PRIMARY KEY and UNIQUE constraints in the text of a table, as SQLite keeps it.
pub(crate) fn constraints(sql: &str) -> Vec<Constraint> {
    let tokens = tokens(sql);
    let mut found = Vec::new();
    // A constraint of a column is about the column whose definition it is in.
    let mut column: Option<String> = None;
    let (mut depth, mut starts) = (0_u32, false);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            "(" => {
                depth += 1;
                starts = depth == 1;
            }
            ")" => depth = depth.saturating_sub(1),
            "," if depth == 1 => starts = true,
            word if depth == 1 && word.eq_ignore_ascii_case("CONSTRAINT") => {
                let name = tokens.get(at + 1).map(|token| name_of(token)).unwrap_or_default();
                let kind = tokens.get(at + 2).map(|token| token.to_uppercase()).unwrap_or_default();
                let is_primary = kind == "PRIMARY";
                if is_primary || kind == "UNIQUE" {
                    let open = at + if is_primary { 4 } else { 3 };
                    let columns = match tokens.get(open).map(String::as_str) {
                        Some("(") if starts => list(&tokens[open + 1..]),
                        _ => column.clone().into_iter().collect(),
                    };
                    found.push(Constraint { name, is_primary, columns });
                }
                starts = false;
                at += 2;
            }
            word if depth == 1 && starts => {
                column = Some(name_of(word));
                starts = false;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The names of the foreign keys in the text of a table, in its order; none of one without.
pub(in crate::execute) fn reference_names(sql: &str) -> Vec<Option<String>> {
    let tokens = tokens(sql);
    let (mut names, mut name, mut depth) = (Vec::new(), None, 0_u32);
    for (at, token) in tokens.iter().enumerate() {
        match token.to_ascii_uppercase().as_str() {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            "," if depth == 1 => name = None,
            "CONSTRAINT" if depth == 1 => name = tokens.get(at + 1).map(|token| name_of(token)),
            "PRIMARY" | "UNIQUE" | "CHECK" | "DEFAULT" | "NOT" | "COLLATE" if depth == 1 => {
                name = None;
            }
            "REFERENCES" if depth == 1 => names.push(name.take()),
            _ => {}
        }
    }
    names
}

/// The names up to the closing bracket; directions and collations aside.
fn list(tokens: &[String]) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_first = true;
    for token in tokens {
        match token.as_str() {
            ")" => break,
            "," => is_first = true,
            name if is_first => {
                names.push(name_of(name));
                is_first = false;
            }
            _ => {}
        }
    }
    names
}

/// The name that a column or constraint begins with.
pub(crate) fn first_name(part: &str) -> Option<String> {
    each_token(part).next().map(|token| name_of(&token))
}

/// Whether a column's text declares it so.
pub(in crate::execute) fn is_of_xml(part: &str) -> bool {
    let is_xml =
        |token: &String| ["xml", "xmltext"].iter().any(|xml| token.eq_ignore_ascii_case(xml));
    tokens(part).get(1).is_some_and(is_xml)
}

fn name_of(token: &str) -> String {
    let mut chars = token.chars();
    match (chars.next(), token.chars().last()) {
        (Some('"'), Some('"')) if token.len() > 1 => {
            token[1..token.len() - 1].replace("\"\"", "\"")
        }
        (Some('\''), Some('\'')) if token.len() > 1 => token[1..token.len() - 1].replace("''", "'"),
        (Some('['), Some(']')) if token.len() > 1 => token[1..token.len() - 1].to_owned(),
        (Some('`'), Some('`')) if token.len() > 1 => token[1..token.len() - 1].replace("``", "`"),
        _ => token.to_owned(),
    }
}

/// Words, quoted names and strings, and signs.
fn tokens(sql: &str) -> Vec<String> {
    each_token(sql).collect()
}

fn each_token(sql: &str) -> impl Iterator<Item = String> + '_ {
    let mut chars = sql.char_indices().peekable();
    std::iter::from_fn(move || loop {
        let (start, next) = chars.next()?;
        let close = match next {
            '"' | '`' | '\'' => Some(next),
            '[' => Some(']'),
            _ => None,
        };
        let mut end = start + next.len_utf8();
        if let Some(close) = close {
            while let Some((at, other)) = chars.next() {
                end = at + other.len_utf8();
                if other == close {
                    match chars.peek() {
                        Some((_, again)) if *again == close && close != ']' => {
                            chars.next();
                        }
                        _ => break,
                    }
                }
            }
        } else if next.is_alphanumeric() || next == '_' {
            while let Some((at, other)) = chars.peek().copied() {
                if !(other.is_alphanumeric() || other == '_' || other == '$') {
                    break;
                }
                end = at + other.len_utf8();
                chars.next();
            }
        } else if next.is_whitespace() {
            continue;
        }
        return Some(sql[start..end].to_owned());
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_are_found_in_the_text_of_a_table() {
        let sql = "CREATE TABLE \"Application.People\"(\"PersonID\" int NOT NULL CONSTRAINT \"PK_People\" PRIMARY KEY, \
                   name nvarchar(50) COLLATE NOCASE CONSTRAINT [UQ one] UNIQUE, a int, b int, \
                   CONSTRAINT \"UQ \"\"two\"\"\" UNIQUE (\"a\" DESC, b), CONSTRAINT fk FOREIGN KEY (a) REFERENCES t(x), \
                   CHECK (a > 1))";
        let found = constraints(sql);
        let of = |name: &str, is_primary, columns: &[&str]| Constraint {
            name: name.to_owned(),
            is_primary,
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
        };
        let expected = [
            of("PK_People", true, &["PersonID"]),
            of("UQ one", false, &["name"]),
            of("UQ \"two\"", false, &["a", "b"]),
        ];
        assert_eq!(found, expected);
        assert_eq!(reference_names(sql), [Some("fk".to_owned())]);
        let sql = "CREATE TABLE t(\"references\" int CONSTRAINT d DEFAULT 1 REFERENCES p(a) ON DELETE SET DEFAULT, \
                   b int CONSTRAINT \"of b\" REFERENCES p, CONSTRAINT c FOREIGN KEY (a, b) REFERENCES p(a, b))";
        let names = [None, Some("of b".to_owned()), Some("c".to_owned())];
        assert_eq!(reference_names(sql), names);
        assert_eq!(constraints("CREATE TABLE t(x)"), []);
        assert_eq!(constraints("CREATE TABLE t(x 'unfinished"), []);
    }
}
