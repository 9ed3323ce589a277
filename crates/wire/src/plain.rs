//! What others say in words, as people may be shown it: short, and nothing in it that moves a terminal's cursor.

use base::Malformed;
use borsh::{BorshDeserialize, BorshSerialize, io};

/// The most bytes that are shown.
const BYTES_MAX: usize = 600;
/// Stands where the rest was.
const MORE: &str = "...";

/// The same without control characters, or what else is not seen as it is; and no longer than people read.
pub fn plain(text: &str) -> String {
    let mut shown = String::new();
    for letter in text.chars() {
        let start = shown.len();
        match letter {
            '\'' | '"' | '\\' => shown.push(letter),
            _ => shown.extend(letter.escape_debug()),
        }
        if shown.len() > BYTES_MAX {
            shown.truncate(start);
            while shown.len() > BYTES_MAX - MORE.len() {
                shown.pop();
            }
            return shown + MORE;
        }
    }
    shown
}

/// Writes words for another machine.
pub(crate) fn write<W: io::Write>(words: &str, writer: &mut W) -> io::Result<()> {
    plain(words).serialize(writer)
}

/// Reads those of another machine. An honest one has written them as [`write`] does.
pub(crate) fn read<R: io::Read>(reader: &mut R) -> io::Result<String> {
    let words = String::deserialize_reader(reader)?;
    match plain(&words) == words {
        true => Ok(words),
        false => Err(Malformed::new("words that are too many or not plain").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Answer;

    #[test]
    fn what_is_shown_has_no_control_characters_and_an_end() {
        assert_eq!(plain("it's \"no\" \\ naïve"), "it's \"no\" \\ naïve");
        let hostile = "\u{1b}[2Jroot\r\nok\u{7}\u{202e}\0\u{9b}";
        let shown = plain(hostile);
        assert!(!shown.chars().any(char::is_control) && !shown.contains('\u{202e}'), "{shown}");
        assert!(shown.contains("root") && shown.contains("\\n"), "{shown}");
        for text in ["x".repeat(1 << 20), "\u{1b}".repeat(1 << 20), "ß".repeat(1 << 20)] {
            let shown = plain(&text);
            assert!(shown.len() <= BYTES_MAX && shown.ends_with(MORE), "{} bytes", shown.len());
        }
        for text in [hostile, &"\u{1b}".repeat(999), &"y".repeat(BYTES_MAX), "a\\n"] {
            assert_eq!(plain(&plain(text)), plain(text), "what is plain stays as it is");
        }
    }

    #[test]
    fn a_refusal_that_is_long_or_not_plain_is_not_read_and_an_honest_one_is() {
        // As somebody writes it who does not clean it.
        let raw = |why: &str| base::encode(&(crate::VERSION, 1_u8, why.to_owned()));
        let read = |bytes: &[u8]| crate::decode::<Answer>(bytes);
        assert_eq!(read(&raw("no")), Ok(Answer::Refused("no".into())));
        for hostile in ["a\u{1b}[31mb", "two\nlines", &"x".repeat(900_000)] {
            assert!(read(&raw(hostile)).is_err());
            let cleaned = crate::encode(&Answer::Refused(hostile.into()));
            assert_eq!(read(&cleaned), Ok(Answer::Refused(plain(hostile))));
        }
    }
}
