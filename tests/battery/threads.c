/*
** Threads, each with connections of its own, over shared files: what the shim shares between connections is reached
** from all of them. Prints the same on plain and sealed databases.
*/
#include "battery.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define THREADS 4
static time_t end;

/* Increments counters in a WAL database, a rollback database, and one that is this thread's alone. */
static void *work(void *argument){
  int me = *(int*)argument;
  sqlite3_int64 *done = calloc(3, sizeof *done);
  char own[40];
  int round = 0;
  snprintf(own, sizeof own, "own-%d.db", me);
  removed(own);
  do{
    sqlite3 *wal = opened("threads-wal.db"), *rollback = opened("threads-rollback.db"), *alone = opened(own);
    int i;
    sql(wal, "PRAGMA cache_size=10; PRAGMA wal_autocheckpoint=50; PRAGMA synchronous=off;");
    sql(rollback, "PRAGMA cache_size=10; PRAGMA synchronous=off;");
    sql(alone, "PRAGMA synchronous=off; CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b); ATTACH 'threads-wal.db' AS shared;");
    for(i=0; i<5; i++){
      sql(wal, "BEGIN IMMEDIATE; UPDATE n SET k=k+1 WHERE id=%d; UPDATE t SET b=zeroblob((a*%d)%%1500); COMMIT;", me, i);
      done[0]++;
      sql(rollback, "BEGIN IMMEDIATE; UPDATE n SET k=k+1 WHERE id=%d; UPDATE t SET b=zeroblob((a*%d)%%1500) WHERE a%%7=%d; COMMIT;", me, i, i);
      done[1]++;
      sql(alone, "INSERT INTO t(b) SELECT sum(k) FROM shared.n;");
      done[2]++;
      number(wal, "SELECT count(*) FROM (SELECT b FROM t ORDER BY length(b), a LIMIT 500)");
    }
    if( number(alone, "SELECT count(*) FROM t")!=done[2] ) die("a row of a thread's own database is missing");
    closed(alone);
    closed(rollback);
    closed(wal);
    round++;
  }while( time(0)<end );
  return done;
}

void threads(int seconds){
  static const char *files[] = {"threads-wal.db", "threads-rollback.db"};
  pthread_t thread[THREADS];
  int id[THREADS], i, f;
  sqlite3_int64 done[THREADS][2];
  end = time(0)+seconds;
  for(f=0; f<2; f++){
    sqlite3 *db;
    removed(files[f]);
    db = opened(files[f]);
    sql(db, "PRAGMA journal_mode=%s; CREATE TABLE n(id INTEGER PRIMARY KEY, k); INSERT INTO n VALUES(0,0),(1,0),(2,0),(3,0);"
            "CREATE TABLE t(a INTEGER PRIMARY KEY, b);"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<60) INSERT INTO t SELECT i, zeroblob(i) FROM n;",
        f ? "delete" : "wal");
    closed(db);
  }
  for(i=0; i<THREADS; i++){
    id[i] = i;
    if( pthread_create(&thread[i], 0, work, &id[i])!=0 ) die("no thread");
  }
  for(i=0; i<THREADS; i++){
    void *result = 0;
    pthread_join(thread[i], &result);
    done[i][0] = ((sqlite3_int64*)result)[0];
    done[i][1] = ((sqlite3_int64*)result)[1];
    free(result);
  }
  for(f=0; f<2; f++){
    sqlite3 *db = opened(files[f]);
    for(i=0; i<THREADS; i++){
      if( number(db, "SELECT k FROM n WHERE id=%d", i)!=done[i][f] ) die("%s: thread %d lost a commit", files[f], i);
    }
    if( number(db, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check<>'ok'")!=0 ) die("%s: not whole", files[f]);
    closed(db);
  }
  printf("%d threads: every commit is there\n", THREADS);
}
