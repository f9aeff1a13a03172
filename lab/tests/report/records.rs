//! Small records made up for the tests: not measured, and never committed as such.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{json, Value};

pub struct Made {
    text: String,
    session: String,
    sides: Vec<String>,
    cpu: &'static str,
    tree: &'static str,
    kernel: &'static str,
    scale: f64,
    parameters: Vec<(&'static str, Value)>,
}

impl Made {
    pub fn new() -> Self {
        Self {
            text: String::new(),
            session: String::new(),
            sides: Vec::new(),
            cpu: "Test CPU",
            tree: "0123456789ab",
            scale: 1.0,
            kernel: "6.1",
            parameters: Vec::new(),
        }
    }

    pub fn on(mut self, cpu: &'static str, tree: &'static str) -> Self {
        (self.cpu, self.tree) = (cpu, tree);
        self
    }

    pub fn under(mut self, kernel: &'static str) -> Self {
        self.kernel = kernel;
        self
    }

    /// A parameter of the sessions that follow.
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.parameters.push((name, value.into()));
        self
    }

    pub fn at_scale(mut self, scale: f64) -> Self {
        self.scale = scale;
        self
    }

    /// What follows is of this session.
    pub fn session(mut self, name: &str, experiment: &str, sides: &[&str]) -> Self {
        let described: Vec<Value> = sides
            .iter()
            .map(|side| {
                json!({"side": side, "kind": side, "algorithm": null, "extension": null,
                       "extension_sha256": null, "library": null, "engine": null,
                       "file_bytes": null, "page_size_bytes": null})
            })
            .collect();
        let mut line = json!({
            "record": "session", "schema": 2, "session": name, "started_unix_s": 1_795_288_145,
            "scenario": experiment, "sides": described, "rounds": 10, "warm_up_rounds": 1,
            "seed": 2008, "limit": null, "setting": null, "size": null,
            "parameters": {"scale": self.scale, "whole_estimate_s": 8_130.0},
            "machine": {
                "cpu": self.cpu, "cores": 2, "cpu_flags": ["aes", "hypervisor"], "memory_mib": 1024,
                "kernel": self.kernel, "file_system": "ext4", "device": "/dev/vda",
                "fdatasync": {"operations": 50, "p50_us": 100.0, "p99_us": 200.0, "max_us": 300.0},
                "load_average": "0", "sqlite": "3.54.1", "sqlite_source": "", "tree": self.tree,
                "lab_profile": "release", "environment": []
            }
        });
        for (name, value) in &self.parameters {
            line["parameters"][name] = value.clone();
        }
        writeln!(self.text, "{line}").unwrap();
        self.session = name.into();
        self.sides = sides.iter().map(|side| (*side).into()).collect();
        self
    }

    /// Ten rounds and a warm-up that must be in no figure; `value` is of a side's place and a round,
    /// and gets a deterministic noise of `noise`.
    pub fn cell(
        mut self,
        cell: &str,
        what: &str,
        noise: f64,
        value: impl Fn(usize) -> f64,
    ) -> Self {
        for round in 0..=10_usize {
            for (place, side) in self.sides.iter().enumerate() {
                let bytes = cell.bytes().chain(what.bytes()).map(usize::from).sum::<usize>();
                let wave = ((bytes + round * 7 + place * 13) as f64 * 1.7).sin();
                let warm_up = if round == 0 { 50.0 } else { 1.0 };
                let line = json!({
                    "record": "observation", "session": self.session, "cell": cell,
                    "round": round, "place": place, "side": side, "what": what,
                    "value": value(place) * (1.0 + noise * wave) * warm_up,
                });
                writeln!(self.text, "{line}").unwrap();
            }
        }
        self
    }

    pub fn write(self, dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, self.text).unwrap();
        path
    }
}

