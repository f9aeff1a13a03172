//! The tokens of a step's command: `$(ESCAPE_SQUOTE(JOBNAME))` and its like.
//!
//! Source: Microsoft's "Use tokens in job steps". A token without a macro is refused, as SQL Server refuses it.

/// What a token may stand for.
pub(crate) struct Values<'a> {
    pub job_id: &'a str,
    pub job_name: &'a str,
    pub step_id: i64,
    pub step_name: &'a str,
    pub server: &'a str,
    /// `yyyymmdd` and `hhmmss` of now, and of when the job began.
    pub now: (i64, i64),
    pub begun: (i64, i64),
}

/// The command with its tokens replaced.
///
/// # Errors
/// The name of a token that there is not.
pub(crate) fn replaced(command: &str, values: &Values<'_>) -> Result<String, String> {
    let mut shown = String::with_capacity(command.len());
    let mut rest = command;
    while let Some(at) = rest.find("$(") {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some((token, length)) = token(rest) else {
            // Text that only looks like one.
            shown.push_str("$(");
            rest = &rest[2..];
            continue;
        };
        let (macro_name, name) = token;
        let value = value(name, values).ok_or_else(|| name.to_owned())?;
        shown.push_str(&escaped(macro_name, &value).ok_or_else(|| name.to_owned())?);
        rest = &rest[length..];
    }
    shown.push_str(rest);
    Ok(shown)
}

/// `$(MACRO(NAME))` or `$(NAME)` at the beginning of a text: macro, name and length.
fn token(text: &str) -> Option<((&str, &str), usize)> {
    let inner = text.strip_prefix("$(")?;
    let is_name = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    let end = inner.find(['(', ')'])?;
    let first = &inner[..end];
    if !is_name(first) {
        return None;
    }
    if inner[end..].starts_with(')') {
        return Some((("", first), 2 + end + 1));
    }
    let name = &inner[end + 1..];
    let close = name.find("))")?;
    let name = &name[..close];
    is_name(name).then_some(((first, name), 2 + end + 1 + close + 2))
}

fn escaped(macro_name: &str, value: &str) -> Option<String> {
    match macro_name.to_ascii_uppercase().as_str() {
        "ESCAPE_SQUOTE" => Some(value.replace('\'', "''")),
        "ESCAPE_DQUOTE" => Some(value.replace('"', "\"\"")),
        "ESCAPE_RBRACKET" => Some(value.replace(']', "]]")),
        "ESCAPE_NONE" => Some(value.to_owned()),
        _ => None,
    }
}

fn value(name: &str, values: &Values<'_>) -> Option<String> {
    Some(match name.to_ascii_uppercase().as_str() {
        "JOBID" => format!("0x{}", guid_bytes(values.job_id)),
        "JOBNAME" => values.job_name.to_owned(),
        "STEPID" => values.step_id.to_string(),
        "STEPNAME" => values.step_name.to_owned(),
        "MACH" | "SRVR" => values.server.to_owned(),
        "INST" => String::new(),
        "DATE" => values.now.0.to_string(),
        "TIME" => format!("{:06}", values.now.1),
        "STRTDT" => values.begun.0.to_string(),
        "STRTTM" => format!("{:06}", values.begun.1),
        _ => return None,
    })
}

/// The 16 bytes of a uniqueidentifier, as SQL Server converts it: the first three groups with their last byte first.
fn guid_bytes(guid: &str) -> String {
    let groups: Vec<&str> = guid.split('-').collect();
    let turned = |group: &str| -> String {
        let pairs = (0..group.len() / 2).rev();
        pairs.filter_map(|at| group.get(at * 2..at * 2 + 2)).collect()
    };
    let turn =
        |(at, group): (usize, &&str)| if at < 3 { turned(group) } else { (*group).to_owned() };
    groups.iter().enumerate().map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: Values<'_> = Values {
        job_id: "0ECA7463-57D4-4EC9-A655-6F0280E8426E",
        job_name: "it's",
        step_id: 2,
        step_name: "a]b",
        server: "here",
        now: (20_260_102, 30_405),
        begun: (20_260_101, 0),
    };

    fn of(command: &str) -> Result<String, String> {
        replaced(command, &VALUES)
    }

    #[test]
    fn tokens_are_replaced_and_escaped() {
        assert_eq!(of("PRINT 'x $ ( $(').").as_deref(), Ok("PRINT 'x $ ( $(')."));
        assert_eq!(
            of("'$(ESCAPE_SQUOTE(JOBNAME))' [$(ESCAPE_RBRACKET(STEPNAME))] $(escape_none(StepId))")
                .as_deref(),
            Ok("'it''s' [a]]b] 2")
        );
        assert_eq!(
            of("$(ESCAPE_NONE(DATE)) $(ESCAPE_NONE(STRTTM))").as_deref(),
            Ok("20260102 000000")
        );
        assert_eq!(
            of("$(ESCAPE_NONE(JOBID))").as_deref(),
            Ok("0x6374CA0ED457C94EA6556F0280E8426E")
        );
    }

    #[test]
    fn others_are_named() {
        assert_eq!(of("$(ESCAPE_SQUOTE(SQLLOGDIR))"), Err("SQLLOGDIR".to_owned()));
        assert_eq!(of("$(JOBID)"), Err("JOBID".to_owned()));
        assert_eq!(of("$(ESCAPE_HTML(JOBID))"), Err("JOBID".to_owned()));
    }
}
