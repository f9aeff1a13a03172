/*
** More processes: killed with -9 while they write, writing at the same time, and files left for another version.
*/
#include "battery.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts a child that tells, by a byte each, what it has committed. */
static pid_t child(void (*work)(int out), int *from){
  int ends[2];
  pid_t pid;
  fflush(stdout);
  if( pipe(ends)!=0 ) die("pipe");
  pid = fork();
  if( pid<0 ) die("fork");
  if( pid==0 ){
    close(ends[0]);
    work(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  *from = ends[0];
  return pid;
}

static int heard(int from, int most){
  char byte;
  int count = 0;
  while( count<most && read(from, &byte, 1)==1 ) count++;
  return count;
}

static void tell(int out){
  if( write(out, "+", 1)!=1 ) _exit(2);
}

/* Kills a child and counts what else it had told. */
static int killed(pid_t pid, int from){
  int more;
  kill(pid, SIGKILL);
  waitpid(pid, 0, 0);
  more = heard(from, 1000000);
  close(from);
  return more;
}

static const char *mode;

static void commits(int out){
  sqlite3 *db = opened("kill.db");
  int i;
  sql(db, "PRAGMA journal_mode=%s; PRAGMA cache_size=5; PRAGMA wal_autocheckpoint=20;", mode);
  i = (int)number(db, "SELECT coalesce(max(a), 0) FROM t");
  for(;;){
    i++;
    sql(db, "BEGIN; INSERT INTO t VALUES(%d, printf('row %%d', %d), zeroblob(3000)); UPDATE t SET c=zeroblob(a%%50+%d%%100);"
            "UPDATE n SET k=%d; COMMIT;", i, i, i, i);
    tell(out);
  }
}

static void two_files(int out){
  sqlite3 *db = opened("first.db");
  int i;
  sql(db, "ATTACH 'second.db' AS second; PRAGMA main.journal_mode=%s; PRAGMA second.journal_mode=%s;", mode, mode);
  for(i = (int)number(db, "SELECT k FROM main.n")+1;; i++){
    sql(db, "BEGIN; UPDATE main.n SET k=%d; UPDATE second.n SET k=%d; UPDATE main.t SET c=zeroblob(%d); UPDATE second.t SET c=zeroblob(%d); COMMIT;",
        i, i, i%3000, i%3000);
    tell(out);
  }
}

void kills(void){
  static const char *modes[] = {"delete", "truncate", "persist", "wal"};
  int m, round;
  for(m=0; m<4; m++){
    sqlite3 *db;
    int acknowledged = 0, from;
    mode = modes[m];
    removed("kill.db");
    db = opened("kill.db");
    sql(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b, c); CREATE TABLE n(k); INSERT INTO n VALUES(0);");
    closed(db);
    for(round=0; round<8; round++){
      pid_t pid = child(commits, &from);
      sqlite3_int64 found;
      acknowledged += heard(from, 3+round*5);
      usleep((useconds_t)(round*1700));
      acknowledged += killed(pid, from);
      db = opened("kill.db");
      found = number(db, "SELECT k FROM n");
      /* The last commit may have been done and not told. */
      if( found<acknowledged || found>acknowledged+1 ) die("%s: %d commits acknowledged, %lld found", mode, acknowledged, found);
      if( number(db, "SELECT max(a)=%lld AND count(*)=%lld FROM t", found, found)!=1 ) die("%s: rows are missing", mode);
      if( number(db, "SELECT count(*) FROM t WHERE b<>printf('row %%d', a) OR length(c)<>a%%50+%lld%%100", found)!=0 ) die("%s: a mixed state", mode);
      if( number(db, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check<>'ok'")!=0 ) die("%s: not whole", mode);
      acknowledged = (int)found;
      closed(db);
    }
    printf("killed 8 times, %s: every commit is there\n", mode);
  }
  for(m=0; m<3; m++){
    sqlite3 *db;
    int from, i, acknowledged = 0;
    mode = modes[m];
    for(i=0; i<2; i++){
      const char *file = i ? "second.db" : "first.db";
      removed(file);
      db = opened(file);
      sql(db, "CREATE TABLE n(k); INSERT INTO n VALUES(0); CREATE TABLE t(a INTEGER PRIMARY KEY, c);"
              "INSERT INTO t(c) VALUES(1),(2),(3),(4),(5),(6);");
      closed(db);
    }
    for(round=0; round<12; round++){
      pid_t pid = child(two_files, &from);
      sqlite3_int64 found;
      acknowledged += heard(from, 1+round);
      usleep((useconds_t)(round*700));
      acknowledged += killed(pid, from);
      db = opened(round%2 ? "second.db" : "first.db");
      sql(db, "ATTACH %Q AS other", round%2 ? "first.db" : "second.db");
      found = number(db, "SELECT k FROM main.n");
      if( found!=number(db, "SELECT k FROM other.n") ) die("%s: one file has the commit, the other has not", mode);
      if( found<acknowledged || found>acknowledged+1 ) die("%s: %d commits of two files acknowledged, %lld found", mode, acknowledged, found);
      acknowledged = (int)found;
      closed(db);
    }
    printf("killed 12 times over two files, %s: both or none\n", mode);
  }
}

static void count_up(int out){
  sqlite3 *db = opened("both.db");
  int i;
  for(i=0; i<150; i++){
    sql(db, "BEGIN IMMEDIATE; UPDATE n SET k=k+1; INSERT INTO t SELECT NULL, k, zeroblob(k%%2000) FROM n; COMMIT;");
    if( number(db, "SELECT count(*)-(SELECT k FROM n) FROM t")!=0 ) die("a mixed state was seen");
  }
  closed(db);
  tell(out);
}

void two_processes(void){
  static const char *modes[] = {"delete", "truncate", "persist", "wal"};
  int m;
  for(m=0; m<4; m++){
    sqlite3 *db;
    pid_t one, two;
    int from_one, from_two;
    removed("both.db");
    db = opened("both.db");
    sql(db, "PRAGMA journal_mode=%s; PRAGMA synchronous=off; CREATE TABLE n(k); INSERT INTO n VALUES(0);"
            "CREATE TABLE t(a INTEGER PRIMARY KEY, k, c);", modes[m]);
    closed(db);
    one = child(count_up, &from_one);
    two = child(count_up, &from_two);
    if( heard(from_one, 1)!=1 || heard(from_two, 1)!=1 ) die("%s: a process of the two failed", modes[m]);
    waitpid(one, 0, 0);
    waitpid(two, 0, 0);
    close(from_one);
    close(from_two);
    show_file("both.db", "two processes, %s", modes[m]);
  }
}

static const char *stem;

static void left_hot(int out){
  char name[200];
  sqlite3 *db;
  snprintf(name, sizeof name, "%s-hot.db", stem);
  db = opened(name);
  sql(db, "PRAGMA cache_size=5; BEGIN; UPDATE t SET b='never committed', c=zeroblob(5000); DELETE FROM t WHERE a%%2;");
  tell(out);
  for(;;) sleep(1);
}

static void left_log(int out){
  char name[200];
  sqlite3 *db;
  snprintf(name, sizeof name, "%s-log.db", stem);
  db = opened(name);
  sql(db, "PRAGMA journal_mode=wal; PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=5; UPDATE t SET b=b||' in the log';"
          "BEGIN; UPDATE t SET b='never committed', c=zeroblob(5000);");
  tell(out);
  for(;;) sleep(1);
}

static const char *suffixes[] = {"clean", "wal", "hot", "log"};

void write_files(const char *name){
  char file[200];
  int i, from;
  for(i=0; i<4; i++){
    sqlite3 *db;
    snprintf(file, sizeof file, "%s-%s.db", name, suffixes[i]);
    removed(file);
    db = opened(file);
    sql(db, "PRAGMA page_size=%d; PRAGMA auto_vacuum=%d;", 1024<<i, i%3);
    if( i==1 ) sql(db, "PRAGMA journal_mode=wal");
    sql(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b, c); CREATE INDEX i ON t(b); CREATE TABLE w(k PRIMARY KEY, v) WITHOUT ROWID;"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<500)"
            "INSERT INTO t SELECT i, 'a text to be found '||i, zeroblob(i*13%%4000) FROM n; INSERT INTO w SELECT b, a FROM t;");
    closed(db);
  }
  stem = name;
  for(i=0; i<2; i++){
    pid_t pid = child(i ? left_log : left_hot, &from);
    if( heard(from, 1)!=1 ) die("the process that is to be killed failed");
    killed(pid, from);
    snprintf(file, sizeof file, "%s-%s-%s", name, i ? "log.db" : "hot.db", i ? "wal" : "journal");
    if( access(file, F_OK)!=0 ) die("%s was not left behind", file);
  }
}

void read_files(const char *name){
  char file[200];
  int i;
  for(i=0; i<4; i++){
    sqlite3 *db;
    snprintf(file, sizeof file, "%s-%s.db", name, suffixes[i]);
    if( access(file, F_OK)!=0 ) die("%s is missing", file);
    db = opened(file);
    show(db, "%s", suffixes[i]);
    sql(db, "INSERT INTO t(b, c) VALUES('one more', zeroblob(10000)); UPDATE w SET v=v+1; PRAGMA wal_checkpoint;");
    closed(db);
    show_file(file, "one more in %s", suffixes[i]);
    db = opened(file);
    sql(db, "PRAGMA journal_mode=delete; VACUUM; PRAGMA journal_mode=wal; INSERT INTO t(b) VALUES('and one');");
    show(db, "vacuumed %s", suffixes[i]);
    closed(db);
  }
}
