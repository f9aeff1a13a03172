//! What a server counts, caches, locks and traces while it runs, and what only Windows and .NET have: nothing of it is kept here.

use crate::views::View;

/// Source: Microsoft's pages of the views, under "System dynamic management views" and "System catalog views".
pub(in crate::views) static VIEWS: &[View] = views!(sys
    [dm_clr_appdomains: appdomain_address BIN8, appdomain_id INT, appdomain_name V386, creation_time TIME, db_id INT,
        user_id INT, state N128, strong_refcount INT, weak_refcount INT, cost INT, value INT,
        compatibility_level INT, total_processor_time_ms BIGINT, total_allocated_memory_kb BIGINT,
        survived_memory_kb BIGINT]
    [dm_clr_tasks: task_address BIN8, sos_task_address BIN8, appdomain_address BIN8, state N128, abort_state N128,
        type N128, affinity_count INT, forced_yield_count INT]
    [dm_db_index_operational_stats: database_id SMALL, object_id INT, index_id INT, partition_number INT,
        hobt_id BIGINT, leaf_insert_count BIGINT, leaf_delete_count BIGINT, leaf_update_count BIGINT,
        leaf_ghost_count BIGINT, nonleaf_insert_count BIGINT, nonleaf_delete_count BIGINT,
        nonleaf_update_count BIGINT, leaf_allocation_count BIGINT, nonleaf_allocation_count BIGINT,
        leaf_page_merge_count BIGINT, nonleaf_page_merge_count BIGINT, range_scan_count BIGINT,
        singleton_lookup_count BIGINT, forwarded_fetch_count BIGINT, lob_fetch_in_pages BIGINT,
        lob_fetch_in_bytes BIGINT, lob_orphan_create_count BIGINT, lob_orphan_insert_count BIGINT,
        row_overflow_fetch_in_pages BIGINT, row_overflow_fetch_in_bytes BIGINT, column_value_push_off_row_count BIGINT,
        column_value_pull_in_row_count BIGINT, row_lock_count BIGINT, row_lock_wait_count BIGINT,
        row_lock_wait_in_ms BIGINT, page_lock_count BIGINT, page_lock_wait_count BIGINT, page_lock_wait_in_ms BIGINT,
        index_lock_promotion_attempt_count BIGINT, index_lock_promotion_count BIGINT, page_latch_wait_count BIGINT,
        page_latch_wait_in_ms BIGINT, page_io_latch_wait_count BIGINT, page_io_latch_wait_in_ms BIGINT,
        tree_page_latch_wait_count BIGINT, tree_page_latch_wait_in_ms BIGINT, tree_page_io_latch_wait_count BIGINT,
        tree_page_io_latch_wait_in_ms BIGINT, page_compression_attempt_count BIGINT,
        page_compression_success_count BIGINT]
    [dm_db_index_usage_stats: database_id SMALL, object_id INT, index_id INT, user_seeks BIGINT, user_scans BIGINT,
        user_lookups BIGINT, user_updates BIGINT, last_user_seek TIME, last_user_scan TIME, last_user_lookup TIME,
        last_user_update TIME, system_seeks BIGINT, system_scans BIGINT, system_lookups BIGINT,
        system_updates BIGINT, last_system_seek TIME, last_system_scan TIME, last_system_lookup TIME,
        last_system_update TIME]
    [dm_db_missing_index_columns: column_id INT, column_name NAME, column_usage V20, index_handle INT]
    [dm_db_missing_index_details: index_handle INT, database_id SMALL, object_id INT, equality_columns N4000,
        inequality_columns N4000, included_columns N4000, statement N4000]
    [dm_db_missing_index_group_stats: group_handle INT, unique_compiles BIGINT, user_seeks BIGINT,
        user_scans BIGINT, last_user_seek TIME, last_user_scan TIME, avg_total_user_cost FLOAT,
        avg_user_impact FLOAT, system_seeks BIGINT, system_scans BIGINT, last_system_seek TIME,
        last_system_scan TIME, avg_total_system_cost FLOAT, avg_system_impact FLOAT]
    [dm_db_missing_index_groups: index_group_handle INT, index_handle INT]
    [dm_exec_cached_plans: bucketid INT, refcounts INT, usecounts INT, size_in_bytes INT, memory_object_address BIN8,
        cacheobjtype N34, objtype N16, plan_handle BIN64, pool_id INT, parent_plan_handle BIN64]
    [dm_exec_plan_attributes: attribute V128, value VARIANT, is_cache_key BIT, plan_handle BIN64]
    [dm_exec_query_memory_grants: session_id SMALL, request_id INT, scheduler_id INT, dop SMALL, request_time TIME,
        grant_time TIME, requested_memory_kb BIGINT, granted_memory_kb BIGINT, required_memory_kb BIGINT,
        used_memory_kb BIGINT, max_used_memory_kb BIGINT, query_cost FLOAT, timeout_sec INT,
        resource_semaphore_id SMALL, queue_id SMALL, wait_order INT, is_next_candidate BIT, wait_time_ms BIGINT,
        plan_handle BIN64, sql_handle BIN64, group_id INT, pool_id INT, is_small BIT, ideal_memory_kb BIGINT,
        reserved_worker_count BIGINT, used_worker_count BIGINT, max_used_worker_count BIGINT,
        reserved_node_bitmap BIGINT]
    [dm_exec_query_plan: dbid SMALL, objectid INT, number SMALL, encrypted BIT, query_plan XML, plan_handle BIN64]
    [dm_exec_query_resource_semaphores: resource_semaphore_id SMALL, target_memory_kb BIGINT,
        max_target_memory_kb BIGINT, total_memory_kb BIGINT, available_memory_kb BIGINT, granted_memory_kb BIGINT,
        used_memory_kb BIGINT, grantee_count INT, waiter_count INT, timeout_error_count BIGINT,
        forced_grant_count BIGINT, pool_id INT]
    [dm_exec_text_query_plan: dbid SMALL, objectid INT, number SMALL, encrypted BIT, query_plan NMAX,
        plan_handle BIN64, statement_start_offset INT, statement_end_offset INT]
    [dm_io_pending_io_requests: io_completion_request_address BIN8, io_type N60, io_pending_ms_ticks BIGINT,
        io_pending INT, io_completion_routine_address BIN8, io_user_data_address BIN8, scheduler_address BIN8,
        io_handle BIN8, io_offset BIGINT, io_handle_path N256]
    [dm_io_virtual_file_stats: database_id SMALL, file_id SMALL, sample_ms BIGINT, num_of_reads BIGINT,
        num_of_bytes_read BIGINT, io_stall_read_ms BIGINT, num_of_writes BIGINT, num_of_bytes_written BIGINT,
        io_stall_write_ms BIGINT, io_stall BIGINT, size_on_disk_bytes BIGINT, file_handle BIN8,
        io_stall_queued_read_ms BIGINT, io_stall_queued_write_ms BIGINT]
    [dm_os_buffer_descriptors: database_id INT, file_id INT, page_id INT, page_level INT, allocation_unit_id BIGINT,
        page_type N60, row_count INT, free_space_in_bytes INT, is_modified BIT, numa_node INT, read_microsec BIGINT,
        is_in_bpool_extension BIT]
    [dm_os_latch_stats: latch_class N60, waiting_requests_count BIGINT, wait_time_ms BIGINT, max_wait_time_ms BIGINT]
    [dm_os_loaded_modules: base_address BIN8, file_version V23, product_version V23, debug BIT, patched BIT,
        prerelease BIT, private_build BIT, special_build BIT, language INT, company N256, description N256,
        name N255]
    [dm_os_memory_cache_counters: cache_address BIN8, name N256, type N60, pages_kb BIGINT, pages_in_use_kb BIGINT,
        entries_count BIGINT, entries_in_use_count BIGINT]
    [dm_os_memory_clerks: memory_clerk_address BIN8, type N60, name N256, memory_node_id SMALL, pages_kb BIGINT,
        virtual_memory_reserved_kb BIGINT, virtual_memory_committed_kb BIGINT, awe_allocated_kb BIGINT,
        shared_memory_reserved_kb BIGINT, shared_memory_committed_kb BIGINT, page_size_in_bytes BIGINT,
        page_allocator_address BIN8, host_address BIN8, parent_memory_broker_type N60]
    [dm_os_ring_buffers: ring_buffer_address BIN8, ring_buffer_type N60, timestamp BIGINT, record N3072]
    [dm_os_spinlock_stats: name N256, collisions BIGINT, spins BIGINT, spins_per_collision REAL, sleep_time BIGINT,
        backoffs INT]
    [dm_os_wait_stats: wait_type N60, waiting_tasks_count BIGINT, wait_time_ms BIGINT, max_wait_time_ms BIGINT,
        signal_wait_time_ms BIGINT]
    [dm_os_waiting_tasks: waiting_task_address BIN8, session_id SMALL, exec_context_id INT, wait_duration_ms BIGINT,
        wait_type N60, resource_address BIN8, blocking_task_address BIN8, blocking_session_id SMALL,
        blocking_exec_context_id INT, resource_description N3072]
    [dm_os_windows_info: windows_release N256, windows_service_pack_level N256, windows_sku INT,
        os_language_version INT]
    [dm_server_registry: registry_key N256, value_name N256, value_data VARIANT]
    [dm_tran_locks: resource_type N60, resource_subtype N60, resource_database_id INT, resource_description N256,
        resource_associated_entity_id BIGINT, resource_lock_partition INT, request_mode N60, request_type N60,
        request_status N60, request_reference_count SMALL, request_lifetime INT, request_session_id INT,
        request_exec_context_id INT, request_request_id INT, request_owner_type N60, request_owner_id BIGINT,
        request_owner_guid GUID, request_owner_lockspace_id N32, lock_owner_address BIN8]
    [fn_trace_getinfo: traceid INT, property INT, value VARIANT, trace_id INT]
    [fn_trace_gettable: TextData NMAX, BinaryData BINMAX, DatabaseID INT, TransactionID BIGINT, LineNumber INT,
        NTUserName N256, NTDomainName N256, HostName N256, ClientProcessID INT, ApplicationName N256, LoginName N256,
        SPID INT, Duration BIGINT, StartTime TIME, EndTime TIME, Reads BIGINT, Writes BIGINT, CPU INT,
        Permissions BIGINT, Severity INT, EventSubClass INT, ObjectID INT, Success INT, IndexID INT,
        IntegerData INT, ServerName N256, EventClass INT, ObjectType INT, NestLevel INT, State INT, Error INT,
        Mode INT, Handle INT, ObjectName N256, DatabaseName N256, FileName N256, OwnerName N256, RoleName N256,
        TargetUserName N256, DBUserName N256, LoginSid SID, TargetLoginName N256, TargetLoginSid SID,
        ColumnPermissions INT, LinkedServerName N256, ProviderName N256, MethodName N256, RowCounts BIGINT,
        RequestID INT, XactSequence BIGINT, EventSequence BIGINT, BigintData1 BIGINT, BigintData2 BIGINT, GUID GUID,
        IntegerData2 INT, ObjectID2 BIGINT, Type INT, OwnerID INT, ParentName N256, IsSystem INT, Offset INT,
        SourceDatabaseID INT, SqlHandle BIN64, SessionLoginName N256, PlanHandle BIN64, GroupID INT,
        trace_file N256, number_files INT]
    [fn_virtualfilestats: DbId SMALL, FileId SMALL, TimeStamp BIGINT, NumberReads BIGINT, BytesRead BIGINT,
        IoStallReadMS BIGINT, NumberWrites BIGINT, BytesWritten BIGINT, IoStallWriteMS BIGINT, IoStallMS BIGINT,
        BytesOnDisk BIGINT, FileHandle BIN8]
    [openkeys: database_id INT, database_name NAME, key_id INT, key_name NAME, key_guid GUID, opened_date TIME,
        status SMALL]
    [security_policies: name NAME, object_id INT, principal_id INT, schema_id INT, parent_object_id INT, type C2,
        type_desc DESC, create_date TIME, modify_date TIME, is_ms_shipped BIT, is_enabled BIT,
        is_not_for_replication BIT, uses_database_collation BIT, is_schema_bound BIT]
    [security_predicates: object_id INT, security_predicate_id INT, target_object_id INT, predicate_definition NMAX,
        predicate_type INT, predicate_type_desc DESC, operation INT, operation_desc DESC]
    [trace_categories: category_id SMALL, name N128, type BYTE]
    [trace_columns: trace_column_id SMALL, name N128, type_name N128, max_size INT, is_filterable BIT,
        is_repeatable BIT, is_repeated_base BIT]
    [trace_event_bindings: trace_event_id SMALL, trace_column_id SMALL]
    [trace_events: trace_event_id SMALL, category_id SMALL, name N128]
    [trace_subclass_values: trace_event_id SMALL, trace_column_id SMALL, subclass_name N128, subclass_value SMALL]
    [traces: id INT, status INT, path N260, max_size BIGINT, stop_time TIME, max_files INT, is_rowset BIT,
        is_rollover BIT, is_shutdown BIT, is_default BIT, buffer_count INT, buffer_size INT, file_position BIGINT,
        reader_spid INT, start_time TIME, last_event_time TIME, event_count BIGINT, dropped_event_count INT]
    [trusted_assemblies: hash BIN64, description N4000, create_date TIME2, created_by NAME]
);

