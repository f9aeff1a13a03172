//! The first screen: one line for each kind of work, and the sentence that they make.

use std::collections::BTreeSet;

use super::articles::{Articles, Clause, Headline, Source};
use super::figures::{like, mean_over, Figure, Sense, Word};
use super::reading::Material;
use super::tables::{machine_name, EFFORTS};
use super::text;
use crate::record::Session;
use crate::statistics::{Interval, LogMean};

/// The side that is plain SQLite once more.
pub const CONTROL: &str = "again";
/// Lines that the sentence has where none of its own was measured.
const FIRST: usize = 3;

/// One line.
#[derive(Debug)]
pub struct Lead {
    pub name: String,
    pub about: String,
    /// What it was done on or by.
    pub named: Option<String>,
    pub clause: Clause,
    /// Whether it was measured at all.
    pub measured: bool,
    /// None if it was not, or not often enough for an interval.
    pub result: Option<Result>,
}

/// What encryption costs of the time, over all cells of a source.
#[derive(Debug)]
pub struct Result {
    pub experiment: String,
    pub side: String,
    pub what: String,
    /// Time over plain time, geometric mean over the cells.
    pub cost: Interval,
    /// Processor time over plain, over the same cells, and its quantity.
    pub effort: Option<(String, Interval)>,
    /// Plain over plain, in the cells of the same sessions, where these have the control.
    pub control: Option<Interval>,
    pub cells: Vec<Cost>,
    /// Those of the cells.
    pub sessions: Vec<String>,
    /// Seconds without encryption, of a single cell that takes so few of them that a share says little.
    pub short: Option<f64>,
    /// Cells that were measured and are not in it: once, or a time of 0.
    pub left_out: usize,
}

/// Of one cell, by what it is called for readers.
#[derive(Debug)]
pub struct Cost {
    pub cell: String,
    pub interval: Interval,
}

impl Lead {
    /// What its interval says; nothing where there is none.
    pub fn word(&self) -> Word {
        self.result.as_ref().map_or(Word::Told, |result| Word::of(&result.cost))
    }

    /// `slower by 1.9 % (1.2 to 2.6)`.
    pub fn words(&self) -> String {
        match &self.result {
            Some(result) => {
                let short = result.short.map(|base| text::in_time(base, &result.cost));
                format!("{}{}", cost_words(&result.cost), short.unwrap_or_default())
            }
            None if self.measured => "measured too few times to say".into(),
            None => "not measured".into(),
        }
    }

    /// `OLTP, 10 processes that never wait`.
    pub fn title(&self) -> String {
        match &self.named {
            Some(named) => format!("{}, {named}", self.name),
            None => self.name.clone(),
        }
    }

    /// The cell that the mean must not hide: the largest, if it is slower and the intervals of single cells do not even meet.
    pub fn uneven(&self) -> Option<&Cost> {
        let least = self.result.iter().flat_map(|result| &result.cells);
        let least = least.map(|cell| cell.interval.high).reduce(f64::min)?;
        let slower = |most: &&Cost| Word::of(&most.interval) == Word::Worse;
        self.cell_with_most().filter(slower).filter(|most| most.interval.low > least)
    }

    /// `OLTP slower by 8.2 %`: the chart has the interval.
    fn told(&self) -> String {
        let Some(result) = &self.result else { return format!("{} {}", self.name, self.words()) };
        let change = text::change(result.cost.mean - 1.0).replace(['+', '−'], "");
        let said = match self.word() {
            Word::Worse if !change.starts_with('×') => format!("slower by {change}"),
            Word::Better if !change.starts_with('×') => format!("faster by {change}"),
            Word::Worse | Word::Better => format!("takes {change} of the time"),
            Word::NoDifference => "no difference".to_owned(),
            Word::NotResolved | Word::Told => "not resolved".to_owned(),
        };
        let short = result.short.map(|base| text::in_time(base, &result.cost));
        format!("{} {said}{}", self.name, short.unwrap_or_default())
    }

    /// The cell with the largest cost.
    pub fn cell_with_most(&self) -> Option<&Cost> {
        let cells = self.result.iter().flat_map(|result| &result.cells);
        cells.max_by(|a, b| a.interval.mean.total_cmp(&b.interval.mean))
    }
}

/// `+63.3 % in DISTINCT that spills`.
fn said_in(cost: &Cost) -> String {
    format!("{} in {}", text::change(cost.interval.mean - 1.0), cost.cell)
}

