//! The small tree over which clients quarrel.

use base::FileId;
use lease::{Field, Kind, Mode, Name, Scope};

/// The fields that are used, and the wider scopes that contain them.
#[derive(Debug)]
pub(crate) struct Place {
    /// Every single field. A leaf is known by its index.
    pub(crate) leaves: Vec<Scope>,
    /// Scopes that contain many of them.
    pub(crate) wides: Vec<Scope>,
}

/// A single field, by its index.
pub(crate) type Leaf = usize;

impl Place {
    pub(crate) fn new() -> Place {
        let (one, below, two) = (file("1"), file("1.1"), file("2"));
        let leaves = vec![
            Field::Content.of(&one),
            Field::Access.of(&one),
            child("a").of(&one),
            child("b").of(&one),
            Field::Handles.of(&one),
            Field::Mode(Mode::Write).of(&one),
            Field::Content.of(&below),
            Field::Handles.of(&below),
            child("a").of(&two),
            child("b").of(&two),
            child("c").of(&two),
        ];
        let wides = vec![
            Field::Children.of(&one),
            Field::Whole.of(&one),
            Field::Tree.of(&one),
            Field::Children.of(&two),
            Field::Whole.of(&two),
            Field::Tree.of(&FileId::ROOT),
        ];
        Place { leaves, wides }
    }

    pub(crate) fn is_disjunctive(&self, leaf: Leaf) -> bool {
        self.leaves[leaf].field.is_disjunctive()
    }

    /// The leaves in a scope.
    pub(crate) fn within<'a>(&'a self, scope: &'a Scope) -> impl Iterator<Item = Leaf> + 'a {
        (0..self.leaves.len()).filter(move |&leaf| scope.contains(&self.leaves[leaf]))
    }

    /// The kind under which a leaf is changed.
    pub(crate) fn change(&self, leaf: Leaf) -> Kind {
        if self.is_disjunctive(leaf) { Kind::SelfWrite } else { Kind::Write }
    }

    /// The kind under which a leaf is looked at.
    pub(crate) fn look(&self, leaf: Leaf) -> Kind {
        if self.is_disjunctive(leaf) { Kind::OtherRead } else { Kind::Read }
    }
}

fn file(text: &str) -> FileId {
    text.parse().expect("it is an identifier")
}

fn child(text: &str) -> Field {
    Field::Child(Name::new(text.as_bytes()).expect("it is a name"))
}
