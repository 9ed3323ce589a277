//! The key that a machine, a user, a cell or an issuer is known by, in a file that only its owner may read.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::Write as _,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use base::{PublicKey, SecretKey};
use zeroize::{Zeroize as _, Zeroizing};

use crate::{Failure, log::tail::sync_directory};

/// Makes a key that nobody has had before. Safe on return.
pub(crate) fn make(path: &Path) -> Result<(), Failure> {
    let seed = Zeroizing::new(fresh_seed()?);
    let mut text = Zeroizing::new(String::with_capacity(65));
    for byte in seed.iter() {
        _ = write!(text, "{byte:02x}");
    }
    text.push('\n');
    write_new(path, &text)
}

/// Writes a secret where there is nothing yet. Safe on return.
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let write = || {
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(Failure::of("can't write", path))?;
    directory_of(path).map_or(Ok(()), sync_directory)
}

/// Writes a secret over what there is: whatever happens, there is the old one or the new one.
pub(crate) fn write_over(path: &Path, text: &str) -> Result<(), Failure> {
    let draft = path.with_extension("new");
    // What is left of an attempt that was cut off.
    _ = fs::remove_file(&draft);
    write_new(&draft, text)?;
    fs::rename(&draft, path).map_err(Failure::of("can't write", path))?;
    directory_of(path).map_or(Ok(()), sync_directory)
}

/// The directory that a file is in, which a bare name does not say.
fn directory_of(path: &Path) -> Option<&Path> {
    path.parent().map(|parent| match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    })
}

/// The public half of a user's key in a file, which is made if it is not there.
pub fn user_key(path: &Path) -> Result<PublicKey, Failure> {
    if !path.exists() {
        make(path)?;
    }
    read(path).map(|key| key.public())
}

/// 32 bytes that nobody can guess.
pub(crate) fn fresh_seed() -> Result<[u8; 32], Failure> {
    let (path, mut seed) = ("/dev/urandom", [0; 32]);
    let read =
        File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut seed));
    read.map_err(Failure::of("can't read", path))?;
    Ok(seed)
}

/// From what an invitation is made.
pub(crate) fn fresh_secret() -> Result<overlay::Secret, Failure> {
    let seed = Zeroizing::new(fresh_seed()?);
    let (bytes, _) = seed.split_first_chunk().expect("it is shorter than a seed");
    Ok(overlay::Secret::new(*bytes))
}

/// The key in a file.
pub(crate) fn read(path: &Path) -> Result<SecretKey, Failure> {
    let damaged = |what: &str| {
        let what = format!("{what}; put it back from a copy");
        Failure::Damaged { path: path.into(), what }
    };
    let text = read_secret(path)?;
    let mut seed = [0; 32];
    if !read_digits(text.trim_end(), &mut seed) {
        return Err(damaged("a key is 64 hexadecimal digits"));
    }
    let key = SecretKey::from_seed(seed);
    seed.zeroize();
    Ok(key)
}

/// The text of a file that only its owner may read.
pub(crate) fn read_secret(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let text = fs::read_to_string(path).map_err(Failure::of("can't read", path))?;
    let text = Zeroizing::new(text);
    let mode = fs::metadata(path).map_err(Failure::of("can't read", path))?.permissions().mode();
    if mode & 0o077 != 0 {
        let what = format!(
            "others may read {}, which is a secret key: `chmod 600` it, and ask yourself who has",
            path.display()
        );
        return Err(Failure::Unfit(what));
    }
    Ok(text)
}

/// The public key of 64 hexadecimal digits.
pub fn public_key(text: &str) -> Option<PublicKey> {
    let mut bytes = [0; 32];
    read_digits(text, &mut bytes).then(|| PublicKey::from_bytes(bytes))
}

/// Reads hexadecimal digits into bytes, if they are just as many.
pub(crate) fn read_digits(digits: &str, bytes: &mut [u8]) -> bool {
    let is_fit =
        digits.len() == 2 * bytes.len() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)).filter(|_| is_fit) {
        let pair = std::str::from_utf8(pair).unwrap_or_default();
        *byte = u8::from_str_radix(pair, 16).unwrap_or_default();
    }
    is_fit
}

/// Bytes as hexadecimal digits.
pub(crate) fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::scratch::Scratch;

    #[test]
    fn a_key_is_read_as_it_was_made_and_is_its_owners_alone() {
        let scratch = Scratch::new("key");
        let (one, two) = (scratch.path.join("one"), scratch.path.join("two"));
        make(&one).unwrap();
        make(&two).unwrap();
        let public = |path| read(path).unwrap().public();
        assert_eq!(public(&one), public(&one));
        assert_ne!(public(&one), public(&two));
        assert_eq!(fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(make(&one).is_err(), "a key is never written over");
    }

    #[test]
    fn a_key_that_others_may_read_or_that_is_none_is_refused() {
        let scratch = Scratch::new("key");
        let path = scratch.path.join("key");
        make(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("chmod 600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "no key\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("64 hexadecimal digits"));
    }
}
