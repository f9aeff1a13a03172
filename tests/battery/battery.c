/*
** The battery: one program over the SQLite it is linked with, which prints what it found as lines.
**
**   battery EXTENSION all            every part, in the working directory, which is empty
**   battery EXTENSION PART           one of them
**   battery EXTENSION write NAME     leaves NAME-clean.db, NAME-wal.db, NAME-hot.db and NAME-log.db
**   battery EXTENSION read NAME      what is in them, after a commit more
**   battery EXTENSION threads SECONDS
**   battery EXTENSION errors         damage, foreign files, loading, first encryption; for sealed ones only
**
** EXTENSION is loaded once and makes its VFS the default; `-` is none. The lines of a run over sealed databases have to
** be those of a run over plain ones: nothing in them depends on page counts, times or randomness.
*/
#include "battery.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void die(const char *format, ...){
  va_list list;
  va_start(list, format);
  fflush(stdout);
  fprintf(stderr, "battery: ");
  vfprintf(stderr, format, list);
  fprintf(stderr, "\n");
  va_end(list);
  _exit(1);
}

sqlite3 *opened(const char *name){
  sqlite3 *db = 0;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
  int rc = sqlite3_open_v2(name, &db, flags, 0);
  if( rc!=SQLITE_OK ) die("open %s: %s", name, sqlite3_errmsg(db));
  sqlite3_busy_timeout(db, 60000);
  return db;
}

void closed(sqlite3 *db){
  int rc = sqlite3_close(db);
  if( rc!=SQLITE_OK ) die("close: %s", sqlite3_errmsg(db));
}

static int run(sqlite3 *db, char *text, char **error){
  int rc = sqlite3_exec(db, text, 0, 0, error);
  sqlite3_free(text);
  return rc;
}

void sql(sqlite3 *db, const char *format, ...){
  char *error = 0, *text;
  va_list list;
  va_start(list, format);
  text = sqlite3_vmprintf(format, list);
  va_end(list);
  if( run(db, text, &error)!=SQLITE_OK ) die("%s (%d): %s", error, sqlite3_extended_errcode(db), format);
}

int attempt(sqlite3 *db, const char *format, ...){
  char *text;
  va_list list;
  va_start(list, format);
  text = sqlite3_vmprintf(format, list);
  va_end(list);
  return run(db, text, 0);
}

static sqlite3_stmt *prepared(sqlite3 *db, const char *text){
  sqlite3_stmt *statement = 0;
  if( sqlite3_prepare_v2(db, text, -1, &statement, 0)!=SQLITE_OK ) die("%s: %s", sqlite3_errmsg(db), text);
  return statement;
}

sqlite3_int64 number(sqlite3 *db, const char *format, ...){
  sqlite3_stmt *statement;
  sqlite3_int64 result = -1;
  char *text;
  int rc;
  va_list list;
  va_start(list, format);
  text = sqlite3_vmprintf(format, list);
  va_end(list);
  statement = prepared(db, text);
  rc = sqlite3_step(statement);
  if( rc==SQLITE_ROW ) result = sqlite3_column_int64(statement, 0);
  else if( rc!=SQLITE_DONE ) die("%s: %s", sqlite3_errmsg(db), text);
  sqlite3_finalize(statement);
  sqlite3_free(text);
  return result;
}

/* FNV-1a over every column of every row. */
static sqlite3_uint64 hashed(sqlite3 *db, const char *query, sqlite3_uint64 hash){
  sqlite3_stmt *statement = prepared(db, query);
  int rc;
  while( (rc = sqlite3_step(statement))==SQLITE_ROW ){
    int column, columns = sqlite3_column_count(statement);
    for(column=0; column<columns; column++){
      const unsigned char *bytes = sqlite3_column_blob(statement, column);
      int i, size = sqlite3_column_bytes(statement, column);
      for(i=0; i<size; i++) hash = (hash ^ bytes[i])*0x100000001b3ULL;
      hash = (hash ^ (unsigned)sqlite3_column_type(statement, column))*0x100000001b3ULL;
    }
  }
  if( rc!=SQLITE_DONE ) die("%s: %s", sqlite3_errmsg(db), query);
  sqlite3_finalize(statement);
  return hash;
}

static void show_list(sqlite3 *db, const char *format, va_list list){
  char *name = sqlite3_vmprintf(format, list);
  sqlite3_stmt *tables, *check;
  sqlite3_uint64 hash = hashed(db, "SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2", 0xcbf29ce484222325ULL);
  sqlite3_int64 rows = 0;
  tables = prepared(db, "SELECT name FROM sqlite_schema WHERE type='table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY 1");
  while( sqlite3_step(tables)==SQLITE_ROW ){
    char *query = sqlite3_mprintf("SELECT * FROM \"%w\"", sqlite3_column_text(tables, 0));
    hash = hashed(db, query, hash);
    rows += number(db, "SELECT count(*) FROM \"%w\"", sqlite3_column_text(tables, 0));
    sqlite3_free(query);
  }
  sqlite3_finalize(tables);
  check = prepared(db, "PRAGMA integrity_check");
  if( sqlite3_step(check)!=SQLITE_ROW ) die("%s: no answer from integrity_check: %s", name, sqlite3_errmsg(db));
  printf("%s: %lld rows, %016llx, %s\n", name, rows, hash, sqlite3_column_text(check, 0));
  fflush(stdout);
  sqlite3_finalize(check);
  sqlite3_free(name);
}

