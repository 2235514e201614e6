//! What a URL and the environment mean together.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// An address, what the environment says, and what follows.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);
type Variables = &'static [(&'static str, &'static str)];

fn plan(url: &str, variables: &[(&str, &str)]) -> Result<Plan, String> {
    Plan::read(&Parts::split(url)?, &Environment::of(variables, None))
}

#[test]
fn the_url_wins_over_the_environment() {
    let file = |path: &str| Some(Root::File(PathBuf::from(path)));
    let table: [(&str, Variables, Mode, Option<Root>); 8] = [
        ("postgres://h/db", &[], Mode::Prefer, None),
        ("postgres://h/db", &[("PGSSLMODE", "")], Mode::Prefer, None),
        ("postgres://h/db", &[("PGSSLMODE", "require")], Mode::Require, None),
        ("postgres://h/db?sslmode=disable", &[("PGSSLMODE", "require")], Mode::Disable, None),
        ("postgres://h/db?sslmode=", &[("PGSSLMODE", "require")], Mode::Require, None),
        ("postgres://h/db?sslmode=verify-ca", &[("PGSSLROOTCERT", "/a.pem")], Mode::VerifyCa, file("/a.pem")),
        (
            "postgres://h/db?sslmode=verify-full&sslrootcert=%2Fb.pem",
            &[("PGSSLROOTCERT", "/a.pem")],
            Mode::VerifyFull,
            file("/b.pem"),
        ),
        ("postgres://h/db", &[("PGSSLROOTCERT", "system")], Mode::VerifyFull, Some(Root::System)),
    ];
    for (url, variables, mode, root) in table {
        let plan = plan(url, variables).unwrap_or_else(|error| panic!("{url} {variables:?}: {error}"));
        assert_eq!((plan.mode, plan.root), (mode, root), "{url} {variables:?}");
    }
    let plan =
        plan("postgres://h?sslcert=/c.pem", &[("PGSSLCERT", "/no"), ("PGSSLKEY", "/c.key")]).expect("read");
    assert_eq!((plan.certificate, plan.key), (Some(PathBuf::from("/c.pem")), Some(PathBuf::from("/c.key"))));
}

#[test]
fn channel_binding_is_preferred_unless_told_otherwise() {
    let table: [(&str, Variables, ChannelBinding); 4] = [
        ("postgres://h", &[], ChannelBinding::Prefer),
        ("postgres://h", &[("PGCHANNELBINDING", "require")], ChannelBinding::Require),
        ("postgres://h?channel_binding=disable", &[("PGCHANNELBINDING", "require")], ChannelBinding::Disable),
        ("postgres://h?channel_binding=require", &[], ChannelBinding::Require),
    ];
    for (url, variables, expected) in table {
        let found = plan(url, variables).expect("read").config.get_channel_binding();
        assert_eq!(found, expected, "{url} {variables:?}");
    }
}

#[test]
fn the_rest_is_left_to_the_library() {
    let url =
        "postgresql://al%40ice@h1:1,[::1]:2/d%2Fb?sslmode=disable&options=-c%20a%3Db@c&keepalives_idle=7";
    let config = plan(url, &[]).expect("read").config;
    let hosts = [Host::Tcp("h1".to_owned()), Host::Tcp("::1".to_owned())];
    assert_eq!((config.get_hosts(), config.get_ports()), (&hosts[..], &[1, 2][..]));
    assert_eq!((config.get_user(), config.get_dbname()), (Some("al@ice"), Some("d/b")));
    assert_eq!(config.get_options(), Some("-c a=b@c"));
    assert_eq!(config.get_keepalives_idle(), Duration::from_secs(7));
    assert_eq!(config.get_application_name(), Some("rapport"));

    let config = plan("postgres:///db?hostaddr=192.0.2.1&sslmode=require", &[]).expect("read").config;
    assert_eq!(config.get_hosts(), [Host::Tcp("192.0.2.1".to_owned())], "TLS needs a name");
    let config = plan("postgres:///db?host=/run/postgresql&sslmode=require", &[]).expect("read").config;
    assert_eq!(config.get_ssl_mode(), SslMode::Disable, "sockets have no TLS");
}

