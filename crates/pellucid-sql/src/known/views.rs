//! Views, tables and table functions of SQL Server's that there are not here.
//!
//! Source: Microsoft's "System catalog views", "System dynamic management views", "System compatibility views", "System
//! information schema views", "System tables" and the pages that they lead to.

/// Catalog views, within `sys`.
pub(crate) const CATALOG: &str = "
    all_parameters all_sql_modules
    availability_group_listener_ip_addresses
    availability_read_only_routing_lists
    column_master_key_definitions
    column_store_dictionaries column_store_row_groups column_store_segments column_type_usages
    column_xml_schema_collection_usages computed_columns
    database_automatic_tuning_configurations database_automatic_tuning_mode
    database_automatic_tuning_options database_filestream_options
    database_ledger_blocks database_ledger_digest_locations database_ledger_transactions
    database_mirroring_witnesses database_query_store_internal_state database_query_store_options database_scoped_configurations
    edge_constraint_clauses edge_constraints endpoint_webmethods event_notification_event_types
    events extended_procedures
    external_job_streams external_language_files external_languages external_libraries
    external_library_files external_library_setup_errors external_streaming_jobs external_streams
    external_table_columns external_tables filetable_system_defined_objects filetables
    fulltext_document_types fulltext_index_catalog_usages
    fulltext_index_fragments fulltext_languages
    fulltext_semantic_language_statistics_database fulltext_semantic_languages
    fulltext_stopwords fulltext_system_stopwords function_order_columns hash_indexes http_endpoints
    index_resumable_operations internal_partitions internal_tables
    ledger_column_history ledger_table_history login_token masked_columns
    master_key_passwords memory_optimized_tables_internal_attributes
    message_type_xml_schema_collection_usages module_assembly_usages numbered_procedure_parameters
    numbered_procedures parameter_type_usages parameter_xml_schema_collection_usages parameters
    periods
    plan_guides query_context_settings query_store_plan query_store_plan_feedback
    query_store_plan_forcing_locations query_store_query query_store_query_hints query_store_query_text
    query_store_query_variant query_store_replicas query_store_runtime_stats
    query_store_runtime_stats_interval query_store_wait_stats registered_search_properties
    remote_data_archive_databases remote_data_archive_tables
    resource_governor_external_resource_pool_affinity resource_governor_external_resource_pools
    resource_governor_resource_pool_affinity
    securable_classes
    selective_xml_index_namespaces selective_xml_index_paths sensitivity_classifications
    server_events
    server_memory_optimized_hybrid_buffer_pool_configuration server_sql_modules
    soap_endpoints spatial_index_tessellations spatial_indexes spatial_reference_systems
    sql_dependencies sql_expression_dependencies
    system_components_surface_area_configuration system_internals_allocation_units
    system_internals_partition_columns system_internals_partitions system_parameters system_sql_modules
    table_types time_zone_info
    trace_xe_action_map trace_xe_event_map
    trigger_event_types type_assembly_usages user_token
    via_endpoints xml_indexes xml_schema_attributes xml_schema_component_placements
    xml_schema_components xml_schema_elements xml_schema_facets xml_schema_model_groups
    xml_schema_namespaces xml_schema_types xml_schema_wildcard_namespaces xml_schema_wildcards
";

