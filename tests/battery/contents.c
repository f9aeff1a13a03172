/*
** One process: every way of writing, and what is in the database afterwards.
*/
#include "battery.h"
#include <stdio.h>
#include <string.h>

static const char *modes[] = {"delete", "truncate", "persist", "memory", "off", "wal"};

/* Tables of every kind, filled with rows that are the same each time. */
static void fill(sqlite3 *db, const char *schema, int rows){
  sql(db, "CREATE TABLE %s.t(a INTEGER PRIMARY KEY, b TEXT, c BLOB);"
          "CREATE INDEX %s.tb ON t(b);"
          "CREATE TABLE %s.w(k TEXT PRIMARY KEY, v) WITHOUT ROWID;"
          "CREATE VIEW %s.v AS SELECT a, length(c) AS l FROM t;"
          "CREATE TRIGGER %s.g AFTER DELETE ON t BEGIN INSERT OR REPLACE INTO w(k, v) VALUES('gone '||old.a, old.b); END;",
      schema, schema, schema, schema, schema);
  sql(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%d)"
          "INSERT INTO %s.t SELECT i, printf('row %%08d ', i*7919%%10007)||i, zeroblob(i*37%%3000) FROM n;"
          "INSERT INTO %s.w SELECT printf('key %%d', a), b FROM %s.t WHERE a%%3=0;", rows, schema, schema, schema);
}

static void change(sqlite3 *db){
  sql(db, "UPDATE t SET b=b||' changed', c=zeroblob(length(c)+500) WHERE a%%5=0;"
          "DELETE FROM t WHERE a%%7=0;"
          "INSERT INTO t(a,b,c) VALUES(100000, 'long', zeroblob(200000));"
          "ALTER TABLE w ADD COLUMN extra DEFAULT 'none';"
          "CREATE TABLE copy AS SELECT b, a FROM t WHERE a>50 ORDER BY b;"
          "DROP INDEX tb; CREATE INDEX tb2 ON t(b DESC, a); REINDEX;");
}

/* Writes and reads through a handle on one value. */
static void blob(sqlite3 *db){
  sqlite3_blob *handle = 0;
  char bytes[5000];
  int i;
  for(i=0; i<(int)sizeof bytes; i++) bytes[i] = (char)(i*31);
  if( sqlite3_blob_open(db, "main", "t", "c", 100000, 1, &handle)!=SQLITE_OK ) die("blob: %s", sqlite3_errmsg(db));
  for(i=0; i<200000-5000; i+=17011) if( sqlite3_blob_write(handle, bytes, 5000, i)!=SQLITE_OK ) die("blob: %s", sqlite3_errmsg(db));
  if( sqlite3_blob_read(handle, bytes, 5000, 17011)!=SQLITE_OK || bytes[1]!=31 ) die("blob: %s", sqlite3_errmsg(db));
  sqlite3_blob_close(handle);
}

void journal_modes(void){
  static const int sizes[] = {512, 4096, 65536};
  unsigned m, s;
  for(m=0; m<6; m++) for(s=0; s<3; s++){
    int autovacuum = (int)(m+s)%3;
    sqlite3 *db;
    removed("modes.db");
    db = opened("modes.db");
    sql(db, "PRAGMA page_size=%d; PRAGMA auto_vacuum=%d; PRAGMA journal_mode=%s; PRAGMA synchronous=%d;",
        sizes[s], autovacuum, modes[m], (int)(m+s)%3);
    fill(db, "main", 400);
    sql(db, "BEGIN"); change(db); sql(db, "COMMIT");
    blob(db);
    show(db, "journal_mode %s, page_size %d, auto_vacuum %d", modes[m], sizes[s], autovacuum);
    if( strcmp(modes[m], "off")!=0 ){
      sql(db, "BEGIN; DELETE FROM t; DROP TABLE w; CREATE TABLE x(y); INSERT INTO x VALUES(zeroblob(99999)); ROLLBACK;");
      show(db, "rolled back");
    }
    if( autovacuum==2 ) sql(db, "DELETE FROM t WHERE a%%2; PRAGMA incremental_vacuum;");
    closed(db);
    show_file("modes.db", "opened again");
  }
  /* From each mode to each other one, in one file. */
  removed("modes.db");
  {
    sqlite3 *db = opened("modes.db");
    unsigned from, to;
    fill(db, "main", 50);
    for(from=0; from<6; from++) for(to=0; to<6; to++){
      sql(db, "PRAGMA journal_mode=%s; UPDATE t SET b='%d' WHERE a=%d; PRAGMA journal_mode=%s; UPDATE t SET b='x%d' WHERE a=%d;",
          modes[from], from, from+1, modes[to], to, to+7);
    }
    show(db, "from mode to mode");
    sql(db, "PRAGMA locking_mode=exclusive; PRAGMA journal_mode=wal; UPDATE t SET b=b||'!'; PRAGMA journal_mode=delete;"
            "PRAGMA locking_mode=normal;");
    show(db, "exclusive");
    closed(db);
  }
}