void show(sqlite3 *db, const char *format, ...){
  va_list list;
  va_start(list, format);
  show_list(db, format, list);
  va_end(list);
}

void show_file(const char *file, const char *format, ...){
  sqlite3 *db = opened(file);
  va_list list;
  va_start(list, format);
  show_list(db, format, list);
  va_end(list);
  closed(db);
}

static void copy_one(const char *from, const char *to, const char *suffix){
  char source[500], target[500], block[65536];
  FILE *in, *out;
  size_t got;
  snprintf(source, sizeof source, "%s%s", from, suffix);
  snprintf(target, sizeof target, "%s%s", to, suffix);
  unlink(target);
  in = fopen(source, "rb");
  if( in==0 ) return;
  out = fopen(target, "wb");
  if( out==0 ) die("cannot write %s", target);
  while( (got = fread(block, 1, sizeof block, in))>0 ) if( fwrite(block, 1, got, out)!=got ) die("cannot write %s", target);
  fclose(in);
  if( fclose(out)!=0 ) die("cannot write %s", target);
}

void copy(const char *from, const char *to){
  copy_one(from, to, "");
  copy_one(from, to, "-journal");
  copy_one(from, to, "-wal");
}

void removed(const char *file){
  static const char *suffixes[] = {"", "-journal", "-wal", "-shm"};
  char name[500];
  int i;
  for(i=0; i<4; i++){
    snprintf(name, sizeof name, "%s%s", file, suffixes[i]);
    unlink(name);
  }
}

static void *load(void *name){
  const char *extension = name;
  sqlite3 *db = 0;
  char *error = 0;
  int rc;
  if( strcmp(extension, "-")==0 ) return 0;
  rc = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE|SQLITE_OPEN_MEMORY, 0);
  if( rc==SQLITE_OK ) rc = sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, (int*)0);
  if( rc==SQLITE_OK ) rc = sqlite3_load_extension(db, extension, "sqlite3_pellucid_init", &error);
  if( rc!=SQLITE_OK ) die("%s: %s", extension, error ? error : sqlite3_errmsg(db));
  sqlite3_free(error);
  sqlite3_close(db);
  if( strcmp(sqlite3_vfs_find(0)->zName, "pellucid")!=0 ) die("the extension is loaded and its VFS is not the default");
  return 0;
}

/* The first registration is everybody's: four threads come at once. */
static void load_at_once(char *extension){
  pthread_t thread[4];
  int i;
#ifdef __SANITIZE_THREAD__
  /* Its double-checked start is a race to ThreadSanitizer, which is not ours to judge. */
  if( sqlite3_initialize()!=SQLITE_OK ) die("SQLite does not start");
#endif
  for(i=0; i<4; i++) if( pthread_create(&thread[i], 0, load, extension)!=0 ) die("no thread");
  for(i=0; i<4; i++) pthread_join(thread[i], 0);
}

static const struct { const char *name; void (*part)(void); } parts[] = {
  {"journal_modes", journal_modes}, {"spills", spills}, {"vacuums", vacuums}, {"attached", attached},
  {"backups", backups}, {"wal_readers", wal_readers}, {"temporary", temporary}, {"kills", kills},
  {"two_processes", two_processes},
};

int main(int count, char **words){
  const char *part = count>2 ? words[2] : "";
  unsigned i, ran = 0;
  if( count<3 ) die("usage: battery EXTENSION all|PART|write NAME|read NAME|threads SECONDS");
  if( strcmp(words[1], "version")==0 ) return printf("%s\n", sqlite3_libversion())<0;
  if( strcmp(part, "threads")==0 ) load_at_once(words[1]); else load(words[1]);
  if( strcmp(part, "write")==0 && count==4 ) write_files(words[3]), ran++;
  if( strcmp(part, "read")==0 && count==4 ) read_files(words[3]), ran++;
  if( strcmp(part, "threads")==0 && count==4 ) threads(atoi(words[3])), ran++;
  if( strcmp(part, "errors")==0 ) errors(words[1]), ran++;
  for(i=0; i<sizeof parts/sizeof *parts; i++){
    if( strcmp(part, "all")!=0 && strcmp(part, parts[i].name)!=0 ) continue;
    parts[i].part();
    ran++;
  }
  if( ran==0 ) die("there is no part `%s`", part);
  return 0;
}
