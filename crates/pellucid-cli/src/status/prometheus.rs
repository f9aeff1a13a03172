//! The same facts as metrics, in Prometheus's text format.
//!
//! For node_exporter's textfile collector: `pellucid status --prometheus > pellucid.prom`. Names and labels are in
//! docs/guide/watching.md, "Monitoring".

use std::fmt::Error;

use pellucid::certificate::hex;
use pellucid::keyring::Stored;
use pellucid_sqlite::inspect::{Inspection, Kind};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge>;

/// All of them, as text.
pub fn metrics(
    databases: &[Inspection],
    certificates: &[Stored],
    warnings: usize,
) -> Result<String, Error> {
    let mut registry = Registry::with_prefix("pellucid");
    let mut family = |name: &str, help: &str| {
        let gauges = Gauges::default();
        registry.register(name, help, gauges.clone());
        gauges
    };
    let state = family(
        "database_encryption_state",
        "State as in sys.dm_database_encryption_keys: 0 no key (plain), 2 encrypting, 3 encrypted, 4 key change, 5 \
         decrypting, 6 protection change; -1 cannot be read",
    );
    let size = family("database_size_bytes", "Size of the file");
    for found in databases {
        let labels = vec![("database", found.path.display().to_string())];
        state.get_or_create(&labels).set(number(&found.kind));
        size.get_or_create(&labels).set(signed(found.bytes));
    }
    let expiry = family("certificate_expiry_timestamp_seconds", "When the certificate expires");
    let backup = family(
        "certificate_backup_timestamp_seconds",
        "When its private key was last backed up; 0 never, absent where there is no private key here",
    );
    for stored in certificates {
        let public = stored.public();
        let labels = vec![
            ("certificate", public.name().to_owned()),
            ("thumbprint_sha256", hex(public.thumbprint())),
        ];
        expiry.get_or_create(&labels).set(public.validity().1);
        if stored.has_private_key() {
            backup.get_or_create(&labels).set(signed(stored.backed_up().unwrap_or(0)));
        }
    }
    let count = Gauge::<i64>::default();
    registry.register("warnings", "What `pellucid status` warns about", count.clone());
    count.set(signed(warnings as u64));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

fn number(kind: &Kind) -> i64 {
    match kind {
        Kind::Empty | Kind::Plain => 0,
        Kind::Sealed(sealed) => sealed.header.state as i64,
        _ => -1,
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
