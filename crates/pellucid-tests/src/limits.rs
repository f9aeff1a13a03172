//! What goes wild in a test must not fill the machine.

/// From now on a longer file of this process is EFBIG.
pub fn limit_files(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: plain values; without the signal a call that goes too far fails.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
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
        Self::set(bytes);
        Self
    }

    fn set(soft: libc::rlim_t) {
        let limit = libc::rlimit { rlim_cur: soft, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: plain values; without the signal a call that goes too far fails.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
        }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        Self::set(libc::RLIM_INFINITY);
    }
}
