//! Messages of backups and restores, and of their devices.

rows! {
    3013, 16, TERMINATING = "{statement} is terminating abnormally.";
}
