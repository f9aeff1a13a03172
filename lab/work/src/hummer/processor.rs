//! Processor time of the workers and of the machine through a run, second by second.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pellucid_lab_measure::machine::{cpu_seconds_of, Busy};

const EVERY: Duration = Duration::from_secs(1);
/// A piece at the end that is shorter says nothing: the kernel counts the machine in hundredths of a second.
const SHORTEST: Duration = Duration::from_millis(200);

/// A second of a run. Of all processors together, as the article's graphs are: one busy core of two is 50.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Where it begins and ends, from the start of the loops.
    pub from_s: f64,
    pub to_s: f64,
    pub workers_percent: f64,
    pub machine_percent: f64,
}

/// Looks at the workers from the start of their loops on.
#[derive(Debug)]
pub struct Sampler {
    workers: BTreeMap<u32, f64>,
    start: Instant,
    /// Second at which it looks next: each has its moment, so that they do not drift.
    second: u32,
    /// What the workers had used when their loops began.
    first_s: f64,
    last: Option<Look>,
    samples: Vec<Sample>,
}

#[derive(Debug, Clone, Copy)]
struct Look {
    at: Instant,
    workers_s: f64,
    machine: Busy,
}

impl Sampler {
    /// The loops of `workers`, process ids, begin at `start`.
    pub fn new(workers: impl IntoIterator<Item = u32>, start: Instant) -> Self {
        let workers = workers.into_iter().map(|worker| (worker, 0.0)).collect();
        Self { workers, start, second: 0, first_s: 0.0, last: None, samples: Vec::new() }
    }

    /// How long until it wants to look again.
    pub fn wait(&self) -> Duration {
        (self.start + EVERY * self.second).saturating_duration_since(Instant::now())
    }

    /// Looks, if it is time.
    pub fn look(&mut self) {
        if self.wait().is_zero() {
            self.look_now(0.0);
        }
    }

    /// All samples; the last is shorter. The workers have ended, and say that they used `cpu_s` in their loops.
    pub fn end(mut self, cpu_s: f64) -> Vec<Sample> {
        let since = self.last.map(|last| last.at.elapsed());
        if since.is_some_and(|since| since >= SHORTEST || self.samples.is_empty()) {
            self.look_now(self.first_s + cpu_s);
        }
        self.samples
    }

    /// The workers have used `least_s`, or more.
    fn look_now(&mut self, least_s: f64) {
        for (worker, seconds) in &mut self.workers {
            // One that has ended keeps what it had.
            *seconds = cpu_seconds_of(*worker).map_or(*seconds, |now| now.max(*seconds));
        }
        let now = Look {
            at: Instant::now(),
            workers_s: self.workers.values().sum::<f64>().max(least_s),
            machine: Busy::now(),
        };
        if let Some(last) = self.last {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let all_s = (now.at - last.at).as_secs_f64() * cores as f64;
            let percent = |seconds: f64| (100.0 * seconds / all_s).clamp(0.0, 100.0);
            self.samples.push(Sample {
                from_s: last.at.saturating_duration_since(self.start).as_secs_f64(),
                to_s: now.at.saturating_duration_since(self.start).as_secs_f64(),
                workers_percent: percent(now.workers_s - last.workers_s),
                machine_percent: percent(last.machine.used_until(now.machine)),
            });
        }
        if self.last.is_none() {
            self.first_s = now.workers_s;
        }
        self.last = Some(now);
        // One that comes late leaves out those that it missed.
        self.second = now.at.saturating_duration_since(self.start).as_secs() as u32 + 1;
    }
}

/// The sample that holds `moment_s`, or the one next to it.
pub fn at(samples: &[Sample], moment_s: f64) -> Option<&Sample> {
    samples.iter().find(|sample| sample.to_s >= moment_s).or(samples.last())
}

/// Workers and machine over a whole run.
pub fn mean(samples: &[Sample]) -> Option<(f64, f64)> {
    let seconds: f64 = samples.iter().map(|sample| sample.to_s - sample.from_s).sum();
    let over = |of: fn(&Sample) -> f64| {
        samples.iter().map(|sample| of(sample) * (sample.to_s - sample.from_s)).sum::<f64>()
            / seconds
    };
    (seconds > 0.0).then(|| (over(|s| s.workers_percent), over(|s| s.machine_percent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(from_s: f64, to_s: f64, percent: f64) -> Sample {
        Sample { from_s, to_s, workers_percent: percent, machine_percent: percent + 1.0 }
    }

    #[test]
    fn a_moment_has_its_second_and_a_run_its_mean() {
        let samples = [sample(0.0, 1.0, 10.0), sample(1.0, 2.0, 20.0), sample(2.0, 2.5, 60.0)];
        assert_eq!(at(&samples, 1.5).unwrap().workers_percent, 20.0);
        assert_eq!(at(&samples, 9.0).unwrap().workers_percent, 60.0);
        assert_eq!(mean(&samples).unwrap(), (24.0, 25.0));
        assert!(at(&[], 0.0).is_none() && mean(&[]).is_none());
    }

    #[test]
    fn a_process_that_works_is_seen_at_work() {
        let mut sampler = Sampler::new([std::process::id()], Instant::now());
        sampler.look();
        let used = || cpu_seconds_of(std::process::id()).unwrap();
        let (start, before) = (Instant::now(), used());
        // Both: on a machine whose processors are taken away time passes without work.
        while start.elapsed() < SHORTEST || used() <= before {
            std::hint::black_box(0);
        }
        let samples = sampler.end(0.0);
        assert_eq!(samples.len(), 1);
        assert!(samples[0].workers_percent > 0.0, "{samples:?}");
        assert!(samples[0].to_s >= SHORTEST.as_secs_f64());

        // Gone before the first second was over: what it says itself counts.
        let mut sampler = Sampler::new([u32::MAX], Instant::now());
        sampler.look();
        std::thread::sleep(Duration::from_millis(1));
        assert!(sampler.end(0.5)[0].workers_percent > 0.0);
    }
}
