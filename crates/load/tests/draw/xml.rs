//! Whether a text is well-formed XML, as far as our drawings use it.

/// Says what is wrong.
pub fn check(text: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut count = 0;
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start], open.is_empty())?;
        let end = rest[start..].find('>').ok_or("a tag without its end")? + start;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> closes nothing"));
            }
            continue;
        }
        if open.is_empty() {
            count += 1;
        }
        let (tag, is_closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        check_attributes(attributes)?;
        if !is_closed {
            open.push(name);
        }
    }
    check_text(rest, true)?;
    match (open.as_slice(), count) {
        ([], 1) => Ok(()),
        ([], _) => Err(format!("{count} elements at the top")),
        _ => Err(format!("{open:?} stay open")),
    }
}

fn check_text(text: &str, is_outside: bool) -> Result<(), String> {
    if is_outside && !text.trim().is_empty() {
        return Err(format!("{text:?} outside of all elements"));
    }
    if text.contains('>') {
        return Err(format!("a bare > in {text:?}"));
    }
    check_entities(text)
}

fn check_attributes(attributes: &str) -> Result<(), String> {
    let mut names = Vec::new();
    let mut rest = attributes;
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").ok_or(format!("no value in {rest:?}"))?;
        let (value, after) = value.split_once('"').ok_or(format!("no end in {rest:?}"))?;
        if names.contains(&name) || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Err(format!("attribute {name:?}"));
        }
        names.push(name);
        check_entities(value)?;
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
    Ok(())
}

fn check_entities(text: &str) -> Result<(), String> {
    let known = ["amp;", "lt;", "gt;", "quot;"];
    match text.split('&').skip(1).find(|after| !known.iter().any(|k| after.starts_with(k))) {
        Some(after) => Err(format!("a bare & before {after:?}")),
        None => Ok(()),
    }
}

#[test]
fn faults_are_found() {
    assert_eq!(check("<a b=\"c\"><d/>x &amp; y</a>\n"), Ok(()));
    for faulty in
        ["<a>", "<a></b>", "<a/><b/>", "<a>&</a>", "<a b=c/>", "<a/>x", "<a b=\"\" b=\"\"/>"]
    {
        assert!(check(faulty).is_err(), "{faulty}");
    }
}
