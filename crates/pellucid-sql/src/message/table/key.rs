//! Messages about master keys and database encryption keys.

rows! {
    15313, 16, WRONG_DECRYPTOR = "The key is not encrypted using the specified decryptor.";
    15315, 16, MASTER_KEY_NOT_OPEN =
        "The key 'master key' is not open. Please open the key before using it.";
    15580, 16, MASTER_KEY_ENCRYPTS =
        "Cannot drop {key} because certificate '{certificate}' is encrypted by it.";
    33053, 16, EKM_DISABLED =
        "Extensible Key Management is disabled or not supported on this edition of SQL Server.  Use sp_configure 'EKM \
         provider enabled' to enable it.";
    33102, 16, SYSTEM_NOT_ENCRYPTED =
        "Cannot encrypt a system database. Database encryption operations cannot be performed for 'master', 'model', \
         'tempdb', 'msdb', or 'resource' databases.";
    33103, 16, KEY_EXISTS = "A database encryption key already exists for this database.";
    33105, 16, KEY_IN_USE =
        "Cannot drop the database encryption key because it is currently in use. Database encryption needs to be \
         turned off to be able to drop the database encryption key.";
    33120, 16, KEY_NOT_OF_EKM =
        "In order to encrypt the database encryption key with an asymmetric key, please use an asymmetric key that \
         resides on an extensible key management provider.";
    33128, 16, ALGORITHM_DEPRECATED =
        "Encryption failed. Key uses deprecated algorithm '{algorithm}' which is no longer supported at this db \
         compatibility level. If you still need to use this key switch to a lower db compatibility level.";
}
