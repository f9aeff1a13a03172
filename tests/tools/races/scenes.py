"""The commands that are stopped, each with the files that it works on in the directory of another user's."""
import os
import subprocess
from dataclasses import dataclass, field

USER = 12345
FOREIGN = 54321
# Rows of the user's databases, and of the files of root's.
MARKER = "a-row-in-clear"
SECRET = "a-secret-of-root"

PLAIN = "sqlite3 plain.db \"CREATE TABLE t(a); INSERT INTO t SELECT '" + MARKER + "' || value FROM generate_series(1, 300)\"\n"
PLAIN = PLAIN.replace("SELECT '" + MARKER + "' || value FROM generate_series(1, 300)",
                      "WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 300) "
                      "SELECT '" + MARKER + "' || value FROM n")
SEALED = PLAIN + "mv plain.db app.db\npellucid -q encrypt app.db\n"
BACKUP = SEALED + "pellucid -q backup app.db --to app.bak\n"
READ = "SELECT count(*) || ' rows' FROM t"


@dataclass
class Scene:
    """A command, what lies there before, and what it may do."""
    name: str
    before: str
    command: list
    # Where rows may lie in clear afterwards: before the command, or because it was asked for.
    clear: bool = False
    # What a run that ends with 0 has said.
    says: str = ""
    environment: dict = field(default_factory=dict)


PROGRAM = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
for row in database.execute(sys.argv[2]):
    print(*row)
database.close()
"""


def under_shim(statement, *options, database="app.db"):
    """A program under the shim. Not SQLite's shell, which looks at a file by its name itself, and waits for a FIFO."""
    return ["pellucid", "run", *options, "--", "python3", "-I", "-S", "-c", PROGRAM, "{d}/" + database, statement]


def sql(statement):
    """A statement of SQL Server's."""
    return ["pellucid", "sql", "-b", "-Q", statement]


WRITE = "INSERT INTO t VALUES('" + MARKER + "')"
# A log with whole commits behind a damaged frame.
DAMAGED = SEALED + rf"""
pellucid run -- sqlite3 app.db <<'END'
PRAGMA journal_mode=WAL;
PRAGMA wal_autocheckpoint=0;
{WRITE};
{WRITE};
{WRITE};
.shell cp app.db kept.db; cp app.db-wal kept.db-wal
END
mv kept.db app.db; mv kept.db-wal app.db-wal; rm -f app.db-shm
printf x | dd of=app.db-wal bs=1 seek=600 conv=notrunc status=none
"""
LOSING = DAMAGED + "pellucid run -- sqlite3 app.db 'SELECT 1 FROM t LIMIT 1'\n"

# An encryption that was killed right after its commit point: sector 0 is the container's, which lies beside the database.
HALF = PLAIN + """
cp plain.db app.db; pellucid -q encrypt app.db; mv app.db app.db-pellucid
{ head -c 512 app.db-pellucid; tail -c +513 plain.db; } > app.db; rm plain.db
"""
# A transaction that was killed while its journal was hot.
HOT = SEALED + r"""
pellucid run -- python3 - <<'END' || true
import os, sqlite3
database = sqlite3.connect("app.db", isolation_level=None)
database.execute("PRAGMA cache_size=1")
database.execute("BEGIN")
database.execute("UPDATE t SET a = a || hex(randomblob(2000))")
os._exit(0)
END
test -s app.db-journal
"""