void spills(void){
  unsigned m;
  for(m=0; m<6; m++){
    sqlite3 *db;
    if( strcmp(modes[m], "off")==0 ) continue;
    removed("spills.db");
    db = opened("spills.db");
    sql(db, "PRAGMA page_size=1024; PRAGMA journal_mode=%s; PRAGMA cache_size=5; PRAGMA cache_spill=1;", modes[m]);
    fill(db, "main", 300);
    sql(db, "BEGIN; SAVEPOINT one; UPDATE t SET c=zeroblob(4000); SAVEPOINT two; UPDATE t SET c=zeroblob(900), b='two'||a;"
            "SAVEPOINT three; DELETE FROM t WHERE a%%2; INSERT INTO w SELECT 'three'||a, c FROM t;");
    show(db, "savepoints, %s, three deep", modes[m]);
    sql(db, "ROLLBACK TO three;");
    show(db, "back to three");
    sql(db, "UPDATE t SET b='again'||a; RELEASE three; ROLLBACK TO two;");
    show(db, "back to two");
    sql(db, "RELEASE two; UPDATE t SET c=zeroblob(100) WHERE a<100; RELEASE one; COMMIT;");
    show(db, "committed");
    sql(db, "BEGIN; UPDATE t SET c=zeroblob(8000); SAVEPOINT s; DELETE FROM t; ROLLBACK TO s; ROLLBACK;");
    show(db, "rolled back");
    /* A statement that fails half way through. */
    sql(db, "CREATE UNIQUE INDEX u ON t(b);");
    if( attempt(db, "UPDATE t SET b=CASE WHEN a<290 THEN 'n'||a ELSE 'same' END")!=SQLITE_CONSTRAINT ) die("no constraint");
    show(db, "statement undone");
    closed(db);
    show_file("spills.db", "opened again");
  }
}

void vacuums(void){
  static const int sizes[] = {512, 8192, 1024, 65536, 4096};
  unsigned m, s;
  for(m=0; m<6; m+=5){
    sqlite3 *db;
    removed("vacuum.db");
    db = opened("vacuum.db");
    sql(db, "PRAGMA journal_mode=%s", modes[m]);
    fill(db, "main", 500);
    sql(db, "DELETE FROM t WHERE a%%3");
    for(s=0; s<5; s++){
      char into[40];
      sql(db, "PRAGMA page_size=%d; PRAGMA auto_vacuum=%d; PRAGMA cache_size=%d; VACUUM; UPDATE t SET b=b||'.'",
          sizes[s], s%3, s%2 ? 10 : -2000);
      show(db, "VACUUM, %s, %d", modes[m], sizes[s]);
      snprintf(into, sizeof into, "into-%u-%u.db", m, s);
      removed(into);
      sql(db, "VACUUM INTO %Q", into);
      show_file(into, "VACUUM INTO");
      if( m==0 && number(db, "PRAGMA page_size")!=sizes[s] ) die("the page size is not %d", sizes[s]);
    }
    closed(db);
    show_file("vacuum.db", "opened again");
  }
}

void attached(void){
  unsigned m;
  for(m=0; m<6; m++){
    sqlite3 *db;
    removed("one.db"); removed("two.db"); removed("three.db");
    db = opened("one.db");
    sql(db, "ATTACH 'two.db' AS two; ATTACH 'three.db' AS three;"
            "PRAGMA main.journal_mode=%s; PRAGMA two.journal_mode=%s;", modes[m], modes[m]);
    fill(db, "main", 100);
    fill(db, "two", 120);
    sql(db, "CREATE TABLE three.t(a INTEGER PRIMARY KEY, b, c);");
    sql(db, "BEGIN; UPDATE main.t SET b='both'; UPDATE two.t SET b='both'; INSERT INTO three.t SELECT * FROM two.t; COMMIT;");
    if( strcmp(modes[m], "off")!=0 ){
      sql(db, "BEGIN; DELETE FROM main.t; DELETE FROM two.t; DELETE FROM three.t; ROLLBACK;");
    }
    show(db, "attached, %s", modes[m]);
    sql(db, "DETACH two; DETACH three");
    closed(db);
    show_file("one.db", "one");
    show_file("two.db", "two");
    show_file("three.db", "three");
  }
}

