//! The log sets of one log, on each side in each round, as records.

use std::error::Error as Failure;
use std::path::{Path, PathBuf};
use std::time::Instant;

use pellucid::certificate::{Certificate, CertificateRequest};
use pellucid::derive::commitment;
use pellucid::flags::Flags;
use pellucid::lsn::Lsn;
use pellucid::media::{
    ChainPlace, Compression, Description, Kind, LogCommit, LogFacts, MediaHeader, MediaVersion,
    SetHeader, SetKeys, Version2, CHUNK_BYTES,
};
use pellucid::protector::{wrap, Wrapping};
use pellucid::unit::TAIL_BYTES;
use pellucid::{Algorithm, Dek};
use pellucid_backup::set::{
    write_log_set, FamilyTarget, FileSink, LogSource, MediaSink, NewSet, Options as Writing,
};
use pellucid_lab_measure::blocks::plan;
use pellucid_lab_measure::choice::{Algorithm as Known, SideChoice, SideOptions};
use pellucid_lab_measure::common::Common;
use pellucid_lab_measure::files::{length, remove};
use pellucid_lab_measure::machine::{own_cpu_seconds, Load};
use pellucid_lab_measure::random::Random;
use pellucid_lab_measure::session::{Conditions, Place};
use pellucid_lab_report::record::{Observation, SideDescription};
use serde_json::json;

/// Names the sessions.
const NAME: &str = "log-sets";
/// The base.
pub const CLEAR: &str = "clear";
const PAGE_BYTES: usize = pellucid_lab_report::plan::PAGE_SIZE_BYTES as usize;
const COMMITS: u32 = 32;
/// As BACKUP LOG has it.
const LEVEL: i32 = 1;
const WORDS: [&str; 16] = [
    "amber", "brass", "cedar", "delta", "ember", "flint", "grove", "haven", "ivory", "jasper",
    "kelp", "linen", "maple", "north", "olive", "pearl",
];

type Done<T = ()> = Result<T, Box<dyn Failure>>;

/// What is measured.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Length of the log.
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    pub mib: u64,
    /// Rounds after the warm-up.
    #[arg(long, default_value_t = 20)]
    pub rounds: usize,
    /// Algorithms beside the set in clear.
    #[arg(long, value_delimiter = ',', default_value = "AES_128,AES_192,AES_256,TRIPLE_DES_3KEY")]
    pub algorithms: Vec<Algorithm>,
    /// Where the sets are written, and removed again [default: target of the source tree, else the system's]
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// File that the records are appended to [default: lab/records/log-sets.jsonl]
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/records/log-sets.jsonl"), hide_default_value = true)]
    pub records: PathBuf,
    #[arg(long, default_value_t = 2008)]
    pub seed: u64,
    /// As cargo calls it.
    #[arg(long, hide = true)]
    pub bench: bool,
}

