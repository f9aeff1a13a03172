/* Preloaded into a program: before it opens, or looks at, a file whose name has $LATE_NAME in it, and after it has given a file a name
   with $LATE_LINK in it by a link, it makes $LATE_WAITS, and goes on once that is gone, or after a minute. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void wait_at(const char *path, const char *name) {
  static int waited;
  const char *waits = getenv("LATE_WAITS");
  if (!name || !waits || waited || !strstr(path, name)) return;
  waited = 1;
  close(creat(waits, 0600));
  for (int ms = 0; ms < 60000 && access(waits, F_OK) == 0; ms++) usleep(1000);
}

static void wait_before(const char *path) { wait_at(path, getenv("LATE_NAME")); }

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define OPENS(name)                              \
  int name(const char *path, int flags, ...) {   \
    va_list rest;                                \
    va_start(rest, flags);                       \
    int mode = va_arg(rest, int);                \
    va_end(rest);                                \
    wait_before(path);                           \
    return NEXT(name)(path, flags, mode);        \
  }

OPENS(open)
OPENS(open64)

int statx(int directory, const char *restrict path, int flags, unsigned mask, struct statx *restrict found) {
  wait_before(path);
  return NEXT(statx)(directory, path, flags, mask, found);
}

int linkat(int from_directory, const char *from, int directory, const char *path, int flags) {
  int linked = NEXT(linkat)(from_directory, from, directory, path, flags);
  wait_at(path, getenv("LATE_LINK"));
  return linked;
}
