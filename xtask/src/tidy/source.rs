//! Rust with its comments and literals blanked out, so that rules see code only.
//!
//! It knows just the few things that can hide code from a search or look like it: comments, strings
//! and characters. Every line keeps its number.

/// The text with each character of a comment or literal replaced by a space.
pub fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let word = word_len(rest);
        let (token, is_hidden) = match hidden_len(rest, word) {
            Some(len) => (&rest[..len], true),
            None => (&rest[..word.max(rest.chars().next().map_or(0, char::len_utf8))], false),
        };
        if is_hidden {
            code.extend(token.chars().map(|c| if c == '\n' { c } else { ' ' }));
        } else {
            code.push_str(token);
        }
        rest = &rest[token.len()..];
    }
    code
}

/// Whether the character can be part of a word.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word_len(text: &str) -> usize {
    text.find(|c| !is_word(c)).unwrap_or(text.len())
}

/// The length of the comment or literal that starts here; `word` is the length of the word here.
fn hidden_len(text: &str, word: usize) -> Option<usize> {
    match &text[..word] {
        "r" | "br" | "cr" => raw_string_len(&text[word..]).map(|len| word + len),
        "" if text.starts_with("//") => Some(text.find('\n').unwrap_or(text.len())),
        "" if text.starts_with("/*") => Some(block_comment_len(text)),
        "" if text.starts_with('"') => Some(quoted_len(text, '"')),
        "" if text.starts_with('\'') => is_char(text).then(|| quoted_len(text, '\'')),
        _ => None,
    }
}

/// `#"..."#` with any number of hashes; a raw identifier is no string.
fn raw_string_len(text: &str) -> Option<usize> {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let body = text[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", &text[..hashes]);
    Some(body.find(&end).map_or(text.len(), |at| hashes + 1 + at + end.len()))
}

fn block_comment_len(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let bytes = &text.as_bytes()[at..];
        if bytes.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// From one quote to the next that is not escaped.
fn quoted_len(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Whether a single quote opens a character, not a lifetime.
fn is_char(text: &str) -> bool {
    let mut rest = text.chars().skip(1);
    rest.next() == Some('\\') || rest.next() == Some('\'')
}

#[cfg(test)]
mod tests {
    use super::code;

    fn check(text: &str, expected: &str) {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let code = code(text);
        assert_eq!(words(&code), expected);
        assert_eq!(code.lines().count(), text.lines().count());
    }

    #[test]
    fn comments_are_blank() {
        check("a // b\nc /* d /* e */ f\n */ g\n/// h\ni", "a c g i");
        check("a /* é", "a");
    }

    #[test]
    fn strings_are_blank() {
        check(r#"a("b \" c // d", e)"#, "a( , e)");
        check("a(\"b\n c\", b\"d\", c\"e\")", "a( , b , c )");
    }

    #[test]
    fn raw_strings_are_blank_and_raw_names_are_not() {
        check(r###"a(r"b\", r#"c " d"#, br##"e"# f"##) r#fn"###, "a( , , ) r#fn");
    }

    #[test]
    fn characters_are_blank_and_lifetimes_are_not() {
        check(r"a('b', '\'', '\\', '\u{e9}', '/', 'é') c", "a( , , , , , ) c");
        check(
            "fn a<'b>(c: &'b str, d: &'static str) {}",
            "fn a<'b>(c: &'b str, d: &'static str) {}",
        );
        check("'outer: loop { break 'outer; }", "'outer: loop { break 'outer; }");
    }
}
