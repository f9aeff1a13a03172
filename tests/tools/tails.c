/*
 * tails: notes the tail of every sealed unit a program writes.
 *
 * A preload library. A unit ends with nonce 12, generation 4, tag 16 (docs/format.md, "Sealed unit").
 * Where units lie in a write follows from the file's name:
 *   NAME-wal      behind the header of 32 bytes, frames of 24 + page size
 *   NAME-journal  header sectors of 512 bytes or part of one, with two units; else records of page size + 8
 *   NAME          behind the header region of 16384 bytes, pages
 *
 *   TAILS_DIR=dir    only files whose path begins so
 *   TAILS_PAGE=n     the page size; 1024 or more, so that no run of records has the length of a header
 *   TAILS_FILE=path  33 bytes are appended for each unit: kind D, W or J, then the tail. A write that
 *                    fits no shape is noted with kind '?', so that none is missed in silence.
 *
 * Build: gcc -O2 -shared -fPIC -o tails.so tails.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TAIL 32
#define REGION 16384

static const char *dir;
static size_t page;
static int out = -1;

__attribute__((constructor)) static void start(void) {
    const char *size = getenv("TAILS_PAGE"), *path = getenv("TAILS_FILE");
    dir = getenv("TAILS_DIR");
    page = size ? (size_t)atol(size) : 4096;
    if (path && dir) {
        out = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
}

static int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

static void note(char kind, const unsigned char *tail) {
    unsigned char line[1 + TAIL] = {0};
    line[0] = (unsigned char)kind;
    if (tail) memcpy(line + 1, tail, TAIL);
    if (syscall(SYS_write, out, line, sizeof line) != (long)sizeof line) _exit(99);
}

static int is_zero(const unsigned char *bytes, size_t length) {
    for (size_t n = 0; n < length; n++)
        if (bytes[n]) return 0;
    return 1;
}

static void run_of_units(char kind, const unsigned char *data, size_t bytes, size_t unit) {
    if (bytes == 0 || bytes % unit) {
        note('?', NULL);
        return;
    }
    for (size_t end = unit; end <= bytes; end += unit) note(kind, data + end - TAIL);
}

static void look(int fd, const unsigned char *data, size_t bytes, off64_t at) {
    char link[64], path[4096];
    if (out < 0 || fd == out) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return;
    path[length] = 0;
    if (strncmp(path, dir, strlen(dir)) != 0) return;
    if (ends_with(path, "-shm")) return;
    /* The rest of a log that is kept aside: its units were noted when they were sealed. */
    if (strstr(path, "-wal-lost-") || strstr(path, "-wal-maybe-lost-")) return;
    if (ends_with(path, "-wal")) {
        if (at >= 32) run_of_units('W', data, bytes, page + 24);
    } else if (ends_with(path, "-journal")) {
        if (is_zero(data, bytes)) return;
        if (at % 512 == 0 && bytes <= 512) {
            if (bytes < 332) {
                note('?', NULL);
                return;
            }
            note('J', data + 32 + 16 + 28);
            note('J', data + 256 + 16 + 28);
        } else {
            run_of_units('J', data, bytes, page + 8);
        }
    } else if (at >= REGION) {
        run_of_units('D', data, bytes, page);
    }
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t bytes) {
    NEXT(write);
    if (out >= 0) look(fd, data, bytes, lseek(fd, 0, SEEK_CUR));
    return next(fd, data, bytes);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at) {
    NEXT(pwrite);
    look(fd, data, bytes, at);
    return next(fd, data, bytes, at);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t at) {
    NEXT(pwrite64);
    look(fd, data, bytes, at);
    return next(fd, data, bytes, at);
}