/// Dynamic management views, within `sys`.
pub(crate) const DYNAMIC: &str = "
    dm_audit_actions dm_audit_class_type_map dm_broker_activated_tasks dm_broker_connections
    dm_broker_forwarded_messages dm_broker_queue_monitors dm_cdc_errors dm_cdc_log_scan_sessions
    dm_change_feed_errors dm_change_feed_log_scan_sessions
    dm_column_encryption_enclave dm_column_encryption_enclave_operation_stats
    dm_column_encryption_enclave_properties dm_column_store_object_pool dm_cryptographic_provider_algorithms
    dm_db_column_store_row_group_operational_stats dm_db_column_store_row_group_physical_stats
    dm_db_external_language_stats dm_db_external_script_execution_stats dm_db_fts_index_physical_stats
    dm_db_internal_auto_tuning_create_index_recommendations
    dm_db_internal_automatic_tuning_version
    dm_db_mirroring_connections dm_db_mirroring_past_actions
    dm_db_missing_index_group_stats_query
    dm_db_rda_migration_status
    dm_db_rda_schema_update_status dm_db_script_level dm_db_session_space_usage dm_db_task_space_usage
    dm_db_tuning_recommendations dm_db_uncontained_entities dm_db_xtp_checkpoint_files
    dm_db_xtp_checkpoint_internals dm_db_xtp_checkpoint_stats dm_db_xtp_gc_cycle_stats
    dm_db_xtp_hash_index_stats dm_db_xtp_index_stats dm_db_xtp_memory_consumers
    dm_db_xtp_nonclustered_index_stats dm_db_xtp_object_stats dm_db_xtp_table_memory_stats
    dm_db_xtp_transactions dm_dist_requests dm_distributed_exchange_stats dm_exec_background_job_queue
    dm_exec_background_job_queue_stats dm_exec_compute_node_errors
    dm_exec_compute_node_status dm_exec_compute_nodes dm_exec_compute_pools
    dm_exec_distributed_request_steps dm_exec_distributed_requests dm_exec_distributed_sql_requests
    dm_exec_dms_services dm_exec_dms_workers dm_exec_external_operations dm_exec_external_work
    dm_exec_query_optimizer_info
    dm_exec_query_optimizer_memory_gateways dm_exec_query_parallel_workers dm_exec_query_profiles
    dm_exec_query_transformation_stats
    dm_exec_session_wait_stats dm_exec_valid_use_hints dm_external_authentication
    dm_external_data_processed dm_external_governance_sync_state
    dm_external_policy_principal_assigned_actions dm_external_script_execution_stats
    dm_external_script_requests dm_external_script_resource_usage_stats dm_feature_restrictions
    dm_filestream_file_io_handles dm_filestream_file_io_requests dm_filestream_non_transacted_handles
    dm_fts_active_catalogs dm_fts_fdhosts dm_fts_index_population dm_fts_memory_buffers dm_fts_memory_pools
    dm_fts_outstanding_batches dm_fts_population_ranges dm_fts_semantic_similarity_population
    dm_hadr_ag_threads dm_hadr_automatic_seeding
    dm_hadr_cached_database_replica_states dm_hadr_cached_replica_states dm_hadr_cluster_networks
    dm_hadr_db_threads dm_hadr_fabric_nodes dm_hadr_instance_node_map dm_hadr_name_id_map dm_io_backup_tapes
    dm_logconsumer_privatecachebuffers dm_logpool_consumers dm_logpool_hashentries
    dm_logpool_sharedcachebuffers dm_logpool_stats dm_logpoolmgr_freepools dm_logpoolmgr_respoolsize
    dm_logpoolmgr_stats dm_os_buffer_pool_extension_configuration
    dm_os_child_instances dm_os_dispatcher_pools
    dm_os_dispatchers dm_os_enumerate_fixed_drives dm_os_hosts dm_os_job_object
    dm_os_memory_allocations dm_os_memory_broker_clerks dm_os_memory_brokers
    dm_os_memory_cache_clock_hands dm_os_memory_cache_entries
    dm_os_memory_cache_hash_tables dm_os_memory_health_history
    dm_os_memory_node_access_stats dm_os_memory_nodes dm_os_memory_objects dm_os_memory_pools
    dm_os_out_of_memory_events
    dm_os_server_diagnostics_log_configurations dm_os_stacks dm_os_sublatches
    dm_os_tasks dm_os_threads dm_os_virtual_address_dump
    dm_os_worker_local_storage dm_os_workers dm_pal_cpu_stats
    dm_pal_disk_stats dm_pal_net_stats dm_pal_processes dm_pal_spinlock_stats dm_pal_vm_stats
    dm_pal_wait_stats dm_qn_subscriptions dm_repl_articles dm_repl_schemas dm_repl_tranhash dm_repl_traninfo
    dm_request_phases
    dm_resource_governor_external_resource_pool_affinity dm_resource_governor_external_resource_pools
    dm_resource_governor_resource_pool_affinity dm_resource_governor_resource_pool_volumes
    dm_resource_governor_resource_pools dm_resource_governor_workload_groups dm_server_accelerator_status
    dm_server_external_policy_actions
    dm_server_external_policy_principal_assigned_actions dm_server_external_policy_role_actions
    dm_server_external_policy_role_members dm_server_external_policy_roles dm_server_hardware_offload_config
    dm_server_suspend_status
    dm_toad_tuning_zones dm_toad_work_item_handlers dm_toad_work_items
    dm_tran_aborted_transactions dm_tran_active_snapshot_database_transactions dm_tran_active_transactions
    dm_tran_commit_table dm_tran_current_snapshot dm_tran_current_transaction dm_tran_database_transactions
    dm_tran_global_recovery_transactions dm_tran_global_transactions dm_tran_global_transactions_enlistments
    dm_tran_global_transactions_log dm_tran_persistent_version_store
    dm_tran_persistent_version_store_stats dm_tran_session_transactions dm_tran_top_version_generators
    dm_tran_transactions_snapshot dm_tran_version_store dm_tran_version_store_space_usage
    dm_xcs_enumerate_blobdirectory dm_xe_map_values dm_xe_object_columns dm_xe_objects dm_xe_packages
    dm_xe_session_event_actions dm_xe_session_events dm_xe_session_object_columns dm_xe_session_targets
    dm_xe_sessions dm_xtp_gc_queue_stats dm_xtp_gc_stats dm_xtp_system_memory_consumers dm_xtp_threads
    dm_xtp_transaction_recent_rows dm_xtp_transaction_stats
