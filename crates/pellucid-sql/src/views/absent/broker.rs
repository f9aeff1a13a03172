//! Service Broker and endpoints: nothing listens here and nothing is queued.

use crate::views::View;

/// Source: Microsoft's "Service Broker catalog views" and "Endpoints catalog views".
pub(in crate::views) static VIEWS: &[View] = views!(sys
    [conversation_endpoints: conversation_handle GUID, conversation_id GUID, is_initiator BYTE,
        service_contract_id INT, conversation_group_id GUID, service_id INT, lifetime TIME, state C2,
        state_desc DESC, far_service N256, far_broker_instance N128, principal_id INT, far_principal_id INT,
        outbound_session_key_identifier GUID, inbound_session_key_identifier GUID, security_timestamp TIME,
        dialog_timer TIME, send_sequence BIGINT, last_send_tran_id BIN8, end_dialog_sequence BIGINT,
        receive_sequence BIGINT, receive_sequence_frag INT, system_sequence BIGINT,
        first_out_of_order_sequence BIGINT, last_out_of_order_sequence BIGINT, last_out_of_order_frag INT,
        is_system BIT, priority BYTE]
    [conversation_groups: conversation_group_id GUID, service_id INT, is_system BIT]
    [conversation_priorities: priority_id INT, name NAME, service_contract_id INT, local_service_id INT,
        remote_service_name N256, priority BYTE]
    [database_mirroring_endpoints: name NAME, endpoint_id INT, principal_id INT, protocol BYTE, protocol_desc DESC,
        type BYTE, type_desc DESC, state BYTE, state_desc DESC, is_admin_endpoint BIT, role BYTE, role_desc DESC,
        is_encryption_enabled BIT, connection_auth BYTE, connection_auth_desc DESC, certificate_id INT,
        encryption_algorithm BYTE, encryption_algorithm_desc DESC]
    [endpoints: name NAME, endpoint_id INT, principal_id INT, protocol BYTE, protocol_desc DESC, type BYTE,
        type_desc DESC, state BYTE, state_desc DESC, is_admin_endpoint BIT]
    [remote_service_bindings: name NAME, remote_service_binding_id INT, principal_id INT,
        remote_service_name N256, service_contract_id INT, remote_principal_id INT, is_anonymous_on BIT]
    [routes: name NAME, route_id INT, principal_id INT, remote_service_name N256, broker_instance N128,
        lifetime TIME, address N256, mirror_address N256]
    [service_broker_endpoints: name NAME, endpoint_id INT, principal_id INT, protocol BYTE, protocol_desc DESC,
        type BYTE, type_desc DESC, state BYTE, state_desc DESC, is_admin_endpoint BIT,
        is_message_forwarding_enabled BIT, message_forwarding_size INT, connection_auth BYTE,
        connection_auth_desc DESC, certificate_id INT, encryption_algorithm BYTE, encryption_algorithm_desc DESC]
    [service_contract_message_usages: service_contract_id INT, message_type_id INT, is_sent_by_initiator BIT,
        is_sent_by_target BIT]
    [service_contract_usages: service_id INT, service_contract_id INT]
    [service_contracts: name NAME, service_contract_id INT, principal_id INT]
    [service_message_types: name NAME, message_type_id INT, principal_id INT, validation C2, validation_desc DESC,
        xml_collection_id INT]
    [service_queue_usages: service_id INT, service_queue_id INT]
    [service_queues: object: max_readers SMALL, activation_procedure N1024, execute_as_principal_id INT,
        is_activation_enabled BIT, is_receive_enabled BIT, is_enqueue_enabled BIT, is_retention_enabled BIT,
        is_poison_message_handling_enabled BIT]
    [services: name NAME, service_id INT, principal_id INT, service_queue_id INT]
    [tcp_endpoints: name NAME, endpoint_id INT, principal_id INT, protocol BYTE, protocol_desc DESC, type BYTE,
        type_desc DESC, state BYTE, state_desc DESC, is_admin_endpoint BIT, port INT, is_dynamic_port BIT,
        ip_address N128]
    [transmission_queue: conversation_handle GUID, to_service_name N256, to_broker_instance N128,
        from_service_name N256, service_contract_name N256, enqueue_time TIME, message_sequence_number BIGINT,
        message_type_name N256, is_conversation_error BIT, is_end_of_dialog BIT, message_body BINMAX,
        transmission_status N4000, priority BYTE]
);
