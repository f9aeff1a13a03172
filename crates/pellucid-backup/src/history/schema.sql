CREATE TABLE backupmediaset(
  media_set_id INTEGER PRIMARY KEY, media_uuid TEXT UNIQUE, media_family_count INTEGER, name TEXT, description TEXT,
  software_name TEXT, software_vendor_id INTEGER, MTF_major_version INTEGER, mirror_count INTEGER,
  is_password_protected INTEGER, is_compressed INTEGER, is_encrypted INTEGER);
CREATE TABLE backupmediafamily(
  media_set_id INTEGER, family_sequence_number INTEGER, media_family_id TEXT, media_count INTEGER,
  logical_device_name TEXT, physical_device_name TEXT, device_type INTEGER, physical_block_size INTEGER, mirror INTEGER,
  PRIMARY KEY(media_set_id, family_sequence_number, mirror));
CREATE TABLE backupset(
  backup_set_id INTEGER PRIMARY KEY, backup_set_uuid TEXT UNIQUE, media_set_id INTEGER, position INTEGER,
  expiration_date TEXT, name TEXT, description TEXT, user_name TEXT, first_lsn NUMERIC, last_lsn NUMERIC,
  checkpoint_lsn NUMERIC, database_backup_lsn NUMERIC, database_creation_date TEXT, backup_start_date TEXT,
  backup_finish_date TEXT, type TEXT, compatibility_level INTEGER, backup_size INTEGER, database_name TEXT,
  server_name TEXT, machine_name TEXT, recovery_model TEXT, has_backup_checksums INTEGER, is_damaged INTEGER,
  begins_log_chain INTEGER, is_copy_only INTEGER, differential_base_lsn NUMERIC, differential_base_guid TEXT,
  compressed_backup_size INTEGER, key_algorithm TEXT, encryptor_thumbprint TEXT, encryptor_type TEXT,
  last_valid_restore_time TEXT, compression_algorithm TEXT);
CREATE TABLE backupfile(
  backup_set_id INTEGER, filegroup_name TEXT, page_size INTEGER, file_number INTEGER, backed_up_page_count INTEGER,
  file_type TEXT, file_size INTEGER, logical_name TEXT, physical_drive TEXT, physical_name TEXT, state INTEGER,
  create_lsn NUMERIC, drop_lsn NUMERIC, differential_base_lsn NUMERIC, backup_size INTEGER, is_readonly INTEGER,
  is_present INTEGER, PRIMARY KEY(backup_set_id, file_number));
CREATE TABLE restorehistory(
  restore_history_id INTEGER PRIMARY KEY, restore_date TEXT, destination_database_name TEXT, user_name TEXT,
  backup_set_id INTEGER, restore_type TEXT, replace INTEGER, recovery INTEGER, restart INTEGER, stop_at TEXT,
  device_count INTEGER, stop_at_mark_name TEXT, stop_before INTEGER);
CREATE TABLE restorefile(
  restore_history_id INTEGER, file_number INTEGER, destination_phys_drive TEXT, destination_phys_name TEXT,
  PRIMARY KEY(restore_history_id, file_number));
CREATE TABLE pellucid_encryptor(
  backup_set_id INTEGER, number INTEGER, kind TEXT, name TEXT, thumbprint TEXT, PRIMARY KEY(backup_set_id, number));
CREATE TABLE pellucid_restore(
  restore_history_id INTEGER PRIMARY KEY, seconds REAL, bytes INTEGER);
CREATE TABLE IF NOT EXISTS pellucid_gone(backup_set_id INTEGER PRIMARY KEY, gone_date TEXT, gone_for TEXT);
CREATE TABLE IF NOT EXISTS pellucid_manifest(
  backup_set_uuid TEXT PRIMARY KEY, chain TEXT, manifest TEXT, manifest_before TEXT, signer TEXT, is_own INTEGER);
CREATE TABLE IF NOT EXISTS pellucid_begun(
  backup_set_uuid TEXT, number INTEGER, physical_device_name TEXT, PRIMARY KEY(backup_set_uuid, number));
CREATE TABLE IF NOT EXISTS pellucid_log(
  backup_set_uuid TEXT PRIMARY KEY, fork TEXT, first_time TEXT, last_time TEXT, commits INTEGER);
CREATE TABLE IF NOT EXISTS logmarkhistory(
  database_name TEXT, mark_name TEXT, description TEXT, user_name TEXT, lsn NUMERIC, mark_time TEXT, fork TEXT,
  UNIQUE(fork, lsn));
CREATE TABLE IF NOT EXISTS pellucid_archiver(
  database_path TEXT PRIMARY KEY, place TEXT, every_seconds INTEGER, is_once INTEGER, complete_until INTEGER, alive INTEGER,
  failing_since INTEGER, error TEXT);
CREATE TABLE IF NOT EXISTS pellucid_standby(
  database_path TEXT PRIMARY KEY, file_id TEXT, source TEXT, place TEXT, fork TEXT, is_signed INTEGER, lsn TEXT,
  behind TEXT, counter INTEGER, committed INTEGER, next_lsn TEXT, next_behind TEXT, next_committed INTEGER, witnessed TEXT,
  every_seconds INTEGER, is_once INTEGER, complete_until INTEGER, alive INTEGER, failing_since INTEGER, error TEXT)
