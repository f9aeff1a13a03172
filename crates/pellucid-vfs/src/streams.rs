//! Whether the program began with a closed standard output.
//!
//! The standard library opens `/dev/null` in the place of a standard stream that is closed, before `main`, and from then on
//! every line seems to be written. So the stream is looked at before that, while the program is being loaded.

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

#[used]
#[link_section = ".init_array"]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: `fcntl` with `F_GETFD` takes no pointer, and says EBADF for a descriptor that is not open.
    let is_closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
    WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}

/// Whether standard output was closed when the program, or the library, was loaded: what is printed is lost.
pub fn was_output_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
