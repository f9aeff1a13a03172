/* Preloaded into a program: after $ROOM_BYTES bytes written to regular files the disk is full; with $ROOM_PATH only to those
   whose path begins so, with $ROOM_ERRNO with another error, which their syncs then give as well. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static long long room = -1;

static int counts(int fd) {
  struct stat st;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return 0;
  const char *wanted = getenv("ROOM_PATH");
  if (!wanted) return 1;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return strncmp(path, wanted, strlen(wanted)) == 0;
}

static int error(void) {
  const char *text = getenv("ROOM_ERRNO");
  return text ? atoi(text) : ENOSPC;
}

/* How many of n bytes still have room, -1 if none. */
static ssize_t grant(int fd, size_t n) {
  if (!counts(fd)) return (ssize_t)n;
  if (room < 0) {
    const char *text = getenv("ROOM_BYTES");
    room = text ? atoll(text) : 0;
  }
  if (n > 0 && room == 0) {
    errno = error();
    return -1;
  }
  size_t granted = n < (size_t)room ? n : (size_t)room;
  room -= (long long)granted;
  return (ssize_t)granted;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *p, size_t n) {
  ssize_t some = grant(fd, n);
  return some < 0 ? -1 : NEXT(write)(fd, p, (size_t)some);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at) {
  ssize_t some = grant(fd, n);
  return some < 0 ? -1 : NEXT(pwrite64)(fd, p, (size_t)some, at);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at) {
  ssize_t some = grant(fd, n);
  return some < 0 ? -1 : NEXT(pwrite)(fd, p, (size_t)some, at);
}

int posix_fallocate64(int fd, off64_t at, off64_t n) {
  (void)fd, (void)at, (void)n;
  return room == 0 ? ENOSPC : 0;
}

static int broken(int fd) {
  if (!getenv("ROOM_ERRNO") || room != 0 || !counts(fd)) return 0;
  errno = error();
  return 1;
}

int fsync(int fd) {
  return broken(fd) ? -1 : NEXT(fsync)(fd);
}

int fdatasync(int fd) {
  return broken(fd) ? -1 : NEXT(fdatasync)(fd);
}
