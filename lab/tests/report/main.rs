//! Goal: a report says what its records say: every number of the page, in words that fit them.
//!
//! Method: records made up with known ratios, and the committed ones; the page's numbers are read from
//! its elements and recomputed here from the lines of the records, by other code than the lab's. The
//! page is opened in a headless Chromium where one is installed.
#![allow(clippy::unwrap_used)]

mod elements;
mod records;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use elements::{numbers, Element};
use records::{everything, Made};
use serde_json::Value;
use statrs::distribution::{ContinuousCDF, StudentsT};

fn lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab")).args(arguments).output().unwrap()
}

fn text(output: &Output) -> (String, String) {
    let utf8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (utf8(&output.stdout), utf8(&output.stderr))
}

fn page(records: &[&Path]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("report.html");
    let mut arguments = vec!["report", "--out", out.to_str().unwrap()];
    arguments.extend(records.iter().map(|path| path.to_str().unwrap()));
    let output = lab(&arguments);
    assert!(output.status.success(), "{:?}", text(&output));
    std::fs::read_to_string(out).unwrap()
}

fn printed(records: &Path, markdown: bool) -> String {
    let mut arguments = vec!["report", "--all", records.to_str().unwrap()];
    arguments.extend(markdown.then_some("--markdown"));
    let output = lab(&arguments);
    assert!(output.status.success(), "{:?}", text(&output));
    text(&output).0
}

/// What a page may have, of however many records.
const BYTES_MOST: usize = 2_000_000;

/// The sentence of the first screen.
fn sentence(page: &str) -> &str {
    page.split_once("<h1>").unwrap().1.split_once("</h1>").unwrap().0
}

type Key = (String, String, String, String);

/// (session, cell, side, what) to values by round; and the base of each session.
struct Lines {
    values: BTreeMap<Key, BTreeMap<u64, f64>>,
    bases: BTreeMap<String, String>,
}

impl Lines {
    fn read(files: &[&Path]) -> Self {
        let (mut values, mut bases) = (BTreeMap::<Key, BTreeMap<u64, f64>>::new(), BTreeMap::new());
        for file in files {
            for line in std::fs::read_to_string(file).unwrap().lines() {
                let line: Value = serde_json::from_str(line).unwrap();
                let word = |name: &str| line[name].as_str().unwrap_or_default().to_string();
                let mut add = |what: &str, value: &Value| {
                    let key = (word("session"), word("cell"), word("side"), what.to_string());
                    let round = line["round"].as_u64().unwrap();
                    let known =
                        value.as_f64().map(|v| values.entry(key).or_default().insert(round, v));
                    assert_eq!(known.flatten(), None, "twice: {line}");
                };
                match line["record"].as_str().unwrap() {
                    "session" => {
                        let base = line["sides"][0]["side"].as_str().unwrap();
                        bases.insert(word("session"), base.to_string());
                    }
                    "observation" => add(&word("what"), &line["value"]),
                    "run" => {
                        add("ops_per_s", &line["ops_per_s"]);
                        add("cpu_us_per_op", &line["cpu_us_per_op"]);
                        add("p99_us", &line["all"]["p99_us"]);
                    }
                    "work" => {
                        add("elapsed_s", &line["wall_s"]);
                        add("cpu_s", &line["cpu_s"]);
                    }
                    _ => {}
                }
            }
        }
        Self { values, bases }
    }

    fn ratios(&self, element: &Element) -> Option<Vec<f64>> {
        let of = |side: &str| {
            let key = (&element["session"], &element["cell"], side, &element["what"]);
            self.values.get(&(key.0.clone(), key.1.clone(), key.2.to_string(), key.3.clone()))
        };
        let (base, side) = (of(self.bases.get(&element["session"])?)?, of(&element["side"])?);
        let rounds = base.keys().filter(|round| **round > 0 && side.contains_key(round));
        Some(rounds.map(|round| side[round] / base[round]).collect())
    }

