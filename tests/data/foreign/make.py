#!/usr/bin/env python3
"""Makes the databases of other encrypting SQLites that tests read, by the programs themselves, and cases.tsv.

  make.py SQLCIPHER_LIBRARY MULTIPLE_CIPHERS_LIBRARY SQLCIPHER_3_PROGRAM [NAME...]

The libraries are shared ones that take the place of libsqlite3.so.0 in Python (LD_PRELOAD): target/peers/sqlcipher/libsqlite3.so.0
and target/peers/aegis/libsqlite3.so.0, which lab/peers/build.sh builds (SQLCipher 4.20.0; SQLite3 Multiple Ciphers 2.3.5). The
program is Debian 12's (`apt-get install sqlcipher`, 3.4.1). With names it makes those files alone. Each run makes other bytes,
because salts are random.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORD = "correct horse"
KEY = "00112233445566778899aabbccddeeffffeeddccbbaa99887766554433221100"
HMAC_KEY = "c0ffee00c0ffee11c0ffee22c0ffee33c0ffee44c0ffee55c0ffee66c0ffee77"
SALT = "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf"


def raw(digits: str) -> str:
    return f"x'{digits}'"


def key(secret: str) -> str:
    return 'PRAGMA key = "' + secret + '"' if secret.startswith("x'") else f"PRAGMA key = '{secret}'"


# (name, program, statements before the key, secret, statements after the key, arguments of `pellucid encrypt`, kind)
# kind: content, small, log (more.sql is in the log), refused
C, M, D = "sqlcipher", "sqlite3mc", "debian"
CASES = [
    ("sc4", C, [], WORD, [], "", "content"),
    ("sc4-utf8-passphrase", C, [], "pässwörd 鍵", [], "", "content"),
    ("sc4-page-1024", C, [], WORD, ["cipher_page_size = 1024"], "", "content"),
    ("sc4-page-8192", C, [], WORD, ["cipher_page_size = 8192"], "", "content"),
    ("sc4-page-65536", C, [], WORD, ["cipher_page_size = 65536"], "", "small"),
    ("sc4-page-2048-no-hmac", C, [], WORD, ["cipher_use_hmac = OFF", "cipher_page_size = 2048"], "--hmac none", "content"),
    ("sc4-iter-1000", C, [], WORD, ["kdf_iter = 1000"], "--kdf-iter 1000", "content"),
    ("sc4-iter-1000-sha256", C, [], WORD, ["kdf_iter = 1000", "cipher_kdf_algorithm = PBKDF2_HMAC_SHA256"], "--kdf-iter 1000", "content"),
    ("sc4-kdf-sha256", C, [], WORD, ["cipher_kdf_algorithm = PBKDF2_HMAC_SHA256"], "--kdf-algorithm sha256", "content"),
    ("sc4-kdf-sha1-hmac-sha512", C, [], WORD, ["cipher_kdf_algorithm = PBKDF2_HMAC_SHA1"], "--kdf-algorithm PBKDF2_HMAC_SHA1", "content"),
    ("sc4-hmac-sha256", C, [], WORD, ["cipher_hmac_algorithm = HMAC_SHA256"], "", "content"),
    ("sc4-hmac-sha1", C, [], WORD, ["cipher_hmac_algorithm = HMAC_SHA1"], "--hmac sha1", "content"),
    ("sc4-no-hmac", C, [], WORD, ["cipher_use_hmac = OFF"], "--hmac none", "content"),
    ("sc4-raw-32", C, [], raw(KEY), [], "", "content"),
    ("sc4-raw-48", C, [], raw(KEY + SALT), [], "", "content"),
    ("sc4-raw-80", C, [], raw(KEY + HMAC_KEY + SALT), [], "", "content"),
    ("sc4-header", C, [], WORD, ["cipher_plaintext_header_size = 32", f"cipher_salt = \"x'{SALT}'\""], f"--plaintext-header 32 --salt {SALT}", "content"),
    ("sc4-header-raw-48", C, [], raw(KEY + SALT), ["cipher_plaintext_header_size = 32"], "--plaintext-header 32", "content"),
    ("sc4-utf16-vacuum", C, [], WORD, ["encoding = 'UTF-16le'", "auto_vacuum = INCREMENTAL"], "", "content"),
    ("sc4-as-3", C, [], WORD, ["cipher_compatibility = 3"], "", "content"),
    ("sc4-as-2", C, [], WORD, ["cipher_compatibility = 2"], "--compatibility 2", "content"),
    ("sc4-as-1", C, [], WORD, ["cipher_compatibility = 1"], "--compatibility 1", "content"),
    ("sc4-log", C, [], WORD, [], "", "log"),
    ("sc4-log-page-1024", C, [], WORD, ["cipher_page_size = 1024"], "", "log"),
    ("sc3-debian", D, [], WORD, [], "", "content"),
    ("sc3-debian-raw", D, [], raw(KEY), [], "", "content"),
    ("sc3-debian-page-4096", D, [], WORD, ["cipher_page_size = 4096"], "", "content"),
    ("sc3-debian-no-hmac", D, [], WORD, ["cipher_use_hmac = OFF"], "--hmac none", "content"),
    ("mc-chacha20", M, ["cipher = 'chacha20'"], WORD, [], "", "content"),
    ("mc-chacha20-iter-1000", M, ["cipher = 'chacha20'", "kdf_iter = 1000"], WORD, [], "--kdf-iter 1000", "content"),
    ("mc-chacha20-raw", M, ["cipher = 'chacha20'"], raw(KEY), [], "", "content"),
    ("mc-chacha20-page-16384", M, ["cipher = 'chacha20'", "page_size = 16384"], WORD, [], "--cipher chacha20", "small"),
    ("mc-chacha20-page-512", M, ["cipher = 'chacha20'", "page_size = 512"], WORD, [], "", "content"),
    ("mc-chacha20-header", M, ["cipher = 'chacha20'", "plaintext_header_size = 32"], raw(KEY + SALT), [], "--plaintext-header 32", "content"),
    ("mc-sqleet", M, ["cipher = 'chacha20'", "legacy = 1"], WORD, [], "", "content"),
    ("mc-sqlcipher", M, ["cipher = 'sqlcipher'"], WORD, [], "", "content"),
    ("mc-sqlcipher-as-4", M, ["cipher = 'sqlcipher'", "legacy = 4"], WORD, [], "", "content"),
    ("mc-sqlcipher-as-3", M, ["cipher = 'sqlcipher'", "legacy = 3"], WORD, [], "", "content"),
    ("mc-aes128cbc", M, ["cipher = 'aes128cbc'"], WORD, [], "", "content"),
    ("mc-aes128cbc-legacy", M, ["cipher = 'aes128cbc'", "legacy = 1"], WORD, [], "", "content"),
    ("mc-aes256cbc", M, ["cipher = 'aes256cbc'"], WORD, [], "--cipher aes256cbc", "content"),
    ("mc-aes256cbc-legacy", M, ["cipher = 'aes256cbc'", "legacy = 1"], WORD, [], "", "content"),
    ("mc-rc4", M, ["cipher = 'rc4'"], WORD, [], "", "content"),
    ("mc-ascon128", M, ["cipher = 'ascon128'"], WORD, [], "", "refused"),
    ("mc-aegis", M, ["cipher = 'aegis'"], WORD, [], "", "content"),
    ("mc-aegis-128l", M, ["cipher = 'aegis'", "algorithm = 1"], WORD, [], "--cipher aegis", "content"),
    ("mc-aegis-log", M, ["cipher = 'aegis'"], WORD, [], "", "log"),
    ("mc-chacha20-log", M, ["cipher = 'chacha20'"], WORD, [], "", "log"),
    ("mc-sqlcipher-log", M, ["cipher = 'sqlcipher'"], WORD, [], "", "log"),
    ("mc-aes256cbc-log", M, ["cipher = 'aes256cbc'"], WORD, [], "", "log"),
]

# In a process of its own, which ends without closing: the log stays.
MAKER = """
import os, sqlite3, sys
path, kind, settings = sys.argv[1:4]
text = lambda name: open(name, encoding="utf-8").read()
db = sqlite3.connect(path, isolation_level=None)
for statement in settings.split(chr(10)):
    db.execute(statement)
