//! Messages of backups and restores, and of their devices.

rows! {
    3013, 16, TERMINATING = "{statement} is terminating abnormally.";
    3014, 10, SUCCESSFULLY_PROCESSED =
        "{statement} successfully processed {pages} pages in {seconds} seconds ({rate} MB/sec).";
    3021, 16, BACKUP_IN_TRANSACTION =
        "Cannot perform a backup or restore operation within a transaction.";
    3024, 16, FULL_OF_MASTER =
        "You can only perform a full backup of the master database. Use BACKUP DATABASE to back up the entire master \
         database.";
    3032, 16, OPTION_NOT_SUPPORTED =
        "One or more of the options ({option}) are not supported for this statement. Review the documentation for \
         supported options.";
    3043, 10, PAGE_UNREADABLE =
        "BACKUP '{database}' detected an error on page (1:{page}) in file '{file}': {error}";
    3072, 16, SNAPSHOT_WITH_ENCRYPTION =
        "Backup encryption is incompatible with file snapshot backup if TDE is not enabled on the database.";
    3102, 16, RESTORE_OF_CURRENT =
        "RESTORE cannot process database '{name}' because it is in use by this session. It is recommended that the \
         master database be used when performing this operation.";
    3117, 16, NOT_READY =
        "The log or differential backup cannot be restored because no files are ready to rollforward.";
    3118, 16, DATABASE_NOT_MADE =
        "The database \"{name}\" does not exist. RESTORE can only create a database when restoring either a full backup \
         or a file backup of the primary file.";
    3119, 16, NOT_PLANNED =
        "Problems were identified while planning for the RESTORE statement. Previous messages provide details.";
    3132, 16, FAMILIES_MISSING =
        "The media set has {wanted} media families but only {provided} are provided. All members must be provided.";
    3136, 16, WRONG_BASE =
        "This differential backup cannot be restored because the database has not been restored to the correct earlier \
         state.";
    3137, 16, NO_SNAPSHOT =
        "Database cannot be reverted. Either the primary or the snapshot names are improperly specified, all other \
         snapshots have not been dropped, or there are missing files.";
    3145, 16, STOPAT_UNDER_SIMPLE =
        "The STOPAT option is not supported for databases that use the SIMPLE recovery model.";
    3147, 16, TEMPDB_REFUSED = "Backup and restore operations are not allowed on database tempdb.";
    3153, 16, RECOVERED_ALREADY = "The database is already fully recovered.";
    3156, 16, FILE_NOT_RESTORED =
        "File '{file}' cannot be restored to '{path}'. Use WITH MOVE to identify a valid location for the file.";
    3189, 16, SET_DAMAGED = "Damage to the backup set was detected.";
    3201, 16, DEVICE_NOT_OPENED =
        "Cannot open backup device '{device}'. Operating system error {error}.";
    3202, 16, WRITE_FAILED = "Write on \"{device}\" failed: {error}";
    3203, 16, READ_FAILED = "Read on \"{device}\" failed: {error}";
    3206, 16, UNKNOWN_DEVICE =
        "Backup device '{name}' does not exist. To view existing backup devices, use the sys.backup_devices catalog \
         view. To create a new backup device use either sp_addumpdevice or SQL Server Management Studio.";
    3211, 10, PERCENT_PROCESSED = "{percent} percent processed.";
    3234, 16, FILE_NOT_OF_DATABASE =
        "Logical file '{file}' is not part of database '{database}'. Use RESTORE FILELISTONLY to list the logical file \
         names.";
    3242, 16, NOT_TAPE_FORMAT =
        "The file on device '{path}' is not a valid Microsoft Tape Format backup set.";
    3253, 16, BAD_BLOCK_SIZE = "The block size parameter must supply a value that is a power of 2.";
    3258, 16, NO_SUCH_SET = "There is no backup set {position} on these media.";
    3262, 10, SET_VALID = "The backup set on file {position} is valid.";
    4035, 10, PROCESSED =
        "Processed {pages} pages for database '{database}', file '{file}' on file {position}.";
    4038, 16, NO_SUCH_FILE_ID = "Cannot find file ID {position} on device '{device}'.";
    4208, 16, NO_LOG_UNDER_SIMPLE =
        "The statement {statement} is not allowed while the recovery model is SIMPLE. Use BACKUP DATABASE or change \
         the recovery model using ALTER DATABASE.";
    4212, 16, LOG_OF_MASTER =
        "Cannot back up the log of the master database. Use BACKUP DATABASE instead.";
    4305, 16, LOG_TOO_RECENT =
        "The log in this backup set begins at LSN {first}, which is too recent to apply to the database. An earlier log \
         backup that includes LSN {reached} can be restored.";
    4322, 10, STOP_BEHIND_SET =
        "This backup set contains records that were logged before the designated point in time. The database is being \
         left in the restoring state so that more roll forward can be performed.";
    4326, 16, LOG_TOO_EARLY =
        "The log in this backup set terminates at LSN {last}, which is too early to apply to the database. A more recent \
         log backup that includes LSN {reached} can be restored.";
    4329, 10, MARK_BEHIND_SET =
        "This log file contains records logged before the designated mark. The database is being left in the Restoring \
         state so you can apply another log file.";
    4330, 16, OTHER_FORK =
        "This backup set cannot be applied because it is on a recovery path that is inconsistent with the database. The \
         recovery path is the sequence of data and log backups that have brought the database to a particular recovery \
         point. Find a compatible backup to restore, or restore the rest of the database to match a recovery point within \
         this backup set, which will restore the database to a different point in time.  For more information about \
         recovery paths, see SQL Server Books Online.";
    4334, 16, MARK_NOT_VALID = "The named mark does not identify a valid LSN.";
    4335, 16, STOP_TOO_EARLY =
        "The specified STOPAT time is too early. All or part of the database is already rolled forward beyond that point.";
    4338, 16, STOP_BEFORE_SET =
        "The STOPAT clause specifies a point too early to allow this backup set to be restored. Choose a different stop \
         point or use RESTORE DATABASE WITH RECOVERY to recover at the current point.";
    4340, 16, STOP_OF_LOGS =
        "The point-in-time clause of this RESTORE statement is restricted for use by RESTORE LOG statements only. Omit \
         the clause or use a clause that includes a timestamp.";
}
