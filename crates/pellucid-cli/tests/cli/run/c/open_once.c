/* Opens once and says what came of it. */
#include <stdio.h>
int sqlite3_open(const char *, void **);
int main(void) {
  void *db = (void *)2;
  int code = sqlite3_open("x.db", &db);
  printf("%d %s\n", code, db ? "connection" : "null");
  return 0;
}