    /// The number that an element should hold; nothing for what is not recomputed here.
    fn expected(&self, element: &Element) -> Option<f64> {
        let statistic = element["statistic"].as_str();
        if let Some(round) = statistic.strip_prefix("run-") {
            let part = |name: &str| element[name].clone();
            let key = (part("session"), part("cell"), part("side"), part("what"));
            return self.values.get(&key).map(|rounds| rounds[&round.parse::<u64>().unwrap()]);
        }
        let mut ratios = self.ratios(element)?;
        let n = ratios.len() as f64;
        let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let mean = logs.iter().sum::<f64>() / n;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let half = || {
            let t = StudentsT::new(0.0, 1.0, n - 1.0).unwrap().inverse_cdf(0.975);
            t * (variance / n).sqrt()
        };
        let speed = element["what"].ends_with("_per_s");
        // Of a cost the upper end is that of the longer time.
        let cost = |logs: f64| if speed { (-logs).exp() } else { logs.exp() };
        let turned = if speed { -1.0 } else { 1.0 };
        let below = |half: f64| cost(mean - turned * half);
        ratios.sort_by(f64::total_cmp);
        let of_side = |side: &str| {
            let values = |side: &str| {
                let part = |name: &str| element[name].clone();
                &self.values[&(part("session"), part("cell"), side.into(), part("what"))]
            };
            let both = [values(&self.bases[&element["session"]]), values(&element["side"])];
            let paired = |round: &u64| *round > 0 && both.iter().all(|one| one.contains_key(round));
            let counted = values(side).iter().filter(|(round, _)| paired(round));
            counted.map(|(_, value)| *value).sum::<f64>() / n
        };
        Some(match statistic {
            "base-mean" => of_side(&self.bases[&element["session"]]),
            "side-mean" => of_side(&element["side"]),
            "mean" => mean.exp(),
            "low" => (mean - half()).exp(),
            "high" => (mean + half()).exp(),
            "min" => ratios[0],
            "max" => ratios[ratios.len() - 1],
            "median" => (ratios[(ratios.len() - 1) / 2] + ratios[ratios.len() / 2]) / 2.0,
            "over-plain-time" => cost(mean) - 1.0,
            "over-plain-time-low" => below(half()) - 1.0,
            "over-plain-time-high" => below(-half()) - 1.0,
            "over-encrypted-time" => 1.0 - 1.0 / cost(mean),
            "over-encrypted-time-low" => 1.0 - 1.0 / below(half()),
            "over-encrypted-time-high" => 1.0 - 1.0 / below(-half()),
            "throughput" | "effort" => mean.exp() - 1.0,
            "throughput-low" | "effort-low" => (mean - half()).exp() - 1.0,
            "throughput-high" | "effort-high" => (mean + half()).exp() - 1.0,
            _ => return None,
        })
    }
}

/// Mean and ends of several cells' costs together, which share their rounds: each round gives one number, the mean of its logs.
fn together(cells: &[Vec<f64>]) -> [f64; 3] {
    let n = cells[0].len();
    let of_round =
        |at: usize| cells.iter().map(|ratios| ratios[at].ln()).sum::<f64>() / cells.len() as f64;
    let logs: Vec<f64> = (0..n).map(of_round).collect();
    let mean = logs.iter().sum::<f64>() / n as f64;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
    let t = StudentsT::new(0.0, 1.0, (n - 1) as f64).unwrap().inverse_cdf(0.975);
    let half = t * (variance / n as f64).sqrt();
    [mean.exp(), (mean - half).exp(), (mean + half).exp()]
}

/// Compares all that can be recomputed; returns how many numbers that were.
fn compare(page: &str, files: &[&Path]) -> usize {
    let lines = Lines::read(files);
    let mut compared = 0;
    for element in numbers(page) {
        let found: f64 = element["value"].parse().unwrap();
        if let Some(expected) = lines.expected(&element) {
            let near = (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
            assert!(near, "{element:?}: {expected}");
            compared += 1;
        }
    }
    compared
}

fn committed() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("records");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    files
}

#[test]
fn every_number_of_the_page_is_that_of_the_records() {
    let dir = tempfile::tempdir().unwrap();
    let records = everything(dir.path(), 0.03);
    let page = page(&[&records]);
    let compared = compare(&page, &[&records]);
    assert!(compared > 1000, "{compared}");
    // The first screen: of the mixes without DELAY, FULL and the like left out.
    let lines = Lines::read(&[&records]);
    let cells = ["busy-4/3/3", "busy-10/0/0", "busy-0/5/5"].map(|cell| {
        let of = |side: &str| {
            &lines.values[&("s-3".into(), cell.into(), side.into(), "elapsed_s".into())]
        };
        (1..=10).map(|round| of("sealed")[&round] / of("plain")[&round]).collect::<Vec<f64>>()
    });
    for (name, expected) in ["mean", "low", "high"].iter().zip(together(&cells)) {
        let statistic = match *name {
            "mean" => "headline-mean".to_string(),
            end => format!("headline-mean-{end}"),
        };
        let all = numbers(&page);
        let oltp = |one: &&Element| one["statistic"] == statistic && one["cell"] == "OLTP";
        let found: f64 = all.iter().find(oltp).unwrap()["value"].parse().unwrap();
        assert!((found - expected).abs() < 1e-9, "{name}: {found} {expected}");
    }
    // The warm-up is fifty times as slow: it is shown, and in no figure.
    assert!(numbers(&page).iter().any(|one| one["statistic"] == "run-0"));
}

