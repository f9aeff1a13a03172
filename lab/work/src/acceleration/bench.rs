//! The databases of the measurement, the instance that seals them, and what is done with them on either side.

use std::path::{Path, PathBuf};

use pellucid_lab_measure::error::{Error, Result};
use pellucid_lab_measure::files::{copy_whole, has_magic, length, remove};
use pellucid_lab_measure::machine::{self, Load};
use pellucid_lab_measure::program::{Program, Said, Variable};
use pellucid_lab_measure::sql::Server;
use pellucid_lab_report::plan::PAGE_SIZE_BYTES;
use pellucid_lab_report::record::SideDescription;
use serde_json::json;

use super::{switch, Run, CHECKS, DECRYPT, ENCRYPT, MB, PLAIN, PROBE, PROBED, SIDES};
use crate::experiment::content::{self, Content};
use crate::experiment::notes::{Notes, Turn};
use crate::fixture::settle;

const CERTIFICATE: &str = "acceleration";

/// A database of one length.
#[derive(Debug)]
pub(super) struct Size {
    /// In MiB, as cells are called.
    pub(super) name: String,
    database: String,
    path: PathBuf,
    template: PathBuf,
    content: Content,
    pub(super) bytes: u64,
}

/// The databases and the instance whose certificate seals them.
#[derive(Debug)]
pub(super) struct Bench {
    server: Server,
    program: PathBuf,
    probe: PathBuf,
    pub(super) sizes: Vec<Size>,
}

/// One side of it.
#[derive(Debug)]
pub(super) struct Side {
    server: Server,
    program: Program,
    probe: PathBuf,
}

impl Bench {
    pub(super) fn prepare(
        program: &Path,
        dir: &Path,
        mib: &[f64],
        probe_mib: u64,
        seed: u64,
    ) -> Result<Self> {
        let server = Server::new(program, dir.join("instance"))?;
        let server = server.with_environment(switch::ON);
        server.run(&format!(
            "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'p@ssw0rd'
             CREATE CERTIFICATE {CERTIFICATE} WITH SUBJECT = 'acceleration'"
        ))?;
        let mut sizes = Vec::new();
        for (number, mib) in mib.iter().enumerate() {
            let database = format!("size{number}");
            server.run(&format!("CREATE DATABASE {database}"))?;
            let path = server.home().join(format!("data/{database}.db"));
            let content = content::fill(&path, (mib * 1048576.0) as u64, seed, dir)?;
            let template = dir.join(format!("{database}.template"));
            copy_whole(&path, &template)?;
            let bytes = length(&template)?;
            sizes.push(Size {
                name: format!("{mib} MiB"),
                database,
                path,
                template,
                content,
                bytes,
            });
        }
        let probe = dir.join("probe.db");
        content::fill(&probe, probe_mib << 20, seed, dir)?;
        let bench = Self { server, program: program.into(), probe, sizes };
        bench.on(switch::ON).encrypt(&bench.probe, PROBED)?;
        Ok(bench)
    }

    pub(super) fn on(&self, environment: &[Variable]) -> Side {
        Side {
            server: self.server.with_environment(environment),
            program: Program::bare(&self.program, self.server.home(), environment),
            probe: self.probe.clone(),
        }
    }

    pub(super) fn describe(
        &self,
        program: &Path,
        off: &[Variable],
    ) -> Result<Vec<SideDescription>> {
        let hash = machine::sha256(program)?;
        let largest = self.sizes.last();
        let one = |(side, environment): (&str, &[Variable])| SideDescription {
            side: side.into(),
            kind: format!("{side} AES: {}", switch::shown(environment)),
            algorithm: None,
            extension: Some("pellucid".into()),
            extension_sha256: Some(hash.clone()),
            library: None,
            change: Some("pellucid encrypt and decrypt, alone; others wait".into()),
            engine: largest.map(|size| size.content.engine.clone()),
            file_bytes: largest.map(|size| size.bytes),
            page_size_bytes: Some(PAGE_SIZE_BYTES),
        };
        Ok(SIDES.into_iter().zip([switch::ON, off]).map(one).collect())
    }
}

impl Side {
    fn encrypt(&self, path: &Path, algorithm: &str) -> Result<Said> {
        let words = ["encrypt", "--certificate", CERTIFICATE, "--algorithm", algorithm];
        let said = self.program.run_bare(&words, path)?;
        let found = (said.facts["state"].as_str(), said.facts["algorithm"].as_str());
        if found != (Some("encrypted"), Some(algorithm)) || has_magic(path)? {
            return Err(Error::invalid(format!("encryption with {algorithm}: {}", said.facts)));
        }
        Ok(said)
    }

