//! SQL Server's own messages, word for word, which the program and the statements share.
//!
//! Source: SQL Server 2022's list of database engine errors. `%s` stands for one argument.

use std::borrow::Cow;

/// A message by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// The number that `sys.messages` gives the message.
    pub number: u16,
    /// The severity: 10 is information, 16 an error that a user can correct.
    pub severity: u8,
    /// The text, with `%s` for each argument.
    pub text: &'static str,
}

impl Message {
    const fn error(number: u16, text: &'static str) -> Self {
        Self { number, severity: 16, text }
    }

    /// Returns the text with its argument.
    pub fn with(&self, argument: &str) -> Cow<'static, str> {
        self.with_all(&[argument])
    }

    /// Returns the text with its arguments, in order.
    pub fn with_all(&self, arguments: &[&str]) -> Cow<'static, str> {
        let mut parts = self.text.split("%s");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for (index, part) in parts.enumerate() {
            text += arguments.get(index).unwrap_or(&"");
            text += part;
        }
        match self.text.contains("%s") {
            true => Cow::Owned(text),
            false => Cow::Borrowed(self.text),
        }
    }

    /// Whether `text` contains this message: its words before the first argument, and those behind
    /// the last one.
    pub(crate) fn is_told_by(&self, text: &str) -> bool {
        let end = self.text.rsplit("%s").next().unwrap_or_default();
        let start = self.text.split("%s").next().unwrap_or_default();
        text.contains(start) && text.contains(end)
    }
}

/// Two options exclude each other. Arguments: the option, the others.
pub const OPTION_CONFLICTS: Message = Message::error(
    3031,
    "Option '%s' conflicts with option(s) '%s'. Remove the conflicting option and reissue the statement.",
);
/// A log backup is asked for under the recovery model SIMPLE. Argument: the statement.
pub const NO_LOG_UNDER_SIMPLE: Message = Message::error(
    4208,
    "The statement %s is not allowed while the recovery model is SIMPLE. Use BACKUP DATABASE or change \
     the recovery model using ALTER DATABASE.",
);
/// A log backup is asked for before a full backup has begun the chain.
pub const NO_CURRENT_BACKUP: Message = Message::error(
    4214,
    "BACKUP LOG cannot be performed because there is no current database backup.",
);
/// The database of a differential backup has no full backup. Argument: the database.
pub const NO_DATABASE_BACKUP: Message = Message::error(
    3035,
    "Cannot perform a differential backup for database \"%s\", because a current database backup does \
     not exist. Perform a full database backup by reissuing BACKUP DATABASE, omitting the WITH \
     DIFFERENTIAL option.",
);
/// An encrypted set is to go on media of sets in clear, or behind other sets.
pub const ENCRYPTION_NEEDS_FORMAT: Message = Message::error(
    3095,
    "The backup cannot be performed because 'ENCRYPTION' was requested after the media was formatted \
     with an incompatible structure. To append to this media set, either omit 'ENCRYPTION' or create a \
     new media set by using WITH FORMAT in your BACKUP statement. If you use WITH FORMAT on an existing \
     media set, all its backup sets will be overwritten.",
);
/// The media were not formatted for the set. Arguments: the option, the option, the other option.
pub const OPTION_NEEDS_FORMAT: Message = Message::error(
    3098,
    "The backup cannot be performed because '%s' was requested after the media was formatted with an \
     incompatible structure. To append to this media set, either omit '%s' or specify '%s'. \
     Alternatively, you can create a new media set by using WITH FORMAT in your BACKUP statement. If \
     you use WITH FORMAT on an existing media set, all its backup sets will be overwritten.",
);
/// The backup names more mirrors than the media set has.
pub const NEW_MIRROR: Message =
    Message::error(3215, "Use WITH FORMAT to create a new mirrored backup set.");
/// The backup names another number of files than the media set has. Arguments: the first file, the
/// number of families on it, the number of files named.
pub const FAMILIES_EXPECTED: Message = Message::error(
    3231,
    "The media loaded on \"%s\" is formatted to support %s media families, but %s media families are \
     expected according to the backup device specification.",
);
/// A backup is to be appended to a file that is no media. Argument: the file.
pub const NOT_MEDIA: Message = Message::error(
    3241,
    "The media family on device '%s' is incorrectly formed. SQL Server cannot process this media family.",
);
/// The backup would overwrite a set that has not expired. Arguments: the file, the day it expires.
pub const MEDIUM_NOT_EXPIRED: Message =
    Message::error(4030, "The medium on device '%s' expires on %s and cannot be overwritten.");
/// The certificate of an encrypted backup has expired.
pub const BACKUP_CERTIFICATE_EXPIRED: Message =
    Message::error(3096, "The Certificate specified for backup encryption has expired.");
