//! Lines of a file: UTF-8, or UTF-16 with a byte order mark, as Management Studio once saved scripts.

use std::io::{BufRead, Read};

use zeroize::Zeroizing;

use super::error::{ScriptError, ScriptErrorKind};
use crate::lexer::TEXT_BYTES_MOST;

/// How characters become bytes.
#[derive(Clone, Copy)]
enum Encoding {
    Utf8,
    Utf16(fn([u8; 2]) -> u16),
}

/// A file, a line at a time.
pub(super) struct Lines {
    file: String,
    reader: Box<dyn BufRead>,
    encoding: Option<Encoding>,
    number: u64,
    /// Of UTF-8: bytes read to find a mark that was none.
    begun: Vec<u8>,
}

impl Lines {
    /// Reads the lines of `reader`; messages call it `file`.
    pub fn new(file: &str, reader: Box<dyn BufRead>) -> Self {
        Self { file: file.to_owned(), reader, encoding: None, number: 0, begun: Vec::new() }
    }

    /// What messages call it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line given last, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line with its end; `None` behind the last.
    pub fn next_line(&mut self) -> Result<Option<Zeroizing<String>>, ScriptError> {
        self.number += 1;
        let encoding = match self.encoding {
            Some(encoding) => encoding,
            None => {
                let encoding =
                    self.detect().map_err(|error| self.error(ScriptErrorKind::Read(error)))?;
                *self.encoding.insert(encoding)
            }
        };
        let line = match encoding {
            Encoding::Utf8 => self.utf8_line()?,
            Encoding::Utf16(unit) => self.utf16_line(unit)?,
        };
        match line {
            Some(line) if line.len() > TEXT_BYTES_MOST => {
                Err(self.error(ScriptErrorKind::BatchTooLong { most: TEXT_BYTES_MOST }))
            }
            line => Ok(line),
        }
    }

    fn error(&self, kind: ScriptErrorKind) -> ScriptError {
        ScriptError { file: self.file.clone(), line: self.number.max(1), kind }
    }

    /// Reads the byte order mark, if there is one.
    fn detect(&mut self) -> std::io::Result<Encoding> {
        let mut mark = Vec::new();
        self.reader.by_ref().take(2).read_to_end(&mut mark)?;
        match mark[..] {
            [0xff, 0xfe] => return Ok(Encoding::Utf16(u16::from_le_bytes)),
            [0xfe, 0xff] => return Ok(Encoding::Utf16(u16::from_be_bytes)),
            [0xef, 0xbb] => {
                self.reader.by_ref().take(1).read_to_end(&mut mark)?;
                if mark == [0xef, 0xbb, 0xbf] {
                    return Ok(Encoding::Utf8);
                }
            }
            _ => {}
        }
        self.begun = mark;
        Ok(Encoding::Utf8)
    }

    fn utf8_line(&mut self) -> Result<Option<Zeroizing<String>>, ScriptError> {
        let mut line = std::mem::take(&mut self.begun);
        // What the mark was looked for in may hold ends of lines itself.
        if let Some(end) = memchr::memchr(b'\n', &line) {
            self.begun = line.split_off(end + 1);
        } else {
            let most = TEXT_BYTES_MOST as u64 + 1;
            let read = self.reader.by_ref().take(most).read_until(b'\n', &mut line);
            read.map_err(|error| self.error(ScriptErrorKind::Read(error)))?;
        }
        if line.is_empty() {
            return Ok(None);
        }
        match String::from_utf8(line) {
            Ok(line) => Ok(Some(Zeroizing::new(line))),
            Err(error) => {
                drop(Zeroizing::new(error.into_bytes()));
                Err(self.error(ScriptErrorKind::Encoding))
            }
        }
    }

    fn utf16_line(
        &mut self,
        unit: fn([u8; 2]) -> u16,
    ) -> Result<Option<Zeroizing<String>>, ScriptError> {
        let mut units = Zeroizing::new(Vec::new());
        while units.len() <= TEXT_BYTES_MOST / 2 && units.last() != Some(&u16::from(b'\n')) {
            let mut bytes = [0; 2];
            match self.reader.read_exact(&mut bytes) {
                Ok(()) => units.push(unit(bytes)),
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(self.error(ScriptErrorKind::Read(error))),
            }
        }
        if units.is_empty() {
            return Ok(None);
        }
        match String::from_utf16(&units) {
            Ok(line) => Ok(Some(Zeroizing::new(line))),
            Err(_) => Err(self.error(ScriptErrorKind::Encoding)),
        }
    }
}
