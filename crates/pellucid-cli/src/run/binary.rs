//! Examines one ELF program: can the preload get into it, and in front of its SQLite?
//!
//! Looks at the file and asks its own dynamic linker (`--list`, which runs nothing of the program).

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use memchr::memmem;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, Sym};
use object::{Endianness, ReadCache, ReadRef};

use pellucid::shown::Shown;

use super::refusal::Refusal;

/// Functions that only SQLite defines.
const OPENS: [&[u8]; 3] = [b"sqlite3_open", b"sqlite3_open_v2", b"sqlite3_open16"];
/// Texts that every SQLite has, all of them: the file's magic (pager.c, `zMagicHeader`), an error (main.c,
/// `sqlite3ErrStr`) and a name it gives (build.c). One alone is also in programs that only know the format.
const MARKS: [&[u8]; 3] = [b"SQLite format 3\0", b"is not a database", b"sqlite_autoindex_"];
/// What is read of a file at a time, in bytes.
const WINDOW_BYTES: usize = 1 << 20;
/// Mode bits of setuid and setgid.
const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = elf::EM_X86_64;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = elf::EM_AARCH64;

/// Refuses a program that the shim would not get into. `preload` is what `LD_PRELOAD` will be.
///
/// # Errors
/// [`Refusal`], one for each reason.
pub fn examine(path: &Path, preload: &OsStr, library: &Path) -> Result<(), Refusal> {
    let unreadable = |error| Refusal::Unreadable(path.to_owned(), error);
    let file = File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.permissions().mode();
    privileges(path, mode)?;

    let layout = Layout::read(path, &file)?;
    let Some(interpreter) = layout.interpreter else {
        return Err(Refusal::Static(path.to_owned()));
    };
    glibc(path, &interpreter)?;
    let libraries = listed(path, &interpreter, preload, library)?;
    let own = layout.defines_sqlite
        || (!memmem_any(&libraries, b"libsqlite3")
            && has_marks(&file, &layout.loaded).map_err(unreadable)?);
    if own {
        return Err(Refusal::OwnSqlite(path.to_owned(), library.to_owned()));
    }
    Ok(())
}

/// Programs that get more rights than their caller run with preloads ignored (ld.so(8), "secure-execution mode").
fn privileges(path: &Path, mode: u32) -> Result<(), Refusal> {
    let refuse = |mark| Err(Refusal::Privileged(path.to_owned(), mark));
    if mode & SETUID != 0 {
        return refuse("setuid");
    }
    // Without the group's x bit this is not setgid but a lock mark of old.
    if mode & SETGID != 0 && mode & 0o010 != 0 {
        return refuse("setgid");
    }
    let mut value = [0; 64];
    // Any error means that there is no such attribute, or none that the kernel would see either.
    match rustix::fs::getxattr(path, "security.capability", &mut value[..]) {
        Ok(length) if length > 0 => refuse("a program with file capabilities"),
        _ => Ok(()),
    }
}

fn glibc(path: &Path, interpreter: &Path) -> Result<(), Refusal> {
    let name = interpreter.file_name().unwrap_or_default().as_bytes();
    let shown = || interpreter.shown().to_string();
    if name.starts_with(b"ld-musl") {
        return Err(Refusal::Musl(path.to_owned(), shown()));
    }
    if name.starts_with(b"ld-linux") {
        return Ok(());
    }
    Err(Refusal::Loader(path.to_owned(), shown()))
}

