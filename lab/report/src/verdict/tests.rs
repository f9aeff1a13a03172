use super::*;
use crate::record::{Latency, Machine, SideDescription, SideResult, SCHEMA};
use crate::statistics::Summary;

pub fn session(name: &str, tree: Option<&str>) -> Session {
    Session {
        schema: SCHEMA,
        session: name.into(),
        started_unix_s: 0,
        scenario: "purchase".into(),
        sides: Vec::new(),
        rounds: 5,
        warm_up_rounds: 1,
        seed: 1,
        limit: None,
        setting: None,
        size: None,
        parameters: Default::default(),
        machine: Machine {
            cpu: "a".into(),
            cores: 2,
            cpu_flags: Vec::new(),
            memory_mib: 1,
            kernel: "6".into(),
            file_system: "ext4".into(),
            device: "/dev/x".into(),
            fdatasync: Latency::default(),
            load_average: String::new(),
            sqlite: "3".into(),
            sqlite_source: String::new(),
            tree: tree.map(Into::into),
            lab_profile: "release".into(),
            environment: Vec::new(),
        },
    }
}

pub fn side(name: &str, extension: Option<&str>) -> SideDescription {
    let none = serde_json::Value::Null;
    serde_json::from_value(serde_json::json!({
        "side": name, "kind": "plain", "algorithm": none, "extension": none, "extension_sha256": extension,
        "library": none, "engine": none, "file_bytes": none, "page_size_bytes": none,
    }))
    .unwrap()
}

#[test]
fn sessions_of_two_builds_of_a_library_are_not_joined() {
    let built = |name: &str, extension: Option<&'static str>| {
        let mut session = session(name, Some("tree"));
        session.sides = vec![side("plain", None), side("sealed-AES_128", extension)];
        session
    };
    let joined = |builds: [Option<&'static str>; 3]| {
        one_machine(&[built("1", builds[0]), built("2", builds[1]), built("3", builds[2])])
    };
    joined([None, Some("a"), Some("a")]).unwrap();
    for builds in [[None, Some("a"), Some("b")], [Some("a"), None, Some("b")]] {
        let told = joined(builds).unwrap_err().to_string();
        assert!(told.contains("cannot be joined: extension a, extension b"), "{told}");
    }
}

/// Rounds that scatter by `spread` around `ratio`.
fn cell(session: &str, side: &str, name: &str, ratio: f64, spread: f64) -> CellResult {
    let ratios: Vec<f64> =
        [-1.0, -0.5, 0.0, 0.5, 1.0].iter().map(|step| ratio * (step * spread).exp()).collect();
    let one = Summary::of(&[1.0]).unwrap();
    let of = |side: &str| SideResult {
        side: side.into(),
        ops_per_s: one,
        latency: Latency::default(),
        cpu_us_per_op: None,
        busy: 0,
    };
    CellResult {
        session: session.into(),
        cell: name.into(),
        ratio: Summary::of(&ratios).unwrap(),
        ratio_mean: None,
        ratios,
        cpu_ratio: None,
        sides: [of("plain"), of(side)],
        others_share: one,
        stolen_share: one,
    }
}

fn all(side: &str, ratio: f64, spread: f64) -> Vec<CellResult> {
    let standard = plan::standard_cells();
    standard.iter().map(|name| cell("1", side, &name.to_string(), ratio, spread)).collect()
}

fn verdict(cells: &[CellResult]) -> Verdict {
    Verdict::of(&[session("1", Some("t"))], cells, &Goals::read()).unwrap()
}

fn count(verdict: &Verdict, judgement: Judgement) -> usize {
    verdict.families[0].cells.iter().filter(|cell| cell.judgement == judgement).count()
}

#[test]
fn all_cells_a_little_faster_are_passed() {
    let verdict = verdict(&all("sealed", 1.01, 0.002));
    assert_eq!(count(&verdict, Judgement::Passed), 24);
    assert_eq!(verdict.families[0].goal, Some(1.0));
    assert!(verdict.passed());
}

#[test]
fn one_slow_cell_is_below_and_one_noisy_one_is_not_resolved() {
    let mut cells = all("sealed", 1.01, 0.002);
    cells[3] = cell("1", "sealed", &cells[3].cell, 0.9, 0.005);
    cells[7] = cell("1", "sealed", &cells[7].cell, 1.0, 0.1);
    let verdict = verdict(&cells);
    assert_eq!(verdict.families[0].cells[3].judgement, Judgement::Below);
    assert_eq!(verdict.families[0].cells[7].judgement, Judgement::NotResolved);
    assert_eq!(count(&verdict, Judgement::Passed), 22);
    assert!(!verdict.passed());
}

#[test]
fn the_correction_for_24_cells_decides() {
    let alone = [cell("1", "sealed", "1-NORMAL-4/3/3", 0.94, 0.0045)];
    assert_eq!(count(&verdict(&alone), Judgement::Below), 1);
    let among = all("sealed", 0.94, 0.0045);
    assert_eq!(count(&verdict(&among), Judgement::Below), 0);
}

#[test]
fn a_mean_below_1_is_a_miss_for_the_sealed_side_only_if_its_interval_says_so() {
    let near = verdict(&all("sealed", 0.9999, 0.005));
    assert_eq!(near.families[0].judgement, Some(Judgement::NotResolved));
    assert!(!near.passed());
    assert_eq!(verdict(&all("sealed", 0.99, 0.005)).families[0].judgement, Some(Judgement::Below));
    // The same numbers from a control are what a control looks like.
    assert!(verdict(&all("again", 0.9999, 0.005)).passed());
    assert!(!verdict(&all("again", 0.99, 0.005)).passed());
    // A control that is faster than itself is none either.
    let faster = verdict(&all("again", 1.06, 0.0005));
    assert_eq!(faster.families[0].judgement, Some(Judgement::Differs));
    assert_eq!(count(&faster, Judgement::Differs), 24);
}

