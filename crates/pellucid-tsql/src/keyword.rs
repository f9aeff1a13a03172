//! The words of the language: which are reserved, which mean something in their place only.
//!
//! Source of the reserved ones: Microsoft's "Reserved Keywords (Transact-SQL)". Only these need brackets as a
//! name; every other word here is a name wherever the grammar does not ask for it.

macro_rules! keywords {
    (reserved: $($reserved:ident)+; contextual: $($word:ident)+;) => {
        /// A word that some statement knows. Variants are spelt as in statements.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Keyword {
            $(#[doc = "Reserved."] $reserved,)+
            $(#[doc = "A name elsewhere."] $word,)+
        }

        impl Keyword {
            /// Every keyword, reserved ones first.
            pub const EVERY: &'static [Keyword] = &[$(Keyword::$reserved,)+ $(Keyword::$word,)+];
            const RESERVED: usize = [$(Keyword::$reserved),+].len();

            /// Its spelling, in capitals.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Keyword::$reserved => stringify!($reserved),)+
                    $(Keyword::$word => stringify!($word),)+
                }
            }
        }
    };
}

keywords! {
    reserved:
        ADD ALL ALTER AND ANY AS ASC AUTHORIZATION BACKUP BEGIN BETWEEN BREAK BROWSE BULK BY CASCADE CASE CHECK
        CHECKPOINT CLOSE CLUSTERED COALESCE COLLATE COLUMN COMMIT COMPUTE CONSTRAINT CONTAINS CONTAINSTABLE
        CONTINUE CONVERT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURSOR
        DATABASE DBCC DEALLOCATE DECLARE DEFAULT DELETE DENY DESC DISK DISTINCT DISTRIBUTED DOUBLE DROP DUMP ELSE
        END ERRLVL ESCAPE EXCEPT EXEC EXECUTE EXISTS EXIT EXTERNAL FETCH FILE FILLFACTOR FOR FOREIGN FREETEXT
        FREETEXTTABLE FROM FULL FUNCTION GOTO GRANT GROUP HAVING HOLDLOCK IDENTITY IDENTITYCOL IDENTITY_INSERT IF
        IN INDEX INNER INSERT INTERSECT INTO IS JOIN KEY KILL LEFT LIKE LINENO LOAD MERGE NATIONAL NOCHECK
        NONCLUSTERED NOT NULL NULLIF OF OFF OFFSETS ON OPEN OPENDATASOURCE OPENQUERY OPENROWSET OPENXML OPTION OR
        ORDER OUTER OVER PERCENT PIVOT PLAN PRECISION PRIMARY PRINT PROC PROCEDURE PUBLIC RAISERROR READ READTEXT
        RECONFIGURE REFERENCES REPLICATION RESTORE RESTRICT RETURN REVERT REVOKE RIGHT ROLLBACK ROWCOUNT
        ROWGUIDCOL RULE SAVE SCHEMA SECURITYAUDIT SELECT SEMANTICKEYPHRASETABLE SEMANTICSIMILARITYDETAILSTABLE
        SEMANTICSIMILARITYTABLE SESSION_USER SET SETUSER SHUTDOWN SOME STATISTICS SYSTEM_USER TABLE TABLESAMPLE
        TEXTSIZE THEN TO TOP TRAN TRANSACTION TRIGGER TRUNCATE TRY_CONVERT TSEQUAL UNION UNIQUE UNPIVOT UPDATE
        UPDATETEXT USE USER VALUES VARYING VIEW WAITFOR WHEN WHERE WHILE WITH WRITETEXT;
    contextual:
        ABSOLUTE DYNAMIC FAST_FORWARD FORWARD_ONLY INSENSITIVE KEYSET LAST OPTIMISTIC PRIOR RELATIVE SCROLL
        SCROLL_LOCKS STATIC TYPE_WARNING
        ABORT ACTION ACTIVE AEGIS_256 AES_128 AES_192 AES_256 AFTER ALGORITHM ALLOWED ALLOW_PAGE_LOCKS
        ALLOW_ROW_LOCKS ALLOW_SNAPSHOT_ISOLATION ANSI_DEFAULTS ANSI_NULLS ANSI_NULL_DEFAULT
        ANSI_NULL_DFLT_OFF ANSI_NULL_DFLT_ON ANSI_PADDING ANSI_WARNINGS APPLY ARITHABORT
        ARITHIGNORE ASSEMBLY ASYMMETRIC AT ATTACH ATTACH_REBUILD_LOG AUDIT AUTO_CLOSE
        AUTO_CREATE_STATISTICS AUTO_SHRINK AUTO_UPDATE_STATISTICS AUTO_UPDATE_STATISTICS_ASYNC
        BEGIN_DIALOG BINARY BLOCKSIZE BUFFERCOUNT BULK_LOGGED CAST CATCH CERTIFICATE CHECKSUM
        COLUMNS COLUMNSTORE COLUMNSTORE_ARCHIVE COMMITTED COMPATIBILITY_LEVEL COMPRESSION
        COMPRESSION_DELAY COMPRESS_ALL_ROW_GROUPS CONCAT_NULL_YIELDS_NULL CONFIGURATION
        CONTAINMENT CONTEXT_INFO CONTINUE_AFTER_ERROR CONVERSATION COPY COPY_ONLY CREATE_NEW
        CREATION_DISPOSITION CREDENTIAL CRYPTOGRAPHIC CUBE CURSOR_CLOSE_ON_COMMIT CURSOR_DEFAULT
        DATABASE_SNAPSHOT DATA_COMPRESSION DATEFIRST DATEFORMAT DATE_CORRELATION_OPTIMIZATION
        DB_CHAINING DEADLOCK_PRIORITY DECRYPTION DELAY DELAYED_DURABILITY DESCRIPTION DIFFERENTIAL
        DISABLE DISABLED DISABLE_BROKER DROP_EXISTING EMERGENCY ENABLE ENABLE_BROKER ENCRYPTION
        ERROR_BROKER_CONVERSATIONS EXECUTABLE EXPIREDATE EXPIRY_DATE FILEGROUP FILEGROWTH
        FILELISTONLY FILENAME FILESTREAM FILE_SNAPSHOT FIPS_FLAGGER FIRST FMTONLY FOLLOWING FORCE
        FORCED FORCEPLAN FORMAT FULLSCAN GB GENERATED GLOBAL HASH HEADERONLY HIGH IGNORE_DUP_KEY
        IIF IMMEDIATE IMPLICIT_TRANSACTIONS INCLUDE INCREMENTAL INIT IO ISOLATION JSON KB KEEP_CDC
        KEEP_REPLICATION LABELONLY LANGUAGE LEVEL LOADHISTORY LOB_COMPACTION LOCAL LOCK_TIMEOUT
        LOG LOGIN LOOP LOW MARK MASTER MAX MAXDOP MAXRECURSION MAXSIZE MAXTRANSFERSIZE
        MAX_DURATION MB MEDIADESCRIPTION MEDIANAME MEDIAPASSWORD MEDIUM METADATA_ONLY MINUTES
        MIRROR MIXED_PAGE_ALLOCATION MODIFY MOVE MS_XPRESS MULTI_USER NAME NEWNAME NEW_BROKER NEXT
        NO NOCOUNT NOEXEC NOEXPAND NOFORMAT NOINIT NOLOCK NONE NORECOMPUTE NORECOVERY NOREWIND
        NOSKIP NOUNLOAD NOWAIT NO_CHECKSUM NO_COMPRESSION NO_ENCRYPTION NO_LOG NO_TRUNCATE NO_WAIT
        NUMERIC_ROUNDABORT OFFLINE OFFSET ONLINE ONLY OPENJSON OPEN_EXISTING
        OPTIMIZE_FOR_SEQUENTIAL_KEY OUT OUTPUT OVERRIDE PAD_INDEX PAGE PAGE_VERIFY PAGLOCK
        PARAMETERIZATION PARSE PARSEONLY PARTIAL PARTITION PASSWORD PAUSE PERSISTED PRECEDING
        PRIVATE PROFILE PROVIDER PROVIDER_KEY_NAME QAT_DEFLATE QUERY_GOVERNOR_COST_LIMIT
        QUOTED_IDENTIFIER RANGE READCOMMITTED READCOMMITTEDLOCK READPAST READUNCOMMITTED
        READ_COMMITTED_SNAPSHOT READ_ONLY READ_WRITE READ_WRITE_FILEGROUPS REBUILD RECEIVE
        RECOMPILE RECOVERY RECURSIVE_TRIGGERS REGENERATE REMOTE REMOTE_PROC_TRANSACTIONS REMOVE
        REORGANIZE REPEATABLE REPEATABLEREAD REPLACE RESAMPLE RESTART RESTRICTED_USER RESULT
        RESUMABLE RESUME RETAINDAYS REWIND REWINDONLY ROLLUP ROW ROWLOCK ROWS RSA_1024 RSA_2048
        RSA_3072 RSA_4096 RSA_512 SAMPLE SCHEMABINDING SCOPED SECONDS SECRET SEND SERIALIZABLE
        SERVER SERVICE SETERROR SETS SHOWPLAN_ALL SHOWPLAN_TEXT SHOWPLAN_XML SIMPLE SINGLE_USER
        SIZE SKIP SNAPSHOT SORT_IN_TEMPDB SPARSE SPECIFICATION SPLIT STANDBY START_DATE
        STATISTICS_INCREMENTAL STATISTICS_NORECOMPUTE STATS STOPAT STOPATMARK STOPBEFOREMARK
        STOP_ON_ERROR SUBJECT SUSPEND SWITCH SYMMETRIC SYSTEM_TIME TABLOCK TABLOCKX TAPE
        TARGET_RECOVERY_TIME TB TEXTIMAGE_ON THROW TIES TIME TORN_PAGE_DETECTION TRIPLE_DES_3KEY
        TRUNCATE_ONLY TRUSTWORTHY TRY TRY_CAST TRY_PARSE UNBOUNDED UNCOMMITTED UNLIMITED UNLOAD
        UPDLOCK URL VERIFYONLY VIRTUAL_DEVICE WITHIN WORK XACT_ABORT XLOCK XML XMLNAMESPACES ZSTD;
}

