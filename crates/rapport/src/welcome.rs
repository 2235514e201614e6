//! The text printed to standard output when the service is ready: its URL, and what to do next.

use std::net::SocketAddr;

use crate::config::{Config, Origin, Setting};

pub fn text(
    config: &Config,
    program: &str,
    base_url: &str,
    listening: SocketAddr,
    setup: Option<&str>,
) -> String {
    let scheme = if config.tls_files().is_some() { "https://" } else { "http://" };
    let elsewhere = if base_url.starts_with(scheme) && base_url.ends_with(&format!(":{}", listening.port())) {
        String::new()
    } else {
        format!(" (listening on {listening})")
    };
    let first_line = format!("Rapport is running at {base_url}{elsewhere}\n");
    let Some(setup) = setup else { return first_line };
    let (program, settings) = (quoted(program), settings_to_repeat(config));
    format!(
        "{first_line}No company exists yet. Open this link to create one. It works until then, or until the service \
         stops:\n  {setup}\nOr, in another terminal:\n  \
         {program}{settings} company create acme --name \"Acme\" --owner you@acme.test\n"
    )
}

/// The settings that only this command line has; the environment and the file will still apply.
fn settings_to_repeat(config: &Config) -> String {
    let file = config.file.as_ref().map(|file| shown(file, file.value.display().to_string()));
    let database = shown(&config.database, config.database.value.to_string());
    let data_dir = shown(&config.data_dir, config.data_dir.value.display().to_string());
    [file.flatten(), data_dir, database].into_iter().flatten().collect()
}

fn shown<T>(setting: &Setting<T>, value: String) -> Option<String> {
    (setting.origin == Origin::CommandLine).then(|| format!(" {} {}", setting.flag(), quoted(&value)))
}

/// Quotes text for a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@,+=".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn config(options: Options) -> Config {
        Config::load(options, &|_| None).unwrap()
    }

    #[test]
    fn the_first_line_says_where() {
        let listening = "127.0.0.1:8080".parse().unwrap();
        let local = text(&config(Options::default()), "rapport", "http://127.0.0.1:8080", listening, None);
        assert_eq!(local, "Rapport is running at http://127.0.0.1:8080\n");
        let public = text(&config(Options::default()), "rapport", "https://crm.acme.test", listening, None);
        assert_eq!(public, "Rapport is running at https://crm.acme.test (listening on 127.0.0.1:8080)\n");
        let options = Options {
            tls_cert: Some("cert.pem".into()),
            tls_key: Some("key.pem".into()),
            ..Options::default()
        };
        let secure = text(&config(options), "rapport", "https://127.0.0.1:8080", listening, None);
        assert_eq!(secure, "Rapport is running at https://127.0.0.1:8080\n");
    }

    #[test]
    fn the_next_command_repeats_what_the_command_line_said() {
        let options = Options {
            data_dir: Some("/tmp/my data".into()),
            database: Some("sqlite:/tmp/x.db".parse().unwrap()),
            ..Options::default()
        };
        let listening = "127.0.0.1:8080".parse().unwrap();
        let text = text(
            &config(options),
            "target/release/rapport",
            "http://127.0.0.1:8080",
            listening,
            Some("http://127.0.0.1:8080/setup/x"),
        );
        let expected = "  target/release/rapport --data-dir '/tmp/my data' --database sqlite:/tmp/x.db \
                        company create acme --name \"Acme\" --owner you@acme.test";
        assert_eq!(text.lines().last(), Some(expected));
        assert_eq!(text.lines().nth(2), Some("  http://127.0.0.1:8080/setup/x"));
    }
}
