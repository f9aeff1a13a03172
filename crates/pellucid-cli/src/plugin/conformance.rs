//! The test that any plugin can run: what it says it can, it does, and it opens nothing that was changed.

use std::process::ExitCode;
use std::time::Instant;

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::{OaepPublicEncryptingKey, PublicEncryptingKey, OAEP_SHA256_MGF1SHA256};
use aws_lc_rs::signature::{UnparsedPublicKey, RSA_PSS_2048_8192_SHA256};
use pellucid::secret::{fill_random, Secret32};
use pellucid::{Error, Result as Outcome};
use pellucid_plugin::{Operation, Plugin};

use crate::output::{table, Failure, Grid, Output};

const CONTEXT: &[u8] = b"pellucid plugin test";
const OTHER: &[u8] = b"pellucid plugin test, other";

/// What came of one check.
enum Found {
    Passed,
    /// The key is of another kind, or the plugin does not do it.
    NotHere(String),
    Failed(String),
}

struct Checks {
    rows: Grid,
    facts: Vec<serde_json::Value>,
    passed: usize,
    failed: usize,
}

/// Runs it and prints a table. Exit: 0 if all that there is passed, else 1.
pub fn run(plugin: &Plugin, key: &str, output: &Output) -> Result<ExitCode, Failure> {
    let mut checks = Checks {
        rows: table(["check", "result", "time", "says"]),
        facts: Vec::new(),
        passed: 0,
        failed: 0,
    };
    let described = plugin.describe()?;
    let can = |operation| described.can.contains(&operation);
    if can(Operation::Wrap) && can(Operation::Unwrap) {
        wrapping(plugin, key, &mut checks)?;
    }
    if can(Operation::Public) {
        asymmetric(plugin, key, &can, &mut checks);
    }
    if checks.passed == 0 {
        checks.add("anything", Instant::now(), Found::Failed("nothing works with this key".into()));
    }
    output.line(format!("{} {} ({})", plugin.name(), described.version, described.name));
    output.line(&checks.rows);
    output.line(format!("{} passed, {} failed", checks.passed, checks.failed));
    output.facts(&serde_json::json!({
        "plugin": plugin.name(), "checks": checks.facts, "passed": checks.passed, "failed": checks.failed,
    }));
    Ok(if checks.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Checks {
    fn add(&mut self, what: &str, began: Instant, found: Found) {
        let (result, says) = match found {
            Found::Passed => ("ok", String::new()),
            Found::NotHere(says) => ("-", says),
            Found::Failed(says) => ("!!", says),
        };
        self.passed += usize::from(result == "ok");
        self.failed += usize::from(result == "!!");
        let time = format!("{:.1} ms", began.elapsed().as_secs_f64() * 1e3);
        self.facts.push(serde_json::json!({"check": what, "result": result, "says": says}));
        self.rows.add_row([what.to_owned(), result.to_owned(), time, says]);
    }

    /// That `opened` is refused, and not by an accident.
    fn refused<T>(&mut self, what: &str, began: Instant, opened: Outcome<T>) {
        let found = match opened {
            Ok(_) => Found::Failed("it was opened".to_owned()),
            Err(Error::Unauthentic { .. } | Error::MissingKey { .. } | Error::Misuse { .. }) => {
                Found::Passed
            }
            Err(error) => Found::Failed(error.to_string()),
        };
        self.add(what, began, found);
    }
}

/// As a refusal that says that the key is of another kind.
fn unless_here(error: Error) -> Found {
    match error {
        Error::Misuse { .. } | Error::MissingKey { .. } => Found::NotHere(error.to_string()),
        error => Found::Failed(error.to_string()),
    }
}

fn is(passed: bool, otherwise: &str) -> Found {
    match passed {
        true => Found::Passed,
        false => Found::Failed(otherwise.to_owned()),
    }
}

fn wrapping(plugin: &Plugin, key: &str, checks: &mut Checks) -> Outcome<()> {
    let secret = Secret32::random()?;
    let began = Instant::now();
    let wrapped = match plugin.wrap(key, secret.expose(), CONTEXT) {
        Ok(wrapped) => wrapped,
        Err(error) => {
            checks.add("wrap", began, unless_here(error));
            return Ok(());
        }
    };
    checks.add("wrap", began, Found::Passed);
    let began = Instant::now();
    let found = match plugin.unwrap(key, &wrapped, CONTEXT) {
        Ok(found) => is(found.as_slice() == secret.expose(), "another secret came out"),
        Err(error) => Found::Failed(error.to_string()),
    };
    checks.add("unwrap", began, found);
    let began = Instant::now();
    checks.refused("unwrap, another context", began, plugin.unwrap(key, &wrapped, OTHER));
    for (what, at) in [
        ("unwrap, first byte changed", 0),
        ("unwrap, middle changed", wrapped.len() / 2),
        ("unwrap, last byte changed", wrapped.len() - 1),
    ] {
        let mut changed = wrapped.clone();
        changed[at] ^= 1;
        let began = Instant::now();
        checks.refused(what, began, plugin.unwrap(key, &changed, CONTEXT));
    }
    let began = Instant::now();
    let short = &wrapped[..wrapped.len() - 1];
    checks.refused("unwrap, one byte short", began, plugin.unwrap(key, short, CONTEXT));
    Ok(())
}

fn asymmetric(plugin: &Plugin, key: &str, can: &dyn Fn(Operation) -> bool, checks: &mut Checks) {
    let began = Instant::now();
    let spki = match plugin.public(key) {
        Ok(spki) => spki,
        Err(error) => return checks.add("public", began, unless_here(error)),
    };
    let Ok(public) = PublicEncryptingKey::from_der(&spki) else {
        return checks.add(
            "public",
            began,
            Found::Failed("no RSA key in a SubjectPublicKeyInfo".into()),
        );
    };
    let same = public.as_der().is_ok_and(|der| der.as_ref() == spki);
    checks.add("public", began, is(same, "it is not DER"));
    if can(Operation::Decrypt) {
        decrypting(plugin, key, public, checks);
    }
    if can(Operation::Sign) {
        let began = Instant::now();
        let found = match plugin.sign(key, CONTEXT) {
            Ok(signature) => is(
                UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, &spki)
                    .verify(CONTEXT, &signature)
                    .is_ok(),
                "the signature is not RSA-PSS with SHA-256 of the message",
            ),
            Err(error) => unless_here(error),
        };
        checks.add("sign", began, found);
    }
}

fn decrypting(plugin: &Plugin, key: &str, public: PublicEncryptingKey, checks: &mut Checks) {
    let mut secret = [0; 32];
    let encrypted = |label: &[u8], secret: &[u8]| {
        let public = OaepPublicEncryptingKey::new(public.clone()).ok()?;
        let mut sealed = vec![0; public.ciphertext_size()];
        public.encrypt(&OAEP_SHA256_MGF1SHA256, secret, &mut sealed, Some(label)).ok()?;
        Some(sealed)
    };
    let began = Instant::now();
    let sealed = fill_random(&mut secret).ok().and_then(|()| encrypted(CONTEXT, &secret));
    let (Some(sealed), Some(bare)) = (sealed, encrypted(b"", &secret)) else {
        return checks.add(
            "decrypt",
            began,
            Found::Failed("the public key encrypts nothing".into()),
        );
    };
    for (what, label, sealed) in
        [("decrypt", CONTEXT, &sealed), ("decrypt, no label", &b""[..], &bare)]
    {
        let began = Instant::now();
        let found = match plugin.decrypt(key, label, sealed) {
            Ok(found) => is(found.as_slice() == secret, "another plaintext came out"),
            Err(error) => unless_here(error),
        };
        checks.add(what, began, found);
    }
    let began = Instant::now();
    checks.refused("decrypt, another label", began, plugin.decrypt(key, OTHER, &sealed));
    let mut changed = sealed.clone();
    changed[sealed.len() / 2] ^= 1;
    let began = Instant::now();
    checks.refused("decrypt, changed", began, plugin.decrypt(key, CONTEXT, &changed));
}
