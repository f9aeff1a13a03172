//! A record: the values of a row or of a key (SQLite file format, 2.1).

use super::varint;

/// A value of a record. Text is in the database's encoding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// NULL, which a record also has in the place of an INTEGER PRIMARY KEY.
    Null,
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// Text.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
}

/// Decodes the values of a record. `None` if the record is damaged.
pub fn decode(record: &[u8]) -> Option<Vec<Value<'_>>> {
    let mut at = 0;
    let header = usize::try_from(varint(record, &mut at)?).ok()?;
    if header < at || header > record.len() {
        return None;
    }
    let (types, mut body) = (record.get(..header)?, header);
    let mut values = Vec::new();
    while at < header {
        let serial = varint(types, &mut at)?;
        let length = match serial {
            0 | 8 | 9 => 0,
            1..=4 => serial as usize,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            _ => usize::try_from((serial - 12) / 2).ok()?,
        };
        let bytes = record.get(body..body.checked_add(length)?)?;
        body += length;
        values.push(match serial {
            0 => Value::Null,
            1..=6 => Value::Integer(integer(bytes)),
            7 => Value::Real(f64::from_be_bytes(bytes.try_into().ok()?)),
            8 => Value::Integer(0),
            9 => Value::Integer(1),
            _ if serial % 2 == 0 => Value::Blob(bytes),
            _ => Value::Text(bytes),
        });
    }
    Some(values)
}

/// Reads a signed big-endian number of 1 to 8 bytes.
fn integer(bytes: &[u8]) -> i64 {
    let first = bytes.first().map_or(0, |byte| i64::from(*byte as i8));
    bytes.iter().skip(1).fold(first, |all, byte| all << 8 | i64::from(*byte))
}

/// The encoding of a database's text (SQLite file format, 1.3.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// UTF-8.
    #[default]
    Utf8,
    /// UTF-16, little-endian.
    Utf16le,
    /// UTF-16, big-endian.
    Utf16be,
}

impl Encoding {
    /// Returns the encoding of a number in the database header, and UTF-8 for an unknown number.
    pub fn from_number(number: u32) -> Self {
        match number {
            2 => Encoding::Utf16le,
            3 => Encoding::Utf16be,
            _ => Encoding::Utf8,
        }
    }

    /// Returns the name that `PRAGMA encoding` takes.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "UTF-8",
            Encoding::Utf16le => "UTF-16le",
            Encoding::Utf16be => "UTF-16be",
        }
    }

    /// Decodes text, and replaces bytes that are not text.
    pub fn text(self, bytes: &[u8]) -> String {
        let unit = |pair: &[u8]| match self {
            Encoding::Utf16be => u16::from_be_bytes([pair[0], pair[1]]),
            _ => u16::from_le_bytes([pair[0], pair[1]]),
        };
        match self {
            Encoding::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::from_utf16_lossy(&bytes.chunks_exact(2).map(unit).collect::<Vec<_>>()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_type_are_read_and_what_does_not_fit_is_none() {
        let mut record = vec![11, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 + 8];
        record[10] = 19;
        record.extend([0x80, 0xff, 0xfe, 0, 0, 3, 0x7f, 0xff, 0xff, 0xff]);
        record.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xfb]);
        record.extend(i64::MIN.to_be_bytes());
        record.extend(1.5f64.to_be_bytes());
        record.extend(b"abc");
        use Value::*;
        let expected = vec![
            Null,
            Integer(-128),
            Integer(-2),
            Integer(3),
            Integer(0x7fff_ffff),
            Integer(-5),
            Integer(i64::MIN),
            Real(1.5),
            Integer(0),
            Text(b"abc"),
        ];
        assert_eq!(decode(&record), Some(expected));
        for length in 0..record.len() {
            assert_eq!(decode(&record[..length]), None, "{length}");
        }
        assert_eq!(decode(&[2, 10]), None);
        assert_eq!(decode(&[0]), None);
        assert_eq!(decode(&[0xff; 12]), None);
    }

    #[test]
    fn text_of_each_encoding_is_read() {
        assert_eq!(Encoding::Utf8.text("é".as_bytes()), "é");
        assert_eq!(Encoding::Utf16le.text(&[0xe9, 0]), "é");
        assert_eq!(Encoding::Utf16be.text(&[0, 0xe9]), "é");
    }
}