static void back_up(sqlite3 *from, sqlite3 *to, int pages, int write){
  sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
  int rc, steps = 0;
  if( backup==0 ) die("backup: %s", sqlite3_errmsg(to));
  while( (rc = sqlite3_backup_step(backup, pages))==SQLITE_OK || rc==SQLITE_BUSY || rc==SQLITE_LOCKED ){
    if( write && steps++<20 ) sql(from, "UPDATE t SET b='while'||a WHERE a=%d", steps);
  }
  if( rc!=SQLITE_DONE ) die("backup: %s", sqlite3_errstr(rc));
  if( sqlite3_backup_finish(backup)!=SQLITE_OK ) die("backup: %s", sqlite3_errmsg(to));
}

void backups(void){
  unsigned m;
  for(m=0; m<6; m+=5){
    sqlite3 *from, *to, *other;
    removed("from.db"); removed("to.db");
    from = opened("from.db");
    sql(from, "PRAGMA journal_mode=%s", modes[m]);
    fill(from, "main", 600);
    to = opened("to.db");
    back_up(from, to, 5, 1);
    show(to, "backup, %s", modes[m]);
    /* Over one with more in it, and with another connection that writes to the source in between. */
    sql(to, "INSERT INTO t SELECT a+1000000, b, c FROM t; CREATE TABLE more AS SELECT * FROM t;");
    other = opened("from.db");
    sql(other, "DELETE FROM t WHERE a%%4=0");
    back_up(from, to, -1, 0);
    show(to, "backup over it");
    sql(other, "BEGIN; INSERT INTO w VALUES('other', 1); COMMIT");
    closed(other);
    closed(from);
    closed(to);
    show_file("from.db", "source");
    show_file("to.db", "target");
  }
}

static void checkpoint(sqlite3 *db, int mode, const char *name){
  int frames = -1, done = -1;
  int rc = sqlite3_wal_checkpoint_v2(db, "main", mode, &frames, &done);
  printf("checkpoint %s: %d, %s\n", name, rc, frames==done ? "all of the log" : "a part of the log");
}

void wal_readers(void){
  sqlite3 *writer, *reader;
  int i;
  removed("readers.db");
  writer = opened("readers.db");
  sql(writer, "PRAGMA journal_mode=wal; PRAGMA wal_autocheckpoint=0;");
  fill(writer, "main", 200);
  reader = opened("readers.db");
  sqlite3_busy_timeout(reader, 0);
  sqlite3_busy_timeout(writer, 0);
  for(i=0; i<3; i++){
    sql(reader, "BEGIN; SELECT count(*) FROM t;");
    sql(writer, "UPDATE t SET b='round %d '||a; INSERT INTO t(b) VALUES('new %d');", i, i);
    show(reader, "snapshot %d", i);
    checkpoint(writer, SQLITE_CHECKPOINT_PASSIVE, "passive");
    checkpoint(writer, SQLITE_CHECKPOINT_TRUNCATE, "truncate, with a reader");
    printf("a reader writes: %d\n", attempt(reader, "DELETE FROM t") & 0xff);
    sql(reader, "COMMIT");
    show(reader, "after it");
    checkpoint(writer, i==0 ? SQLITE_CHECKPOINT_FULL : i==1 ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_TRUNCATE, "whole");
    sql(reader, "PRAGMA cache_size=5; BEGIN; UPDATE t SET c=zeroblob(3000); ROLLBACK; UPDATE t SET c=zeroblob(%d) WHERE a<50;", i*1000);
    show(writer, "the other wrote");
  }
  closed(reader);
  closed(writer);
  show_file("readers.db", "opened again");
}

void temporary(void){
  sqlite3 *db;
  removed("temporary.db");
  db = opened("temporary.db");
  sql(db, "PRAGMA temp_store=file; PRAGMA cache_size=10; PRAGMA temp.cache_size=10; PRAGMA threads=2;");
  fill(db, "main", 3000);
  sql(db, "CREATE TEMP TABLE s AS SELECT b, c, a FROM t ORDER BY substr(b, 5) DESC; CREATE INDEX temp.si ON s(b);"
          "BEGIN; SAVEPOINT x; UPDATE s SET c=zeroblob(2000); ROLLBACK TO x; DELETE FROM s WHERE a%%2; COMMIT;");
  printf("temporary: %lld, %lld\n", number(db, "SELECT sum(a*rowid) FROM s"), number(db, "SELECT sum(length(c)) FROM s"));
  printf("sorted: %lld\n", number(db, "SELECT sum(a*n) FROM (SELECT a, row_number() OVER (ORDER BY b, length(c)) n FROM t)"));
  sql(db, "CREATE INDEX i ON t(substr(b, 7), c)");
  show(db, "with a temporary database");
  closed(db);
}
