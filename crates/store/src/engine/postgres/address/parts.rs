//! The parts of a database URL.
//!
//! Strict about where one part ends, so that no piece of a password becomes a host, a database or a
//! parameter, and with it a part of a message. No message repeats anything of the URL except names of
//! parameters.

use percent_encoding::percent_decode_str;

const SCHEMES: [&str; 2] = ["postgres", "postgresql"];
const HIDDEN: &str = "****";
const ENCODE_IT: &str =
    "if the password contains an @, write %40 instead; in the same way %3F for ?, %26 for & and %25 for %";

/// User, hosts and database are percent-encoded, as they were given.
pub struct Parts<'a> {
    scheme: &'a str,
    pub user: Option<&'a str>,
    password: Option<&'a str>,
    pub hosts: &'a str,
    pub database: Option<&'a str>,
    /// Name and value, decoded.
    pub parameters: Vec<(String, String)>,
}

impl<'a> Parts<'a> {
    pub fn split(url: &'a str) -> Result<Self, String> {
        let (scheme, rest) = url
            .split_once("://")
            .filter(|(scheme, _)| SCHEMES.contains(scheme))
            .ok_or("must begin with postgres:// or postgresql://")?;
        let (address, query) = rest.split_once('?').map_or((rest, None), |(a, q)| (a, Some(q)));
        let (login, place) = match address.split_once('@') {
            Some((_, place)) if place.contains('@') => {
                return Err(format!(
                    "the user, password and host are separated by more than one @; {ENCODE_IT}"
                ));
            }
            Some((login, place)) => (Some(login), place),
            None => (None, address),
        };
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
            Some((user, password)) => (Some(user), Some(password).filter(|password| !password.is_empty())),
            None => (None, None),
        };
        let (hosts, database) = place.split_once('/').map_or((place, None), |(h, d)| (h, Some(d)));
        let parameters = query.map(parameters).transpose();
        // What looks like the name of a parameter may be the rest of a password with a ? or a &.
        let is_doubtful = query.is_some_and(|query| query.contains('@') || query.contains("password="));
        let parameters = parameters.map_err(|error| if is_doubtful { doubtful() } else { error })?;
        let parts =
            Self { scheme, user, password, hosts, database, parameters: parameters.unwrap_or_default() };
        parts.check()?;
        match parts.parameters.iter().find(|(name, _)| !KNOWN.contains(&name.as_str())) {
            Some((name, _)) if UNSUPPORTED.contains(&name.as_str()) => {
                Err(format!("the parameter {name} is not supported"))
            }
            Some(_) if is_doubtful => Err(doubtful()),
            Some((name, _)) if is_word(name) => Err(format!("the parameter {name} is not supported")),
            Some(_) => Err(format!("a parameter has an unknown name; {ENCODE_IT}")),
            None => Ok(parts),
        }
    }

    fn check(&self) -> Result<(), String> {
        for (part, text) in [("user", self.user), ("database", self.database), ("host", Some(self.hosts))] {
            decoded(text.unwrap_or_default()).map_err(|problem| format!("the {part} {problem}"))?;
        }
        self.password()?;
        let ports = self
            .hosts
            .split(',')
            .filter_map(|host| host.rsplit_once(']').map_or(host, |(_, rest)| rest).split_once(':'));
        for (_, port) in ports {
            port.parse::<u16>().map_err(|_| format!("the port must be a number; {ENCODE_IT}"))?;
        }
        Ok(())
    }

    /// The password before the host or among the parameters, decoded. It need not be UTF-8.
    pub fn password(&self) -> Result<Option<Vec<u8>>, String> {
        if let Some(password) = self.password {
            check_encoding(password).map_err(|problem| format!("the password {problem}"))?;
            return Ok(Some(percent_decode_str(password).collect()));
        }
        let given = self.parameters.iter().rfind(|(name, value)| name == "password" && !value.is_empty());
        Ok(given.map(|(_, value)| value.clone().into_bytes()))
    }

    /// The URL without its password, for people.
    pub fn shown(&self) -> String {
        let Self { scheme, user, password, hosts, database, parameters } = self;
        let mut shown = format!("{scheme}://");
        if let Some(user) = user {
            shown += user;
            shown += if password.is_some() { ":****@" } else { "@" };
        }
        shown += hosts;
        if let Some(database) = database {
            shown = format!("{shown}/{database}");
        }
        for (n, (name, value)) in parameters.iter().enumerate() {
            let value = if name.contains("password") { HIDDEN } else { value };
            let separator = if n == 0 { '?' } else { '&' };
            shown = format!("{shown}{separator}{name}={value}");
        }
        shown
    }
}

/// Any text without what could be a password in it.
pub fn shown(url: &str) -> String {
    Parts::split(url).map_or_else(|_| format!("postgres://{HIDDEN}"), |parts| parts.shown())
}

