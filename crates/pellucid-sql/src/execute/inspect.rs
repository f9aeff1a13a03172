//! RESTORE HEADERONLY, FILELISTONLY, LABELONLY, VERIFYONLY, REWINDONLY.

use std::path::PathBuf;

use pellucid::hash::hex;
use pellucid::lsn::Lsn;
use pellucid::media::{Compression, Description, Kind, Manifest, SetHeader};
use pellucid::protector::Protector;
use pellucid::Algorithm;
use pellucid_backup::history::{files_of, look_at, History, SetRecord};
use pellucid_backup::job::{open_media, refuse_looked_at, standing, Believe, Chain, Looked};
use pellucid_backup::restore::{
    same_manifest, verify_checksums, FamilySet, LogSet, Media, OpenSet, Signer,
};
use pellucid_tsql::ast::{Inspect, InspectKind, RestoreFlag};
use pellucid_vfs::seal_request::{Credentials, Request};

use super::device::{told, Doing};
use super::restore::{position, Options};
use super::Done;
use crate::message::{table, Message};
use crate::session::Session;
use crate::translate::ResultColumn;
use crate::values::convert::{read_stored, Value};
use crate::values::thumbprint;
use crate::values::types::{Length, SqlType};

/// Pellucid's number as a vendor of backup software; Microsoft's is 4608.
const VENDOR: i64 = 0;
const N128: SqlType = SqlType::nvarchar(128);
const LSN: SqlType = SqlType::numeric(25, 0);
const SIZE: SqlType = SqlType::numeric(20, 0);
const GUID: SqlType = SqlType::UniqueIdentifier;
const THUMBPRINT: SqlType = SqlType::VarBinary(Length::Of(20));

/// Source: Microsoft's "RESTORE HEADERONLY".
const HEADER: [(&str, SqlType); 59] = [
    ("BackupName", N128),
    ("BackupDescription", SqlType::nvarchar(255)),
    ("BackupType", SqlType::SmallInt),
    ("ExpirationDate", SqlType::DateTime),
    ("Compressed", SqlType::Bit),
    ("Position", SqlType::SmallInt),
    ("DeviceType", SqlType::TinyInt),
    ("UserName", N128),
    ("ServerName", N128),
    ("DatabaseName", N128),
    ("DatabaseVersion", SqlType::Int),
    ("DatabaseCreationDate", SqlType::DateTime),
    ("BackupSize", SIZE),
    ("FirstLSN", LSN),
    ("LastLSN", LSN),
    ("CheckpointLSN", LSN),
    ("DatabaseBackupLSN", LSN),
    ("BackupStartDate", SqlType::DateTime),
    ("BackupFinishDate", SqlType::DateTime),
    ("SortOrder", SqlType::SmallInt),
    ("CodePage", SqlType::SmallInt),
    ("UnicodeLocaleId", SqlType::Int),
    ("UnicodeComparisonStyle", SqlType::Int),
    ("CompatibilityLevel", SqlType::TinyInt),
    ("SoftwareVendorId", SqlType::Int),
    ("SoftwareVersionMajor", SqlType::Int),
    ("SoftwareVersionMinor", SqlType::Int),
    ("SoftwareVersionBuild", SqlType::Int),
    ("MachineName", N128),
    ("Flags", SqlType::Int),
    ("BindingID", GUID),
    ("RecoveryForkID", GUID),
    ("Collation", N128),
    ("FamilyGUID", GUID),
    ("HasBulkLoggedData", SqlType::Bit),
    ("IsSnapshot", SqlType::Bit),
    ("IsReadOnly", SqlType::Bit),
    ("IsSingleUser", SqlType::Bit),
    ("HasBackupChecksums", SqlType::Bit),
    ("IsDamaged", SqlType::Bit),
    ("BeginsLogChain", SqlType::Bit),
    ("HasIncompleteMetaData", SqlType::Bit),
    ("IsForceOffline", SqlType::Bit),
    ("IsCopyOnly", SqlType::Bit),
    ("FirstRecoveryForkID", GUID),
    ("ForkPointLSN", LSN),
    ("RecoveryModel", SqlType::nvarchar(60)),
    ("DifferentialBaseLSN", LSN),
    ("DifferentialBaseGUID", GUID),
    ("BackupTypeDescription", SqlType::nvarchar(60)),
    ("BackupSetGUID", GUID),
    ("CompressedBackupSize", SqlType::BigInt),
    ("containment", SqlType::TinyInt),
    ("KeyAlgorithm", SqlType::nvarchar(32)),
    ("EncryptorThumbprint", THUMBPRINT),
    ("EncryptorType", SqlType::nvarchar(32)),
    ("LastValidRestoreTime", SqlType::DateTime),
    ("TimeZone", SqlType::SmallInt),
    ("CompressionAlgorithm", SqlType::nvarchar(32)),
];

