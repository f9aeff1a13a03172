//! All ways of keeping a database that are gone through.

use crate::scenario::{Level, Mode, Over, Scenario, Theme};

const PAGES: [usize; 3] = [512, 4096, 65536];

/// Every scenario for one seed. Plain ones are the control: they hold the harness to be right.
pub fn scenarios(seed: u64) -> Vec<Scenario> {
    let mut all = Vec::new();
    let mut add = |theme, mode, level, page_bytes, powersafe| {
        for over in [Over::Plain, Over::Sealed] {
            let scenario = Scenario { over, mode, level, page_bytes, powersafe, theme, seed };
            if over == Over::Sealed || (theme.has_control() && !is_weak_when_plain(&scenario)) {
                all.push(scenario);
            }
        }
    };
    for mode in Mode::SAFE {
        for level in Level::ALL {
            for page_bytes in PAGES {
                for powersafe in [true, false] {
                    add(Theme::Rows, mode, level, page_bytes, powersafe);
                }
            }
        }
    }
    for mode in [Mode::Memory, Mode::Off] {
        add(Theme::Rows, mode, Level::Full, 4096, true);
    }
    for level in Level::ALL {
        add(Theme::Exclusive, Mode::Wal, level, 4096, true);
        add(Theme::Exclusive, Mode::Delete, level, 512, true);
        add(Theme::Exclusive, Mode::Persist, level, 4096, true);
        // Without syncs SQLite keeps no super-journal; and in NORMAL it does not sync a journal that it
        // cuts to nothing, so that one of two journals may come back with an older transaction in it.
        // Plain SQLite comes out mixed there as well.
        for mode in [Mode::Delete, Mode::Truncate, Mode::Persist] {
            let cut_late = mode == Mode::Truncate && level == Level::Normal;
            if level != Level::Off && !cut_late {
                add(Theme::Pair, mode, level, 4096, true);
            }
        }
    }
    for level in [Level::Full, Level::Extra] {
        for mode in Mode::SAFE {
            add(Theme::Rebuild, mode, level, 1024, true);
            add(Theme::Rebuild, mode, level, 4096, false);
        }
    }
    for mode in Mode::SAFE {
        for page_bytes in PAGES {
            add(Theme::Encrypt, mode, Level::Full, page_bytes, true);
            add(Theme::Decrypt, mode, Level::Full, page_bytes, true);
        }
        for level in [Level::Normal, Level::Full] {
            add(Theme::Protectors, mode, level, 4096, true);
            add(Theme::Generations, mode, level, 512, true);
            add(Theme::Generations, mode, level, 4096, false);
        }
    }
    all
}

/// Those with a scan. The scan's own connection is in FULL, in WAL mode in NORMAL.
pub fn scan_scenarios(seed: u64) -> Vec<Scenario> {
    let mut all = Vec::new();
    for theme in [Theme::Rekey, Theme::SwitchOff, Theme::SwitchOn, Theme::TurnBack] {
        for mode in Mode::SAFE {
            for (level, page_bytes, powersafe) in
                [(Level::Full, 512, true), (Level::Normal, 4096, false)]
            {
                let over = Over::Sealed;
                all.push(Scenario { over, mode, level, page_bytes, powersafe, theme, seed });
            }
        }
    }
    all
}

/// Those whose database gets the other format version, and goes back.
pub fn version_scenarios(seed: u64) -> Vec<Scenario> {
    let scenario = |mode, level, page_bytes, powersafe| {
        let (over, theme) = (Over::Sealed, Theme::Versions);
        Scenario { over, mode, level, page_bytes, powersafe, theme, seed }
    };
    let of_mode =
        |mode| [scenario(mode, Level::Full, 512, true), scenario(mode, Level::Normal, 4096, false)];
    Mode::SAFE.into_iter().flat_map(of_mode).collect()
}

/// Those with a chain of log backups.
pub fn chain_scenarios(seed: u64) -> Vec<Scenario> {
    let mut all = Vec::new();
    for level in [Level::Full, Level::Normal] {
        for page_bytes in [512, 4096] {
            let (over, mode, theme) = (Over::Sealed, Mode::Wal, Theme::LogChain);
            let powersafe = true;
            all.push(Scenario { over, mode, level, page_bytes, powersafe, theme, seed });
        }
    }
    all
}

/// In NORMAL a rollback journal rests on SQLite's own checksum of a record, which looks at one byte in
/// 200: "there is a very small chance that a power failure at just the wrong time could corrupt the
/// database" (pragma.html, "synchronous"). These images find it in minutes, so plain SQLite is no control
/// there. A sealed record has a tag, and has to hold.
fn is_weak_when_plain(scenario: &Scenario) -> bool {
    scenario.over == Over::Plain && scenario.level == Level::Normal && scenario.mode != Mode::Wal
}

/// Those whose calls are made to fail.
pub fn fault_scenarios(seed: u64) -> Vec<Scenario> {
    let mut all = Vec::new();
    let mut add = |theme: Theme, mode, level, page_bytes, powersafe| {
        for over in [Over::Plain, Over::Sealed] {
            if over == Over::Sealed || theme.has_control() {
                all.push(Scenario { over, mode, level, page_bytes, powersafe, theme, seed });
            }
        }
    };
    for mode in Mode::SAFE {
        add(Theme::Rows, mode, Level::Full, 4096, true);
        add(Theme::Rows, mode, Level::Extra, 512, false);
        add(Theme::Exclusive, mode, Level::Full, 512, true);
        add(Theme::Generations, mode, Level::Full, 512, true);
        add(Theme::Protectors, mode, Level::Full, 4096, true);
        add(Theme::Encrypt, mode, Level::Full, 512, true);
        add(Theme::Decrypt, mode, Level::Full, 512, true);
    }
    add(Theme::Rows, Mode::Memory, Level::Full, 512, true);
    add(Theme::Rows, Mode::Wal, Level::Normal, 512, true);
    add(Theme::Rows, Mode::Wal, Level::Off, 512, true);
    add(Theme::Rows, Mode::Delete, Level::Off, 512, true);
    add(Theme::Pair, Mode::Delete, Level::Full, 512, true);
    add(Theme::Pair, Mode::Persist, Level::Full, 512, true);
    add(Theme::Rebuild, Mode::Delete, Level::Full, 1024, true);
    all
}
