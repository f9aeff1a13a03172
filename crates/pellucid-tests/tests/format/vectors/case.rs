//! A vector: text header, blank line, body in hexadecimal. Format: vectors/README.md.

use pellucid::hash::hex;

const LINE_DIGITS: usize = 64;

/// One vector.
#[derive(Debug, Clone, Default)]
pub struct Case {
    fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Case {
    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (head, body) = text.split_once("\n\n").ok_or("no blank line behind the header")?;
        let mut case = Self { fields: Vec::new(), body: unhex(&body.replace('\n', ""))? };
        for line in head.lines() {
            if let Some(more) = line.strip_prefix("  ") {
                case.fields.last_mut().ok_or("begins with a continuation")?.1.push_str(more);
                continue;
            }
            let (key, value) = line.split_once(':').ok_or(format!("no colon in `{line}`"))?;
            if case.get(key).is_some() {
                return Err(format!("`{key}` twice"));
            }
            case.fields.push((key.to_owned(), value.trim_start().to_owned()));
        }
        Ok(case)
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    pub fn text(&self, key: &str) -> &str {
        self.get(key).unwrap_or_else(|| panic!("no field `{key}`"))
    }

    pub fn number(&self, key: &str) -> u64 {
        self.text(key).parse().unwrap_or_else(|_| panic!("`{key}` is not a number"))
    }

    pub fn bytes(&self, key: &str) -> Vec<u8> {
        unhex(self.text(key)).unwrap_or_else(|error| panic!("`{key}`: {error}"))
    }

    pub fn array<const N: usize>(&self, key: &str) -> [u8; N] {
        self.bytes(key).try_into().unwrap_or_else(|_| panic!("`{key}` has another length"))
    }
}

/// Writing, which only the generator does.
#[allow(dead_code)]
impl Case {
    pub fn new(object: &str, kind: &str) -> Self {
        Self::default().with("object", object).with("kind", kind)
    }

    /// Appends a field, or replaces its value.
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        let value = value.to_string();
        match self.fields.iter_mut().find(|(name, _)| name == key) {
            Some(field) => field.1 = value,
            None => self.fields.push((key.to_owned(), value)),
        }
        self
    }

    pub fn without(mut self, key: &str) -> Self {
        self.fields.retain(|(name, _)| name != key);
        self
    }

    pub fn with_bytes(self, key: &str, bytes: &[u8]) -> Self {
        self.with(key, hex(bytes))
    }

    pub fn with_body(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self
    }

    /// The same inputs, put wrong: another kind, another outcome.
    pub fn failing(&self, kind: &str, expect: &str, error: &str) -> Self {
        let mut case = self.clone().with("kind", kind).with("expect", expect);
        case.fields.insert(3, ("error".to_owned(), error.to_owned()));
        case
    }

    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (key, value) in &self.fields {
            if value.len() <= 2 * LINE_DIGITS || value.contains(' ') {
                text.push_str(&format!("{key}: {value}\n"));
                continue;
            }
            text.push_str(&format!("{key}:\n"));
            lines(value).for_each(|line| text.push_str(&format!("  {line}\n")));
        }
        text.push('\n');
        lines(&hex(&self.body)).for_each(|line| text.push_str(&format!("{line}\n")));
        text
    }
}

fn lines(digits: &str) -> impl Iterator<Item = &str> {
    (0..digits.len())
        .step_by(LINE_DIGITS)
        .map(move |at| &digits[at..digits.len().min(at + LINE_DIGITS)])
}

fn unhex(digits: &str) -> Result<Vec<u8>, String> {
    if !digits.is_ascii() || digits.len() % 2 != 0 {
        return Err("not pairs of hexadecimal digits".to_owned());
    }
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|error| error.to_string()))
        .collect()
}