/// Bytes that a file of data, and one of a log, may have there where nothing else is said.
const SIZES_MOST: [u64; 2] = [35_184_372_080_640, 2_199_023_255_552];

/// Source: Microsoft's "RESTORE FILELISTONLY".
const FILE_LIST: [(&str, SqlType); 22] = [
    ("LogicalName", N128),
    ("PhysicalName", SqlType::nvarchar(260)),
    ("Type", SqlType::Char(1)),
    ("FileGroupName", N128),
    ("Size", SIZE),
    ("MaxSize", SIZE),
    ("FileID", SqlType::BigInt),
    ("CreateLSN", LSN),
    ("DropLSN", LSN),
    ("UniqueID", GUID),
    ("ReadOnlyLSN", LSN),
    ("ReadWriteLSN", LSN),
    ("BackupSizeInBytes", SqlType::BigInt),
    ("SourceBlockSize", SqlType::Int),
    ("FileGroupID", SqlType::Int),
    ("LogGroupGUID", GUID),
    ("DifferentialBaseLSN", LSN),
    ("DifferentialBaseGUID", GUID),
    ("IsReadOnly", SqlType::Bit),
    ("IsPresent", SqlType::Bit),
    ("TDEThumbprint", SqlType::VarBinary(Length::Of(32))),
    ("SnapshotURL", SqlType::nvarchar(360)),
];

/// Source: Microsoft's "RESTORE LABELONLY"; the last one is our own.
const LABEL: [(&str, SqlType); 14] = [
    ("MediaName", N128),
    ("MediaSetId", GUID),
    ("FamilyCount", SqlType::Int),
    ("FamilySequenceNumber", SqlType::Int),
    ("MediaFamilyId", GUID),
    ("MediaSequenceNumber", SqlType::Int),
    ("MediaLabelPresent", SqlType::TinyInt),
    ("MediaDescription", SqlType::nvarchar(255)),
    ("SoftwareName", N128),
    ("SoftwareVendorId", SqlType::Int),
    ("MediaDate", SqlType::DateTime),
    ("Mirror_Count", SqlType::Int),
    ("IsCompressed", SqlType::Bit),
    ("IsEncrypted", SqlType::Bit),
];

impl Session {
    pub(super) fn inspect(&mut self, inspect: &Inspect) -> Done {
        let statement = format!("RESTORE {}", inspect.kind);
        self.look(inspect).map_err(|raised| match raised.is_cancelled {
            true => raised,
            false => raised.and(Message::of(table::TERMINATING, [&statement])),
        })
    }

