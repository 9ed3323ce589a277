//! Short identifiers never touch the heap: counted, not believed.
#![allow(unsafe_code, reason = "an allocator that counts is unsafe to implement")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    hint::black_box,
    num::NonZeroU64,
};

use base::FileId;

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> usize {
    let before = COUNT.get();
    work();
    COUNT.get() - before
}

/// The identifier with this many bits: ones, whose code is one bit.
fn of_bits(count: usize) -> FileId {
    (0..count).fold(FileId::ROOT, |id, _| id.child(NonZeroU64::MIN).expect("it is short"))
}

#[test]
fn identifiers_up_to_48_bits_clone_compare_and_grow_without_the_heap() {
    for bits in 0..=FileId::SHORT_MAX {
        let (a, b) = (of_bits(bits), of_bits(bits / 2));
        let count = allocations(|| {
            let clone = black_box(a.clone());
            black_box((clone == a, clone.cmp(&b), b.is_prefix_of(&clone)));
            black_box((clone.parent(), b.next_sibling(), clone.components().count()));
        });
        assert_eq!(count, 0, "at {bits} bits");
        assert_eq!(allocations(|| drop(black_box(of_bits(bits)))), 0, "made of {bits} bits");
    }
}

#[test]
fn longer_identifiers_share_one_allocation() {
    let parent = of_bits(FileId::SHORT_MAX);
    let mut long = FileId::ROOT;
    assert_eq!(allocations(|| long = parent.child(NonZeroU64::MIN).expect("it is short")), 1);
    let count = allocations(|| {
        let clone = black_box(long.clone());
        black_box((clone == long, clone.cmp(&parent), parent.is_prefix_of(&clone)));
    });
    assert_eq!(count, 0);
}
