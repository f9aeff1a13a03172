//! What was salvaged and what was lost, for people and for machines.

use std::collections::BTreeMap;
use std::time::Duration;

use pellucid::shown::Shown;
use pellucid::sqlite::{Lost, Map, Object, Role, SCHEMA};
use pellucid_engine::page_source::Taken;

use super::SalvageArgs;
use crate::output::{bytes, seconds, Output};

/// A row that is not in the new database.
#[derive(Debug)]
pub struct LostRow {
    pub table: Option<String>,
    pub rowid: Option<i64>,
    /// The page it begins on.
    pub page: u32,
    /// The overflow page that is lost.
    pub missing: Option<u32>,
}

/// A page that is not in the new database.
#[derive(Debug)]
struct LostPage {
    page: u32,
    cause: String,
    of: Option<String>,
    role: &'static str,
    rowids: Option<String>,
    after: Option<i64>,
    upto: Option<i64>,
    /// Whether rows may be gone with it.
    loses: bool,
}

/// The whole account.
#[derive(Debug, Default)]
pub struct Report {
    pub rows: u64,
    /// Tables and their rows.
    pub tables: Vec<(String, u64)>,
    pub lost_rows: Vec<LostRow>,
    /// Name and rows of the table for what could not be placed.
    pub set_aside: Option<(String, u64)>,
    /// Objects that could not be made, and why.
    not_made: Vec<(String, String)>,
    /// What of WAL or journal is damaged.
    pub remarks: Vec<String>,
    /// What came out of the rest of a damaged log.
    pub taken: Option<Taken>,
    pages: Vec<LostPage>,
}

/// At most so many are listed one by one.
const LISTED: usize = 200;

impl Report {
    /// An object that SQLite does not make here.
    pub fn not_made(&mut self, object: &Object, error: &rusqlite::Error) {
        self.not_made.push((object.describe(), error.to_string()));
    }

    /// Takes in what the map knows of damaged pages.
    pub fn lost_pages(&mut self, map: &Map, causes: &BTreeMap<u32, String>) {
        for (page, lost) in &map.lost {
            let unknown = || format!("page {page}: it is not a page of a table or index");
            self.pages.push(LostPage {
                page: *page,
                cause: causes.get(page).cloned().unwrap_or_else(unknown),
                of: lost.object.map(|object| map.objects[object].describe()),
                role: lost.role.name(),
                rowids: lost.rowids(),
                after: lost.after,
                upto: lost.upto,
                loses: loses(map, lost),
            });
        }
    }

    /// Whether everything is in the new database, where it belongs.
    pub fn is_whole(&self) -> bool {
        !self.pages.iter().any(|page| page.loses)
            && self.lost_rows.is_empty()
            && self.set_aside.is_none()
            && self.not_made.is_empty()
            && self.remarks.is_empty()
    }

