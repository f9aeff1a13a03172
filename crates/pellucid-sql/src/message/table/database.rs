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
    3906, 16, READ_ONLY = "Failed to update database \"{name}\" because the database is read-only.";
    5041, 16, UNKNOWN_FILE = "MODIFY FILE failed. File '{name}' does not exist.";
    5052, 16, NOT_PERMITTED_WHILE =
        "ALTER DATABASE is not permitted while a database is in the {state} state.";
    5069, 16, ALTER_FAILED = "ALTER DATABASE statement failed.";
    5120, 16, INACCESSIBLE =
        "Unable to open the physical file \"{path}\". Operating system error 2: \"{error}\".";
    5133, 16, NO_DIRECTORY =
        "Directory lookup for the file \"{path}\" failed with the operating system error {error}.";
    5170, 16, FILE_EXISTS =
        "Cannot create file '{path}' because it already exists. Change the file path or the file name, and retry the \
         operation.";
    7202, 11, UNKNOWN_SERVER =
        "Could not find server '{name}' in sys.servers. Verify that the correct server name was specified. If \
         necessary, execute the stored procedure sp_addlinkedserver to add the server to sys.servers.";
}
