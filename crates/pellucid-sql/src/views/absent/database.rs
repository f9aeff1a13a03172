//! Objects of a database that no statement makes here.

use crate::views::View;

/// Source: Microsoft's pages of the views, under "System catalog views".
pub(in crate::views) static VIEWS: &[View] = views!(sys
    [assemblies: name NAME, principal_id INT, assembly_id INT, clr_name N4000, permission_set BYTE,
        permission_set_desc DESC, is_visible BIT, create_date TIME, modify_date TIME, is_user_defined BIT]
    [assembly_files: assembly_id INT, name N260, file_id INT, content BINMAX]
    [assembly_modules: object_id INT, assembly_id INT, assembly_class NAME, assembly_method NAME,
        null_on_null_input BIT, execute_as_principal_id INT]
    [assembly_references: assembly_id INT, referenced_assembly_id INT]
    [assembly_types: name NAME, system_type_id BYTE, user_type_id INT, schema_id INT, principal_id INT,
        max_length SMALL, precision BYTE, scale BYTE, collation_name NAME, is_nullable BIT, is_user_defined BIT,
        is_assembly_type BIT, default_object_id INT, rule_object_id INT, assembly_id INT, assembly_class NAME,
        is_binary_ordered BIT, is_fixed_length BIT, prog_id N4000, assembly_qualified_name N4000, is_table_type BIT]
    [change_tracking_tables: object_id INT, is_track_columns_updated_on BIT, min_valid_version BIGINT,
        begin_version BIGINT, cleanup_version BIGINT]
    [column_encryption_key_values: column_encryption_key_id INT, column_master_key_id INT, encrypted_value BINMAX,
        encryption_algorithm_name NAME]
    [column_encryption_keys: name NAME, column_encryption_key_id INT, create_date TIME, modify_date TIME]
    [column_master_keys: name NAME, column_master_key_id INT, create_date TIME, modify_date TIME,
        key_store_provider_name NAME, key_path N4000, allow_enclave_computations BIT, signature BINMAX]
    [crypt_properties: class BYTE, class_desc DESC, major_id INT, thumbprint BIN32, crypt_type C4,
        crypt_type_desc DESC, crypt_property BINMAX]
    [database_audit_specification_details: database_specification_id INT, audit_action_id C4, audit_action_name NAME,
        class BYTE, class_desc DESC, major_id INT, minor_id INT, audited_principal_id INT, audited_result DESC,
        is_group BIT]
    [database_audit_specifications: database_specification_id INT, name NAME, create_date TIME, modify_date TIME,
        audit_guid GUID, is_state_enabled BIT]
    [database_credentials: name NAME, principal_id INT, credential_id INT, credential_identity N4000,
        create_date TIME, modify_date TIME, target_type N100, target_id INT]
    [database_scoped_credentials: name NAME, principal_id INT, credential_id INT, credential_identity N4000,
        create_date TIME, modify_date TIME, target_type N100, target_id INT]
    [destination_data_spaces: partition_scheme_id INT, destination_id INT, data_space_id INT]
    [event_notifications: name NAME, object_id INT, parent_class BYTE, parent_class_desc DESC, parent_id INT,
        create_date TIME, modify_date TIME, service_name N256, broker_instance N128, creator_sid SID,
        principal_id INT]
    [extended_properties: class BYTE, class_desc DESC, major_id INT, minor_id INT, name NAME, value VARIANT]
    [external_data_sources: data_source_id INT, name NAME, location N4000, type_desc DESC, type BYTE,
        resource_manager_location N4000, credential_id INT, database_name NAME, shard_map_name NAME,
        connection_options N4000, pushdown N256]
    [external_file_formats: file_format_id INT, name NAME, format_type NAME, field_terminator NAME,
        string_delimiter NAME, date_format NAME, use_type_default BIT, serde_method NAME, row_terminator NAME,
        encoding NAME, data_compression NAME, first_row INT]
    [fulltext_catalogs: fulltext_catalog_id INT, name NAME, path N260, is_default BIT,
        is_accent_sensitivity_on BIT, data_space_id INT, file_id INT, principal_id INT, is_importing BIT]
    [fulltext_index_columns: object_id INT, column_id INT, type_column_id INT, language_id INT,
        statistical_semantics INT]
    [fulltext_indexes: object_id INT, unique_index_id INT, fulltext_catalog_id INT, is_enabled BIT,
        change_tracking_state C1, change_tracking_state_desc DESC, has_crawl_completed BIT, crawl_type C1,
        crawl_type_desc DESC, crawl_start_date TIME, crawl_end_date TIME, incremental_timestamp BIN8,
        stoplist_id INT, data_space_id INT, property_list_id INT]
    [fulltext_stoplists: stoplist_id INT, name NAME, create_date TIME, modify_date TIME, principal_id INT]
    [partition_functions: name NAME, function_id INT, type C2, type_desc DESC, fanout INT,
        boundary_value_on_right BIT, is_system BIT, create_date TIME, modify_date TIME]
    [partition_parameters: function_id INT, parameter_id INT, system_type_id BYTE, max_length SMALL,
        precision BYTE, scale BYTE, collation_name NAME, user_type_id INT]
    [partition_range_values: function_id INT, boundary_id INT, parameter_id INT, value VARIANT]
    [partition_schemes: name NAME, data_space_id INT, type C2, type_desc DESC, is_default BIT, is_system BIT,
        function_id INT]
    [registered_search_property_lists: property_list_id INT, name NAME, create_date TIME, modify_date TIME,
        principal_id INT]
    [sequences: object: start_value VARIANT, increment VARIANT, minimum_value VARIANT, maximum_value VARIANT,
        is_cycling BIT, is_cached BIT, cache_size INT, system_type_id BYTE, user_type_id INT, precision BYTE,
        scale BYTE, current_value VARIANT, is_exhausted BIT, last_used_value VARIANT]
    [synonyms: object: base_object_name N1024]
    [trigger_events: object_id INT, type INT, type_desc DESC, is_first BIT, is_last BIT, event_group_type INT,
        event_group_type_desc DESC, is_trigger_event BIT]
    [triggers: name NAME, object_id INT, parent_class BYTE, parent_class_desc DESC, parent_id INT, type C2,
        type_desc DESC, create_date TIME, modify_date TIME, is_ms_shipped BIT, is_disabled BIT,
        is_not_for_replication BIT, is_instead_of_trigger BIT]
    [xml_schema_collections: xml_collection_id INT, schema_id INT, principal_id INT, name NAME, create_date TIME,
        modify_date TIME]
);
