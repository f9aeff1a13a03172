//! The C library's calls as this test program's own functions, which the linker prefers.
//!
//! SQLite, the shim and Rust's standard library are linked into one program and all come through here:
//! what goes around the VFS (a conversion's copy) is seen like the rest. Each asks `watch` first, then
//! makes the system call itself.

use std::ffi::{c_char, c_int, c_void, CStr};

use crate::watch::{self, Call, Verdict};

fn fail(errno: i32) -> i32 {
    // SAFETY: the address of this thread's errno is valid for a write.
    unsafe { *libc::__errno_location() = errno };
    -1
}

fn text<'a>(path: *const c_char) -> &'a str {
    // SAFETY: callers of these functions give terminated paths.
    unsafe { CStr::from_ptr(path) }.to_str().unwrap_or("")
}

/// The whole path of a name in an open directory.
fn path_in(directory: c_int, name: *const c_char) -> String {
    let name = text(name);
    match watch::path_of(directory) {
        Some(path) if directory != libc::AT_FDCWD && name == "." => path,
        Some(path) if directory != libc::AT_FDCWD && !name.starts_with('/') => {
            format!("{path}/{name}")
        }
        _ => name.to_owned(),
    }
}

fn open_path(directory: c_int, name: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    let path = path_in(directory, name);
    if let Verdict::Fail(errno) = watch::before_path(&path, Call::Open, flags) {
        return fail(errno);
    }
    // SAFETY: the caller's arguments.
    let descriptor =
        unsafe { libc::syscall(libc::SYS_openat, directory, name, flags, mode) } as c_int;
    if descriptor >= 0 {
        watch::opened(&path, descriptor, flags);
    }
    descriptor
}

fn look_at(directory: c_int, name: *const c_char, mode: c_int) -> c_int {
    match watch::before_path(&path_in(directory, name), Call::Look, 0) {
        Verdict::Fail(errno) => fail(errno),
        // SAFETY: the caller's arguments.
        _ => unsafe { libc::syscall(libc::SYS_faccessat, directory, name, mode) as c_int },
    }
}

fn unlink_at(directory: c_int, name: *const c_char, flags: c_int) -> c_int {
    let path = path_in(directory, name);
    if let Verdict::Fail(errno) = watch::before_path(&path, Call::Unlink, 0) {
        return fail(errno);
    }
    // SAFETY: the caller's arguments.
    let code = unsafe { libc::syscall(libc::SYS_unlinkat, directory, name, flags) } as c_int;
    if code == 0 && flags & libc::AT_REMOVEDIR != 0 {
        watch::removed_folder(&path);
    } else if code == 0 {
        watch::unlinked(&path);
    }
    code
}

fn rename_at(from: (c_int, *const c_char), to: (c_int, *const c_char)) -> c_int {
    let paths = (path_in(from.0, from.1), path_in(to.0, to.1));
    if let Verdict::Fail(errno) = watch::before_path(&paths.1, Call::Rename, 0) {
        return fail(errno);
    }
    // SAFETY: the caller's arguments.
    let code = unsafe { libc::syscall(libc::SYS_renameat, from.0, from.1, to.0, to.1) } as c_int;
    if code == 0 {
        watch::renamed(&paths.0, &paths.1);
    }
    code
}

fn make_folder_at(directory: c_int, name: *const c_char, mode: libc::mode_t) -> c_int {
    let path = path_in(directory, name);
    if let Verdict::Fail(errno) = watch::before_path(&path, Call::MakeFolder, 0) {
        return fail(errno);
    }
    // SAFETY: the caller's arguments.
    let code = unsafe { libc::syscall(libc::SYS_mkdirat, directory, name, mode) } as c_int;
    if code == 0 {
        watch::made_folder(&path);
    }
    code
}

