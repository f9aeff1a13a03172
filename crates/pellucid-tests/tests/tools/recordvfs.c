/* A VFS over the default one that appends every byte written to $RECORD_TO.
**
** Loaded before libpellucid.so it lies below the shim, so that what it sees is what reaches the disk. A record:
** u32 open flags, u32 length of name, u64 length of bytes (native order), name, bytes.
*/
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "sqlite3ext.h"
SQLITE_EXTENSION_INIT1

typedef struct { sqlite3_file base; uint32_t kind; const char *name; } RecordFile;
#define BELOW(f) ((sqlite3_file *)((RecordFile *)(f) + 1))
#define CALL(f) (BELOW(f)->pMethods)

static sqlite3_vfs record_vfs, *below;
static int out = -1;

static void put(const void *bytes, size_t n) {
  const char *at = bytes;
  while (n > 0) {
    ssize_t done = write(out, at, n);
    if (done <= 0) abort();
    at += done;
    n -= (size_t)done;
  }
}

static int rClose(sqlite3_file *f) { return CALL(f)->xClose(BELOW(f)); }
static int rRead(sqlite3_file *f, void *p, int n, sqlite3_int64 o) { return CALL(f)->xRead(BELOW(f), p, n, o); }
static int rWrite(sqlite3_file *f, const void *p, int n, sqlite3_int64 o) {
  RecordFile *file = (RecordFile *)f;
  const char *name = file->name ? file->name : "(nameless)";
  uint32_t head[2] = {file->kind, (uint32_t)strlen(name)};
  uint64_t length = (uint64_t)n;
  put(head, sizeof head);
  put(&length, sizeof length);
  put(name, head[1]);
  put(p, (size_t)n);
  return CALL(f)->xWrite(BELOW(f), p, n, o);
}
static int rTruncate(sqlite3_file *f, sqlite3_int64 n) { return CALL(f)->xTruncate(BELOW(f), n); }
static int rSync(sqlite3_file *f, int flags) { return CALL(f)->xSync(BELOW(f), flags); }
static int rSize(sqlite3_file *f, sqlite3_int64 *n) { return CALL(f)->xFileSize(BELOW(f), n); }
static int rLock(sqlite3_file *f, int l) { return CALL(f)->xLock(BELOW(f), l); }
static int rUnlock(sqlite3_file *f, int l) { return CALL(f)->xUnlock(BELOW(f), l); }
static int rReserved(sqlite3_file *f, int *r) { return CALL(f)->xCheckReservedLock(BELOW(f), r); }
static int rControl(sqlite3_file *f, int op, void *p) { return CALL(f)->xFileControl(BELOW(f), op, p); }
static int rSector(sqlite3_file *f) { return CALL(f)->xSectorSize(BELOW(f)); }
static int rDevice(sqlite3_file *f) { return CALL(f)->xDeviceCharacteristics(BELOW(f)); }
static int rShmMap(sqlite3_file *f, int r, int n, int e, void volatile **p) {
  return CALL(f)->xShmMap(BELOW(f), r, n, e, p);
}
static int rShmLock(sqlite3_file *f, int o, int n, int flags) { return CALL(f)->xShmLock(BELOW(f), o, n, flags); }
static void rShmBarrier(sqlite3_file *f) { CALL(f)->xShmBarrier(BELOW(f)); }
static int rShmUnmap(sqlite3_file *f, int d) { return CALL(f)->xShmUnmap(BELOW(f), d); }

/* Version 2: no xFetch, so that nothing is written or read around this VFS. */
static const sqlite3_io_methods methods = {
    2, rClose, rRead, rWrite, rTruncate, rSync, rSize, rLock, rUnlock, rReserved,
    rControl, rSector, rDevice, rShmMap, rShmLock, rShmBarrier, rShmUnmap, 0, 0};

static int rOpen(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *granted) {
  RecordFile *file = (RecordFile *)f;
  (void)v;
  file->base.pMethods = 0;
  file->kind = (uint32_t)flags;
  file->name = name;
  BELOW(f)->pMethods = 0;
  int rc = below->xOpen(below, name, BELOW(f), flags, granted);
  if (BELOW(f)->pMethods) file->base.pMethods = &methods;
  return rc;
}

/* The functions without a file take no notice of which VFS they are called with, but for these. */
static int rDelete(sqlite3_vfs *v, const char *n, int d) { (void)v; return below->xDelete(below, n, d); }
static int rAccess(sqlite3_vfs *v, const char *n, int f, int *r) { (void)v; return below->xAccess(below, n, f, r); }
static int rFull(sqlite3_vfs *v, const char *n, int k, char *o) { (void)v; return below->xFullPathname(below, n, k, o); }

int sqlite3_recordvfs_init(sqlite3 *db, char **error, const sqlite3_api_routines *api) {
  SQLITE_EXTENSION_INIT2(api);
  (void)db;
  const char *path = getenv("RECORD_TO");
  if (below) return SQLITE_OK_LOAD_PERMANENTLY;
  out = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  if (out < 0) {
    *error = sqlite3_mprintf("RECORD_TO cannot be opened");
    return SQLITE_ERROR;
  }
  below = sqlite3_vfs_find(0);
  record_vfs = *below;
  record_vfs.pNext = 0;
  record_vfs.zName = "record";
  record_vfs.szOsFile = (int)sizeof(RecordFile) + below->szOsFile;
  record_vfs.xOpen = rOpen;
  record_vfs.xDelete = rDelete;
  record_vfs.xAccess = rAccess;
  record_vfs.xFullPathname = rFull;
  if (sqlite3_vfs_register(&record_vfs, 1) != SQLITE_OK) return SQLITE_ERROR;
  return SQLITE_OK_LOAD_PERMANENTLY;
}