#[test]
fn committed_records_make_a_page_with_their_own_means() {
    let files = committed();
    let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let all = page(&paths);
    assert!(all.len() <= BYTES_MOST, "{} bytes", all.len());
    assert!(compare(&all, &paths) > 1000);
    // What the lab wrote down when it measured is what the report makes of the runs. A page of one record has all of its own.
    let (mut compared, mut speeds) = (0, 0);
    for file in &files {
        let elements = numbers(&page(&[file]));
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            if line["record"] != "cell" {
                continue;
            }
            let is = |element: &&Element, what: &str| {
                element["session"] == line["session"].as_str().unwrap()
                    && element["cell"] == line["cell"].as_str().unwrap()
                    && element["side"] == line["sides"][1]["side"].as_str().unwrap()
                    && element["what"] == what
                    && element["statistic"] == "mean"
            };
            let value = |element: &Element| element["value"].parse::<f64>().unwrap();
            let speed = elements.iter().find(|one| is(one, "ops_per_s")).map(value);
            let time = elements.iter().find(|one| is(one, "elapsed_s")).map(value);
            speeds += usize::from(speed.is_some());
            let found = speed.or(time.map(|time| 1.0 / time)).unwrap();
            let recorded = line["ratio_mean"]["mean"].as_f64().unwrap();
            // A scan's speed is in megabytes, of which a sealed file has more; its time knows nothing of that.
            let is_scan = line["cell"].as_str().unwrap().starts_with("rekey-");
            let near = if is_scan { 0.03 } else { 1e-6 };
            assert!((found / recorded - 1.0).abs() < near, "{found} {line}");
            compared += 1;
        }
    }
    assert!(compared >= 60 && speeds >= 60, "{compared} {speeds}");
}

#[test]
fn a_record_in_which_we_lose_says_so_first() {
    let dir = tempfile::tempdir().unwrap();
    let lost = page(&[&everything(dir.path(), 0.12)]);
    let said = sentence(&lost);
    assert!(said.starts_with("On this machine: OLTP slower by 1"), "{said}");
    assert!(said.contains("restores slower by 1"), "{said}");
    // What the sentence has no clause for is lost beside it.
    let (_, too) = lost.split_once("Slower too: ").unwrap();
    let too = too.split_once("</p>").unwrap().0;
    for name in ["checks (with a larger cache) +1", "index rebuilds +1", "statistics +1"] {
        assert!(too.contains(name), "{name}: {too}");
    }
    assert!(!said.contains("faster") && !said.contains("no difference"), "{said}");
    assert!(lost.contains("Slowest: ") && !lost.contains("Faster: "));
    let won = page(&[&everything(dir.path(), -0.12)]);
    assert!(sentence(&won).contains("OLTP faster by 1"), "{}", sentence(&won));
    assert!(!won.contains("Slowest: "));
}

#[test]
fn what_was_not_measured_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let made = Made::new().session("1", "opening", &["plain", "sealed"]);
    let records = made.cell("opening", "elapsed_s", 0.001, |_| 0.02).write(dir.path(), "r.jsonl");
    let page = page(&[&records]);
    let said = sentence(&page);
    assert!(said.contains("opening no difference"), "{said}");
    let missing = "Not measured: OLTP, encrypted backups";
    assert!(!said.contains("ot measured") && page.contains(missing), "{said}");
    assert!(page.contains("Not measured in these records"));
    for text in [printed(&records, true), printed(&records, false)] {
        assert!(text.contains(said) && text.contains(missing), "{text}");
    }
}

#[test]
fn plain_against_plain_is_no_difference_or_not_resolved() {
    let dir = tempfile::tempdir().unwrap();
    let mut made = Made::new().session("1", "hummer", &["plain", "again"]);
    for noise in [0.001, 0.01, 0.1] {
        made = made.cell(&format!("noise {noise}"), "elapsed_s", noise, |_| 5.0);
    }
    let page = page(&[&made.write(dir.path(), "r.jsonl")]);
    assert!(page.contains("a difference in 0 of 3 cells.<"), "{page}");
    assert!(page.contains(">no difference<") && page.contains(">not resolved<"));
    assert!(!page.contains(">slower<") && !page.contains(">faster<"));
    // The control is not what a reader asks about.
    assert!(sentence(&page).contains("not measured: OLTP"), "{}", sentence(&page));
}

#[test]
fn a_control_that_shows_a_difference_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let made = Made::new().session("1", "hummer", &["plain", "again"]);
    let slow = |place: usize| if place == 1 { 1.1 } else { 1.0 };
    let records = made.cell("4/3/3", "elapsed_s", 0.001, slow).write(dir.path(), "r.jsonl");
    assert!(page(&[&records]).contains("The control, plain against plain, shows a difference"));
    assert!(printed(&records, false).contains("shows a difference in 1 of 1 cells"));
}

