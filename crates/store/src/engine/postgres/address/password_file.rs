//! The password file of libpq: a line `host:port:database:user:password` per login, where `*` matches
//! anything and `\` escapes `:` and `\`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Group and others.
const NOT_THE_OWNER: u32 = 0o077;

/// What a login is for.
pub struct Login<'a> {
    pub host: &'a str,
    pub port: u16,
    pub database: &'a str,
    pub user: &'a str,
}

/// The contents of the file, or the reason why it must not be used.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let unreadable = |error| format!("the password file {shown} is ignored: {error}");
    let about = fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() {
        return Err(format!("the password file {shown} is ignored: it is not a regular file"));
    }
    if about.permissions().mode() & NOT_THE_OWNER != 0 {
        return Err(format!(
            "the password file {shown} is ignored: other users have access to it; run chmod 600"
        ));
    }
    fs::read(path).map_err(unreadable)
}

/// The password of the first line that fits.
pub fn find(contents: &[u8], login: &Login) -> Option<Vec<u8>> {
    let port = login.port.to_string();
    let wanted = [login.host, &port, login.database, login.user];
    contents.split(|&byte| byte == b'\n').find_map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.starts_with(b"#") {
            return None;
        }
        let mut rest = line;
        for value in wanted {
            let (field, after) = field(rest);
            if rest.get(..2) != Some(b"*:") && field != value.as_bytes() {
                return None;
            }
            rest = after?;
        }
        let (password, _) = field(rest);
        Some(password).filter(|password| !password.is_empty())
    })
}

/// The text up to the next `:`, without its escapes, and what follows the `:`.
fn field(line: &[u8]) -> (Vec<u8>, Option<&[u8]>) {
    let mut text = Vec::new();
    let mut bytes = line.iter().enumerate();
    while let Some((at, &byte)) = bytes.next() {
        match byte {
            b':' => return (text, Some(&line[at + 1..])),
            b'\\' => text.push(bytes.next().map_or(byte, |(_, &escaped)| escaped)),
            byte => text.push(byte),
        }
    }
    (text, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_gives_the_password() {
        let login = Login { host: "db.acme.test", port: 5432, database: "crm", user: "rapport" };
        let table: [(&str, Option<&str>); 11] = [
            ("db.acme.test:5432:crm:rapport:secret\n", Some("secret")),
            ("*:*:*:*:secret", Some("secret")),
            ("other:*:*:*:no\ndb.acme.test:*:crm:*:secret\r\n*:*:*:*:later\n", Some("secret")),
            ("#db.acme.test:5432:crm:rapport:no\n\n*:5432:*:*:secret", Some("secret")),
            (r"*:*:*:*:a\:b\\c", Some(r"a:b\c")),
            ("*:*:*:*:a:b", Some("a")),
            ("*:5433:*:*:secret", None),
            ("*:*:*:somebody:secret", None),
            ("db.acme.test*:*:*:*:secret", None),
            ("*:*:*:rapport", None),
            ("", None),
        ];
        for (contents, expected) in table {
            let found = find(contents.as_bytes(), &login);
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{contents}");
        }
        let escaped = Login { host: r"a:b\c", ..login };
        assert_eq!(find(br"a\:b\\c:*:*:*:secret", &escaped).as_deref(), Some(&b"secret"[..]));
    }

    #[test]
    fn a_file_that_others_may_read_is_ignored() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("passwords");
        fs::write(&path, "*:*:*:*:secret").expect("written");
        for (mode, is_read) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
            assert_eq!(read(&path).is_ok(), is_read, "{mode:o}");
        }
        let error = read(&path).expect_err("ignored");
        assert!(error.contains("chmod 600"), "{error}");
        assert!(read(directory.path()).expect_err("ignored").contains("not a regular file"));
        assert!(read(&directory.path().join("missing")).is_err());
    }
}
