//! Nothing: this package only names sources, see Cargo.toml.
