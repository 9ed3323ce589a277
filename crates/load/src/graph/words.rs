//! How amounts and lengths of time are written for people.

use base::Duration;

/// An amount with its unit: `16,384 updates`, `8 GiB`.
pub fn amount(value: u64, unit: &str) -> String {
    match unit {
        "bytes" => bytes(value),
        _ => format!("{} {unit}", number(value)),
    }
}

/// An amount where its unit is clear: `16,384`, `8 GiB`.
pub fn bare(value: u64, unit: &str) -> String {
    match unit {
        "bytes" => bytes(value),
        _ => number(value),
    }
}

/// A number with its thousands apart.
pub fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn bytes(value: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|&&(size, _)| value >= size && value.is_multiple_of(size)) {
        Some((size, unit)) => format!("{} {unit}", number(value / size)),
        None => format!("{} bytes", number(value)),
    }
}

/// A length of time in the largest unit that divides it: `1 h`, `100 ms`.
pub fn span(value: Duration) -> String {
    let nanos = value.as_nanos();
    let units = [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "min"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
    ];
    match units.iter().find(|&&(size, _)| nanos >= size && nanos.is_multiple_of(size)) {
        Some((size, unit)) => format!("{} {unit}", nanos / size),
        None => format!("{value:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_well() {
        assert_eq!(amount(0, "updates"), "0 updates");
        assert_eq!(amount(999, "updates"), "999 updates");
        assert_eq!(amount(1_000, "updates"), "1,000 updates");
        assert_eq!(bare(12_345_678, "updates"), "12,345,678");
        assert_eq!(amount(8 << 30, "bytes"), "8 GiB");
        assert_eq!(bare(1_500, "bytes"), "1,500 bytes");
    }

    #[test]
    fn spans_read_well() {
        assert_eq!(span(Duration::from_secs(3_600)), "1 h");
        assert_eq!(span(Duration::from_secs(180)), "3 min");
        assert_eq!(span(Duration::from_millis(1_500)), "1500 ms");
        assert_eq!(span(Duration::from_micros(7)), "7µs");
    }
}