#[test]
fn a_mean_that_is_not_resolved_has_not_passed() {
    let mean = |mean: f64, half: f64| {
        let (low, high) = (mean / half, mean * half);
        judge(&Interval { mean, low, high, confidence: 0.95 }, 1.0, 1.05)
    };
    assert_eq!(mean(1.02, 1.04), Judgement::Passed);
    assert_eq!(mean(1.02, 1.06), Judgement::NotResolved);
    assert_eq!(mean(2.0, 1.5), Judgement::Passed);
    assert_eq!(mean(0.9, 1.06), Judgement::Below);
}

#[test]
fn a_mean_over_some_of_the_cells_is_not_the_goal() {
    let verdict = verdict(&all("sealed", 1.1, 0.002)[..23]);
    let family = &verdict.families[0];
    assert_eq!((family.mean_over, family.mean_of), (23, 24));
    assert_eq!(family.judgement, Some(Judgement::NotResolved));
}

#[test]
fn a_side_without_a_goal_is_told_and_decides_nothing() {
    let mut cells = all("sealed", 1.01, 0.002);
    cells.extend(all("sealed-TRIPLE_DES_3KEY", 0.2, 0.002));
    let verdict = verdict(&cells);
    assert_eq!((verdict.families.len(), verdict.families[1].goal), (2, None));
    assert!(verdict.passed());
    let nothing_judged = &cells[24..];
    assert!(!Verdict::of(&[session("1", None)], nothing_judged, &Goals::read()).unwrap().passed());
}

#[test]
fn each_whole_operation_and_speedtest1_have_goals_of_their_own() {
    let of = |scenario: &str, ratio| {
        let mut session = session("1", Some("t"));
        session.scenario = scenario.into();
        let cells =
            [cell("1", "sealed", "one", ratio, 0.002), cell("1", "sealed", "two", 1.0, 0.002)];
        Verdict::of(&[session], &cells, &Goals::read()).unwrap()
    };
    assert!(of("whole", 0.96).passed() && !of("whole", 0.94).passed());
    assert!(of("speedtest1", 0.98).passed() && !of("speedtest1", 0.96).passed());
    assert!(of("scan-speed", 0.91).passed() && !of("scan-speed", 0.89).passed());
    assert_eq!(of("whole", 0.96).families[0].goal, None);
    let opening = of("opening", 0.5);
    assert!(!opening.families[0].judged && !opening.passed());
}

#[test]
fn peers_are_compared_round_by_round() {
    let goals = Goals::read();
    let peers = |ratio, names: &[String]| {
        let mut cells = all("sealed", 1.01, 0.05);
        cells.extend(names.iter().map(|name| cell("1", "aegis", name, ratio, 0.05)));
        verdict(&cells).peers
    };
    let found = peers(0.9, &goals.peer_cells);
    let mean = found[0].geometric_mean;
    assert_eq!((found[0].peer.as_str(), found[0].cells.len()), ("aegis", 6));
    // The scatter is the rounds', the same on both: none is left in the ratio.
    assert!((mean.mean - 1.01 / 0.9).abs() < 1e-9 && mean.half_width() < 1.000_001, "{mean:?}");
    assert_eq!(found[0].judgement, Judgement::Passed);
    assert_eq!(peers(1.0, &goals.peer_cells)[0].judgement, Judgement::Below);
    assert_eq!(peers(0.9, &goals.peer_cells[..5])[0].judgement, Judgement::NotResolved);
}

#[test]
fn only_the_workload_is_a_goal_beside_peers() {
    let goals = Goals::read();
    let mut cells = all("sealed", 1.01, 0.05);
    cells.extend(goal_cells("aegis", &goals));
    let mut scan = session("1", Some("t"));
    scan.scenario = "scan-peers".into();
    assert!(Verdict::of(&[scan], &cells, &goals).unwrap().peers.is_empty());
    assert_eq!(verdict(&cells).peers.len(), 1);
}

fn goal_cells(side: &str, goals: &Goals) -> Vec<CellResult> {
    goals.peer_cells.iter().map(|name| cell("1", side, name, 0.9, 0.05)).collect()
}

#[test]
fn pieces_of_one_tree_and_machine_are_joined_and_no_others() {
    let cells = [
        cell("1", "sealed", "1-NORMAL-4/3/3", 1.0, 0.001),
        cell("2", "sealed", "1-FULL-4/3/3", 1.0, 0.001),
    ];
    let of = |first, second: Session| Verdict::of(&[first, second], &cells, &Goals::read());
    let joined = of(session("1", Some("t")), session("2", Some("t"))).unwrap();
    assert_eq!((joined.families.len(), joined.families[0].cells.len()), (1, 2));
    let error = |second| of(session("1", Some("t")), second).unwrap_err().to_string();
    assert!(error(session("2", Some("u"))).contains("tree t, tree u"));
    assert!(error(session("2", None)).contains("does not name its tree"));
    let mut other = session("2", Some("t"));
    other.machine.cores = 4;
    assert!(error(other).contains("2 x a, 4 x a"));
}

#[test]
fn a_cell_that_was_measured_twice_is_not_chosen_silently() {
    let cells = [
        cell("1", "sealed", "1-NORMAL-4/3/3", 1.0, 0.001),
        cell("2", "sealed", "1-NORMAL-4/3/3", 1.0, 0.001),
    ];
    let sessions = [session("1", Some("t")), session("2", Some("t"))];
    let error = Verdict::of(&sessions, &cells, &Goals::read()).unwrap_err().to_string();
    assert!(error.contains("two sessions, 1 and 2"), "{error}");
}
