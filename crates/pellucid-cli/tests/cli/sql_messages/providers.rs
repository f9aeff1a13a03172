//! Extensible key management over a real token: SQL Server's walk-through ("Enable TDE on SQL Server using EKM", adapted to a key that
//! is long enough), and each of its messages.

use super::{Server, BACKUP_ENDS};
use crate::support::token::{command, script, shell, Token, PIN};
use crate::support::{said, said_with};

/// The token's module as the provider; `PIN` and `MODULE` are filled in.
const PROVIDER: &str = "
EXEC sp_configure 'show advanced options', 1
RECONFIGURE
EXEC sp_configure 'EKM provider enabled', 1
RECONFIGURE
GO
CREATE CRYPTOGRAPHIC PROVIDER EKM_Prov FROM FILE = 'MODULE'
GO
CREATE CREDENTIAL sa_ekm_tdekey_cred WITH IDENTITY = 'T', SECRET = 'PIN' FOR CRYPTOGRAPHIC PROVIDER EKM_Prov
GO
ALTER LOGIN sa ADD CREDENTIAL sa_ekm_tdekey_cred
GO";
const KEY: &str = "
USE master
GO
CREATE ASYMMETRIC KEY ekm_login_key FROM PROVIDER [EKM_Prov]
WITH ALGORITHM = RSA_2048, PROVIDER_KEY_NAME = 'SQL_Server_Key'
GO
CREATE CREDENTIAL ekm_tde_cred WITH IDENTITY = 'T', SECRET = 'PIN' FOR CRYPTOGRAPHIC PROVIDER EKM_Prov
GO
CREATE LOGIN EKM_Login FROM ASYMMETRIC KEY ekm_login_key
GO
ALTER LOGIN EKM_Login ADD CREDENTIAL ekm_tde_cred
GO";
const ENCRYPTED: &str = "
USE sales
GO
CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_256 ENCRYPTION BY SERVER ASYMMETRIC KEY ekm_login_key
GO
ALTER DATABASE sales SET ENCRYPTION ON
GO";

fn filled(token: &Token<'_>, script: &str) -> String {
    script.replace("MODULE", token.module()).replace("PIN", PIN)
}

