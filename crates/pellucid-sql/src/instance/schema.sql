CREATE TABLE IF NOT EXISTS pellucid_database(
  database_id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE COLLATE NOCASE, path TEXT NOT NULL UNIQUE,
  create_date TEXT NOT NULL, recovery_model INTEGER NOT NULL DEFAULT 3, compatibility_level INTEGER NOT NULL DEFAULT 160,
  state INTEGER NOT NULL DEFAULT 0, access INTEGER NOT NULL DEFAULT 0, is_read_only INTEGER NOT NULL DEFAULT 0,
  page_verify INTEGER NOT NULL DEFAULT 2, collation TEXT, restored_from TEXT);
CREATE TABLE IF NOT EXISTS pellucid_option(
  database_id INTEGER NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL, PRIMARY KEY(database_id, name));
CREATE TABLE IF NOT EXISTS pellucid_pending_key(
  database_id INTEGER PRIMARY KEY, algorithm TEXT NOT NULL, certificate TEXT NOT NULL, thumbprint TEXT NOT NULL,
  create_date TEXT NOT NULL, pid INTEGER, started INTEGER, set_date TEXT);
CREATE TABLE IF NOT EXISTS pellucid_setting(name TEXT PRIMARY KEY COLLATE NOCASE, value TEXT NOT NULL, running TEXT);
CREATE TABLE IF NOT EXISTS pellucid_request(
  pid INTEGER NOT NULL, started INTEGER NOT NULL, session_id INTEGER NOT NULL, command TEXT NOT NULL,
  start_time TEXT NOT NULL, database_name TEXT, percent_complete REAL NOT NULL DEFAULT 0, estimated_ms INTEGER,
  PRIMARY KEY(pid, started, session_id));
CREATE TABLE IF NOT EXISTS pellucid_module(
  database_id INTEGER NOT NULL, name TEXT NOT NULL COLLATE NOCASE, definition TEXT NOT NULL, create_date TEXT NOT NULL,
  modify_date TEXT NOT NULL, ansi_nulls INTEGER NOT NULL, quoted_identifier INTEGER NOT NULL,
  kind TEXT NOT NULL DEFAULT 'P', PRIMARY KEY(database_id, name));
CREATE TABLE IF NOT EXISTS pellucid_request_text(
  pid INTEGER NOT NULL, started INTEGER NOT NULL, session_id INTEGER NOT NULL, statement TEXT NOT NULL,
  PRIMARY KEY(pid, started, session_id));
CREATE INDEX IF NOT EXISTS pellucid_sets_of ON backupset(database_name COLLATE NOCASE, type);
INSERT OR IGNORE INTO sqlite_sequence(name, seq) SELECT 'pellucid_database', 4
  WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'pellucid_database');
