//! Makes up a script as it runs: what fits what is open, and what became of the last step.

use std::collections::{BTreeSet, VecDeque};

use crate::connection::Outcome;
use crate::knowledge::{names_of, Knowledge};
use crate::random::Random;
use crate::run::Source;
use crate::script::{Step, CONNECTIONS, PLAIN};
use crate::{changes, queries, schema, settings};

/// A way to make a step on a connection.
type Kind = fn(&mut Generator, usize) -> Step;

/// Every way, with its weight; a seed leaves some out, so that the others come closer together.
const KINDS: [(usize, Kind); 24] = [
    (40, Generator::change),
    (14, Generator::query),
    (18, Generator::transaction),
    (5, Generator::create),
    (4, Generator::alter),
    (4, |g, on| Step::Sql(on, settings::tune(&mut g.random))),
    (2, |g, on| Step::Sql(on, settings::journal_mode(&mut g.random))),
    (3, |g, on| Step::Sql(on, settings::checkpoint(&mut g.random))),
    (5, Generator::ask),
    (1, Generator::vacuum),
    (1, Generator::new_page_size),
    (2, |g, on| Step::Sql(on, format!("PRAGMA incremental_vacuum({})", g.random.below(20usize)))),
    (1, Generator::vacuum_into),
    (2, Generator::attach),
    (1, Generator::detach),
    (2, |_, on| Step::Close(on)),
    (1, |_, _| Step::Kill),
    (2, Generator::backup),
    (4, Generator::blob),
    (3, Generator::cursor),
    (1, |g, on| Step::Serialize(on, g.any_schema(on))),
    (4, Generator::interrupt),
    (1, Generator::limit),
    (2, Generator::open_another),
];

/// Steps out of a seed.
pub struct Generator {
    random: Random,
    same_pages: bool,
    left: usize,
    page: usize,
    connections: usize,
    kinds: Vec<(usize, Kind)>,
    known: Knowledge,
    due: VecDeque<Step>,
    on: usize,
}

impl Generator {
    /// At most `steps` steps.
    pub fn new(seed: u64, same_pages: bool, steps: usize) -> Self {
        let mut random = Random(seed);
        let page = settings::page_size(&mut random);
        // Locks that are held meanwhile depend on how many pages a cache has to spill.
        let connections = if same_pages { random.between(1, CONNECTIONS) } else { 1 };
        let all = KINDS.iter().enumerate();
        let kinds =
            all.filter(|(n, _)| *n < 3 || random.chance(75)).map(|(_, kind)| *kind).collect();
        let mut generator = Self {
            random,
            same_pages,
            left: steps,
            page,
            connections,
            kinds,
            known: Knowledge::default(),
            due: VecDeque::new(),
            on: 0,
        };
        generator.begin();
        generator
    }

    fn begin(&mut self) {
        let mut first = settings::birth(&mut self.random, self.page);
        first.push(settings::journal_mode(&mut self.random));
        for _ in 0..self.random.below(4usize) {
            first.push(settings::tune(&mut self.random));
        }
        first.push("CREATE TABLE main.r0(id INTEGER PRIMARY KEY, a, b TEXT, c BLOB)".to_owned());
        for _ in 0..self.random.between(1, 3) {
            first.push(schema::create_table(&mut self.random, "main"));
        }
        first.push(changes::change(&mut self.random, "main.r0", "main.r0", self.page));
        self.due.push_back(Step::Open(0, "a.db".to_owned()));
        self.due.extend(first.into_iter().map(|sql| Step::Sql(0, sql)));
        self.due.push_back(names_of(0, "main"));
        for on in 1..self.connections {
            let step = self.open(on);
            self.due.push_back(step);
        }
    }

    fn open(&mut self, on: usize) -> Step {
        let files: &[(usize, &str)] = match self.same_pages {
            true => &[(12, "a.db"), (3, "b.db"), (1, PLAIN)],
            false => &[(12, "a.db"), (3, "b.db")],
        };
        Step::Open(on, self.random.weighted(files).to_owned())
    }

    fn any_schema(&mut self, on: usize) -> String {
        let names: Vec<&String> = self.known.seats[on].schemas.keys().collect();
        match names.is_empty() || self.random.chance(60) {
            true => "main".to_owned(),
            false => names[self.random.below(names.len())].clone(),
        }
    }

