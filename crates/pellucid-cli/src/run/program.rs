//! Which ELF programs a command line really starts: `PATH`, `#!` lines and `env` followed to the end.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::refusal::Refusal;

/// Linux follows no more scripts than this (fs/exec.c, `exec_binprm`).
const SCRIPTS_MAX: usize = 5;
/// Linux reads no more of a `#!` line (include/uapi/linux/binfmts.h, `BINPRM_BUF_SIZE`).
const SHEBANG_MAX_BYTES: usize = 256;
/// Where glibc's `execvp` looks without `PATH`.
const PATH_DEFAULT: &str = "/bin:/usr/bin";

/// A command, found.
#[derive(Debug)]
pub struct Program {
    /// What to execute: as the shell would, symbolic links not resolved (Python's environments and multi-call
    /// programs look at how they were called).
    pub path: PathBuf,
    /// The ELF files that this starts, links resolved, the one that runs at last at the end.
    pub binaries: Vec<PathBuf>,
}

impl Program {
    /// Finds `name`, and what its `#!` line or `env` leads to.
    ///
    /// # Errors
    /// [`Refusal`] if something on the way is missing, cannot be read, or is no program.
    pub fn find(name: &OsStr, arguments: &[OsString]) -> Result<Self, Refusal> {
        let path = search(name)?;
        let mut binaries = Vec::new();
        let mut next = Some((path.clone(), arguments.to_vec()));
        let mut scripts = 0;
        while let Some((current, arguments)) = next {
            let head = head(&current)?;
            if head.starts_with(b"\x7fELF") {
                let target = if is_named(&current, b"env") { env_target(&arguments) } else { None };
                binaries.push(resolved(&current)?);
                // Bounded by the arguments, which `env_target` shortens.
                next = match target {
                    Some((name, rest)) => Some((search(&name)?, rest)),
                    None => None,
                };
            } else {
                scripts += 1;
                if scripts > SCRIPTS_MAX {
                    return Err(Refusal::ScriptsTooDeep(path));
                }
                let (interpreter, argument) =
                    shebang(&head).ok_or_else(|| Refusal::NotAProgram(current.clone()))?;
                // The kernel hands over: the argument if any, the script, the script's own arguments.
                let mut passed: Vec<OsString> = argument.into_iter().collect();
                passed.push(current.into_os_string());
                passed.extend(arguments);
                next = Some((interpreter, passed));
            }
        }
        Ok(Program { path, binaries })
    }

    /// Whether interposing does not reach the program: PHP loads its modules with `RTLD_DEEPBIND`.
    pub fn needs_eager(&self) -> bool {
        self.binaries
            .last()
            .and_then(|path| path.file_name())
            .is_some_and(|name| name.as_bytes().starts_with(b"php"))
    }
}

/// Finds an executable file as `execvp` does.
fn search(name: &OsStr) -> Result<PathBuf, Refusal> {
    let not_found = || Refusal::NotFound(PathBuf::from(name));
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return if executable(&path) { Ok(path) } else { Err(not_found()) };
    }
    if name.is_empty() {
        return Err(not_found());
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| PATH_DEFAULT.into());
    std::env::split_paths(&path)
        // An empty element is the working directory.
        .map(|directory| if directory.as_os_str().is_empty() { ".".into() } else { directory })
        .map(|directory: PathBuf| directory.join(name))
        .find(|candidate| executable(candidate))
        .ok_or_else(not_found)
}

fn executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

fn resolved(path: &Path) -> Result<PathBuf, Refusal> {
    path.canonicalize().map_err(|error| Refusal::Unreadable(path.to_owned(), error))
}

/// As much of the file's beginning as decides what it is.
fn head(path: &Path) -> Result<Vec<u8>, Refusal> {
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(SHEBANG_MAX_BYTES as u64).read_to_end(&mut head))
        .map_err(|error| Refusal::Unreadable(path.to_owned(), error))?;
    Ok(head)
}

/// Interpreter and the one argument of a `#!` line (fs/binfmt_script.c).
fn shebang(head: &[u8]) -> Option<(PathBuf, Option<OsString>)> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = line.trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (interpreter, argument) = line.split_at(end);
    let argument = argument.trim_ascii();
    let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    (!interpreter.is_empty())
        .then(|| (text(interpreter).into(), (!argument.is_empty()).then(|| text(argument))))
}

fn is_named(path: &Path, name: &[u8]) -> bool {
    path.file_name().is_some_and(|found| found.as_bytes() == name)
}

/// The program that `env` starts, and its arguments: past options and assignments, into `-S`.
fn env_target(arguments: &[OsString]) -> Option<(OsString, Vec<OsString>)> {
    let mut words = arguments.iter().cloned();
    while let Some(word) = words.next() {
        let bytes = word.as_bytes();
        let split = bytes
            .strip_prefix(b"--split-string=")
            .or_else(|| bytes.strip_prefix(b"-vS"))
            .or_else(|| bytes.strip_prefix(b"-S"));
        if let Some(text) = split {
            let mut inner: Vec<OsString> = text
                .split(u8::is_ascii_whitespace)
                .filter(|part| !part.is_empty())
                .map(|part| OsString::from_vec(part.to_vec()))
                .collect();
            inner.extend(words);
            return env_target(&inner);
        }
        match bytes {
            b"-u" | b"-C" | b"--unset" | b"--chdir" => drop(words.next()),
            _ if bytes.starts_with(b"-") || bytes.contains(&b'=') => {}
            _ => return Some((word, words.collect())),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_shebang_is_read_as_the_kernel_reads_it() {
        let read = |line: &[u8]| shebang(line);
        assert_eq!(read(b"#!/bin/sh\necho"), Some(("/bin/sh".into(), None)));
        assert_eq!(
            read(b"#! /usr/bin/env  -S python3 -u \nx"),
            Some(("/usr/bin/env".into(), Some("-S python3 -u".into())))
        );
        assert_eq!(read(b"#!\n"), None);
        assert_eq!(read(b"echo\n"), None);
        assert_eq!(read(b""), None);
    }

    #[test]
    fn env_is_seen_through() {
        let target = |text: &str| env_target(&words(text)).map(|(name, _)| name);
        assert_eq!(target("python3 x.py"), Some("python3".into()));
        assert_eq!(target("-i A=1 -u B perl x"), Some("perl".into()));
        assert_eq!(
            env_target(&["-S php -q".into(), "x".into()]),
            Some(("php".into(), words("-q x")))
        );
        assert_eq!(target("A=1"), None);
    }

    #[test]
    fn php_is_started_eagerly_and_others_are_not() {
        let program = |path: &str| Program { path: path.into(), binaries: vec![path.into()] };
        assert!(program("/usr/bin/php8.2").needs_eager());
        assert!(program("/usr/sbin/php-fpm8.2").needs_eager());
        assert!(!program("/usr/bin/python3.11").needs_eager());
    }
}
