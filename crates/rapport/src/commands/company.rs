//! `rapport company`: creates and lists companies, and confirms their email domains. `export` and
//! `company_deletion` export and delete them.

use std::process::ExitCode;

use rapport_app::Access;
use rapport_app::company::{self, CreatedCompany, OwnerLogin};
use rapport_app::sso::Claimed;
use rapport_app::sso::domain::{ClaimDomain, ReleaseDomain};
use rapport_domain::invitation::INVITATION_DAYS;
use rapport_store::{Snapshot, claimed_domain};
use serde_json::{Value, json};

use super::{company_deletion, explained, export, find_company, open_beside, print, print_json, write};
use crate::cli::{CompanyCommand, CompanyDomain, CompanyDomains, CreateCompany, Output};
use crate::config::Config;
use crate::data_dir;

pub fn run(config: &Config, command: CompanyCommand) -> anyhow::Result<ExitCode> {
    match command {
        CompanyCommand::Create(arguments) => create(config, &arguments),
        CompanyCommand::List(output) => list(config, output),
        CompanyCommand::Export(arguments) => export::company(config, &arguments),
        CompanyCommand::Delete(arguments) => company_deletion::delete(config, &arguments),
        CompanyCommand::ClaimDomain(arguments) => claim_domain(config, &arguments),
        CompanyCommand::ReleaseDomain(arguments) => release_domain(config, &arguments),
        CompanyCommand::Domains(arguments) => domains(config, &arguments),
    }
}

fn create(config: &Config, arguments: &CreateCompany) -> anyhow::Result<ExitCode> {
    data_dir::prepare(config)?;
    let app = open_beside(config)?;
    let address = arguments.owner.as_str();
    let owner_name = arguments.owner_name.as_deref();
    let owner_name = owner_name.unwrap_or_else(|| address.split('@').next().unwrap_or(address));
    let created = write(&app, &Access::NO_COMPANY, || company::CreateCompany {
        slug: arguments.project.clone(),
        name: arguments.name.clone(),
        owner: arguments.owner.clone(),
        owner_name: owner_name.to_owned(),
        owner_login: OwnerLogin::Invited,
    })?;
    let link = created.invited.as_ref().and_then(|invited| invited.link.as_deref());
    if arguments.output.json {
        return print_json(&json!({
            "project": created.slug.as_str(),
            "api_token": created.api_token,
            "ingest_key": created.ingest_key,
            "owner": { "email": address, "mailed": link.is_none(), "link": link },
        }));
    }
    print(&in_words(&created, &arguments.name, address, link))
}

fn in_words(created: &CreatedCompany, name: &str, address: &str, link: Option<&str>) -> String {
    let CreatedCompany { slug, api_token, ingest_key, .. } = created;
    let invitation = link.map_or_else(
        || format!("{address} gets a mail with a link to join as owner.\n"),
        |link| {
            format!("Give this link to {address}. It works once, within {INVITATION_DAYS} days:\n{link}\n")
        },
    );
    format!(
        "Created the company {name}. Copy these secrets now: they are shown only once.\n\n\
         project     {slug}\n\
         API token   {api_token}\n\
         ingest key  {ingest_key}\n\n\
         {invitation}",
        slug = slug.as_str(),
    )
}

fn list(config: &Config, output: Output) -> anyhow::Result<ExitCode> {
    let app = open_beside(config)?;
    let companies = app.read_across_blocking(rapport_store::company::list).map_err(explained)?;
    if output.json {
        let item = |company: &rapport_domain::company::Company| {
            let created_at = company.created_at.to_string();
            json!({ "project": company.slug.as_str(), "name": company.name, "created_at": created_at })
        };
        return print_json(&Value::Array(companies.iter().map(item).collect()));
    }
    if companies.is_empty() {
        return print("No companies yet.\n");
    }
    let line = |company: &rapport_domain::company::Company| {
        format!("{:<20}  {}\n", company.slug.as_str(), company.name)
    };
    print(&companies.iter().map(line).collect::<String>())
}

fn claim_domain(
    config: &Config,
    CompanyDomain { project, domain }: &CompanyDomain,
) -> anyhow::Result<ExitCode> {
    let app = open_beside(config)?;
    let company = find_company(&app, project)?;
    write(&app, &Access::CommandLine(company.id), || ClaimDomain(domain.clone()))?;
    print(&format!(
        "{} is confirmed as a domain of {}. An owner can now turn on single sign-on for it.\n",
        domain.as_str(),
        company.name
    ))
}

fn release_domain(
    config: &Config,
    CompanyDomain { project, domain }: &CompanyDomain,
) -> anyhow::Result<ExitCode> {
    let app = open_beside(config)?;
    let company = find_company(&app, project)?;
    write(&app, &Access::CommandLine(company.id), || ReleaseDomain(domain.clone()))?;
    print(&format!("{} is no longer a domain of {}.\n", domain.as_str(), company.name))
}

fn domains(config: &Config, CompanyDomains { project, output }: &CompanyDomains) -> anyhow::Result<ExitCode> {
    let app = open_beside(config)?;
    let company = find_company(&app, project)?;
    let read = app.store().read(company.id, |snapshot: &mut Snapshot| claimed_domain::list(snapshot));
    let found = read.blocking_recv().unwrap_or(Err(rapport_store::Error::Closed));
    let found = found.map_err(|error| explained(error.into()))?;
    if output.json {
        let item = |claimed: &Claimed| json!({ "domain": claimed.domain.as_str(), "confirmed_at": claimed.claimed_at.to_string() });
        return print_json(&Value::Array(found.iter().map(item).collect()));
    }
    if found.is_empty() {
        return print("No confirmed domains yet.\n");
    }
    let domains: Vec<&str> = found.iter().map(|claimed| claimed.domain.as_str()).collect();
    print(&format!("{}\n", domains.join("\n")))
}
