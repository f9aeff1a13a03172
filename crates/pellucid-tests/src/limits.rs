//! What goes wild in a test must not fill the machine.

/// From now on a longer file of this process is EFBIG.
pub fn limit_files(bytes: u64) {
    set(bytes, bytes);
}

/// While it lives no file of this process may become longer.
#[derive(Debug)]
pub struct Limit;

impl Limit {
    /// At `bytes`.
    ///
    /// # Panics
    /// If the limit cannot be set.
    pub fn of(bytes: u64) -> Self {
        set(bytes, libc::RLIM_INFINITY);
        Self
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        set(libc::RLIM_INFINITY, libc::RLIM_INFINITY);
    }
}

fn set(soft: libc::rlim_t, hard: libc::rlim_t) {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: plain values; without the signal a call that goes too far fails.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
}
