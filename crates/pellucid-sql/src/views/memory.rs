//! sys.dm_os_schedulers, sys.dm_os_nodes, sys.dm_os_sys_memory, sys.dm_os_process_memory: what Linux says of processors and memory.

use std::path::Path;

use super::lists::{arranged, Same};
use super::{flag, text, Column, Row};
use crate::message::Result;
use crate::session::Databases;
use crate::values::convert::Value;
use crate::values::types::SqlType;

const INT: SqlType = SqlType::Int;
const BIGINT: SqlType = SqlType::BigInt;

/// Source: Microsoft's "sys.dm_os_schedulers".
pub(super) const SCHEDULERS: &[Column] = columns!(
    scheduler_address BIN8, parent_node_id INT, scheduler_id INT, cpu_id SMALL, status N60, is_online BIT, is_idle BIT,
    preemptive_switches_count INT, context_switches_count INT, idle_switches_count INT, current_tasks_count INT,
    runnable_tasks_count INT, current_workers_count INT, active_workers_count INT, work_queue_count BIGINT,
    pending_disk_io_count INT, load_factor INT, yield_count INT, last_timer_activity BIGINT,
    failed_to_create_worker BIT, active_worker_address BIN8, memory_object_address BIN8,
    task_memory_object_address BIN8, quantum_length_us BIGINT, total_cpu_usage_ms BIGINT,
    total_cpu_idle_capped_ms BIGINT, total_scheduler_delay_ms BIGINT, ideal_workers_limit INT
);

/// Source: Microsoft's "sys.dm_os_sys_memory".
pub(super) const SYSTEM: &[Column] = columns!(
    total_physical_memory_kb BIGINT, available_physical_memory_kb BIGINT, total_page_file_kb BIGINT,
    available_page_file_kb BIGINT, system_cache_kb BIGINT, kernel_paged_pool_kb BIGINT,
    kernel_nonpaged_pool_kb BIGINT, system_high_memory_signal_state BIT, system_low_memory_signal_state BIT,
    system_memory_state_desc N256
);

/// Source: Microsoft's "sys.dm_os_process_memory".
pub(super) const PROCESS: &[Column] = columns!(
    physical_memory_in_use_kb BIGINT, large_page_allocations_kb BIGINT, locked_page_allocations_kb BIGINT,
    total_virtual_address_space_kb BIGINT, virtual_address_space_reserved_kb BIGINT,
    virtual_address_space_committed_kb BIGINT, virtual_address_space_available_kb BIGINT, page_fault_count BIGINT,
    memory_utilization_percentage INT, available_commit_limit_kb BIGINT, process_physical_memory_low BIT,
    process_virtual_memory_low BIT
);

/// Source: Microsoft's "sys.dm_os_nodes".
pub(super) const NODES: &[Column] = columns!(
    node_id SMALL, node_state_desc N256, memory_object_address BIN8, memory_clerk_address BIN8,
    io_completion_worker_address BIN8, memory_node_id SMALL, cpu_affinity_mask BIGINT, online_scheduler_count SMALL,
    idle_scheduler_count SMALL, active_worker_count INT, avg_load_balance INT, timer_task_affinity_mask BIGINT,
    permanent_task_affinity_mask BIGINT, resource_monitor_state BIT, online_scheduler_mask BIGINT,
    processor_group SMALL, cpu_count INT, cached_tasks INT, cached_tasks_removed INT, cached_tasks_freed INT
);

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// One, to which all processors belong.
pub(super) fn nodes(_: &Databases) -> Result<Vec<Row>> {
    let known = [
        ("node_id", INT),
        ("node_state_desc", SqlType::nvarchar(256)),
        ("memory_node_id", INT),
        ("online_scheduler_count", INT),
        ("processor_group", INT),
        ("cpu_count", INT),
    ];
    let count = Value::Integer(i64::try_from(processors()).unwrap_or(i64::MAX));
    let none = Value::Integer(0);
    let row = vec![none.clone(), text("ONLINE"), none.clone(), count.clone(), none, count];
    Ok(arranged(NODES, &known, &[("resource_monitor_state", Same::Unknown)], vec![row]))
}

/// One for each processor that this process may use; a row's counts are NULL, but for `is_online`.
pub(super) fn schedulers(_: &Databases) -> Result<Vec<Row>> {
    let known = [
        ("scheduler_id", INT),
        ("cpu_id", INT),
        ("status", SqlType::nvarchar(60)),
        ("is_online", INT),
    ];
    let rows = (0_i64..)
        .take(processors())
        .map(|at| vec![Value::Integer(at), Value::Integer(at), text("VISIBLE ONLINE"), flag(true)]);
    let same = [("parent_node_id", Same::Number(0)), ("is_idle", Same::Unknown)];
    Ok(arranged(SCHEDULERS, &known, &same, rows.collect()))
}

/// A file of proc(5) whose lines are `Name:  12 kB`.
struct Lines(String);

impl Lines {
    fn of(path: &str) -> Self {
        let file = pellucid_files::regular::open(Path::new(path));
        Self(file.and_then(std::io::read_to_string).unwrap_or_default())
    }

    fn kb(&self, name: &str) -> Option<i64> {
        let line = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse().ok()
    }
}

fn number(number: Option<i64>) -> Value {
    number.map_or(Value::Null, Value::Integer)
}

/// From /proc/meminfo. A page file there is memory and swap here.
pub(super) fn system(_: &Databases) -> Result<Vec<Row>> {
    /// Below this part of it memory is told to be low: 1 of 16.
    const LOW: i64 = 16;
    let lines = Lines::of("/proc/meminfo");
    let (total, free) = (lines.kb("MemTotal"), lines.kb("MemAvailable"));
    let with = |memory: Option<i64>, swap: &str| Some(memory? + lines.kb(swap).unwrap_or(0));
    let is_low = total.zip(free).is_some_and(|(total, free)| free < total / LOW);
    let state = match is_low {
        true => "Available physical memory is low",
        false => "Available physical memory is high",
    };
    Ok(vec![vec![
        number(total),
        number(free),
        number(with(total, "SwapTotal")),
        number(with(free, "SwapFree")),
        number(lines.kb("Cached")),
        Value::Null,
        Value::Null,
        flag(!is_low),
        flag(is_low),
        text(state),
    ]])
}

/// From /proc/self/status: this process is the server.
pub(super) fn process(_: &Databases) -> Result<Vec<Row>> {
    let lines = Lines::of("/proc/self/status");
    let known = [
        ("physical_memory_in_use_kb", BIGINT),
        ("locked_page_allocations_kb", BIGINT),
        ("virtual_address_space_committed_kb", BIGINT),
    ];
    let row = ["VmRSS", "VmLck", "VmSize"].map(|name| number(lines.kb(name))).to_vec();
    let same = [("large_page_allocations_kb", Same::Number(0))];
    Ok(arranged(PROCESS, &known, &same, vec![row]))
}
