/*
** A double of the shim that does nothing but cost: the default VFS, whose files take PER_MILLE
** thousandths of the time that has passed since they last did.
**
** So whatever SQLite does between its calls is slower by that share, in wall time and in
** processor time. Loaded as an extension, it becomes the default VFS under Pellucid's name.
**
** A share of half a percent is ten nanoseconds in a short statement, so the double may not cost
** more than it says: a file is the default VFS's own, with a copy of its method table in which
** only the calls below are other ones. With PER_MILLE=0 it shows what it costs by itself.
**
**   cc -O2 -fPIC -shared -DPER_MILLE=30 -o slow.so slow.c
*/
#include <sqlite3ext.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
SQLITE_EXTENSION_INIT1

#ifndef PER_MILLE
# error "PER_MILLE: thousandths that are added"
#endif
/* The clock is looked at once in so many calls, so that looking costs next to nothing. */
#define CALLS_BETWEEN_LOOKS 64
/* What a thread slept or waited for longer, as for its turn, is no work of its own. */
#define LONGEST_NS 1000000LL
/* The default VFS has one table for each way of locking; more than these are left as they are. */
#define MOST_TABLES 8

typedef struct Table {
  sqlite3_io_methods slow;
  const sqlite3_io_methods *real;
} Table;

static sqlite3_vfs *below;
static sqlite3_vfs slow;
static pthread_mutex_t filling = PTHREAD_MUTEX_INITIALIZER;
static Table tables[MOST_TABLES];
static int n_tables;

/* Found without a call, unlike what an extension's threads have by default. */
#define PER_THREAD static _Thread_local __attribute__((tls_model("initial-exec")))
PER_THREAD long long ended;
PER_THREAD int calls;

static long long now(void){
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec*1000000000LL + t.tv_nsec;
}

static __attribute__((noinline)) void look(void){
  long long start = now();
  long long worked = start - ended;
  calls = 0;
  if( ended!=0 && worked<LONGEST_NS ){
    long long until = start + worked*PER_MILLE/1000;
    while( (ended = now())<until ){}
  }else{
    ended = start;
  }
}

static inline void pay(void){
  if( __builtin_expect(++calls>=CALLS_BETWEEN_LOOKS, 0) ) look();
}

/* A file with such a table was opened by xOpen below; its table is the first member of a Table. */
#define M(f) (((const Table*)(f)->pMethods)->real)

static int xRead(sqlite3_file *f, void *to, int n, sqlite3_int64 at){ pay(); return M(f)->xRead(f, to, n, at); }
static int xWrite(sqlite3_file *f, const void *from, int n, sqlite3_int64 at){ pay(); return M(f)->xWrite(f, from, n, at); }
static int xShmLock(sqlite3_file *f, int at, int n, int flags){ pay(); return M(f)->xShmLock(f, at, n, flags); }

static const sqlite3_io_methods *slowed(const sqlite3_io_methods *real){
  const sqlite3_io_methods *found = real;
  int i;
  pthread_mutex_lock(&filling);
  for(i=0; i<n_tables && tables[i].real!=real; i++){}
  if( i<MOST_TABLES ){
    if( i==n_tables ){
      tables[i].real = real;
      tables[i].slow = *real;
      tables[i].slow.xRead = xRead;
      tables[i].slow.xWrite = xWrite;
      if( real->iVersion>=2 ) tables[i].slow.xShmLock = xShmLock;
      n_tables++;
    }
    found = &tables[i].slow;
  }
  pthread_mutex_unlock(&filling);
  return found;
}

static int xOpen(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out){
  int rc = below->xOpen(below, name, f, flags, out);
  (void)vfs;
  if( f->pMethods!=0 ) f->pMethods = slowed(f->pMethods);
  return rc;
}

int sqlite3_slow_init(sqlite3 *db, char **message, const sqlite3_api_routines *api){
  (void)db; (void)message;
  SQLITE_EXTENSION_INIT2(api);
  below = sqlite3_vfs_find(0);
  if( below==0 ) return SQLITE_ERROR;
  /* All but opening a file is the VFS's below: it does not look at which one it was called through. */
  slow = *below;
  slow.zName = "pellucid";
  slow.pNext = 0;
  slow.xOpen = xOpen;
  return sqlite3_vfs_register(&slow, 1) ? SQLITE_ERROR : SQLITE_OK_LOAD_PERMANENTLY;
}
