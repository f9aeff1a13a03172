/*
** A double of the shim that does nothing but cost: a VFS around the default one that gives its
** calls through, and takes PER_MILLE thousandths of the time that has passed since it last did.
**
** So whatever SQLite does between its calls is slower by that share, in wall time and in
** processor time. Loaded as an extension, it becomes the default VFS under Pellucid's name.
**
**   cc -O2 -fPIC -shared -DPER_MILLE=30 -o slow.so slow.c
*/
#include <sqlite3ext.h>
#include <string.h>
#include <time.h>
SQLITE_EXTENSION_INIT1

#ifndef PER_MILLE
# error "PER_MILLE: thousandths that are added"
#endif
/* The clock is looked at once in so many calls, so that looking costs next to nothing. */
#define CALLS_BETWEEN_LOOKS 32
/* What a thread slept or waited for longer is no work of its own. */
#define LONGEST_NS 50000000LL

static sqlite3_vfs *below;
static sqlite3_vfs slow;
static sqlite3_io_methods methods[3];

typedef struct SlowFile {
  sqlite3_file base;
  sqlite3_file *real;
} SlowFile;

static _Thread_local long long ended;
static _Thread_local int calls;

static long long now(void){
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec*1000000000LL + t.tv_nsec;
}

static void pay(void){
  long long start, worked;
  if( ++calls<CALLS_BETWEEN_LOOKS ) return;
  calls = 0;
  start = now();
  worked = start - ended;
  if( ended!=0 && worked<LONGEST_NS ){
    long long until = start + worked*PER_MILLE/1000;
    while( now()<until ){}
  }
  ended = now();
}

#define REAL(f) (((SlowFile*)(f))->real)
#define M(f) (REAL(f)->pMethods)

static int xClose(sqlite3_file *f){ return M(f)->xClose(REAL(f)); }
static int xRead(sqlite3_file *f, void *to, int n, sqlite3_int64 at){ pay(); return M(f)->xRead(REAL(f), to, n, at); }
static int xWrite(sqlite3_file *f, const void *from, int n, sqlite3_int64 at){ pay(); return M(f)->xWrite(REAL(f), from, n, at); }
static int xTruncate(sqlite3_file *f, sqlite3_int64 n){ return M(f)->xTruncate(REAL(f), n); }
static int xSync(sqlite3_file *f, int flags){ return M(f)->xSync(REAL(f), flags); }
static int xFileSize(sqlite3_file *f, sqlite3_int64 *n){ return M(f)->xFileSize(REAL(f), n); }
static int xLock(sqlite3_file *f, int lock){ return M(f)->xLock(REAL(f), lock); }
static int xUnlock(sqlite3_file *f, int lock){ return M(f)->xUnlock(REAL(f), lock); }
static int xCheckReservedLock(sqlite3_file *f, int *out){ return M(f)->xCheckReservedLock(REAL(f), out); }
static int xFileControl(sqlite3_file *f, int op, void *arg){ return M(f)->xFileControl(REAL(f), op, arg); }
static int xSectorSize(sqlite3_file *f){ return M(f)->xSectorSize(REAL(f)); }
static int xDeviceCharacteristics(sqlite3_file *f){ return M(f)->xDeviceCharacteristics(REAL(f)); }
static int xShmMap(sqlite3_file *f, int page, int size, int extend, void volatile **out){ return M(f)->xShmMap(REAL(f), page, size, extend, out); }
static int xShmLock(sqlite3_file *f, int at, int n, int flags){ pay(); return M(f)->xShmLock(REAL(f), at, n, flags); }
static void xShmBarrier(sqlite3_file *f){ M(f)->xShmBarrier(REAL(f)); }
static int xShmUnmap(sqlite3_file *f, int del){ return M(f)->xShmUnmap(REAL(f), del); }
static int xFetch(sqlite3_file *f, sqlite3_int64 at, int n, void **out){ pay(); return M(f)->xFetch(REAL(f), at, n, out); }
static int xUnfetch(sqlite3_file *f, sqlite3_int64 at, void *p){ return M(f)->xUnfetch(REAL(f), at, p); }

static int xOpen(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out){
  SlowFile *file = (SlowFile*)f;
  int rc;
  (void)vfs;
  file->real = (sqlite3_file*)&file[1];
  rc = below->xOpen(below, name, file->real, flags, out);
  f->pMethods = 0;
  if( file->real->pMethods!=0 ){
    int version = file->real->pMethods->iVersion;
    f->pMethods = &methods[(version<1 ? 1 : version>3 ? 3 : version) - 1];
  }
  return rc;
}

int sqlite3_slow_init(sqlite3 *db, char **message, const sqlite3_api_routines *api){
  int version;
  (void)db; (void)message;
  SQLITE_EXTENSION_INIT2(api);
  below = sqlite3_vfs_find(0);
  if( below==0 ) return SQLITE_ERROR;
  for(version=1; version<=3; version++){
    sqlite3_io_methods *m = &methods[version-1];
    memset(m, 0, sizeof(*m));
    m->iVersion = version;
    m->xClose = xClose; m->xRead = xRead; m->xWrite = xWrite; m->xTruncate = xTruncate;
    m->xSync = xSync; m->xFileSize = xFileSize; m->xLock = xLock; m->xUnlock = xUnlock;
    m->xCheckReservedLock = xCheckReservedLock; m->xFileControl = xFileControl;
    m->xSectorSize = xSectorSize; m->xDeviceCharacteristics = xDeviceCharacteristics;
    if( version>=2 ){ m->xShmMap = xShmMap; m->xShmLock = xShmLock; m->xShmBarrier = xShmBarrier; m->xShmUnmap = xShmUnmap; }
    if( version>=3 ){ m->xFetch = xFetch; m->xUnfetch = xUnfetch; }
  }
  /* All but opening a file is the VFS's below: it does not look at which one it was called through. */
  slow = *below;
  slow.zName = "pellucid";
  slow.szOsFile = (int)sizeof(SlowFile) + below->szOsFile;
  slow.pNext = 0;
  slow.xOpen = xOpen;
  return sqlite3_vfs_register(&slow, 1) ? SQLITE_ERROR : SQLITE_OK_LOAD_PERMANENTLY;
}
