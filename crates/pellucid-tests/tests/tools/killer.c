/* Preloaded into a program: ends it by SIGKILL instead of its $KILL_AT_UNLINK-th removal of a file, by a path or from an
   open directory. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void before(void) {
  static int calls;
  const char *at = getenv("KILL_AT_UNLINK");
  if (at && ++calls == atoi(at)) kill(getpid(), SIGKILL);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int unlink(const char *path) {
  before();
  return NEXT(unlink)(path);
}

int unlinkat(int at, const char *path, int flags) {
  before();
  return NEXT(unlinkat)(at, path, flags);
}
