/* Preloaded into a program: kills it at a write to a file whose path ends in $KILLED_FILE. Which write: the $KILLED_COUNT-th
   (from 1) that begins with $KILLED_MAGIC, and $KILLED_MORE writes to the file behind that one. With $KILLED_BEFORE set the last
   one is not made. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int number(const char *name) {
  const char *text = getenv(name);
  return text ? atoi(text) : 0;
}

static int is_wanted(int fd) {
  const char *end = getenv("KILLED_FILE");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (!end || length < (ssize_t)strlen(end)) return 0;
  path[length] = 0;
  return strcmp(path + length - strlen(end), end) == 0;
}

/* Writes that are still let through once the one with the magic has come. */
static int left = -1, found = 0;

/* Whether this write is the last one. */
static int is_last(int fd, const void *bytes, size_t length) {
  if (!is_wanted(fd)) return 0;
  if (left < 0) {
    const char *magic = getenv("KILLED_MAGIC");
    if (!magic || length < strlen(magic) || memcmp(bytes, magic, strlen(magic)) != 0) return 0;
    if (++found < (number("KILLED_COUNT") ? number("KILLED_COUNT") : 1)) return 0;
    left = number("KILLED_MORE");
  } else {
    left--;
  }
  if (left != 0) return 0;
  if (getenv("KILLED_BEFORE")) raise(SIGKILL);
  return 1;
}

static ssize_t ended(int last, ssize_t written) {
  if (last) raise(SIGKILL);
  return written;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *p, size_t n) {
  int last = is_last(fd, p, n);
  return ended(last, NEXT(write)(fd, p, n));
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at) {
  int last = is_last(fd, p, n);
  return ended(last, NEXT(pwrite)(fd, p, n, at));
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at) {
  int last = is_last(fd, p, n);
  return ended(last, NEXT(pwrite64)(fd, p, n, at));
}
