//! The crypto library's own switch: the features of the processor that it is told to do without.
//!
//! AWS-LC reads it when a process starts (crypto/fipsmodule/cpucap): `~` takes bits away from what the processor tells.

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use pellucid_lab_measure::error::Error;
use pellucid_lab_measure::error::Result;
use pellucid_lab_measure::program::Variable;

/// AES (bit 57) and PCLMULQDQ (33) of leaf 1; VAES (41) and VPCLMULQDQ (42) of leaf 7: `OPENSSL_ia32cap(3)`.
#[cfg(target_arch = "x86_64")]
const OFF: &[Variable] = &[("OPENSSL_ia32cap", Some("~0x200000200000000:~0x60000000000"))];
/// ARMV8_AES (bit 2) and ARMV8_PMULL (5).
#[cfg(target_arch = "aarch64")]
const OFF: &[Variable] = &[("OPENSSL_armcap", Some("~0x24"))];

/// As the processor is, whatever the lab itself was started with.
pub const ON: &[Variable] = &[("OPENSSL_ia32cap", None), ("OPENSSL_armcap", None)];

/// Variables that switch the instructions off.
///
/// # Errors
/// `Error::Invalid` on a processor for which no switch is known.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub fn off() -> Result<&'static [Variable]> {
    Ok(OFF)
}

/// Variables that switch the instructions off.
///
/// # Errors
/// [`Error::Invalid`]: no switch is known for this processor.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn off() -> Result<&'static [Variable]> {
    Err(Error::invalid("hardware AES cannot be switched off on this processor"))
}

/// For records.
pub fn shown(environment: &[Variable]) -> String {
    let set: Vec<_> = environment
        .iter()
        .filter_map(|(name, value)| value.map(|value| format!("{name}={value}")))
        .collect();
    if set.is_empty() {
        "not switched".into()
    } else {
        set.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_bits_are_those_of_the_instructions() {
        let expected =
            format!("OPENSSL_ia32cap=~{:#x}:~{:#x}", 1_u64 << 57 | 1 << 33, 1_u64 << 41 | 1 << 42);
        assert_eq!(shown(OFF), expected);
        assert_eq!(shown(ON), "not switched");
    }
}
