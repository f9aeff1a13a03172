CREATE TABLE IF NOT EXISTS pellucid_job(
  job_id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE COLLATE NOCASE, owner_uid INTEGER NOT NULL, enabled INTEGER NOT NULL,
  description TEXT, start_step_id INTEGER NOT NULL, category_id INTEGER NOT NULL, notify_level_eventlog INTEGER NOT NULL,
  notify_level_email INTEGER NOT NULL, notify_level_netsend INTEGER NOT NULL, notify_level_page INTEGER NOT NULL,
  notify_email_operator_id INTEGER NOT NULL, notify_netsend_operator_id INTEGER NOT NULL,
  notify_page_operator_id INTEGER NOT NULL, delete_level INTEGER NOT NULL, date_created TEXT NOT NULL,
  date_modified TEXT NOT NULL, version_number INTEGER NOT NULL DEFAULT 1, server_id INTEGER,
  last_run_outcome INTEGER NOT NULL DEFAULT 5, last_outcome_message TEXT, last_run_date INTEGER NOT NULL DEFAULT 0,
  last_run_time INTEGER NOT NULL DEFAULT 0, last_run_duration INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS pellucid_job_step(
  job_id TEXT NOT NULL, step_id INTEGER NOT NULL, step_name TEXT NOT NULL COLLATE NOCASE, subsystem TEXT NOT NULL,
  command TEXT, flags INTEGER NOT NULL, additional_parameters TEXT, cmdexec_success_code INTEGER NOT NULL,
  on_success_action INTEGER NOT NULL, on_success_step_id INTEGER NOT NULL, on_fail_action INTEGER NOT NULL,
  on_fail_step_id INTEGER NOT NULL, server TEXT, database_name TEXT NOT NULL, database_user_name TEXT,
  retry_attempts INTEGER NOT NULL, retry_interval INTEGER NOT NULL, os_run_priority INTEGER NOT NULL,
  output_file_name TEXT, last_run_outcome INTEGER NOT NULL DEFAULT 5, last_run_duration INTEGER NOT NULL DEFAULT 0,
  last_run_retries INTEGER NOT NULL DEFAULT 0, last_run_date INTEGER NOT NULL DEFAULT 0,
  last_run_time INTEGER NOT NULL DEFAULT 0, proxy_id INTEGER, step_uid TEXT NOT NULL, PRIMARY KEY(job_id, step_id));
CREATE TABLE IF NOT EXISTS pellucid_schedule(
  schedule_id INTEGER PRIMARY KEY AUTOINCREMENT, schedule_uid TEXT NOT NULL UNIQUE, name TEXT NOT NULL COLLATE NOCASE,
  owner_uid INTEGER NOT NULL, enabled INTEGER NOT NULL, freq_type INTEGER NOT NULL, freq_interval INTEGER NOT NULL,
  freq_subday_type INTEGER NOT NULL, freq_subday_interval INTEGER NOT NULL, freq_relative_interval INTEGER NOT NULL,
  freq_recurrence_factor INTEGER NOT NULL, active_start_date INTEGER NOT NULL, active_end_date INTEGER NOT NULL,
  active_start_time INTEGER NOT NULL, active_end_time INTEGER NOT NULL, date_created TEXT NOT NULL,
  date_modified TEXT NOT NULL, version_number INTEGER NOT NULL DEFAULT 1);
CREATE TABLE IF NOT EXISTS pellucid_job_schedule(
  schedule_id INTEGER NOT NULL, job_id TEXT NOT NULL, next_run INTEGER, PRIMARY KEY(schedule_id, job_id));
CREATE TABLE IF NOT EXISTS pellucid_job_history(
  instance_id INTEGER PRIMARY KEY AUTOINCREMENT, job_id TEXT NOT NULL, step_id INTEGER NOT NULL, step_name TEXT NOT NULL,
  sql_message_id INTEGER NOT NULL, sql_severity INTEGER NOT NULL, message TEXT, run_status INTEGER NOT NULL,
  run_date INTEGER NOT NULL, run_time INTEGER NOT NULL, run_duration INTEGER NOT NULL, operator_id_emailed INTEGER NOT NULL,
  operator_id_netsent INTEGER NOT NULL, operator_id_paged INTEGER NOT NULL, retries_attempted INTEGER NOT NULL,
  server TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS pellucid_job_history_of ON pellucid_job_history(job_id, step_id);
CREATE TABLE IF NOT EXISTS pellucid_job_category(
  category_id INTEGER PRIMARY KEY AUTOINCREMENT, category_class INTEGER NOT NULL, category_type INTEGER NOT NULL,
  name TEXT NOT NULL COLLATE NOCASE, UNIQUE(category_class, name));
CREATE TABLE IF NOT EXISTS pellucid_operator(
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE COLLATE NOCASE, enabled INTEGER NOT NULL,
  email_address TEXT, pager_address TEXT, weekday_pager_start_time INTEGER NOT NULL, weekday_pager_end_time INTEGER NOT NULL,
  saturday_pager_start_time INTEGER NOT NULL, saturday_pager_end_time INTEGER NOT NULL,
  sunday_pager_start_time INTEGER NOT NULL, sunday_pager_end_time INTEGER NOT NULL, pager_days INTEGER NOT NULL,
  netsend_address TEXT, category_id INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS pellucid_job_request(
  job_id TEXT PRIMARY KEY, requested TEXT NOT NULL, step_id INTEGER NOT NULL, login TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS pellucid_job_activity(
  job_id TEXT PRIMARY KEY, session_id INTEGER NOT NULL, pid INTEGER NOT NULL, started INTEGER NOT NULL,
  run_requested_date TEXT, run_requested_source INTEGER NOT NULL, start_execution_date TEXT, last_executed_step_id INTEGER,
  last_executed_step_date TEXT, stop_execution_date TEXT, job_history_id INTEGER, stop_asked INTEGER NOT NULL DEFAULT 0);
INSERT OR IGNORE INTO pellucid_job_category(category_id, category_class, category_type, name) VALUES
  (0, 1, 1, '[Uncategorized (Local)]'), (1, 1, 1, 'Jobs from MSX'), (2, 1, 2, '[Uncategorized (Multi-Server)]'),
  (3, 1, 1, 'Database Maintenance'), (4, 1, 1, 'Full-Text'), (5, 1, 1, 'Log Shipping'),
  (6, 1, 1, 'Database Engine Tuning Advisor'), (7, 1, 1, 'Data Collector'),
  (98, 2, 3, '[Uncategorized]'), (99, 3, 3, '[Uncategorized]');
CREATE TABLE IF NOT EXISTS pellucid_agent_session(
  session_id INTEGER PRIMARY KEY AUTOINCREMENT, agent_start_date TEXT NOT NULL, pid INTEGER NOT NULL, started INTEGER NOT NULL);
