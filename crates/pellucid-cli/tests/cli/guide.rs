//! Goal: each step of the guide does what the guide says, word for word.
//!
//! Method: the ```console blocks of every page are run from top to bottom, each page on fresh machines (support/machine.sh:
//! this system under an overlay in memory, in namespaces of its own), by root and by an ordinary user, with the
//! package that packaging/deb.sh makes of this build. What a command prints is compared with what the page shows
//! (support/page.rs says how). A command that fails has to be shown to fail: by an error or by `echo $?`.
//! Needs root and namespaces: elsewhere a line says so, and there is no verdict.

#[path = "../support/machine.rs"]
mod machine;
#[path = "../support/page.rs"]
pub mod page;

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use machine::Machine;
use page::{matches, steps};

/// At a time; a machine has little to do but wait.
const PAGES_AT_ONCE: usize = 4;

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The index first, then the pages by name.
fn pages() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(source().join("docs/guide"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    found.sort();
    found.insert(0, source().join("docs/guide.md"));
    found
}

/// What machines are made of.
struct Workshop {
    directory: tempfile::TempDir,
    built: PathBuf,
    package: PathBuf,
}

impl Workshop {
    /// None where there can be no machines.
    fn new() -> Option<Self> {
        if let Some(obstacle) = machine::obstacle() {
            println!("{obstacle}: no machine can be made here, nothing is tested");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(&directory, PermissionsExt::from_mode(0o755)).unwrap();
        let built = Path::new(env!("CARGO_BIN_EXE_pellucid")).parent().unwrap().to_owned();
        // Uncompressed, as far as this dpkg knows how: packing takes longer than all steps.
        let made = Command::new(source().join("packaging/deb.sh"))
            .arg(directory.path())
            .env("PELLUCID_BIN", &built)
            .env("DPKG_DEB_COMPRESSOR_TYPE", "none")
            .output()
            .unwrap();
        assert!(made.status.success(), "packaging/deb.sh: {made:?}");
        let package = String::from_utf8(made.stdout).unwrap().trim_end().into();
        Some(Self { directory, built, package })
    }

    /// Runs a page; how many blocks and steps it has.
    ///
    /// # Errors
    /// The first step that does something else, with its line.
    fn run(&self, name: &str, text: &str) -> Result<(usize, usize), String> {
        let (blocks, steps) = steps(text).map_err(|error| format!("{name}:{error}"))?;
        let network = tempfile::tempdir_in(self.directory.path()).unwrap();
        std::fs::set_permissions(&network, PermissionsExt::from_mode(0o755)).unwrap();
        let mut machines: HashMap<&str, Machine> = HashMap::new();
        // All at once, so that a file can be sent to one that has not been used yet.
        for step in &steps {
            machines.entry(&step.machine).or_insert_with(|| {
                let source = source();
                Machine::start(&step.machine, network.path(), &source, &self.package, &self.built)
            });
        }
        for (index, step) in steps.iter().enumerate() {
            let machine = machines.get_mut(step.machine.as_str()).unwrap();
            let answer = machine.ask(step.root, &step.command);
            let shown = answer.status == 0
                || answer.lines.iter().any(|line| line.to_lowercase().contains("error"))
                || steps.get(index + 1).is_some_and(|next| next.command == "echo $?");
            if !shown || !matches(&step.expected, &answer.lines) {
                return Err(format!(
                    "{name}:{}: {}\n--- the page says\n{}\n--- it printed\n{}\n--- exit status {}",
                    step.line,
                    step.command,
                    step.expected.join("\n"),
                    answer.lines.join("\n"),
                    answer.status
                ));
            }
        }
        Ok((blocks, steps.len()))
    }
}

#[test]
fn each_step_does_what_the_guide_says() {
    let Some(workshop) = Workshop::new() else { return };
    let begun = Instant::now();
    let only = std::env::var("PAGE").unwrap_or_default();
    let waiting: Mutex<Vec<PathBuf>> = Mutex::new(pages());
    waiting.lock().unwrap().retain(|path| path.to_string_lossy().contains(&only));
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..PAGES_AT_ONCE {
            scope.spawn(|| loop {
                let Some(path) = waiting.lock().unwrap().pop() else { return };
                let name = path.strip_prefix(source()).unwrap().display().to_string();
                let text = std::fs::read_to_string(&path).unwrap();
                let verdict = workshop.run(&name, &text);
                done.lock().unwrap().push((name, verdict));
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort();
    let (mut blocks, mut steps, mut failures) = (0, 0, Vec::new());
    for (name, verdict) in done {
        match verdict {
            Ok((of_page, steps_of_page)) => {
                println!("{name}: {of_page} blocks, {steps_of_page} commands");
                (blocks, steps) = (blocks + of_page, steps + steps_of_page);
            }
            Err(failure) => failures.push(failure),
        }
    }
    println!("{blocks} blocks, {steps} commands in {:.1} s", begun.elapsed().as_secs_f64());
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
    assert!(!only.is_empty() || steps > 100, "the guide has lost its steps");
}

#[test]
fn a_step_that_does_something_else_is_noticed() {
    let Some(workshop) = Workshop::new() else { return };
    let page = |step: &str| format!("# A page\n\n```console\n{step}\n```\n");
    let run =
        |step: &str| workshop.run("page", &page(step)).map_err(|said| said.replace('\n', "|"));
    let good = "# id -un; hostname\nroot\nserver\nold$ id -un; pwd; echo x > a; scp a new:b\nada\n/home/ada\nnew$ cat b\nx\n\
                # ls /nothing; (exit 3)\n...nothing...\n# echo $?\n3";
    assert_eq!(run(good), Ok((1, 5)));
    for (step, told) in [
        ("# echo one\ntwo", "page:4: echo one|--- the page says|two|--- it printed|one"),
        ("# echo one", "page:4:"),
        ("# true\none", "page:4:"),
        ("# true\n# echo one\n...two...", "page:5:"),
        ("# false", "exit status 1"),
        ("# no-such-command\n...\n# true", "exit status 127"),
        ("one", "page:4: a block begins with a prompt"),
    ] {
        let said = run(step).expect_err(step);
        assert!(said.contains(told), "{step}: {said}");
    }
    let host = Path::new("/etc/pellucid-guide-was-here");
    assert_eq!(run(&format!("# touch {0}; ls {0}\n{0}", host.display())), Ok((1, 1)));
    assert!(!host.exists(), "a step changed this system");
}

/// As far as one can without systemd: its own check of the unit, where the package put it.
#[test]
fn the_unit_is_one_that_systemd_takes() {
    let Some(workshop) = Workshop::new() else { return };
    if !Path::new("/usr/bin/systemd-analyze").exists() {
        println!("no systemd-analyze here, nothing is tested");
        return;
    }
    let system = "/usr/lib/systemd/system/pellucid";
    let units = [
        "/usr/share/doc/pellucid/examples/pellucid.service",
        &format!("{system}-policy.service"),
        &format!("{system}-policy.timer"),
        &format!("{system}-backup@app.service"),
        &format!("{system}-backup@app.timer"),
        &format!("{system}-archive@app.service"),
        &format!("{system}-standby@app.service"),
        &format!("{system}-broker.service"),
    ];
    let verify = units.map(|unit| format!("# systemd-analyze verify {unit}")).join("\n");
    // Installed, and nothing is enabled.
    let page =
        format!("# dpkg -i pellucid_*.deb\n...\n{verify}\n# find /etc/systemd -name 'pellucid*'");
    assert_eq!(workshop.run("unit", &format!("```console\n{page}\n```\n")), Ok((1, 10)));
}

#[test]
fn the_pages_name_each_other_rightly() {
    let index = std::fs::read_to_string(source().join("docs/guide.md")).unwrap();
    for path in pages() {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy();
        assert!(name == "guide.md" || index.contains(&format!("](guide/{name})")), "{name}");
        for link in text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            let file = link.split('#').next().unwrap();
            let there = file.is_empty() || path.parent().unwrap().join(file).exists();
            assert!(link.contains("://") || there, "{}: {link}", path.display());
        }
    }
}

#[test]
fn any_text_and_any_lines_are_understood() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for (expected, got, yes) in [
        ("a\n...\nd", "a\nb\nc\nd", true),
        ("a\n...\nd", "a\nd", true),
        ("...", "", true),
        ("a...c", "abc", true),
        ("a...c...e", "abcde", true),
        ("a...a", "a", false),
        ("a...c", "abcd", false),
        ("...b", "ab", true),
        ("a\n...", "b\na", false),
        ("a", "a\nb", false),
    ] {
        assert_eq!(matches(&lines(expected), &lines(got)), yes, "{expected:?} {got:?}");
    }
}
