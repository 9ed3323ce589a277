//! What a reservoir hands back instead of an item's place in it.

/// No room: the arrival is in the caller's hands again, who waits with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the arrival did not enter; keep it, and stop the flow that it came by"]
pub struct Full<T>(pub T);

/// The arrival was dropped, and somebody must hear of it (L17).
///
/// The item comes out only through [`rectify`](Dropped::rectify), so that a reader of the code finds the
/// rectification at the place of the shedding.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "shedding without rectification is loss; call `rectify`"]
pub struct Dropped<T>(T);

impl<T> Dropped<T> {
    pub(super) fn new(item: T) -> Dropped<T> {
        Dropped(item)
    }

    /// Hands the item to what makes good for its loss.
    pub fn rectify<R>(self, rectification: impl FnOnce(T) -> R) -> R {
        rectification(self.0)
    }
}
