//! sys.dm_os_volume_stats, sys.dm_os_performance_counters, sys.dm_os_sys_info, sys.dm_os_host_info

use std::path::Path;

use pellucid_files::paths::directory_of;
use pellucid_files::volume::Volume;

use super::lists::{arranged, Same};
use super::{flag, optional, text, Column, Row};
use crate::execute::size_kb;
use crate::instance::FileKind;
use crate::message::Result;
use crate::session::Databases;
use crate::values::convert::Value;
use crate::values::types::SqlType;

const N512: SqlType = SqlType::nvarchar(512);
const BIGINT: SqlType = SqlType::BigInt;
const INT: SqlType = SqlType::Int;

/// Source: Microsoft's "sys.dm_os_volume_stats".
pub(super) const VOLUMES: [Column; 13] = [
    ("database_id", INT),
    ("file_id", INT),
    ("volume_mount_point", N512),
    ("volume_id", N512),
    ("logical_volume_name", N512),
    ("file_system_type", N512),
    ("total_bytes", BIGINT),
    ("available_bytes", BIGINT),
    ("supports_compression", SqlType::TinyInt),
    ("supports_alternate_streams", SqlType::TinyInt),
    ("supports_sparse_files", SqlType::TinyInt),
    ("is_read_only", SqlType::TinyInt),
    ("is_compressed", SqlType::TinyInt),
];

/// Source: Microsoft's "sys.dm_os_performance_counters".
pub(super) const COUNTERS: [Column; 5] = [
    ("object_name", SqlType::NChar(128)),
    ("counter_name", SqlType::NChar(128)),
    ("instance_name", SqlType::NChar(128)),
    ("cntr_value", BIGINT),
    ("cntr_type", INT),
];

/// Source: Microsoft's "sys.dm_os_sys_info".
pub(super) const SYSTEM: &[Column] = columns!(
    cpu_ticks BIGINT, ms_ticks BIGINT, cpu_count INT, hyperthread_ratio INT, physical_memory_kb BIGINT,
    virtual_memory_kb BIGINT, committed_kb BIGINT, committed_target_kb BIGINT, visible_target_kb BIGINT,
    stack_size_in_bytes INT, os_quantum BIGINT, os_error_mode INT, os_priority_class INT, max_workers_count INT,
    scheduler_count INT, scheduler_total_count INT, deadlock_monitor_serial_number INT,
    sqlserver_start_time_ms_ticks BIGINT, sqlserver_start_time TIME, affinity_type INT, affinity_type_desc DESC,
    process_kernel_time_ms BIGINT, process_user_time_ms BIGINT, time_source INT, time_source_desc DESC,
    virtual_machine_type INT, virtual_machine_type_desc DESC, softnuma_configuration INT,
    softnuma_configuration_desc DESC, process_physical_affinity N4000, sql_memory_model INT,
    sql_memory_model_desc N256, socket_count INT, cores_per_socket INT, numa_node_count INT, container_type INT,
    container_type_desc DESC
);

const OF_SYSTEM: [(&str, Same); 6] = [
    ("affinity_type", Same::Number(2)),
    ("affinity_type_desc", Same::Text("AUTO")),
    ("softnuma_configuration", Same::Number(0)),
    ("softnuma_configuration_desc", Same::Text("OFF")),
    ("sql_memory_model", Same::Number(1)),
    ("sql_memory_model_desc", Same::Text("CONVENTIONAL")),
];

/// What is known of the machine.
const KNOWN: [Column; 13] = [
    ("cpu_ticks", BIGINT),
    ("ms_ticks", BIGINT),
    ("cpu_count", INT),
    ("hyperthread_ratio", INT),
    ("physical_memory_kb", BIGINT),
    ("virtual_memory_kb", BIGINT),
    ("committed_kb", BIGINT),
    ("committed_target_kb", BIGINT),
    ("scheduler_count", INT),
    ("sqlserver_start_time_ms_ticks", BIGINT),
    ("sqlserver_start_time", SqlType::DateTime),
    ("virtual_machine_type", INT),
    ("virtual_machine_type_desc", SqlType::nvarchar(60)),
];

/// Source: Microsoft's "sys.dm_os_host_info".
pub(super) const HOST: [Column; 7] = [
    ("host_platform", SqlType::nvarchar(256)),
    ("host_distribution", SqlType::nvarchar(256)),
    ("host_release", SqlType::nvarchar(256)),
    ("host_service_pack_level", SqlType::nvarchar(256)),
    ("host_sku", INT),
    ("os_language_version", INT),
    ("host_architecture", SqlType::nvarchar(256)),
];

