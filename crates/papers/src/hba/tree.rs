//! A tree of directories, some of which are delegated to other groups, and the way to a file in it.

/// Subdirectories of a directory.
const SUBDIRECTORIES: u32 = 3;
/// Directories of the tree. What is used at the same time lies anywhere among them.
const DIRECTORIES: u32 = 5_000;
/// Of ten directories, how many are with another group than their parent.
const DELEGATED: u64 = 5;

/// Nothing but chance, from a number.
fn chance(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 20
}

/// The directories from the root to a file's own.
fn directories(file: u32) -> Vec<u32> {
    let mut directory = (chance(u64::from(file) + 1) % u64::from(DIRECTORIES)) as u32;
    let mut way = vec![directory];
    while directory > 0 {
        directory = (directory - 1) / SUBDIRECTORIES;
        way.push(directory);
    }
    way.reverse();
    way
}

/// The groups on the way from the root to a file, each once in a row. The last has the file.
pub(crate) fn way(file: u32, groups: u32) -> Vec<u32> {
    let mut way: Vec<u32> = Vec::new();
    for directory in directories(file) {
        let is_delegated = directory > 0 && chance(directory.into()) % 10 < DELEGATED;
        let group = (chance(u64::from(directory) << 32) % u64::from(groups)) as u32;
        let group = if is_delegated { group } else { way.last().copied().unwrap_or(0) };
        if way.last() != Some(&group) {
            way.push(group);
        }
    }
    way
}

/// The group that has a file.
pub(crate) fn tree_home(file: u32, groups: u32) -> u32 {
    way(file, groups).last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_begins_with_the_root_and_has_no_group_twice_in_a_row() {
        for file in 0..5_000 {
            let way = way(file, 16);
            assert!(way[0] == 0 && way.windows(2).all(|pair| pair[0] != pair[1]));
            assert_eq!(way.last(), Some(&tree_home(file, 16)));
            assert_eq!(super::way(file, 1), [0]);
        }
    }
}
