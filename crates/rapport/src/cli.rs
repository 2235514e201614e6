//! The command line: commands and their arguments. Options that are also settings are in `options`;
//! what each command does is in `commands`.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use hyper::StatusCode;
use rapport_domain::company::{self, Slug};
use rapport_domain::credential::TOKEN_RATE_LIMIT;
use rapport_domain::email_domain::EmailDomain;
use rapport_domain::file_format::Format;
use rapport_domain::id::{CredentialId, ImportId};
use rapport_domain::import::Mode;
use rapport_domain::import::charset::Charset;
use rapport_domain::import::mapping::Target;
use rapport_domain::import::reading::Delimiter;
use rapport_domain::invalid::Fault;
use rapport_domain::member::{Email, Role};
use rapport_domain::time::Time;

use crate::options::{self, Options};

const SECRET_ARGUMENTS: [&str; 3] = ["--database ", "--egress-proxy ", "--smtp-url "];

/// A self-hosted sales-pipeline service.
///
/// Without a command, Rapport runs the service. Every option can also be set with the environment
/// variable shown next to it, or in a TOML file under the option's name with underscores. The command
/// line overrides the environment, and the environment overrides the file.
#[derive(Debug, Parser)]
#[command(name = "rapport", version)]
pub struct Cli {
    #[command(flatten)]
    pub options: Options,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the service (the default)
    Serve,
    /// Print the effective configuration, with secrets hidden
    Config,
    /// Create, list, export and delete companies, and confirm their email domains
    #[command(subcommand)]
    Company(CompanyCommand),
    /// Export everything about an account
    #[command(subcommand)]
    Account(AccountCommand),
    /// Create, list and revoke API tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Show or change the encryption key, and rotate a company's keys
    ///
    /// Without a command, shows the fingerprints of the encryption key in the key file and of the one that the
    /// database needs.
    Key(Key),
    /// Help people who cannot log in
    #[command(subcommand)]
    Person(PersonCommand),
    /// Check whether mail can be sent
    #[command(subcommand)]
    Mail(MailCommand),
    /// Import accounts from a CSV file, or undo an import
    Import(Box<Import>),
    /// Bring the database schema up to date without starting the service
    Migrate,
    /// Back up the database into one file while the service runs, or verify such a file
    Backup(Backup),
    /// Restore a backup into an empty data directory, or an empty PostgreSQL database (--database)
    Restore(Restore),
    /// Copy the whole database into an empty one, for example from SQLite to PostgreSQL, while the service runs
    Copy(Copy),
    /// Check for problems that could keep the service from working
    Doctor,
    /// Ask the running service whether it is ready; if it is not, exit with 1
    Health,
    /// Run a local HTTPS receiver that checks and prints webhook deliveries
    Listen(Listen),
    /// Run the service with a made-up company and a local receiver; everything is deleted when it stops
    Demo(Demo),
    /// Print a completion script for a shell
    #[command(hide = true)]
    Completions {
        /// The shell that will read the script
        shell: Shell,
    },
    /// Write the man pages into a directory
    #[command(hide = true)]
    Man {
        /// Created if it is missing
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct Backup {
    /// The file to write, which must not exist; by default rapport-DATE-TIME.backup in the current directory
    pub file: Option<PathBuf>,
    /// Check that FILE is complete and intact, row by row, instead of making a backup
    #[arg(long, requires = "file", conflicts_with = "with_key")]
    pub verify: bool,
    /// Put the encryption key into the file
    ///
    /// Such a file is all that is needed to restore the service. But anyone who has it can read the webhook secrets and
    /// sign webhooks in your name, so keep it as safe as the key itself. Without this option, keep a copy of the key
    /// file in another place: a backup without its key has no usable webhook secrets.
    #[arg(long)]
    pub with_key: bool,
}

#[derive(Debug, Args)]
pub struct Restore {
    /// The backup; it is verified before anything is written
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct Copy {
    /// The source: a data directory, a SQLite file or postgres://…
    pub from: String,
    /// The target, which must have no data: a data directory, a SQLite file or postgres://…
    ///
    /// A path that doesn't exist yet is a file if it has an extension such as .db, and otherwise a data directory.
    pub to: String,
}

#[derive(Debug, Args)]
pub struct Demo {
    /// Keep the data in this directory, which must be empty, instead of deleting it at the end
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Listen {
    /// The port on 127.0.0.1
    #[arg(long, default_value_t = 9443)]
    pub port: u16,
    /// The webhook's secret in either form (whs_… or whsec_…); used to verify both signatures of each request
    #[arg(long, env = "RAPPORT_LISTEN_SECRET", hide_env_values = true)]
    pub secret: Option<String>,
    /// How to answer: with a status code, `slow` (after 20 seconds) or `none` (never)
    #[arg(long, default_value = "200", value_parser = answer)]
    pub answer: Answer,
    /// Send a Retry-After header with this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub retry_after: Option<u32>,
}

/// How `rapport listen` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Code(StatusCode),
    Slow,
    None,
}

#[derive(Debug, Subcommand)]
pub enum CompanyCommand {
    /// Create a company with a first API token and the ingest key, and invite its owner
    Create(CreateCompany),
    /// List the companies
    List(Output),
    /// Confirm that an email domain is a company's, so that its people can log in with single sign-on
    ///
    /// The company's identity provider then says who people with addresses in this domain are, in this company only.
    /// Make sure that the domain belongs to the company, and is not one like gmail.com where anyone can have an address.
    /// Subdomains are confirmed one by one.
    ClaimDomain(CompanyDomain),
    /// Take a confirmed email domain away from a company
    ///
    /// Its people with addresses in this domain can no longer log in with single sign-on.
    ReleaseDomain(CompanyDomain),
    /// List the confirmed email domains of a company
    Domains(CompanyDomains),
    /// Export everything that a company stored, except for secrets, into one file
    Export(ExportCompany),
    /// Delete a company with all its data after 14 days, or at once; or keep it after all
    ///
    /// Until then everything works, its pages show the date, and any owner can cancel. Owners and admins get a mail.
    Delete(DeleteCompany),
}

#[derive(Debug, Args)]
pub struct ExportCompany {
    #[arg(value_parser = slug)]
    pub project: Slug,
    /// The file to write, which must not exist
    pub file: PathBuf,
    /// The file type: jsonl (JSON lines), or csv (a ZIP archive with a CSV file for each table)
    #[arg(long, default_value = "jsonl", value_parser = format)]
    pub format: Format,
}

#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// Export everything that is stored about an account, except for secrets, into one file
    Export(ExportAccount),
}

#[derive(Debug, Args)]
pub struct ExportAccount {
    /// The company's project
    #[arg(value_parser = slug)]
    pub project: Slug,
    /// The account's id (acc_…) or its imported_id. A deleted account has only its id
    pub id: String,
    /// The file to write, which must not exist
    pub file: PathBuf,
    /// The file type: jsonl (JSON lines), or csv (a ZIP archive with a CSV file for each table)
    #[arg(long, default_value = "jsonl", value_parser = format)]
    pub format: Format,
}

#[derive(Debug, Args)]
pub struct DeleteCompany {
    #[arg(value_parser = slug)]
    pub project: Slug,
    /// Really delete it; without this option, nothing is done
    #[arg(long)]
    pub yes: bool,
    /// Delete it at once, without waiting. Nobody can restore it
    #[arg(long)]
    pub now: bool,
    /// Keep a company that is waiting to be deleted
    #[arg(long, conflicts_with_all = ["yes", "now"])]
    pub cancel: bool,
}

#[derive(Debug, Args)]
pub struct CompanyDomain {
    /// The company's project
    #[arg(value_parser = slug)]
    pub project: Slug,
    /// The part of the addresses after the @, such as acme.com
    #[arg(value_parser = domain)]
    pub domain: EmailDomain,
}

#[derive(Debug, Args)]
pub struct CompanyDomains {
    /// The company's project
    #[arg(value_parser = slug)]
    pub project: Slug,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct CreateCompany {
    /// The name that identifies the company in the API: lower-case letters, digits and hyphens
    #[arg(value_parser = slug)]
    pub project: Slug,
    /// The company's name
    #[arg(long, value_parser = name)]
    pub name: String,
    /// The owner's email address
    #[arg(long, value_name = "EMAIL", value_parser = email)]
    pub owner: Email,
    /// The owner's name; by default the part of the address before the @
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub owner_name: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create an API token; it is shown only once
    Create(CreateToken),
    /// List a company's API tokens
    List(ListTokens),
    /// Revoke an API token immediately
    Revoke(RevokeToken),
}

#[derive(Debug, Args)]
pub struct CreateToken {
    #[arg(long, value_parser = slug)]
    pub project: Slug,
    /// What the token is for
    #[arg(long, value_parser = name)]
    pub name: String,
    /// The token's role: viewer, member, admin or owner
    #[arg(long, default_value = "admin", value_parser = role)]
    pub role: Role,
    /// The address of the member whose token it is; by default it belongs to the company
    ///
    /// A member's token never does more than the member may, and ends with their membership.
    #[arg(long, value_name = "EMAIL", value_parser = email)]
    pub owner: Option<Email>,
    /// When it stops working, such as 2027-01-31 or 2027-01-31T12:00:00Z; by default never
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub expires: Option<Time>,
    /// A limit of its own, below the server's; by default only the server's applies
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(TOKEN_RATE_LIMIT))]
    pub requests_per_second: Option<i64>,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct ListTokens {
    #[arg(long, value_parser = slug)]
    pub project: Slug,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct RevokeToken {
    /// The token's id, as `rapport token list` shows it
    #[arg(value_parser = credential)]
    pub id: CredentialId,
}

#[derive(Debug, Args)]
pub struct Key {
    #[command(subcommand)]
    pub command: Option<KeyCommand>,
}

#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Create a new ingest or inbound key for a company; the old one stops working immediately
    Rotate(RotateKey),
    /// Create a new encryption key, and re-encrypt every secret in the database while the service runs
    ///
    /// If it is interrupted, run it again. Backups made before need the old key, which is kept in a file next to
    /// the key file. If nodes have key files of their own, run it with --prepare first, copy the key file to every
    /// node, and then run it again.
    ReEncrypt(ReEncrypt),
    /// Give up the secrets in the database because their encryption key is lost
    ///
    /// The database gets the key in the key file, which is created if it is missing. Afterwards, rotate the secret
    /// of every webhook.
    Reset(ResetKey),
}

#[derive(Debug, Args)]
pub struct ReEncrypt {
    /// Only add the next key to the key file
    #[arg(long)]
    pub prepare: bool,
}

#[derive(Debug, Args)]
pub struct ResetKey {
    /// Really give up the secrets; without it, they are only listed
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct RotateKey {
    pub key: KeyKind,
    #[arg(long, value_parser = slug)]
    pub project: Slug,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeyKind {
    /// For client activity
    Ingest,
    /// For inbound mail
    Inbound,
}

#[derive(Debug, Subcommand)]
pub enum PersonCommand {
    /// Print a link with which a person can choose a new password; it works once, for an hour
    ResetLink(ResetLink),
    /// Remove a person's passkeys, authenticator app and recovery codes, and log them out everywhere
    ResetFactors(ResetFactors),
}

#[derive(Debug, Args)]
pub struct ResetLink {
    #[command(flatten)]
    pub login: Login,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct ResetFactors {
    #[command(flatten)]
    pub login: Login,
}

#[derive(Debug, Args)]
pub struct Login {
    /// The person's email address
    #[arg(value_parser = email)]
    pub email: Email,
    /// The company that the login is for, if several companies have one for this address
    #[arg(long, value_parser = slug)]
    pub project: Option<Slug>,
}

#[derive(Debug, Subcommand)]
pub enum MailCommand {
    /// Send a test mail and print the mail server's answer
    Test(TestMail),
}

#[derive(Debug, Args)]
pub struct TestMail {
    /// The recipient's email address
    #[arg(value_parser = email)]
    pub recipient: Email,
}

#[derive(Debug, Args)]
#[command(subcommand_precedence_over_arg = true)]
pub struct Import {
    #[command(subcommand)]
    pub command: Option<ImportCommand>,
    /// The CSV file; its first line names the columns
    pub file: Option<PathBuf>,
    /// The company's project
    #[arg(long, visible_alias = "project", value_name = "PROJECT", value_parser = slug)]
    pub company: Option<Slug>,
    /// Map a column to a field: imported_id, name, status, promo_code, captured_value,
    /// captured_value_currency, emails, last_contact_at, cadence_days, snoozed_until, custom_fields.KEY or
    /// ignore; repeatable. The fields of other columns are guessed from their names
    #[arg(long, value_name = "COLUMN=FIELD", value_parser = column)]
    pub map: Vec<(String, String)>,
    /// Say how a column's numbers or dates are written: decimal_point, decimal_comma, day_first, month_first or
    /// year_first; repeatable. By default the values decide
    #[arg(long, value_name = "COLUMN=FORMAT", value_parser = column)]
    pub format: Vec<(String, String)>,
    /// Say which stage a word in the status column means, or keep to leave the stage alone; repeatable. Common
    /// words are known
    #[arg(long, value_name = "WORD=STAGE", value_parser = column)]
    pub status_word: Vec<(String, String)>,
    /// The import mode: create (only new accounts), update (only existing ones) or both
    #[arg(long, default_value = "both", value_parser = mode)]
    pub mode: Mode,
    /// Check the file and print what would happen, without importing anything
    #[arg(long)]
    pub dry_run: bool,
    /// The character between two cells, or tab; detected by default
    #[arg(long, value_parser = delimiter)]
    pub delimiter: Option<Delimiter>,
    /// The file's encoding, such as windows-1252; detected by default
    #[arg(long, value_parser = charset)]
    pub encoding: Option<Charset>,
    /// Import without asking for confirmation
    #[arg(long)]
    pub yes: bool,
    /// Where to write the rows that fail; by default next to the CSV file
    #[arg(long, value_name = "FILE")]
    pub errors: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// Undo an import: restore updated fields and remove created accounts that nobody has edited since
    Undo(UndoImport),
}

#[derive(Debug, Args)]
pub struct UndoImport {
    /// The import's id, as `rapport import` printed it
    #[arg(value_parser = import)]
    pub id: ImportId,
}

#[derive(Debug, Clone, Copy, Args)]
pub struct Output {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Reads the command line. If it is invalid or asks for help, prints a message and exits.
pub fn parse() -> Cli {
    let matches = definition().try_get_matches().unwrap_or_else(|error| without_secrets(error).exit());
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// An error quotes the value it is about, which may contain a password.
fn without_secrets(mut error: clap::Error) -> clap::Error {
    let text = |error: &clap::Error, kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let argument = text(&error, ContextKind::InvalidArg);
    let is_secret = SECRET_ARGUMENTS.iter().any(|secret| argument.starts_with(secret));
    for kind in [ContextKind::InvalidValue, ContextKind::InvalidSubcommand, ContextKind::InvalidArg] {
        let quoted = text(&error, kind);
        let is_login = quoted.contains("//") && quoted.contains('@');
        if is_login || (is_secret && kind == ContextKind::InvalidValue) {
            error.insert(kind, ContextValue::String("****".to_owned()));
        }
    }
    error
}

pub fn definition() -> clap::Command {
    Cli::command().mut_args(|arg| if arg.is_global_set() { naming_its_variable(arg) } else { arg })
}

/// The environment variables that settings and arguments are read from.
pub fn variables() -> Vec<String> {
    fn collect(command: &clap::Command, names: &mut Vec<String>) {
        names.extend(
            command.get_arguments().filter_map(Arg::get_env).map(|name| name.to_string_lossy().into()),
        );
        command.get_subcommands().for_each(|command| collect(command, names));
    }
    let definition = Cli::command();
    let settings = definition.get_arguments().filter(|arg| arg.is_global_set());
    let mut names = settings.map(|arg| options::variable(arg.get_id().as_str())).collect();
    collect(&definition, &mut names);
    names
}

fn naming_its_variable(arg: Arg) -> Arg {
    let note = format!("[env: {}]", options::variable(arg.get_id().as_str()));
    let short = arg.get_help().map(|help| format!("{help} {note}"));
    let long = arg.get_long_help().map(|help| format!("{help}\n\n{note}"));
    let arg = if let Some(help) = short { arg.help(help) } else { arg };
    if let Some(help) = long { arg.long_help(help) } else { arg }
}

fn answer(text: &str) -> Result<Answer, String> {
    let code = |text: &str| text.parse::<u16>().ok().filter(|code| (200..600).contains(code));
    match text {
        "slow" => Ok(Answer::Slow),
        "none" => Ok(Answer::None),
        text => code(text)
            .and_then(|code| StatusCode::from_u16(code).ok())
            .map(Answer::Code)
            .ok_or_else(|| "must be a status code from 200 to 599, slow or none".to_owned()),
    }
}

fn slug(text: &str) -> Result<Slug, String> {
    Slug::parse(text).map_err(detail)
}

fn format(text: &str) -> Result<Format, String> {
    Format::parse(text).map_err(detail)
}

fn email(text: &str) -> Result<Email, String> {
    Email::parse(text).map_err(detail)
}

fn domain(text: &str) -> Result<EmailDomain, String> {
    EmailDomain::parse(text).map_err(detail)
}

fn role(text: &str) -> Result<Role, String> {
    Role::parse(text).map_err(detail)
}

fn name(text: &str) -> Result<String, String> {
    company::MAX_NAME.check(text).map_err(detail)?;
    Ok(text.to_owned())
}

fn time(text: &str) -> Result<Time, String> {
    Time::parse(text).map_err(|error| error.to_string())
}

fn credential(text: &str) -> Result<CredentialId, String> {
    text.parse().map_err(|_| format!("must be an id such as {}…", CredentialId::PREFIX))
}

fn import(text: &str) -> Result<ImportId, String> {
    text.parse().map_err(|_| format!("must be an id such as {}…", ImportId::PREFIX))
}

fn mode(text: &str) -> Result<Mode, String> {
    Mode::parse(text).map_err(detail)
}

fn delimiter(text: &str) -> Result<Delimiter, String> {
    Delimiter::parse(text).map_err(detail)
}

fn charset(text: &str) -> Result<Charset, String> {
    Charset::parse(text).map_err(detail)
}

fn column(text: &str) -> Result<(String, String), String> {
    // A column's name may contain an equals sign; a field's cannot.
    let (name, field) = text.rsplit_once('=').ok_or("must be COLUMN=FIELD")?;
    Target::parse(field).map_err(detail)?;
    Ok((name.to_owned(), field.to_owned()))
}

fn detail(fault: Fault) -> String {
    fault.detail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        definition().debug_assert();
    }

    #[test]
    fn every_setting_names_its_variable_in_the_help() {
        let help = definition().render_long_help().to_string();
        for name in
            ["RAPPORT_LISTEN", "RAPPORT_DATABASE", "RAPPORT_ALLOW_DESTINATION", "RAPPORT_SECRET_KEY_FILE"]
        {
            assert!(help.contains(&format!("[env: {name}]")), "{name} is missing in:\n{help}");
        }
    }

    #[test]
    fn settings_go_before_or_after_the_command() {
        for line in ["rapport --listen 127.0.0.1:1 company list", "rapport company list --listen 127.0.0.1:1"]
        {
            let matches = definition().get_matches_from(line.split(' '));
            let cli = Cli::from_arg_matches(&matches).unwrap();
            assert_eq!(cli.options.listen, Some("127.0.0.1:1".parse().unwrap()), "{line}");
        }
    }
}