if kind == "log":
    db.execute("PRAGMA journal_mode = WAL")
db.executescript(text("small.sql" if kind == "small" else "content.sql"))
if kind == "log":
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for statement in text("more.sql").splitlines():
        db.execute(statement)
    # Not committed, and in the log all the same: its pages do not fit into the cache.
    db.execute("PRAGMA cache_size = 5")
    db.execute("BEGIN")
    db.execute("UPDATE notes SET text = 'never committed ' || text || printf('%.*c', 3000, 'y')")
    os._exit(0)
db.close()
"""


def make(name: str, program: str, before: list, secret: str, after: list, kind: str, tools: dict) -> None:
    path = HERE / f"{name}.db"
    for old in HERE.glob(f"{name}.db*"):
        old.unlink()
    settings = [f"PRAGMA {one}" for one in before] + [key(secret)] + [f"PRAGMA {one}" for one in after]
    if program == D:
        script = ";\n".join(settings) + ";\n" + (HERE / "content.sql").read_text()
        subprocess.run([tools[D], str(path)], input=script.encode(), check=True, stdout=subprocess.DEVNULL)
    else:
        env = dict(os.environ, LD_PRELOAD=tools[program])
        subprocess.run([sys.executable, "-c", MAKER, str(path), kind, "\n".join(settings)], check=True, env=env, cwd=HERE)
    for useless in HERE.glob(f"{name}.db-shm"):
        useless.unlink()


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    tools = dict(zip((C, M, D), map(os.path.abspath, sys.argv[1:4])))
    lines = ["# made by make.py: file, program, secret, kind, arguments"]
    for name, program, before, secret, after, arguments, kind in CASES:
        if not sys.argv[4:] or name in sys.argv[4:]:
            print(name)
            make(name, program, before, secret, after, kind, tools)
        lines.append("\t".join([name, C if program == D else program, secret, kind, arguments]))
    (HERE / "cases.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
