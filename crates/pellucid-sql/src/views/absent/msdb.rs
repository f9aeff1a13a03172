//! Tables of `msdb` that are empty here: mail, alerts, proxies, log shipping, maintenance plans, packages.

use crate::views::View;

/// Source: Microsoft's pages of the tables, under "System tables".
pub(in crate::views) static VIEWS: &[View] = views!(msdb
    [log_shipping_monitor_alert: alert_job_id GUID]
    [log_shipping_monitor_error_detail: agent_id GUID, agent_type BYTE, session_id INT, database_name NAME,
        sequence_number INT, log_time TIME, log_time_utc TIME, message N4000, source N4000, help_url N4000]
    [log_shipping_monitor_history_detail: agent_id GUID, agent_type BYTE, session_id INT, database_name NAME,
        session_status BYTE, log_time TIME, log_time_utc TIME, message N4000]
    [log_shipping_monitor_primary: primary_id GUID, primary_server NAME, primary_database NAME,
        backup_threshold INT, threshold_alert INT, threshold_alert_enabled BIT, last_backup_file N500,
        last_backup_date TIME, last_backup_date_utc TIME, history_retention_period INT]
    [log_shipping_monitor_secondary: secondary_server NAME, secondary_database NAME, secondary_id GUID,
        primary_server NAME, primary_database NAME, restore_threshold INT, threshold_alert INT,
        threshold_alert_enabled BIT, last_copied_file N500, last_copied_date TIME, last_copied_date_utc TIME,
        last_restored_file N500, last_restored_date TIME, last_restored_date_utc TIME, last_restored_latency INT,
        history_retention_period INT]
    [log_shipping_primary_secondaries: primary_id GUID, secondary_server NAME, secondary_database NAME]
    [log_shipping_secondary: secondary_id GUID, primary_server NAME, primary_database NAME,
        backup_source_directory N500, backup_destination_directory N500, file_retention_period INT,
        copy_job_id GUID, restore_job_id GUID, monitor_server NAME, monitor_server_security_mode BIT,
        user_specified_monitor BIT, last_copied_file N500, last_copied_date TIME]
    [suspect_pages: database_id INT, file_id INT, page_id BIGINT, event_type INT, error_count INT,
        last_update_date TIME]
    [sysalerts: id INT, name NAME, event_source N100, event_category_id INT, event_id INT, message_id INT,
        severity INT, enabled BYTE, delay_between_responses INT, last_occurrence_date INT,
        last_occurrence_time INT, last_response_date INT, last_response_time INT, notification_message N500,
        include_event_description BYTE, database_name N500, event_description_keyword N100, occurrence_count INT,
        count_reset_date INT, count_reset_time INT, job_id GUID, has_notification INT, flags INT,
        performance_condition N500, category_id INT]
    [sysdbmaintplan_databases: plan_id GUID, database_name NAME]
    [sysdbmaintplan_history: sequence_id INT, plan_id GUID, plan_name NAME, database_name NAME, server_name NAME,
        activity N128, succeeded BIT, end_time TIME, duration INT, start_time TIME, error_number INT, message N500]
    [sysdbmaintplan_jobs: plan_id GUID, job_id GUID]
    [sysdbmaintplans: plan_id GUID, plan_name NAME, date_created TIME, owner NAME, max_history_rows INT,
        remote_history_server NAME, max_remote_history_rows INT, user_defined_1 N100, user_defined_2 N100,
        user_defined_3 TIME, user_defined_4 INT, log_shipping BIT]
    [sysjobstepslogs: log_id INT, log NMAX, date_created TIME, date_modified TIME, log_size BIGINT, step_uid GUID]
    [sysmail_account: account_id INT, name NAME, description N256, email_address N128, display_name N128,
        replyto_address N128, last_mod_datetime TIME, last_mod_user NAME]
    [sysmail_allitems: mailitem_id INT, profile_id INT, recipients VMAX, copy_recipients VMAX,
        blind_copy_recipients VMAX, subject N256, body NMAX, body_format V20, importance V8, sensitivity V20,
        file_attachments NMAX, attachment_encoding V20, query NMAX, execute_query_database NAME,
        attach_query_result_as_file BIT, query_result_header BIT, query_result_width INT,
        query_result_separator C1, exclude_query_output BIT, append_query_error BIT, send_request_date TIME,
        send_request_user NAME, sent_account_id INT, sent_status V8, sent_date TIME, last_mod_date TIME,
        last_mod_user NAME]
    [sysmail_event_log: log_id INT, event_type V20, log_date TIME, description NMAX, process_id INT,
        mailitem_id INT, account_id INT, last_mod_date TIME, last_mod_user NAME]
    [sysmail_faileditems: mailitem_id INT, profile_id INT, recipients VMAX, copy_recipients VMAX,
        blind_copy_recipients VMAX, subject N256, body NMAX, body_format V20, importance V8, sensitivity V20,
        file_attachments NMAX, attachment_encoding V20, query NMAX, execute_query_database NAME,
        attach_query_result_as_file BIT, query_result_header BIT, query_result_width INT,
        query_result_separator C1, exclude_query_output BIT, append_query_error BIT, send_request_date TIME,
        send_request_user NAME, sent_account_id INT, sent_status V8, sent_date TIME, last_mod_date TIME,
        last_mod_user NAME]
    [sysmail_mailattachments: attachment_id INT, mailitem_id INT, filename N260, filesize INT, attachment BINMAX,
        last_mod_date TIME, last_mod_user NAME]
    [sysmail_mailitems: mailitem_id INT, profile_id INT, recipients VMAX, copy_recipients VMAX,
        blind_copy_recipients VMAX, subject N256, from_address VMAX, reply_to VMAX, body NMAX, body_format V20,
        importance V8, sensitivity V20, file_attachments NMAX, attachment_encoding V20, query NMAX,
        execute_query_database NAME, attach_query_result_as_file BIT, query_result_header BIT,
        query_result_width INT, query_result_separator C1, exclude_query_output BIT, append_query_error BIT,
        send_request_date TIME, send_request_user NAME, sent_account_id INT, sent_status BYTE, sent_date TIME,
        last_mod_date TIME, last_mod_user NAME]
    [sysmail_principalprofile: profile_id INT, principal_sid SID, is_default BIT, last_mod_datetime TIME,
        last_mod_user NAME]
    [sysmail_profile: profile_id INT, name NAME, description N256, last_mod_datetime TIME, last_mod_user NAME]
    [sysmail_profileaccount: profile_id INT, account_id INT, sequence_number INT, last_mod_datetime TIME,
        last_mod_user NAME]
    [sysmail_sentitems: mailitem_id INT, profile_id INT, recipients VMAX, copy_recipients VMAX,
        blind_copy_recipients VMAX, subject N256, body NMAX, body_format V20, importance V8, sensitivity V20,
        file_attachments NMAX, attachment_encoding V20, query NMAX, execute_query_database NAME,
        attach_query_result_as_file BIT, query_result_header BIT, query_result_width INT,
        query_result_separator C1, exclude_query_output BIT, append_query_error BIT, send_request_date TIME,
        send_request_user NAME, sent_account_id INT, sent_status V8, sent_date TIME, last_mod_date TIME,
        last_mod_user NAME]
    [sysmail_server: account_id INT, servertype NAME, servername NAME, port INT, username N128, credential_id INT,
        use_default_credentials BIT, enable_ssl BIT, flags INT, timeout INT, last_mod_datetime TIME,
        last_mod_user NAME]
    [sysmail_unsentitems: mailitem_id INT, profile_id INT, recipients VMAX, copy_recipients VMAX,
        blind_copy_recipients VMAX, subject N256, body NMAX, body_format V20, importance V8, sensitivity V20,
        file_attachments NMAX, attachment_encoding V20, query NMAX, execute_query_database NAME,
        attach_query_result_as_file BIT, query_result_header BIT, query_result_width INT,
        query_result_separator C1, exclude_query_output BIT, append_query_error BIT, send_request_date TIME,
        send_request_user NAME, sent_account_id INT, sent_status V8, sent_date TIME, last_mod_date TIME,
        last_mod_user NAME]
    [sysmaintplan_log: task_detail_id GUID, plan_id GUID, subplan_id GUID, start_time TIME, end_time TIME,
        succeeded BIT, logged_remotely BIT, source_server_name NAME, plan_name NAME, subplan_name NAME]
    [sysmaintplan_logdetail: task_detail_id GUID, line1 N256, line2 N256, line3 N256, line4 N256, line5 N256,
        server_name NAME, start_time TIME, end_time TIME, error_number INT, error_message NMAX, command NMAX,
        succeeded BIT]
    [sysmaintplan_plans: id GUID, name NAME, create_date TIME, description N1024, owner NAME, vermajor INT,
        verminor INT, verbuild INT, vercomments N1024, from_msx BIT, has_targets BIT]
    [sysmaintplan_subplans: subplan_id GUID, subplan_name NAME, subplan_description N500, plan_id GUID,
        job_id GUID, msx_job_id GUID, schedule_id INT, msx_plan BIT]
    [sysnotifications: alert_id INT, operator_id INT, notification_method BYTE]
    [sysproxies: proxy_id INT, name NAME, credential_id INT, enabled BYTE, description N500, user_sid SID,
        credential_date_created TIME]
    [sysproxylogin: proxy_id INT, sid SID, flags INT]
    [sysproxysubsystem: subsystem_id INT, proxy_id INT]
    [sysssislog: id INT, event NAME, computer N128, operator N128, source N1024, sourceid GUID, executionid GUID,
        starttime TIME, endtime TIME, datacode INT, databytes BINMAX, message N4000]
    [sysssispackagefolders: folderid GUID, parentfolderid GUID, foldername NAME]
    [sysssispackages: name NAME, id GUID, description N1024, createdate TIME, folderid GUID, ownersid SID,
        packagedata BINMAX, packageformat INT, packagetype INT, vermajor INT, verminor INT, verbuild INT,
        vercomments N1024, verid GUID, isencrypted BIT, readrolesid SID, writerolesid SID]
    [systargetservergroupmembers: servergroup_id INT, server_id INT]
    [systargetservergroups: servergroup_id INT, name NAME]
    [systargetservers: server_id INT, server_name NAME, location N256, time_zone_adjustment INT, enlist_date TIME,
        last_poll_date TIME, status INT, local_time_at_last_poll TIME, enlisted_by_nt_user N100,
        poll_interval INT]
);
