//! Companies and their settings.

use rapport_domain::company::{
    Company, Settings, Slug, TrackedStages, Weekday, parse_time_zone, time_zone_name,
};
use rapport_domain::id::CompanyId;
use rapport_domain::money::Currency;
use rapport_domain::time::Time;

use crate::error::Error;
use crate::statement::statements;
use crate::tx::{Across, Snapshot, Tx};
use crate::value::Row;
use crate::values;

statements! {
    company GET = "SELECT id, slug, name, cadence_days, tracked_stages, digest_enabled, digest_weekday, \
                   time_zone, default_currency, audit_days, created_at FROM company WHERE id = $1";
    reference LIST = "SELECT id, slug, name, cadence_days, tracked_stages, digest_enabled, digest_weekday, \
                      time_zone, default_currency, audit_days, created_at FROM company ORDER BY id";
    reference BY_SLUG = "SELECT id, slug, name, cadence_days, tracked_stages, digest_enabled, digest_weekday, \
                         time_zone, default_currency, audit_days, created_at FROM company WHERE slug = $1";
    reference INSERT = "INSERT INTO company (slug, name, cadence_days, tracked_stages, digest_enabled, \
                        digest_weekday, time_zone, default_currency, audit_days, created_at) \
                        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
                        ON CONFLICT (slug) DO NOTHING RETURNING id";
    company LOCK = "SELECT id FROM company WHERE id = $1 FOR UPDATE";
    company UPDATE_SETTINGS = "UPDATE company SET cadence_days = $2, tracked_stages = $3, digest_enabled = $4, \
                               digest_weekday = $5, time_zone = $6, default_currency = $7, audit_days = $8 \
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
        ],
    )?;
    Ok(())
}

pub(crate) fn read(mut row: Row) -> Result<Company, Error> {
    read_from(&mut row)
}

/// Reads the eleven columns of a company from a row.
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
        },
        created_at: row.take()?,
    })
}
