//! A script in a code page, read as UTF-8.

use std::io::{self, BufRead, Cursor, Read};

use zeroize::Zeroizing;

use super::{CodePage, Coding};

/// Lines of more bytes are refused, as batches are.
const LINE_BYTES_MOST: u64 = 64 << 20;

/// The script's lines, each decoded as a whole. A byte order mark comes before the code page, as in sqlcmd.
pub struct Decoded<R> {
    reader: R,
    page: CodePage,
    line: Cursor<Zeroizing<Vec<u8>>>,
    has_begun: bool,
    is_verbatim: bool,
}

impl<R: BufRead> Decoded<R> {
    /// Reads `reader`, which is in `page`.
    pub fn new(reader: R, page: CodePage) -> Self {
        let is_verbatim = page.coding == Coding::Utf8;
        Self { reader, page, line: Cursor::default(), has_begun: false, is_verbatim }
    }

    /// What the reader begins with: its mark, or the one of the code page.
    fn begin(&mut self) -> io::Result<Zeroizing<Vec<u8>>> {
        self.has_begun = true;
        let mut mark = Zeroizing::new(Vec::new());
        while mark.len() < 2 || mark[..] == [0xef, 0xbb] {
            if self.reader.by_ref().take(1).read_to_end(&mut mark)? == 0 {
                break;
            }
        }
        if matches!(mark[..], [0xff, 0xfe] | [0xfe, 0xff] | [0xef, 0xbb, 0xbf]) {
            self.is_verbatim = true;
        } else if matches!(self.page.coding, Coding::Utf16 { .. }) {
            self.is_verbatim = true;
            mark.splice(0..0, self.page.mark().iter().copied());
        }
        Ok(mark)
    }

    /// The next line, the beginning of which is read already.
    fn next(&mut self, mut line: Zeroizing<Vec<u8>>) -> io::Result<Zeroizing<Vec<u8>>> {
        if self.is_verbatim && !line.is_empty() {
            return Ok(line);
        }
        if !line.ends_with(b"\n") {
            self.reader.by_ref().take(LINE_BYTES_MOST + 1).read_until(b'\n', &mut line)?;
        }
        if self.is_verbatim {
            return Ok(line);
        }
        let text = self.page.decode(&line).ok_or_else(|| {
            let number = self.page.number;
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("it has bytes that are no characters of code page {number}"),
            )
        })?;
        Ok(Zeroizing::new(text.as_bytes().to_vec()))
    }
}

impl<R: BufRead> Read for Decoded<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(to)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Decoded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.line.position() == self.line.get_ref().len() as u64 {
            let begun = match self.has_begun {
                true => Zeroizing::default(),
                false => self.begin()?,
            };
            self.line = Cursor::new(self.next(begun)?);
        }
        self.line.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.line.consume(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::code_page::CodePages;

    fn read(page: &str, bytes: &'static [u8]) -> io::Result<Vec<u8>> {
        let page = page.parse::<CodePages>().unwrap().input.unwrap();
        let mut all = Vec::new();
        Decoded::new(bytes, page).read_to_end(&mut all).map(|_| all)
    }

    #[test]
    fn lines_become_utf_8_and_a_mark_comes_before_the_code_page() {
        assert_eq!(read("1252", b"\xe9\n\xe8\nx").unwrap(), "é\nè\nx".as_bytes());
        assert_eq!(read("1252", b"\n\n\xe9").unwrap(), "\n\né".as_bytes());
        assert_eq!(read("1252", b"").unwrap(), b"");
        assert_eq!(read("1252", b"\xef\xbb\xbf\xc3\xa9").unwrap(), "\u{feff}é".as_bytes());
        assert_eq!(read("1252", b"\xff\xfea\0\n\0").unwrap(), b"\xff\xfea\0\n\0");
        assert_eq!(read("1200", b"a\0\n\0").unwrap(), b"\xff\xfea\0\n\0");
        assert_eq!(read("932", b"\x93\xfa\n").unwrap(), "日\n".as_bytes());
        assert!(read("20127", b"a\n\xe9").is_err());
    }
}
