/* load EXTENSION DATABASE: loads it and prints the rows of `t`; status 3 and the reason if it does not load. */
#include <sqlite3.h>
#include <stdio.h>

static int print(void *unused, int columns, char **values, char **names) {
  (void)unused, (void)columns, (void)names;
  return puts(values[0]) < 0;
}

int main(int count, char **words) {
  sqlite3 *loader, *db;
  char *error = 0;
  if (count != 3 || sqlite3_open(":memory:", &loader) || sqlite3_enable_load_extension(loader, 1)) return 2;
  if (sqlite3_load_extension(loader, words[1], 0, &error)) {
    fprintf(stderr, "%s\n", error ? error : "not loaded");
    return 3;
  }
  if (sqlite3_open(words[2], &db)) return 4;
  return sqlite3_exec(db, "SELECT count(*) FROM t", print, 0, 0) != 0;
}