    /// A table the connection has, or one it might have; with its schema.
    fn table(&mut self, on: usize) -> (String, String) {
        let schema = self.any_schema(on);
        let file = self.known.seats[on].schemas.get(&schema).cloned().unwrap_or_default();
        let (schema, file) = match self.known.tables.get(&file).is_none_or(BTreeSet::is_empty) {
            true if self.random.chance(80) => {
                let main = self.known.seats[on].schemas.get("main").cloned().unwrap_or_default();
                ("main".to_owned(), main)
            }
            _ => (schema, file),
        };
        let known: Vec<&String> = self.known.tables.get(&file).into_iter().flatten().collect();
        let name = match known.is_empty() || self.random.chance(2) {
            true => "r0".to_owned(),
            false => known[self.random.below(known.len())].clone(),
        };
        (schema, name)
    }

    fn qualified(&mut self, on: usize) -> String {
        let (schema, name) = self.table(on);
        format!("{schema}.{name}")
    }

    fn change(&mut self, on: usize) -> Step {
        let (table, other) = (self.qualified(on), self.qualified(on));
        Step::Sql(on, changes::change(&mut self.random, &table, &other, self.page))
    }

    fn query(&mut self, on: usize) -> Step {
        let (table, other) = (self.qualified(on), self.qualified(on));
        Step::Sql(on, queries::query(&mut self.random, &table, &other))
    }

