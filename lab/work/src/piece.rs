//! A piece of `lab full`: a measurement with options of its own, and a file of records of its own.

/// The sides of a piece that compares with the peers.
pub const PEER_SIDES: &str = "plain,sealed,aegis,chacha20,sqlcipher";

/// One measurement, with a file of records of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// Names the piece and its file of records.
    pub name: &'static str,
    command: &'static str,
    options: &'static [&'static str],
    size: Scaled,
    needs: Needs,
    of_peers: bool,
    resumes: bool,
}

/// What a scale shrinks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scaled {
    /// Of a run.
    Seconds(f64),
    Mib(u64),
    /// Of the database under load; the phases without a scan shrink too.
    LoadMib(u64),
    /// speedtest1's own.
    Speedtest1(u64),
    Opens(u64),
    /// An experiment shrinks by itself.
    Share,
}

/// What is not built with the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    /// lab/peers/build.sh
    Peers,
    /// lab/speedtest1.sh
    Speedtest1,
}

impl Piece {
    /// A piece that runs `command` with these options, of that size.
    pub const fn new(
        name: &'static str,
        command: &'static str,
        size: Scaled,
        options: &'static [&'static str],
    ) -> Self {
        let (needs, of_peers, resumes) = (Needs::Nothing, false, false);
        Self { name, command, options, size, needs, of_peers, resumes }
    }

    /// A piece that runs an experiment as its parameters say.
    pub const fn experiment(name: &'static str) -> Self {
        Self::new(name, name, Scaled::Share, &[])
    }

    /// The same piece, which needs what is not built with the lab.
    pub const fn with(self, needs: Needs) -> Self {
        let of_peers = self.of_peers || matches!(needs, Needs::Peers);
        Self { needs, of_peers, ..self }
    }

    /// The same piece, which `lab peers` runs too, although it needs no library of theirs.
    pub const fn beside_peers(self) -> Self {
        Self { of_peers: true, ..self }
    }

    /// The same piece, which goes on with the cells that its records lack.
    pub const fn resuming(self) -> Self {
        Self { resumes: true, ..self }
    }

    /// Says what command it runs.
    pub fn command(&self) -> &'static str {
        self.command
    }

    /// Whether it is of an article, with its parameters in a file.
    pub fn is_experiment(&self) -> bool {
        self.size == Scaled::Share
    }

    /// Says what it needs that is not built with the lab.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Whether `lab peers` runs it.
    pub fn is_of_peers(&self) -> bool {
        self.of_peers
    }

    /// Whether it goes on with the cells that its records lack.
    pub fn resumes(&self) -> bool {
        self.resumes
    }

    /// Its command line.
    pub fn words(&self, scale: f64, rounds: Option<usize>) -> Vec<String> {
        let shrunk = |whole: u64| ((whole as f64 * scale).round() as u64).max(1).to_string();
        let shorter = |seconds: f64| (seconds * scale).max(0.05).to_string();
        let mut words = vec![self.command.to_string()];
        let mut add = |name: &str, value: String| words.extend([name.to_string(), value]);
        match self.size {
            Scaled::Seconds(seconds) => add("--seconds", shorter(seconds)),
            Scaled::Mib(mib) => add("--size-mib", shrunk(mib)),
            Scaled::LoadMib(mib) => {
                add("--size-mib", shrunk(mib));
                add("--quiet-s", shorter(10.0));
            }
            Scaled::Speedtest1(size) => add("--size", shrunk(size)),
            Scaled::Opens(opens) => add("--opens", shrunk(opens)),
            Scaled::Share => add("--scale", scale.to_string()),
        }
        if let Some(rounds) = rounds {
            add("--rounds", rounds.to_string());
        }
        words.extend(self.options.iter().map(|word| (*word).to_string()));
        words
    }
}
