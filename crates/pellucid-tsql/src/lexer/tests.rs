//! Tokens, their places and their values.

use super::TokenKind::*;
use super::*;

fn tokens(source: &str) -> Vec<(TokenKind, &str)> {
    let mut lexer = Lexer::new(source).unwrap();
    let mut all = Vec::new();
    loop {
        let token = lexer.token().unwrap();
        if token.kind == End {
            return all;
        }
        all.push((token.kind, token.text(source)));
    }
}

fn kinds(source: &str) -> Vec<TokenKind> {
    tokens(source).into_iter().map(|token| token.0).collect()
}

fn failure(source: &str) -> (u32, u32, usize, std::string::String) {
    let mut lexer = Lexer::new(source).unwrap();
    loop {
        match lexer.token() {
            Ok(token) => assert_ne!(token.kind, End, "{source}: no error"),
            Err(error) => return (error.number(), error.line, error.offset, error.to_string()),
        }
    }
}

#[test]
fn words_names_and_variables() {
    use crate::keyword::Keyword as K;
    assert_eq!(
        tokens("bAcKuP db [a]]b] \"c\"\"d\" #t ##g @v @@ROWCOUNT größe _x a$1"),
        [
            (Keyword(K::BACKUP), "bAcKuP"),
            (Name, "db"),
            (QuotedName, "[a]]b]"),
            (QuotedName, "\"c\"\"d\""),
            (Name, "#t"),
            (Name, "##g"),
            (Variable, "@v"),
            (SystemVariable, "@@ROWCOUNT"),
            (Name, "größe"),
            (Name, "_x"),
            (Name, "a$1"),
        ]
    );
}

#[test]
fn numbers() {
    assert_eq!(
        tokens("1 1.5 .5 1. 1e3 1.5E-3 0xAbC 0x $12.50 10GB 2e 1.E 3e-x"),
        [
            (Integer, "1"),
            (Decimal, "1.5"),
            (Decimal, ".5"),
            (Decimal, "1."),
            (Float, "1e3"),
            (Float, "1.5E-3"),
            (Binary, "0xAbC"),
            (Binary, "0x"),
            (Money, "$12.50"),
            (Integer, "10"),
            (Keyword(crate::keyword::Keyword::GB), "GB"),
            // Without digits the exponent is 0, and a sign is an operator.
            (Float, "2e"),
            (Float, "1.E"),
            (Float, "3e"),
            (Symbol(crate::lexer::Symbol::Minus), "-"),
            (Name, "x"),
        ]
    );
    assert_eq!(binary_value("0xABC"), [0x0a, 0xbc]);
    assert!(binary_value("0x").is_empty());
}

#[test]
fn strings_span_lines_and_double_their_quotes() {
    assert_eq!(
        tokens("'a''b\nc'N'x'"),
        [(String { national: false }, "'a''b\nc'"), (String { national: true }, "N'x'")]
    );
    assert_eq!(string_value("N'it''s'"), "it's");
    assert_eq!(string_value("'N'"), "N");
    assert_eq!(string_value("'a\\\nb\\\r\nc\\'"), "abc\\");
    assert_eq!(name_value("[a]]b]"), "a]b");
    assert_eq!(name_value("\"a\"\"b]]\""), "a\"b]]");
}

#[test]
fn comments_nest_and_lines_are_counted() {
    let source = "/* a /* b\n */ c\n*/ x -- y\n'1\n2' z--";
    let mut lexer = Lexer::new(source).unwrap();
    let lines: Vec<_> = std::iter::from_fn(|| lexer.token().ok())
        .take_while(|token| token.kind != End)
        .map(|token| (token.text(source), token.line, token.start))
        .collect();
    assert_eq!(lines, [("x", 3, 19), ("'1\n2'", 4, 26), ("z", 5, 32)]);
}

#[test]
fn operators_take_the_longest_spelling() {
    let all =
        "( ) , ; . : :: = <> != < <= !< > >= !> + - * / % & | ^ ~ += -= *= /= %= &= |= ^= { }";
    let spelt: Vec<_> = all.split(' ').collect();
    let found: Vec<_> = kinds(all)
        .into_iter()
        .map(|kind| match kind {
            Symbol(symbol) => symbol.text(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(found, spelt);
    assert_eq!(kinds("! \u{7} \\ € $"), [Stray; 5]);
}

#[test]
fn what_does_not_end_says_where_it_began() {
    assert_eq!(
        failure("SELECT 1\n 'it''s"),
        (105, 2, 10, "Unclosed quotation mark after the character string 'it''s'.".into())
    );
    assert_eq!(
        failure("[x]]"),
        (105, 1, 0, "Unclosed quotation mark after the character string 'x]]'.".into())
    );
    assert_eq!(failure("a\n/* /* */"), (113, 2, 2, "Missing end comment mark '*/'.".into()));
    let long = format!("'{}", "é".repeat(200));
    assert!(failure(&long).3.ends_with(&format!("'{}'.", "é".repeat(128))));
}

#[test]
fn blanks_of_every_kind() {
    assert_eq!(kinds("\u{feff}a\u{a0}b\u{3000}\t\u{b}\u{c}\r\nc"), [Name; 3]);
    assert_eq!(kinds(" -- only a comment"), []);
}