/// What an interval of costs in time says, with its numbers.
pub fn cost_words(cost: &Interval) -> String {
    words_of(Sense::Time, cost)
}

/// The same of another quantity.
pub fn words_of(sense: Sense, cost: &Interval) -> String {
    let word = Word::of(cost);
    let said = sense.words(word);
    let of = if sense == Sense::Size { "size" } else { "time" };
    match word {
        Word::Worse | Word::Better => text::by(said, of, cost),
        _ => {
            let shares = [cost.mean, cost.low, cost.high].map(|ratio| ratio - 1.0);
            let [mean, low, high] = shares;
            let told = text::estimate(mean, low, high).replacen(" (", ", ", 1);
            format!("{said} ({told}")
        }
    }
}

/// The lines of the first screen, of those that were measured or have to be mentioned.
pub fn leads(articles: &Articles, material: &Material, figures: &[Figure]) -> Vec<Lead> {
    let lead = |headline| lead(headline, articles, material, figures);
    articles.headlines.iter().filter_map(lead).collect()
}

/// None of an optional line that was not measured.
fn lead(
    headline: &Headline,
    articles: &Articles,
    material: &Material,
    figures: &[Figure],
) -> Option<Lead> {
    let sources = || headline.sources.iter();
    let found =
        sources().find_map(|source| Some((source, result(source, articles, material, figures)?)));
    let named = found.as_ref().and_then(|(source, result)| {
        let named = source.named.as_deref()?;
        let newest = result.sessions.first()?;
        filled(named, material.sessions.iter().find(|session| session.session == *newest)?)
    });
    let measured = sources().any(|source| source.select(material).is_some());
    let (name, about) = (headline.name.clone(), headline.about.clone());
    let result = found.map(|(_, result)| result);
    let lead = Lead { name, about, named, clause: headline.clause, measured, result };
    (measured || !headline.optional).then_some(lead)
}

/// `text` with the session's parameters; none if it does not have one of them.
fn filled(text: &str, session: &Session) -> Option<String> {
    let mut parts = text.split('{');
    let mut filled = parts.next()?.to_string();
    for part in parts {
        let (name, rest) = part.split_once('}')?;
        let value = session.parameters.get(name)?;
        filled.push_str(&match (value.as_f64(), value.as_str()) {
            (Some(number), _) if name.ends_with("_bytes") => text::value(name, number),
            (Some(number), _) => number.to_string(),
            (None, Some(word)) => word.to_string(),
            (None, None) => return None,
        });
        filled.push_str(rest);
    }
    Some(filled)
}

fn result(
    source: &Source,
    articles: &Articles,
    material: &Material,
    figures: &[Figure],
) -> Option<Result> {
    let selected = source.select(material)?;
    let wanted = |figure: &&Figure| {
        figure.what == selected.what
            && selected.cases.iter().any(|case| {
                (&case.session, &case.cell, &case.side)
                    == (&figure.session, &figure.cell, &figure.side)
            })
            && like(&figure.side, &source.side)
    };
    let of_source = || figures.iter().filter(wanted);
    let costs: Vec<(&Figure, LogMean)> =
        of_source().filter_map(|figure| Some((figure, figure.cost()?))).collect();
    let left_out = of_source().count() - costs.len();
    let over: Vec<&Figure> = costs.iter().map(|(figure, _)| *figure).collect();
    let side = costs.first()?.0.side.clone();
    // The same cells of another quantity or side; of all of them, or it would be a mean over others.
    let same = |side: Option<&str>, what: &str| -> Option<Interval> {
        let other = |figure: &&Figure| {
            figures.iter().find(|other| {
                (&other.session, &other.cell) == (&figure.session, &figure.cell)
                    && (other.side.as_str(), other.what.as_str())
                        == (side.unwrap_or(&figure.side), what)
            })
        };
        let found: Vec<&Figure> = over.iter().map(other).collect::<Option<_>>()?;
        Some(mean_over(&found, Figure::costs)?.interval(1))
    };
    let mut sessions: Vec<String> = over.iter().map(|figure| figure.session.clone()).collect();
    sessions.sort_by(|a, b| b.cmp(a));
    sessions.dedup();
    Some(Result {
        experiment: source.experiment.clone(),
        side,
        what: selected.what.clone(),
        cost: mean_over(&over, Figure::costs)?.interval(1),
        effort: EFFORTS.iter().find_map(|what| Some(((*what).into(), same(None, what)?))),
        control: same(Some(CONTROL), &selected.what),
        sessions,
        cells: costs
            .into_iter()
            .map(|(figure, cost)| Cost {
                cell: articles.work(&figure.scenario, &figure.cell),
                interval: cost.interval(1),
            })
            .collect(),
        short: match over[..] {
            [only] => only.short(),
            _ => None,
        },
        left_out,
    })
}

