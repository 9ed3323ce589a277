//! Names in directories: moved, many, and each there once.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    os::unix::fs::{MetadataExt, symlink},
};

use rustix::{
    fs::{Dir, RenameFlags, renameat_with},
    io::Errno,
};

use crate::{
    cell::{Cell, shell},
    draw::number,
};

#[test]
fn a_rename_moves_replaces_refuses_or_exchanges_as_it_is_told() {
    let Some(mut cell) = Cell::new(&[]) else { return };
    let root = File::open(&cell.path).unwrap();
    let rename = |from: &str, to: &str, how| renameat_with(&root, from, &root, to, how);
    fs::write(cell.at("a"), "a").unwrap();
    fs::write(cell.at("b"), "b").unwrap();
    fs::create_dir_all(cell.at("d/e")).unwrap();
    assert_eq!(rename("a", "b", RenameFlags::NOREPLACE), Err(Errno::EXIST));
    rename("a", "d", RenameFlags::EXCHANGE).unwrap();
    assert!(cell.at("a/e").is_dir() && cell.at("d").is_file());
    assert_eq!(rename("a", "a/e/f", RenameFlags::empty()), Err(Errno::INVAL));
    assert_eq!(rename("d", "a", RenameFlags::empty()), Err(Errno::ISDIR));
    assert_eq!(rename("a", "d", RenameFlags::empty()), Err(Errno::NOTDIR));
    rename("d", "b", RenameFlags::empty()).unwrap();
    rename("b", "c", RenameFlags::NOREPLACE).unwrap();
    drop(root);
    cell.restart(&[]);
    assert_eq!(fs::read_to_string(cell.at("c")).unwrap(), "a");
    assert_eq!(shell(&cell.path, "find . -mindepth 1 | sort"), "./a\n./a/e\n./c\n");
}

#[test]
fn every_file_has_a_number_of_its_own_which_is_its_own_as_long_as_it_is_known() {
    let Some(cell) = Cell::new(&[]) else { return };
    let mut numbers = BTreeSet::new();
    for count in 0..500 {
        let path = cell.at(&format!("f{count}"));
        fs::write(&path, "").unwrap();
        assert!(numbers.insert(fs::metadata(&path).unwrap().ino()), "used twice");
        if count % 2 == 0 {
            fs::remove_file(&path).unwrap();
        }
    }
    fs::hard_link(cell.at("f1"), cell.at("g")).unwrap();
    symlink("f1", cell.at("s")).unwrap();
    let ino = |name: &str| fs::symlink_metadata(cell.at(name)).unwrap().ino();
    assert_eq!(ino("f1"), ino("g"));
    assert_ne!(ino("f1"), ino("s"));
}

#[test]
fn a_directory_that_is_removed_under_somebody_who_stands_in_it_is_empty_and_stays_so() {
    let Some(cell) = Cell::new(&[]) else { return };
    let said = shell(
        &cell.path,
        "mkdir d; cd d; rmdir ../d; ls -A; touch x 2>&1 || true; mkdir ../d; ls -A; touch ../d/y; ls -A",
    );
    assert!(said.contains("No such file or directory") && said.lines().count() == 1, "{said}");
}

#[test]
fn tens_of_thousands_of_names_are_listed_once_each_while_others_come_and_go() {
    let Some(cell) = Cell::new(&[]) else { return };
    let count = number("CROFT_NAMES", 40_000);
    let directory = cell.at("d");
    fs::create_dir(&directory).unwrap();
    let path = |kind: &str, n: u64| directory.join(format!("{kind}-{n:06}"));
    for n in 0..count {
        File::create(path("stays", n)).unwrap();
        if n % 10 == 0 {
            File::create(path("goes", n)).unwrap();
        }
    }
    let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
    let mut places = Vec::new();
    let mut changed = 0;
    let mut listing = Dir::new(File::open(&directory).unwrap()).unwrap();
    while let Some(entry) = listing.read() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_str().unwrap().to_owned();
        assert!(seen.insert(name.clone()), "{name} is there twice");
        order.push(name);
        if order.len() % 10_000 == 17 {
            places.push((entry.offset(), order.len()));
        }
        if seen.len() % 10 == 0 {
            let _ = fs::remove_file(path("goes", changed));
            File::create(path("comes", changed)).unwrap();
            changed += 10;
        }
    }
    let stays = seen.iter().filter(|name| name.starts_with("stays")).count() as u64;
    assert_eq!(stays, count, "all that were there all the time");
    // A place in the listing still means the same after all those changes.
    for (offset, read) in places {
        listing.seek(offset).unwrap();
        let rest: BTreeSet<String> = std::iter::from_fn(|| listing.read())
            .map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned())
            .collect();
        for (at, name) in order.iter().enumerate().filter(|(_, name)| name.starts_with("stays")) {
            assert_eq!(rest.contains(name), at >= read, "{name}, {at} of {read}");
        }
    }
    let names = fs::read_dir(&directory).unwrap().count() as u64;
    let gone = (0..count).step_by(10).filter(|n| !path("goes", *n).exists()).count() as u64;
    assert_eq!(names, count + count / 10 - gone + changed / 10);
    assert_eq!(fs::metadata(path("stays", count - 1)).unwrap().len(), 0);
}