/// What statements of one kind have used, each a total, the last, the least and the most.
macro_rules! statistics {
    ($([$view:ident: $($column:ident $kind:ident),* $(,)?; $($of:ident),* $(,)?; $($rest:ident $rest_kind:ident),* $(,)?])*) => {
        &[$($crate::views::sys(
            stringify!($view),
            &[
                $((stringify!($column), $crate::views::lists::$kind),)*
                $(
                    (concat!("total_", stringify!($of)), $crate::views::lists::BIGINT),
                    (concat!("last_", stringify!($of)), $crate::views::lists::BIGINT),
                    (concat!("min_", stringify!($of)), $crate::views::lists::BIGINT),
                    (concat!("max_", stringify!($of)), $crate::views::lists::BIGINT),
                )*
                $((stringify!($rest), $crate::views::lists::$rest_kind),)*
            ],
            $crate::views::absent::none,
        )),*]
    };
}

/// Source: Microsoft's "sys.dm_exec_query_stats", "sys.dm_exec_procedure_stats" and their like.
pub(in crate::views) static STATISTICS: &[View] = statistics!(
    [dm_exec_query_stats: sql_handle BIN64, statement_start_offset INT, statement_end_offset INT,
        plan_generation_num BIGINT, plan_handle BIN64, creation_time TIME, last_execution_time TIME,
        execution_count BIGINT;
        worker_time, physical_reads, logical_writes, logical_reads, clr_time, elapsed_time, rows, dop, grant_kb,
        used_grant_kb, ideal_grant_kb, reserved_threads, used_threads, columnstore_segment_reads,
        columnstore_segment_skips, spills, num_physical_reads, page_server_reads, num_page_server_reads;
        query_hash BIN8, query_plan_hash BIN8, statement_sql_handle BIN64, statement_context_id BIGINT]
    [dm_exec_procedure_stats: database_id INT, object_id INT, type C2, type_desc DESC, sql_handle BIN64,
        plan_handle BIN64, cached_time TIME, last_execution_time TIME, execution_count BIGINT;
        worker_time, physical_reads, logical_writes, logical_reads, elapsed_time, spills, num_physical_reads,
        page_server_reads, num_page_server_reads;]
    [dm_exec_trigger_stats: database_id INT, object_id INT, type C2, type_desc DESC, sql_handle BIN64,
        plan_handle BIN64, cached_time TIME, last_execution_time TIME, execution_count BIGINT;
        worker_time, physical_reads, logical_writes, logical_reads, elapsed_time, spills, num_physical_reads,
        page_server_reads, num_page_server_reads;]
    [dm_exec_function_stats: database_id INT, object_id INT, type C2, type_desc DESC, sql_handle BIN64,
        plan_handle BIN64, cached_time TIME, last_execution_time TIME, execution_count BIGINT;
        worker_time, physical_reads, logical_writes, logical_reads, elapsed_time, num_physical_reads,
        page_server_reads, num_page_server_reads;]
);