/// `Not measured: restores.`
pub fn missing(leads: &[Lead]) -> Option<String> {
    let names = names_of_missing(leads);
    let some = !names.is_empty() && names.len() < leads.len();
    some.then(|| format!("Not measured: {}.", names.join(", ")))
}

fn names_of_missing(leads: &[Lead]) -> Vec<&str> {
    leads.iter().filter(|lead| !lead.measured).map(|lead| lead.name.as_str()).collect()
}

/// Where all this was measured: one machine, several that are alike, or several.
pub fn place(sessions: &[Session], leads: &[Lead]) -> String {
    let distinct = |of: &dyn Fn(&Session) -> Vec<String>| -> usize {
        sessions.iter().map(of).collect::<BTreeSet<_>>().len()
    };
    let machines = distinct(&|session| machine_name(session).to_vec());
    let Some(first) = sessions.first().filter(|_| machines > 1) else {
        return "On this machine".into();
    };
    let [processor, ..] = machine_name(first);
    let is_virtual = sessions.iter().all(|session| session.machine.is_virtual());
    let place = match distinct(&|session| vec![machine_name(session)[0].clone()]) {
        1 if is_virtual => format!("On {processor}, {machines} virtual machines"),
        1 => format!("On {processor}, {machines} systems or builds"),
        _ => format!("On {machines} machines"),
    };
    let of_one = |lead: &Lead| {
        let own = lead.result.iter().flat_map(|result| &result.sessions);
        let of = |name: &String| sessions.iter().find(|session| session.session == *name);
        own.filter_map(of).map(machine_name).collect::<BTreeSet<_>>().len() < 2
    };
    // That is the usual case; what is made of several says so.
    match leads.iter().all(of_one) {
        true => place,
        false => format!("{place}, some figures over several"),
    }
}

/// What the sentence speaks of: the lines that have a clause, and what encryption costs most.
fn clauses(leads: &[Lead]) -> Vec<&Lead> {
    let measured = || leads.iter().filter(|lead| lead.measured);
    let mean = |lead: &Lead| lead.result.as_ref().map_or(0.0, |result| result.cost.mean);
    let worst = measured()
        .filter(|lead| lead.word() == Word::Worse)
        .max_by(|a, b| mean(a).total_cmp(&mean(b)));
    let mut said: Vec<&Lead> = measured().filter(|lead| lead.clause != Clause::None).collect();
    if said.is_empty() {
        said = measured().take(FIRST).collect();
    }
    if let Some(worst) = worst.filter(|worst| !said.iter().any(|lead| lead.name == worst.name)) {
        said.push(worst);
    }
    said
}

/// `On this machine: OLTP slower by 1.9 % (1.2 to 2.6); ...`
pub fn sentence(leads: &[Lead], place: &str) -> String {
    let said: Vec<String> = clauses(leads).into_iter().map(Lead::told).collect();
    match said.is_empty() {
        true => format!("{place}: not measured: {}.", names_of_missing(leads).join(", ")),
        false => format!("{place}: {}.", said.join("; ")),
    }
}

/// What the sentence has no clause for, by what became of it: losses first. All that is not resolved is named.
pub fn rest(leads: &[Lead]) -> Vec<String> {
    let said: Vec<&str> = clauses(leads).iter().map(|lead| lead.name.as_str()).collect();
    let of_word = |word: Word| -> Vec<String> {
        let of = |lead: &&Lead| lead.result.is_some() && lead.word() == word;
        let left = leads.iter().filter(of).filter(|lead| !said.contains(&lead.name.as_str()));
        let told = |lead: &Lead| {
            let change = lead.result.iter().map(|one| text::change(one.cost.mean - 1.0));
            let most = lead.uneven().map(|most| format!(" (most {})", said_in(most)));
            let named = lead.named.iter().map(|named| format!(" ({named})")).collect::<String>();
            let change = change.collect::<String>();
            format!("{}{named} {change}{}", lead.name, most.unwrap_or_default())
        };
        left.map(told).collect()
    };
    let lines = [
        ("Slower too", of_word(Word::Worse)),
        ("Faster", of_word(Word::Better)),
        ("No difference", of_word(Word::NoDifference)),
        ("Not resolved", not_resolved(leads).into_iter().map(String::from).collect()),
    ];
    // Names of what was not resolved hold no comma; what has a number behind it may.
    let join = |what: &str, names: Vec<String>| match what {
        "Not resolved" => names.join(", "),
        _ => names.join("; "),
    };
    let some = lines.into_iter().filter(|(_, names)| !names.is_empty());
    some.map(|(what, names)| format!("{what}: {}.", join(what, names))).collect()
}

