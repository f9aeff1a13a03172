/*
** What the parts of the battery share: statements that have to work, and fingerprints of databases.
*/
#ifndef BATTERY_H
#define BATTERY_H
#include "sqlite3.h"

/* Ends the program with a message. */
void die(const char *format, ...);

/* Opens a database and gives it a busy handler; must work. */
sqlite3 *opened(const char *name);
void closed(sqlite3 *db);

/* Runs statements; must work. */
void sql(sqlite3 *db, const char *format, ...);
/* Runs statements and gives the result code. */
int attempt(sqlite3 *db, const char *format, ...);
/* The first column of the first row; -1 without a row. */
sqlite3_int64 number(sqlite3 *db, const char *format, ...);

/* Prints a line: the name, a fingerprint of schema and rows, and what PRAGMA integrity_check says. */
void show(sqlite3 *db, const char *format, ...);
/* The same for a database that is opened for it. */
void show_file(const char *file, const char *format, ...);

/* Copies a file with what lies beside it (-journal, -wal). */
void copy(const char *from, const char *to);
void removed(const char *file);

/* The parts. Each prints lines that are the same on plain and on sealed databases. */
void journal_modes(void);
void spills(void);
void vacuums(void);
void attached(void);
void backups(void);
void wal_readers(void);
void temporary(void);
void kills(void);
void two_processes(void);
void threads(int seconds);
void errors(const char *extension);

/* Files for another version, and what another version wrote. */
void write_files(const char *name);
void read_files(const char *name);
#endif
