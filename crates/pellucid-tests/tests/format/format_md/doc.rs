//! docs/format.md as sections, byte tables and equations.

use std::ops::Range;

use aws_lc_rs::hkdf;

/// The page, or a section of it.
#[derive(Debug, Clone)]
pub struct Doc(String);

impl Doc {
    pub fn read() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format.md");
        Self(std::fs::read_to_string(path).unwrap())
    }

    /// From a heading to the next of its level.
    pub fn section(&self, heading: &str) -> Self {
        let begin = self.0.find(&format!("{heading}\n")).expect(heading);
        let level = heading.chars().take_while(|c| *c == '#').count();
        let body = &self.0[begin + heading.len()..];
        let ends = |line: &&str| {
            let marks = line.chars().take_while(|c| *c == '#').count();
            marks > 0 && marks <= level
        };
        Self(body.lines().skip(1).take_while(|line| !ends(line)).collect::<Vec<_>>().join("\n"))
    }

    /// From where `text` stands on.
    pub fn from(&self, text: &str) -> Self {
        Self(self.0[self.0.find(text).expect(text)..].to_owned())
    }

    /// Fails unless the words are there, wherever lines break.
    pub fn says(&self, words: &str) {
        let joined = self.0.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(words), "format.md does not say `{words}`");
    }

    /// What stands in back ticks before `end`.
    pub fn literals_until(&self, end: &str) -> Vec<String> {
        let text = &self.0[..self.0.find(end).expect(end)];
        text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    /// The table that stands `number` tables behind the beginning.
    pub fn table(&self, number: usize) -> Table {
        let mut tables: Vec<Vec<Vec<String>>> = Vec::new();
        let mut inside = false;
        for line in self.0.lines() {
            let row = line.strip_prefix('|').and_then(|line| line.strip_suffix('|'));
            let Some(row) = row else {
                inside = false;
                continue;
            };
            if !inside {
                tables.push(Vec::new());
                inside = true;
            }
            let cells = row.split('|').map(|cell| cell.trim().to_owned()).collect();
            tables.last_mut().unwrap().push(cells);
        }
        let rows = tables[number].split_off(2);
        Table { rows, values: Vec::new() }
    }

    /// The `info` of the equation named `what`: its text, without what is joined to it.
    pub fn info(&self, what: &str) -> String {
        let row = self.0.lines().find(|line| line.starts_with(&format!("| {what} |"))).expect(what);
        let quoted = row.split("; \"").nth(1).or_else(|| row.split('"').nth(1).map(|_| row));
        let quoted = quoted.expect("no equation");
        let text = if quoted == row { row.split('"').nth(1) } else { quoted.split('"').next() };
        text.unwrap().to_owned()
    }
}

/// A table; a byte table has the columns offset, length, field.
#[derive(Debug, Clone)]
pub struct Table {
    pub rows: Vec<Vec<String>>,
    values: Vec<(&'static str, i64)>,
}

impl Table {
    /// Gives names in offsets and lengths their values.
    pub fn with(mut self, values: &[(&'static str, usize)]) -> Self {
        self.values = values.iter().map(|(name, value)| (*name, *value as i64)).collect();
        // Longer names first, so that `n` does not stand in for part of another.
        self.values.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        self
    }

    /// A number, or names and numbers with `+` and `−` between.
    fn value(&self, cell: &str) -> Option<usize> {
        let mut text = format!(" {cell} ").replace('−', "-");
        for (name, value) in &self.values {
            text = text.replace(&format!(" {name} "), &format!(" {value} "));
        }
        let (mut sum, mut sign) = (0i64, 1);
        let mut any = false;
        for word in text.split_whitespace() {
            match word {
                "+" => sign = 1,
                "-" => sign = -1,
                number => {
                    sum += sign * number.parse::<i64>().ok()?;
                    any = true;
                }
            }
        }
        any.then_some(sum as usize)
    }

    /// Where the field whose description begins with `field` lies.
    pub fn at(&self, field: &str) -> Range<usize> {
        let mut rows = self.rows.iter().filter(|row| row[2].starts_with(field));
        let row = rows.next().unwrap_or_else(|| panic!("no field `{field}`"));
        assert!(rows.next().is_none(), "two fields `{field}`");
        let begin = self.value(&row[0]).expect(field);
        begin..begin + self.value(&row[1]).expect(field)
    }

    /// Where the page has zeros and says where they lie.
    pub fn zeros(&self) -> Vec<Range<usize>> {
        let zero = |row: &&Vec<String>| row[2] == "zero" || row[2].starts_with("zero;");
        let rows = self.rows.iter().filter(zero);
        rows.filter_map(|row| {
            let begin = self.value(&row[0])?;
            Some(begin..begin + self.value(&row[1])?)
        })
        .collect()
    }

    /// The row of `field`.
    pub fn field(&self, field: &str) -> &str {
        &self.rows.iter().find(|row| row[2].starts_with(field)).expect(field)[2]
    }

    /// Fails if a field does not begin where the one before ends; gives the end of the last.
    pub fn is_without_gaps(&self) -> usize {
        let mut end = 0;
        for row in &self.rows {
            assert_eq!(self.value(&row[0]), Some(end), "begin of `{}`", row[2]);
            end += self.value(&row[1]).unwrap_or_else(|| panic!("length of `{}`", row[2]));
        }
        end
    }

    /// The rows before the one of `field`, and where that one begins.
    pub fn before(&self, field: &str) -> (Self, usize) {
        let end = self.rows.iter().position(|row| row[2].starts_with(field)).expect(field);
        let rows = self.rows[..end].to_vec();
        let begin = self.value(&self.rows[end][0]).expect(field);
        (Self { rows, values: self.values.clone() }, begin)
    }

    /// The bytes of `object` at `field`.
    pub fn of<'a>(&self, field: &str, object: &'a [u8]) -> &'a [u8] {
        &object[self.at(field)]
    }
}

/// The text between the first two back ticks, with `\0` as a zero byte.
pub fn literal(text: &str) -> Vec<u8> {
    text.split('`').nth(1).unwrap().replace("\\0", "\0").into_bytes()
}

/// `1 database, 2 WAL, ...` behind `text`, up to the end of the list.
pub fn numbered(text: &str) -> Vec<(u8, String)> {
    text.split(", ")
        .filter_map(|item| {
            let (number, name) = item.trim().split_once(' ')?;
            Some((number.parse().ok()?, name.trim_end_matches('.').to_owned()))
        })
        .collect()
}

/// HKDF-SHA256 with all of `info`, for equations.
pub fn hkdf_sha256(key: &[u8], salt: &[u8], info: &[&[u8]], length: usize) -> Vec<u8> {
    struct Length(usize);
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let mut out = vec![0; length];
    hkdf::Salt::new(hkdf::HKDF_SHA256, salt)
        .extract(key)
        .expand(info, Length(length))
        .and_then(|okm| okm.fill(&mut out))
        .unwrap();
    out
}
