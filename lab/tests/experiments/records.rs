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
    /// Of a run of one session; every article's figure has its counterpart in the report.
    pub fn of(line: &str, scenario: Option<&str>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let path = elsewhere.path().join("scenario.toml");
        let mut line = line.to_owned();
        if let Some(scenario) = scenario {
            std::fs::write(&path, scenario).unwrap();
            line.push_str(&format!(" --scenario {}", path.display()));
        }
        let mut sessions = sessions(dir.path(), &line);
        let records = sessions.pop().unwrap();
        assert_eq!(sessions.len(), 0, "one session more");
        records.every_article_has_its_counterpart(&dir.path().join("records.jsonl"));
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
            let tiny = self.took_nothing(fact);
            let shown = tiny || lines.all(|line| !line.contains("not measured"));
            assert!(shown, "`{claim}`: {report}");
        }
    }

    /// Whether a statement that the fact is about took less than a millisecond: it has no ratio.
    fn took_nothing(&self, fact: &Value) -> bool {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let sources = list(&fact["ours"]).into_iter().flat_map(|ours| list(&ours["sources"]));
        let patterns: Vec<String> = sources
            .flat_map(|source| list(&source["cells"]))
            .map(|pattern| pattern.as_str().unwrap().replace('*', ""))
            .collect();
        let is_meant = |cell: &str| patterns.iter().any(|pattern| cell.contains(pattern));
        let elapsed = self
            .observed
            .iter()
            .filter(|((cell, _, what), _)| what == "elapsed_s" && is_meant(cell));
        elapsed.flat_map(|(_, rounds)| rounds.values()).any(|seconds| *seconds == 0.0)
    }

    fn add(&mut self, line: &Value) {
        let word = |name: &str| line[name].as_str().unwrap().to_owned();
        let round = line["round"].as_u64().unwrap();
        assert_eq!(line["session"], self.session["session"]);
        let key = (word("cell"), word("side"), word("what"));
        if key.2 == "elapsed_s" {
            let places = self.places.entry((word("cell"), round)).or_default();
            places.push(line["place"].as_u64().unwrap());
        }
        let value = line["value"].as_f64().unwrap();
        let rounds = self.observed.entry(key).or_default();
        assert_eq!(rounds.insert(round, value), None, "twice: {line}");
    }

    pub fn parameter(&self, name: &str) -> &Value {
        let value = &self.session["parameters"][name];
        assert!(!value.is_null(), "no {name}");
        value
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

pub fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// The sessions of a run that succeeds and leaves nothing but its records in `dir`, in their order.
pub fn sessions(dir: &Path, line: &str) -> Vec<Records> {
    let output = lab(dir, line);
    let (shown, err) = said(&output);
    assert!(output.status.success(), "{shown}{err}");
    let left: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["records.jsonl"]);
    let mut sessions: Vec<Records> = Vec::new();
    let text = std::fs::read_to_string(dir.join("records.jsonl")).unwrap();
    for line in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        match line["record"].as_str().unwrap() {
            "session" => sessions.push(Records {
                session: line,
                observed: BTreeMap::new(),
                places: BTreeMap::new(),
                shown: shown.clone(),
            }),
            "observation" => sessions.last_mut().unwrap().add(&line),
            _ => {}
        }
    }
    sessions
}
