/* A program that counts what it opens by a VFS of its own over the default one, and makes that the default. The database is
   opened, SQLite shut down and started, and the database opened again: `opens before, rows; opens after, rows`. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static sqlite3_vfs *below;
static int opens;

static int count_open(sqlite3_vfs *self, const char *name, sqlite3_file *file, int flags, int *out) {
  (void)self;
  opens++;
  return below->xOpen(below, name, file, flags, out);
}

static int rows(const char *name) {
  sqlite3 *db;
  sqlite3_stmt *count;
  int found = -1;
  if (sqlite3_open(name, &db) == SQLITE_OK &&
      sqlite3_prepare_v2(db, "SELECT count(*) FROM t", -1, &count, 0) == SQLITE_OK) {
    if (sqlite3_step(count) == SQLITE_ROW) found = sqlite3_column_int(count, 0);
    sqlite3_finalize(count);
  }
  sqlite3_close(db);
  return found;
}

int main(int argc, char **argv) {
  static sqlite3_vfs own;
  sqlite3 *first;
  (void)argc;
  /* The shim is put in place at the first open. */
  sqlite3_open(":memory:", &first);
  sqlite3_close(first);
  below = sqlite3_vfs_find(0);
  memcpy(&own, below, sizeof own);
  own.zName = "counting";
  own.pNext = 0;
  own.xOpen = count_open;
  sqlite3_vfs_register(&own, 1);
  int before = rows(argv[1]);
  printf("%s %d, %d; ", sqlite3_vfs_find(0)->zName, opens > 0, before);
  opens = 0;
  sqlite3_shutdown();
  int after = rows(argv[1]);
  printf("%s %d, %d\n", sqlite3_vfs_find(0)->zName, opens > 0, after);
  return 0;
}