/// All experiments that the first screen has a line for; `loss` is what encryption adds to each.
pub fn everything(dir: &Path, loss: f64) -> PathBuf {
    let choices = ["none", "AES_128", "AES_192", "AES_256", "TRIPLE_DES_3KEY"];
    let choice = move |place: usize| match place {
        0 => 1.0,
        4 => 22.0,
        n => 1.0 + loss * (0.8 + 0.1 * n as f64),
    };
    let sides = ["plain", "again", "sealed"];
    let sealed = move |place: usize| if place == 2 { 1.0 + loss } else { 1.0 };
    let mut made = Made::new().session("s-0", "backup-matrix", &choices);
    for (cell, size) in
        [("COMPRESSION, disk to disk", 4e8), ("NO_COMPRESSION, disk to disk", 1.59e9)]
    {
        let grown = move |place: usize| size * if place == 0 { 1.0 } else { 1.0003 };
        made = made
            .cell(cell, "media_bytes", 0.0, grown)
            .cell(cell, "elapsed_s", 0.004, move |place| 9.0 * choice(place))
            .cell(cell, "msdb_s", 0.004, move |place| 8.9 * choice(place))
            .cell(&format!("restore, {cell}"), "elapsed_s", 0.006, move |place| {
                7.0 * choice(place)
            });
    }
    made = made.session("s-1", "backup-overhead", &choices).cell(
        "BACKUP",
        "elapsed_s",
        0.005,
        move |place| 12.0 * choice(place),
    );
    made = made.session("s-2", "maintenance", &sides);
    for cell in [
        "CHECKDB",
        "BACKUP",
        "RESTORE",
        "REBUILD PK_Application_People",
        "UPDATE STATISTICS OrderLines",
    ] {
        made = made
            .cell(cell, "elapsed_s", 0.01, move |place| 3.0 * sealed(place))
            .cell(cell, "cpu_s", 0.02, move |place| 2.0 * sealed(place))
            .cell(cell, "pages", 0.0, |place| if place == 2 { 390_000.0 } else { 400_000.0 });
    }
    made = made.session("s-3", "hummer", &sides);
    for cell in ["busy-4/3/3", "busy-10/0/0", "busy-0/5/5", "busy-4/3/3-FULL", "elapsed-4/3/3"] {
        made = made
            .cell(cell, "elapsed_s", 0.01, move |place| 60.0 * sealed(place))
            .cell(cell, "ops_per_s", 0.01, move |place| 16_000.0 / sealed(place))
            .cell(cell, "workers_percent_cpu", 0.01, move |place| 80.0 * sealed(place));
        // Of the one cell enough seconds for a line, of the others too few.
        for second in 1..=if cell == "busy-4/3/3" { 12 } else { 3 } {
            let what = format!("workers_second_{second}_percent_cpu");
            made = made.cell(cell, &what, 0.01, |_| 80.0);
        }
    }
    // Sides and cells in the words of the experiment.
    let on = |hardware: f64, software: f64| {
        move |place: usize| if place == 0 { hardware } else { software }
    };
    made.session("s-4", "acceleration", &["hardware", "software"])
        .cell("encrypt AES_128, 256 MiB", "elapsed_s", 0.01, on(62.0, 100.0))
        .cell("decrypt AES_192, 256 MiB", "elapsed_s", 0.01, on(33.0, 100.0))
        .cell("CHECKDB plain, 256 MiB", "elapsed_s", 0.0, on(49.0, 87.0))
        .cell("CHECKDB AES_128, 256 MiB", "elapsed_s", 0.0, on(59.0, 142.0))
        .cell("CHECKDB PHYSICAL_ONLY plain, 256 MiB", "elapsed_s", 0.0, on(4.9, 8.7))
        .cell("CHECKDB PHYSICAL_ONLY AES_128, 256 MiB", "elapsed_s", 0.0, on(5.9, 14.2))
        .session("s-5", "opening", &sides)
        .cell("opening", "elapsed_s", 0.01, move |place| 0.02 * sealed(place))
        .write(dir, "everything.jsonl")
}
