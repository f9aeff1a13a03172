//! One protector: what decodes is written again with the same length and has words for people.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pellucid::protector::Protector;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((protector, length)) = Protector::decode(bytes) {
        assert!(length <= bytes.len());
        assert!(!protector.describe().chars().any(char::is_control));
        let mut again = Vec::new();
        protector.encode(&mut again);
        assert_eq!(again[4..], bytes[4..length]);
    }
});
