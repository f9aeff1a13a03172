/*
 * killat: kills a program before the N-th of its own changes to the file system, or lets that call fail.
 *
 * A preload library for dynamically linked programs. It counts the calls that change regular files:
 * write, pwrite, writev, pwritev, fsync, fdatasync, ftruncate, unlink, rename, link, and open where
 * it creates or truncates, by a path or from an open directory. The sync calls change nothing that kill -9 could lose, but they are the
 * points where a program believes to be safe.
 *
 *   KILL_DIR=dir         count only files whose path begins so
 *   KILL_AT=N            SIGKILL before the N-th call, counted from 1
 *   KILL_TORN=unit       if the N-th call is a write, its first half, in whole units, is written before
 *   KILL_ERRNO=n         the N-th call fails with this error instead, and changes nothing
 *   KILL_ON=1            with that, every later call, too
 *   KILL_COUNT_FILE=path where the total goes at exit
 *
 * Build: gcc -O2 -shared -fPIC -o killat.so killat.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls;
static long kill_at;
static size_t torn;
static int error;
static int goes_on;
static const char *dir;
static size_t dir_length;
static const char *count_file;

static int stop(void) {
    if (error) {
        errno = error;
        return -1;
    }
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

__attribute__((constructor)) static void start(void) {
    const char *at = getenv("KILL_AT");
    kill_at = at ? atol(at) : 0;
    const char *unit = getenv("KILL_TORN");
    torn = unit ? (size_t)atol(unit) : 0;
    error = getenv("KILL_ERRNO") ? atoi(getenv("KILL_ERRNO")) : 0;
    goes_on = getenv("KILL_ON") != NULL;
    dir = getenv("KILL_DIR");
    dir_length = dir ? strlen(dir) : 0;
    count_file = getenv("KILL_COUNT_FILE");
}

__attribute__((destructor)) static void finish(void) {
    if (!count_file) return;
    char line[32];
    int length = snprintf(line, sizeof line, "%ld\n", atomic_load(&calls));
    int fd = (int)syscall(SYS_openat, AT_FDCWD, count_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) return;
    syscall(SYS_write, fd, line, (size_t)length);
    syscall(SYS_close, fd);
}

static int path_counts(const char *path) {
    return !dir || strncmp(path, dir, dir_length) == 0;
}

static int fd_counts(int fd) {
    struct stat about;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return 0;
    if (!dir) return 1;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return path_counts(path);
}

/* The same of a path that may be one from an open directory. */
static int at_counts(int at, const char *path) {
    char link[64], whole[4096];
    if (!dir || at == AT_FDCWD || path[0] == '/') return path_counts(path);
    snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    ssize_t length = readlink(link, whole, sizeof whole - 1);
    if (length < 0) return 0;
    snprintf(whole + length, sizeof whole - (size_t)length, "/%s", path);
    return path_counts(whole);
}

/* True if this is the call to stop at. */
static int is_last(void) {
    long number = atomic_fetch_add(&calls, 1) + 1;
    return kill_at && (number == kill_at || (goes_on && number > kill_at));
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t bytes) {
    NEXT(write);
    if (fd_counts(fd) && is_last()) {
        if (torn) next(fd, data, bytes / 2 / torn * torn);
        return stop();
    }
    return next(fd, data, bytes);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at) {
    NEXT(pwrite);
    if (fd_counts(fd) && is_last()) {
        if (torn) next(fd, data, bytes / 2 / torn * torn, at);
        return stop();
    }
    return next(fd, data, bytes, at);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t at) {
    NEXT(pwrite64);
    if (fd_counts(fd) && is_last()) {
        if (torn) next(fd, data, bytes / 2 / torn * torn, at);
        return stop();
    }
    return next(fd, data, bytes, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    NEXT(writev);
    if (fd_counts(fd) && is_last()) return stop();
    return next(fd, parts, count);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    NEXT(pwritev);
    if (fd_counts(fd) && is_last()) return stop();
    return next(fd, parts, count, at);
}

#define ON_FD(name, arguments, call) \
    int name arguments { \
        NEXT(name); \
        if (fd_counts(fd) && is_last()) return stop(); \
        return next call; \
    }
ON_FD(fsync, (int fd), (fd))
ON_FD(fdatasync, (int fd), (fd))
ON_FD(ftruncate, (int fd, off_t size), (fd, size))
ON_FD(ftruncate64, (int fd, off64_t size), (fd, size))

#define ON_PATH(name, arguments, at, path, call) \
    int name arguments { \
        NEXT(name); \
        if (at_counts(at, path) && is_last()) return stop(); \
        return next call; \
    }
ON_PATH(unlink, (const char *path), AT_FDCWD, path, (path))
ON_PATH(unlinkat, (int at, const char *path, int flags), at, path, (at, path, flags))
ON_PATH(rename, (const char *from, const char *to), AT_FDCWD, to, (from, to))
ON_PATH(renameat, (int at, const char *from, int in, const char *to), in, to, (at, from, in, to))
ON_PATH(link, (const char *from, const char *to), AT_FDCWD, to, (from, to))
ON_PATH(linkat, (int at, const char *from, int in, const char *to, int flags), in, to, (at, from, in, to, flags))

static int changes(int at, const char *path, int flags) {
    if (!at_counts(at, path)) return 0;
    if (flags & O_TRUNC) return 1;
    return (flags & O_CREAT) && faccessat(at, path, F_OK, 0) != 0;
}

#define ON_OPEN(name, first, at, path, pass) \
    int name first { \
        NEXT(name); \
        mode_t mode = 0; \
        if (flags & (O_CREAT | O_TMPFILE)) { \
            va_list rest; \
            va_start(rest, flags); \
            mode = va_arg(rest, mode_t); \
            va_end(rest); \
        } \
        if (changes(at, path, flags) && is_last()) return stop(); \
        return next pass; \
    }
ON_OPEN(open, (const char *path, int flags, ...), AT_FDCWD, path, (path, flags, mode))
ON_OPEN(open64, (const char *path, int flags, ...), AT_FDCWD, path, (path, flags, mode))
ON_OPEN(openat, (int at, const char *path, int flags, ...), at, path, (at, path, flags, mode))
ON_OPEN(openat64, (int at, const char *path, int flags, ...), at, path, (at, path, flags, mode))
