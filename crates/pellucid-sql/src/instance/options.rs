//! The options of `sp_configure`. Source: Microsoft's "Server configuration options" of SQL Server 2022.

/// An option of `sp_configure`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// Its name.
    pub name: &'static str,
    /// The least value.
    pub least: i64,
    /// The greatest.
    pub most: i64,
    /// What it is without being set.
    pub default: i64,
    /// Shown only under `show advanced options`.
    pub advanced: bool,
    /// Whether it changes anything here; what does not is kept and shown.
    pub counts: bool,
}

const fn counts(
    name: &'static str,
    (least, most): (i64, i64),
    default: i64,
    advanced: bool,
) -> Setting {
    Setting { name, least, most, default, advanced, counts: true }
}

const fn basic(name: &'static str, (least, most): (i64, i64), default: i64) -> Setting {
    Setting { name, least, most, default, advanced: false, counts: false }
}

const fn advanced(name: &'static str, (least, most): (i64, i64), default: i64) -> Setting {
    Setting { name, least, most, default, advanced: true, counts: false }
}

const ANY: i64 = i32::MAX as i64;

/// By name.
pub(crate) static SETTINGS: [Setting; 86] = [
    advanced("access check cache bucket count", (0, 65_536), 0),
    advanced("access check cache quota", (0, ANY), 0),
    advanced("Ad Hoc Distributed Queries", (0, 1), 0),
    advanced("ADR cleaner retry timeout (min)", (0, 32_767), 120),
    advanced("ADR Preallocation Factor", (0, 32_767), 4),
    advanced("affinity I/O mask", (-ANY - 1, ANY), 0),
    advanced("affinity mask", (-ANY - 1, ANY), 0),
    advanced("affinity64 I/O mask", (-ANY - 1, ANY), 0),
    advanced("affinity64 mask", (-ANY - 1, ANY), 0),
    advanced("Agent XPs", (0, 1), 0),
    advanced("allow filesystem enumeration", (0, 1), 1),
    basic("allow polybase export", (0, 1), 0),
    basic("allow updates", (0, 1), 0),
    advanced("automatic soft-NUMA disabled", (0, 1), 0),
    counts("backup checksum default", (0, 1), 0, false),
    counts("backup compression algorithm", (0, 3), 0, false),
    counts("backup compression default", (0, 1), 0, false),
    advanced("blocked process threshold (s)", (0, 86_400), 0),
    advanced("c2 audit mode", (0, 1), 0),
    basic("clr enabled", (0, 1), 0),
    advanced("clr strict security", (0, 1), 1),
    basic("column encryption enclave type", (0, 2), 0),
    advanced("common criteria compliance enabled", (0, 1), 0),
    basic("contained database authentication", (0, 1), 0),
    advanced("cost threshold for parallelism", (0, 32_767), 5),
    basic("cross db ownership chaining", (0, 1), 0),
    advanced("cursor threshold", (-1, ANY), -1),
    advanced("Database Mail XPs", (0, 1), 0),
    advanced("default full-text language", (0, ANY), 1033),
    basic("default language", (0, 9999), 0),
    advanced("default trace enabled", (0, 1), 1),
    advanced("disallow results from triggers", (0, 1), 0),
    counts("EKM provider enabled", (0, 1), 0, true),
    basic("external scripts enabled", (0, 1), 0),
    basic("filestream access level", (0, 2), 0),
    advanced("fill factor (%)", (0, 100), 0),
    advanced("ft crawl bandwidth (max)", (0, 32_767), 100),
    advanced("ft crawl bandwidth (min)", (0, 32_767), 0),
    advanced("ft notify bandwidth (max)", (0, 32_767), 100),
    advanced("ft notify bandwidth (min)", (0, 32_767), 0),
    basic("hadoop connectivity", (0, 7), 0),
    advanced("in-doubt xact resolution", (0, 2), 0),
    advanced("index create memory (KB)", (704, ANY), 0),
    advanced("lightweight pooling", (0, 1), 0),
    advanced("locks", (5000, ANY), 0),
    advanced("max degree of parallelism", (0, 32_767), 0),
    advanced("max full-text crawl range", (0, 256), 4),
    basic("max RPC request params (KB)", (0, ANY), 0),
    advanced("max server memory (MB)", (128, ANY), ANY),
    basic("max text repl size (B)", (-1, ANY), 65_536),
    advanced("max worker threads", (128, 65_535), 0),
    counts("media retention", (0, 365), 0, true),
    advanced("min memory per query (KB)", (512, ANY), 1024),
    advanced("min server memory (MB)", (0, ANY), 0),
    basic("nested triggers", (0, 1), 1),
    advanced("network packet size (B)", (512, 32_767), 4096),
    advanced("Ole Automation Procedures", (0, 1), 0),
    advanced("open objects", (0, ANY), 0),
    advanced("optimize for ad hoc workloads", (0, 1), 0),
    advanced("PH timeout (s)", (1, 3600), 60),
    basic("polybase enabled", (0, 1), 0),
    basic("polybase network encryption", (0, 1), 1),
    advanced("precompute rank", (0, 1), 0),
    advanced("priority boost", (0, 1), 0),
    advanced("query governor cost limit", (0, ANY), 0),
    advanced("query wait (s)", (-1, ANY), -1),
    counts("recovery interval (min)", (0, 32_767), 0, true),
    basic("remote access", (0, 1), 1),
    basic("remote admin connections", (0, 1), 0),
    basic("remote data archive", (0, 1), 0),
    basic("remote login timeout (s)", (0, ANY), 10),
    basic("remote proc trans", (0, 1), 0),
    basic("remote query timeout (s)", (0, ANY), 600),
    advanced("Replication XPs", (0, 1), 0),
    advanced("scan for startup procs", (0, 1), 0),
    basic("server trigger recursion", (0, 1), 1),
    advanced("set working set size", (0, 1), 0),
    counts("show advanced options", (0, 1), 0, false),
    advanced("SMO and DMO XPs", (0, 1), 1),
    advanced("suppress recovery model errors", (0, 1), 0),
    advanced("tempdb metadata memory-optimized", (0, 1), 0),
    advanced("transform noise words", (0, 1), 0),
    advanced("two digit year cutoff", (1753, 9999), 2049),
    advanced("user connections", (0, 32_767), 0),
    basic("user options", (0, 32_767), 0),
    advanced("xp_cmdshell", (0, 1), 0),
];

