//! Machines for the steps of the guide: this system under an overlay, in namespaces of its own; see machine.sh.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::time::{Duration, Instant};

const NAMESPACES: [&str; 5] = ["--mount", "--uts", "--ipc", "--net", "--pid"];
/// A step that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(300);
const END: &str = "-- end of the step:";

/// Why machines cannot be made here; none if they can.
pub fn obstacle() -> Option<String> {
    let id = Command::new("id").arg("-u").output().ok()?;
    if String::from_utf8_lossy(&id.stdout).trim() != "0" {
        return Some("not root".to_owned());
    }
    let tried = Command::new("unshare").args(NAMESPACES).args(["--fork", "true"]).output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    }
}

/// What a command said, line by line, and its exit status.
#[derive(Debug)]
pub struct Answer {
    pub lines: Vec<String>,
    pub status: i32,
}

/// A machine with a shell of root's and one of an ordinary user's, `ada`. It ends with this value.
pub struct Machine {
    child: Child,
    root: Shell,
    ada: Shell,
}

impl Machine {
    /// Starts it; `network` is what the machines of a page share.
    pub fn start(name: &str, network: &Path, source: &Path, package: &Path, built: &Path) -> Self {
        let mut arguments = NAMESPACES.map(OsStr::new).to_vec();
        arguments.extend(["--fork", "--kill-child=KILL", "bash"].map(OsStr::new));
        let script = source.join("crates/pellucid-cli/tests/support/machine.sh");
        arguments.extend([script.as_os_str(), OsStr::new(name)]);
        arguments.extend([network, source, package, built].map(Path::as_os_str));
        let (child, mut root) = Shell::start("unshare", &arguments, network);
        let ready = root.ask("true");
        assert_eq!(ready.status, 0, "the machine `{name}` does not start: {ready:?}");
        // The first process inside, as seen from here: `unshare` has no other child.
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let inside = std::fs::read_to_string(children).expect("the children of `unshare`");
        let mut arguments = ["--target", inside.trim()].map(OsStr::new).to_vec();
        arguments.extend(NAMESPACES.map(OsStr::new));
        let ada = ["--", "setpriv", "--reuid=ada", "--regid=ada", "--init-groups", "--reset-env"];
        arguments.extend(ada.map(OsStr::new));
        arguments.extend(["bash", "--noprofile", "--norc"].map(OsStr::new));
        let (_, mut ada) = Shell::start("nsenter", &arguments, network);
        let variables = "export PATH=/usr/local/bin:/usr/bin:/bin LC_ALL=C.UTF-8 TERM=dumb";
        let ready = ada.ask(&format!("{variables}; cd"));
        assert_eq!(ready.status, 0, "`ada` does not get into `{name}`: {ready:?}");
        Self { child, root, ada }
    }

    /// Has root or ada type `command`.
    pub fn ask(&mut self, root: bool, command: &str) -> Answer {
        if root { &mut self.root } else { &mut self.ada }.ask(command)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // With it goes everything inside.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Shell {
    input: ChildStdin,
    output: Receiver<String>,
    network: std::path::PathBuf,
}

impl Shell {
    /// The shell that `program` with `arguments` ends in.
    fn start(program: &str, arguments: &[&OsStr], network: &Path) -> (Child, Self) {
        let mut command = Command::new("sh");
        // One stream, in the order in which things are said.
        command.args(["-c", "exec \"$@\" 2>&1", "sh", program]).args(arguments);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a shell");
        let input = child.stdin.take().unwrap();
        let output = listen(child.stdout.take().unwrap());
        (child, Self { input, output, network: network.to_owned() })
    }

    /// The command lies in a file, so that nothing of the shell's input is its input, and `$?` is the last step's.
    fn ask(&mut self, command: &str) -> Answer {
        std::fs::write(self.network.join(".step"), format!("{command}\n")).unwrap();
        let line = format!(
            ". /run/network/.step </dev/null; s=$?; printf '\\n%s %d\\n' '{END}' \"$s\"; (exit \"$s\")\n"
        );
        // A shell that is gone shows below, with what it said last.
        let _ = self.input.write_all(line.as_bytes());
        let mut lines = Vec::new();
        let last = Instant::now() + LIMIT;
        let status = loop {
            match self.output.recv_timeout(last.saturating_duration_since(Instant::now())) {
                Ok(line) => match line.strip_prefix(END) {
                    Some(status) => break status.trim().parse().unwrap_or(-1),
                    None => lines.push(line.trim_end().to_owned()),
                },
                Err(error) => {
                    lines.push(format!("(no answer: {error})"));
                    break -1;
                }
            }
        };
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        Answer { lines, status }
    }
}

fn listen(reader: ChildStdout) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(reader).split(b'\n') {
            let Ok(line) = line else { return };
            if send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    receive
}