";

/// Views that are older than `sys`: within it, within `dbo`, and without a schema.
pub(crate) const COMPATIBILITY: &str = "
    syscharsets syscomments sysconfigures sysconstraints
    syscurconfigs syscursorcolumns syscursorrefs syscursors syscursortables sysdepends sysdevices
    sysfilegroups sysforeignkeys sysfulltextcatalogs sysindexkeys syslanguages
    syslockinfo sysoledbusers sysopentapes syspermissions
    sysprotects sysreferences sysremotelogins systypes ";

/// Functions within `sys` that give tables.
pub(crate) const TABLE_FUNCTIONS: &str = "
    dm_cryptographic_provider_keys dm_cryptographic_provider_sessions dm_db_database_page_allocations
    dm_db_incremental_stats_properties
    dm_db_objects_disabled_on_compatibility_level_change
    dm_db_page_info dm_db_stats_histogram dm_db_stats_properties dm_db_stats_properties_internal
    dm_exec_cached_plan_dependent_objects dm_exec_cursors dm_exec_describe_first_result_set
    dm_exec_describe_first_result_set_for_object dm_exec_input_buffer
    dm_exec_query_parameterization_type dm_exec_query_plan_stats
    dm_exec_query_statistics_xml dm_exec_xml_handles dm_fts_index_keywords
    dm_fts_index_keywords_by_document dm_fts_index_keywords_by_property
    dm_fts_index_keywords_position_by_document dm_fts_parser
    dm_logconsumer_cachebufferrefs dm_os_enumerate_filesystem dm_os_memory_broker_clerks_history
    dm_os_volume_stats_history dm_sql_referenced_entities dm_sql_referencing_entities fn_builtin_permissions
    fn_cdc_get_column_ordinal fn_cdc_get_max_lsn fn_check_object_signatures fn_column_store_row_groups
    fn_db_backup_file_snapshots fn_dblog fn_dblog_xtp fn_dump_dblog fn_dump_dblog_xtp
    fn_enumcurrentprincipals fn_filelog fn_full_dblog fn_get_audit_file
    fn_hadr_distributed_ag_database_replica fn_hadr_distributed_ag_replica fn_helpcollations
    fn_helpdatatypemap fn_listextendedproperty fn_ms_filter fn_mssparamsfromsqlstmt fn_my_permissions
    fn_physloccracker fn_replgetcolsfromcolumnmap fn_replgetparsedddlcmd fn_repluniquename fn_rowdumpcracker
    fn_servershareddrives fn_sqlagent_job_history fn_sqlagent_jobs fn_sqlagent_jobsteps
    fn_sqlagent_jobsteps_logs fn_sqlagent_subsystems fn_stmt_sql_handle_from_sql_stmt
    fn_syspolicy_get_ps_command fn_trace_geteventinfo fn_trace_getfilterinfo
    fn_translate_permissions fn_validate_plan_guide
    fn_virtualservernodes fn_xe_file_target_read_file fn_yukonsecuritymodelrequired
