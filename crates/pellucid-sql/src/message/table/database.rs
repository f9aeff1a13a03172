//! Messages about databases, their files and upkeep, and the server's settings.

rows! {
    911, 16, UNKNOWN_DATABASE =
        "Database '{name}' does not exist. Make sure that the name is entered correctly.";
    927, 14, RESTORING = "Database '{name}' cannot be opened. It is in the middle of a restore.";
    942, 14, OFFLINE = "Database '{name}' cannot be opened because it is offline.";
    1801, 16, DATABASE_EXISTS =
        "Database '{name}' already exists. Choose a different database name.";
    1802, 16, CREATE_FAILED =
        "CREATE DATABASE failed. Some file names listed could not be created. Check related errors.";
    1834, 16, FILE_IN_USE =
        "The file '{path}' cannot be overwritten.  It is being used by database '{database}'.";
    1842, 16, FILE_SIZE_TOO_LARGE =
        "The file size, max size cannot be greater than 2147483647 in units of a page size. The file growth cannot be \
         greater than 2147483647 in units of both page size and percentage.";
    1921, 16, NO_FILEGROUP = "Invalid filegroup '{name}' specified.";
    2501, 16, NO_SUCH_TABLE_TO_CHECK =
        "Cannot find a table or object with the name \"{name}\". Check the system catalog.";
    2526, 16, UNKNOWN_DBCC =
        "Incorrect DBCC statement. Check the documentation for the correct DBCC syntax and options: {name}.";
    2528, 10, DBCC_ENDS =
        "DBCC execution completed. If DBCC printed error messages, contact your system administrator.";
    2536, 10, DBCC_RESULTS_FOR = "DBCC results for '{name}'.";
    2593, 10, ROWS_IN_PAGES = "There are {rows} rows in {pages} pages for object \"{name}\".";
    2702, 16, NO_DATABASE_OF_TABLE = "Database '{name}' does not exist.";
    2727, 11, UNKNOWN_INDEX = "Cannot find index '{index}'.";
    3702, 16, DROP_IN_USE = "Cannot drop database \"{name}\" because it is currently in use.";
    3703, 16, DETACH_IN_USE = "Cannot detach the database '{name}' because it is currently in use.";
    3708, 16, DROP_OF_SYSTEM = "Cannot drop the database '{name}' because it is a system database.";
    3906, 16, READ_ONLY = "Failed to update database \"{name}\" because the database is read-only.";
    5011, 14, ALTER_REFUSED =
        "User does not have permission to alter database '{name}', the database does not exist, or the database is not \
         in a state that allows access checks.";
    5041, 16, UNKNOWN_FILE = "MODIFY FILE failed. File '{name}' does not exist.";
    5052, 16, NOT_PERMITTED_WHILE =
        "ALTER DATABASE is not permitted while a database is in the {state} state.";
    5058, 16, OPTION_NOT_SET = "Option cannot be set in database '{database}'.";
    5065, 10, FILE_NAME_SET = "The file name '{file}' has been set.";
    5069, 16, ALTER_FAILED = "ALTER DATABASE statement failed.";
    5120, 16, INACCESSIBLE =
        "Unable to open the physical file \"{path}\". Operating system error 2: \"{error}\".";
    5133, 16, NO_DIRECTORY =
        "Directory lookup for the file \"{path}\" failed with the operating system error {error}.";
    5170, 16, FILE_EXISTS =
        "Cannot create file '{path}' because it already exists. Change the file path or the file name, and retry the \
         operation.";
    5172, 16, BAD_FILE_HEADER = "The header for file '{path}' is not a valid database file header.";
    5701, 0, CONTEXT_CHANGED = "Changed database context to '{name}'.";
    7202, 11, UNKNOWN_SERVER =
        "Could not find server '{name}' in sys.servers. Verify that the correct server name was specified. If \
         necessary, execute the stored procedure sp_addlinkedserver to add the server to sys.servers.";
    7940, 16, DETACH_OF_SYSTEM =
        "System databases master, model, msdb, and tempdb cannot be detached.";
    8928, 16, DATABASE_DAMAGED = "Database '{database}': {error}.";
    8928, 10, NOT_CHECKED = "Database '{database}': not checked: {reason}.";
    8939, 16, PAGE_DAMAGED = "Table error: page (1:{page}) of database '{database}': {error}.";
    8989, 10, CHECK_FOUND =
        "{command} found 0 allocation errors and {count} consistency errors in database '{database}'.";
    8990, 10, CHECKTABLE_FOUND =
        "CHECKTABLE found 0 allocation errors and {count} consistency errors in table '{table}' (object ID {id}).";
    8992, 16, ORPHAN_ROW =
        "Check Catalog: a row of table '{table}' refers to one of '{parent}' that is not there.";
    15010, 16, NO_SUCH_DATABASE =
        "The database '{name}' does not exist. Supply a valid database name. To see available databases, use \
         sys.databases.";
    15012, 16, NO_SUCH_DEVICE =
        "The device '{name}' does not exist. Use sys.backup_devices to show available devices.";
    15026, 16, DEVICE_EXISTS = "Device '{name}' already exists.";
    15048, 16, BAD_COMPATIBILITY_LEVEL =
        "Valid values of the database compatibility level are 100, 110, 120, 130, 140, 150, or 160.";
    15123, 16, UNKNOWN_OPTION =
        "The configuration option '{name}' does not exist, or it may be an advanced option.";
    15124, 16, OPTION_NOT_UNIQUE = "The configuration option '{name}' is not unique.";
    15129, 16, BAD_OPTION_VALUE =
        "'{value}' is not a valid value for configuration option '{option}'.";
    15325, 16, UNKNOWN_FILEGROUP =
        "The current database does not contain a filegroup named '{name}'.";
    15325, 16, NO_SUCH_FILE = "The file '{name}' does not exist.";
    15457, 10, OPTION_CHANGED =
        "Configuration option '{option}' changed from {before} to {value}. Run the RECONFIGURE statement to install.";
    15664, 16, CONTEXT_READ_ONLY =
        "Cannot set key '{key}' in the session context. The key has been set as read_only for this session.";
    22048, 16, SUBDIR_FAILED = "xp_create_subdir() returned error {number}, '{error}'";
    22049, 16, DELETE_FAILED = "xp_delete_file() returned error {number}, '{error}'";
}