/// Another connection has the database open that a restore is to replace.
pub const IN_USE: Message =
    Message::error(3101, "Exclusive access could not be obtained because the database is in use.");
/// A restore would overwrite a file that is no database. Arguments: the file, the file.
pub const FILE_IN_THE_WAY: Message = Message::error(
    3142,
    "File \"%s\" cannot be restored over the existing \"%s\". Reissue the RESTORE statement using \
     WITH REPLACE to overwrite pre-existing files, or WITH MOVE to identify an alternate location.",
);
/// The backup is of another database than the one that it would replace. Argument: the database that
/// it would replace.
pub const ANOTHER_DATABASE: Message = Message::error(
    3154,
    "The backup set holds a backup of a database other than the existing '%s' database.",
);
/// A restore would lose transactions that were committed since the backup. Argument: the database.
pub const TAIL_NOT_BACKED_UP: Message = Message::error(
    3159,
    "The tail of the log for the database \"%s\" has not been backed up. Use BACKUP LOG WITH \
     NORECOVERY to backup the log if it contains work you do not want to lose. Use the WITH REPLACE \
     or WITH STOPAT clause of the RESTORE statement to just overwrite the contents of the log.",
);
/// No object has the name. Arguments: the action (`find`, `drop`), the kind of object, the name.
pub const DOES_NOT_EXIST: Message = Message::error(
    15151,
    "Cannot %s the %s '%s', because it does not exist or you do not have permission.",
);
/// A certificate, key or private key file cannot be read as one.
pub const FILE_NOT_VALID: Message = Message::error(
    15208,
    "The certificate, asymmetric key, or private key file is not valid or does not exist; or you do \
     not have permissions for it.",
);
/// The validity of a new certificate ends before it starts.
pub const VALIDITY_REVERSED: Message = Message::error(
    15213,
    "Warning: The certificate you created has an invalid validity period; its expiration date \
     precedes its start date.",
);
/// The certificate that was made or imported has expired.
pub const CREATED_EXPIRED: Message =
    Message::error(15214, "Warning: The certificate you created is expired.");
/// The certificate that was made is not valid yet.
pub const CREATED_FUTURE: Message = Message::error(
    15215,
    "Warning: The certificate you created is not yet valid; its start date is in the future.",
);
/// What a key's provider holds is not to be had while that is disabled. Argument: the provider.
pub const PROVIDER_DISABLED: Message =
    Message::error(33031, "Cryptographic provider '%s' is in disabled.");
/// The keyring has a certificate of that name, or that certificate, already.
pub const CERTIFICATE_EXISTS: Message = Message::error(
    15232,
    "A certificate with name '%s' already exists or this certificate already has been added to the \
     database.",
);
/// The command would overwrite a file. Argument: the file.
pub const FILE_EXISTS: Message = Message::error(
    15240,
    "Cannot write into file '%s'. Verify that you have write permissions, that the file path is \
     valid, and that the file does not already exist.",
);
/// The keyring has the certificate without its private key. Argument: the certificate.
pub const NO_PRIVATE_KEY: Message = Message::error(
    15246,
    "Cannot dump the private key of certificate '%s' because the private key cannot be found.",
);
/// The file of a master key is missing or is no such file.
pub const MASTER_KEY_FILE: Message = Message {
    number: 15317,
    severity: 10,
    text: "The master key file does not exist or has invalid format.",
};
/// The current master key cannot be decrypted, so the keys under it would be lost.
pub const CURRENT_KEY_UNREADABLE: Message = Message::error(
    15329,
    "The current master key cannot be decrypted. If this is a database master key, you should \
     attempt to open it in the session before performing this operation. The FORCE option can be \
     used to ignore this error and continue the operation but the data encrypted by the old master \
     key will be lost.",
);
/// The object to be dropped is needed by backups. Argument: the kind of object.
pub const BOUND: Message = Message::error(
    15352,
    "The %s cannot be dropped because one or more entities are either signed or encrypted using it.",
);
/// The password of a private key or key file is wrong.
pub const PASSWORD_INVALID: Message = Message::error(15465, "The private key password is invalid.");
/// A key is sealed under another key than the present one.
pub const DECRYPTION_FAILED: Message =
    Message::error(15466, "An error occurred during decryption.");
/// A key is damaged.
pub const KEY_CORRUPTED: Message =
    Message::error(15507, "A key required by this operation appears to be corrupted.");
