//! SQL Server's own messages, word for word, for what has one (shared by the program and the statements).
//!
//! Source: SQL Server 2022's list of database engine errors. `%s` stands for one argument.

use std::borrow::Cow;

/// A message by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Its number, as `sys.messages` has it.
    pub number: u16,
    /// Its severity: 10 informs, 16 is an error a user can mend.
    pub severity: u8,
    /// Its text.
    pub text: &'static str,
}

impl Message {
    const fn error(number: u16, text: &'static str) -> Self {
        Self { number, severity: 16, text }
    }

    /// The text with its argument.
    pub fn with(&self, argument: &str) -> Cow<'static, str> {
        self.with_all(&[argument])
    }

    /// The text with its arguments, in order.
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

/// Options that exclude each other. Arguments: the option, the others.
pub const OPTION_CONFLICTS: Message = Message::error(
    3031,
    "Option '%s' conflicts with option(s) '%s'. Remove the conflicting option and reissue the statement.",
);
/// A differential of a database that has no full backup. Argument: the database.
pub const NO_DATABASE_BACKUP: Message = Message::error(
    3035,
    "Cannot perform a differential backup for database \"%s\", because a current database backup does \
     not exist. Perform a full database backup by reissuing BACKUP DATABASE, omitting the WITH \
     DIFFERENTIAL option.",
);
/// An encrypted set on media of sets in clear, or behind others.
pub const ENCRYPTION_NEEDS_FORMAT: Message = Message::error(
    3095,
    "The backup cannot be performed because 'ENCRYPTION' was requested after the media was formatted \
     with an incompatible structure. To append to this media set, either omit 'ENCRYPTION' or create a \
     new media set by using WITH FORMAT in your BACKUP statement. If you use WITH FORMAT on an existing \
     media set, all its backup sets will be overwritten.",
);
/// A set that the media were not formatted for. Arguments: the option, the same, the other one.
pub const OPTION_NEEDS_FORMAT: Message = Message::error(
    3098,
    "The backup cannot be performed because '%s' was requested after the media was formatted with an \
     incompatible structure. To append to this media set, either omit '%s' or specify '%s'. \
     Alternatively, you can create a new media set by using WITH FORMAT in your BACKUP statement. If \
     you use WITH FORMAT on an existing media set, all its backup sets will be overwritten.",
);
/// More mirrors than the media set has.
pub const NEW_MIRROR: Message =
    Message::error(3215, "Use WITH FORMAT to create a new mirrored backup set.");
/// Another number of files than the media set has. Arguments: the first, how many it has, how many are named.
pub const FAMILIES_EXPECTED: Message = Message::error(
    3231,
    "The media loaded on \"%s\" is formatted to support %s media families, but %s media families are \
     expected according to the backup device specification.",
);
/// A file that is no media is to be appended to. Argument: the file.
pub const NOT_MEDIA: Message = Message::error(
    3241,
    "The media family on device '%s' is incorrectly formed. SQL Server cannot process this media family.",
);
/// A set would be overwritten before its time. Arguments: the file, the day.
pub const MEDIUM_NOT_EXPIRED: Message =
    Message::error(4030, "The medium on device '%s' expires on %s and cannot be overwritten.");
/// A certificate that is over does not encrypt backups.
pub const BACKUP_CERTIFICATE_EXPIRED: Message =
    Message::error(3096, "The Certificate specified for backup encryption has expired.");
/// Another connection has the database open that is to be replaced.
pub const IN_USE: Message =
    Message::error(3101, "Exclusive access could not be obtained because the database is in use.");
