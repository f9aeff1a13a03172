/*
** What goes wrong: damaged, cut and foreign files, wrong parameters, the extension loaded again and again, and the
** first encryption. For runs under a sanitizer: the results are those of the sealed format, so nothing is compared with
** plain databases. Damage must be refused or mended; in a log or journal it may
** end it there, as it does on plain databases; in a database it never changes what is read.
*/
#include "battery.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *files[] = {"damage-clean.db", "damage-wal.db", "damage-hot.db", "damage-log.db"};

/* The sum over all rows of `t`, by way of every page; -2 for an error. */
static sqlite3_int64 sum(const char *file, int writes){
  sqlite3 *db = 0;
  sqlite3_stmt *statement = 0;
  sqlite3_int64 result = -2;
  if( sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE|SQLITE_OPEN_URI, 0)==SQLITE_OK
   && attempt(db, "PRAGMA integrity_check; SELECT count(*) FROM w WHERE v>0;")==SQLITE_OK
   && sqlite3_prepare_v2(db, "SELECT sum(a*length(b)+length(c)) FROM t", -1, &statement, 0)==SQLITE_OK
   && sqlite3_step(statement)==SQLITE_ROW ){
    result = sqlite3_column_int64(statement, 0);
  }
  sqlite3_finalize(statement);
  if( writes ) attempt(db, "UPDATE t SET c=zeroblob(2000) WHERE a%%50=0; DELETE FROM w WHERE v%%9=0; PRAGMA wal_checkpoint; VACUUM;");
  sqlite3_close(db);
  return result;
}

static long size_of(const char *file){
  struct stat status;
  return stat(file, &status)==0 ? (long)status.st_size : -1;
}

/* Changes one byte of a file, or cuts it there. */
static void damaged(const char *file, long at, int cut){
  FILE *handle;
  int byte;
  if( cut ){
    if( truncate(file, at)!=0 ) die("cannot cut %s", file);
    return;
  }
  handle = fopen(file, "r+b");
  if( handle==0 || fseek(handle, at, SEEK_SET)!=0 || (byte = fgetc(handle))==EOF ) die("cannot damage %s", file);
  fseek(handle, at, SEEK_SET);
  fputc(byte^0x41, handle);
  fclose(handle);
}

static void damage(void){
  static const char *suffixes[] = {"", "-journal", "-wal"};
  int f, s, step, cut, refused = 0, same = 0, older = 0, halves = 0;
  write_files("damage");
  for(f=0; f<4; f++) for(s=0; s<3; s++){
    char target[100];
    sqlite3_int64 whole, without = -2, found;
    long size;
    snprintf(target, sizeof target, "%s%s", files[f], suffixes[s]);
    size = size_of(target);
    if( size<=0 ) continue;
    removed("try.db"); copy(files[f], "try.db");
    whole = sum("try.db", 0);
    if( whole<0 ) die("%s is not whole", files[f]);
    if( s==2 ){
      /* A log that is damaged ends there: what was committed before it is read. */
      removed("try.db"); copy(files[f], "try.db"); unlink("try.db-wal");
      without = sum("try.db", 0);
    }
    for(cut=0; cut<2; cut++) for(step=0; step<60; step++){
      /* The first bytes are headers; the rest is looked at evenly. */
      long at = step<25 ? step*21 : size*(step-25)/35;
      if( at>=size ) continue;
      removed("try.db"); copy(files[f], "try.db");
      snprintf(target, sizeof target, "try.db%s", suffixes[s]);
      damaged(target, at, cut);
      found = sum("try.db", step%4==0);
      if( found==-2 ) refused++;
      else if( found==whole ) same++;
      else if( s==2 && found==without ) older++;
      /* SQLite plays a journal back up to the first record that is not right, sealed or plain: as if its end were gone. */
      else if( s==1 ) halves++;
      else if( s==0 && cut && at==0 ) refused++;
      else die("%s%s, byte %ld %s: %lld read, %lld written", files[f], suffixes[s], at, cut ? "cut" : "changed", found, whole);
    }
  }
  printf("damage: %d refused, %d mended or unused, %d logs and %d journals without their end\n", refused, same, older, halves);
  if( refused<100 ) die("damage is not noticed");
}

