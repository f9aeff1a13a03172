/* A program that is linked with SQLite, prepares it as Subversion does, and opens no database. Its argument: its status. */
#include <sqlite3.h>
#include <stdlib.h>

int main(int count, char **words) {
  if (sqlite3_config(SQLITE_CONFIG_SERIALIZED) != SQLITE_OK || sqlite3_initialize() != SQLITE_OK) return 99;
  return count > 1 ? atoi(words[1]) : 0;
}
