/* Preloaded into a program: after $ROOM_BYTES bytes written to regular files the disk is full. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static long long room = -1;

/* How many of n bytes still have room, -1 if none. */
static ssize_t grant(int fd, size_t n) {
  struct stat st;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return (ssize_t)n;
  if (room < 0) {
    const char *text = getenv("ROOM_BYTES");
    room = text ? atoll(text) : 0;
  }
  if (n > 0 && room == 0) {
    errno = ENOSPC;
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