#[test]
fn the_articles_figures_come_out_of_their_own_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let page = page(&[&everything(dir.path(), 0.0636)]);
    let elements = numbers(&page);
    let found = |name: &str| {
        let of = |element: &&Element| {
            element["statistic"] == "article" && element["cell"].starts_with(name)
        };
        let matching: Vec<f64> =
            elements.iter().filter(of).map(|one| one["value"].parse().unwrap()).collect();
        assert!(!matching.is_empty(), "{name}");
        matching
    };
    let near = |found: f64, printed: f64, off: f64| {
        assert!((found - printed).abs() <= off, "{found}, printed {printed}");
    };
    // Their minutes are in the records: 87 and 142, 49 and 59.
    let checks = found("article 4 line 31");
    // Of each four: all algorithms, AES alone in full, AES alone with PHYSICAL_ONLY.
    assert_eq!(checks.len(), 12);
    for (values, printed) in checks.chunks(3).zip([0.387, 0.632, 0.169, 0.204]) {
        for value in values {
            near(*value, printed, 0.0006);
        }
    }
    near(found("article 4 line 19")[0], 0.67, 0.01);
    near(found("article 3 line 147")[0], 0.0636, 0.01);
    near(found("article 0 line 280")[0], 0.0003, 1e-9);
    near(found("article 1 line 35")[0], 21.0, 0.2);
    // 97.5 % of the pages: a slower speed than the times alone would say.
    let [time, speed] = found("article 2 line 44")[..] else { panic!() };
    assert!(time < 0.0 && speed > -time, "{time} {speed}");
    // Value and interval have the sign of the formula: less time that was more is below 0, and so are both ends of it.
    let less = elements.iter().find(|one| one["cell"].starts_with("article 2 line 44: BACKUP"));
    assert!(less.is_some_and(|one| one["value"].starts_with('-')));
    assert!(page.contains(">0 of 8 cases, 0.0 %<"), "a share of eight says so");
}

#[test]
fn names_of_records_stay_text() {
    let dir = tempfile::tempdir().unwrap();
    let bad = "<script>alert(1)</script>\" onload='x' & | `y`";
    let made = Made::new().session(bad, bad, &["plain", bad]);
    let records = made.cell(bad, "elapsed_s", 0.01, |_| 1.0).write(dir.path(), "r.jsonl");
    let page = page(&[&records]);
    assert_eq!(page.matches("<script>").count(), 1, "only the page's own");
    assert!(!page.contains("<script>alert") && !page.contains("\" onload="), "{page}");
    assert!(compare(&page, &[&records]) > 20);
    let markdown = printed(&records, true);
    assert!(!markdown.contains("<script>") && !markdown.contains(" | `y`"), "{markdown}");
}

#[test]
fn the_page_needs_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let page = page(&[&everything(dir.path(), 0.03)]);
    for address in ["http:", "https:", "src=", "url(", "@import", "<link", "href=\"/"] {
        assert!(!page.contains(address), "{address}");
    }
    // Processor time through a run, as the cells named in articles.json have it.
    assert_eq!(page.matches("through one run, busy-4/3/3").count(), 3, "title and two charts");
    assert_eq!(page.matches("through one run, ").count(), 3, "no line through three points");
    assert!(page.contains("dashed: plain; dotted: again; line: sealed"));
    assert!(page.contains("default-src 'none'") && page.contains("prefers-color-scheme: dark"));
}

#[test]
fn markdown_and_terminal_have_the_pages_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let records = everything(dir.path(), 0.03);
    let page = page(&[&records]);
    let (markdown, terminal) = (printed(&records, true), printed(&records, false));
    assert!(markdown.contains(sentence(&page)) && terminal.contains(sentence(&page)));
    let shown: Vec<&str> = page
        .split("<td")
        .filter(|cell| {
            let tag = cell.split_once('>').map_or("", |(tag, _)| tag);
            tag.contains("data-statistic=\"over-plain-time\"") || tag.contains("headline-mean")
        })
        .filter_map(|cell| Some(cell.split_once('>')?.1.split_once("</td>")?.0))
        .collect();
    assert!(shown.len() > 20);
    for number in shown {
        assert!(markdown.contains(&format!("| {number} |")), "{number}");
        assert!(terminal.contains(number), "{number}\n{terminal}");
    }
}

/// Without `--all` what comes first, the goals and the articles' figures: a terminal holds no more.
#[test]
fn what_is_printed_first_fits_a_reader() {
    let dir = tempfile::tempdir().unwrap();
    let records = everything(dir.path(), 0.03);
    let all = printed(&records, false);
    let output = lab(&["report", records.to_str().unwrap()]);
    let short = text(&output).0;
    assert!(short.starts_with(all.lines().next().unwrap()), "{short}");
    assert!(short.contains("The article's figure beside ours") && short.contains("--all"));
    assert!(!short.contains("In three bases") && !short.contains("busy-0/5/5"), "{short}");
    assert!(short.lines().count() * 2 < all.lines().count());
    let output = lab(&["report", "--markdown", records.to_str().unwrap()]);
    let markdown = text(&output).0;
    assert!(
        markdown.contains("| 1:") || markdown.contains("\n## The article's figure"),
        "{markdown}"
    );
    assert!(!markdown.contains("### Every figure"));
}