/// Source: Microsoft's "sys.dm_os_file_exists".
pub(super) const FILE_EXISTS: [Column; 3] = [
    ("file_exists", SqlType::Bit),
    ("file_is_a_directory", SqlType::Bit),
    ("parent_directory_exists", SqlType::Bit),
];

/// A number that says what it is, not how it has changed (`PERF_COUNTER_LARGE_RAWCOUNT`).
const COUNTER_AS_IT_IS: i64 = 65_792;

fn whole(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Of each file of each database the volume that it lies on; none where its folder is not there.
pub(super) fn volumes(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for known in databases.instance.databases()? {
        let Ok(volume) = Volume::of(directory_of(&known.path)) else { continue };
        for file in databases.files(&known).unwrap_or_default() {
            rows.push(vec![
                Value::Integer(known.id),
                Value::Integer(file.id),
                text(volume.mount_point.display().to_string()),
                Value::Null,
                Value::Null,
                optional(volume.kind.clone()),
                whole(volume.bytes),
                whole(volume.free_bytes),
                Value::Null,
                Value::Null,
                Value::Null,
                flag(volume.is_read_only),
                Value::Null,
            ]);
        }
    }
    Ok(rows)
}

pub(super) fn old_counters(databases: &Databases) -> Result<Vec<Row>> {
    counters(databases)
}

/// The sizes of files. Nothing else is counted here.
pub(super) fn counters(databases: &Databases) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for known in databases.instance.databases()? {
        let files = databases.files(&known).unwrap_or_default();
        let kinds =
            [("Data File(s) Size (KB)", FileKind::Data), ("Log File(s) Size (KB)", FileKind::Log)];
        for (counter, kind) in kinds {
            let kb = files.iter().filter(|file| file.kind == kind);
            let kb: i64 = kb.map(|file| size_kb(&known, file)).sum();
            rows.push(vec![
                text("SQLServer:Databases"),
                text(counter),
                text(&known.name),
                Value::Integer(kb),
                Value::Integer(COUNTER_AS_IT_IS),
            ]);
        }
    }
    Ok(rows)
}

/// The server is this process: it began with the session.
pub(super) fn system(databases: &Databases) -> Result<Vec<Row>> {
    const KIB: u64 = 1024;
    let info = rustix::system::sysinfo();
    let memory = info.totalram.saturating_mul(u64::from(info.mem_unit)) / KIB;
    let up_ms = u64::try_from(info.uptime).unwrap_or(0).saturating_mul(1000);
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let begun = databases.shared.begun();
    let runs_ms = u64::try_from(databases.shared.age().as_millis()).unwrap_or(0);
    let rows = vec![vec![
        Value::Null,
        whole(up_ms),
        whole(processors),
        Value::Null,
        whole(memory),
        Value::Null,
        Value::Null,
        Value::Null,
        whole(processors),
        whole(up_ms.saturating_sub(runs_ms)),
        Value::Text(begun.to_iso(SqlType::DateTime)),
        Value::Null,
        Value::Null,
    ]];
    Ok(arranged(SYSTEM, &KNOWN, &OF_SYSTEM, rows))
}

/// No rows: its columns are computed where it is called. What paths stand for is told to the function that looks.
pub(super) fn file_exists(databases: &Databases) -> Result<Vec<Row>> {
    databases.shared.set_places(databases.instance.places()?);
    Ok(Vec::new())
}

/// As SQL Server on Linux has it: the distribution's name and version, which it reads in os-release(5).
pub(super) fn host(_: &Databases) -> Result<Vec<Row>> {
    let release = ["/etc/os-release", "/usr/lib/os-release"]
        .iter()
        .find_map(|path| {
            let file = pellucid_files::regular::open(Path::new(path));
            file.and_then(std::io::read_to_string).ok()
        })
        .unwrap_or_default();
    let value = |key: &str| {
        let written = release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(written.trim().trim_matches(['"', '\'']).to_owned())
    };
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "X64",
        "aarch64" => "ARM64",
        other => other,
    };
    Ok(vec![vec![
        text("Linux"),
        optional(value("NAME")),
        optional(value("VERSION_ID")),
        text(""),
        Value::Null,
        Value::Integer(0),
        text(architecture),
    ]])
}