/// Measures, writes the records, and prints the table.
pub fn run(options: &Options) -> Done {
    let sides: Vec<Option<Algorithm>> =
        std::iter::once(None).chain(options.algorithms.iter().copied().map(Some)).collect();
    let names: Vec<String> = sides
        .iter()
        .map(|side| side.map_or(CLEAR.into(), |algorithm| algorithm.name().to_string()))
        .collect();
    let mut place = Place::open(NAME, &common(options))?;
    let mut log = Log::new(&place.path().join("rows.db"), options.mib << 20, options.seed)?;
    let signer = Certificate::generate("TestCert", &CertificateRequest::new("log_sets", 10))?;
    let cells = [("compressed", Compression::Zstd), ("not compressed", Compression::None)];
    let parameters = [
        ("log_kib", json!(log.versions.len() * PAGE_BYTES / 1024)),
        ("commits", json!(COMMITS)),
        ("compression", json!(format!("zstd:{LEVEL}"))),
        ("padding", json!("none")),
        ("sealed", json!("under a certificate, signed")),
    ];
    let describe = |(name, side): (&String, &Option<Algorithm>)| SideDescription {
        side: name.clone(),
        kind: if side.is_some() { "sealed set" } else { "set in clear" }.into(),
        algorithm: side.map(|algorithm| algorithm.name().to_string()),
        extension: None,
        extension_sha256: None,
        library: None,
        change: None,
        engine: None,
        file_bytes: None,
        page_size_bytes: Some(PAGE_BYTES as u32),
    };
    let conditions = Conditions {
        sides: names.iter().zip(&sides).map(describe).collect(),
        warm_up_rounds: 1,
        size: Some(options.mib),
        parameters: parameters.map(|(name, value)| (name.to_string(), value)).into(),
        ..Conditions::default()
    };
    let session = place.begin(conditions, cells.len())?.session;
    let path = place.path().join("log.bak");
    for run in plan(cells.len(), sides.len(), options.rounds, options.seed) {
        let (cell, compression) = cells[run.group];
        place.step(&format!("round {}: {cell}, {}", run.round, names[run.side]));
        rustix::fs::sync();
        let (load, cpu_s, started) = (Load::begin(), own_cpu_seconds(), Instant::now());
        write(&mut log, &path, compression, sides[run.side].map(|one| (one, &signer)))?;
        let elapsed_s = started.elapsed().as_secs_f64();
        let cpu_s = own_cpu_seconds().zip(cpu_s).map(|(end, start)| end - start);
        let (others, stolen) = load.end().shares(cpu_s);
        let mut numbers = vec![
            ("elapsed_s", elapsed_s),
            ("media_bytes", length(&path)? as f64),
            ("others_percent_cpu", others * 100.0),
            ("stolen_percent_cpu", stolen * 100.0),
        ];
        numbers.extend(cpu_s.map(|seconds| ("cpu_s", seconds)));
        remove(&path)?;
        for (what, value) in numbers {
            place.observe(Observation {
                session: session.clone(),
                cell: cell.into(),
                round: run.round,
                place: run.place,
                side: names[run.side].clone(),
                what: what.into(),
                value,
            })?;
        }
    }
    place.finish()?;
    Ok(())
}

fn common(options: &Options) -> Common {
    // Sides of SQLite, of which none is opened.
    let sides = SideOptions {
        sides: vec![SideChoice::Plain, SideChoice::Again],
        extension: None,
        algorithm: Known::Aes256,
    };
    // Cargo runs a bench in the directory of its package.
    let target = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../target"));
    let dir = options.dir.clone().or_else(|| target.is_dir().then(|| target.into()));
    Common {
        sides,
        rounds: options.rounds,
        dir,
        records: Some(options.records.clone()),
        json: false,
        seed: options.seed,
        estimate: false,
    }
}

/// A log in memory: each page of a database once.
struct Log {
    commits: Vec<LogCommit>,
    versions: Vec<(u32, u32)>,
    pages: Vec<u8>,
}

