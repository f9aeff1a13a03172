/* Preloaded into a program: right before its call number $EXCHANGE_AT on a file whose name ends in $EXCHANGE_NAME, that name
   is given to $EXCHANGE_WITH; with $EXCHANGE_BACK the two change places, and again before the call of that number. So does whoever may write the directory, at the moment that suits them. Without that, the
   program is killed there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void before(const char *path) {
  static int calls;
  const char *name = getenv("EXCHANGE_NAME"), *with = getenv("EXCHANGE_WITH");
  const char *at = getenv("EXCHANGE_AT"), *back = getenv("EXCHANGE_BACK");
  if (!name || !at || strlen(path) < strlen(name)) return;
  if (strcmp(path + strlen(path) - strlen(name), name) != 0) return;
  int call = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  if (call != atoi(at) && !(back && call == atoi(back))) return;
  if (!with) {
    close(creat(getenv("EXCHANGE_KILLED"), 0600));
    raise(SIGKILL);
  }
  syscall(SYS_renameat2, AT_FDCWD, with, AT_FDCWD, path, back ? 2 /* RENAME_EXCHANGE */ : 0);
}

/* The same of a name in an open directory. */
static void before_at(int at, const char *name) {
  char link[64], path[4096];
  if (at == AT_FDCWD || name[0] == '/') {
    before(name);
    return;
  }
  snprintf(link, sizeof link, "/proc/self/fd/%d", at);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return;
  snprintf(path + length, sizeof path - (size_t)length, "/%s", name);
  before(path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define OPENS(name)                            \
  int name(const char *path, int flags, ...) { \
    va_list rest;                              \
    va_start(rest, flags);                     \
    int mode = va_arg(rest, int);              \
    va_end(rest);                              \
    before(path);                              \
    return NEXT(name)(path, flags, mode);      \
  }
#define OPENS_AT(name)                                 \
  int name(int at, const char *path, int flags, ...) { \
    va_list rest;                                      \
    va_start(rest, flags);                             \
    int mode = va_arg(rest, int);                      \
    va_end(rest);                                      \
    before_at(at, path);                               \
    return NEXT(name)(at, path, flags, mode);          \
  }

OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)

int symlink(const char *text, const char *path) {
  before(path);
  return NEXT(symlink)(text, path);
}

int symlinkat(const char *text, int at, const char *path) {
  before_at(at, path);
  return NEXT(symlinkat)(text, at, path);
}

int unlink(const char *path) {
  before(path);
  return NEXT(unlink)(path);
}

int unlinkat(int at, const char *path, int flags) {
  before_at(at, path);
  return NEXT(unlinkat)(at, path, flags);
}

int rename(const char *from, const char *to) {
  before(from);
  before(to);
  return NEXT(rename)(from, to);
}

int renameat(int one, const char *from, int other, const char *to) {
  before_at(one, from);
  before_at(other, to);
  return NEXT(renameat)(one, from, other, to);
}

int linkat(int one, const char *from, int other, const char *to, int flags) {
  before_at(one, from);
  before_at(other, to);
  return NEXT(linkat)(one, from, other, to, flags);
}