";

/// Views within `INFORMATION_SCHEMA`.
pub(crate) const INFORMATION: &str = "
    column_domain_usage column_privileges constraint_column_usage constraint_table_usage
    domain_constraints domains key_column_usage parameters referential_constraints routine_columns
    table_constraints table_privileges view_column_usage view_table_usage
";

/// Tables and views of `msdb`.
pub(crate) const OF_MSDB: &str = "
    autoadmin_backup_configuration_summary autoadmin_backup_configurations autoadmin_managed_databases
    autoadmin_master_switch autoadmin_system_flags autoadmin_task_agent_metadata autoadmin_task_agents
    backupset_view dm_hadr_automatic_seeding_history external_libraries_installed
    external_libraries_installed_table msagent_parameters msagent_profiles msagentparameterlist
    msdatatype_mappings msdbms msdbms_datatype msdbms_datatype_mapping msdbms_map msdistpublishers
    msdistributiondbs msdistributor msreplmonthresholdmetrics smart_backup_files
    sqlagent_info sysalerts_performance_counters_view syscachedcredentials
    syscollector_blobs_internal syscollector_collection_items syscollector_collection_items_internal
    syscollector_collection_sets syscollector_collection_sets_internal syscollector_collector_types
    syscollector_collector_types_internal syscollector_config_store syscollector_config_store_internal
    syscollector_execution_log syscollector_execution_log_full syscollector_execution_log_internal
    syscollector_execution_stats syscollector_execution_stats_internal syscollector_tsql_query_collector
    sysdac_history_internal sysdac_instances sysdac_instances_internal sysdatatypemappings
    sysdownloadlist
    sysdtscategories sysdtspackagelog sysdtspackages sysdtssteplog sysdtstasklog
    sysmail_attachments sysmail_attachments_transfer sysmail_configuration
    sysmail_log
    sysmail_query_transfer
    sysmail_send_retries sysmail_servertype
    sysmanagement_shared_registered_servers sysmanagement_shared_registered_servers_internal
    sysmanagement_shared_server_groups sysmanagement_shared_server_groups_internal
    sysoriginatingservers sysoriginatingservers_view syspolicy_conditions syspolicy_conditions_internal
    syspolicy_configuration syspolicy_configuration_internal syspolicy_execution_internal
    syspolicy_facet_events syspolicy_management_facets syspolicy_object_sets syspolicy_object_sets_internal
    syspolicy_policies syspolicy_policies_internal syspolicy_policy_categories
    syspolicy_policy_categories_internal syspolicy_policy_category_subscriptions
    syspolicy_policy_category_subscriptions_internal syspolicy_policy_execution_history
    syspolicy_policy_execution_history_details syspolicy_policy_execution_history_details_internal
    syspolicy_policy_execution_history_internal syspolicy_system_health_state
    syspolicy_system_health_state_internal syspolicy_target_set_levels syspolicy_target_set_levels_internal
    syspolicy_target_sets syspolicy_target_sets_internal
    sysproxyloginsubsystem_view sysreplicationalerts
    syssubsystems
    systargetservers_view systaskids sysutility_mi_configuration sysutility_mi_configuration_internal
    sysutility_mi_cpu_stage_internal sysutility_mi_dac_execution_statistics_internal
    sysutility_mi_session_statistics_internal sysutility_mi_smo_objects_to_collect_internal
    sysutility_mi_smo_properties_to_collect_internal sysutility_mi_smo_stage_internal
    sysutility_mi_volumes_stage_internal sysutility_ucp_aggregated_dac_health_internal
    sysutility_ucp_aggregated_mi_health_internal sysutility_ucp_computers
    sysutility_ucp_configuration_internal sysutility_ucp_databases sysutility_ucp_managed_instances
    sysutility_ucp_managed_instances_internal sysutility_ucp_snapshot_partitions_internal
";

/// Tables of `master`.
pub(crate) const OF_MASTER: &str = "
    msreplication_options spt_fallback_db spt_fallback_dev spt_fallback_usg spt_monitor spt_values
";