    /// Tells it.
    pub fn show(&self, args: &SalvageArgs, size: &u64, took: Duration, output: &Output) {
        let lost = self.pages.iter().filter(|page| page.loses).count();
        let what = if args.decrypted { "PLAIN" } else { "sealed under what protects the old one" };
        output.line(format!(
            "{}: {} rows of {} tables salvaged, {what}, {} in {}",
            args.to.shown(),
            self.rows,
            self.tables.len(),
            bytes(*size),
            seconds(took),
        ));
        if let (Some(taken), Some(log)) = (self.taken, &args.lost_log) {
            output.line(format!(
                "  {} commits on {} pages are those of `{}`",
                taken.commits,
                taken.pages,
                log.shown()
            ));
        }
        let lines = self.lines();
        for line in lines.iter().take(LISTED) {
            output.line(format!("  {}", line.shown()));
        }
        if lines.len() > LISTED {
            output.line(format!("  and {} more; `--json` lists all", lines.len() - LISTED));
        }
        match (self.is_whole(), lost) {
            (true, _) => output.line("nothing is lost"),
            (false, 0) => output.line("no page with rows is lost; see above"),
            (false, lost) => output.line(format!(
                "lost pages: {lost}; a backup may have what was on them: see docs/guide/damage.md"
            )),
        }
        self.facts(args, *size, took, output);
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for page in &self.pages {
            let of = page.of.as_deref().unwrap_or("nothing that could be reached");
            let what = match (page.loses, page.role) {
                (_, "leaf" | "page") => {
                    page.rowids.clone().unwrap_or_else(|| "any rows".to_owned())
                }
                (false, "interior") => "its rows were found without it".to_owned(),
                (false, _) if page.of.is_some() => "made anew".to_owned(),
                (false, _) => "it held no rows".to_owned(),
                (true, role) => role.to_owned(),
            };
            let made_anew = page.of.as_deref().is_some_and(|of| of.starts_with("index"));
            let what = if made_anew { "made anew" } else { &what };
            let verdict = if page.loses { "lost" } else { "mended" };
            lines.push(format!("{verdict}: {} (belongs to {of}, {what})", page.cause));
        }
        for row in &self.lost_rows {
            let rowid = row.rowid.map_or_else(String::new, |rowid| format!(" with rowid {rowid}"));
            let table = row.table.as_deref().unwrap_or("of an unknown table");
            let cause = row.missing.map_or_else(
                || "it does not fit its page".to_owned(),
                |page| format!("page {page} has the rest of it"),
            );
            lines.push(format!("lost: a row of `{table}`{rowid} on page {}: {cause}", row.page));
        }
        if let Some((name, rows)) = &self.set_aside {
            lines.push(format!(
                "found: {rows} rows of which it cannot be told whose they are, or which their table does not \
                 take: they are in `{name}`"
            ));
        }
        let not_made = self.not_made.iter();
        lines.extend(not_made.map(|(object, why)| format!("not made: {object}: {why}")));
        lines.extend(self.remarks.iter().map(|remark| format!("lost: {remark}")));
        lines
    }

    fn facts(&self, args: &SalvageArgs, size: u64, took: Duration, output: &Output) {
        let tables: Vec<_> = self
            .tables
            .iter()
            .map(|(name, rows)| serde_json::json!({"name": name, "rows": rows}))
            .collect();
        let pages: Vec<_> = self
            .pages
            .iter()
            .map(|page| {
                serde_json::json!({
                    "page": page.page, "cause": page.cause, "owner": page.of, "role": page.role,
                    "rowids_above": page.after, "rowids_up_to": page.upto, "lost": page.loses,
                })
            })
            .collect();
        let rows: Vec<_> = self
            .lost_rows
            .iter()
            .map(|row| {
                serde_json::json!({
                    "table": row.table, "rowid": row.rowid, "page": row.page,
                    "overflow_page": row.missing,
                })
            })
            .collect();
        let not_made: Vec<_> = self
            .not_made
            .iter()
            .map(|(object, why)| serde_json::json!({"object": object, "cause": why}))
            .collect();
        let (aside, set_aside) = self.set_aside.clone().map_or((None, 0), |(n, r)| (Some(n), r));
        output.facts(&serde_json::json!({
            "database": crate::output::name(&args.database), "to": crate::output::name(&args.to), "encrypted": !args.decrypted,
            "whole": self.is_whole(), "rows": self.rows, "tables": tables, "damaged_pages": pages,
            "lost_rows": rows, "lost_and_found": aside, "rows_set_aside": set_aside,
            "not_made": not_made, "lost_commits": self.remarks,
            "taken_commits": self.taken.map(|taken| taken.commits), "taken_pages": self.taken.map(|taken| taken.pages), "bytes": size,
            "seconds": took.as_secs_f64(),
        }));
    }
}

/// Whether rows, or a part of the schema, may be gone with a page.
fn loses(map: &Map, lost: &Lost) -> bool {
    let Some(object) = lost.object else {
        return !matches!(lost.role, Role::Free | Role::PointerMap);
    };
    let found = &map.objects[object];
    match lost.role {
        Role::Free | Role::PointerMap => false,
        // What lies between the leaves of a table by rowid has no rows.
        Role::Interior => object == SCHEMA || (found.kind == "table" && !found.goes_by_rowid()),
        _ => object == SCHEMA || found.kind == "table",
    }
}
