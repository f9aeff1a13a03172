/*
 * clock: gives a program the wall clock that a file has.
 *
 * A preload library for dynamically linked programs. CLOCK_REALTIME is the number of microseconds since 1970 in the eight bytes of
 * the file, read at each call, so that it steps when the file is written. All other clocks go on. A file with zero leaves the
 * system's clock.
 *
 *   CLOCK_FILE=path      the file, of eight bytes, little-endian
 *
 * Build: gcc -O2 -shared -fPIC -o clock.so clock.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const volatile uint64_t *micros;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("CLOCK_FILE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *mapped = mmap(NULL, sizeof *micros, PROT_READ, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) micros = mapped;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*next)(clockid_t, struct timespec *);
  uint64_t is = micros ? *micros : 0;
  if (clock == CLOCK_REALTIME && is != 0) {
    now->tv_sec = is / 1000000;
    now->tv_nsec = is % 1000000 * 1000;
    return 0;
  }
  if (!next) next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  return next(clock, now);
}
