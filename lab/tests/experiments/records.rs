//! The records of an experiment, as a test looks at them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

pub struct Records {
    pub session: Value,
    /// Values by cell, side and quantity, and by round.
    observed: BTreeMap<(String, String, String), BTreeMap<u64, f64>>,
    /// Places by cell and round, in the order of the records.
    pub places: BTreeMap<(String, u64), Vec<u64>>,
    /// What was printed.
    pub shown: String,
}

/// Runs the lab; its databases are made in `dir`, and its records.
pub fn lab(dir: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(line.split_whitespace())
        .args(["--dir".as_ref(), dir.as_os_str()])
        .args(["--records".as_ref(), dir.join("records.jsonl").as_os_str()])
        .output()
        .unwrap()
}

impl Records {
    /// Of a run that succeeds, leaves nothing but its records, and whose every article's figure has a counterpart in the
    /// report.
    pub fn of(line: &str, scenario: Option<&str>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let path = elsewhere.path().join("scenario.toml");
        let mut line = line.to_owned();
        if let Some(scenario) = scenario {
            std::fs::write(&path, scenario).unwrap();
            line.push_str(&format!(" --scenario {}", path.display()));
        }
        let output = lab(dir.path(), &line);
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{out}{err}");
        let left: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["records.jsonl"]);
        let path = dir.path().join("records.jsonl");
        let records = Self { shown: out.into(), ..Self::read(&path) };
        records.every_article_has_its_counterpart(&path);
        records
    }

    /// No figure of an article that this experiment is for is without ours beside it.
    fn every_article_has_its_counterpart(&self, path: &Path) {
        let report = Command::new(env!("CARGO_BIN_EXE_lab"))
            .args(["report".as_ref(), path.as_os_str(), "--markdown".as_ref()])
            .output()
            .unwrap();
        let report = String::from_utf8(report.stdout).unwrap();
        let articles: Value = serde_json::from_str(include_str!("../../articles.json")).unwrap();
        let facts = articles["facts"].as_array().unwrap();
        for fact in facts.iter().filter(|fact| fact["experiment"] == self.session["scenario"]) {
            let claim = fact["claim"].as_str().unwrap();
            let mut lines = report.lines().filter(|line| line.contains(claim)).peekable();
            assert!(lines.peek().is_some(), "`{claim}` is not in the report: {report}");
            // A statement that took less than a millisecond has no ratio.
            let tiny = claim == "SELECT and DML" && self.has_nothing();
            let shown = tiny || lines.all(|line| !line.contains("not measured"));
            assert!(shown, "`{claim}`: {report}");
        }
    }

    fn has_nothing(&self) -> bool {
        let elapsed = self.observed.iter().filter(|(key, _)| key.2 == "elapsed_s");
        elapsed.flat_map(|(_, rounds)| rounds.values()).any(|seconds| *seconds == 0.0)
    }

    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let (mut session, mut observed, mut places) =
            (Value::Null, BTreeMap::<_, BTreeMap<_, _>>::new(), BTreeMap::<_, Vec<_>>::new());
        for line in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            let word = |name: &str| line[name].as_str().unwrap().to_owned();
            let number = |name: &str| line[name].as_u64().unwrap();
            match line["record"].as_str().unwrap() {
                "session" => session = line.clone(),
                "observation" => {
                    let key = (word("cell"), word("side"), word("what"));
                    let value = line["value"].as_f64().unwrap();
                    if key.2 == "elapsed_s" {
                        let round = (word("cell"), number("round"));
                        places.entry(round).or_default().push(number("place"));
                    }
                    let rounds = observed.entry(key).or_default();
                    assert_eq!(rounds.insert(number("round"), value), None, "twice: {line}");
                }
                _ => {}
            }
        }
        Self { session, observed, places, shown: String::new() }
    }

    pub fn rounds(&self, cell: &str, side: &str, what: &str) -> &BTreeMap<u64, f64> {
        let key = (cell.to_owned(), side.to_owned(), what.to_owned());
        self.observed.get(&key).unwrap_or_else(|| panic!("no {key:?}"))
    }

    pub fn value(&self, cell: &str, side: &str, what: &str, round: u64) -> f64 {
        self.rounds(cell, side, what)[&round]
    }

    pub fn last(&self, cell: &str, side: &str, what: &str) -> f64 {
        *self.rounds(cell, side, what).last_key_value().unwrap().1
    }

    pub fn cells(&self) -> BTreeSet<&str> {
        self.observed.keys().map(|(cell, ..)| &**cell).collect()
    }

    pub fn sides(&self) -> Vec<&str> {
        let sides = self.session["sides"].as_array().unwrap();
        sides.iter().map(|side| side["side"].as_str().unwrap()).collect()
    }
}