/// Article 0 promised a chart of the cases in which an encrypted backup was the faster one.
#[test]
fn surprising_cases_are_marked_by_shape_and_word() {
    let dir = tempfile::tempdir().unwrap();
    let choices = ["none", "AES_128", "AES_256"];
    let made = Made::new().with("same_device", true).session("1", "backup-matrix", &choices);
    let records = made
        .cell("COMPRESSION, a to b", "msdb_s", 0.001, |place| [2.0, 1.9, 2.1][place])
        .cell("COMPRESSION, a to b", "elapsed_s", 0.001, |place| [2.5, 2.4, 2.6][place])
        .cell("COMPRESSION, a to b", "compressed_bytes", 0.0, |_| 4e8)
        .write(dir.path(), "r.jsonl");
    let page = page(&[&records]);
    let (_, chart) = page.split_once("The surprising cases: faster with encryption").unwrap();
    let chart = chart.split_once("</figure>").unwrap().0;
    assert!(
        chart.contains("1 of 2 cases") && chart.contains("surprising: faster by 5."),
        "{chart}"
    );
    assert_eq!(chart.matches("surprising: ").count(), 4, "its words and its shape's, twice");
    assert!(chart.contains("Source and target are the same device."), "{chart}");
    assert!(page.contains(">1 of 2 cases, 50.0 %<") && page.contains(">0 of 2 cases, 0.0 %<"));
    // Sizes and times are msdb's, wall time is beside them.
    for said in ["Size by msdb, MB", "Duration by msdb, seconds", ", wall 2.", "(same device)"] {
        assert!(page.contains(said), "{said}");
    }
    assert!(page.contains("s, source and target on the same device"));
    assert!(page.contains("No control in this session."));
}

/// A log backup without ENCRYPTION is sealed, too: nothing of it is called plain or without encryption.
#[test]
fn log_backups_are_compared_with_a_base_that_is_called_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let choices = ["no ENCRYPTION", "AES_128"];
    let made = Made::new().with("same_device", true).session("1", "log-backups", &choices);
    let mut made = made
        .cell("COMPRESSION, a to b", "msdb_s", 0.001, |place| [2.0, 2.1][place])
        .cell("COMPRESSION, a to b", "elapsed_s", 0.001, |place| [2.5, 2.6][place])
        .cell("COMPRESSION, a to b", "compressed_bytes", 0.0, |_| 4e8);
    for cell in ["restore, full", "restore, full and 10 logs, a point", "restore --at, full"] {
        made = made.cell(cell, "elapsed_s", 0.001, |_| 3.0);
    }
    let page = page(&[&made.write(dir.path(), "r.jsonl")]);
    let (_, section) = page.split_once("Log backups: every choice of encryption").unwrap();
    for said in [
        "Size of a log backup by msdb, MB",
        "Duration of a log backup by msdb, seconds",
        "Duration of the restores, seconds of wall time",
        "Restores by RESTORE statements",
        "Restores by pellucid restore --at",
        "Time: AES_128 over no ENCRYPTION.",
        "it is never backed up in clear",
        "restore, full and 10 logs, a point",
    ] {
        assert!(section.contains(said), "{said}");
    }
    assert!(section.contains("over the base") && !section.contains("over plain time"));
}

#[test]
fn a_goal_that_was_missed_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, plain) = ("pellucid zstd AES_256", "pellucid zstd");
    let made = |cost: f64| {
        let made = Made::new().session("1", "backup-speed", &[plain, ours]);
        made.cell("backup", "backup_cpu_s", 0.001, move |place| [1.0, cost][place])
            .cell("backup", "media_bytes", 0.0, |_| 4e8)
            .write(dir.path(), &format!("{cost}.jsonl"))
    };
    let goal = "CPU, s of pellucid zstd AES_256 over pellucid zstd at most 1.03";
    for (cost, verdict, not_reached) in [(1.01, "reached", false), (1.2, "not reached", true)] {
        let records = made(cost);
        let page = page(&[&records]);
        let row = page.split("<tr").find(|row| row.contains(&format!(">backup {goal}<"))).unwrap();
        assert!(row.contains(&format!(">{verdict}<")), "{row}");
        let first = page.split_once("</section>").unwrap().0;
        assert_eq!(
            first.contains(&format!("Not reached: backup {goal}: 1.")),
            not_reached,
            "{first}"
        );
        for text in [printed(&records, true).replace('\\', ""), printed(&records, false)] {
            assert!(text.contains(verdict) && text.contains(goal), "{text}");
            assert_eq!(text.contains("Not reached: "), not_reached, "{text}");
        }
    }
}

