//! Scripting variables: `:setvar`, `-v`, the environment.

use std::collections::HashMap;
use std::fmt;

use zeroize::Zeroizing;

/// Variables by name, in any case. May hold secrets: `Debug` shows names only, values are wiped.
#[derive(Clone, Default)]
pub struct Variables {
    set: HashMap<String, Zeroizing<String>>,
    environment: bool,
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.set.keys()).finish()
    }
}

impl Variables {
    /// None at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Those of the environment, behind those that are set.
    pub fn with_environment() -> Self {
        Self { set: HashMap::new(), environment: true }
    }

    /// Whether it can be a variable's name: letters, digits, `_` and `-`.
    pub fn is_name(name: &str) -> bool {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
    }

    /// Those that are set, by name, without the environment's.
    pub fn all(&self) -> Vec<(&str, &str)> {
        let mut all: Vec<_> =
            self.set.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        all.sort_unstable();
        all
    }

    /// Sets a variable, or with `None` takes it away; `false` if that is no name.
    pub fn set(&mut self, name: &str, value: Option<Zeroizing<String>>) -> bool {
        let key = name.to_uppercase();
        match value {
            _ if !Self::is_name(name) => return false,
            Some(value) => self.set.insert(key, value),
            None => self.set.remove(&key),
        };
        true
    }

    /// What it stands for.
    pub fn get(&self, name: &str) -> Option<Zeroizing<String>> {
        if let Some(value) = self.set.get(&name.to_uppercase()) {
            return Some(value.clone());
        }
        match self.environment {
            true => std::env::var(name).ok().map(Zeroizing::new),
            false => None,
        }
    }
}
