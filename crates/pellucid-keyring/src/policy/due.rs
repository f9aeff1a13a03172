//! What is due: a function of the policies, of facts, and of the time.

use std::path::{Path, PathBuf};

use super::{Policies, Policy, DAY_SECONDS};
use crate::checks::{Check, CheckDamage};
use crate::MasterKey;
use pellucid::header::{EncryptionState, Header};
use pellucid::scan::{Progress, ScanState};

/// A scan tells how far it is once a second; one that has said nothing for so long is nobody's any more.
pub const SCAN_STANDS_SECONDS: i64 = 900;

/// What policies are about. Times are seconds since 1970.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Databases.
    pub databases: Vec<DatabaseFacts>,
    /// Certificates.
    pub certificates: Vec<CertificateFacts>,
    /// Master keys that are the instance's own to keep.
    pub master_keys: Vec<MasterKeyFacts>,
}

/// A sealed database, as its header tells without a key.
#[derive(Debug, Clone)]
pub struct DatabaseFacts {
    /// Where it is.
    pub path: PathBuf,
    /// What its pages are.
    pub state: EncryptionState,
    /// What its scan is doing.
    pub scan: ScanState,
    /// When its scan was heard of last.
    pub scan_heard: i64,
    /// When its data encryption key was made.
    pub key_made: i64,
    /// How much was sealed under it.
    pub key_writes: u64,
    /// What checks of it have found; none if it was never checked.
    pub check: Option<Check>,
}

impl DatabaseFacts {
    /// From a header and what stands beside it.
    pub fn new(path: &Path, header: &Header, progress: Option<&Progress>, key_writes: u64) -> Self {
        let progress = progress.filter(|progress| progress.generation >= header.generation);
        let heard = header.scan.modified.max(progress.map_or(0, |progress| progress.at));
        Self {
            path: path.to_owned(),
            state: header.state,
            scan: header.scan.state,
            scan_heard: signed(heard),
            key_made: signed(header.dates().regenerated),
            key_writes,
            check: None,
        }
    }
}

/// A certificate.
#[derive(Debug, Clone)]
pub struct CertificateFacts {
    /// Its name.
    pub name: String,
    /// Valid from and to.
    pub validity: (i64, i64),
    /// Whether its private key is here.
    pub has_private_key: bool,
    /// When that was backed up last.
    pub backed_up: Option<i64>,
}

/// A master key.
#[derive(Debug, Clone)]
pub struct MasterKeyFacts {
    /// Which.
    pub key: MasterKey,
    /// When it was backed up last.
    pub backed_up: Option<i64>,
}

/// Something that needs to be done, or somebody to look.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Due {
    /// A data encryption key is too old.
    KeyOld { database: PathBuf, made: i64, days: u32 },
    /// Too much was written under a data encryption key.
    KeyWorn { database: PathBuf, writes: u64, most: u64 },
    /// A scan says it is running, and nobody runs it.
    ScanStands { database: PathBuf, since: i64 },
    /// A check has found damage that no later one has found mended.
    Damaged { database: PathBuf, damage: CheckDamage },
    /// No check of the database has ever found nothing.
    NoCheck { database: PathBuf },
    /// The last check that found nothing is too old.
    CheckOld { database: PathBuf, at: i64, days: u32 },
    /// A certificate has expired.
    Expired { certificate: String, at: i64 },
    /// A certificate is about to expire.
    Expires { certificate: String, at: i64 },
    /// A certificate is not valid yet.
    NotYetValid { certificate: String, from: i64 },
    /// A private key was never backed up.
    NoBackup { certificate: String },
    /// A private key was backed up too long ago.
    BackupOld { certificate: String, at: i64, days: u32 },
    /// A private key was backed up before its certificate begins: perhaps with an earlier one.
    BackupBefore { certificate: String, at: i64, from: i64 },
    /// A master key was never backed up.
    NoKeyBackup { key: MasterKey },
    /// A master key was backed up too long ago.
    KeyBackupOld { key: MasterKey, at: i64, days: u32 },
}