/// The parameters that we read ourselves, and those of the library.
const KNOWN: [&str; 23] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "channel_binding",
    "passfile",
    "password",
    "user",
    "dbname",
    "options",
    "application_name",
    "sslnegotiation",
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "target_session_attrs",
    "load_balance_hosts",
];

/// Other parameters of libpq, which nobody has as a part of a password.
const UNSUPPORTED: [&str; 12] = [
    "client_encoding",
    "gssencmode",
    "require_auth",
    "service",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslpassword",
    "sslsni",
];

fn parameters(query: &str) -> Result<Vec<(String, String)>, String> {
    let named = query.split('&').filter(|parameter| !parameter.is_empty()).map(|parameter| {
        let (name, value) = parameter
            .split_once('=')
            .ok_or_else(|| format!("each parameter after the ? must be NAME=VALUE; {ENCODE_IT}"))?;
        let name = decoded(name).map_err(|problem| format!("the name of a parameter {problem}"))?;
        let value = decoded(value).map_err(|problem| format!("the value of a parameter {problem}"))?;
        Ok((name, value))
    });
    named.collect()
}

fn doubtful() -> String {
    format!("a parameter after the ? is invalid; {ENCODE_IT}")
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

fn decoded(text: &str) -> Result<String, &'static str> {
    check_encoding(text)?;
    percent_decode_str(text).decode_utf8().map(String::from).map_err(|_| "is not UTF-8")
}

fn check_encoding(text: &str) -> Result<(), &'static str> {
    let is_code =
        |rest: &str| rest.get(..2).is_some_and(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if text.split('%').skip(1).all(is_code) {
        return Ok(());
    }
    Err("contains a % that is not followed by two hexadecimal digits; write %25 for a %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_their_password() {
        let table = [
            ("postgres://h/db", "postgres://h/db"),
            ("postgres://u@h/db", "postgres://u@h/db"),
            ("postgres://u:@h/db", "postgres://u@h/db"),
            ("postgres://u:pw@h:1/db", "postgres://u:****@h:1/db"),
            ("postgres://u:p%40w@h:1/db", "postgres://u:****@h:1/db"),
            ("postgres://u:p:w/x+=@h", "postgres://u:****@h"),
            (
                "postgresql://u:pw@h:1,[::1]:2/db?sslmode=disable",
                "postgresql://u:****@h:1,[::1]:2/db?sslmode=disable",
            ),
            ("postgres://h/db?user=u&password=pw", "postgres://h/db?user=u&password=****"),
            ("postgres://h/db?user=u&password=p@w", "postgres://h/db?user=u&password=****"),
            ("postgres://u:p@w@h/db", "postgres://****"),
            ("u:pw@h", "postgres://****"),
        ];
        for (url, expected) in table {
            assert_eq!(shown(url), expected, "{url}");
        }
    }

    #[test]
    fn the_password_is_decoded_wherever_it_is_written() {
        let table: [(&str, Option<&[u8]>); 6] = [
            ("postgres://u@h", None),
            ("postgres://u:@h", None),
            ("postgres://u:p%40w%2F@h", Some(b"p@w/")),
            ("postgres://u:%ff@h", Some(b"\xff")),
            ("postgres://u:p/w:x+=#@h/db", Some(b"p/w:x+=#")),
            ("postgres://h?password=p%26w", Some(b"p&w")),
        ];
        for (url, expected) in table {
            let parts = Parts::split(url).unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!(parts.password().expect("decoded").as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_without_the_password() {
        let table = [
            ("u:secret@h", "must begin with postgres://"),
            ("postgres://u:x@secret@h/db", "more than one @"),
            ("postgres://u:x@h/secret@h/db", "more than one @"),
            ("postgres://u:secret", "the port must be a number"),
            ("postgres://u:x@h:secret", "the port must be a number"),
            ("postgres://u:secret%@h", "the password contains a %"),
            ("postgres://u:1?secret@h/db", "a parameter after the ? is invalid"),
            ("postgres://u:1?secret=x@h/db", "a parameter after the ? is invalid"),
            ("postgres://u:x@h?secret=1@h/db", "a parameter after the ? is invalid"),
            ("postgres://h/db?password=x&secret", "a parameter after the ? is invalid"),
            ("postgres://h/db?password=x&secret=y", "a parameter after the ? is invalid"),
            ("postgres://h/db?sslmode", "must be NAME=VALUE"),
            ("postgres://h/db?SSLMODE=require", "an unknown name"),
            ("postgres://u@h/db?sslmod=require", "the parameter sslmod is not supported"),
            ("postgres://u@h/db?sslpassword=secret", "the parameter sslpassword is not supported"),
        ];
        for (url, expected) in table {
            let error = Parts::split(url).err().unwrap_or_else(|| panic!("{url} is accepted"));
            assert!(error.contains(expected), "{url}: {error}");
            assert!(!error.to_lowercase().contains("secret"), "{url}: {error}");
        }
    }
}