#[test]
fn machines_that_differ_by_their_kernel_are_called_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let sides = ["plain", "sealed"];
    let made = |name: &str, kernel: &'static str, experiment: &str| {
        let made = Made::new().under(kernel).session(name, experiment, &sides);
        let cell = if experiment == "opening" { "opening" } else { "busy-4/3/3" };
        made.cell(cell, "elapsed_s", 0.01, |_| 1.0).write(dir.path(), &format!("{name}.jsonl"))
    };
    let (a, b) = (made("1", "6.1", "hummer"), made("2", "6.2", "opening"));
    let page = page(&[&a, &b]);
    let said = sentence(&page);
    assert!(said.starts_with("On 2 x Test CPU, 2 virtual machines: "), "{said}");
}

#[test]
fn records_that_do_not_hold_together_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let made = || {
        Made::new()
            .session("1", "hummer", &["plain", "sealed"])
            .cell("a", "elapsed_s", 0.0, |_| 1.0)
    };
    made().cell("a", "elapsed_s", 0.0, |_| 1.0).write(dir.path(), "twice.jsonl");
    made().write(dir.path(), "one.jsonl");
    made().session("1", "hummer", &["plain"]).write(dir.path(), "same-session.jsonl");
    Made::new().session("1", "hummer", &["plain", "sealed"]).write(dir.path(), "empty.jsonl");
    std::fs::write(path("no-session.jsonl"), r#"{"record":"observation","session":"9","cell":"a","round":1,"place":0,"side":"plain","what":"elapsed_s","value":1.0}"#).unwrap();
    std::fs::write(path("torn.jsonl"), "{\"record\":").unwrap();
    for (name, expected) in [
        ("twice.jsonl", "is there twice"),
        ("same-session.jsonl", "session 1 is in these records twice"),
        ("empty.jsonl", "no runs in these records"),
        ("no-session.jsonl", "no session line of 9"),
        ("torn.jsonl", "torn.jsonl:1"),
    ] {
        let output = lab(&["report", path(name).to_str().unwrap()]);
        assert!(
            !output.status.success() && text(&output).1.contains(expected),
            "{name}: {:?}",
            text(&output)
        );
    }
}

#[test]
fn a_small_scale_and_other_machines_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let sides = ["plain", "sealed"];
    let made = Made::new().at_scale(0.1).session("1", "hummer", &sides);
    let a = made.cell("4/3/3", "elapsed_s", 0.01, |_| 1.0).write(dir.path(), "a.jsonl");
    let made = Made::new().on("Other CPU", "ffffffffffff").session("2", "opening", &sides);
    let b = made.cell("opening", "elapsed_s", 0.01, |_| 1.0).write(dir.path(), "b.jsonl");
    let page = page(&[&a, &b]);
    assert!(
        page.contains("hummer was run at scale 0.1, not at the article&#39;s size")
            || page.contains("hummer was run at scale 0.1, not at the article's size")
    );
    assert!(page.contains("size; by its estimate that takes 2 h 16 min."));
    assert!(
        page.contains("2 machines (or kernels, or builds)") && page.contains("different trees")
    );
    assert!(sentence(&page).starts_with("On 2 machines: "), "{}", sentence(&page));
}

/// The machine counts in ticks of 10 ms: of a run of 20 ms it says anything.
#[test]
fn what_others_used_is_the_mean_of_many_runs() {
    let dir = tempfile::tempdir().unwrap();
    for (name, plain, sealed, said) in
        [("quiet", 95.0, -89.0, None), ("shared", 95.0, -35.0, Some("Others used up to 30 % of"))]
    {
        let made = Made::new().session(name, "opening", &["plain", "sealed"]);
        let of_others = move |place: usize| if place == 0 { plain } else { sealed };
        let records = made
            .cell("opening", "elapsed_s", 0.01, |_| 1.0)
            .cell("opening", "others_percent_cpu", 0.0, of_others)
            .write(dir.path(), &format!("{name}.jsonl"));
        let page = page(&[&records]);
        assert_eq!(page.contains("Others used"), said.is_some(), "{name}");
        assert!(page.contains(said.unwrap_or_default()), "{name}");
    }
}

/// Whoever has read enough closes the pipe.
#[test]
fn a_reader_that_is_gone_is_no_error() {
    let record = committed().into_iter().max_by_key(|path| std::fs::metadata(path).unwrap().len());
    let mut lab = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["report", "--all"])
        .arg(record.unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(lab.stdout.take());
    let output = lab.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.is_empty(), "{told}");
}

