//! Goal: what docs/guide/sql-walkthrough.md shows is what happens.
//!
//! Method: what is typed in the page's ```text blocks is typed again, each machine's sessions in an instance of its own;
//! what is shown has to be what the page shows, `...` standing for any text or any lines (support/page.rs). The page's
//! folders and host names stand for those of the test. The greeting of the prompt is left aside: a script has none.

use std::path::Path;

use crate::support::{said, said_with, Place, PELLUCID};

/// A command line with what is typed into it, and all that is shown.
#[derive(Debug, Default)]
struct Session {
    line: usize,
    host: String,
    command: String,
    typed: Vec<String>,
    shown: Vec<String>,
}

/// The sessions of a page, over blocks and the text between them.
fn sessions(page: &str) -> Vec<Session> {
    let mut found: Vec<Session> = Vec::new();
    let mut inside = false;
    for (index, text) in page.lines().enumerate() {
        if text.starts_with("```") {
            inside = text == "```text";
            continue;
        }
        if !inside {
            continue;
        }
        let command = text.split_once("$ ").filter(|(host, _)| is_host(host));
        let typed = text.split_once('>').filter(|(number, _)| number.parse::<u32>().is_ok());
        match (command, typed) {
            (Some((host, command)), _) => found.push(Session {
                line: index + 1,
                host: host.to_owned(),
                command: command.to_owned(),
                ..Session::default()
            }),
            (None, Some((_, typed))) => {
                let session = found.last_mut().expect("a session before what is typed");
                session.typed.push(typed.trim_start().to_owned());
            }
            _ => found
                .last_mut()
                .expect("a session before what is shown")
                .shown
                .push(text.to_owned()),
        }
    }
    found
}

fn is_host(text: &str) -> bool {
    text.strip_prefix("db").is_some_and(|number| number.parse::<u32>().is_ok())
}

#[test]
fn the_walkthrough_does_what_it_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/sql-walkthrough.md");
    let sessions = sessions(&std::fs::read_to_string(path).unwrap());
    assert!(sessions.iter().map(|session| session.typed.len()).sum::<usize>() > 60);
    let place = Place::new();
    let share = place.path("share");
    std::fs::create_dir(&share).unwrap();
    let name = host_name();
    for session in &sessions {
        let home = place.path(&session.host).display().to_string();
        let own = |text: &str| {
            text.replace("/mnt/share", &share.display().to_string())
                .replace("/var/lib/pellucid", &home)
        };
        let mut command = place.command("/bin/sh");
        let program = Path::new(PELLUCID).parent().unwrap();
        command.env("PATH", format!("{}:/usr/bin:/bin", program.display()));
        command
            .env("PELLUCID_HOME", &home)
            .args(["-c", &format!("{} 2>&1", own(&session.command))]);
        let answer = match session.typed.is_empty() {
            true => said(&mut command),
            false => said_with(&mut command, &own(&(session.typed.join("\n") + "\n"))),
        };
        let shown: Vec<String> = answer
            .stdout
            .replace(&home, "/var/lib/pellucid")
            .replace(&share.display().to_string(), "/mnt/share")
            .replace(&format!("Server {name},"), &format!("Server {},", session.host))
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect();
        let greeting = session.shown.first().filter(|line| line.contains("GO executes"));
        assert_eq!(greeting.is_some(), !session.typed.is_empty(), "line {}", session.line);
        let expected = &session.shown[usize::from(greeting.is_some())..];
        assert!(
            crate::guide::page::matches(expected, &shown),
            "line {}\n--- the page says\n{}\n--- it printed\n{}",
            session.line,
            expected.join("\n"),
            shown.join("\n")
        );
    }
}

/// As messages name this machine.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    name.trim_end().to_owned()
}