/// Slots of the table below: a power of two, less than half full.
const SLOTS: usize = 2048;
/// Bytes of the longest keyword.
const LONGEST: usize = {
    let (mut at, mut most) = (0, 0);
    while at < Keyword::EVERY.len() {
        let length = Keyword::EVERY[at].text().len();
        if length > most {
            most = length;
        }
        at += 1;
    }
    most
};

/// Keywords by hash; 0 is an empty slot, anything else a place in [`Keyword::EVERY`] plus one.
const TABLE: [u16; SLOTS] = {
    let mut table = [0; SLOTS];
    let mut at = 0;
    while at < Keyword::EVERY.len() {
        let mut slot = hash(Keyword::EVERY[at].text().as_bytes());
        while table[slot] != 0 {
            slot = (slot + 1) % SLOTS;
        }
        table[slot] = at as u16 + 1;
        at += 1;
    }
    table
};

const fn hash(word: &[u8]) -> usize {
    let mut hash: u32 = 0x811c_9dc5; // FNV-1a
    let mut at = 0;
    while at < word.len() {
        hash = (hash ^ word[at].to_ascii_uppercase() as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    (hash ^ (hash >> 15)) as usize % SLOTS
}

impl Keyword {
    /// The keyword that `word` spells, in any case.
    pub fn find(word: &str) -> Option<Self> {
        if word.len() > LONGEST {
            return None;
        }
        let mut slot = hash(word.as_bytes());
        loop {
            let found = Self::EVERY[usize::from(TABLE[slot]).checked_sub(1)?];
            if found.text().eq_ignore_ascii_case(word) {
                return Some(found);
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// Whether a name spelt like it needs brackets.
    pub const fn is_reserved(self) -> bool {
        (self as usize) < Self::RESERVED
    }
}

/// An enum of which each variant is one keyword.
pub trait Word: Copy + Sized + 'static {
    /// Its variants.
    const ALL: &'static [Self];
    /// How the variant is spelt.
    fn keyword(self) -> Keyword;
    /// The variant that is spelt like this.
    fn from_keyword(keyword: Keyword) -> Option<Self>;
}

/// Declares an enum that implements [`Word`].
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $keyword:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($crate::keyword::Word::keyword(*self).text())
            }
        }

        impl $crate::keyword::Word for $name {
            const ALL: &'static [Self] = &[$(Self::$variant,)+];

            fn keyword(self) -> $crate::keyword::Keyword {
                match self { $(Self::$variant => $crate::keyword::Keyword::$keyword,)+ }
            }

            fn from_keyword(keyword: $crate::keyword::Keyword) -> Option<Self> {
                match keyword { $($crate::keyword::Keyword::$keyword => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}
pub(crate) use words;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_found_in_any_case() {
        for &keyword in Keyword::EVERY {
            assert_eq!(Keyword::find(keyword.text()), Some(keyword));
            assert_eq!(Keyword::find(&keyword.text().to_lowercase()), Some(keyword));
        }
        for name in ["", "backupp", "x", "TestCert", "größe", &"A".repeat(LONGEST + 1)] {
            assert_eq!(Keyword::find(name), None, "{name}");
        }
    }

    #[test]
    fn only_microsofts_list_is_reserved() {
        assert_eq!(Keyword::RESERVED, 184);
        assert!(Keyword::KEY.is_reserved() && Keyword::WRITETEXT.is_reserved());
        for name in
            [Keyword::ALGORITHM, Keyword::STATS, Keyword::FORMAT, Keyword::NAME, Keyword::THROW]
        {
            assert!(!name.is_reserved(), "{name:?}");
        }
    }
}