#[test]
fn two_records_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let make = |name: &str, cpu, cost: f64| {
        let made =
            Made::new().on(cpu, "0123456789ab").session(name, "hummer", &["plain", "sealed"]);
        let sealed = move |place: usize| if place == 1 { cost } else { 1.0 };
        made.cell("4/3/3", "elapsed_s", 0.002, sealed)
            .cell("4/3/3", "ops_per_s", 0.002, move |place| 1.0 / sealed(place))
            .write(dir.path(), &format!("{name}.jsonl"))
    };
    let (a, b) = (make("a", "Test CPU", 1.0), make("b", "Other CPU", 1.1));
    let compare = |a: &Path, b: &Path| {
        let output = lab(&["compare", a.to_str().unwrap(), b.to_str().unwrap()]);
        assert!(output.status.success(), "{:?}", text(&output));
        text(&output).0
    };
    let differ = compare(&a, &b);
    assert!(differ.contains("processors: A 2 x Test CPU, B 2 x Other CPU"), "{differ}");
    assert_eq!(differ.matches("B slower").count(), 2, "{differ}");
    assert!(differ.contains("+10.0 %"), "{differ}");
    let same = compare(&a, &make("c", "Test CPU", 1.0));
    assert!(same.contains("The same machine, tree, build and conditions."), "{same}");
    assert_eq!(same.matches("no difference").count(), 2, "{same}");
    let other = Made::new().session("9", "whole", &["plain", "sealed"]);
    let other = other.cell("scan", "elapsed_s", 0.0, |_| 1.0).write(dir.path(), "other.jsonl");
    let output = lab(&["compare", a.to_str().unwrap(), other.to_str().unwrap()]);
    assert!(!output.status.success() && text(&output).1.contains("no figure that both have"));
}

#[test]
fn figures_of_documents_are_recomputed() {
    let dir = tempfile::tempdir().unwrap();
    let sealed = |place: usize| if place == 1 { 1.1 } else { 1.0 };
    let made = Made::new().session("1", "hummer", &["plain", "sealed"]);
    made.cell("4/3/3", "elapsed_s", 0.0, sealed)
        .cell("4/3/3-DELETE", "elapsed_s", 0.0, |place| [1.0, 2.0][place])
        .write(dir.path(), "r.jsonl");
    let check = |quoted: &str, entries: &str| {
        let document = dir.path().join("README.md");
        std::fs::write(&document, quoted).unwrap();
        std::fs::create_dir_all(dir.path().join("docs")).unwrap();
        let entries = format!("\"README.md\" = [\n{entries}\n]\n");
        std::fs::write(dir.path().join("docs/figures.toml"), entries).unwrap();
        let root = dir.path().to_str().unwrap();
        let output = lab(&["figures", "--root", root, document.to_str().unwrap()]);
        (output.status.code().unwrap(), text(&output))
    };
    let behind = |of: &str| format!("{{ after = \"It is \", of = \"{of}\" }}");
    let figure = behind("r.jsonl | hummer | 4/3/3 | elapsed_s");
    for right in ["1.100", "1.1", "+10 %", "**+10.0 %** (+10.0 to +10.0)", "1.10 (1.10..1.10)", "1"]
    {
        assert_eq!(check(&format!("It is {right}, so."), &figure).0, 0, "{right}");
    }
    let several = "r.jsonl | hummer | 4* | elapsed_s";
    let without = behind(&format!("{several} | not=*-DELETE"));
    assert_eq!(check("It is 1.100", &without).0, 0);
    assert_eq!(check("It is 1.483", &behind(several)).0, 0, "the geometric mean of both");
    for wrong in ["1.101", "1.2", "+9 %", "−10 %", "1.10 (1.05..1.10)"] {
        let (code, (out, _)) = check(&format!("one\nIt is {wrong}, so."), &figure);
        assert!(
            code == 1 && out.contains("README.md:2: elapsed_s of `4/3/3`: quoted"),
            "{wrong}: {out}"
        );
    }
    let table = "## T\n\n| | x | y |\n|---|---|---|\n| 4/3/3 | +10.0 % | 3 |\n| 4/3/3-DELETE | +100 % | |\n";
    let cells = |more: &str| {
        format!("{{ under = \"T\", {more}, of = \"r.jsonl | hummer | {{1}} | elapsed_s\" }}")
    };
    assert_eq!(check(table, &cells("column = \"x\"")).0, 0);
    assert_eq!(check(table, &cells("row = \"4/3/3-DELETE\"")).0, 0);
    let (code, (out, _)) = check(table, &cells("table = 1"));
    assert!(code == 1 && out.contains("README.md:5: elapsed_s of `4/3/3`: quoted 3;"), "{out}");
    let sourced = "{ after = \"It is \", source = \"r.jsonl\" }";
    assert_eq!(check("It is 95 KiB (94..97)", sourced).0, 0, "a figure that no record has alone");
    let by_hand = "{ after = \"It is \", unrecorded = \"by hand\" }";
    assert_eq!(check("It is +1.0 % (0.0 to +2.0 %)", by_hand).0, 0, "a figure without a record");
    for (quoted, entries, said) in [
        ("nothing", "", "no figure in these documents"),
        ("It is 1", &*behind("r.jsonl | hummer | 9/9/9 | elapsed_s"), "is not in r.jsonl"),
        ("It is 1", &*behind("r.jsonl | hummer"), "names RECORDS"),
        ("It is about", &*figure, "no number"),
        ("It was 1", &*figure, "`It is ` stands there 0 times"),
        ("It is 1. It is 1.1", &*figure, "`It is ` stands there 2 times"),
        ("It is 1", &*behind("r.jsonl | hummer | 4/3/3 | elapsed_s | x"), "is not side="),
        ("It is 1", "{ after = \"It is \" }", "has `of`, `source` or `unrecorded`"),
        ("It is 1", "{ of = \"r.jsonl\" }", "has `after`, or `under`"),
        ("It is 1", "{ after = \"It is \", source = \"gone.jsonl\" }", "there is no `gone.jsonl`"),
        (table, &*cells("row = \"9/9/9\""), "no figure at"),
        (table, &*cells("table = 2"), "there is no table 2 under `T`"),
    ] {
        let (code, (_, error)) = check(quoted, entries);
        assert!(code == 1 && error.contains(said), "{quoted}: {error}");
    }
    let bare = "It is 1.1. And +3.5 % (+0.6 to +6.4 %)";
    let (code, (out, _)) = check(bare, &figure);
    assert!(code == 1 && out.contains("README.md:1: `(+0.6 to +6.4 %)` has no entry"), "{out}");
    std::fs::write(dir.path().join("docs/figures.toml"), "\"gone.md\" = []\n").unwrap();
    let output = lab(&["figures", "--root", dir.path().to_str().unwrap(), "Cargo.toml"]);
    assert!(text(&output).1.contains("`gone.md`, which is not there"), "{output:?}");
}