    /// Processor seconds of a check of the probe.
    pub(super) fn probe(&self, notes: &mut Notes, run: Run<'_>) -> Result<Option<f64>> {
        let words = ["check", "--physical-only", "--cores", "1"];
        let bytes = length(&self.probe)?;
        let said =
            timed(notes, turn(run, PROBE), bytes, || self.program.run_bare(&words, &self.probe))?;
        match said.facts["clean"].as_bool() {
            Some(true) => Ok(said.cpu_s),
            _ => Err(Error::invalid(format!("the probe: {}", said.facts))),
        }
    }

    /// Both checks of a plain database.
    pub(super) fn plain(&self, notes: &mut Notes, run: Run<'_>, size: &Size) -> Result<()> {
        fresh(size)?;
        self.check(notes, run, size, PLAIN)
    }

    /// Encryption, both checks and decryption.
    pub(super) fn sealed(
        &self,
        notes: &mut Notes,
        run: Run<'_>,
        size: &Size,
        algorithm: &str,
    ) -> Result<()> {
        fresh(size)?;
        let cell = |what: &str| format!("{what} {algorithm}, {}", size.name);
        let encrypted = cell(ENCRYPT);
        timed(notes, turn(run, &encrypted), size.bytes, || self.encrypt(&size.path, algorithm))?;
        if run.round == 0 && content::is_readable(&size.path)? {
            return Err(Error::invalid(format!(
                "encrypted with {algorithm}: a row's text is seen"
            )));
        }
        self.check(notes, run, size, algorithm)?;
        let decrypted = cell(DECRYPT);
        let said = timed(notes, turn(run, &decrypted), size.bytes, || {
            self.program.run_bare(&[DECRYPT], &size.path)
        })?;
        if said.facts["state"].as_str() != Some("plain") || !has_magic(&size.path)? {
            return Err(Error::invalid(format!("decryption: {}", said.facts)));
        }
        if run.round == 0 {
            let query =
                format!("SELECT COUNT_BIG(*) AS n FROM {}.dbo.CustomerOrder", size.database);
            let rows = self.server.run(&query)?.table()?.number(0, "n")?;
            if rows != size.content.rows as f64 {
                let expected = size.content.rows;
                return Err(Error::invalid(format!("of {expected} rows, {rows} are left")));
            }
        }
        Ok(())
    }

    /// CHECKDB, full and physical only; `what` is the algorithm, or plain.
    fn check(&self, notes: &mut Notes, run: Run<'_>, size: &Size, what: &str) -> Result<()> {
        let options = ["NO_INFOMSGS", "PHYSICAL_ONLY, NO_INFOMSGS"];
        for (check, options) in CHECKS.iter().zip(options) {
            let cell = format!("{check} {what}, {}", size.name);
            let statement = format!("DBCC CHECKDB([{}]) WITH {options}", size.database);
            timed(notes, turn(run, &cell), size.bytes, || {
                let answer = self.server.run(&statement)?;
                Ok(Said { facts: json!({}), wall_s: answer.wall_s, cpu_s: answer.cpu_s })
            })?;
        }
        Ok(())
    }
}

pub(super) fn turn<'a>(run: Run<'_>, cell: &'a str) -> Turn<'a> {
    Turn { cell, round: run.round, place: run.place, side: SIDES[run.side] }
}

/// Works once the machine is quiet, and writes what it took.
pub(super) fn timed(
    notes: &mut Notes,
    turn: Turn<'_>,
    bytes: u64,
    work: impl FnOnce() -> Result<Said>,
) -> Result<Said> {
    let dirty_kib = settle();
    let load = Load::begin();
    let said = work()?;
    let (others, stolen) = load.end().shares(said.cpu_s);
    let numbers = [
        ("elapsed_s", said.wall_s),
        ("speed_mb_per_s", bytes as f64 / MB / said.wall_s),
        ("others_percent_cpu", others * 100.0),
        ("stolen_percent_cpu", stolen * 100.0),
        ("dirty_kib", dirty_kib as f64),
    ];
    notes.write(turn, numbers)?;
    notes.write(turn, said.facts["seconds"].as_f64().map(|seconds| ("said_s", seconds)))?;
    notes.write(turn, said.cpu_s.map(|seconds| ("cpu_s", seconds)))?;
    Ok(said)
}

/// The plain database as it was, in the page cache.
pub(super) fn fresh(size: &Size) -> Result<()> {
    remove(&size.path)?;
    copy_whole(&size.template, &size.path)
}
