/* A SQLite that takes no automatic extension, so that the shim cannot be put in place. */
int sqlite3_auto_extension(void (*f)(void)) { (void)f; return 7; }
int sqlite3_cancel_auto_extension(void (*f)(void)) { (void)f; return 0; }
int sqlite3_close(void *db) { (void)db; return 0; }
int sqlite3_open(const char *name, void **db) { (void)name; *db = (void *)1; return 99; }
int sqlite3_open_v2(const char *name, void **db, int flags, const char *vfs) {
  (void)name; (void)flags; (void)vfs; *db = (void *)1; return 99;
}
