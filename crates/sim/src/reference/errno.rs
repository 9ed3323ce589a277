//! The ways in which the reference file system says no.

use std::fmt;

/// What a call answers.
pub type Answer<T> = Result<T, Errno>;

macro_rules! errnos {
    ($($name:ident = $number:literal,)*) => {
        /// An error, with Linux's number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "errno(3) says what each means")]
        pub enum Errno {
            $($name = $number,)*
        }

        impl Errno {
            /// All that can occur.
            pub const ALL: &[Errno] = &[$(Errno::$name,)*];

            /// Linux's number for it.
            pub fn number(self) -> i32 {
                self as i32
            }

            /// Its name, as in `ENOENT`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Errno::$name => stringify!($name),)*
                }
            }
        }
    };
}

errnos! {
    EPERM = 1,
    ENOENT = 2,
    E2BIG = 7,
    EBADF = 9,
    EAGAIN = 11,
    EACCES = 13,
    EBUSY = 16,
    EEXIST = 17,
    ENOTDIR = 20,
    EISDIR = 21,
    EINVAL = 22,
    EFBIG = 27,
    ERANGE = 34,
    ENAMETOOLONG = 36,
    ENOTEMPTY = 39,
    ELOOP = 40,
    ENODATA = 61,
    EOPNOTSUPP = 95,
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