/// A file that is no database is in the way of one. Arguments: the file, the file.
pub const FILE_IN_THE_WAY: Message = Message::error(
    3142,
    "File \"%s\" cannot be restored over the existing \"%s\". Reissue the RESTORE statement using \
     WITH REPLACE to overwrite pre-existing files, or WITH MOVE to identify an alternate location.",
);
/// A backup of something else than what is there. Argument: the database that is there.
pub const ANOTHER_DATABASE: Message = Message::error(
    3154,
    "The backup set holds a backup of a database other than the existing '%s' database.",
);
/// What was committed since the backup would be lost. Argument: the database.
pub const TAIL_NOT_BACKED_UP: Message = Message::error(
    3159,
    "The tail of the log for the database \"%s\" has not been backed up. Use BACKUP LOG WITH \
     NORECOVERY to backup the log if it contains work you do not want to lose. Use the WITH REPLACE \
     or WITH STOPAT clause of the RESTORE statement to just overwrite the contents of the log.",
);
/// A name that nothing has. Arguments: what was asked for (`find`, `drop`), kind of thing, name.
pub const DOES_NOT_EXIST: Message = Message::error(
    15151,
    "Cannot %s the %s '%s', because it does not exist or you do not have permission.",
);
/// A certificate, key or private key file that cannot be read as one.
pub const FILE_NOT_VALID: Message = Message::error(
    15208,
    "The certificate, asymmetric key, or private key file is not valid or does not exist; or you do \
     not have permissions for it.",
);
/// Expires before it starts.
pub const VALIDITY_REVERSED: Message = Message::error(
    15213,
    "Warning: The certificate you created has an invalid validity period; its expiration date \
     precedes its start date.",
);
/// Made or imported although it is over.
pub const CREATED_EXPIRED: Message =
    Message::error(15214, "Warning: The certificate you created is expired.");
/// Made for the future.
pub const CREATED_FUTURE: Message = Message::error(
    15215,
    "Warning: The certificate you created is not yet valid; its start date is in the future.",
);
/// A name or a certificate that is there already.
pub const CERTIFICATE_EXISTS: Message = Message::error(
    15232,
    "A certificate with name '%s' already exists or this certificate already has been added to the \
     database.",
);
/// A file that would be overwritten.
pub const FILE_EXISTS: Message = Message::error(
    15240,
    "Cannot write into file '%s'. Verify that you have write permissions, that the file path is \
     valid, and that the file does not already exist.",
);
/// The certificate is there without its private key.
pub const NO_PRIVATE_KEY: Message = Message::error(
    15246,
    "Cannot dump the private key of certificate '%s' because the private key cannot be found.",
);
/// A master key file that is not one.
pub const MASTER_KEY_FILE: Message = Message {
    number: 15317,
    severity: 10,
    text: "The master key file does not exist or has invalid format.",
};
/// What is below a master key cannot be opened any more.
pub const CURRENT_KEY_UNREADABLE: Message = Message::error(
    15329,
    "The current master key cannot be decrypted. If this is a database master key, you should \
     attempt to open it in the session before performing this operation. The FORCE option can be \
     used to ignore this error and continue the operation but the data encrypted by the old master \
     key will be lost.",
);
/// Dropping what backups need. Argument: kind of thing.
pub const BOUND: Message = Message::error(
    15352,
    "The %s cannot be dropped because one or more entities are either signed or encrypted using it.",
);
/// The password of a private key or key file.
pub const PASSWORD_INVALID: Message = Message::error(15465, "The private key password is invalid.");
/// A key that another one than the present seals.
pub const DECRYPTION_FAILED: Message =
    Message::error(15466, "An error occurred during decryption.");
/// A damaged key.
pub const KEY_CORRUPTED: Message =
    Message::error(15507, "A key required by this operation appears to be corrupted.");
