//! What a server has that this one has not: audits, other servers, a governor of resources, .NET, a cluster, dumps.

use crate::views::View;

/// Source: Microsoft's pages of the views.
pub(in crate::views) static VIEWS: &[View] = views!(sys
    [dm_clr_loaded_assemblies: assembly_id INT, appdomain_address BIN8, load_time TIME]
    [dm_clr_properties: name N128, value N128]
    [dm_db_mirroring_auto_page_repair: database_id INT, file_id INT, page_id BIGINT, error_type INT,
        page_status INT, modification_time TIME]
    [dm_hadr_auto_page_repair: database_id INT, file_id INT, page_id BIGINT, error_type INT, page_status INT,
        modification_time TIME]
    [dm_io_cluster_shared_drives: DriveName N20]
    [dm_io_cluster_valid_path_names: path_name N500, cluster_owner_node NAME, is_cluster_shared_volume BIT]
    [dm_os_cluster_nodes: NodeName NAME, status INT, status_description N20, is_current_owner BIT]
    [dm_os_cluster_properties: VerboseLogging BIGINT, SqlDumperDumpFlags BIGINT, SqlDumperDumpPath N260,
        SqlDumperDumpTimeOut BIGINT, FailureConditionLevel BIGINT, HealthCheckTimeout BIGINT]
    [dm_server_memory_dumps: filename N256, creation_time TIME2, size_in_bytes BIGINT]
    [dm_tcp_listener_states: listener_id INT, ip_address N128, is_ipv4 BIT, port INT, type SMALL, type_desc N20,
        state SMALL, state_desc N20, start_time TIME]
    [linked_logins: server_id INT, local_principal_id INT, uses_self_credential BIT, remote_name NAME,
        modify_date TIME]
    [remote_logins: server_id INT, remote_name NAME, local_principal_id INT, modify_date TIME]
    [resource_governor_resource_pools: pool_id INT, name NAME, min_cpu_percent INT, max_cpu_percent INT,
        min_memory_percent INT, max_memory_percent INT, cap_cpu_percent INT, min_iops_per_volume INT,
        max_iops_per_volume INT]
    [resource_governor_workload_groups: group_id INT, name NAME, importance NAME,
        request_max_memory_grant_percent INT, request_max_cpu_time_sec INT,
        request_memory_grant_timeout_sec INT, max_dop INT, group_max_requests INT, pool_id INT,
        external_pool_id INT, request_max_memory_grant_percent_numeric REAL]
    [server_assembly_modules: object_id INT, assembly_id INT, assembly_class NAME, assembly_method NAME,
        execute_as_principal_id INT]
    [server_audit_specification_details: server_specification_id INT, audit_action_id C4, audit_action_name NAME,
        class BYTE, class_desc DESC, major_id INT, minor_id INT, audited_principal_id INT, audited_result DESC,
        is_group BIT]
    [server_audit_specifications: server_specification_id INT, name NAME, create_date TIME, modify_date TIME,
        audit_guid GUID, is_state_enabled BIT]
    [server_audits: audit_id INT, name NAME, audit_guid GUID, create_date TIME, modify_date TIME,
        principal_id INT, type C2, type_desc DESC, on_failure BYTE, on_failure_desc DESC, is_state_enabled BIT,
        queue_delay INT, predicate N4000, is_operator_audit BIT]
    [server_event_notifications: name NAME, object_id INT, parent_class BYTE, parent_class_desc DESC,
        parent_id INT, create_date TIME, modify_date TIME, service_name N256, broker_instance N128,
        creator_sid SID, principal_id INT]
    [server_event_session_actions: event_session_id INT, event_id INT, name NAME, package NAME, module NAME]
    [server_event_session_events: event_session_id INT, event_id INT, name NAME, package NAME, module NAME,
        predicate N4000, predicate_xml N4000]
    [server_event_session_fields: event_session_id INT, object_id INT, name NAME, value VARIANT]
    [server_event_session_targets: event_session_id INT, target_id INT, name NAME, package NAME, module NAME]
    [server_event_sessions: event_session_id INT, name NAME, event_retention_mode C1,
        event_retention_mode_desc NAME, max_dispatch_latency INT, max_memory INT, max_event_size INT,
        memory_partition_mode C1, memory_partition_mode_desc NAME, track_causality BIT, startup_state BIT,
        has_long_running_target BIT]
    [server_file_audits: audit_id INT, name NAME, audit_guid GUID, create_date TIME, modify_date TIME,
        principal_id INT, type C2, type_desc DESC, on_failure BYTE, on_failure_desc DESC, is_state_enabled BIT,
        queue_delay INT, predicate N4000, max_file_size BIGINT, max_rollover_files INT, max_files INT,
        reserve_disk_space BIT, log_file_path N260, log_file_name N260, retention_days INT, is_operator_audit BIT]
    [server_principal_credentials: principal_id INT, credential_id INT]
    [server_trigger_events: object_id INT, type INT, type_desc DESC, is_first BIT, is_last BIT,
        event_group_type INT, event_group_type_desc DESC, is_trigger_event BIT]
    [server_triggers: name NAME, object_id INT, parent_class BYTE, parent_class_desc DESC, parent_id INT, type C2,
        type_desc DESC, create_date TIME, modify_date TIME, is_ms_shipped BIT, is_disabled BIT]
);