/// The private key is not the certificate's. Argument: the kind of object.
pub const KEYS_DO_NOT_MATCH: Message = Message::error(
    15474,
    "Invalid private key. The private key does not match the public key of the %s.",
);
/// The keyring has a database master key already.
pub const MASTER_KEY_EXISTS: Message = Message::error(
    15578,
    "There is already a master key in the database. Please drop it before performing this \
     statement.",
);
/// The keyring has no database master key, or only a password opens it.
pub const MASTER_KEY_MISSING: Message = Message::error(
    15581,
    "Please create a master key in the database or open the master key in the session before \
     performing this operation.",
);
/// The password is too short. Argument: the fewest characters.
pub const PASSWORD_TOO_SHORT: Message = Message::error(
    33062,
    "Password validation failed. The password does not meet SQL Server password policy requirements \
     because it is too short. The password must be at least %s characters.",
);
/// The certificate has no backup, so only this keyring has it.
pub const NOT_BACKED_UP: Message = Message {
    number: 33091,
    severity: 10,
    text: "Warning: The certificate used for encrypting the database encryption key has not been \
           backed up. You should immediately back up the certificate and the private key associated \
           with the certificate. If the certificate ever becomes unavailable or if you must restore \
           or attach the database on another server, you must have backups of both the certificate \
           and the private key or you will not be able to open the database.",
};
/// The certificate has no private key here, so it cannot protect a database. Arguments: the kind of
/// object, the name, the kind of object.
pub const NOT_USABLE: Message = Message::error(
    33101,
    "Cannot use %s '%s', because its private key is not present or it is not protected by the \
     database master key. SQL Server requires the ability to automatically access the private key \
     of the %s used for this operation.",
);
/// The object to be dropped is needed by databases. Argument: the kind of object.
pub const CERTIFICATE_IN_USE: Message = Message::error(
    33127,
    "The %s cannot be dropped because it is used by one or more databases to encrypt a Database \
     Encryption Key.",
);
/// The keyring lacks the certificate that opens the database. Arguments: the kind of object, its
/// thumbprint.
pub const CERTIFICATE_NOT_FOUND: Message =
    Message::error(33111, "Cannot find server %s with thumbprint '%s'.");

/// The database has no key that could be changed.
pub const NO_KEY: Message =
    Message::error(33104, "A database encryption key does not exist for this database.");
/// The database has no key, so its encryption cannot be switched and its scan not be suspended or
/// resumed.
pub const NO_KEY_SET: Message = Message::error(
    33106,
    "Cannot change database encryption state because no database encryption key is set.",
);
/// Encryption is on already.
pub const ON_ALREADY: Message =
    Message::error(33107, "Cannot enable database encryption because it is already enabled.");
/// Encryption is off already.
pub const OFF_ALREADY: Message =
    Message::error(33108, "Cannot disable database encryption because it is already disabled.");
/// Encryption cannot be switched on or off during a scan. Argument: `enable` or `disable`.
pub const STATE_DURING_SCAN: Message = Message::error(
    33109,
    "Cannot %s database encryption while an encryption, decryption, or key change scan is in \
     progress.",
);
/// The DEK cannot be changed during a scan.
pub const KEY_DURING_SCAN: Message = Message::error(
    33110,
    "Cannot change database encryption key while an encryption, decryption, or key change scan is \
     in progress.",
);
/// The DEK or a protector cannot be changed, because other connections hold a lock. Argument: the
/// database.
pub const KEY_LOCKED: Message = Message::error(
    33116,
    "CREATE/ALTER/DROP DATABASE ENCRYPTION KEY failed because a lock could not be placed on database \
     '%s'. Try again later.",
);
/// The database cannot be written, or its conversion was interrupted.
pub const READ_ONLY: Message = Message::error(
    33118,
    "Cannot enable or modify database encryption on a database that is read-only, has read-only files \
     or is not recovered.",
);
/// Both copies of the header are damaged.
pub const KEY_UNREADABLE: Message = Message {
    number: 33126,
    severity: 10,
    text: "Database encryption key is corrupted and cannot be read.",
};
/// The protectors cannot be changed, because the header says that another change is in progress.
pub const PROTECTOR_CHANGES: Message = Message::error(
    33145,
    "Cannot update database encryption key protector while protector change is already in progress.",
);
/// A scan begins. Argument: the database.
pub const SCAN_BEGINS: Message = Message {
    number: 33112,
    severity: 10,
    text: "Beginning database encryption scan for database '%s'.",
};
/// A scan is complete. Argument: the database.
pub const SCAN_COMPLETE: Message = Message {
    number: 33113,
    severity: 10,
    text: "Database encryption scan for database '%s' is complete.",
};
/// A scan met a damaged page, which it cannot rewrite. Argument: the database.
pub const SCAN_ABORTED: Message = Message {
    number: 33114,
    severity: 10,
    text: "Database encryption scan for database '%s' was aborted. Reissue ALTER DB to resume the \
           scan.",
};

/// Messages that an error of this project may have in its text.
pub(crate) const TOLD_WITHIN: [Message; 5] =
    [CERTIFICATE_NOT_FOUND, DOES_NOT_EXIST, NOT_USABLE, DECRYPTION_FAILED, KEY_CORRUPTED];
