//! Functions and global variables of SQL Server's that there are not here.
//!
//! Source: Microsoft's "What are the SQL database functions?" and the pages that it leads to.

/// Built-in ones, in capitals.
pub(crate) const FUNCTIONS: &str = "
    APPLOCK_MODE APPLOCK_TEST APPROX_COUNT_DISTINCT APPROX_PERCENTILE_CONT APPROX_PERCENTILE_DISC
    ASSEMBLYPROPERTY ASYMKEYPROPERTY BASE64_DECODE BASE64_ENCODE BINARY_CHECKSUM BIT_COUNT CERTPRIVATEKEY
    CHANGE_TRACKING_CURRENT_VERSION CHANGE_TRACKING_IS_COLUMN_IN_MASK CHANGE_TRACKING_MIN_VALID_VERSION
    CHECKSUM CHECKSUM_AGG COLLATIONPROPERTY COLUMNS_UPDATED COMPRESS COT CURRENT_REQUEST_ID
    CURRENT_TIMEZONE CURRENT_TIMEZONE_ID CURRENT_TRANSACTION_ID DATETIME2FROMPARTS DATETIMEOFFSETFROMPARTS
    DATE_BUCKET DECOMPRESS DECRYPTBYASYMKEY DECRYPTBYCERT DECRYPTBYKEY DECRYPTBYKEYAUTOASYMKEY
    DECRYPTBYKEYAUTOCERT DECRYPTBYPASSPHRASE DIFFERENCE EDGE_ID_FROM_PARTS ENCRYPTBYASYMKEY ENCRYPTBYCERT
    ENCRYPTBYKEY ENCRYPTBYPASSPHRASE EVENTDATA FILEGROUPPROPERTY FILEPROPERTYEX FILETABLEROOTPATH
    FULLTEXTCATALOGPROPERTY GENERATE_SERIES GETANSINULL GETPATHLOCATOR GET_BIT
    GET_FILESTREAM_TRANSACTION_CONTEXT GRAPH_ID_FROM_EDGE_ID GRAPH_ID_FROM_NODE_ID GROUPING GROUPING_ID
    HOST_ID INDEXKEY_PROPERTY ISJSON
    IS_OBJECTSIGNED JSON_ARRAY JSON_ARRAYAGG JSON_CONTAINS JSON_MODIFY JSON_OBJECT JSON_OBJECTAGG
    JSON_PATH_EXISTS JSON_QUERY JSON_VALUE KEY_NAME LEFT_SHIFT MIN_ACTIVE_ROWVERSION
    NEWSEQUENTIALID NODE_ID_FROM_PARTS OBJECT_ID_FROM_EDGE_ID
    OBJECT_ID_FROM_NODE_ID PERCENTILE_CONT PERCENTILE_DISC PERMISSIONS PRODUCT PUBLISHINGSERVERNAME
    PWDCOMPARE PWDENCRYPT REGEXP_COUNT REGEXP_INSTR REGEXP_LIKE REGEXP_REPLACE REGEXP_SUBSTR RIGHT_SHIFT
    ROWCOUNT_BIG SESSIONPROPERTY SET_BIT SIGNBYASYMKEY SIGNBYCERT SMALLDATETIMEFROMPARTS
    SQL_VARIANT_PROPERTY STDEV STDEVP STRING_ESCAPE SWITCHOFFSET SYMKEYPROPERTY SYSDATETIMEOFFSET
    TERTIARY_WEIGHTS TEXTPTR TEXTVALID TIMEFROMPARTS TODATETIMEOFFSET TRIGGER_NESTLEVEL TYPEPROPERTY UNISTR
    VAR VARP VECTOR_DISTANCE VERIFYSIGNEDBYASYMKEY VERIFYSIGNEDBYCERT XML_SCHEMA_NAMESPACE
";

/// Those of the schema `sys` that give a value; some scripts call them by `master.dbo`.
pub(crate) const OF_SYS: &str = "
    fn_cdc_check_parameters fn_cdc_decrement_lsn fn_cdc_get_column_ordinal fn_cdc_get_max_lsn
    fn_cdc_get_min_lsn fn_cdc_get_net_changes fn_cdc_has_column_changed fn_cdc_hexstrtobin
    fn_cdc_increment_lsn fn_cdc_is_bit_set fn_cdc_map_lsn_to_time fn_cdc_map_time_to_lsn
    fn_current_transaction_id fn_fiscompressed fn_getproviderstring fn_getrowsetidfromrowdump
    fn_getserverportfromproviderstring fn_hadr_is_primary_replica fn_hadr_is_same_replica fn_isrolemember
    fn_mapschematype fn_msdayasnumber fn_msgeneration_downloadonly fn_msget_dynamic_filter_login
    fn_msorbitmaps fn_msrepl_getsrvidfromdistdb fn_msrepl_map_resolver_clsid fn_msrepl_xe_agent_name
    fn_mstestbit fn_msvector_downloadonly fn_msxe_read_event_stream fn_numberof1inbinaryafterloc
    fn_numberof1invarbinary fn_physlocformatter fn_prepexec fn_repladjustcolumnmap fn_repldecryptver4
    fn_replformatdatetime fn_replgetagentcommandlinefromjobid fn_replgetbinary8lodword fn_replinttobitstring
    fn_replmakestringliteral fn_replp2pversiontotranid fn_replprepadbinary8 fn_replquotename fn_replrotr
    fn_repltrimleadingzerosinhexstr fn_replvarbintoint fn_sqlvarbasetostr fn_svrscopedagentname
    fn_translate_for_json fn_varbintohexstr fn_varbintohexsubstring fn_xcsretrieveheader
";

/// Those of `msdb`.
pub(crate) const OF_MSDB: &str = "
    convert_jobid_to_char fn_encode_sqlname_for_powershell fn_sysdac_get_currentusername
    fn_sysdac_get_username fn_sysdac_is_currentuser_sa fn_sysdac_is_dac_creator fn_sysdac_is_login_creator
    fn_sysmail_maxcount fn_syspolicy_get_bound_objects fn_syspolicy_is_automation_enabled
    fn_sysutility_get_cpu_count fn_sysutility_get_is_instance_ucp fn_sysutility_mi_get_cpu_architecture
    sqlagent_suser_sname
";

/// Global variables, in capitals.
pub(crate) const GLOBALS: &str = "
    @@DBTS @@DEFAULT_LANGID @@DEF_SORTORDER_ID @@IDLE @@IO_BUSY @@TOTAL_ERRORS @@TOTAL_READ @@TOTAL_WRITE
";
