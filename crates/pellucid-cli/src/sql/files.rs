//! Scripts as files: those of -i and `:r`, and text in which `$(` begins no variable (-x).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use pellucid_tsql::batch::{Dialect, Files, Script, Variables};
use zeroize::Zeroizing;

use super::code_page::{CodePage, Decoded};
use super::drives;

/// The variable that stands for `$` under -x; no script can name it by chance.
pub const DOLLAR: &str = "pellucid-dollar";

/// Opens scripts.
#[derive(Debug, Clone)]
pub struct Disk {
    /// Folders of drives.
    pub drives: Vec<(char, PathBuf)>,
    /// -x
    pub verbatim: bool,
    /// The code page of scripts.
    pub input: CodePage,
    /// The one of what goes to standard output and standard error.
    pub output: CodePage,
    /// The one of files that are written.
    pub file_output: CodePage,
    /// How scripts are read.
    pub dialect: Dialect,
}

impl Files for Disk {
    fn open(&mut self, name: &str) -> io::Result<Box<dyn BufRead>> {
        self.open_by(name, pellucid_files::regular::open_given)
    }
}

impl Disk {
    /// The script of that name, opened by `open`. Where there is none, `\` stands between folders as well.
    ///
    /// # Errors
    /// What the system says.
    pub fn open_by(
        &self,
        name: &str,
        open: impl Fn(&Path) -> io::Result<File>,
    ) -> io::Result<Box<dyn BufRead>> {
        let file = match open(&drives::file(&self.drives, name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && name.contains('\\') => {
                open(&drives::with_slashes(name)).map_err(|_| error)?
            }
            opened => opened?,
        };
        self.decoded(BufReader::new(file))
    }

    /// A script that is in the code page of scripts.
    ///
    /// # Errors
    /// What the system says.
    pub fn decoded(&self, reader: impl BufRead + 'static) -> io::Result<Box<dyn BufRead>> {
        match self.input == CodePage::UTF_8 {
            true => self.read(reader),
            false => self.read(Decoded::new(reader, self.input)),
        }
    }

    /// A script called `name` in messages.
    pub fn script(
        &self,
        name: &str,
        reader: impl BufRead + 'static,
        variables: Variables,
    ) -> Script<Self> {
        Script::new(name, reader, self.clone(), variables).with(self.dialect.clone())
    }

    /// A text in UTF-8 as it is to be read.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(&self, reader: impl BufRead + 'static) -> io::Result<Box<dyn BufRead>> {
        match self.verbatim {
            true => Ok(Box::new(verbatim(reader))),
            false => Ok(Box::new(reader)),
        }
    }

    /// `variables`, and what the readers need among them.
    pub fn with_dollar(&self, mut variables: Variables) -> Variables {
        if self.verbatim {
            variables.set(DOLLAR, Some(Zeroizing::new("$".to_owned())));
        }
        variables
    }
}

/// A text in which `$(` begins no variable, where [`DOLLAR`] is one.
pub fn verbatim(reader: impl BufRead) -> impl BufRead {
    Verbatim { reader, line: Cursor::default() }
}

/// Writes each `$(` so that it gives itself when variables are replaced: `$(pellucid-dollar)(`. UTF-8 only.
struct Verbatim<R> {
    reader: R,
    line: Cursor<Zeroizing<Vec<u8>>>,
}

impl<R: BufRead> Read for Verbatim<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(to)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Verbatim<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.line.position() == self.line.get_ref().len() as u64 {
            let mut line = Zeroizing::new(Vec::new());
            self.reader.read_until(b'\n', &mut line)?;
            if line.starts_with(&[0xff, 0xfe]) || line.starts_with(&[0xfe, 0xff]) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "-x reads UTF-8 only"));
            }
            self.line = Cursor::new(with_dollars(&line));
        }
        self.line.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.line.consume(count);
    }
}

fn with_dollars(line: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(Vec::with_capacity(line.len()));
    for (at, &byte) in line.iter().enumerate() {
        out.push(byte);
        if byte == b'$' && line.get(at + 1) == Some(&b'(') {
            out.extend_from_slice(format!("({DOLLAR})").as_bytes());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use pellucid_tsql::batch::Item;

    fn verbatim() -> Disk {
        Disk {
            drives: Vec::new(),
            verbatim: true,
            input: CodePage::UTF_8,
            output: CodePage::UTF_8,
            file_output: CodePage::UTF_8,
            dialect: Dialect::default(),
        }
    }

    #[test]
    fn without_variables_a_script_is_as_it_is_written() {
        let text = "PRINT '$(HOME)' + '$(' -- $(x)\nPRINT '$'\n";
        let disk = verbatim();
        let reader = disk.read(text.as_bytes()).unwrap();
        let variables = disk.with_dollar(Variables::with_environment());
        let mut script = Script::new("s", reader, disk, variables);
        let Some(Ok(Item::Batch(batch))) = script.next() else { panic!() };
        assert_eq!(batch.text().replace("-- $(pellucid-dollar)(", "-- $("), text);
        let disk = verbatim();
        let mut all = Vec::new();
        assert!(disk.read(&b"\xff\xfea\0"[..]).unwrap().read_to_end(&mut all).is_err());
    }
}