/// At the descriptor's position or at an offset: the number of each call.
fn transfer(
    (here, at): (libc::c_long, libc::c_long),
    descriptor: c_int,
    bytes: *const c_void,
    count: usize,
    offset: Option<i64>,
) -> libc::c_long {
    // SAFETY: the arguments of the function that was called, or fewer bytes.
    unsafe {
        match offset {
            Some(offset) => libc::syscall(at, descriptor, bytes, count, offset),
            None => libc::syscall(here, descriptor, bytes, count),
        }
    }
}

fn write_at(
    descriptor: c_int,
    bytes: *const c_void,
    count: usize,
    offset: Option<i64>,
) -> libc::ssize_t {
    let count = match watch::before(descriptor, Call::Write, offset.unwrap_or(0) as u64, count) {
        Verdict::Go => count,
        Verdict::Half => count.div_ceil(2),
        Verdict::HalfOfSectors if count >= 1024 => count / 1024 * 512,
        Verdict::HalfOfSectors if count >= 2 => count / 2,
        Verdict::HalfOfSectors => return fail(libc::ENOSPC) as libc::ssize_t,
        Verdict::Fail(errno) => return fail(errno) as libc::ssize_t,
    };
    let numbers = (libc::SYS_write, libc::SYS_pwrite64);
    let done = transfer(numbers, descriptor, bytes, count, offset);
    if done > 0 {
        let offset = offset.unwrap_or_else(|| {
            // SAFETY: asks for the position only.
            unsafe { libc::syscall(libc::SYS_lseek, descriptor, 0, libc::SEEK_CUR) - done }
        });
        // SAFETY: the kernel has read these bytes.
        let written = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), done as usize) };
        watch::wrote(descriptor, offset as u64, written);
    }
    done as libc::ssize_t
}

fn read_at(
    descriptor: c_int,
    bytes: *mut c_void,
    count: usize,
    offset: Option<i64>,
) -> libc::ssize_t {
    let count = match watch::before(descriptor, Call::Read, offset.unwrap_or(0) as u64, count) {
        Verdict::Half => count.div_ceil(2),
        Verdict::Fail(errno) => return fail(errno) as libc::ssize_t,
        _ => count,
    };
    let numbers = (libc::SYS_read, libc::SYS_pread64);
    transfer(numbers, descriptor, bytes, count, offset) as libc::ssize_t
}

fn sync(descriptor: c_int) -> c_int {
    if let Verdict::Fail(errno) = watch::before(descriptor, Call::Sync, 0, 0) {
        return fail(errno);
    }
    // In memory nothing has to be forced anywhere; the record is what counts.
    watch::synced(descriptor);
    0
}

fn cut(descriptor: c_int, size: i64) -> c_int {
    if let Verdict::Fail(errno) = watch::before(descriptor, Call::Truncate, size as u64, 0) {
        return fail(errno);
    }
    // SAFETY: the caller's arguments.
    let code = unsafe { libc::syscall(libc::SYS_ftruncate, descriptor, size) } as c_int;
    if code == 0 {
        watch::truncated(descriptor, size as u64);
    }
    code
}

fn map(
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: i64,
) -> *mut c_void {
    if descriptor >= 0 {
        if let Verdict::Fail(errno) = watch::before(descriptor, Call::Map, 0, 0) {
            fail(errno);
            return libc::MAP_FAILED;
        }
    }
    // SAFETY: the caller's arguments.
    let mapped = unsafe {
        libc::syscall(libc::SYS_mmap, address, bytes, protection, flags, descriptor, offset)
    };
    mapped as *mut c_void
}

fn control(descriptor: c_int, command: c_int, argument: *mut c_void) -> c_int {
    if command == libc::F_SETLK {
        // SAFETY: the argument of this command is a `struct flock`.
        let takes = unsafe { (*argument.cast::<libc::flock>()).l_type } != libc::F_UNLCK as i16;
        if takes {
            if let Verdict::Fail(errno) = watch::before(descriptor, Call::Lock, 0, 0) {
                return fail(errno);
            }
        }
    }
    // SAFETY: the caller's arguments.
    unsafe { libc::syscall(libc::SYS_fcntl, descriptor, command, argument) as c_int }
}

