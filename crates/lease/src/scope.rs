//! What can be known: fields of files (D23), alone or many at once.
//!
//! Scopes form one tree. A subtree of files contains its files, a file its fields, "every child name"
//! each single name. So two scopes are either nested or have nothing in common, and a lease on a wide
//! one with a stated few excluded (D31) needs no other notion than containment.

use std::{borrow::Borrow, fmt};

use base::FileId;
use borsh::{BorshDeserialize, BorshSerialize, io};
use triomphe::ThinArc;

/// A piece of what can be known about the tree: a field of a file, or many.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Scope {
    /// Whose field it is.
    pub file: FileId,
    /// Which.
    pub field: Field,
}

/// A field of a file; the last three stand for many.
///
/// One field, one meaning (D30): an open handle for writing says nothing about content.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum Field {
    /// Mode bits, owner, group and access list.
    Access,
    /// The times, as far as they are not a consequence of another field.
    Times,
    /// Extended attributes.
    Extended,
    /// Size and content.
    Content,
    /// Whether it is to be deleted when the last handle closes.
    Deletion,
    /// The directory that it lies in.
    Parent,
    /// Byte-range and whole-file locks that are held on it.
    Locks,
    /// Whether anybody has it open. Disjunctive.
    Handles,
    /// Whether anybody has it open, or keeps it from being opened, in this way. Disjunctive.
    Mode(Mode),
    /// Which file has this name in the directory, if any.
    Child(Name),
    /// Every child name.
    Children,
    /// Every field of the file.
    Whole,
    /// Every field of the file and of every file below it.
    Tree,
}

/// A way of opening a file, or of keeping others from opening it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum Mode {
    /// Opened for reading.
    Read,
    /// Opened for writing.
    Write,
    /// Opened for deleting.
    Delete,
    /// Others may not open it for reading.
    DenyRead,
    /// Others may not open it for writing.
    DenyWrite,
    /// Others may not open it for deleting.
    DenyDelete,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 6] =
        [Mode::Read, Mode::Write, Mode::Delete, Mode::DenyRead, Mode::DenyWrite, Mode::DenyDelete];

    /// Whether it keeps others from opening the file.
    pub fn is_denial(self) -> bool {
        matches!(self, Mode::DenyRead | Mode::DenyWrite | Mode::DenyDelete)
    }
}

impl Field {
    /// Whether its value is an OR over what each client says for itself (D24).
    pub fn is_disjunctive(&self) -> bool {
        matches!(self, Field::Handles | Field::Mode(_))
    }

    /// Whether it stands for many fields.
    pub fn is_wide(&self) -> bool {
        matches!(self, Field::Children | Field::Whole | Field::Tree)
    }

    /// This field of a file.
    pub fn of(self, file: &FileId) -> Scope {
        Scope { file: file.clone(), field: self }
    }
}

impl Scope {
    /// Whether everything in the other scope is in this one too.
    pub fn contains(&self, other: &Scope) -> bool {
        if self.field == Field::Tree {
            return self.file.is_prefix_of(&other.file);
        }
        self.file == other.file
            && match self.field {
                Field::Whole => other.field != Field::Tree,
                Field::Children => matches!(other.field, Field::Children | Field::Child(_)),
                _ => self.field == other.field,
            }
    }

    /// Whether the two have anything in common.
    pub fn meets(&self, other: &Scope) -> bool {
        self.contains(other) || other.contains(self)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.field)
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Access => f.write_str("access"),
            Field::Times => f.write_str("times"),
            Field::Extended => f.write_str("extended"),
            Field::Content => f.write_str("content"),
            Field::Deletion => f.write_str("deletion"),
            Field::Parent => f.write_str("parent"),
            Field::Locks => f.write_str("locks"),
            Field::Handles => f.write_str("handles"),
            Field::Mode(mode) => write!(f, "{mode:?}"),
            Field::Child(name) => write!(f, "/{name}"),
            Field::Children => f.write_str("/*"),
            Field::Whole => f.write_str("*"),
            Field::Tree => f.write_str("**"),
        }
    }
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A file name: 1 to 255 bytes, neither a slash nor a zero among them, not `.` and not `..`.
///
/// One machine word; copies share the bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(ThinArc<(), u8>);

impl Name {
    /// The longest name in bytes.
    pub const BYTES_MAX: usize = 255;

    /// The name with these bytes, if they may be one.
    pub fn new(bytes: &[u8]) -> Option<Name> {
        let fits = (1..=Name::BYTES_MAX).contains(&bytes.len());
        let plain =
            !bytes.contains(&0) && !bytes.contains(&b'/') && bytes != b"." && bytes != b"..";
        (fits && plain).then(|| Name(ThinArc::from_header_and_slice((), bytes)))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0.slice
    }
}

impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_bytes().escape_ascii())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl BorshSerialize for Name {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        let len = u8::try_from(self.as_bytes().len()).expect("a name has at most 255 bytes");
        writer.write_all(&[len])?;
        writer.write_all(self.as_bytes())
    }
}

impl BorshDeserialize for Name {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Name> {
        let len = u8::deserialize_reader(reader)?;
        let mut bytes = [0; Name::BYTES_MAX];
        let bytes = &mut bytes[..usize::from(len)];
        reader.read_exact(bytes)?;
        Name::new(bytes).ok_or_else(|| base::Malformed::new("bytes that are no file name").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> Scope {
        crate::script::scope(text)
    }

    #[test]
    fn scopes_are_nested_or_apart() {
        let all = [
            "1:**",
            "1:*",
            "1:access",
            "1:handles",
            "1:/*",
            "1:/a",
            "1:/b",
            "1.2:**",
            "1.2:*",
            "1.2:/a",
            "2:*",
            "root:**",
        ];
        for a in all.map(scope) {
            assert!(a.contains(&a));
            for b in all.map(scope) {
                assert_eq!(a.meets(&b), b.meets(&a));
                assert!(a == b || !(a.contains(&b) && b.contains(&a)), "{a} and {b}");
            }
        }
    }

    #[test]
    fn wide_scopes_contain_what_they_say() {
        let contains = |a, b| scope(a).contains(&scope(b));
        assert!(
            contains("1:**", "1:*") && contains("1:**", "1.5.7:/a") && contains("root:**", "1:**")
        );
        assert!(
            contains("1:*", "1:/*") && contains("1:*", "1:handles") && contains("1:/*", "1:/a")
        );
        assert!(!contains("1:*", "1.1:access") && !contains("1:*", "1:**"));
        assert!(
            !contains("1:/*", "1:access") && !contains("1:/a", "1:/*") && !contains("1:/a", "1:/b")
        );
    }

    #[test]
    fn names_are_what_a_directory_can_hold() {
        for good in [&b"a"[..], b"...", b"\xff\xfe", &[b'x'; 255]] {
            assert_eq!(Name::new(good).unwrap().as_bytes(), good);
        }
        for bad in [&b""[..], b".", b"..", b"a/b", b"a\0", &[b'x'; 256]] {
            assert_eq!(Name::new(bad), None);
        }
    }

    #[test]
    fn a_scope_is_three_words() {
        assert_eq!(size_of::<Name>(), 8);
        assert_eq!(size_of::<Scope>(), 24);
    }
}