impl Due {
    /// The policy that says so; none where no policy is needed to.
    pub fn policy(&self) -> Option<Policy> {
        match self {
            Due::KeyOld { .. } => Some(Policy::RekeyAfter),
            Due::KeyWorn { .. } => Some(Policy::RekeyAfterWrites),
            Due::Expires { .. } => Some(Policy::WarnBeforeExpiry),
            Due::NoBackup { .. } | Due::BackupOld { .. } | Due::BackupBefore { .. } => {
                Some(Policy::CertificateBackupAge)
            }
            Due::NoKeyBackup { .. } | Due::KeyBackupOld { .. } => Some(Policy::MasterKeyBackupAge),
            Due::NoCheck { .. } | Due::CheckOld { .. } => Some(Policy::CheckAge),
            Due::ScanStands { .. }
            | Due::Damaged { .. }
            | Due::Expired { .. }
            | Due::NotYetValid { .. } => None,
        }
    }
}

/// What is due at `now`: databases first, then certificates, then master keys, each as they stand in `facts`.
pub fn evaluate(policies: &Policies, facts: &Facts, now: i64) -> Vec<Due> {
    let mut due = Vec::new();
    for database in &facts.databases {
        of_database(policies, database, now, &mut due);
    }
    for certificate in &facts.certificates {
        of_certificate(policies, certificate, now, &mut due);
    }
    if let Some(days) = policies.limit(Policy::MasterKeyBackupAge).days() {
        due.extend(facts.master_keys.iter().filter_map(|facts| match facts.backed_up {
            None => Some(Due::NoKeyBackup { key: facts.key }),
            Some(at) if is_older(at, days, now) => {
                Some(Due::KeyBackupOld { key: facts.key, at, days })
            }
            Some(_) => None,
        }));
    }
    due
}

fn of_database(policies: &Policies, facts: &DatabaseFacts, now: i64, due: &mut Vec<Due>) {
    let database = || facts.path.clone();
    let since = facts.scan_heard;
    if facts.scan == ScanState::Running && now.saturating_sub(since) > SCAN_STANDS_SECONDS {
        due.push(Due::ScanStands { database: database(), since });
    }
    due.extend(of_check(policies, facts, now));
    // A key change is under way already, or there is no key to change.
    if facts.state != EncryptionState::Encrypted {
        return;
    }
    if let Some(days) = policies.limit(Policy::RekeyAfter).days() {
        if is_older(facts.key_made, days, now) {
            due.push(Due::KeyOld { database: database(), made: facts.key_made, days });
        }
    }
    if let super::Limit::Writes(most) = policies.limit(Policy::RekeyAfterWrites) {
        if facts.key_writes > most {
            due.push(Due::KeyWorn { database: database(), writes: facts.key_writes, most });
        }
    }
}

/// Damage stands until it is mended, whatever the policies say.
fn of_check(policies: &Policies, facts: &DatabaseFacts, now: i64) -> Option<Due> {
    let database = facts.path.clone();
    let check = facts.check.as_ref();
    if let Some(damage) = check.and_then(|check| check.damage.clone()) {
        return Some(Due::Damaged { database, damage });
    }
    let days = policies.limit(Policy::CheckAge).days()?;
    match check.map(|check| signed(check.good_at)).filter(|at| *at > 0) {
        None => Some(Due::NoCheck { database }),
        Some(at) => is_older(at, days, now).then_some(Due::CheckOld { database, at, days }),
    }
}

fn of_certificate(policies: &Policies, facts: &CertificateFacts, now: i64, due: &mut Vec<Due>) {
    let certificate = || facts.name.clone();
    let (from, at) = facts.validity;
    if let (true, Some(days)) =
        (facts.has_private_key, policies.limit(Policy::CertificateBackupAge).days())
    {
        match facts.backed_up {
            None => due.push(Due::NoBackup { certificate: certificate() }),
            Some(at) if at < from && from <= now => {
                due.push(Due::BackupBefore { certificate: certificate(), at, from });
            }
            Some(at) if is_older(at, days, now) => {
                due.push(Due::BackupOld { certificate: certificate(), at, days });
            }
            Some(_) => {}
        }
    }
    let days = policies.limit(Policy::WarnBeforeExpiry).days();
    if at < now {
        due.push(Due::Expired { certificate: certificate(), at });
    } else if days.is_some_and(|days| at - now < i64::from(days) * DAY_SECONDS) {
        due.push(Due::Expires { certificate: certificate(), at });
    }
    if from > now {
        due.push(Due::NotYetValid { certificate: certificate(), from });
    }
}

