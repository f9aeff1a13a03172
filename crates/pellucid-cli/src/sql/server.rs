//! Names of servers: whether one is this machine, as `-S` and `:connect` name it.

/// Ways to it, and the administrator's connection.
const PREFIXES: &[&str] = &["tcp:", "np:", "lpc:", "admin:"];
/// Names of every machine for itself.
const OWN: &[&str] = &["", ".", "(local)", "(localdb)", "localhost", "127.0.0.1", "::1", "[::1]"];

/// This machine's name.
pub fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Whether `server`, perhaps with an instance or a port, is this machine.
pub fn is_here(server: &str) -> bool {
    is_machine(server, &machine())
}

fn is_machine(server: &str, machine: &str) -> bool {
    let mut name = server.trim();
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| without(name, prefix)) {
        name = rest;
    }
    // A pipe: `\\HOST\pipe\..`
    let name = name.strip_prefix(r"\\").unwrap_or(name);
    let name = name.split(['\\', ',']).next().unwrap_or_default().trim();
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    let first = |name: &'_ str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    // One of them may have its domain.
    let is_short = !first(name).is_empty()
        && first(name) == first(machine)
        && (!name.contains('.') || !machine.contains('.'))
        && name.parse::<std::net::IpAddr>().is_err();
    OWN.iter().any(|known| is(known)) || is(machine) || is_short
}

fn without<'n>(name: &'n str, prefix: &str) -> Option<&'n str> {
    let is_there = name.get(..prefix.len()).is_some_and(|found| found.eq_ignore_ascii_case(prefix));
    is_there.then(|| &name[prefix.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_many_names() {
        for here in [
            ".",
            "",
            "(local)",
            "LOCALHOST",
            r".\SQLEXPRESS",
            r"(localdb)\MSSQLLocalDB",
            "tcp:localhost,1433",
            "admin:tcp:127.0.0.1",
            r"np:\\.\pipe\sql\query",
            r"lpc:db01\INST",
            "DB01",
            "db01.example.org",
        ] {
            assert!(is_machine(here, "db01"), "{here}");
        }
        assert!(is_machine("db01", "db01.example.org"));
        for there in ["db02", r"db02\INST", "tcp:10.0.0.1,1433", "db01x", "127.0.0.2", "10.1"] {
            assert!(!is_machine(there, "db01"), "{there}");
        }
        assert!(!is_machine("db01.example.com", "db01.example.org"));
    }
}
