//! Where text goes, in the code page that it is to have there.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use super::code_page::CodePage;
use super::drives;
use super::files::Disk;
use crate::output::standard_output;

/// A writer, and its code page.
pub struct Sheet {
    to: Box<dyn Write>,
    page: CodePage,
    has_begun: bool,
    /// Whether somebody looks at it.
    pub is_terminal: bool,
}

impl Sheet {
    /// `to`, in UTF-8.
    #[cfg(test)]
    pub fn plain(to: Box<dyn Write>) -> Self {
        Self { to, page: CodePage::UTF_8, has_begun: false, is_terminal: false }
    }

    /// Standard output.
    pub fn standard(page: CodePage) -> Self {
        let to = Box::new(BufWriter::new(standard_output()));
        Self { to, page, has_begun: false, is_terminal: io::stdout().is_terminal() }
    }

    /// Standard error.
    pub fn errors(page: CodePage) -> Self {
        Self { to: Box::new(io::stderr()), page, has_begun: false, is_terminal: false }
    }

    /// A file, which is made or emptied.
    ///
    /// # Errors
    /// What the system says.
    pub fn file(path: &Path, page: CodePage) -> io::Result<Self> {
        let to = Box::new(BufWriter::new(pellucid_files::regular::create_given(path)?));
        Ok(Self { to, page, has_begun: false, is_terminal: false })
    }

    /// What a script names: `stdout`, `stderr` or a file.
    ///
    /// # Errors
    /// What the system says.
    pub fn named(name: &str, disk: &Disk) -> io::Result<Self> {
        let screen = disk.output;
        match () {
            () if name.eq_ignore_ascii_case("stdout") => Ok(Self::standard(screen)),
            () if name.eq_ignore_ascii_case("stderr") => Ok(Self::errors(screen)),
            () => Self::file(&drives::made(&disk.drives, name), disk.file_output),
        }
    }

    /// Writes text.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&mut self, text: &str) -> io::Result<()> {
        if self.page == CodePage::UTF_8 {
            return self.to.write_all(text.as_bytes());
        }
        let mut bytes = Vec::with_capacity(text.len());
        if !std::mem::replace(&mut self.has_begun, true) {
            bytes.extend_from_slice(self.page.mark());
        }
        self.page.encode(text, &mut bytes);
        self.to.write_all(&bytes)
    }

    /// Leaves nothing in memory.
    ///
    /// # Errors
    /// What the system says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