/// Whether more than `days` lie between. A clock that was put back makes nothing old.
fn is_older(then: i64, days: u32, now: i64) -> bool {
    now.saturating_sub(then) > i64::from(days) * DAY_SECONDS
}

fn signed(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::Limit;
    use super::*;

    /// 2026-01-01.
    const NOW: i64 = 1_767_225_600;

    fn days(days: i64) -> i64 {
        NOW + days * DAY_SECONDS
    }

    fn database(change: impl FnOnce(&mut DatabaseFacts)) -> Facts {
        let mut facts = DatabaseFacts {
            path: "/a.db".into(),
            state: EncryptionState::Encrypted,
            scan: ScanState::None,
            scan_heard: 0,
            key_made: days(-1),
            key_writes: 7,
            check: None,
        };
        change(&mut facts);
        Facts { databases: vec![facts], ..Facts::default() }
    }

    fn certificate(change: impl FnOnce(&mut CertificateFacts)) -> Facts {
        let mut facts = CertificateFacts {
            name: "c".to_owned(),
            validity: (days(-100), days(100)),
            has_private_key: true,
            backed_up: Some(days(-1)),
        };
        change(&mut facts);
        Facts { certificates: vec![facts], ..Facts::default() }
    }

    fn policies(set: &[(Policy, Limit)]) -> Policies {
        let mut policies = Policies::default();
        set.iter().for_each(|(policy, limit)| policies.set(*policy, *limit));
        policies
    }

    /// A line of the table: what is set, what is so, and which words of the answer (its `Debug`) are to be there.
    fn told(set: &[(Policy, Limit)], facts: &Facts) -> Vec<String> {
        let due = evaluate(&policies(set), facts, NOW);
        due.iter().map(|one| format!("{one:?}").split(' ').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_key_is_due_by_age_and_by_writes_and_not_twice() {
        use EncryptionState::*;
        let after = |days| (Policy::RekeyAfter, Limit::Days(days));
        let writes = |most| (Policy::RekeyAfterWrites, Limit::Writes(most));
        let off = (Policy::RekeyAfter, Limit::Off);
        for (set, change, expected) in [
            (vec![], Box::new(|_: &mut _| ()) as Box<dyn Fn(&mut DatabaseFacts)>, vec![]),
            (vec![], Box::new(|f| f.key_made = days(-730)), vec![]),
            (vec![], Box::new(|f| f.key_made = days(-730) - 1), vec!["KeyOld"]),
            (vec![], Box::new(|f| f.key_made = 0), vec!["KeyOld"]),
            (vec![off], Box::new(|f| f.key_made = 0), vec![]),
            (vec![after(1)], Box::new(|f| f.key_made = days(-1) - 1), vec!["KeyOld"]),
            (vec![after(1)], Box::new(|f| f.key_made = days(40_000)), vec![]),
            (vec![after(1)], Box::new(|f| f.key_made = i64::MAX), vec![]),
            (vec![], Box::new(|f| f.key_writes = u64::MAX), vec![]),
            (vec![writes(7)], Box::new(|_| ()), vec![]),
            (vec![writes(6)], Box::new(|_| ()), vec!["KeyWorn"]),
            (vec![writes(6)], Box::new(|f| f.key_made = 0), vec!["KeyOld", "KeyWorn"]),
            (vec![writes(6)], Box::new(|f| f.state = KeyChange), vec![]),
            (vec![after(1)], Box::new(|f| (f.state, f.key_made) = (Unencrypted, 0)), vec![]),
            (vec![after(1)], Box::new(|f| (f.state, f.key_made) = (Decrypting, 0)), vec![]),
            (vec![after(1)], Box::new(|f| (f.state, f.key_made) = (Encrypting, 0)), vec![]),
        ] {
            assert_eq!(told(&set, &database(&*change)), expected, "{set:?}");
        }
    }

    #[test]
    fn a_scan_that_nobody_runs_is_called_out_and_a_suspended_one_is_not() {
        for (scan, ago, expected) in [
            (ScanState::Running, SCAN_STANDS_SECONDS, vec![]),
            (ScanState::Running, SCAN_STANDS_SECONDS + 1, vec!["ScanStands"]),
            (ScanState::Suspended, 1_000_000, vec![]),
            (ScanState::Aborted, 1_000_000, vec![]),
            (ScanState::Complete, 1_000_000, vec![]),
            (ScanState::None, NOW, vec![]),
        ] {
            let facts = database(|facts| {
                facts.state = EncryptionState::KeyChange;
                (facts.scan, facts.scan_heard) = (scan, NOW - ago);
            });
            assert_eq!(told(&[], &facts), expected, "{scan:?} {ago}");
        }
    }

    #[test]
    fn damage_is_called_out_whatever_the_policies_say_and_an_old_check_by_them() {
        let age = |days| (Policy::CheckAge, Limit::Days(days));
        let check = |good_at: i64, is_damaged: bool| Check {
            path: "/a.db".into(),
            file_id: [1; 16],
            at: good_at as u64,
            pages_only: false,
            in_part: false,
            good_at: good_at as u64,
            damage: is_damaged.then(|| CheckDamage {
                at: 1,
                findings: 1,
                of_content: false,
                pages: vec![3],
            }),
        };
        for (set, check, expected) in [
            (vec![], None, vec![]),
            (vec![], Some(check(0, false)), vec![]),
            (vec![], Some(check(days(-1), true)), vec!["Damaged"]),
            (vec![age(1)], Some(check(days(-9), true)), vec!["Damaged"]),
            (vec![age(7)], None, vec!["NoCheck"]),
            (vec![age(7)], Some(check(0, false)), vec!["NoCheck"]),
            (vec![age(7)], Some(check(days(-7), false)), vec![]),
            (vec![age(7)], Some(check(days(-7) - 1, false)), vec!["CheckOld"]),
            (vec![age(7)], Some(check(days(7), false)), vec![]),
        ] {
            let facts = database(|facts| facts.check = check.clone());
            assert_eq!(told(&set, &facts), expected, "{set:?} {check:?}");
        }
    }

    #[test]
    fn a_certificate_is_called_out_before_and_after_it_expires() {
        let before = |limit| (Policy::WarnBeforeExpiry, limit);
        for (set, validity, expected) in [
            (vec![], (days(-1), days(30)), vec![]),
            (vec![], (days(-1), days(30) - 1), vec!["Expires"]),
            (vec![], (days(-1), NOW), vec!["Expires"]),
            (vec![], (days(-1), NOW - 1), vec!["Expired"]),
            (vec![before(Limit::Days(60))], (days(-1), days(59)), vec!["Expires"]),
            (vec![before(Limit::Off)], (days(-1), days(1)), vec![]),
            (vec![before(Limit::Off)], (days(-1), NOW - 1), vec!["Expired"]),
            (vec![], (NOW + 1, days(100)), vec!["NotYetValid"]),
        ] {
            let facts = certificate(|facts| {
                facts.validity = validity;
                facts.backed_up = Some(NOW);
            });
            assert_eq!(told(&set, &facts), expected, "{set:?} {validity:?}");
        }
    }

    #[test]
    fn a_backup_that_is_missing_old_or_of_another_certificate_is_called_out() {
        let age = |limit| (Policy::CertificateBackupAge, limit);
        for (set, backed_up, expected) in [
            (vec![], None, vec!["NoBackup"]),
            (vec![], Some(days(-90)), vec![]),
            (vec![], Some(days(-90) - 1), vec!["BackupOld"]),
            (vec![], Some(days(-100)), vec!["BackupOld"]),
            (vec![], Some(days(-100) - 1), vec!["BackupBefore"]),
            (vec![age(Limit::Days(365))], Some(days(-99)), vec![]),
            (vec![age(Limit::Days(1))], Some(days(-2)), vec!["BackupOld"]),
            (vec![age(Limit::Off)], None, vec![]),
            (vec![age(Limit::Off)], Some(0), vec![]),
        ] {
            let facts = certificate(|facts| facts.backed_up = backed_up);
            assert_eq!(told(&set, &facts), expected, "{set:?} {backed_up:?}");
        }
        // Without its private key there is nothing to back up.
        let public = certificate(|facts| (facts.has_private_key, facts.backed_up) = (false, None));
        assert_eq!(told(&[], &public), [""; 0]);
        // One that is to be valid later was backed up before, and rightly.
        let later = certificate(|facts| facts.validity.0 = days(10));
        assert_eq!(told(&[], &later), ["NotYetValid"]);
    }

    #[test]
    fn master_keys_are_called_out_where_that_is_asked_for() {
        let on = (Policy::MasterKeyBackupAge, Limit::Days(90));
        for (set, backed_up, expected) in [
            (vec![], None, vec![]),
            (vec![on], None, vec!["NoKeyBackup"]),
            (vec![on], Some(days(-90)), vec![]),
            (vec![on], Some(days(-91)), vec!["KeyBackupOld"]),
        ] {
            let key = MasterKeyFacts { key: MasterKey::Service, backed_up };
            let facts = Facts { master_keys: vec![key], ..Facts::default() };
            assert_eq!(told(&set, &facts), expected, "{set:?} {backed_up:?}");
        }
    }

    #[test]
    fn each_finding_names_the_policy_that_turns_it_off() {
        let mut facts = database(|facts| (facts.key_made, facts.key_writes) = (0, 10));
        facts.certificates = certificate(|facts| facts.validity.1 = days(1)).certificates;
        facts.certificates[0].backed_up = None;
        facts.master_keys = vec![MasterKeyFacts { key: MasterKey::Database, backed_up: None }];
        let on = [
            (Policy::RekeyAfterWrites, Limit::Writes(1)),
            (Policy::MasterKeyBackupAge, Limit::Days(1)),
            (Policy::CheckAge, Limit::Days(1)),
        ];
        let mut policies = policies(&on);
        let due = evaluate(&policies, &facts, NOW);
        let named: Vec<_> = due.iter().filter_map(Due::policy).collect();
        let all: Vec<_> = Policy::ALL.into_iter().filter(|policy| named.contains(policy)).collect();
        // The opening of a database, and its birth, go by these, and no finding.
        let of_no_finding =
            [Policy::StrictPaths, Policy::FormatVersion, Policy::LogLimit, Policy::LogFull];
        let of_findings: Vec<_> =
            Policy::ALL.into_iter().filter(|policy| !of_no_finding.contains(policy)).collect();
        assert_eq!(all, of_findings);
        for policy in named {
            policies.set(policy, Limit::Off);
        }
        assert_eq!(evaluate(&policies, &facts, NOW), []);
    }

    #[test]
    fn the_facts_of_a_database_are_those_of_its_header() {
        let header = Header {
            sequence: 1,
            file_id: [1; 16],
            page_size: 4096,
            state: EncryptionState::KeyChange,
            generation: 5,
            created: 10,
            scan: pellucid::scan::Scan {
                state: ScanState::Running,
                modified: 20,
                ..pellucid::scan::Scan::default()
            },
            flags: pellucid::flags::Flags::default(),
            second: None,
            deks: vec![],
            protectors: vec![],
        };
        let progress = |generation| Progress { generation, at: 30, ..Progress::default() };
        let facts = |header: &Header, progress: Option<&Progress>| {
            let facts = DatabaseFacts::new(Path::new("/a"), header, progress, 3);
            (facts.key_made, facts.scan_heard, facts.key_writes)
        };
        assert_eq!(facts(&header, None), (10, 20, 3));
        assert_eq!(facts(&header, Some(&progress(4))), (10, 20, 3), "of an earlier scan");
        assert_eq!(facts(&header, Some(&progress(5))), (10, 30, 3));
        let mut rekeyed = header;
        rekeyed.scan.regenerated = 15;
        assert_eq!(facts(&rekeyed, None), (15, 20, 3));
    }
}
