/* A module that opens by the SQLite it was linked with. */
int sqlite3_open(const char *, void **);
int plugin_open(const char *name, void **db) { return sqlite3_open(name, db); }