/// The two halves do not belong together.
pub const KEYS_DO_NOT_MATCH: Message = Message::error(
    15474,
    "Invalid private key. The private key does not match the public key of the %s.",
);
/// There is a database master key already.
pub const MASTER_KEY_EXISTS: Message = Message::error(
    15578,
    "There is already a master key in the database. Please drop it before performing this \
     statement.",
);
/// There is no database master key, or it does not open by itself.
pub const MASTER_KEY_MISSING: Message = Message::error(
    15581,
    "Please create a master key in the database or open the master key in the session before \
     performing this operation.",
);
/// A password too short.
pub const PASSWORD_TOO_SHORT: Message = Message::error(
    33062,
    "Password validation failed. The password does not meet SQL Server password policy requirements \
     because it is too short. The password must be at least %s characters.",
);
/// A certificate that only this keyring has.
pub const NOT_BACKED_UP: Message = Message {
    number: 33091,
    severity: 10,
    text: "Warning: The certificate used for encrypting the database encryption key has not been \
           backed up. You should immediately back up the certificate and the private key associated \
           with the certificate. If the certificate ever becomes unavailable or if you must restore \
           or attach the database on another server, you must have backups of both the certificate \
           and the private key or you will not be able to open the database.",
};
/// A certificate that cannot protect anything. Arguments: kind of thing, name, kind of thing.
pub const NOT_USABLE: Message = Message::error(
    33101,
    "Cannot use %s '%s', because its private key is not present or it is not protected by the \
     database master key. SQL Server requires the ability to automatically access the private key \
     of the %s used for this operation.",
);
/// Dropping what databases need.
pub const CERTIFICATE_IN_USE: Message = Message::error(
    33127,
    "The %s cannot be dropped because it is used by one or more databases to encrypt a Database \
     Encryption Key.",
);
/// Opening without the certificate.
pub const CERTIFICATE_NOT_FOUND: Message =
    Message::error(33111, "Cannot find server %s with thumbprint '%s'.");

/// Changing a key that is not there.
pub const NO_KEY: Message =
    Message::error(33104, "A database encryption key does not exist for this database.");
/// Switching, suspending or resuming what has no key.
pub const NO_KEY_SET: Message = Message::error(
    33106,
    "Cannot change database encryption state because no database encryption key is set.",
);
/// Switching on what is on.
pub const ON_ALREADY: Message =
    Message::error(33107, "Cannot enable database encryption because it is already enabled.");
/// Switching off what is off.
pub const OFF_ALREADY: Message =
    Message::error(33108, "Cannot disable database encryption because it is already disabled.");
/// Switching encryption on or off while a scan runs. Argument: `enable` or `disable`.
pub const STATE_DURING_SCAN: Message = Message::error(
    33109,
    "Cannot %s database encryption while an encryption, decryption, or key change scan is in \
     progress.",
);
/// A new DEK while a scan runs.
pub const KEY_DURING_SCAN: Message = Message::error(
    33110,
    "Cannot change database encryption key while an encryption, decryption, or key change scan is \
     in progress.",
);
/// A new DEK or protector, and others do not give way. Argument: database.
pub const KEY_LOCKED: Message = Message::error(
    33116,
    "CREATE/ALTER/DROP DATABASE ENCRYPTION KEY failed because a lock could not be placed on database \
     '%s'. Try again later.",
);
/// Encryption of what cannot be written, or was left half converted.
pub const READ_ONLY: Message = Message::error(
    33118,
    "Cannot enable or modify database encryption on a database that is read-only, has read-only files \
     or is not recovered.",
);
/// Neither copy of the header is whole.
pub const KEY_UNREADABLE: Message = Message {
    number: 33126,
    severity: 10,
    text: "Database encryption key is corrupted and cannot be read.",
};
/// Another protector, and the header says that one is just being made.
pub const PROTECTOR_CHANGES: Message = Message::error(
    33145,
    "Cannot update database encryption key protector while protector change is already in progress.",
);
/// A scan begins. Argument: database.
pub const SCAN_BEGINS: Message = Message {
    number: 33112,
    severity: 10,
    text: "Beginning database encryption scan for database '%s'.",
};
/// A scan is complete. Argument: database.
pub const SCAN_COMPLETE: Message = Message {
    number: 33113,
    severity: 10,
    text: "Database encryption scan for database '%s' is complete.",
};
/// A scan met what it cannot rewrite. Argument: database.
pub const SCAN_ABORTED: Message = Message {
    number: 33114,
    severity: 10,
    text: "Database encryption scan for database '%s' was aborted. Reissue ALTER DB to resume the \
           scan.",
};

/// Messages that may stand within an error of this project's own, behind its text.
pub(crate) const TOLD_WITHIN: [Message; 5] =
    [CERTIFICATE_NOT_FOUND, DOES_NOT_EXIST, NOT_USABLE, DECRYPTION_FAILED, KEY_CORRUPTED];
