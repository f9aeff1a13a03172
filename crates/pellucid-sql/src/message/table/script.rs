//! Messages that scripts meet: variables, procedures, transactions, and the objects that statements name.

rows! {
    132, 15, LABEL_TWICE =
        "The label '{label}' has already been declared. Label names must be unique within a query batch or stored \
         procedure.";
    133, 15, UNKNOWN_LABEL =
        "A GOTO statement references the label '{label}' but the label has not been declared.";
    134, 15, DECLARED_TWICE =
        "The variable name '@{variable}' has already been declared. Variable names must be unique within a query batch \
         or stored procedure.";
    148, 15, BAD_WAIT = "Incorrect time syntax in time string '{time}' used with WAITFOR.";
    166, 15, NO_DATABASE_PREFIX =
        "'{statement}' does not allow specifying the database name as a prefix to the object name.";
    201, 16, ARGUMENT_MISSING =
        "Procedure or function '{procedure}' expects parameter '@{parameter}', which was not supplied.";
    217, 16, TOO_DEEP =
        "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32).";
    218, 16, UNKNOWN_TYPE =
        "Could not find the type '{name}'. Either it does not exist or you do not have the necessary permission.";
    226, 16, NOT_IN_TRANSACTION =
        "{statement} statement not allowed within multi-statement transaction.";
    266, 16, TRANSACTIONS_MISMATCH =
        "Transaction count after EXECUTE indicates a mismatching number of BEGIN and COMMIT statements. Previous count = \
         {previous}, current count = {current}.";
    313, 16, TOO_FEW_ARGUMENTS =
        "An insufficient number of arguments were supplied for the procedure or function {function}.";
    443, 16, SIDE_EFFECT =
        "Invalid use of a side-effecting operator '{operator}' within a function.";
    444, 16, FUNCTION_RETURNS_DATA =
        "Select statements included within a function cannot return data to a client.";
    455, 16, LAST_IS_NO_RETURN = "The last statement included within a function must be a return statement.";
    483, 16, OUTPUT_OF_INSERT_EXEC =
        "The OUTPUT clause cannot be used in an INSERT...EXEC statement.";
    628, 16, SAVE_WITHOUT_TRANSACTION =
        "Cannot issue SAVE TRANSACTION when there is no active transaction.";
    1026, 15, GOTO_INTO_TRY = "GOTO cannot be used to jump into a TRY or CATCH scope.";
    1038, 15, NAMELESS_COLUMN =
        "An object or column name is missing or empty. For SELECT INTO statements, verify each column has a name. For \
         other statements, look for empty alias names. Aliases defined as \"\" or [] are not allowed. Change the alias \
         to a valid name.";
    1088, 16, UNKNOWN_TARGET =
        "Cannot find the object \"{name}\" because it does not exist or you do not have permissions.";
    1222, 16, LOCK_TIMEOUT = "Lock request time out period exceeded.";
    1505, 16, INDEX_OF_DUPLICATES =
        "The CREATE UNIQUE INDEX statement terminated because a duplicate key was found for the object name '{table}' and the \
         index name '{index}'.";
    1750, 16, CONSTRAINT_NOT_MADE =
        "Could not create constraint or index. See previous errors.";
    1752, 16, UNKNOWN_COLUMN_OF =
        "Column '{column}' in table '{table}' is invalid for creating a default constraint.";
    1763, 16, KEY_ACROSS_DATABASES =
        "Cross-database foreign key references are not supported. Foreign key '{table}'.";
    1767, 16, KEY_OF_NO_TABLE = "Foreign key '{key}' references invalid table '{table}'.";
    1768, 16, KEY_OF_NO_USER_TABLE =
        "Foreign key '{key}' references object '{table}' which is not a user table.";
    1770, 16, KEY_OF_NO_COLUMN =
        "Foreign key '{key}' references invalid column '{column}' in referenced table '{table}'.";
    1773, 16, KEY_WITHOUT_PRIMARY =
        "Foreign key '{key}' has implicit reference to object '{table}' which does not have a primary key defined on it.";
    1776, 16, KEY_OF_NO_KEY =
        "There are no primary or candidate keys in the referenced table '{table}' that match the referencing column list in \
         the foreign key '{key}'.";
    1779, 16, PRIMARY_KEY_TWICE = "Table '{table}' already has a primary key defined on it.";
    1781, 16, DEFAULT_TWICE = "Column already has a DEFAULT bound to it.";
    1911, 16, UNKNOWN_COLUMN_OF_KEY =
        "Column name '{column}' does not exist in the target table or view.";
    1913, 16, INDEX_EXISTS =
        "The operation failed because an index or statistics with name '{name}' already exists on table '{table}'.";
    2010, 16, INCOMPATIBLE_OBJECT =
        "Cannot perform alter on '{name}' because it is an incompatible object type.";
    2705, 16, COLUMN_MADE_TWICE =
        "Column names in each table must be unique. Column name '{column}' in table '{table}' is specified more than \
         once.";
    2714, 16, OBJECT_EXISTS = "There is already an object named '{name}' in the database.";
    2745, 16, SESSION_ENDED =
        "Process ID {session} has raised user error {number}, severity {severity}. SQL Server is terminating this process.";
    2748, 16, NOT_FORMATTED =
        "Cannot specify {data_type} data type (parameter {number}) as a substitution parameter.";
    2754, 16, LOG_NEEDED =
        "Error severity levels greater than 18 can only be specified by members of the sysadmin role, using the WITH LOG \
         option.";
    2760, 16, UNKNOWN_SCHEMA =
        "The specified schema name \"{schema}\" either does not exist or you do not have permission to use it.";
    2786, 16, FORMAT_TYPE =
        "The data type of substitution parameter {number} does not match the expected type of the format specification.";
    2787, 16, BAD_FORMAT = "Invalid format specification: '{format}'.";
    2809, 16, NOT_A_PROCEDURE =
        "The request for procedure '{name}' failed because '{name}' is a {kind} object.";
    2812, 16, UNKNOWN_PROCEDURE = "Could not find stored procedure '{name}'.";
    3701, 11, CANNOT_DROP =
        "Cannot drop the {what} '{name}', because it does not exist or you do not have permission.";
    3705, 16, DROP_OF_ANOTHER_KIND =
        "Cannot use DROP {what} with '{name}' because '{name}' is a {kind}. Use DROP {other}.";
    3726, 16, DROP_REFERENCED =
        "Could not drop object '{name}' because it is referenced by a FOREIGN KEY constraint.";
    3902, 16, COMMIT_WITHOUT_TRANSACTION =
        "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.";
    3903, 16, ROLLBACK_WITHOUT_TRANSACTION =
        "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.";
    3915, 16, ROLLBACK_IN_INSERT_EXEC =
        "Cannot use the ROLLBACK statement within an INSERT-EXEC statement.";
    3916, 16, COMMIT_IN_INSERT_EXEC =
        "Cannot use the COMMIT statement within an INSERT-EXEC statement unless BEGIN TRANSACTION is used first.";
    3920, 10, MARK_OF_ANOTHER =
        "The WITH MARK option only applies to the first BEGIN TRAN WITH MARK statement. The option is ignored.";
    3930, 16, DOOMED =
        "The current transaction cannot be committed and cannot support operations that write to the log file. Roll \
         back the transaction.";
    3998, 16, DOOMED_AT_END =
        "Uncommittable transaction is detected at the end of the batch. The transaction is rolled back.";
    4701, 16, UNKNOWN_TABLE_TO_EMPTY =
        "Cannot find the object \"{name}\" because it does not exist or you do not have permissions.";
    4712, 16, TRUNCATE_REFERENCED =
        "Cannot truncate table '{name}' because it is being referenced by a FOREIGN KEY constraint.";
    4902, 16, UNKNOWN_TABLE =
        "Cannot find the object \"{name}\" because it does not exist or you do not have permissions.";
    4924, 16, UNKNOWN_COLUMN_TO_DROP =
        "ALTER TABLE DROP COLUMN failed because column '{column}' does not exist in table '{table}'.";
    6401, 16, UNKNOWN_SAVEPOINT =
        "Cannot roll back {name}. No transaction or savepoint of that name was found.";
    7955, 16, UNKNOWN_SESSION = "Invalid SPID {number} specified.";
    8139, 16, KEY_OF_OTHER_LENGTH =
        "Number of referencing columns in foreign key differs from number of referenced columns, table '{table}'.";
    8144, 16, TOO_MANY_ARGUMENTS =
        "Procedure or function {procedure} has too many arguments specified.";
    8145, 16, UNKNOWN_PARAMETER = "@{parameter} is not a parameter for procedure {procedure}.";
    8162, 16, NOT_AN_OUTPUT =
        "The formal parameter \"@{parameter}\" was not declared as an OUTPUT parameter, but the actual parameter passed in \
         requested output.";
    8164, 16, INSERT_EXEC_NESTED = "An INSERT EXEC statement cannot be nested.";
    8178, 16, PARAMETER_MISSING =
        "The parameterized query '{statement}' expects the parameter '@{parameter}', which was not supplied.";
    8631, 17, STACK_SPENT =
        "Internal error: Server stack limit has been reached. Please look for potentially deep nesting in your query, and \
         try to simplify it.";
    10704, 15, THROW_OUTSIDE_CATCH =
        "To rethrow an error, a THROW statement must be used inside a CATCH block. Insert the THROW statement inside a \
         CATCH block, or add error parameters to the THROW statement.";
    15001, 16, NO_SUCH_OBJECT =
        "Object '{name}' does not exist or is not a valid object for this operation.";
    15007, 16, NO_SUCH_LOGIN =
        "'{name}' is not a valid login or you do not have permission.";
    15009, 16, UNKNOWN_OBJECT_IN =
        "The object '{name}' does not exist in database '{database}' or is invalid for this operation.";
    15150, 16, CANNOT_DROP_FIXED = "Cannot drop the {what} '{name}'.";
    15281, 16, COMPONENT_OFF =
        "SQL Server blocked access to procedure '{name}' of component '{component}' because this component is turned \
         off as part of the security configuration for this server. A system administrator can enable the use of \
         '{enabled}' by using sp_configure. For more information about enabling '{searched}', search for '{named}' in SQL \
         Server Books Online.";
    15291, 16, UNKNOWN_USER =
        "Terminating this procedure. The User name '{user}' is absent or invalid.";
    15406, 16, NO_LOGIN_TO_BE =
        "Cannot execute as the server principal because the principal \"{name}\" does not exist, this type of principal \
         cannot be impersonated, or you do not have permission.";
    15517, 16, NO_USER_TO_BE =
        "Cannot execute as the database principal because the principal \"{name}\" does not exist, this type of principal \
         cannot be impersonated, or you do not have permission.";
    18054, 16, UNKNOWN_RAISED =
        "Error {number}, severity {severity}, state {state} was raised, but no message with that error number was \
         found in sys.messages. If error is larger than 50000, make sure the user-defined message is added using \
         sp_addmessage.";
    35100, 16, BAD_THROW_NUMBER =
        "Error number {number} in the THROW statement is outside the valid range. Specify an error number in the valid \
         range of 50000 to 2147483647.";
}
