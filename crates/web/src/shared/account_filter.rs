//! Reads the account filters from query parameters, for the list and its export.

use rapport_domain::audience::{self, FieldFilter, FieldTest, Filter, ImportEffect, ImportFilter};
use rapport_domain::invalid::Fault;
use rapport_domain::pipeline::Status;

use crate::shared::parameters::Parameters;

const FIELD: &str = "field.";
const FIELD_PREFIX: &str = "field_prefix.";
const HAS_FIELD: &str = "has_field";

pub fn read(parameters: &mut Parameters) -> Filter {
    let filter = Filter {
        q: parameters.text("q"),
        statuses: parameters.several("status", Status::parse),
        channels: parameters.several("channel", audience::channel_id),
        imported_id: parameters.text("imported_id"),
        tracked: parameters.boolean("tracked"),
        overdue: parameters.boolean("overdue"),
        seen: parameters.boolean("seen"),
        seen_before: parameters.time("seen_before"),
        seen_after: parameters.time("seen_after"),
        contacted: parameters.boolean("contacted"),
        contacted_before: parameters.time("contacted_before"),
        contacted_after: parameters.time("contacted_after"),
        created_since: parameters.time("created_since"),
        created_before: parameters.time("created_before"),
        campaign_hold: parameters.boolean("campaign_hold"),
        fields: fields(parameters),
        import: import(parameters),
    };
    if let Err(fault) = audience::check_channels(&filter.channels) {
        parameters.fault("channel", fault);
    }
    if let Err(fault) = audience::check_fields(&filter.fields) {
        parameters.fault("field", fault);
    }
    filter
}

/// Reads `import=ID`, and `import_effect=created` or `changed` with it.
fn import(parameters: &mut Parameters) -> Option<ImportFilter> {
    let id = parameters.optional("import", audience::import_id);
    let effect = parameters.optional("import_effect", ImportEffect::parse);
    if id.is_none() && effect.is_some() {
        parameters.fault("import", Fault::new("required", "is required with import_effect"));
    }
    id.map(|id| ImportFilter { id, effect })
}

/// Reads `field.KEY=value` (repeat it to match any of several values), `field_prefix.KEY=text` and `has_field=KEY`.
fn fields(parameters: &mut Parameters) -> Vec<FieldFilter> {
    let mut fields: Vec<FieldFilter> = Vec::new();
    for (key, value) in parameters.keyed(FIELD) {
        let same = |field: &&mut FieldFilter| field.key == key;
        match fields.iter_mut().find(same).map(|field| &mut field.test) {
            Some(FieldTest::Is(values)) => values.push(value),
            _ => fields.push(FieldFilter { key, test: FieldTest::Is(vec![value]) }),
        }
    }
    let beginnings = parameters.keyed(FIELD_PREFIX).into_iter();
    fields.extend(beginnings.map(|(key, text)| FieldFilter { key, test: FieldTest::BeginsWith(text) }));
    let names = parameters.repeated(HAS_FIELD).into_iter();
    fields.extend(names.map(|key| FieldFilter { key, test: FieldTest::Exists }));
    fields
}