    fn transaction(&mut self, on: usize) -> Step {
        let name = self.random.pick(&["one", "two", "three"]);
        let sql = match (self.known.seats[on].in_transaction, self.random.below(10usize)) {
            (false, 0..=1) => format!("SAVEPOINT {name}"),
            (false, _) => {
                let kinds =
                    ["BEGIN", "BEGIN", "BEGIN IMMEDIATE", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"];
                self.random.pick(&kinds).to_owned()
            }
            (true, 0..=1) => format!("SAVEPOINT {name}"),
            (true, 2) => format!("RELEASE {name}"),
            (true, 3..=4) => format!("ROLLBACK TO {name}"),
            (true, 5) => "ROLLBACK".to_owned(),
            (true, _) => "COMMIT".to_owned(),
        };
        Step::Sql(on, sql)
    }

    fn create(&mut self, on: usize) -> Step {
        let (schema, table) = self.table(on);
        let other = self.table(on).1;
        let random = &mut self.random;
        let sql = match random.below(10usize) {
            0..=3 => schema::create_table(random, &schema),
            4..=7 => schema::create_index(random, &schema, &table),
            _ => schema::create_trigger(random, &schema, &table, &other),
        };
        self.due.push_back(names_of(on, &schema));
        Step::Sql(on, sql)
    }

    fn alter(&mut self, on: usize) -> Step {
        let (schema, table) = self.table(on);
        let other = self.table(on).1;
        self.due.push_back(names_of(on, &schema));
        Step::Sql(on, schema::alter(&mut self.random, &schema, &table, &other))
    }

    fn ask(&mut self, on: usize) -> Step {
        let schema = self.any_schema(on);
        Step::Sql(on, settings::ask(&mut self.random, &schema))
    }

    fn vacuum(&mut self, on: usize) -> Step {
        Step::Sql(on, format!("VACUUM {}", self.any_schema(on)))
    }

    fn new_page_size(&mut self, on: usize) -> Step {
        let vacuum = "VACUUM".to_owned();
        self.due.push_back(match self.random.chance(25) {
            true => Step::Interrupt(on, self.random.below(3000usize) as u32 + 1, vacuum),
            false => Step::Sql(on, vacuum),
        });
        Step::Sql(on, format!("PRAGMA page_size={}", settings::page_size(&mut self.random)))
    }

    fn vacuum_into(&mut self, on: usize) -> Step {
        let file = match self.same_pages && self.random.chance(15) {
            true => PLAIN.to_owned(),
            false => format!("v{}.db", self.random.below(4usize)),
        };
        Step::Sql(on, format!("VACUUM {} INTO '@{file}'", self.any_schema(on)))
    }

    fn attach(&mut self, on: usize) -> Step {
        let schema = self.random.pick(&["x", "y"]);
        let file = match self.random.below(12usize) {
            0 => "':memory:'".to_owned(),
            1 => "''".to_owned(),
            2 => format!("'@v{}.db'", self.random.below(4usize)),
            3 | 4 if self.same_pages => format!("'@{PLAIN}'"),
            5..=7 => "'@a.db'".to_owned(),
            _ => "'@b.db'".to_owned(),
        };
        self.due.push_back(names_of(on, schema));
        self.due.push_back(Step::Sql(on, schema::create_table(&mut self.random, schema)));
        self.due.push_back(names_of(on, schema));
        Step::Sql(on, format!("ATTACH {file} AS {schema}"))
    }

    fn detach(&mut self, on: usize) -> Step {
        Step::Sql(on, format!("DETACH {}", self.random.pick(&["x", "y"])))
    }

    fn backup(&mut self, on: usize) -> Step {
        if self.known.seats[on].backup {
            return match self.random.chance(30) {
                true => Step::Finish(on),
                false => Step::Copy(on, self.random.between(0, 20) as i32 - 2),
            };
        }
        let from = self.random.below(self.connections);
        let (to_schema, from_schema) = (self.any_schema(on), self.any_schema(from));
        for _ in 0..self.random.below(3usize) {
            self.due.push_back(Step::Copy(on, self.random.between(1, 30) as i32));
        }
        if self.random.chance(60) {
            self.due.push_back(Step::Copy(on, -1));
            self.due.push_back(Step::Finish(on));
            self.due.push_back(names_of(on, &to_schema));
        }
        Step::Backup { to: on, to_schema, from, from_schema }
    }

    fn blob(&mut self, on: usize) -> Step {
        let (schema, table) = self.table(on);
        let random = &mut self.random;
        let (row, offset) = (random.between(1, 60) as i64, random.below(2000usize) as u32);
        let offset = if random.chance(60) { offset % 40 } else { offset };
        let length = random.weighted(&[(3, 5), (3, 100), (1, 3000)]);
        Step::Blob { on, schema, table, row, offset, length, write: random.chance(60) }
    }

    fn cursor(&mut self, on: usize) -> Step {
        if self.known.seats[on].cursor {
            return match self.random.chance(50) {
                true => Step::Fetch(on, self.random.between(1, 40) as u32),
                false => Step::Drop(on),
            };
        }
        let table = self.qualified(on);
        Step::Cursor(on, format!("SELECT * FROM {table}"))
    }

    fn interrupt(&mut self, on: usize) -> Step {
        let step = match self.random.below(8usize) {
            0 => self.query(on),
            1 => self.create(on),
            2 => self.vacuum(on),
            _ => self.change(on),
        };
        match step {
            // With other pages the work has other steps.
            Step::Sql(on, sql) if self.same_pages => {
                let most = self.random.weighted(&[(2, 60), (3, 1000), (2, 10_000)]);
                Step::Interrupt(on, self.random.between(1, most) as u32, sql)
            }
            step => step,
        }
    }

    fn limit(&mut self, on: usize) -> Step {
        match self.same_pages {
            true => Step::Sql(on, settings::most_pages(&mut self.random)),
            false => self.ask(on),
        }
    }

    fn open_another(&mut self, _on: usize) -> Step {
        let closed = (0..self.connections).find(|on| self.known.seats[*on].schemas.is_empty());
        match closed {
            Some(closed) => self.open(closed),
            None => {
                Step::Sql(0, "SELECT total_changes(), changes(), last_insert_rowid()".to_owned())
            }
        }
    }

    fn choose(&mut self) -> Step {
        if !self.random.chance(70) {
            self.on = self.random.below(self.connections);
        }
        let on = self.on;
        if self.known.seats[on].schemas.is_empty() {
            return self.open(on);
        }
        if self.known.seats[on].backup {
            return self.backup(on);
        }
        // What is in another's way has an end, and so has what is long.
        let seat = &mut self.known.seats[on];
        seat.age += 1;
        let tired = (seat.refused && self.random.chance(30)) || seat.age > 15;
        if seat.in_transaction && tired {
            let ends = ["COMMIT", "COMMIT", "ROLLBACK"];
            return Step::Sql(on, self.random.pick(&ends).to_owned());
        }
        if seat.cursor && (tired || self.random.chance(15)) {
            return Step::Drop(on);
        }
        let kind = self.random.weighted(&self.kinds);
        kind(self, on)
    }
}

impl Source for Generator {
    fn next(&mut self) -> Option<Step> {
        self.left = self.left.checked_sub(1)?;
        Some(self.due.pop_front().unwrap_or_else(|| self.choose()))
    }

    fn told(&mut self, step: &Step, outcome: &Outcome) {
        if let Some(on) = self.known.told(step, outcome) {
            self.due.push_back(names_of(on, "main"));
        }
    }
}
