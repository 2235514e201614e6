//! `rapport token`: creates, lists and revokes API tokens.

use std::process::ExitCode;

use anyhow::{anyhow, bail};
use rapport_app::{Access, App, credential};
use rapport_domain::company::Company;
use rapport_domain::credential::{Credential, TokenRequest};
use rapport_domain::member::{Email, Member};
use rapport_domain::time::Time;
use rapport_store::credential::Token;
use rapport_store::{Snapshot, member};
use serde_json::{Value, json};

use super::{explained, find_company, open_beside, print, print_json, write};
use crate::cli::{CreateToken, ListTokens, RevokeToken, TokenCommand};
use crate::config::Config;
use crate::database;

pub fn run(config: &Config, command: TokenCommand) -> anyhow::Result<ExitCode> {
    let app = open_beside(config)?;
    match command {
        TokenCommand::Create(arguments) => create(&app, &arguments),
        TokenCommand::List(arguments) => list(&app, &arguments),
        TokenCommand::Revoke(arguments) => revoke(&app, &arguments),
    }
}

fn create(app: &App, arguments: &CreateToken) -> anyhow::Result<ExitCode> {
    let company = find_company(app, &arguments.project)?;
    let access = Access::CommandLine(company.id);
    let owner = arguments.owner.as_ref().map(|email| member_with(app, &company, email)).transpose()?;
    let request = TokenRequest {
        name: arguments.name.clone(),
        role: arguments.role,
        person: owner.map(|member| member.person),
        expires_at: arguments.expires,
        rate_limit: arguments.requests_per_second,
    };
    let made = write(app, &access, || credential::CreateToken(request.clone()))?;
    if arguments.output.json {
        let mut object = described(&made.credential);
        object["project"] = company.slug.as_str().into();
        object["token"] = made.text.into();
        return print_json(&object);
    }
    print(&format!(
        "{}\n\nCopy this token for {} now: it is shown only once.\n",
        made.text,
        company.slug.as_str()
    ))
}

fn member_with(app: &App, company: &Company, email: &Email) -> anyhow::Result<Member> {
    let wanted = email.clone();
    let found = read(app, company, move |snapshot| member::by_email(snapshot, &[&wanted]))?;
    let active = found.into_iter().find(Member::is_active);
    active.ok_or_else(|| {
        anyhow!("no active member of {} has the address {}", company.slug.as_str(), email.as_str())
    })
}

fn list(app: &App, arguments: &ListTokens) -> anyhow::Result<ExitCode> {
    let company = find_company(app, &arguments.project)?;
    let tokens = tokens_of(app, &company)?;
    if arguments.output.json {
        return print_json(&Value::Array(tokens.iter().map(|token| described(&token.credential)).collect()));
    }
    if tokens.is_empty() {
        return print("No tokens.\n");
    }
    let line = |Token { credential: token, holder }: &Token| {
        let used = token.last_used_at.map_or("never used".to_owned(), |at| format!("last used {at}"));
        let (id, shown, role) = (token.id, &token.shown, token.role.as_str());
        let of = holder.as_ref().map_or(String::new(), |holder| format!(", of {}", holder.name));
        let until = token.expires_at.map_or(String::new(), |at| format!(", expires {at}"));
        let limit = token.rate_limit.map_or(String::new(), |limit| format!(", {limit} requests/s"));
        let (name, created) = (&token.name, token.created_at);
        format!("{id}  {shown}  {role:<6}  {name}  created {created}, {used}{of}{until}{limit}\n")
    };
    print(&tokens.iter().map(line).collect::<String>())
}

fn revoke(app: &App, arguments: &RevokeToken) -> anyhow::Result<ExitCode> {
    // The id alone does not say which company it belongs to, and every lookup needs the company.
    for company in app.read_across_blocking(rapport_store::company::list).map_err(explained)? {
        if tokens_of(app, &company)?.iter().any(|token| token.credential.id == arguments.id) {
            write(app, &Access::CommandLine(company.id), || credential::RevokeToken(arguments.id))?;
            return print(&format!("Revoked {} of {}.\n", arguments.id, company.slug.as_str()));
        }
    }
    bail!("no such token: {}", arguments.id)
}

fn tokens_of(app: &App, company: &Company) -> anyhow::Result<Vec<Token>> {
    read(app, company, rapport_store::credential::tokens)
}

fn read<T: Send + 'static>(
    app: &App,
    company: &Company,
    read: impl FnOnce(&mut Snapshot) -> Result<T, rapport_store::Error> + Send + 'static,
) -> anyhow::Result<T> {
    let found = app.store().read(company.id, read).blocking_recv()?;
    found.map_err(|error| anyhow!(database::detail(error)))
}

fn described(token: &Credential) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "role": token.role,
        "shown": token.shown,
        "created_at": token.created_at.to_string(),
        "last_used_at": token.last_used_at.as_ref().map(Time::to_string),
        "expires_at": token.expires_at.as_ref().map(Time::to_string),
        "owner": token.person,
        "rate_limit": token.rate_limit,
    })
}
