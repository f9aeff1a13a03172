//! Results and messages as JSON, one object a line.
//!
//! A result is written as its rows come: `{"columns":[..],"rows":[[..],..],"rows_affected":n}`. What is said meanwhile
//! stands behind it. Numbers keep all of their digits, as in SQL Server's own JSON.

use pellucid::shown::printable_json;
use pellucid_sql::session::Report;
use pellucid_sql::translate::ResultColumn;
use pellucid_sql::values::convert::Value;
use pellucid_sql::values::types::{Family, SqlType};
use serde_json::json;

use super::form::Form;
use super::value::exact;

/// The printer.
#[derive(Debug, Default)]
pub struct Json {
    types: Vec<SqlType>,
    is_open: bool,
    rows: u64,
    held: String,
}

impl Json {
    fn close(&mut self, rows: Option<u64>, out: &mut String) {
        if std::mem::take(&mut self.is_open) {
            out.push_str(&format!("],\"rows_affected\":{}}}\n", json!(rows)));
            out.push_str(&std::mem::take(&mut self.held));
        }
    }
}

impl Form for Json {
    fn columns(&mut self, columns: &[ResultColumn], out: &mut String) {
        self.close(None, out);
        let told = |column: &ResultColumn| json!({"name": column.name, "type": column.data_type.to_string()});
        let told: Vec<_> = columns.iter().map(told).collect();
        out.push_str(&format!("{{\"columns\":{},\"rows\":[", json!(told)));
        self.types = columns.iter().map(|column| column.data_type).collect();
        self.is_open = true;
        self.rows = 0;
    }

    fn row(&mut self, values: &[Value], out: &mut String) {
        out.push_str(if self.rows == 0 { "[" } else { ",[" });
        for (at, (value, data_type)) in values.iter().zip(&self.types).enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str(&cell(value, *data_type));
        }
        out.push(']');
        self.rows += 1;
    }

    fn done(&mut self, rows: Option<u64>, out: &mut String) {
        match (self.is_open, rows) {
            (true, rows) => self.close(rows, out),
            (false, Some(rows)) => out.push_str(&format!("{{\"rows_affected\":{rows}}}\n")),
            (false, None) => {}
        }
    }

    fn message(&mut self, report: &Report, out: &mut String) {
        let Report { message, line, procedure, server } = report;
        let told = json!({
            "number": message.number, "severity": message.severity, "state": message.state,
            "server": server, "procedure": procedure.as_deref(), "line": line, "text": message.text,
        });
        let out = if self.is_open { &mut self.held } else { out };
        out.push_str(&format!("{told}\n"));
    }

    fn end(&mut self, out: &mut String) {
        self.close(None, out);
    }

    fn harmless(&self, text: &str) -> String {
        printable_json(text).into_owned()
    }

    fn remark(&mut self, _: &str, _: &mut String) {}
}

fn cell(value: &Value, data_type: SqlType) -> String {
    match value {
        Value::Null => return "null".to_owned(),
        Value::Integer(bit @ 0..=1) if data_type == SqlType::Bit => return (*bit == 1).to_string(),
        Value::Integer(number) if data_type.family() != Family::Decimal => {
            return number.to_string()
        }
        // null for what JSON has no number for
        Value::Real(number) if data_type.family() != Family::Decimal => {
            return json!(number).to_string()
        }
        _ => {}
    }
    let text = exact(value, data_type).unwrap_or_default();
    match data_type.family() {
        Family::Decimal if is_number(&text) => text,
        _ => json!(text).to_string(),
    }
}

/// Whether JSON takes it as a number.
fn is_number(text: &str) -> bool {
    serde_json::from_str::<serde_json::Number>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pellucid_sql::message::Message;
    use pellucid_sql::values::convert::decimal_value;
    use pellucid_sql::values::decimal::Decimal;

    #[test]
    fn a_result_is_one_line_and_what_is_said_meanwhile_follows() {
        let (mut form, mut out) = (Json::default(), String::new());
        let column = |name: &str, data_type| ResultColumn { name: name.into(), data_type };
        let columns = [
            column("bit", SqlType::Bit),
            column("size", SqlType::numeric(20, 0)),
            column("name", SqlType::nvarchar(8)),
            column("hash", SqlType::Binary(2)),
            column("ratio", SqlType::Float),
        ];
        form.columns(&columns, &mut out);
        let size = decimal_value(Decimal::parse("12345678901234567890").unwrap());
        let row = [
            Value::Integer(1),
            size,
            Value::Text("\"a\"\n".into()),
            Value::Blob(vec![1, 255]),
            Value::Real(0.5),
        ];
        form.row(&row, &mut out);
        let report = Report {
            message: Message::new(0, 0, "said"),
            line: 3,
            procedure: None,
            server: "SRV".into(),
        };
        form.message(&report, &mut out);
        form.row(&[const { Value::Null }; 5], &mut out);
        form.done(Some(2), &mut out);
        form.done(Some(7), &mut out);
        form.done(None, &mut out);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(
            lines[0],
            "{\"columns\":[{\"name\":\"bit\",\"type\":\"bit\"},{\"name\":\"size\",\"type\":\"numeric(20,0)\"},\
             {\"name\":\"name\",\"type\":\"nvarchar(8)\"},{\"name\":\"hash\",\"type\":\"binary(2)\"},\
             {\"name\":\"ratio\",\"type\":\"float\"}],\"rows\":[[true,12345678901234567890,\"\\\"a\\\"\\n\",\"0x01FF\",0.5],\
             [null,null,null,null,null]],\"rows_affected\":2}"
        );
        let said: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
        assert_eq!(
            (&said["text"], &said["line"], &said["number"]),
            (&json!("said"), &json!(3), &json!(0))
        );
        assert_eq!(lines[2..], ["{\"rows_affected\":7}"]);
    }

    #[test]
    fn a_result_that_breaks_off_is_still_whole_json() {
        let (mut form, mut out) = (Json::default(), String::new());
        form.columns(&[ResultColumn { name: "a".into(), data_type: SqlType::Int }], &mut out);
        form.row(&[Value::Integer(1)], &mut out);
        form.end(&mut out);
        let told: serde_json::Value = serde_json::from_str(out.trim_end()).unwrap();
        assert_eq!(told["rows_affected"], serde_json::Value::Null);
        assert_eq!(told["rows"], json!([[1]]));
    }
}