/// What the dynamic linker would load for the program; it must take our library.
///
/// A preload that it cannot load is only a warning to glibc, and the program would go on without the shim.
fn listed(
    path: &Path,
    interpreter: &Path,
    preload: &OsStr,
    library: &Path,
) -> Result<Vec<u8>, Refusal> {
    let output = Command::new(interpreter)
        .arg("--list")
        .arg(path)
        .env("LD_PRELOAD", preload)
        .output()
        .map_err(|error| Refusal::Unreadable(interpreter.to_owned(), error))?;
    if output.status.success() && memmem_any(&output.stdout, library.as_os_str().as_bytes()) {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().filter(|line| !line.is_empty());
    let linker = said.unwrap_or("its dynamic linker leaves the library out").to_owned();
    Err(Refusal::NotTaken { program: path.to_owned(), linker })
}

fn memmem_any(text: &[u8], part: &[u8]) -> bool {
    memmem::find(text, part).is_some()
}

/// The facts of an ELF file that matter here.
struct Layout {
    interpreter: Option<PathBuf>,
    /// `sqlite3_open*` is defined in it, not imported.
    defines_sqlite: bool,
    /// Offset and size in bytes of what is loaded into memory.
    loaded: Vec<(u64, u64)>,
}

impl Layout {
    fn read(path: &Path, file: &File) -> Result<Self, Refusal> {
        let cache = ReadCache::new(file);
        let malformed =
            |error: object::Error| Refusal::Malformed(path.to_owned(), error.to_string());
        let ident: &[u8] = cache
            .read_bytes_at(0, 20)
            .map_err(|()| Refusal::Malformed(path.to_owned(), "it is too short".to_owned()))?;
        // e_ident's class and byte order, then e_machine: the same places in every ELF file (elf(5)).
        let native = ident[4] == elf::ELFCLASS64 && ident[5] == elf::ELFDATA2LSB;
        if !native || u16::from_le_bytes([ident[18], ident[19]]) != MACHINE {
            return Err(Refusal::Architecture(path.to_owned()));
        }
        Self::parse(&cache).map_err(malformed)
    }

    fn parse(data: &ReadCache<&File>) -> object::Result<Self> {
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let mut layout = Layout { interpreter: None, defines_sqlite: false, loaded: Vec::new() };
        for segment in header.program_headers(endian, data)? {
            match segment.p_type(endian) {
                elf::PT_LOAD => layout.loaded.push(segment.file_range(endian)),
                elf::PT_INTERP => {
                    let name = segment.interpreter(endian, data)?.unwrap_or_default();
                    layout.interpreter = Some(Path::new(OsStr::from_bytes(name)).to_owned());
                }
                _ => {}
            }
        }
        // A file without section headers (stripped hard) still has its texts.
        let sections = header.sections(endian, data)?;
        for kind in [elf::SHT_DYNSYM, elf::SHT_SYMTAB] {
            let table = sections.symbols(endian, data, kind)?;
            layout.defines_sqlite |= table.iter().any(|symbol| {
                symbol.st_shndx(endian) != elf::SHN_UNDEF
                    && symbol.st_type() == elf::STT_FUNC
                    && table.symbol_name(endian, symbol).is_ok_and(|name| OPENS.contains(&name))
            });
        }
        Ok(layout)
    }
}

/// Whether all of [`MARKS`] are in the parts of the file that are loaded.
fn has_marks(file: &File, parts: &[(u64, u64)]) -> std::io::Result<bool> {
    let finders = MARKS.map(memmem::Finder::new);
    let overlap = MARKS.iter().map(|mark| mark.len()).max().unwrap_or(0);
    let mut found = [false; MARKS.len()];
    let mut window = vec![0; WINDOW_BYTES];
    for &(start, size) in parts {
        let (mut offset, end) = (start, start.saturating_add(size));
        while offset < end && !found.iter().all(|found| *found) {
            let wanted =
                usize::try_from(end - offset).map_or(WINDOW_BYTES, |n| n.min(WINDOW_BYTES));
            let read = file.read_at(&mut window[..wanted], offset)?;
            if read == 0 {
                break;
            }
            for (found, finder) in found.iter_mut().zip(&finders) {
                *found = *found || finder.find(&window[..read]).is_some();
            }
            // The next window begins early enough to have what this one cut, and always later than this one.
            let step = if read > overlap { read - overlap } else { read };
            offset += step as u64;
        }
    }
    Ok(found.iter().all(|found| *found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_also_across_windows_and_only_all_together() {
        let mut bytes = vec![b'.'; 2 * WINDOW_BYTES + 100];
        let at = |bytes: &mut Vec<u8>, place: usize, mark: &[u8]| {
            bytes[place..place + mark.len()].copy_from_slice(mark);
        };
        at(&mut bytes, WINDOW_BYTES - 3, MARKS[0]);
        at(&mut bytes, 10, MARKS[1]);
        let check = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            std::io::Write::write_all(&mut file, bytes).unwrap();
            has_marks(&file, &[(0, bytes.len() as u64)]).unwrap()
        };
        assert!(!check(&bytes));
        let end = bytes.len() - MARKS[2].len();
        at(&mut bytes, end, MARKS[2]);
        assert!(check(&bytes));
    }
}
