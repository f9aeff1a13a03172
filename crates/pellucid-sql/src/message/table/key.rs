//! Messages about master keys and database encryption keys.

rows! {
    15025, 16, LOGIN_EXISTS = "The server principal '{login}' already exists.";
    15282, 16, ASYMMETRIC_KEY_EXISTS =
        "A key with name '{key}' or user defined unique identifier already exists or you do not have permissions to \
         create it.";
    15313, 16, WRONG_DECRYPTOR = "The key is not encrypted using the specified decryptor.";
    15315, 16, MASTER_KEY_NOT_OPEN =
        "The key 'master key' is not open. Please open the key before using it.";
    15530, 16, NAME_EXISTS = "The {kind} with name \"{name}\" already exists.";
    15559, 16, KEY_HAS_LOGIN = "Cannot drop asymmetric key '{key}' because there is a login mapped to it.";
    15580, 16, MASTER_KEY_ENCRYPTS =
        "Cannot drop {key} because certificate '{certificate}' is encrypted by it.";
    33027, 16, LIBRARY_NOT_LOADED = "Cannot load library '{file}'. See errorlog for more information.";
    33029, 16, PROVIDER_NOT_INITIALIZED =
        "Cannot initialize cryptographic provider. Provider error code: {code}.  ({meaning})";
    33034, 16, ALGORITHM_OF_EXISTING = "Cannot specify algorithm for existing key.";
    33035, 16, KEY_NOT_CREATED =
        "Cannot create key '{key}' in the provider. Provider error code: {code}.  ({meaning})";
    33036, 10, KEY_NOT_DROPPED = "Cannot drop the key with thumbprint '{thumbprint}' in the provider.";
    33039, 16, ALGORITHM_INVALID =
        "Invalid algorithm '{algorithm}'. Provider error code: {code}.  ({meaning})";
    33043, 16, HAS_CREDENTIAL =
        "Cannot add credential '{credential}' because there is already a credential specified for the login.";
    33044, 16, PROVIDER_REFERENCED =
        "Cannot drop cryptographic provider because there is {kind} referencing this provider.";
    33045, 16, CREDENTIAL_NOT_MAPPED = "Cannot drop credential because it is not mapped to this login.";
    33046, 16, NO_CREDENTIAL =
        "Server principal '{login}' has no credential associated with cryptographic provider '{provider}'.";
    33049, 16, KEY_NOT_IN_PROVIDER =
        "Key with name '{key}' does not exist in the provider or access is denied. Provider error code: {code}.  \
         ({meaning})";
    33053, 16, EKM_DISABLED =
        "Extensible Key Management is disabled or not supported on this edition of SQL Server.  Use sp_configure 'EKM \
         provider enabled' to enable it.";
    33057, 10, PROVIDER_NOW_DISABLED =
        "Cryptographic provider is now disabled. However users who have an open cryptographic session with the provider \
         can still use it. Restart the server to disable the provider for all users.";
    33058, 10, PROVIDER_NOW_DROPPED =
        "Cryptographic provider is now dropped. However users who have an open cryptographic session with the provider \
         can still use it. Restart the server to drop the provider for all users.";
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
    33121, 16, KEY_WITHOUT_LOGIN =
        "The asymmetric key '{key}' does not have a login associated with it.  Create a login and credential for this \
         key to automatically access the extensible key management provider '{provider}'.";
    33128, 16, ALGORITHM_DEPRECATED =
        "Encryption failed. Key uses deprecated algorithm '{algorithm}' which is no longer supported at this db \
         compatibility level. If you still need to use this key switch to a lower db compatibility level.";
    33249, 16, CREDENTIAL_IN_USE = "Cannot drop the credential '{credential}' because it is being used.";
}
