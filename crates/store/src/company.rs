//! Companies and their settings.

use rapport_domain::company::{
    Company, Settings, Slug, TrackedStages, Weekday, parse_time_zone, time_zone_name,
};
use rapport_domain::id::CompanyId;
use rapport_domain::money::Currency;
use rapport_domain::opt_in::OptIn;
use rapport_domain::right::{Grant, Grants};
use rapport_domain::session::Limits;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Across, Snapshot, Tx};
use crate::value::Row;
use crate::values;

/// The columns of a company, as `c`, in the order that [`read_from`] takes them.
macro_rules! company_columns {
    () => {
        "c.id, c.slug, c.name, c.cadence_days, c.tracked_stages, c.digest_enabled, c.digest_weekday, c.time_zone, \
         c.default_currency, c.audit_days, c.export_role, c.delete_role, c.session_idle_minutes, \
         c.session_max_minutes, c.second_factor_required, c.late_events_move, c.opt_in_events, c.sample_since, \
         c.created_at"
    };
}
pub(crate) use company_columns;

statements! {
    company GET = concat!("SELECT ", company_columns!(), " FROM company c WHERE c.id = $1");
    reference LIST = concat!("SELECT ", company_columns!(), " FROM company c ORDER BY c.id");
    reference BY_SLUG = concat!("SELECT ", company_columns!(), " FROM company c WHERE c.slug = $1");
    reference INSERT = "INSERT INTO company (slug, name, cadence_days, tracked_stages, digest_enabled, \
                        digest_weekday, time_zone, default_currency, audit_days, export_role, delete_role, \
                        session_idle_minutes, session_max_minutes, second_factor_required, late_events_move, \
                        created_at) \
                        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) \
                        ON CONFLICT (slug) DO NOTHING RETURNING id";
    company SET_OPT_IN = "UPDATE company SET opt_in_events = $2 WHERE id = $1";
    company RENAME = "UPDATE company SET name = $2 WHERE id = $1";
    company LOCK = "SELECT id FROM company WHERE id = $1 FOR UPDATE";
    company UPDATE_SETTINGS = "UPDATE company SET cadence_days = $2, tracked_stages = $3, digest_enabled = $4, \
                               digest_weekday = $5, time_zone = $6, default_currency = $7, audit_days = $8, \
                               export_role = $9, delete_role = $10, session_idle_minutes = $11, \
                               session_max_minutes = $12, second_factor_required = $13, late_events_move = $14 \
                               WHERE id = $1";
}

pub fn get(snapshot: &mut Snapshot) -> Result<Option<Company>, Error> {
    snapshot.query_opt(&GET, &[])?.map(read).transpose()
}

pub fn by_slug(across: &mut Across, slug: &str) -> Result<Option<Company>, Error> {
    across.query_opt(&BY_SLUG, values![slug])?.map(read).transpose()
}

pub fn list(across: &mut Across) -> Result<Vec<Company>, Error> {
    across.query(&LIST, &[])?.into_iter().map(read).collect()
}

/// Creates the company and binds the transaction to it; returns `None` if the slug is taken.
pub fn create(
    tx: &mut Tx,
    slug: &Slug,
    name: &str,
    settings: &Settings,
    now: Time,
) -> Result<Option<CompanyId>, Error> {
    let stages = settings.tracked_stages.to_stored();
    let inserted = tx.query_opt(
        &INSERT,
        values![
            slug.as_str(),
            name,
            settings.cadence_days,
            &stages,
            settings.digest_enabled,
            settings.digest_weekday.as_str(),
            time_zone_name(&settings.time_zone),
            settings.default_currency.code(),
            settings.audit_days,
            settings.grants.export.as_str(),
            settings.grants.delete.as_str(),
            settings.sessions.idle_minutes,
            settings.sessions.max_minutes,
            settings.second_factor_required,
            settings.late_events_move,
            now,
        ],
    )?;
    let Some(mut row) = inserted else { return Ok(None) };
    let company = row.take()?;
    tx.adopt(company);
    Ok(Some(company))
}

/// The company, locked until the transaction ends.
pub fn lock(tx: &mut Tx) -> Result<Option<Company>, Error> {
    tx.query(&LOCK, &[])?;
    get(tx)
}

pub fn rename(tx: &mut Tx, name: &str) -> Result<(), Error> {
    tx.execute(&RENAME, values![name])?;
    Ok(())
}

pub fn set_opt_in(tx: &mut Tx, opt_in: OptIn) -> Result<(), Error> {
    tx.execute(&SET_OPT_IN, values![&opt_in.to_stored()])?;
    Ok(())
}

pub fn update_settings(tx: &mut Tx, settings: &Settings) -> Result<(), Error> {
    let stages = settings.tracked_stages.to_stored();
    tx.execute(
        &UPDATE_SETTINGS,
        values![
            settings.cadence_days,
            &stages,
            settings.digest_enabled,
            settings.digest_weekday.as_str(),
            time_zone_name(&settings.time_zone),
            settings.default_currency.code(),
            settings.audit_days,
            settings.grants.export.as_str(),
            settings.grants.delete.as_str(),
            settings.sessions.idle_minutes,
            settings.sessions.max_minutes,
            settings.second_factor_required,
            settings.late_events_move,
        ],
    )?;
    Ok(())
}

pub(crate) fn read(mut row: Row) -> Result<Company, Error> {
    read_from(&mut row)
}

/// Reads the columns of a company from a row.
pub(crate) fn read_from(row: &mut Row) -> Result<Company, Error> {
    let bad = |what: &str| Error::fault(format!("a company's stored {what} is not valid"));
    Ok(Company {
        id: row.take()?,
        slug: Slug::from_stored(row.take()?),
        name: row.take()?,
        settings: Settings {
            cadence_days: row.take()?,
            tracked_stages: TrackedStages::from_stored(&row.take::<String>()?),
            digest_enabled: row.take()?,
            digest_weekday: Weekday::parse(&row.take::<String>()?).map_err(|_| bad("weekday"))?,
            time_zone: parse_time_zone(&row.take::<String>()?).map_err(|_| bad("time zone"))?,
            default_currency: Currency::parse(&row.take::<String>()?).map_err(|_| bad("currency"))?,
            audit_days: row.take()?,
            grants: Grants { export: grant(row, "export role")?, delete: grant(row, "delete role")? },
            sessions: Limits { idle_minutes: row.take()?, max_minutes: row.take()? },
            second_factor_required: row.take()?,
            late_events_move: row.take()?,
        },
        opt_in: OptIn::from_stored(&row.take::<String>()?),
        sample_since: row.take()?,
        created_at: row.take()?,
    })
}

fn grant(row: &mut Row, what: &str) -> Result<Grant, Error> {
    let stored = Grant::parse(&row.take::<String>()?);
    stored.map_err(|_| Error::fault(format!("a company's stored {what} is not valid")))
}
