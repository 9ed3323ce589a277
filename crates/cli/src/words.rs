//! Addresses, spans, moments and users as people write and read them.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    time::{Duration, SystemTime},
};

use host::{Key, Patrons, Power, UserName};

/// No invitation is good for longer.
const SPAN_MAX: Duration = Duration::from_secs(30 * 86_400);
/// No issuer is.
const TENURE_MAX: Duration = Duration::from_secs(3_650 * 86_400);

/// An address at which a machine listens and others reach it: `192.168.1.7`, or `192.168.1.7:7001`. Without
/// a port, any that is free.
pub fn listen(text: &str) -> Result<SocketAddr, String> {
    let bare = text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 0));
    let address = bare.or_else(|_| text.parse::<SocketAddr>());
    let address = address.map_err(|_| {
        "an address is an IP, as in 192.168.1.7, or an IP and a port, as in 192.168.1.7:7001 or \
         [fd00::7]:7001"
    })?;
    if address.ip().is_unspecified() || address.ip().is_multicast() {
        return Err("others have to reach this machine there; name one of its own addresses".into());
    }
    Ok(address)
}

/// A span of time: `90s`, `30m`, `1h`, `2d`.
pub fn span(text: &str) -> Result<Duration, String> {
    let what = "a span is a number and s, m, h or d, as in 30m or 1h, and at most 30d";
    span_up_to(SPAN_MAX, text, what)
}

/// How long an issuer may issue: `30d`, `365d`.
pub fn tenure(text: &str) -> Result<Duration, String> {
    let what = "a span is a number and s, m, h or d, as in 30d or 365d, and at most 3650d";
    span_up_to(TENURE_MAX, text, what)
}

fn span_up_to(max: Duration, text: &str, what: &str) -> Result<Duration, String> {
    let unit = text.chars().last().ok_or(what)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(what.into()),
    };
    let count: u64 = text[..text.len() - 1].parse().map_err(|_| what)?;
    let span = count.checked_mul(seconds).map(Duration::from_secs);
    span.filter(|span| !span.is_zero() && *span <= max).ok_or_else(|| what.into())
}

/// So many bytes: `500M`, `10G`, `2T`.
pub fn amount(text: &str) -> Result<u64, String> {
    scaled(text, 1_024).ok_or_else(|| {
        "bytes are a number, and K, M, G or T for so many times 1,024, as in 500M or 10G".into()
    })
}

/// So many files: `50000`, `500K`, `1M`.
pub fn count(text: &str) -> Result<u64, String> {
    scaled(text, 1_000).ok_or_else(|| {
        "files are a number, and K, M, G or T for so many times 1,000, as in 500K or 1M".into()
    })
}

fn scaled(text: &str, step: u64) -> Option<u64> {
    let power = ["K", "M", "G", "T"].iter().position(|unit| text.ends_with(unit));
    let number = text.strip_suffix(['K', 'M', 'G', 'T']).unwrap_or(text);
    let power = power.map_or(0, |at| at as u32 + 1);
    number.parse::<u64>().ok()?.checked_mul(step.checked_pow(power)?)
}

/// Bytes as people read them: `640`, `1.5K`, `10G`.
pub fn size(bytes: u64) -> String {
    let units = ["", "K", "M", "G", "T", "P", "E"];
    let power = (bytes.max(1).ilog2() / 10) as usize;
    let whole = bytes >> (10 * power);
    let tenths = (bytes >> (10 * power.saturating_sub(1)) & 1_023) * 10 / 1_024;
    match power > 0 && whole < 10 && tenths > 0 {
        true => format!("{whole}.{tenths}{}", units[power]),
        false => format!("{whole}{}", units[power]),
    }
}

/// What an issuer may do.
pub fn power(text: &str) -> Result<Power, String> {
    let power = Power::ALL.into_iter().find(|power| power.to_string() == text);
    power.ok_or_else(|| "an issuer may invite, enrol, renew or revoke".into())
}

/// A whole key.
pub fn key(text: &str) -> Result<Key, String> {
    host::public_key(text).map(Key).ok_or_else(|| "a key is 64 hexadecimal digits".into())
}