    fn look(&mut self, inspect: &Inspect) -> Done {
        let devices = self.files_of(&inspect.devices)?;
        let options = self.restore_options(&inspect.options)?;
        if inspect.kind == InspectKind::RewindOnly {
            // Only tapes are wound.
            return Err(Message::unsupported("RESTORE REWINDONLY").into());
        }
        let failed = |error: pellucid::Error| told(error.into(), &devices, Doing::Reading);
        // A label and headers are read from any file of the media.
        let media = match inspect.kind {
            InspectKind::VerifyOnly => super::restore::open(&devices)?,
            _ => open_media(&devices).map_err(failed)?,
        };
        match inspect.kind {
            InspectKind::HeaderOnly => {
                let positions = match options.file {
                    Some(_) => position(&options)?..=position(&options)?,
                    None => 1..=media.sets(),
                };
                let mut rows = Vec::new();
                for position in positions {
                    let sets = media.set(position).map_err(failed)?;
                    let Some((_, set)) = sets.iter().flatten().next() else { continue };
                    let facts = self.facts(&media, position).map_err(failed)?;
                    let known = |id| self.known_lsn(id);
                    let places = Places::of(&media, &set.header, known);
                    rows.push(header_row(set, facts.as_ref(), &places));
                    self.warn_of_clear(&media, position, &devices);
                }
                if let Err(error) = media.refuse_cut() {
                    self.inform(Message::of(table::REMARK_OF, [&error]));
                }
                self.give_rows(&HEADER, rows)
            }
            InspectKind::FileListOnly => {
                let position = position(&options)?;
                let sets = media.set(position).map_err(failed)?;
                let facts = self.facts(&media, position).map_err(failed)?;
                let rows =
                    sets.iter().flatten().next().map(|(_, set)| file_rows(set, facts.as_ref()));
                self.warn_of_clear(&media, position, &devices);
                self.give_rows(&FILE_LIST, rows.unwrap_or_default())
            }
            InspectKind::LabelOnly => {
                let rows = media
                    .families()
                    .iter()
                    .flatten()
                    .next()
                    .map(|family| label_row(&family.header));
                self.give_rows(&LABEL, rows.into_iter().collect())
            }
            InspectKind::VerifyOnly => self.verify(&media, &devices, &options),
            InspectKind::RewindOnly => Ok(()),
        }
    }

    fn verify(&mut self, media: &Media, devices: &[PathBuf], options: &Options) -> Done {
        let failed = |error: pellucid::Error| told(error.into(), devices, Doing::Reading);
        let position = position(options)?;
        let sets = media.set(position).map_err(failed)?;
        if !Believe::default().any() {
            refuse_looked_at(media, position, devices)?;
        }
        same_manifest(&sets).map_err(failed)?;
        for (family, set) in sets.iter().flatten() {
            verify_checksums(family, set, &mut |_| ()).map_err(failed)?;
            if self.cancel.is_asked() {
                return Err(super::Raised::cancelled());
            }
        }
        // With the key, that nobody has replaced it, too; without it, that nothing was damaged.
        let header = super::restore::first_header(media, position).map_err(failed)?;
        let credentials = Credentials::gather(&Request::default())?.for_many();
        if header.kind == Kind::Log {
            let proven = OpenSet::open(media, position, &credentials)
                .and_then(|set| LogSet::open(&set)?.verify());
            match proven {
                // Without the key its checksums have to do.
                Ok(()) | Err(pellucid::Error::MissingKey { .. }) => {}
                Err(error) if error.number() == Some(33111) => return Err(error.into()),
                Err(error) => return Err(failed(error)),
            }
        } else if header.algorithm.is_some() && header.kind == Kind::Full {
            match Chain::open(media, media, position, &credentials) {
                Ok(_) => {}
                Err(error) if error.number() == Some(33111) => return Err(error.into()),
                Err(error) => return Err(failed(error)),
            }
        }
        let told = self.standing(media, position, devices, &credentials)?;
        if options.has(RestoreFlag::LoadHistory) {
            self.load_history(media, position).map_err(failed)?;
        }
        self.inform(Message::of(table::SET_VALID, [&position]));
        told.iter().for_each(|what| self.inform(Message::of(table::REMARK_OF, [what])));
        let damaged = sets.iter().flatten().any(|(_, set)| set.manifest.damaged);
        if damaged {
            self.inform(Message::of(table::PAGES_ARE_ZEROS, []));
        }
        Ok(())
    }

