//! A token of SoftHSM's in a place of its own, and the plugin that asks it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{extension, said, write_script, Place, Said, PELLUCID};

/// The user's PIN.
pub const PIN: &str = "4711-user-pin";
const OFFICER: &str = "0815-officer-pin";
const MODULES: [&str; 2] =
    ["/usr/lib/softhsm/libsofthsm2.so", "/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so"];

/// A token `T` with the AES key `smk`.
pub struct Token<'a> {
    place: &'a Place,
    module: &'static str,
}

/// Why there can be no token here.
pub fn obstacle() -> Option<&'static str> {
    let has = |path: &str| Path::new(path).exists();
    let root = rustix::process::geteuid().is_root();
    match () {
        () if !root => Some("SKIP: only what is root's is a plugin, and this is not root"),
        () if !MODULES.iter().any(|module| has(module)) => Some("SKIP: there is no softhsm2"),
        () if !has("/usr/bin/softhsm2-util") => Some("SKIP: there is no softhsm2-util"),
        () if !has("/usr/bin/pkcs11-tool") => Some("SKIP: there is no opensc"),
        () => None,
    }
}

impl<'a> Token<'a> {
    /// Makes it; none, with a line that says why, where there can be none.
    pub fn make(place: &'a Place) -> Option<Self> {
        if let Some(obstacle) = obstacle() {
            assert!(std::env::var_os("CI").is_none(), "{obstacle}: .ci/deps installs it");
            println!("{obstacle}: nothing is tested");
            return None;
        }
        let module = MODULES.into_iter().find(|module| Path::new(module).exists())?;
        std::fs::create_dir_all(place.path("tokens")).unwrap();
        let conf = format!(
            "directories.tokendir = {}\nobjectstore.backend = file\nlog.level = ERROR\n",
            place.path("tokens").display()
        );
        std::fs::write(place.path("softhsm.conf"), conf).unwrap();
        plugin(place, "pkcs11");
        let token = Self { place, module };
        token.settings("");
        token.tool("softhsm2-util --init-token --free --label T --so-pin OFFICER --pin PIN");
        token.pkcs11("--keygen --key-type AES:32 --label smk --sensitive");
        token.pin(PIN);
        Some(token)
    }

    /// The plugin's settings, with `more` lines.
    pub fn settings(&self, more: &str) {
        let text = format!(
            "module = {}\nenvironment = SOFTHSM2_CONF={}\n{more}\n",
            self.module,
            self.place.path("softhsm.conf").display()
        );
        std::fs::write(self.place.path("plugins/pkcs11.conf"), text).unwrap();
    }

    /// The token's library.
    pub fn module(&self) -> &'static str {
        self.module
    }

    /// Puts `pin` into the file that keys name.
    pub fn pin(&self, pin: &str) {
        self.place.secret("pin", format!("{pin}\n").as_bytes());
    }

    /// A key of the token's.
    pub fn key(&self, object: &str) -> String {
        format!(
            "pkcs11:token=T;object={object}?pin-source=file:{}",
            self.place.path("pin").display()
        )
    }

    /// A tool of the token's.
    pub fn tool(&self, words: &str) -> String {
        let words = words.replace("OFFICER", OFFICER).replace("PIN", PIN);
        let mut words = words.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words).env("SOFTHSM2_CONF", self.place.path("softhsm.conf"));
        said(&mut command).succeeded()
    }

    /// pkcs11-tool, logged in.
    pub fn pkcs11(&self, words: &str) -> String {
        self.tool(&format!(
            "pkcs11-tool --module {} --token-label T --login --pin PIN {words}",
            self.module
        ))
    }

    /// Every byte that the token keeps.
    pub fn bytes(&self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut waiting: Vec<PathBuf> = vec![self.place.path("tokens")];
        while let Some(path) = waiting.pop() {
            match path.is_dir() {
                true => {
                    waiting.extend(std::fs::read_dir(path).unwrap().map(|one| one.unwrap().path()))
                }
                false => all.extend(std::fs::read(path).unwrap()),
            }
        }
        all
    }
}

/// An instance with `app.db`, and a passphrase and a password for its service master key.
pub fn place() -> Place {
    let place = Place::new();
    place.secret("phrase", b"correct horse battery");
    place.secret("password", b"a Pa55word of some length");
    place.sealed("app.db", &[]);
    place
}

/// SQLite's shell with the extension, in the place, which can ask the place's own plugins.
pub fn shell(place: &Place, words: &[&str]) -> Command {
    let mut sqlite = place.command("/usr/bin/sqlite3");
    sqlite.env("PELLUCID_PLUGIN_PATH", place.path("plugins"));
    sqlite.args([":memory:", &format!(".load {}", extension(place))]).args(words);
    sqlite
}

/// Opens `app.db` in so many processes at once, and reads its 200 rows in each.
pub fn open_at_once(place: &Place, many: usize) {
    let begin = |_| {
        let mut one = shell(place, &[".open app.db", "SELECT count(*) FROM t"]);
        one.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let began: Vec<_> = (0..many).map(begin).collect();
    for one in began {
        let done = one.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "200", "{done:?}");
    }
}

/// Puts a plugin that was built into the place's own directory of plugins.
pub fn plugin(place: &Place, name: &str) {
    let file = format!("pellucid-plugin-{name}");
    std::fs::create_dir_all(place.path("plugins")).unwrap();
    let built = Path::new(PELLUCID).with_file_name(&file);
    assert!(built.exists(), "{} is not built", built.display());
    place.copy_program(&built, &format!("plugins/{file}"));
}

/// A plugin that is a script: `$line` is the question, `$id` its id.
pub fn script(place: &Place, name: &str, body: &str) {
    std::fs::create_dir_all(place.path("plugins")).unwrap();
    let text = format!(
        "#!/bin/bash\nread -r line\nid=${{line#*\\\"id\\\":\\\"}}; id=${{id%%\\\"*}}\n{body}\n"
    );
    write_script(&place.path(&format!("plugins/pellucid-plugin-{name}")), &text);
}

/// `pellucid` with the place's own plugins.
pub fn pellucid(place: &Place, words: &[&str]) -> Said {
    said(command(place).args(words))
}

/// The same, to be run.
pub fn command(place: &Place) -> Command {
    let mut command = place.command(PELLUCID);
    command.env("PELLUCID_PLUGIN_PATH", place.path("plugins"));
    command.env("PELLUCID_SERVICE_PASSPHRASE_FILE", place.path("phrase"));
    command
}
