"""Runs a program and stops it before each system call that takes a path under one directory.

A filter (seccomp(2)) makes the kernel stop the program and its children at these calls alone, so that it runs at nearly
its own speed. The caller changes names while the program stands before the call, and the program goes on.
"""
import ctypes
import os
import platform
import signal
import struct
import time
from dataclasses import dataclass

MACHINE = platform.machine()
SUPPORTED = MACHINE == "x86_64"

# Number, name, and its paths: the argument with the directory's descriptor, or None, and the argument with the path.
CALLS = {
    2: ("open", [(None, 0)]), 4: ("stat", [(None, 0)]), 6: ("lstat", [(None, 0)]), 21: ("access", [(None, 0)]),
    76: ("truncate", [(None, 0)]), 80: ("chdir", [(None, 0)]), 82: ("rename", [(None, 0), (None, 1)]),
    83: ("mkdir", [(None, 0)]), 84: ("rmdir", [(None, 0)]), 85: ("creat", [(None, 0)]),
    86: ("link", [(None, 0), (None, 1)]), 87: ("unlink", [(None, 0)]), 88: ("symlink", [(None, 1)]),
    89: ("readlink", [(None, 0)]), 90: ("chmod", [(None, 0)]), 92: ("chown", [(None, 0)]), 94: ("lchown", [(None, 0)]),
    132: ("utime", [(None, 0)]), 133: ("mknod", [(None, 0)]), 137: ("statfs", [(None, 0)]),
    188: ("setxattr", [(None, 0)]), 191: ("getxattr", [(None, 0)]), 192: ("lgetxattr", [(None, 0)]),
    194: ("listxattr", [(None, 0)]), 235: ("utimes", [(None, 0)]), 254: ("inotify_add_watch", [(None, 1)]),
    257: ("openat", [(0, 1)]), 258: ("mkdirat", [(0, 1)]), 259: ("mknodat", [(0, 1)]), 260: ("fchownat", [(0, 1)]),
    262: ("newfstatat", [(0, 1)]), 263: ("unlinkat", [(0, 1)]), 264: ("renameat", [(0, 1), (2, 3)]),
    265: ("linkat", [(0, 1), (2, 3)]), 266: ("symlinkat", [(1, 2)]), 267: ("readlinkat", [(0, 1)]),
    268: ("fchmodat", [(0, 1)]), 269: ("faccessat", [(0, 1)]), 280: ("utimensat", [(0, 1)]),
    303: ("name_to_handle_at", [(0, 1)]), 316: ("renameat2", [(0, 1), (2, 3)]), 332: ("statx", [(0, 1)]),
    437: ("openat2", [(0, 1)]), 439: ("faccessat2", [(0, 1)]), 452: ("fchmodat2", [(0, 1)]),
}

TRACEME, CONT, GETREGS, SETOPTIONS = 0, 7, 12, 0x4200
# Fork, vfork, clone and exec of the program are followed; a call that the filter names stops it; it dies with the tracer.
OPTIONS = 2 | 4 | 8 | 16 | 128 | 0x100000
EVENT_SECCOMP = 7
WALL = 0x40000000
AT_FDCWD = 0xFFFFFF9C
PATH_MOST = 4096

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


class Registers(ctypes.Structure):
    """`user_regs_struct` of x86-64 (sys/user.h)."""
    _fields_ = [(name, ctypes.c_ulonglong) for name in (
        "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es fs gs"
    ).split()]


class Program(ctypes.Structure):
    """`sock_fprog`: a filter and the number of its instructions."""
    _fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def instructions():
    """The filter: the calls of CALLS stop the program, every other one goes on."""
    allow, trace = 0x7FFF0000, 0x7FF00000
    code = [struct.pack("HBBI", 0x20, 0, 0, 0)]  # the call's number
    numbers = sorted(CALLS)
    for at, number in enumerate(numbers):
        code.append(struct.pack("HBBI", 0x15, len(numbers) - at, 0, number))
    code.append(struct.pack("HBBI", 0x06, 0, 0, allow))
    code.append(struct.pack("HBBI", 0x06, 0, 0, trace))
    return b"".join(code)