    /// Who can have made a sealed set, and what speaks against its place in the chain of its database.
    pub(super) fn standing(
        &self,
        media: &Media,
        position: u32,
        devices: &[PathBuf],
        credentials: &Credentials,
    ) -> Result<Vec<String>, super::Raised> {
        let failed = |error: pellucid::Error| told(error.into(), devices, Doing::Reading);
        let sets = media.set(position).map_err(failed)?;
        let Some((_, set)) = sets.iter().flatten().next() else { return Ok(Vec::new()) };
        if set.header.algorithm.is_none() {
            return Ok(Vec::new());
        }
        let believe = Believe::default();
        if !believe.any_unsigned() {
            media.refuse_unsigned(position, credentials).map_err(failed)?;
        }
        let signer = Signer::of(&set.header, &set.manifest, credentials).map_err(failed)?;
        // Facts are of a set that was opened.
        let facts = self.facts(media, position).map_err(failed)?;
        let is_authentic = facts.as_ref().map(|_| true);
        let description = facts.unwrap_or_default();
        let looked = Looked {
            header: &set.header,
            hash: Manifest::hash(&set.manifest_bytes),
            signer: &signer,
            description: &description,
            is_authentic,
        };
        Ok(standing(&looked, media, devices, None, believe)?)
    }

    /// Says of a set that is only looked at what keeps it from being restored.
    fn warn_of_clear(&mut self, media: &Media, position: u32, devices: &[PathBuf]) {
        if let Err(error) = refuse_looked_at(media, position, devices) {
            self.inform(Message::of(table::REMARK_OF, [&error]));
        }
    }

    fn load_history(&mut self, media: &Media, position: u32) -> pellucid::Result<()> {
        let sets = media.set(position)?;
        let Some((_, set)) = sets.iter().flatten().next() else { return Ok(()) };
        let credentials = Credentials::gather(&Request::default())?.for_many();
        let (description, link) = look_at(media, position, &credentials)?;
        let record = SetRecord {
            media: media.header(),
            set: &set.header,
            manifest: &set.manifest,
            description: &description.unwrap_or_default(),
            files: &files_of(media),
            replaced: &[],
            link,
        };
        let written = History::open_or_begin().and_then(|history| match history {
            Some(history) => history.record_set(&record).map(drop),
            None => Ok(()),
        });
        if let Err(error) = written {
            self.inform(Message::of(table::HISTORY_NOT_WRITTEN, [&error]));
        }
        Ok(())
    }

    /// The moment of a full backup by the history, for media that do not have it; none of one that it does not know.
    fn known_lsn(&self, set: [u8; 16]) -> Option<Value> {
        let sql = "SELECT CAST(checkpoint_lsn AS TEXT) FROM backupset WHERE backup_set_uuid = ?1";
        let msdb = self.databases.instance.msdb();
        let found = msdb.query_row(sql, [hex(&set)], |row| row.get::<_, Option<String>>(0));
        found.ok().flatten().map(Value::Text)
    }

    /// A result whose values are as SQLite keeps them.
    pub(super) fn give_rows(&mut self, columns: &[(&str, SqlType)], rows: Vec<Vec<Value>>) -> Done {
        let heads: Vec<_> = columns
            .iter()
            .map(|(name, data_type)| ResultColumn {
                name: (*name).to_owned(),
                data_type: *data_type,
            })
            .collect();
        self.output().columns(&heads);
        let count = rows.len() as u64;
        for row in rows {
            let typed = row
                .into_iter()
                .zip(columns)
                .map(|(value, (_, data_type))| read_stored(value, *data_type))
                .collect::<crate::values::Result<_>>()?;
            self.output().row(typed);
        }
        self.count(count);
        Ok(())
    }
}

fn text(value: impl Into<String>) -> Value {
    Value::Text(value.into())
}

fn optional(value: Option<&str>) -> Value {
    value.filter(|text| !text.is_empty()).map_or(Value::Null, text)
}

fn flag(value: bool) -> Value {
    Value::Integer(value.into())
}

fn size(bytes: u64) -> Value {
    Value::Text(bytes.to_string())
}

/// 16 bytes as a uniqueidentifier; NULL for zeros.
fn guid(id: &[u8; 16]) -> Value {
    if id.iter().all(|byte| *byte == 0) {
        return Value::Null;
    }
    let digits = hex(id).to_uppercase();
    Value::Text(format!(
        "{}-{}-{}-{}-{}",
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..]
    ))
}

