/* Preloaded into a program: it waits $LATE_MS before it opens a file whose name has $LATE_NAME in it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wait_before(const char *path) {
  const char *name = getenv("LATE_NAME"), *ms = getenv("LATE_MS");
  if (name && ms && strstr(path, name)) usleep((useconds_t)atoi(ms) * 1000);
}

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