/// Their numbers in `sys.configurations`.
const NUMBERS: [(&str, i64); 83] = [
    ("access check cache bucket count", 1582),
    ("access check cache quota", 1583),
    ("Ad Hoc Distributed Queries", 16391),
    ("ADR cleaner retry timeout (min)", 1591),
    ("ADR Preallocation Factor", 1592),
    ("affinity I/O mask", 1550),
    ("affinity mask", 1535),
    ("affinity64 I/O mask", 1551),
    ("affinity64 mask", 1549),
    ("Agent XPs", 16384),
    ("allow filesystem enumeration", 16398),
    ("allow polybase export", 16397),
    ("allow updates", 102),
    ("automatic soft-NUMA disabled", 1585),
    ("backup checksum default", 1584),
    ("backup compression default", 1579),
    ("blocked process threshold (s)", 1569),
    ("c2 audit mode", 544),
    ("clr enabled", 1562),
    ("clr strict security", 1587),
    ("column encryption enclave type", 1588),
    ("common criteria compliance enabled", 1577),
    ("contained database authentication", 16393),
    ("cost threshold for parallelism", 1538),
    ("cross db ownership chaining", 400),
    ("cursor threshold", 1531),
    ("Database Mail XPs", 16386),
    ("default full-text language", 1126),
    ("default language", 124),
    ("default trace enabled", 1568),
    ("disallow results from triggers", 114),
    ("EKM provider enabled", 1578),
    ("external scripts enabled", 1586),
    ("filestream access level", 1580),
    ("fill factor (%)", 109),
    ("ft crawl bandwidth (max)", 1567),
    ("ft crawl bandwidth (min)", 1566),
    ("ft notify bandwidth (max)", 1565),
    ("ft notify bandwidth (min)", 1564),
    ("hadoop connectivity", 16394),
    ("in-doubt xact resolution", 1570),
    ("index create memory (KB)", 1505),
    ("lightweight pooling", 1546),
    ("locks", 106),
    ("max degree of parallelism", 1539),
    ("max full-text crawl range", 1563),
    ("max server memory (MB)", 1544),
    ("max text repl size (B)", 1536),
    ("max worker threads", 503),
    ("media retention", 1537),
    ("min memory per query (KB)", 1540),
    ("min server memory (MB)", 1543),
    ("nested triggers", 115),
    ("network packet size (B)", 505),
    ("Ole Automation Procedures", 16388),
    ("open objects", 107),
    ("optimize for ad hoc workloads", 1581),
    ("PH timeout (s)", 1557),
    ("polybase enabled", 16399),
    ("polybase network encryption", 16395),
    ("precompute rank", 1556),
    ("priority boost", 1517),
    ("query governor cost limit", 1545),
    ("query wait (s)", 1541),
    ("recovery interval (min)", 101),
    ("remote access", 117),
    ("remote admin connections", 1576),
    ("remote data archive", 16396),
    ("remote login timeout (s)", 1519),
    ("remote proc trans", 542),
    ("remote query timeout (s)", 1520),
    ("Replication XPs", 16392),
    ("scan for startup procs", 1547),
    ("server trigger recursion", 116),
    ("set working set size", 1532),
    ("show advanced options", 518),
    ("SMO and DMO XPs", 16387),
    ("tempdb metadata memory-optimized", 1589),
    ("transform noise words", 1555),
    ("two digit year cutoff", 1127),
    ("user connections", 103),
    ("user options", 1534),
    ("xp_cmdshell", 16390),
];

impl Setting {
    /// Its number; none of one that SQL Server has had too short a time.
    pub fn number(&self) -> Option<i64> {
        NUMBERS.iter().find(|(name, _)| *name == self.name).map(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_value() {
        for setting in &SETTINGS {
            let is_automatic = setting.default == 0;
            let fits = (setting.least..=setting.most).contains(&setting.default);
            assert!(fits || is_automatic, "{}", setting.name);
        }
        let names: Vec<String> = SETTINGS.iter().map(|one| one.name.to_lowercase()).collect();
        assert!(names.is_sorted(), "found by their beginnings, shown in order");
    }
}