/// Microseconds since 1970 as a date and time; NULL for 0.
fn moment(micros: u64) -> Value {
    let nanos = i128::from(micros) * 1000;
    match time::OffsetDateTime::from_unix_timestamp_nanos(nanos) {
        Ok(at) if micros > 0 => Value::Text(format!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:03}",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute(),
            at.second(),
            at.millisecond()
        )),
        _ => Value::Null,
    }
}

/// Thumbprint and kind of who opens a sealed set.
fn encryptor(set: &FamilySet) -> (Value, Value) {
    if set.header.algorithm.is_none() {
        return (Value::Null, Value::Null);
    }
    let protectors = set.header.protectors().unwrap_or_default();
    let certificate = protectors.iter().find_map(|protector| match protector {
        Protector::Certificate(own) => Some((thumbprint(own.thumbprint()), own.encryptor_type())),
        _ => None,
    });
    match (certificate, protectors.first()) {
        (Some((print, kind)), _) => (print, text(kind)),
        (None, Some(other)) => (Value::Null, Value::Text(other.kind_name().to_uppercase())),
        (None, None) => (Value::Null, Value::Null),
    }
}

/// What HEADERONLY says of the place in a chain of log backups; NULL without one.
struct Places {
    /// FirstLSN, LastLSN, CheckpointLSN, DatabaseBackupLSN
    four: [Value; 4],
    /// RecoveryForkID
    fork: Value,
    /// DifferentialBaseLSN
    base: Value,
    has_chain: bool,
}

impl Places {
    /// `known` tells the moment of a full backup that is on other media.
    fn of(media: &Media, header: &SetHeader, known: impl Fn([u8; 16]) -> Option<Value>) -> Self {
        let own = header.version2.unwrap_or_default();
        let number = |lsn: Lsn| Value::Text(lsn.to_string());
        let Some(place) = own.chain else {
            let four = [Value::Null, Value::Null, Value::Null, Value::Null];
            return Self { four, fork: Value::Null, base: Value::Null, has_chain: false };
        };
        let moment_of = |id: [u8; 16]| {
            let position = (1..=media.sets()).find(|position| {
                super::restore::first_header(media, *position).is_ok_and(|set| set.set == id)
            })?;
            let full = super::restore::first_header(media, position).ok()?;
            Some(number(full.version2?.chain?.last))
        };
        let base = match header.kind {
            Kind::Differential => {
                let found = moment_of(header.base).or_else(|| known(header.base));
                found.unwrap_or(Value::Null)
            }
            _ => Value::Null,
        };
        let full = match own.log {
            Some(facts) => number(facts.full),
            None if header.kind == Kind::Differential => base.clone(),
            None => number(Lsn::NONE),
        };
        let checkpoint = if own.log.is_some() { place.first } else { place.last };
        Self {
            four: [number(place.first), number(place.last), number(checkpoint), full],
            fork: guid(&place.fork),
            base,
            has_chain: true,
        }
    }
}