/// Functions of the C library under their own names.
macro_rules! replace {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty { $body:expr })*) => {
        $(
            /// # Safety
            /// As the C library's function of this name.
            #[no_mangle]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                $body
            }
        )*
    };
}

replace! {
    // The mode is a variadic argument, passed as an ordinary one on every ABI this runs on.
    open(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int { open_path(libc::AT_FDCWD, path, flags, mode) }
    open64(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int { open_path(libc::AT_FDCWD, path, flags, mode) }
    openat(at: c_int, path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int { open_path(at, path, flags, mode) }
    openat64(at: c_int, path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int { open_path(at, path, flags, mode) }
    write(fd: c_int, bytes: *const c_void, count: usize) -> libc::ssize_t { write_at(fd, bytes, count, None) }
    pwrite(fd: c_int, bytes: *const c_void, count: usize, at: i64) -> libc::ssize_t { write_at(fd, bytes, count, Some(at)) }
    pwrite64(fd: c_int, bytes: *const c_void, count: usize, at: i64) -> libc::ssize_t { write_at(fd, bytes, count, Some(at)) }
    read(fd: c_int, bytes: *mut c_void, count: usize) -> libc::ssize_t { read_at(fd, bytes, count, None) }
    pread(fd: c_int, bytes: *mut c_void, count: usize, at: i64) -> libc::ssize_t { read_at(fd, bytes, count, Some(at)) }
    pread64(fd: c_int, bytes: *mut c_void, count: usize, at: i64) -> libc::ssize_t { read_at(fd, bytes, count, Some(at)) }
    fsync(fd: c_int) -> c_int { sync(fd) }
    fdatasync(fd: c_int) -> c_int { sync(fd) }
    ftruncate(fd: c_int, size: i64) -> c_int { cut(fd, size) }
    ftruncate64(fd: c_int, size: i64) -> c_int { cut(fd, size) }
    fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int { control(fd, command, argument) }
    fcntl64(fd: c_int, command: c_int, argument: *mut c_void) -> c_int { control(fd, command, argument) }
    mmap(at: *mut c_void, bytes: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void { map(at, bytes, protection, flags, fd, offset) }
    mmap64(at: *mut c_void, bytes: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void { map(at, bytes, protection, flags, fd, offset) }
    access(path: *const c_char, mode: c_int) -> c_int { look_at(libc::AT_FDCWD, path, mode) }
    faccessat(at: c_int, path: *const c_char, mode: c_int, _flags: c_int) -> c_int { look_at(at, path, mode) }
    unlink(path: *const c_char) -> c_int { unlink_at(libc::AT_FDCWD, path, 0) }
    unlinkat(at: c_int, path: *const c_char, flags: c_int) -> c_int { unlink_at(at, path, flags) }
    rename(from: *const c_char, to: *const c_char) -> c_int { rename_at((libc::AT_FDCWD, from), (libc::AT_FDCWD, to)) }
    renameat(from_at: c_int, from: *const c_char, to_at: c_int, to: *const c_char) -> c_int { rename_at((from_at, from), (to_at, to)) }
    mkdir(path: *const c_char, mode: libc::mode_t) -> c_int { make_folder_at(libc::AT_FDCWD, path, mode) }
    mkdirat(at: c_int, path: *const c_char, mode: libc::mode_t) -> c_int { make_folder_at(at, path, mode) }
    // Nobody else is here to be waited for.
    usleep(_microseconds: u32) -> c_int { 0 }
    nanosleep(_time: *const libc::timespec, _left: *mut libc::timespec) -> c_int { 0 }
    close(fd: c_int) -> c_int {
        {
            watch::closed(fd);
            // SAFETY: the caller's arguments.
            unsafe { libc::syscall(libc::SYS_close, fd) as c_int }
        }
    }
}