#[test]
fn a_bad_value_is_named_where_it_was_given() {
    let table: [(&str, Variables, &str); 7] = [
        (
            "postgres://h?sslmode=secret",
            &[],
            "sslmode must be disable, prefer, require, verify-ca or verify-full",
        ),
        ("postgres://h", &[("PGSSLMODE", "secret")], "PGSSLMODE must be disable"),
        ("postgres://h?channel_binding=secret", &[], "channel_binding must be disable, prefer or require"),
        ("postgres://h", &[("PGCHANNELBINDING", "secret")], "PGCHANNELBINDING must be"),
        (
            "postgres://h?sslmode=require&sslrootcert=system",
            &[],
            "sslrootcert=system needs sslmode=verify-full",
        ),
        ("postgres://h?connect_timeout=secret", &[], "connect_timeout"),
        ("postgres:///db", &[], "must name a host"),
    ];
    for (url, variables, expected) in table {
        let error = plan(url, variables).err().unwrap_or_else(|| panic!("{url} is accepted"));
        assert!(error.contains(expected) && !error.contains("secret"), "{url} {variables:?}: {error}");
    }
    let nothing = Environment::empty();
    for (url, expected) in [
        ("postgres://h?sslmode=verify-full", "name a PEM file with sslrootcert"),
        ("postgres://h?sslmode=require&sslcert=/c.pem", "sslcert needs a private key"),
        ("postgres://h?sslmode=verify-ca&sslrootcert=/no/such/file", "(sslrootcert)"),
    ] {
        let error = Address::parse_in(url, &nothing).err().unwrap_or_else(|| panic!("{url} is accepted"));
        assert!(error.contains(expected), "{url}: {error}");
    }
    assert!(Address::parse_in("postgres://h?sslmode=disable&sslrootcert=/no/such/file", &nothing).is_ok());
}

#[test]
fn the_password_comes_from_the_strongest_source() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, password: &str| {
        let path = directory.path().join(name);
        fs::write(&path, format!("h:5432:db:u:{password}\n*:*:*:*:other\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
        path.display().to_string()
    };
    let (home, named, written) =
        (write(".pgpass", "home"), write("named", "named"), write("written", "written"));
    let passfile = format!("postgres://u@h/db?passfile={written}");
    let table: [Case; 6] = [
        ("postgres://u:url@h/db", &[("PGPASSWORD", "variable")], "url"),
        ("postgres://h/db?user=u&password=parameter", &[("PGPASSWORD", "variable")], "parameter"),
        ("postgres://u@h/db", &[("PGPASSWORD", "variable"), ("PGPASSFILE", named.as_str())], "variable"),
        (&passfile, &[("PGPASSFILE", named.as_str())], "written"),
        ("postgres://u@h/db", &[("PGPASSFILE", named.as_str())], "named"),
        ("postgres://u@h/db", &[], "home"),
    ];
    for (url, variables, expected) in table {
        let environment = Environment::of(variables, Some(directory.path().to_owned()));
        let address = Address::parse_in(url, &environment).expect("an address");
        let found = address.config.get_password().map(String::from_utf8_lossy);
        assert_eq!(found.as_deref(), Some(expected), "{url} {variables:?}");
        assert!(address.warnings.is_empty());
    }
    let at_home = Environment::of(&[], Some(directory.path().to_owned()));
    let several = Address::parse_in("postgres://u@h,i/db", &at_home).err().expect("refused");
    assert!(several.contains("different passwords"), "{several}");

    fs::set_permissions(&home, fs::Permissions::from_mode(0o640)).expect("set");
    let address = Address::parse_in("postgres://u@h/db", &at_home).expect("an address");
    assert_eq!(address.config.get_password(), None);
    assert!(address.warnings[0].contains("chmod 600"), "{:?}", address.warnings);
}

#[test]
fn files_at_home_are_used_as_libpq_does() {
    let directory = tempfile::tempdir().expect("a directory");
    let at_home = Environment::of(&[], Some(directory.path().to_owned()));
    let read = || Plan::read(&Parts::split("postgres://h").expect("a URL"), &at_home).expect("read");
    assert_eq!(read().root, None);
    fs::create_dir(directory.path().join(".postgresql")).expect("created");
    for name in [ROOT_AT_HOME, CERTIFICATE_AT_HOME, KEY_AT_HOME] {
        fs::write(directory.path().join(name), "").expect("written");
    }
    let plan = read();
    assert_eq!(plan.root, Some(Root::File(directory.path().join(ROOT_AT_HOME))));
    assert_eq!(plan.certificate, Some(directory.path().join(CERTIFICATE_AT_HOME)));
    assert_eq!(plan.key, Some(directory.path().join(KEY_AT_HOME)));
}