SCENES = [
    Scene("encrypt", PLAIN, ["pellucid", "encrypt", "{d}/plain.db", "--passphrase-file", "{home}/pass"], clear=True),
    Scene("decrypt", SEALED, ["pellucid", "-y", "decrypt", "{d}/app.db"], clear=True),
    Scene("restore", BACKUP, ["pellucid", "restore", "{d}/app.bak", "--to", "{d}/new.db"]),
    Scene("restore-replace", BACKUP, ["pellucid", "restore", "{d}/app.bak", "--to", "{d}/app.db", "--replace"]),
    Scene("restore-unreadable", BACKUP + "head -c 300000 /dev/zero > app.db\nprintf log > app.db-wal\n",
          ["pellucid", "restore", "{d}/app.bak", "--to", "{d}/app.db", "--replace"]),
    Scene("restore-left-log", BACKUP + "rm app.db\nprintf log > new.db-wal\n",
          ["pellucid", "restore", "{d}/app.bak", "--to", "{d}/new.db", "--replace"]),
    Scene("backup", SEALED, ["pellucid", "backup", "{d}/app.db", "--to", "{d}/new.bak"]),
    Scene("backup-append", BACKUP, ["pellucid", "backup", "{d}/app.db", "--append", "--to", "{d}/app.bak"]),
    Scene("backup-overwrite", BACKUP, ["pellucid", "backup", "{d}/app.db", "--overwrite", "--to", "{d}/app.bak"]),
    Scene("verify", BACKUP, ["pellucid", "verify", "{d}/app.bak", "--open", "--check"]),
    Scene("header", BACKUP, ["pellucid", "header", "{d}/app.bak"]),
    Scene("check", SEALED, ["pellucid", "check", "{d}/app.db"]),
    Scene("status", SEALED, ["pellucid", "status", "{d}/app.db"]),
    Scene("salvage", SEALED, ["pellucid", "salvage", "{d}/app.db", "--to", "{d}/new.db"]),
    Scene("rekey", SEALED, ["pellucid", "rekey", "{d}/app.db"]),
    Scene("rewrap", SEALED, ["pellucid", "rewrap", "{d}/app.db", "--certificate", "other"]),
    Scene("upgrade", SEALED, ["pellucid", "upgrade", "{d}/app.db"]),
    Scene("accept", SEALED + "cp app.db two.db\n", ["pellucid", "accept", "{d}/two.db"]),
    Scene("accept-log", LOSING, ["pellucid", "accept", "{d}/app.db"]),
    Scene("doctor", SEALED, ["pellucid", "doctor"]),
    Scene("read", SEALED, under_shim(READ), says="300 rows"),
    Scene("write", SEALED, under_shim(WRITE)),
    Scene("write-log", SEALED + "pellucid run -- sqlite3 app.db 'PRAGMA journal_mode=WAL'\n", under_shim(WRITE)),
    Scene("new", "", under_shim("CREATE TABLE t AS SELECT '" + MARKER + "'", "--encrypt-new", database="new.db")),
    Scene("copy", SEALED, under_shim("VACUUM INTO '{d}/new.db'")),
    Scene("damaged-log", DAMAGED, under_shim(WRITE)),
    Scene("sql-backup", BACKUP, sql("BACKUP DATABASE app TO DISK = '{d}/new.bak'")),
    Scene("sql-script", "printf 'SELECT 1\\n' > script.sql\n", ["pellucid", "sql", "-b", "-i", "{d}/script.sql", "-o", "{d}/out.txt"]),
    Scene("laying", HALF, under_shim(READ), says="300 rows", clear=True),
    # The user can take the journal away, and so decide what is read (SECURITY.md, "What remains", 4).
    Scene("hot-journal", HOT, under_shim(READ)),
    Scene("keep-container", SEALED, ["pellucid", "-y", "decrypt", "--keep-container", "{d}/app.db"], clear=True),
    Scene("protector", SEALED, ["pellucid", "protector", "add", "{d}/app.db", "--new-passphrase-file", "{home}/pass"]),
    Scene("differential", BACKUP, ["pellucid", "backup", "{d}/app.db", "--differential", "--base", "{d}/app.bak", "--to", "{d}/new.bak"]),
    Scene("mend", BACKUP, ["pellucid", "restore", "{d}/app.bak", "--to", "{d}/app.db", "--page", "2"]),
    Scene("sql-create", "", sql("CREATE DATABASE new ON (FILENAME = '{d}/new.db')")),
    Scene("sql-restore", BACKUP, sql("RESTORE DATABASE new FROM DISK = '{d}/app.bak' WITH MOVE 'app' TO '{d}/new.db'")),
    Scene("instance-export", "", ["pellucid", "instance", "export", "--to", "{d}/keys", "--password-file", "{home}/pass"]),
    Scene("cert-export", "", ["pellucid", "cert", "export", "other", "--cert-file", "{d}/other.crt", "--key-file", "{d}/other.key", "--password-file", "{home}/pass"]),
]


# What is no command of ours and follows names: with it the tool has to find something.
CARELESS = Scene("careless", PLAIN, ["bash", "-c", "cat {d}/plain.db > {d}/copy && chmod 644 {d}/copy"], clear=True)


def find(name):
    """The scene of that name."""
    return next(scene for scene in [*SCENES, CARELESS] if scene.name == name)


class Place:
    """The directories of one scene: root's keyring and secrets, and the user's folder, kept as they were and laid out anew."""

    def __init__(self, base, scene, programs, library):
        self.base, self.scene = base, scene
        self.live = os.path.join(base, "live")
        self.kept = os.path.join(base, "kept")
        self.home, self.root = os.path.join(self.live, "home"), os.path.join(self.live, "root")
        self.user, self.folder = os.path.join(self.live, "u"), os.path.join(self.live, "u/d")
        self.environment = {
            "PATH": f"{programs}:{os.environ['PATH']}", "HOME": self.home, "PELLUCID_HOME": os.path.join(self.home, "keys"),
            "PELLUCID_LIB": library, "PELLUCID_EXTENSION": library, "LC_ALL": "C", "TMPDIR": self.home, **scene.environment,
        }

    def make(self):
        """Makes all files once."""
        for path, mode in ((self.live, 0o755), (self.home, 0o700), (self.root, 0o700), (self.user, 0o755), (self.folder, 0o755)):
            os.makedirs(path, mode)
            os.chmod(path, mode)
        text = (SECRET + "\n") * 600
        with open(os.path.join(self.root, "text"), "w") as file:
            file.write(text)
        self.shell("pellucid -q init\npellucid -q cert create other\nprintf 'a long enough passphrase' > pass; chmod 600 pass\n", self.home)
        self.shell(f"sqlite3 database \"CREATE TABLE t(a); INSERT INTO t VALUES('{SECRET}')\"\n"
                   "cp database sealed\npellucid -q encrypt sealed\n", self.root)
        self.shell(self.scene.before, self.folder)
        for name in os.listdir(self.root):
            os.chmod(os.path.join(self.root, name), 0o600)
        for path in [self.user, self.folder] + [entry.path for entry in os.scandir(self.folder)]:
            os.chown(path, USER, USER, follow_symlinks=False)
        subprocess.run(["cp", "-a", self.live, self.kept], check=True)

    def shell(self, text, where):
        """Runs the commands that make something."""
        done = subprocess.run(["bash", "-e", "-c", text], cwd=where, env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{self.scene.name}: cannot be made: {done.stdout}{done.stderr}")

    def lay_out(self):
        """Puts everything back as it was made."""
        subprocess.run(f"chattr -f -i {self.live} 2>/dev/null; rm -rf {self.live} && cp -a {self.kept} {self.live}", shell=True, check=True)
