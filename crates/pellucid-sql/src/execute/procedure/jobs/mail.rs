//! Database Mail, which is off: nothing is sent, and there are no profiles, accounts and mails.
//!
//! Source: Microsoft's "Database Mail stored procedures".

use std::fmt::Display;

use super::{Call, Outputs, Procedure};
use crate::execute::Done;
use crate::message::{table, Message};
use crate::session::Session;
use crate::values::convert::Value;
use crate::values::types::SqlType;

/// The option that switches it on there.
const COMPONENT: &str = "Database Mail XPs";

const NAME: SqlType = SqlType::SYSNAME;
const INT: SqlType = SqlType::Int;
const BIT: SqlType = SqlType::Bit;
const N128: SqlType = SqlType::nvarchar(128);
const N256: SqlType = SqlType::nvarchar(256);

pub(super) const SEND: Procedure = Procedure {
    name: "sp_send_dbmail",
    parameters: &[
        "profile_name",
        "recipients",
        "copy_recipients",
        "blind_copy_recipients",
        "subject",
        "body",
        "body_format",
        "importance",
        "sensitivity",
        "file_attachments",
        "query",
        "execute_query_database",
        "attach_query_result_as_file",
        "query_attachment_filename",
        "query_result_header",
        "query_result_width",
        "query_result_separator",
        "exclude_query_output",
        "append_query_error",
        "query_no_truncate",
        "query_result_no_padding",
        "mailitem_id",
        "from_address",
        "reply_to",
    ],
    run: send,
};
pub(super) const DELETE_MAILS: Procedure = Procedure {
    name: "sysmail_delete_mailitems_sp",
    parameters: &["sent_before", "sent_status"],
    run: delete_mails,
};
pub(super) const DELETE_LOG: Procedure = Procedure {
    name: "sysmail_delete_log_sp",
    parameters: &["logged_before", "event_type"],
    run: delete,
};
pub(super) const STATUS: Procedure =
    Procedure { name: "sysmail_help_status_sp", parameters: &[], run: status };
pub(super) const PROFILES: Procedure = Procedure {
    name: "sysmail_help_profile_sp",
    parameters: &["profile_id", "profile_name"],
    run: |session, _| {
        session
            .give_rows(&[("profile_id", INT), ("name", NAME), ("description", N256)], Vec::new())?;
        Ok(Outputs::new())
    },
};
pub(super) const ACCOUNTS: Procedure = Procedure {
    name: "sysmail_help_account_sp",
    parameters: &["account_id", "account_name"],
    run: |session, _| {
        let columns = [
            ("account_id", INT),
            ("name", NAME),
            ("description", N256),
            ("email_address", N128),
            ("display_name", N128),
            ("replyto_address", N128),
            ("servertype", NAME),
            ("servername", NAME),
            ("port", INT),
            ("username", N128),
            ("use_default_credentials", BIT),
            ("enable_ssl", BIT),
        ];
        session.give_rows(&columns, Vec::new())?;
        Ok(Outputs::new())
    },
};
pub(super) const PROFILE_ACCOUNTS: Procedure = Procedure {
    name: "sysmail_help_profileaccount_sp",
    parameters: &["profile_id", "profile_name", "account_id", "account_name"],
    run: |session, _| {
        let columns = [
            ("profile_id", INT),
            ("profile_name", NAME),
            ("account_id", INT),
            ("account_name", NAME),
            ("sequence_number", INT),
        ];
        session.give_rows(&columns, Vec::new())?;
        Ok(Outputs::new())
    },
};
pub(super) const PRINCIPAL_PROFILES: Procedure = Procedure {
    name: "sysmail_help_principalprofile_sp",
    parameters: &["principal_id", "principal_name", "profile_id", "profile_name"],
    run: |session, _| {
        let columns = [
            ("principal_id", INT),
            ("principal_name", NAME),
            ("profile_id", INT),
            ("profile_name", NAME),
            ("is_default", BIT),
        ];
        session.give_rows(&columns, Vec::new())?;
        Ok(Outputs::new())
    },
};

/// 15281 as of a server where nobody has switched it on; where somebody has, there is no profile: 14607, 14636.
fn send(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    if session.databases.instance.running(COMPONENT)? == 0 {
        let name = format!("dbo.{}", SEND.name);
        let [component, enabled, searched, named] = [&COMPONENT as &dyn Display; 4];
        let told = [&name, component, enabled, searched, named];
        return Err(Message::of(table::COMPONENT_OFF, told).into());
    }
    Err(match call.text("profile_name")? {
        Some(_) => Message::of(table::UNKNOWN_MAIL_PROFILE, []),
        None => Message::of(table::NO_MAIL_PROFILE, []),
    }
    .into())
}

/// There is none.
fn delete(session: &mut Session, _: &Call<'_>) -> Done<Outputs> {
    session.count(0);
    Ok(Outputs::new())
}

/// 14608 without anything that would choose some.
fn delete_mails(session: &mut Session, call: &Call<'_>) -> Done<Outputs> {
    if call.text("sent_before")?.is_none() && call.text("sent_status")?.is_none() {
        let either = ["@sent_before", "@sent_status"];
        return Err(Message::of(table::EITHER_OF_TWO, [&either[0], &either[1]]).into());
    }
    delete(session, call)
}

fn status(session: &mut Session, _: &Call<'_>) -> Done<Outputs> {
    let row = vec![Value::Text("STOPPED".to_owned())];
    session.give_rows(&[("Status", SqlType::nvarchar(7))], vec![row])?;
    Ok(Outputs::new())
}
