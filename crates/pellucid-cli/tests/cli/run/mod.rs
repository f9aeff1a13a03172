//! Goal: unmodified programs work on sealed databases through `pellucid run` and `load_extension`, and a program
//! that the shim would not get into is refused.
//!
//! Method: the system's own sqlite3, Python, Perl and PHP, and small C programs made here. A missing one is a
//! failure that names its package; nothing is skipped.

mod copies;
mod encrypt_new;
mod host;
mod loaded;
mod package;
mod preloaded;
mod refused;
mod saved;
mod workplace;
