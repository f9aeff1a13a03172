//! Shows that the campaign can fail: with each rule taken away, some case of the first ones comes out of its class.

use pellucid::sabotage::Sabotage;
use pellucid_tests::processes::{built, child};

/// The rules that the campaign is about, the last ones of version 2 alone.
const RULES: [Sabotage; 12] = [
    Sabotage::Authentication,
    Sabotage::Pins,
    Sabotage::RetiredKeys,
    Sabotage::OlderHeader,
    Sabotage::FramePage,
    Sabotage::LostLog,
    Sabotage::ClearSets,
    Sabotage::LogVersion,
    Sabotage::LogRun,
    Sabotage::LogSector,
    Sabotage::LogSynced,
    Sabotage::LogRecovery,
];
/// So many of them are of both versions.
const OF_BOTH: usize = 7;
/// Cases in which each has to be caught.
const CASES: u64 = 5000;

#[test]
fn each_rule_that_is_taken_away_is_missed() {
    for (at, rule) in RULES.into_iter().enumerate() {
        // Half of those of both versions are tried with the one, and half with the other.
        let version = if at < OF_BOTH { 1 + at % 2 } else { 2 };
        let ended = child("cases")
            .env("PELLUCID_SABOTAGE", rule.name())
            .env("PELLUCID_FORMAT", version.to_string())
            .env("PELLUCID_ADVERSARY_CASES", CASES.to_string())
            .env("PELLUCID_ADVERSARY_SHOWN", "1")
            .env("PELLUCID_ADVERSARY_PLACE", "")
            .env("PELLUCID_BIN", built("pellucid").parent().unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        let caught = said.lines().find(|line| line.starts_with("case "));
        assert!(
            !ended.status.success() && caught.is_some(),
            "`{}` is taken away, and {CASES} cases do not miss it: {said}{}",
            rule.name(),
            String::from_utf8_lossy(&ended.stderr)
        );
        println!("without `{}`: {}", rule.name(), caught.unwrap_or_default());
    }
    println!("RESULT {} - - - - -", RULES.len());
}