/// The figures that the project's own documents quote.
#[test]
fn documents_quote_what_the_records_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let entries = std::fs::read_to_string(root.join("docs/figures.toml")).unwrap();
    let documents: toml::Table = entries.parse().unwrap();
    let quoted = ["README.md", "docs/costs.md", "docs/five-articles.md", "docs/design/speed.md"];
    for page in quoted {
        assert!(documents[page].as_array().is_some_and(|page| !page.is_empty()), "{page}");
    }
    let mut arguments = vec!["figures".to_owned(), "--root".into(), root.display().to_string()];
    let pages = documents.keys().map(String::as_str).chain(["lab/README.md"]);
    arguments.extend(pages.map(|page| root.join(page).display().to_string()));
    let output = lab(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(output.status.success(), "{:?}", text(&output));
    for page in arguments.iter().skip(3) {
        assert!(!std::fs::read_to_string(page).unwrap().contains("<!-- figure"), "{page}");
    }
}

/// A real browser: no error on its console, and a DOM with the records' numbers.
#[test]
fn a_browser_shows_the_records_numbers_and_no_error() {
    let names =
        ["chromium", "chromium-browser", "google-chrome", "chrome", "chromium-headless-shell"];
    let runs = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success())
    };
    let Some(browser) = names.into_iter().find(|name| runs(name)) else {
        eprintln!("skipped: no Chromium is installed here (Debian: apt-get install chromium)");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let records = everything(dir.path(), 0.03);
    let out = dir.path().join("report.html");
    // A page that does go wrong is seen to: else the silence of a console says nothing.
    let broken = dir.path().join("broken.html");
    let written = page(&[&records]);
    std::fs::write(&out, &written).unwrap();
    std::fs::write(&broken, written.replacen("<script>", "<script>nothing.here();", 1)).unwrap();
    let open = |page: &Path| {
        let output = Command::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom"])
            .arg(format!("--user-data-dir={}", dir.path().join("profile").display()))
            .arg(format!("file://{}", page.display()))
            .output()
            .unwrap();
        let (dom, log) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        assert!(output.status.success(), "{log}");
        let console: Vec<String> =
            log.lines().filter(|line| line.contains("CONSOLE")).map(String::from).collect();
        (dom, console)
    };
    assert_eq!(open(&broken).1.len(), 1, "a console with an error");
    let (dom, console) = open(&out);
    assert_eq!(console, Vec::<String>::new());
    assert!(dom.contains("<button type=\"button\">"), "the script made titles into buttons");
    assert_eq!(numbers(&dom), numbers(&written));
    assert!(compare(&dom, &[&records]) > 1000);
}
