//! The ids of errors: a word for each that stays the same while the text may become better.
//!
//! An error that SQL Server has a message for has its number as id instead; `kind` groups ids that have one remedy. The list is
//! the one place for both: docs/guide/errors.md has a row for each, and `tests/cli/error_ids.rs` compares the two.

macro_rules! ids {
    ($($variant:ident $word:literal $kind:literal,)+) => {
        /// Which error it is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Id {
            $(#[doc = $word] $variant,)+
        }

        impl Id {
            /// All of them, in the order of the list.
            #[cfg(test)]
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word that people search for.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The group that the error belongs to, by its remedy.
            pub fn kind(self) -> &'static str {
                match self {
                    $(Self::$variant => $kind,)+
                }
            }
        }
    };
}

ids! {
    // Of files and databases.
    Io "io" "io",
    NotFound "not-found" "io",
    NoPermission "no-permission" "io",
    BadName "bad-name" "io",
    Full "full" "full",
    NoSpace "space" "space",
    NameTooLong "name-too-long" "io",
    CannotOpen "cannot-open" "cannot-open",
    ReadOnly "read-only" "read-only",
    Exists "exists" "exists",
    Corrupt "corrupt" "corrupt",
    Unauthentic "unauthentic" "unauthentic",
    Replaced "replaced" "replaced",
    Unsupported "unsupported" "unsupported",
    NotADatabase "not-a-database" "not-a-database",
    NotABackup "not-a-backup" "not-a-backup",
    Plain "plain" "plain",
    Empty "empty" "empty",
    Sealed "sealed" "sealed",
    Interrupted "interrupted" "interrupted",
    InUse "in-use" "in-use",
    Scanned "scanned" "scanned",
    ScanUnfinished "scan-unfinished" "scanned",
    LostLog "lost-log" "lost-log",
    LogArchive "log-archive" "log-archive",
    NeedsNewerFormat "needs-newer-format" "needs-newer-format",
    IndexInMemory "index-in-memory" "index-in-memory",
    NeedsVersion2 "needs-upgrade" "unsupported",
    ChainBroken "chain-broken" "corrupt",
    Schema "schema" "schema",
    Sqlite "sqlite" "sqlite",
    Misuse "misuse" "misuse",
    LimitReached "limit-reached" "limit-reached",
    Copies "copies" "copies",
    OwnerLockedOut "owner-locked-out" "owner-locked-out",
    // Of keys and secrets.
    MissingKey "missing-key" "missing-key",
    NoNewKey "no-new-key" "failed",
    NotAKeyFile "not-a-key-file" "failed",
    PassphraseEmpty "passphrase-empty" "failed",
    PassphrasesDiffer "passphrases-differ" "failed",
    PasswordNotNamed "password-not-named" "usage",
    PasswordNotTaken "password-not-taken" "usage",
    PasswordInArgument "password-in-argument" "secret",
    SecretInVariable "secret-in-variable" "secret",
    InputUnread "input-unread" "failed",
    NoTerminal "no-terminal" "failed",
    BundleNotSealed "bundle-not-sealed" "failed",
    // Of instances.
    NoInstance "no-instance" "failed",
    NoKeyring "no-keyring" "no-keyring",
    AnotherInstance "another-instance" "failed",
    NotRoot "not-root" "failed",
    ConfigNotWritten "config-not-written" "failed",
    GroupNotMade "group-not-made" "failed",
    Policies "policies" "policies",
    HistoryUnreadable "history-unreadable" "in-use",
    EventLog "event-log" "event-log",
    EventLogWhole "event-log-whole" "event-log-whole",
    // Of databases that other programs encrypted.
    ForeignSettings "foreign-settings" "usage",
    NotARawKey "not-a-raw-key" "secret",
    OldPassphraseEmpty "old-passphrase-empty" "secret",
    SaltNotNamed "salt-not-named" "secret",
    HeaderInClear "header-in-clear" "secret",
    HotJournal "hot-journal" "hot-journal",
    WrongKey "wrong-key" "wrong-key",
    Untagged "untagged" "untagged",
    TooShort "too-short" "not-a-database",
    CipherNotRead "cipher-not-read" "unsupported",
    // Of backups and salvage.
    BackupToTerminal "backup-to-terminal" "usage",
    ClearBackup "clear-backup" "failed",
    RestoredUnchecked "restored-unchecked" "failed",
    SqliteFoundDamage "sqlite-found-damage" "corrupt",
    NoTemporaryDirectory "no-temporary-directory" "failed",
    ExtensionNotLoaded "extension-not-loaded" "failed",
    SalvageUnfinished "salvage-unfinished" "exists",
    SalvageNotRenamed "salvage-not-renamed" "io",
    // Of scans.
    NotInBackground "not-in-background" "failed",
    BackgroundInput "background-input" "failed",
    BackgroundNotStarted "background-not-started" "failed",
    BackgroundFailed "background-failed" "failed",
    // Of `run` and the library.
    LibraryMissing "library-missing" "failed",
    LibraryPath "library-path" "failed",
    NoProgram "no-program" "failed",
    ProgramNotFound "program-not-found" "failed",
    ProgramUnknown "program-unknown" "failed",
    ProgramUnfit "program-unfit" "failed",
    ProgramPrivileged "program-privileged" "failed",
    ProgramOwnSqlite "program-own-sqlite" "failed",
    ProgramRefusesShim "program-refuses-shim" "failed",
    ProgramNotStarted "program-not-started" "failed",
    ProgramUnwatched "program-unwatched" "failed",
    ShimUnused "shim-unused" "failed",
    NotSealed "not-sealed" "failed",
    // Of `sql`, `lab` and `demo`.
    Drives "drives" "usage",
    OwnVariable "own-variable" "usage",
    Cancelled "cancelled" "cancelled",
    Script "script" "script",
    InterruptsUnwatched "interrupts-unwatched" "failed",
    LabArguments "lab-arguments" "failed",
    LabMissing "lab-missing" "failed",
    LabUntrusted "lab-untrusted" "failed",
    LabNotStarted "lab-not-started" "failed",
    ProgramsMissing "programs-missing" "failed",
    OwnPathUnknown "own-path-unknown" "failed",
    DemoSource "demo-source" "failed",
    DemoDirectoryExists "demo-directory-exists" "exists",
    DemoInItself "demo-in-itself" "failed",
    DemoCommandFailed "demo-command-failed" "failed",
    NotAsShown "not-as-shown" "not-as-shown",
    // Of every command.
    Declined "declined" "declined",
    Unwritten "unwritten" "unwritten",
    Unread "unread" "unread",
    ManualNotWritten "manual-not-written" "failed",
    SqliteNotStarted "sqlite-not-started" "failed",
    Failed "failed" "failed",
    Defect "defect" "failed",
    Message "message" "message",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_errors_have_one_id_and_none_could_be_a_number() {
        let mut words: Vec<&str> = Id::ALL.iter().map(|id| id.word()).collect();
        let plain = |word: &&str| word.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'-'));
        assert!(words.iter().all(plain), "{words:?}");
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all, "two errors have one id");
    }
}
