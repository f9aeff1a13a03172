//! The tables of what was recorded: single runs, sessions and machines.

use std::collections::{BTreeMap, BTreeSet};

use super::{Column, Entry, Origin, Table};
use crate::record::Session;
use crate::report::figures::sampled;
use crate::report::reading::Material;
use crate::report::text;

/// Every run as it was, the warm-up too.
pub fn raw(id: &str, material: &Material, scenario: &str) -> Table {
    let of_scenario: BTreeSet<&str> = material
        .sessions
        .iter()
        .filter(|session| session.scenario == scenario)
        .map(|session| session.session.as_str())
        .collect();
    let mut whats: Vec<&str> = Vec::new();
    let mut order = Vec::new();
    let mut runs: BTreeMap<_, BTreeMap<&str, f64>> = BTreeMap::new();
    for one in &material.observations {
        if !of_scenario.contains(one.session.as_str()) || sampled(&one.what) {
            continue;
        }
        if !whats.contains(&one.what.as_str()) {
            whats.push(&one.what);
        }
        let key = (one.session.as_str(), one.cell.as_str(), one.round, one.side.as_str());
        let run = runs.entry(key).or_insert_with(|| {
            order.push((key, one.place));
            BTreeMap::new()
        });
        run.insert(&one.what, one.value);
    }
    let mut table =
        Table::new(format!("{id}-runs"), "Every run", &["cell\t", "round", "place", "side\t"]);
    table
        .columns
        .extend(whats.iter().map(|what| Column { title: text::quantity(what), numeric: true }));
    for (key, place) in order {
        let (session, cell, round, side) = key;
        let said = if round == 0 { "warm-up".to_string() } else { round.to_string() };
        let mut row: Vec<Entry> =
            vec![cell.into(), said.into(), place.to_string().into(), side.into()];
        row.extend(whats.iter().map(|what| {
            let entry = runs[&key].get(what).map(|value| {
                let origin = Origin {
                    session: session.into(),
                    cell: cell.into(),
                    side: side.into(),
                    what: (*what).into(),
                    statistic: format!("run-{round}"),
                };
                Entry::number(text::value(what, *value), *value, origin)
            });
            Entry::or_dash(entry)
        }));
        table.rows.push(row);
    }
    table
}

/// When, what and with which tree.
pub fn sessions(sessions: &[Session]) -> Table {
    let columns = [
        "session\t",
        "started\t",
        "experiment\t",
        "sides\t",
        "rounds",
        "warm-up",
        "seed",
        "tree\t",
        "asked for\t",
    ];
    let mut table = Table::new("sessions".into(), "Sessions", &columns);
    for session in sessions {
        let side = |side: &crate::record::SideDescription| {
            let algorithm = side.algorithm.as_ref().map(|name| format!(" {name}"));
            let sha = side.extension_sha256.as_ref();
            let sha = sha.map(|sha| format!(", extension {}", &sha[..sha.len().min(12)]));
            let change = side.change.as_ref().map(|change| format!(", {change}"));
            let parts = [algorithm, sha, change].into_iter().flatten().collect::<String>();
            format!("{}: {}{parts}", side.side, side.kind)
        };
        let mut asked: Vec<String> =
            session.parameters.iter().map(|(name, value)| format!("{name} {value}")).collect();
        asked.extend(session.size.map(|size| format!("size {size}")));
        if let Some(setting) = &session.setting {
            let (page, cache) = (setting.page_size_bytes, setting.cache_kib);
            asked.push(format!(
                "journal {}, pages of {page} bytes, cache {cache} KiB",
                setting.journal
            ));
        }
        table.rows.push(vec![
            session.session.as_str().into(),
            text::moment(session.started_unix_s).into(),
            session.scenario.as_str().into(),
            session.sides.iter().map(side).collect::<Vec<_>>().join("; ").into(),
            session.rounds.to_string().into(),
            session.warm_up_rounds.to_string().into(),
            session.seed.to_string().into(),
            session.machine.tree.as_deref().unwrap_or("unknown").into(),
            asked.join(", ").into(),
        ]);
    }
    table
}

/// Each machine once, with what of it decides.
pub fn machines(sessions: &[Session]) -> Table {
    let columns = [
        "machine\t",
        "processor features\t",
        "memory, MiB",
        "system\t",
        "file system\t",
        "fdatasync p50, us\t",
        "fdatasync p99, us\t",
        "SQLite\t",
        "build\t",
    ];
    let mut table = Table::new("machines".into(), "Machines", &columns);
    let mut known: Vec<([String; 4], Vec<&Session>)> = Vec::new();
    for session in sessions {
        let name = machine_name(session);
        match known.iter_mut().find(|(seen, _)| *seen == name) {
            Some((_, list)) => list.push(session),
            None => known.push((name, vec![session])),
        }
    }
    for (name, list) in known {
        let machine = &list[0].machine;
        let spread = |of: fn(&Session) -> f64| {
            let values = || list.iter().map(|session| of(session));
            let (low, high) =
                (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
            if low == high {
                format!("{low:.0}")
            } else {
                format!("{low:.0} to {high:.0}")
            }
        };
        let [cpu, system, file_system, build] = name;
        table.rows.push(vec![
            cpu.into(),
            machine.cpu_flags.join(" ").into(),
            machine.memory_mib.to_string().into(),
            system.into(),
            file_system.into(),
            spread(|session| session.machine.fdatasync.p50_us).into(),
            spread(|session| session.machine.fdatasync.p99_us).into(),
            machine.sqlite.as_str().into(),
            build.into(),
        ]);
    }
    table
}

/// What sessions of one machine agree in, without the tree.
pub fn machine_name(session: &Session) -> [String; 4] {
    let [cpu, kernel, disk, build, _] = session.machine.identity();
    [cpu, kernel, disk, build]
}
