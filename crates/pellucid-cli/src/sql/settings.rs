//! sqlcmd's own scripting variables: their first values, and what they mean for what is shown and how long it may take.

use std::time::Duration;

use pellucid_tsql::batch::settings::{self, Layout as Form};
use pellucid_tsql::batch::Variables;
use zeroize::Zeroizing;

use super::aligned::{Controls, Layout};
use super::{server, SqlArgs};

/// What only options set.
#[derive(Debug, Clone, Copy)]
pub struct Fixed {
    trim: bool,
    controls: Controls,
}

impl Fixed {
    /// Those of `args`.
    pub fn of(args: &SqlArgs) -> Self {
        let controls = match args.controls {
            None => Controls::Kept,
            Some(1) => Controls::Spaces,
            Some(2) => Controls::OneSpace,
            Some(_) => Controls::Removed,
        };
        Self { trim: args.trim, controls }
    }

    /// How rows stand with these variables.
    pub fn layout(self, variables: &Variables) -> Layout {
        let count = |name: &str| number(variables, name).and_then(|n| usize::try_from(n).ok());
        let limit = |name: &str| count(name).filter(|count| *count > 0);
        let whole = Layout::default();
        let form = variables.get("SQLCMDFORMAT").and_then(|name| Form::of(&name));
        Layout {
            separator: variables
                .get("SQLCMDCOLSEP")
                .map_or(whole.separator, |text| text.as_str().to_owned()),
            trim: self.trim,
            width: limit("SQLCMDCOLWIDTH"),
            variable: limit("SQLCMDMAXVARTYPEWIDTH"),
            // Alone, and below its default, the other one says it of text of a declared length, too.
            fixed: limit("SQLCMDMAXFIXEDTYPEWIDTH").or_else(|| {
                limit("SQLCMDMAXVARTYPEWIDTH")
                    .filter(|most| whole.variable.is_some_and(|usual| *most < usual))
            }),
            headers: number(variables, "SQLCMDHEADERS")
                .and_then(|n| i32::try_from(n).ok())
                .unwrap_or(whole.headers),
            form: form.unwrap_or(Form::Horizontal),
            stream: false,
            controls: self.controls,
            level: number(variables, "SQLCMDERRORLEVEL")
                .and_then(|n| i8::try_from(n).ok())
                .unwrap_or(whole.level),
        }
    }
}

/// How long a batch may take; none: as long as it takes.
pub fn timeout(variables: &Variables) -> Option<Duration> {
    let seconds = number(variables, "SQLCMDSTATTIMEOUT").and_then(|n| u64::try_from(n).ok())?;
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

fn number(variables: &Variables, name: &str) -> Option<i64> {
    variables.get(name)?.trim().parse().ok()
}

/// The variables that scripts begin with: sqlcmd's own, those of the environment, options, -v. `shown` gives the text that
/// stands for each value of an argument.
pub fn variables(args: &SqlArgs, shown: &dyn Fn(&str) -> String) -> Variables {
    // Under -X a script gets nothing of the environment.
    let has_environment = args.no_commands.is_none();
    let mut variables = match has_environment {
        true => Variables::with_environment(),
        false => Variables::new(),
    };
    let mut set = |name: &str, value: String| {
        variables.set(name, Some(Zeroizing::new(value)));
    };
    for (name, first) in settings::defaults() {
        let named = has_environment.then(|| std::env::var(name).ok()).flatten();
        let first = || match name {
            "SQLCMDSERVER" | "SQLCMDWORKSTATION" => server::machine(),
            _ => first.to_owned(),
        };
        set(name, named.filter(|value| !value.is_empty()).unwrap_or_else(first));
    }
    for (name, value) in numbers(args) {
        set(name, value);
    }
    let texts = [
        ("SQLCMDUSER", &args.user),
        ("SQLCMDSERVER", &args.server),
        ("SQLCMDWORKSTATION", &args.workstation),
        ("SQLCMDDBNAME", &args.database),
        ("SQLCMDCOLSEP", &args.separator),
    ];
    for (name, value) in texts {
        value.iter().for_each(|value| set(name, shown(value)));
    }
    for (name, value) in &args.variable {
        set(name, shown(value));
    }
    variables
}

/// One of sqlcmd's own variables that has an impossible value.
pub fn wrong(variables: &Variables) -> Option<&'static str> {
    let is_wrong =
        |name: &str| variables.get(name).is_some_and(|value| !settings::may_be(name, &value));
    settings::defaults().map(|(name, _)| name).find(|name| is_wrong(name))
}

/// What options give as numbers, and the form of rows.
fn numbers(args: &SqlArgs) -> impl Iterator<Item = (&'static str, String)> {
    let text = |number: Option<i64>| number.map(|number| number.to_string());
    let given = [
        ("SQLCMDCOLWIDTH", text(args.width.map(i64::from))),
        ("SQLCMDMAXVARTYPEWIDTH", text(args.variable_width.map(i64::from))),
        ("SQLCMDMAXFIXEDTYPEWIDTH", text(args.fixed_width.map(i64::from))),
        ("SQLCMDHEADERS", text(args.headers.map(i64::from))),
        ("SQLCMDERRORLEVEL", text(args.message_level.map(i64::from))),
        ("SQLCMDPACKETSIZE", text(args.packet_size.map(i64::from))),
        ("SQLCMDLOGINTIMEOUT", text(args.login_timeout.map(i64::from))),
        ("SQLCMDSTATTIMEOUT", text(args.query_timeout.map(i64::from))),
        ("SQLCMDFORMAT", args.row_form().map(str::to_owned)),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name, value?)))
}
