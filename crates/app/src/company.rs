//! Companies: created on the command line or at first run, with their owner and first credentials.

use rapport_domain::audit::Action;
use rapport_domain::company::{Settings, Slug};
use rapport_domain::credential::Kind;
use rapport_domain::member::{Email, Role};
use rapport_store::{Tx, company, member};
use serde_json::json;

use crate::access::Needs;
use crate::audit;
use crate::command::{Command, Context};
use crate::credential;
use crate::error::Error;

pub struct CreateCompany {
    pub slug: Slug,
    pub name: String,
    pub owner: Email,
    pub owner_name: String,
    /// Hashed beforehand: hashing a password takes longer than a transaction should.
    pub password_hash: String,
}

/// The secrets and ids shown once, when a company is created.
pub struct CreatedCompany {
    pub slug: Slug,
    pub api_token: String,
    pub ingest_key: String,
    /// `false` if the owner already had an account and keeps their password.
    pub owner_is_new: bool,
}

impl Command for CreateCompany {
    type Reply = CreatedCompany;
    const NEEDS: Needs = Needs::Server;

    fn run(&self, tx: &mut Tx, cx: &Context) -> Result<CreatedCompany, Error> {
        let created = company::create(tx, &self.slug, &self.name, &Settings::default(), cx.now)?;
        let Some(id) = created else {
            let detail = format!("the company {} already exists", self.slug.as_str());
            return Err(Error::conflict("project_taken", detail));
        };
        let (person, owner_is_new) =
            member::person(tx, cx.id(), &self.owner, &self.owner_name, &self.password_hash, cx.now)?;
        member::insert(tx, person, Role::Owner, cx.now)?;
        let token = credential::make(tx, cx, id, Kind::ApiToken, "First token", Role::Owner)?;
        let ingest = credential::make(tx, cx, id, Kind::IngestKey, Kind::IngestKey.as_str(), Role::Member)?;
        let detail = json!({ "project": self.slug.as_str(), "owner": self.owner.as_str() });
        audit::record(tx, cx, Action::CompanyCreated, None, &detail)?;
        Ok(CreatedCompany {
            slug: self.slug.clone(),
            api_token: token.text,
            ingest_key: ingest.text,
            owner_is_new,
        })
    }
}
