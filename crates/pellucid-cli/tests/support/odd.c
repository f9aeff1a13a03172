/* An extension with what only an application has: the collation `odd` and the function `odd`. */
#include <sqlite3ext.h>
#include <string.h>
SQLITE_EXTENSION_INIT1

static int compare(void *none, int n, const void *a, int m, const void *b) {
  int least = n < m ? n : m, order = memcmp(b, a, least);
  (void)none;
  return order ? order : m - n;
}

static void odd(sqlite3_context *context, int count, sqlite3_value **values) {
  (void)count;
  sqlite3_result_int64(context, sqlite3_value_int64(values[0]) | 1);
}

int sqlite3_extension_init(sqlite3 *db, char **message, const sqlite3_api_routines *api) {
  (void)message;
  SQLITE_EXTENSION_INIT2(api);
  sqlite3_create_collation(db, "odd", SQLITE_UTF8, 0, compare);
  return sqlite3_create_function(db, "odd", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, 0, odd, 0, 0);
}
