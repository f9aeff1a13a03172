//! What is no such file is refused, and each byte before the wrapped key changes what the plugin is asked to authenticate.

use super::*;

fn file() -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_be_bytes());
    bytes.extend_from_slice(&[0, 0]);
    bytes.extend_from_slice(&[7; CHECK_BYTES]);
    bytes.extend_from_slice(&[9; LENGTHS_AT - RANDOM_AT]);
    for length in [4u16, 5, 6] {
        bytes.extend_from_slice(&length.to_be_bytes());
    }
    bytes.extend_from_slice(b"namekey:awraped");
    bytes
}

#[test]
fn a_file_is_whole_or_refused() {
    let path = Path::new("service.provider");
    let place = Place::parse(&file(), path).unwrap();
    assert_eq!((place.plugin.as_str(), place.key.as_str()), ("name", "key:a"));
    assert_eq!(place.wrapped, b"wraped");
    for length in 0..file().len() {
        assert!(Place::parse(&file()[..length], path).is_err(), "{length}");
    }
    assert!(Place::parse(&[&file()[..], b"x"].concat(), path).is_err());
    let wrapped_at = HEADER_BYTES + 9;
    for at in 0..file().len() {
        let mut changed = file();
        changed[at] ^= 1;
        let is_wrapped = at >= wrapped_at;
        match Place::parse(&changed, path) {
            Ok(other) => {
                assert_eq!(other.context() == place.context(), is_wrapped, "byte {at}");
                assert_ne!(other, place, "byte {at}");
            }
            Err(_) => assert!(!is_wrapped, "byte {at}"),
        }
    }
    // The length of the wrapped key says where the file ends, and nothing else.
    let mut newer = file();
    newer[17] = 2;
    assert!(matches!(Place::parse(&newer, path), Err(Error::Unsupported { .. })));
}

#[test]
fn a_failure_is_told_again_as_it_was() {
    let subject = || Subject::Option("pellucid-plugin-x".into());
    for error in [
        Error::missing_key(subject(), "the token is out"),
        Error::unauthentic(subject(), "it does not open"),
        Error::io(subject(), std::io::Error::other("no answer")),
    ] {
        let again = Failed::of(&error).unwrap().again();
        assert_eq!(again.to_string(), error.to_string());
        assert_eq!(std::mem::discriminant(&again), std::mem::discriminant(&error));
    }
    assert!(Failed::of(&Error::misuse(subject(), "forbidden")).is_none());
}