static void foreign(void){
  static const char *names[] = {"garbage.db", "short.db", "zeros.db", "magic.db", "."};
  char bytes[40000];
  int i, made;
  for(made=0; made<4; made++){
    FILE *out = fopen(names[made], "wb");
    for(i=0; i<(int)sizeof bytes; i++) bytes[i] = made==2 ? 0 : (char)(i*i>>3);
    if( made==3 ) memcpy(bytes, "Pellucid sealed", 16);
    fwrite(bytes, 1, made==1 ? 10 : sizeof bytes, out);
    fclose(out);
  }
  for(i=0; i<5; i++) if( sum(names[i], 1)!=-2 ) die("%s was read", names[i]);
  for(i=0; i<8; i++){
    static const char *uris[] = {
      "file:no/such/place.db", "file:uri.db?certificate=nobody", "file:uri.db?key_file=nowhere", "file:uri.db?passphrase_file=nowhere",
      "file:uri.db?algorithm=ROT13&certificate=pellucid", "file:uri.db?pellucid_birth=0123", "file:uri.db?mode=ro",
      "file:damage-clean.db?key_file=garbage.db",
    };
    sqlite3 *db = 0;
    int rc = sqlite3_open_v2(uris[i], &db, SQLITE_OPEN_READWRITE|SQLITE_OPEN_CREATE|SQLITE_OPEN_URI, 0);
    if( rc==SQLITE_OK ) rc = attempt(db, "CREATE TABLE t(a)");
    if( rc==SQLITE_OK ) die("%s was opened", uris[i]);
    sqlite3_close(db);
  }
  printf("foreign files and wrong parameters: refused\n");
}

/* First encryption from the application's own connection, with others about. */
static void converted(const char *extension){
  int wal, busy;
  unsetenv("PELLUCID_ENCRYPT_NEW");
  for(wal=0; wal<2; wal++) for(busy=0; busy<2; busy++){
    sqlite3 *db, *other = 0;
    char *error = 0;
    int rc;
    removed("plain.db");
    db = opened("plain.db");
    sql(db, "PRAGMA journal_mode=%s; CREATE TABLE t(a INTEGER PRIMARY KEY, b, c); CREATE INDEX i ON t(b); CREATE TABLE w(k, v);"
            "CREATE VIEW v AS SELECT b FROM t; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<300)"
            "INSERT INTO t SELECT i, 'row '||i, zeroblob(i*7%%2000) FROM n;", wal ? "wal" : "delete");
    if( busy ){
      other = opened("plain.db");
      sqlite3_busy_timeout(other, 0);
      if( number(other, "SELECT count(*) FROM t")!=300 ) die("the other sees something else");
    }
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, (int*)0);
    if( sqlite3_load_extension(db, extension, "sqlite3_pellucid_init", &error)!=SQLITE_OK ) die("%s", error);
    /* Ten seconds for the one in WAL mode that does not give way are enough for one case. */
    rc = busy && wal ? attempt(db, "SELECT pellucid_encrypt('nobody')") : attempt(db, "SELECT pellucid_encrypt()");
    if( (rc==SQLITE_OK)!=!(busy && wal) ) die("pellucid_encrypt: %s", sqlite3_errmsg(db));
    sqlite3_close(db);
    if( other ) attempt(other, "SELECT * FROM t; UPDATE t SET b=1;");
    sqlite3_close(other);
    if( rc==SQLITE_OK && !busy ) show_file("plain.db", "encrypted, %s", wal ? "wal" : "delete");
  }
  setenv("PELLUCID_ENCRYPT_NEW", "1", 1);
}

static void loaded(const char *extension){
  int i;
  for(i=0; i<20; i++){
    sqlite3 *db = 0;
    char *error = 0;
    void *handle;
    if( i%4==3 ) sqlite3_shutdown();
    handle = dlopen(extension, RTLD_NOW);
    if( handle==0 ) die("%s", dlerror());
    if( sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE|SQLITE_OPEN_MEMORY, 0)!=SQLITE_OK ) die("open");
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, (int*)0);
    if( sqlite3_load_extension(db, extension, "no_such_entry", &error)==SQLITE_OK ) die("an entry that is not there");
    sqlite3_free(error);
    error = 0;
    if( sqlite3_load_extension(db, extension, i%2 ? 0 : "sqlite3_pellucid_init", &error)!=SQLITE_OK ) die("%s", error);
    if( sqlite3_load_extension(db, extension, 0, 0)!=SQLITE_OK ) die("a second time");
    sqlite3_close(db);
    dlclose(handle);
    removed("loaded.db");
    db = opened("loaded.db");
    sql(db, "CREATE TABLE t(a); INSERT INTO t VALUES(zeroblob(20000));");
    closed(db);
  }
  printf("loaded 20 times\n");
}

void errors(const char *extension){
  damage();
  foreign();
  converted(extension);
  loaded(extension);
}
