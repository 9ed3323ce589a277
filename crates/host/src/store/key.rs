//! Keys of records as bytes that sort as the keys do.
//!
//! An identifier's bytes say themselves where they end and none begins with all of another's. So a name
//! may follow without a mark between: a file's own record, with nothing behind, comes before its names.

use base::{FileId, Malformed};
use directory::Key;
use lease::Name;

/// The bytes of a key.
pub(crate) fn encode(key: &Key) -> Vec<u8> {
    of_name(&key.file, key.name.as_ref())
}

/// The bytes of the key with this name, or of the file's own.
pub(crate) fn of_name(file: &FileId, name: Option<&Name>) -> Vec<u8> {
    let mut bytes = file.to_key();
    if let Some(name) = name {
        bytes.extend_from_slice(name.as_bytes());
    }
    bytes
}

/// The key with these bytes.
pub(crate) fn decode(mut bytes: &[u8]) -> Result<Key, Malformed> {
    let file = FileId::read_key(&mut bytes)?;
    let name = match bytes {
        [] => None,
        name => {
            Some(Name::new(name).ok_or(Malformed::new("a key ends with what is no file name"))?)
        }
    };
    Ok(Key { file, name })
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use proptest::prelude::*;

    use super::*;

    pub(crate) fn any_key() -> impl Strategy<Value = Key> {
        let number = prop_oneof![1u64..5, 1u64..5_000, any::<u64>()];
        let numbers = prop::collection::vec(number, 0..5);
        let bytes = prop::collection::vec(any::<u8>(), 1..4);
        (numbers, prop::option::of(bytes)).prop_map(|(numbers, name)| {
            let file = numbers.into_iter().fold(FileId::ROOT, |file, number| {
                file.child(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN)).unwrap()
            });
            Key { file, name: name.and_then(|name| Name::new(&name)) }
        })
    }

    proptest! {
        #[test]
        fn bytes_sort_as_keys_do(one in any_key(), other in any_key()) {
            prop_assert_eq!(encode(&one).cmp(&encode(&other)), one.cmp(&other));
            let sibling = Key { file: one.file.clone(), name: other.name.clone() };
            prop_assert_eq!(encode(&one).cmp(&encode(&sibling)), one.cmp(&sibling));
        }

        #[test]
        fn a_key_reads_back_from_its_bytes(key in any_key()) {
            prop_assert_eq!(decode(&encode(&key)), Ok(key));
        }

        #[test]
        fn bytes_are_of_one_key_or_none(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            if let Ok(key) = decode(&bytes) {
                prop_assert_eq!(encode(&key), bytes);
            }
        }
    }

    #[test]
    fn names_lie_between_their_directory_and_what_was_created_in_it() {
        let key = |file: &str, name: Option<&[u8]>| {
            encode(&Key { file: file.parse().unwrap(), name: name.and_then(Name::new) })
        };
        let keys = [
            key("root", None),
            key("root", Some(b"\x01")),
            key("root", Some(&[0xff; 255])),
            key("1", None),
            key("1", Some(b"a")),
            key("1", Some(b"ab")),
            key("1", Some(b"b")),
            key("1.1", None),
            key("2", None),
        ];
        assert!(keys.is_sorted());
    }
}