CODE = ctypes.create_string_buffer(instructions())
FILTER = Program((len(CODE) - 1) // 8, ctypes.cast(CODE, ctypes.c_void_p))


@dataclass
class Stop:
    """A call that is about to happen, and one path of it under the directory."""
    number: int
    call: str
    path: str


@dataclass
class Ended:
    """How a run ended: the exit status, minus a signal, or None after the time limit; and what it said."""
    status: int | None
    said: bytes
    stops: list


def run(command, under, output, limit_s, environment, at_stop=None, cwd="/"):
    """Runs `command` and calls `at_stop` with each `Stop` under the directory `under`. Output goes to the file `output`."""
    child = os.fork()
    if child == 0:
        become(command, output, environment, cwd)
    os.waitpid(child, WALL)
    ptrace(SETOPTIONS, child, OPTIONS)
    ptrace(CONT, child, 0)
    stops, status = [], None
    traced = {child}
    deadline = time.monotonic() + limit_s
    while traced:
        tid, told = os.waitpid(-1, WALL | os.WNOHANG)
        if tid == 0:
            if time.monotonic() > deadline:
                break
            tid, told = wait_a_little(deadline)
            if tid == 0:
                break
        if os.WIFEXITED(told) or os.WIFSIGNALED(told):
            traced.discard(tid)
            if tid == child:
                status = os.WEXITSTATUS(told) if os.WIFEXITED(told) else -os.WTERMSIG(told)
            continue
        traced.add(tid)
        send = 0
        if told >> 8 == signal.SIGTRAP | EVENT_SECCOMP << 8:
            for call, path in paths_of(tid, under):
                stop = Stop(len(stops), call, path)
                stops.append(stop)
                if at_stop:
                    at_stop(stop)
        elif told >> 16 == 0 and os.WSTOPSIG(told) not in (signal.SIGTRAP, signal.SIGSTOP):
            send = os.WSTOPSIG(told)
        try:
            ptrace(CONT, tid, send)
        except ProcessLookupError:
            pass
    timed_out = bool(traced)
    for tid in traced:
        try:
            os.kill(tid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    if timed_out:
        status = None
        reap()
    with open(output, "rb") as said:
        return Ended(status, said.read(), stops)


def wait_a_little(deadline):
    """Waits for a stop until the deadline."""
    pause = 0.0002
    while time.monotonic() < deadline:
        tid, told = os.waitpid(-1, WALL | os.WNOHANG)
        if tid:
            return tid, told
        time.sleep(pause)
        pause = min(pause * 1.5, 0.005)
    return 0, 0


def reap():
    """Waits until the killed processes are gone."""
    while True:
        try:
            os.waitpid(-1, WALL)
        except ChildProcessError:
            return


def become(command, output, environment, cwd):
    """The child's part: stands still until it is traced, takes the filter, and becomes the program. Never returns."""
    try:
        out = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(cwd)
        os.setsid()
        libc.ptrace(TRACEME, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        # PR_SET_SECCOMP, SECCOMP_MODE_FILTER: root needs no PR_SET_NO_NEW_PRIVS.
        if libc.prctl(22, 2, ctypes.byref(FILTER), 0, 0) != 0:
            os._exit(126)
        os.execvpe(command[0], command, environment)
    finally:
        os._exit(127)


def ptrace(request, tid, data):
    """ptrace(2), with its error as an exception."""
    if libc.ptrace(request, tid, None, ctypes.c_void_p(data)) < 0:
        error = ctypes.get_errno()
        raise ProcessLookupError() if error == 3 else OSError(error, os.strerror(error))


def paths_of(tid, under):
    """The paths under the directory that the call takes at which `tid` stands, with the call's name."""
    registers = Registers()
    if libc.ptrace(GETREGS, tid, None, ctypes.byref(registers)) < 0:
        return
    if registers.orig_rax not in CALLS:
        return
    name, places = CALLS[registers.orig_rax]
    arguments = [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9]
    for descriptor, at in places:
        path = text_of(tid, arguments[at])
        if not path or path.startswith("/proc/"):
            continue
        if not path.startswith("/"):
            number = None if descriptor is None else arguments[descriptor] & 0xFFFFFFFF
            base = f"/proc/{tid}/cwd" if number in (None, AT_FDCWD) else f"/proc/{tid}/fd/{number}"
            try:
                path = os.path.join(os.readlink(base), path)
            except OSError:
                continue
        path = os.path.normpath(path)
        if path == under or path.startswith(under + "/"):
            yield name, path


def text_of(tid, address):
    """The string at an address of the program."""
    if not address:
        return ""
    try:
        with open(f"/proc/{tid}/mem", "rb", buffering=0) as memory:
            found, page = b"", 4096
            while len(found) < PATH_MOST:
                piece = os.pread(memory.fileno(), page - (address + len(found)) % page, address + len(found))
                if not piece:
                    break
                found += piece
                if b"\0" in found:
                    break
        return os.fsdecode(found.split(b"\0")[0])
    except OSError:
        return ""
