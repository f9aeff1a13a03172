/* What programs do around opening: configure first, open from many threads at once, shut down, start again. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>

static void *reader(void *name) {
  sqlite3 *db = 0;
  long ok = sqlite3_open(name, &db) == SQLITE_OK &&
            sqlite3_exec(db, "SELECT * FROM t", 0, 0, 0) == SQLITE_OK;
  sqlite3_close(db);
  return (void *)ok;
}

int main(int count, char **words) {
  pthread_t threads[8];
  void *ok;
  if (count != 2 || sqlite3_config(SQLITE_CONFIG_URI, 1) != SQLITE_OK) return puts("config refused"), 1;
  for (int i = 0; i < 8; i++) pthread_create(&threads[i], 0, reader, words[1]);
  for (int i = 0; i < 8; i++) {
    pthread_join(threads[i], &ok);
    if (!ok) return puts("a thread failed"), 1;
  }
  for (int i = 0; i < 3; i++) {
    if (sqlite3_shutdown() != SQLITE_OK) return puts("shutdown refused"), 1;
    if (sqlite3_config(SQLITE_CONFIG_URI, 1) != SQLITE_OK) return puts("second config refused"), 1;
    if (!reader(words[1])) return puts("not opened after shutdown"), 1;
  }
  return puts("fine"), 0;
}