impl Log {
    /// Of the rows of a shop in an SQLite database of about so many bytes, which is made at `path` and removed.
    fn new(path: &Path, bytes: u64, seed: u64) -> Done<Self> {
        let connection = rusqlite::Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;
             CREATE TABLE CustomerOrder (OrderID INTEGER PRIMARY KEY, Customer TEXT, Article TEXT, Amount INTEGER, Note TEXT)",
        )?;
        let random = &mut Random::of(&[seed]);
        {
            let mut insert = connection
                .prepare("INSERT INTO CustomerOrder(Customer, Article, Amount, Note) VALUES (?1, ?2, ?3, ?4)")?;
            let mut written = 0;
            while written < bytes {
                let customer = format!("{} {:06}", words(random, 2), random.below(100_000));
                let count = random.id(12);
                let note = words(random, count);
                let article = format!("{:08x}", random.draw() >> 32);
                written += (customer.len() + note.len() + article.len() + 12) as u64;
                insert.execute((customer, article, random.below(50_000) as i64, note))?;
            }
        }
        connection.execute_batch("COMMIT")?;
        drop(connection);
        let mut pages = std::fs::read(path)?;
        remove(path)?;
        // As a sealed database has them.
        for page in pages.chunks_exact_mut(PAGE_BYTES) {
            page[PAGE_BYTES - TAIL_BYTES..].fill(0);
        }
        let count = (pages.len() / PAGE_BYTES) as u32;
        let commit = |number: u32| LogCommit {
            lsn: Lsn::new(1, 2 + (number + 1) * count / COMMITS),
            time: 1_700_000_000_000_000 + u64::from(number) * 64_000,
            pages: count,
            ..LogCommit::default()
        };
        let versions = (1..=count).map(|page| (page, (page - 1) * COMMITS / count)).collect();
        Ok(Self { commits: (0..COMMITS).map(commit).collect(), versions, pages })
    }

    fn header(&self, compression: Compression, algorithm: Option<Algorithm>) -> SetHeader {
        let [first, last] = [self.commits.first(), self.commits.last()];
        let time = |commit: Option<&LogCommit>| commit.map_or(0, |commit| commit.time);
        let begins = Lsn::new(1, 2);
        let own = Version2 {
            chain: Some(ChainPlace {
                fork: [6; 16],
                first: begins,
                last: last.map_or(begins, |commit| commit.lsn),
            }),
            log: Some(LogFacts {
                full: begins,
                first_time: time(first),
                last_time: time(last),
                commits: self.commits.len() as u32,
                ..LogFacts::default()
            }),
            before: [8; 32],
            ..Version2::default()
        };
        SetHeader {
            version2: Some(own),
            media_set: [1; 16],
            set: [2; 16],
            family: 1,
            families: 1,
            position: 1,
            kind: Kind::Log,
            algorithm,
            compression,
            copy_only: false,
            sealed_source: true,
            page_size: PAGE_BYTES as u32,
            pages: self.versions.len() as u32,
            chunk_pages: CHUNK_BYTES as u32 / PAGE_BYTES as u32,
            begun: time(last) + 1,
            expires: 0,
            source: [3; 16],
            base: [0; 16],
            commitment: [0; 32],
            source_thumbprint: [0; 32],
            page_hash_key: [0; 32],
            flags: Flags::default(),
            protectors: Vec::new(),
            description: Vec::new(),
        }
    }
}

impl LogSource for Log {
    fn commits(&self) -> &[LogCommit] {
        &self.commits
    }

    fn versions(&self) -> &[(u32, u32)] {
        &self.versions
    }

    fn read(&mut self, at: usize, into: &mut [u8]) -> pellucid::Result<()> {
        into.copy_from_slice(&self.pages[at * PAGE_BYTES..][..PAGE_BYTES]);
        Ok(())
    }
}

fn words(random: &mut Random, count: u64) -> String {
    let word = |_| WORDS[random.below(WORDS.len() as u64) as usize];
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

/// Writes a medium with one log set, and syncs it. A sealed one gets a key of its own, wrapped under the certificate, and is
/// signed, as a backup's is.
fn write(
    log: &mut Log,
    path: &Path,
    compression: Compression,
    sealed: Option<(Algorithm, &Certificate)>,
) -> Done {
    let mut header = log.header(compression, sealed.map(|(algorithm, _)| algorithm));
    let mut keys = None;
    if let Some((algorithm, certificate)) = sealed {
        let key = Dek::random()?;
        header.commitment = commitment(&key, &header.set)?;
        let protector = wrap(&key, &header.binding()?, &Wrapping::Certificate(certificate))?;
        header.protectors = vec![protector.encoded()];
        keys = Some(SetKeys::derive(&key, &header.set, algorithm)?);
    }
    let media = MediaHeader {
        version: MediaVersion::Two,
        ..MediaHeader::single([1; 16], compression != Compression::None, sealed.is_some(), 1)
    };
    let mut sink = FileSink::create(path)?;
    sink.write(&media.encode()?)?;
    let mut targets = [FamilyTarget::new(vec![Box::new(sink)])];
    let description = Description { database: "awHDD".into(), ..Description::default() };
    let signer = sealed.map(|(_, certificate)| certificate);
    let set = NewSet { header, description, keys: keys.as_ref(), signer };
    let workers = std::thread::available_parallelism()?.get();
    let options = Writing { workers, level: LEVEL, continue_after_error: false };
    write_log_set(log, &set, &mut targets, &options, &mut |_, _| (), &mut |_| ())?;
    targets[0].sync()?;
    Ok(())
}