fn header_row(set: &FamilySet, facts: Option<&Description>, places: &Places) -> Vec<Value> {
    let (header, manifest) = (&set.header, &set.manifest);
    let (print, encryptor) = encryptor(set);
    let server = facts.map(|facts| &facts.server);
    let [first, last, checkpoint, full] = places.four.clone();
    // Only another model has a chain.
    let model = server.map(|server| server.recovery_model.as_str());
    let model = model.filter(|model| !model.is_empty()).or(places.has_chain.then_some("FULL"));
    let version = env!("CARGO_PKG_VERSION")
        .split('.')
        .map(|part| part.parse().unwrap_or(0))
        .collect::<Vec<i64>>();
    let part = |at: usize| Value::Integer(version.get(at).copied().unwrap_or(0));
    let level =
        server.map(|server| i64::from(server.compatibility_level)).filter(|level| *level > 0);
    vec![
        optional(facts.map(|facts| facts.name.as_str())),
        optional(facts.map(|facts| facts.description.as_str())),
        Value::Integer(i64::from(header.kind as u8)),
        moment(header.expires.saturating_mul(1_000_000)),
        flag(header.compression != Compression::None),
        Value::Integer(header.position.into()),
        Value::Integer(2),
        optional(facts.map(|facts| facts.user.as_str())),
        optional(facts.map(|facts| facts.machine.as_str())),
        optional(facts.map(|facts| facts.database.as_str())),
        Value::Null,
        server
            .filter(|server| !server.created.is_empty())
            .map_or(Value::Null, |server| text(server.created.clone())),
        size(manifest.content_bytes),
        first,
        last,
        checkpoint,
        full,
        moment(header.begun),
        moment(manifest.finished),
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        level.map_or(Value::Null, Value::Integer),
        Value::Integer(VENDOR),
        part(0),
        part(1),
        part(2),
        optional(facts.map(|facts| facts.machine.as_str())),
        Value::Null,
        guid(&header.source),
        places.fork.clone(),
        Value::Null,
        guid(&header.media_set),
        flag(false),
        flag(false),
        Value::Null,
        Value::Null,
        flag(true),
        flag(manifest.damaged),
        flag(false),
        flag(false),
        flag(false),
        flag(header.copy_only),
        places.fork.clone(),
        Value::Null,
        optional(model),
        places.base.clone(),
        guid(&header.base),
        text(match header.kind {
            Kind::Full => "Database",
            Kind::Log => "Transaction Log",
            Kind::Differential => "Database Differential",
        }),
        guid(&header.set),
        Value::Integer(i64::try_from(manifest.stored_bytes).unwrap_or(i64::MAX)),
        Value::Integer(0),
        text(header.algorithm.map_or("NO_Encryption", Algorithm::name)),
        print,
        encryptor,
        Value::Null,
        Value::Null,
        match header.compression {
            Compression::None => Value::Null,
            Compression::Zstd => text("ZSTD"),
            Compression::Lz4 => text("LZ4"),
        },
    ]
}

fn file_rows(set: &FamilySet, facts: Option<&Description>) -> Vec<Vec<Value>> {
    let header = &set.header;
    let bytes = u64::from(header.pages) * u64::from(header.page_size);
    let named = facts.map(|facts| match facts.server.files.is_empty() {
        false => facts.server.files.clone(),
        true => vec![
            (facts.database.clone(), facts.path.clone()),
            (format!("{}_log", facts.database), String::new()),
        ],
    });
    // Without the key nobody knows what they are called.
    let named = named.unwrap_or_else(|| vec![(String::new(), String::new())]);
    let zeros = header.source_thumbprint.iter().all(|byte| *byte == 0);
    let print = if zeros { Value::Null } else { thumbprint(&header.source_thumbprint) };
    let row = |(at, (logical, physical)): (usize, &(String, String))| {
        let is_log = at > 0;
        vec![
            optional(Some(logical)),
            optional(Some(physical)),
            text(if is_log { "L" } else { "D" }),
            if is_log { Value::Null } else { text("PRIMARY") },
            size(if is_log { 0 } else { bytes }),
            size(SIZES_MOST[usize::from(is_log)]),
            Value::Integer(at as i64 + 1),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Integer(if is_log {
                0
            } else {
                i64::try_from(set.manifest.content_bytes).unwrap_or(i64::MAX)
            }),
            Value::Integer(header.page_size.into()),
            Value::Integer(i64::from(!is_log)),
            Value::Null,
            Value::Null,
            guid(&header.base),
            flag(false),
            flag(true),
            print.clone(),
            Value::Null,
        ]
    };
    named.iter().enumerate().map(row).collect()
}

fn label_row(header: &pellucid::media::MediaHeader) -> Vec<Value> {
    vec![
        optional(Some(&header.name)),
        guid(&header.media_set),
        Value::Integer(header.families.into()),
        Value::Integer(header.family.into()),
        guid(&family_id(header)),
        Value::Integer(1),
        flag(true),
        optional(Some(&header.description)),
        text("Pellucid"),
        Value::Integer(VENDOR),
        moment(header.made),
        Value::Integer(header.mirrors.into()),
        flag(header.compressed),
        flag(header.encrypted),
    ]
}

/// The media set's identity with the family's number in it, as the history has it.
fn family_id(header: &pellucid::media::MediaHeader) -> [u8; 16] {
    let mut id = header.media_set;
    let number = header.family.to_be_bytes();
    id[14] ^= number[0];
    id[15] ^= number[1];
    id
}