/// For whom a machine acts: `any`, `none`, or names as in `alice,bob`.
pub fn patrons(text: &str) -> Result<Patrons, String> {
    match text {
        "any" => return Ok(Patrons::Any),
        "none" => return Ok(Patrons::These(BTreeSet::new())),
        _ => {}
    }
    let names: Result<BTreeSet<UserName>, String> = text.split(',').map(user).collect();
    let patrons = Patrons::These(names?);
    match patrons.is_bounded() {
        true => Ok(patrons),
        false => Err(format!("at most {} users can be named", Patrons::COUNT_MAX)),
    }
}

/// The name of a user.
pub fn user(text: &str) -> Result<UserName, String> {
    UserName::new(text).ok_or_else(|| {
        format!(
            "a user's name begins with a small letter and has small letters, digits, dots, dashes and \
             underscores, {} at the most",
            UserName::BYTES_MAX
        )
    })
}

/// This moment, in seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A moment, given in seconds since 1970.
pub fn moment(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that the odd day is the last one. 719,468 days lie between then and 1970.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_lack_a_port_and_must_be_one_that_others_reach() {
        assert_eq!(listen("127.0.0.1").unwrap(), ([127, 0, 0, 1], 0).into());
        assert_eq!(listen("127.0.0.1:7001").unwrap(), ([127, 0, 0, 1], 7_001).into());
        assert_eq!(listen("[::1]:9").unwrap().port(), 9);
        assert!(listen("::1").unwrap().is_ipv6());
        for nowhere in ["0.0.0.0", "[::]:7001", "224.0.0.1", "localhost", "7001", ""] {
            assert!(listen(nowhere).is_err(), "{nowhere}");
        }
    }

    #[test]
    fn a_span_is_a_number_with_a_unit_and_has_an_end() {
        assert_eq!(span("90s").unwrap(), Duration::from_secs(90));
        assert_eq!(span("30m").unwrap(), Duration::from_secs(1_800));
        assert_eq!(span("30d").unwrap(), SPAN_MAX);
        assert_eq!(tenure("3650d").unwrap(), TENURE_MAX);
        assert!(tenure("3651d").is_err() && tenure("").is_err());
        for none in
            ["", "h", "0s", "1", "31d", "-1h", "1ö", "99999999999999999999d", "9999999999999999d"]
        {
            assert!(span(none).is_err(), "{none}");
        }
    }

    #[test]
    fn amounts_are_numbers_with_a_unit_and_are_told_shortly() {
        assert_eq!(amount("10G"), Ok(10 << 30));
        assert_eq!(amount("7"), Ok(7));
        assert_eq!(count("2M"), Ok(2_000_000));
        for none in ["", "G", "-1", "1.5G", "1g", "1GB", "99999999999T", "16777216T"] {
            assert!(amount(none).is_err(), "{none}");
        }
        let told = [0, 640, 1_024, 1_536, 10 << 30, u64::MAX].map(size);
        assert_eq!(told, ["0", "640", "1K", "1.5K", "10G", "15E"]);
    }

    #[test]
    fn users_are_named_one_by_one_or_all_or_none() {
        assert_eq!(patrons("any"), Ok(Patrons::Any));
        assert_eq!(patrons("none"), Ok(Patrons::These(BTreeSet::new())));
        let names = ["alice", "bob"].map(|name| UserName::new(name).unwrap());
        assert_eq!(patrons("bob,alice"), Ok(Patrons::These(names.into())));
        for none in ["", "alice,", "alice,any", "Alice", "alice bob"] {
            assert!(patrons(none).is_err(), "{none}");
        }
    }

    #[test]
    fn moments_are_those_of_the_calendar() {
        assert_eq!(moment(0), "1970-01-01 00:00 UTC");
        assert_eq!(moment(951_827_696), "2000-02-29 12:34 UTC");
        assert_eq!(moment(1_772_323_199), "2026-02-28 23:59 UTC");
        assert_eq!(moment(1_772_323_200), "2026-03-01 00:00 UTC");
    }
}
