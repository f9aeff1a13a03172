//! What SERVERPROPERTY, DATABASEPROPERTYEX and their like are asked for.
//!
//! A property that gives NULL is one that SQL Server has and nobody has here: NULL is what SQL Server gives, too, where a
//! property means nothing.

use super::{Feature, Kind, State};

/// A function, what stands before the property, what has a value, and what is NULL.
type Of = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const PROPERTIES: &[Of] = &[
    (
        "SERVERPROPERTY",
        "",
        &[
            "Collation",
            "CollationID",
            "ComparisonStyle",
            "ComputerNamePhysicalNetBIOS",
            "Edition",
            "EngineEdition",
            "FilestreamConfiguredLevel",
            "FilestreamEffectiveLevel",
            "InstanceDefaultBackupPath",
            "InstanceDefaultDataPath",
            "InstanceDefaultLogPath",
            "IsAdvancedAnalyticsInstalled",
            "IsBigDataCluster",
            "IsClustered",
            "IsExternalAuthenticationOnly",
            "IsExternalGovernanceEnabled",
            "IsFullTextInstalled",
            "IsHadrEnabled",
            "IsIntegratedSecurityOnly",
            "IsLocalDB",
            "IsPolyBaseInstalled",
            "IsServerSuspendedForSnapshotBackup",
            "IsSingleUser",
            "IsTempDbMetadataMemoryOptimized",
            "IsXTPSupported",
            "LCID",
            "LicenseType",
            "MachineName",
            "PathSeparator",
            "ProcessID",
            "ProductBuild",
            "ProductLevel",
            "ProductMajorVersion",
            "ProductMinorVersion",
            "ProductVersion",
            "ResourceVersion",
            "ServerName",
            "SqlCharSet",
            "SqlCharSetName",
            "SqlSortOrder",
            "SqlSortOrderName",
            "SuspendedDatabaseCount",
        ],
        &[
            "BuildClrVersion",
            "EditionID",
            "FilestreamShareName",
            "HadrManagerStatus",
            "InstanceName",
            "NumLicenses",
            "ProductBuildType",
            "ProductUpdateLevel",
            "ProductUpdateReference",
            "ProductUpdateType",
            "ResourceLastUpdateDateTime",
        ],
    ),
    (
        "DATABASEPROPERTYEX",
        "'master', ",
        &[
            "Collation",
            "IsInStandBy",
            "LastGoodCheckDbTime",
            "Recovery",
            "Status",
            "Updateability",
            "UserAccess",
        ],
        &[
            "ComparisonStyle",
            "Edition",
            "IsAnsiNullDefault",
            "IsAnsiNullsEnabled",
            "IsAnsiPaddingEnabled",
            "IsAnsiWarningsEnabled",
            "IsArithmeticAbortEnabled",
            "IsAutoClose",
            "IsAutoCreateStatistics",
            "IsAutoCreateStatisticsIncremental",
            "IsAutoShrink",
            "IsAutoUpdateStatistics",
            "IsClone",
            "IsCloseCursorsOnCommitEnabled",
            "IsDatabaseSuspendedForSnapshotBackup",
            "IsFulltextEnabled",
            "IsLocalCursorsDefault",
            "IsMemoryOptimizedElevateToSnapshotEnabled",
            "IsMergePublished",
            "IsNullConcat",
            "IsNumericRoundAbortEnabled",
            "IsParameterizationForced",
            "IsPublished",
            "IsQuotedIdentifiersEnabled",
            "IsRecursiveTriggersEnabled",
            "IsSubscribed",
            "IsSyncWithBackup",
            "IsTornPageDetectionEnabled",
            "IsVerifiedClone",
            "IsXTPSupported",
            "LCID",
            "MaxSizeInBytes",
            "SQLSortOrder",
            "ServiceObjective",
            "ServiceObjectiveId",
            "Version",
        ],
    ),
    (
        "DATABASEPROPERTY",
        "'master', ",
        &[
            "IsBulkCopy",
            "IsDboOnly",
            "IsEmergencyMode",
            "IsInLoad",
            "IsInRecovery",
            "IsInStandBy",
            "IsNotRecovered",
            "IsOffline",
            "IsReadOnly",
            "IsShutDown",
            "IsSingleUser",
            "IsSuspect",
            "IsTruncLog",
        ],
        &[],
    ),
    (
        "CONNECTIONPROPERTY",
        "",
        &["client_net_address", "net_transport", "physical_net_transport", "protocol_type"],
        &["auth_scheme", "local_net_address", "local_tcp_port"],
    ),
];

pub(super) fn all() -> impl Iterator<Item = Feature> {
    PROPERTIES.iter().flat_map(|(function, before, given, nulls)| {
        let of = move |name: &&'static str, state| {
            let example = format!("SELECT {function}({before}'{name}')");
            Feature::new(Kind::Property, format!("{function} {name}"), state, example)
        };
        let given = given.iter().map(move |name| of(name, State::Works));
        let nulls = nulls.iter().map(move |name| of(name, State::NoEffect).with_note("NULL"));
        given.chain(nulls)
    })
}