/// Kinds of work that were measured and not resolved, those that were too few times for an interval among them.
pub fn not_resolved(leads: &[Lead]) -> Vec<&str> {
    let open =
        |lead: &&Lead| lead.measured && (lead.result.is_none() || lead.word() == Word::NotResolved);
    leads.iter().filter(open).map(|lead| lead.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval((mean, low, high): (f64, f64, f64)) -> Interval {
        Interval { mean, low, high, confidence: 0.95 }
    }

    fn lead(name: &str, cost: Option<(f64, f64, f64)>) -> Lead {
        let result = cost.map(|cost| Result {
            experiment: "hummer".into(),
            side: "sealed".into(),
            what: "elapsed_s".into(),
            cost: interval(cost),
            effort: None,
            control: None,
            cells: vec![Cost { cell: "4/3/3".into(), interval: interval(cost) }],
            sessions: Vec::new(),
            short: (name == "opening").then_some(0.0027),
            left_out: 0,
        });
        Lead {
            name: name.into(),
            about: String::new(),
            named: None,
            clause: if name == "OLTP" || name.ends_with('s') { Clause::Time } else { Clause::None },
            measured: result.is_some(),
            result,
        }
    }

    #[test]
    fn the_sentence_says_what_was_lost_and_what_was_not_measured() {
        let leads = [
            lead("OLTP", Some((1.03, 1.025, 1.035))),
            lead("backups", Some((1.004, 0.99, 1.012))),
            lead("restores", None),
            lead("check", Some((1.05, 0.98, 1.12))),
            lead("opening", Some((1.307, 1.254, 1.362))),
            lead("bulk loading", Some((1.16, 1.14, 1.18))),
            lead("rebuilding", Some((0.9, 0.89, 0.91))),
        ];
        assert_eq!(
            sentence(&leads, "On this machine"),
            "On this machine: OLTP slower by 3.0 %; backups no difference; opening slower by 30.7 %, 0.83 ms of 2.7 ms."
        );
        assert_eq!(
            rest(&leads),
            [
                "Slower too: bulk loading +16.0 %.",
                "Faster: rebuilding −10.0 %.",
                "Not resolved: check."
            ]
        );
        assert_eq!(missing(&leads).unwrap(), "Not measured: restores.");
    }

    #[test]
    fn a_line_says_which_work_carries_its_mean() {
        let mut one = lead("OLTP", Some((1.148, 1.086, 1.213)));
        let result = one.result.as_mut().unwrap();
        result.cells.push(Cost { cell: "sort".into(), interval: interval((1.633, 1.573, 1.695)) });
        assert_eq!(
            (one.told(), one.uneven().unwrap().cell.as_str()),
            ("OLTP slower by 14.8 %".into(), "sort")
        );
        // Where the cells agree, the mean hides nothing.
        one.result.as_mut().unwrap().cells[1].interval = interval((1.2, 1.15, 1.3));
        assert!(one.uneven().is_none());
        let factor = lead("OLTP", Some((16.7, 16.1, 17.3)));
        assert_eq!(factor.told(), "OLTP takes ×16.7 of the time");
    }

    #[test]
    fn what_was_done_once_or_never_is_said() {
        let once = Lead { measured: true, ..lead("checks", None) };
        assert_eq!(
            sentence(&[once], "On this machine"),
            "On this machine: checks measured too few times to say."
        );
        let nothing = sentence(&[lead("OLTP", None)], "On 2 machines");
        assert_eq!(nothing, "On 2 machines: not measured: OLTP.");
        assert_eq!(missing(&[lead("OLTP", None)]), None);
    }
}
