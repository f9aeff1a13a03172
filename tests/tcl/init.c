/*
** Puts the shim into SQLite's testfixture, which is built with -DSQLITE_EXTRA_INIT=pellucid_extra_init: this runs at the
** end of every sqlite3_initialize(). A test that calls sqlite3_shutdown() gets the platform's VFS back and an empty list
** of automatic extensions, and a child process starts with neither; both come through here again.
**
** PELLUCID_TCL_EXTENSION names the extension; without it nothing happens, which is the run on plain SQLite.
*/
#include "sqlite3.h"
#include <stdio.h>
#include <stdlib.h>

int pellucid_extra_init(const char *unused){
  static int loaded = 0;
  const char *extension = getenv("PELLUCID_TCL_EXTENSION");
  sqlite3 *db = 0;
  char *error = 0;
  int rc;
  (void)unused;
  if( extension==0 || extension[0]==0 ) return SQLITE_OK;
  rc = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE|SQLITE_OPEN_MEMORY, "unix");
  /* Some tests let each allocation fail once, also in here: sqlite3_initialize() tells. */
  if( rc==SQLITE_OK ) rc = sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, (int*)0);
  if( rc==SQLITE_OK ) rc = sqlite3_load_extension(db, extension, "sqlite3_pellucid_init", &error);
  if( rc==SQLITE_OK ){
    loaded = 1;
  }else if( !loaded ){
    fprintf(stderr, "init.c: %s: %s\n", extension, error ? error : sqlite3_errstr(rc));
    exit(99);
  }
  sqlite3_free(error);
  sqlite3_close(db);
  return rc;
}
