//! Keys of identifiers: canonical or refused, ordered, and a file map that agrees with its prefixes.

use base::{FileId, FileMap};

/// Reads identifiers off the bytes and holds them against each other.
pub fn file_id(bytes: &[u8]) {
    if let Ok(id) = FileId::from_key(bytes) {
        assert_eq!(id.to_key(), bytes, "a second key for {id}");
    }
    let mut rest = bytes;
    let mut ids = Vec::new();
    while let Ok(id) = FileId::read_key(&mut rest) {
        ids.push(id);
    }
    let mut map = FileMap::new(FileId::ROOT);
    for (index, id) in ids.iter().enumerate() {
        relations(id, &ids[index / 2]);
        if index % 4 == 3 {
            map.hand_back(&ids[index / 2]);
        } else {
            map.insert(id.clone(), id.clone());
        }
        let owner = map.owner(id);
        assert!(owner.is_prefix_of(id), "{owner} answers for {id}");
        let longer = id.prefixes().filter(|prefix| prefix.bit_len() > owner.bit_len());
        let known: Vec<_> = map.regions().map(|region| &region.prefix).collect();
        assert!(longer.into_iter().all(|prefix| known.binary_search(&&prefix).is_err()));
    }
}

fn relations(a: &FileId, b: &FileId) {
    assert_eq!(a.cmp(b), a.to_key().cmp(&b.to_key()));
    assert_eq!(a.cmp(b), a.components().cmp(b.components()));
    assert_eq!(a.to_string().parse().as_ref(), Ok(a));
    let inside = b >= a && a.region_end().is_none_or(|end| *b < end);
    assert_eq!(inside, a.is_prefix_of(b));
    if let (Some(parent), Some(number)) = (a.parent(), a.number()) {
        assert_eq!(parent.child(number).as_ref(), Ok(a));
    }
}

#[cfg(test)]
mod tests {
    use base::{FileId, Rng};

    #[test]
    fn seeded_noise_breaks_no_promise() {
        let mut rng = Rng::new(7);
        for _ in 0..20_000 {
            let len = rng.index(48);
            // Sparse ones make short integers, so that many identifiers fit.
            let sparse = rng.chance(0.5);
            let byte = |rng: &mut Rng| {
                let byte = rng.next_u64() as u8;
                if sparse { byte & rng.next_u64() as u8 } else { byte }
            };
            let bytes: Vec<u8> = (0..len).map(|_| byte(&mut rng)).collect();
            super::file_id(&bytes);
        }
    }

    #[test]
    fn the_longest_identifier_breaks_no_promise() {
        let key = [&[0b1010_1010; 512][..], &[0]].concat();
        assert_eq!(FileId::from_key(&key).unwrap().bit_len(), FileId::BITS_MAX);
        super::file_id(&[&key[..], &key[1..]].concat());
    }
}
