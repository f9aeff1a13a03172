//! Article 0's scripts, disks and databases: what its two experiments share.

pub mod disks;
pub mod instance;
pub mod scripts;
