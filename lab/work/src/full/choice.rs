//! Which pieces of `lab full` somebody chose, by name or by group.

use pellucid_lab_measure::error::{Error, Result};

use crate::piece::Piece;
use crate::registry;

/// Names that stand for several.
const GROUPS: [&str; 4] = ["all", "measurements", PEERS, "experiments"];
/// The same work on other products, and backups beside other programs.
pub const PEERS: &str = "peers";

/// The pieces that `names` name, or all, each once and in their order.
///
/// # Errors
/// [`Error::Invalid`] for a name that none has.
pub fn choose<S: AsRef<str>>(names: &[S]) -> Result<Vec<&'static Piece>> {
    let pieces = registry::pieces();
    let known =
        |name: &str| GROUPS.contains(&name) || pieces.iter().any(|piece| piece.name == name);
    if let Some(unknown) = names.iter().map(AsRef::as_ref).find(|name| !known(name)) {
        let names: Vec<_> = pieces.iter().map(|piece| piece.name).collect();
        return Err(Error::invalid(format!(
            "no piece `{unknown}`; there are: {}, and {}",
            names.join(" "),
            GROUPS.join(", ")
        )));
    }
    let wanted = |piece: &&Piece| {
        let group = if piece.is_experiment() { "experiments" } else { "measurements" };
        let is = |name: &str| match name {
            PEERS => piece.is_of_peers(),
            name => [piece.name, group, "all"].contains(&name),
        };
        names.is_empty() || names.iter().any(|name| is(name.as_ref()))
    };
    Ok(pieces.into_iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_chosen_by_name_and_by_group() {
        let names = |chosen: &[&str]| -> Result<Vec<&str>> {
            Ok(choose(chosen)?.into_iter().map(|piece| piece.name).collect())
        };
        assert_eq!(names(&["hummer", "cells", "hummer"]).unwrap(), ["cells", "hummer"]);
        assert_eq!(names(&[]).unwrap(), names(&["all"]).unwrap());
        let (measurements, experiments) =
            (names(&["measurements"]).unwrap(), names(&["experiments"]).unwrap());
        assert_eq!(measurements.len() + experiments.len(), registry::pieces().len());
        let peers = ["cells-peers", "whole-peers", "scan-peers", "backup-speed"];
        assert_eq!(names(&["peers"]).unwrap(), peers);
        assert!(experiments.contains(&"acceleration") && measurements.contains(&"backup-speed"));
        let error = names(&["cels"]).unwrap_err().to_string();
        assert!(error.contains("`cels`") && error.contains("scan-peers"), "{error}");
    }
}