/// The values of the first column of a query.
fn values(server: &Server, query: &str) -> Vec<String> {
    let mut pellucid = command(&server.place);
    let told =
        said_with(pellucid.args(["sql", "-h", "-1", "-W"]), &format!("SET NOCOUNT ON\n{query}"));
    assert_eq!(told.code, 0, "{told:?}");
    told.stdout.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

fn wait_until_encrypted(server: &Server) {
    let state = "SELECT encryption_state FROM sys.dm_database_encryption_keys";
    while values(server, state) != ["3"] {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn sql_servers_walk_through_encrypts_under_a_key_that_never_leaves_its_token() {
    let server = Server::ready();
    let Some(token) = Token::make(&server.place) else { return };
    for part in [PROVIDER, KEY, ENCRYPTED] {
        server.done(&filled(&token, part));
    }
    wait_until_encrypted(&server);
    let shown = "SELECT k.encryptor_type, a.name, a.algorithm_desc, a.pvt_key_encryption_type
        FROM sys.dm_database_encryption_keys k JOIN sys.asymmetric_keys a ON a.thumbprint = k.encryptor_thumbprint";
    assert_eq!(values(&server, shown), ["ASYMMETRIC KEY ekm_login_key RSA_2048 CP"]);
    assert_eq!(
        values(&server, "SELECT name, is_enabled FROM sys.cryptographic_providers"),
        ["EKM_Prov 1"]
    );
    assert_eq!(values(&server, "SELECT name FROM sys.certificates"), ["Cert"]);
    let creds = "SELECT name, credential_identity FROM sys.credentials ORDER BY name";
    assert_eq!(values(&server, creds), ["ekm_tde_cred T", "sa_ekm_tdekey_cred T"]);
    let can = "SELECT friendly_name, asymmetric_key_support, asymmetric_key_export FROM sys.dm_cryptographic_provider_properties";
    assert_eq!(values(&server, can), ["PKCS#11 token 1 0"]);

    // The PIN is nowhere in clear, and in no text; the private key is nobody's to read.
    let holds = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).any(|part| part == what);
    for (path, _) in server.place.snapshot() {
        let bytes = std::fs::read(&path).unwrap_or_default();
        assert!(path.ends_with("pin") || !holds(&bytes, PIN.as_bytes()), "{}", path.display());
    }
    let told = token.pkcs11("--list-objects --type privkey");
    assert!(told.contains("never extractable") && told.contains("sensitive"), "{told}");

    // Programs, backups in both directions, a new data encryption key, another key of the token.
    let database = server.place.path("keys/data/sales.db");
    let count = |expected: &str| {
        let attached = format!(".open '{}'", database.display());
        let told = said(&mut shell(&server.place, &[&attached, "SELECT count(*) FROM t"]));
        assert_eq!(told.stdout.trim(), expected, "{told:?}");
    };
    let refused = |expected: &str| {
        let told = said(command(&server.place).arg("check").arg(&database));
        assert!(told.code != 0 && told.stderr.contains(expected), "{told:?}");
        count("");
    };
    count("2");
    server.done(
        "BACKUP DATABASE sales TO DISK = 'C:\\temp\\sales.bak'
           WITH ENCRYPTION (ALGORITHM = AES_256, SERVER ASYMMETRIC KEY = ekm_login_key)
         GO
         RESTORE VERIFYONLY FROM DISK = 'C:\\temp\\sales.bak'
         GO
         USE sales
         DELETE FROM t
         GO
         USE master
         RESTORE DATABASE sales FROM DISK = 'C:\\temp\\sales.bak' WITH REPLACE
         GO
         USE sales
         ALTER DATABASE ENCRYPTION KEY REGENERATE WITH ALGORITHM = AES_128
         GO",
    );
    wait_until_encrypted(&server);
    assert_eq!(values(&server, "SELECT count(*) FROM sales..t"), ["2"]);
    let kind = "SELECT encryptor_type FROM msdb.dbo.backupset ORDER BY backup_set_id DESC";
    assert_eq!(values(&server, kind).first().map(String::as_str), Some("ASYMMETRIC KEY"));
    token.pkcs11("--keypairgen --key-type RSA:3072 --label Second");
    server.done(&filled(
        &token,
        "CREATE ASYMMETRIC KEY second FROM PROVIDER EKM_Prov
           WITH PROVIDER_KEY_NAME = 'Second', CREATION_DISPOSITION = OPEN_EXISTING
         GO
         CREATE LOGIN second_login FROM ASYMMETRIC KEY second
         CREATE CREDENTIAL second_cred WITH IDENTITY = 'T', SECRET = 'PIN' FOR CRYPTOGRAPHIC PROVIDER EKM_Prov
         ALTER LOGIN second_login ADD CREDENTIAL second_cred
         GO
         USE sales
         ALTER DATABASE ENCRYPTION KEY ENCRYPTION BY SERVER ASYMMETRIC KEY second
         GO",
    ));
    count("2");
    assert_eq!(values(&server, shown), ["ASYMMETRIC KEY second RSA_3072 CP"]);

    // Wrong PIN, a provider that is disabled, a token that is out: each an error that says who must act, and nothing is lost.
    server.done("ALTER CREDENTIAL second_cred WITH IDENTITY = 'T', SECRET = 'wrong-pin'");
    refused("the PIN that was given is not the token's; it was tried once");
    // Once more would lock nothing: the token says that its PIN was wrong before.
    server
        .done(&filled(&token, "ALTER CREDENTIAL second_cred WITH IDENTITY = 'T', SECRET = 'PIN'"));
    token.pkcs11("--list-objects");
    count("2");
    server.done("ALTER CRYPTOGRAPHIC PROVIDER EKM_Prov DISABLE");
    refused("Cryptographic provider 'EKM_Prov' is in disabled.");
    server.done("ALTER CRYPTOGRAPHIC PROVIDER EKM_Prov ENABLE");
    std::fs::rename(server.place.path("tokens"), server.place.path("out")).unwrap();
    std::fs::create_dir(server.place.path("tokens")).unwrap();
    refused("no token in any slot fits the key");
    std::fs::remove_dir(server.place.path("tokens")).unwrap();
    std::fs::rename(server.place.path("out"), server.place.path("tokens")).unwrap();
    // A new master key: what belongs to providers is sealed under it.
    server.done("ALTER MASTER KEY REGENERATE WITH ENCRYPTION BY PASSWORD = 'p@ssw0rd2'");
    count("2");
}

#[test]
fn each_message_of_extensible_key_management() {
    let server = Server::ready();
    let Some(token) = Token::make(&server.place) else { return };
    let says = |statement: &str, expected: &[(u64, &str)]| {
        server.says(&filled(&token, statement), expected);
    };
    let disabled = "Extensible Key Management is disabled or not supported on this edition of SQL Server.  Use sp_configure \
                    'EKM provider enabled' to enable it.";
    for statement in [
        "CREATE CRYPTOGRAPHIC PROVIDER p FROM FILE = 'MODULE'",
        "ALTER CRYPTOGRAPHIC PROVIDER p ENABLE",
        "DROP CRYPTOGRAPHIC PROVIDER p",
        "CREATE CREDENTIAL c WITH IDENTITY = 'T', SECRET = 'PIN' FOR CRYPTOGRAPHIC PROVIDER p",
        "CREATE ASYMMETRIC KEY k FROM PROVIDER p WITH ALGORITHM = RSA_2048, PROVIDER_KEY_NAME = 'n'",
    ] {
        says(statement, &[(33053, disabled)]);
    }
    says(
        "EXEC sp_configure 'show advanced options', 1 RECONFIGURE EXEC sp_configure 'EKM provider enabled', 1 RECONFIGURE",
        &[],
    );
    // Providers.
    for (file, cause) in [
        ("/nowhere/lib.so", (50000, "%")),
        ("C:\\EKM_Files\\KeyProvFile.dll", (50000, "%it is no plugin%")),
        ("/nowhere/pellucid-plugin-pkcs11", (50000, "%the plugin of that name is%")),
    ] {
        let heard = server.run(&format!("CREATE CRYPTOGRAPHIC PROVIDER p FROM FILE = '{file}'"));
        let (number, severity, text) = heard.last().unwrap();
        assert_eq!((*number, *severity), (33027, 16), "{heard:?}");
        assert_eq!(
            *text,
            format!("Cannot load library '{file}'. See errorlog for more information.")
        );
        assert!(super::matches(&heard[heard.len() - 2].2, cause.1), "{heard:?}");
    }
    script(&server.place, "broken", "echo nothing");
    let broken = server.place.path("plugins/pellucid-plugin-broken");
    let heard =
        server.run(&format!("CREATE CRYPTOGRAPHIC PROVIDER p FROM FILE = '{}'", broken.display()));
    assert!(
        super::matches(
            &heard.last().unwrap().2,
            "Cannot initialize cryptographic provider. Provider error code: 1.  (Failure - %)"
        ),
        "{heard:?}"
    );
    says("CREATE CRYPTOGRAPHIC PROVIDER p FROM FILE = 'MODULE'", &[]);
    says(
        "CREATE CRYPTOGRAPHIC PROVIDER P FROM FILE = 'MODULE'",
        &[(15530, "The cryptographic provider with name \"P\" already exists.")],
    );
    says(
        "ALTER CRYPTOGRAPHIC PROVIDER q DISABLE",
        &[(15151, "Cannot alter the cryptographic provider 'q', because it does not exist or you do not have permission.")],
    );
    // Credentials and logins.
    says(
        "CREATE CREDENTIAL c WITH IDENTITY = 'T', SECRET = 'PIN' FOR CRYPTOGRAPHIC PROVIDER q",
        &[(15151, "Cannot find the cryptographic provider 'q', because it does not exist or you do not have permission.")],
    );
    says(
        "CREATE ASYMMETRIC KEY k FROM PROVIDER p WITH ALGORITHM = RSA_2048, PROVIDER_KEY_NAME = 'n'",
        &[(33046, "Server principal '%' has no credential associated with cryptographic provider 'p'.")],
    );
    says(
        "CREATE CREDENTIAL c WITH IDENTITY = 'T', SECRET = 'PIN' FOR CRYPTOGRAPHIC PROVIDER p",
        &[],
    );
    says(
        "CREATE CREDENTIAL c WITH IDENTITY = 'T', SECRET = 'PIN' FOR CRYPTOGRAPHIC PROVIDER p",
        &[(15530, "The credential with name \"c\" already exists.")],
    );
    says(
        "ALTER LOGIN nobody ADD CREDENTIAL c",
        &[(15151, "Cannot alter the login 'nobody', because it does not exist or you do not have permission.")],
    );
    says(
        "ALTER LOGIN sa DROP CREDENTIAL c",
        &[(33045, "Cannot drop credential because it is not mapped to this login.")],
    );
    says("ALTER LOGIN sa ADD CREDENTIAL c", &[]);
    says(
        "ALTER LOGIN sa ADD CREDENTIAL c",
        &[(33043, "Cannot add credential 'c' because there is already a credential specified for the login.")],
    );
    says(
        "DROP CREDENTIAL c",
        &[(33249, "Cannot drop the credential 'c' because it is being used.")],
    );
    says(
        "DROP CRYPTOGRAPHIC PROVIDER p",
        &[(33044, "Cannot drop cryptographic provider because there is credential referencing this provider.")],
    );
    // Keys.
    says(
        "CREATE ASYMMETRIC KEY k FROM PROVIDER p WITH ALGORITHM = RSA_512, PROVIDER_KEY_NAME = 'n'",
        &[(33039, "Invalid algorithm 'RSA_512'. Provider error code: 3.  (Not Supported - RSA_2048, RSA_3072 and RSA_4096 are)")],
    );
    says(
        "CREATE ASYMMETRIC KEY k FROM PROVIDER p WITH ALGORITHM = RSA_2048, PROVIDER_KEY_NAME = 'n',
         CREATION_DISPOSITION = OPEN_EXISTING",
        &[(33034, "Cannot specify algorithm for existing key.")],
    );
    let last = |statement: &str, number: u64, pattern: &str| {
        let heard = server.run(&filled(&token, statement));
        let (found, _, text) = heard.last().unwrap();
        assert!(*found == number && super::matches(text, pattern), "{heard:?}");
    };
    let open = "CREATE ASYMMETRIC KEY k FROM PROVIDER p WITH PROVIDER_KEY_NAME = 'n', CREATION_DISPOSITION = OPEN_EXISTING";
    last(
        open,
        33049,
        "Key with name 'n' does not exist in the provider or access is denied. Provider error code: %.  (%)",
    );
    says("CREATE ASYMMETRIC KEY k FROM PROVIDER p WITH ALGORITHM = RSA_2048, PROVIDER_KEY_NAME = 'n'", &[]);
    last(
        "CREATE ASYMMETRIC KEY other FROM PROVIDER p WITH ALGORITHM = RSA_2048, PROVIDER_KEY_NAME = 'n'",
        33035,
        "Cannot create key 'n' in the provider. Provider error code: %.  (%)",
    );
    says(open, &[(15282, "A key with name 'k' or user defined unique identifier already exists or you do not have permissions to create it.")]);
    says(
        "DROP CERTIFICATE k",
        &[(15151, "Cannot drop the certificate 'k', because it does not exist or you do not have permission.")],
    );
    let without_login = "The asymmetric key 'k' does not have a login associated with it.  Create a login and credential for this \
        key to automatically access the extensible key management provider 'p'.";
    let encrypt = "USE sales CREATE DATABASE ENCRYPTION KEY WITH ALGORITHM = AES_256 ENCRYPTION BY SERVER ASYMMETRIC KEY k";
    says(encrypt, &[(33121, without_login)]);
    says(
        "BACKUP DATABASE sales TO DISK = 'x.bak' WITH ENCRYPTION (ALGORITHM = AES_256, SERVER ASYMMETRIC KEY = k)",
        &[(33121, without_login), BACKUP_ENDS],
    );
    says("CREATE LOGIN l FROM ASYMMETRIC KEY k", &[]);
    says(
        "CREATE LOGIN l FROM ASYMMETRIC KEY k",
        &[(15025, "The server principal 'l' already exists.")],
    );
    says(encrypt, &[(33121, without_login)]);
    says(
        "DROP ASYMMETRIC KEY k",
        &[(15559, "Cannot drop asymmetric key 'k' because there is a login mapped to it.")],
    );
    says("DROP LOGIN l", &[]);
    says(
        "DROP LOGIN l",
        &[(
            15151,
            "Cannot drop the login 'l', because it does not exist or you do not have permission.",
        )],
    );
    says(
        "ALTER CRYPTOGRAPHIC PROVIDER p DISABLE",
        &[(33057, "10: Cryptographic provider is now disabled. However users who have an open cryptographic session with the \
            provider can still use it. Restart the server to disable the provider for all users.")],
    );
    says(
        "CREATE ASYMMETRIC KEY other FROM PROVIDER p WITH ALGORITHM = RSA_2048, PROVIDER_KEY_NAME = 'm'",
        &[(33031, "Cryptographic provider 'p' is in disabled.")],
    );
    says("ALTER CRYPTOGRAPHIC PROVIDER p ENABLE", &[]);
    says(
        "DROP ASYMMETRIC KEY k REMOVE PROVIDER KEY",
        &[(33036, "10: Cannot drop the key with thumbprint '%' in the provider.")],
    );
    says("ALTER LOGIN sa DROP CREDENTIAL c DROP CREDENTIAL c", &[]);
    says(
        "DROP CRYPTOGRAPHIC PROVIDER p",
        &[(33058, "10: Cryptographic provider is now dropped. However users who have an open cryptographic session with the \
            provider can still use it. Restart the server to drop the provider for all users.")],
    );
}
