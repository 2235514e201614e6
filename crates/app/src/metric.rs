//! The metrics that `/metrics` serves. `table` lists them all, and nothing else can be emitted: the macros of the
//! `metrics` crate are banned by `clippy.toml`.

mod table;

use metrics::{Gauge, Key, Level, Metadata, SharedString, with_recorder};

pub use metrics::{Counter, Histogram};
pub use table::*;

static METADATA: Metadata<'static> = Metadata::new("rapport", Level::INFO, None);

/// One line of the table.
#[derive(Debug)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub unit: Unit,
    pub labels: &'static [Label],
    pub help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Counter,
    /// A counter of fractions, which the recorder doesn't have: `/metrics` adds its line.
    FractionalCounter,
    Gauge,
    /// With the upper bounds of its buckets.
    Histogram(&'static [f64]),
}

impl Kind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter | Self::FractionalCounter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things that are counted, or a flag.
    One,
    Seconds,
    /// Seconds since 1970; 0 means never.
    Timestamp,
    Bytes,
}

impl Unit {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::One => "",
            Self::Seconds => "seconds",
            Self::Timestamp => "Unix time in seconds",
            Self::Bytes => "bytes",
        }
    }

    /// The end of the name, which says the unit. That of a counter follows.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::One => "",
            Self::Seconds | Self::Timestamp => "_seconds",
            Self::Bytes => "_bytes",
        }
    }
}

#[derive(Debug)]
pub struct Label {
    pub name: &'static str,
    pub values: Values,
}

#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// These and no others.
    Only(&'static [&'static str]),
    /// A bounded number, of which this one is there from the start.
    Among { what: &'static str, first: &'static str },
}

impl Values {
    fn first(&'static self) -> &'static [&'static str] {
        match self {
            Self::Only(values) => values,
            Self::Among { first, .. } => std::slice::from_ref(first),
        }
    }

    fn has(self, value: &str) -> bool {
        match self {
            Self::Only(values) => values.contains(&value),
            Self::Among { .. } => true,
        }
    }
}

impl Metric {
    /// The counter with these values of its labels, in the order of the table.
    pub fn counter<const N: usize>(&self, values: [SharedString; N]) -> Counter {
        debug_assert!(matches!(self.kind, Kind::Counter), "{} is no counter", self.name);
        with_recorder(|recorder| recorder.register_counter(&self.key(values), &METADATA))
    }

    pub fn gauge<const N: usize>(&self, values: [SharedString; N]) -> Gauge {
        debug_assert!(matches!(self.kind, Kind::Gauge), "{} is no gauge", self.name);
        with_recorder(|recorder| recorder.register_gauge(&self.key(values), &METADATA))
    }

    pub fn histogram<const N: usize>(&self, values: [SharedString; N]) -> Histogram {
        debug_assert!(matches!(self.kind, Kind::Histogram(_)), "{} is no histogram", self.name);
        with_recorder(|recorder| recorder.register_histogram(&self.key(values), &METADATA))
    }

    fn key<const N: usize>(&self, values: [SharedString; N]) -> Key {
        debug_assert_eq!(self.labels.len(), N, "{}", self.name);
        let label = |(label, value): (&Label, SharedString)| {
            debug_assert!(label.values.has(&value), "{}: {value} is no {}", self.name, label.name);
            metrics::Label::new(label.name, value)
        };
        let labels: Vec<_> = self.labels.iter().zip(values).map(label).collect();
        Key::from_parts(self.name, labels)
    }

    /// Describes it, and makes it appear with zeros for the values that its labels have from the start.
    fn register(&self) {
        let (name, help) = (self.name.into(), self.help.into());
        let mut keys: Vec<Vec<metrics::Label>> = vec![Vec::new()];
        for label in self.labels {
            let with = |known: &Vec<metrics::Label>| {
                let known = known.clone();
                let values = label.values.first().iter();
                values.map(move |value| {
                    let mut labels = known.clone();
                    labels.push(metrics::Label::from_static_parts(label.name, value));
                    labels
                })
            };
            keys = keys.iter().flat_map(with).collect();
        }
        let keys = keys.into_iter().map(|labels| Key::from_parts(self.name, labels));
        with_recorder(|recorder| match self.kind {
            Kind::FractionalCounter => {}
            Kind::Counter => {
                recorder.describe_counter(name, None, help);
                keys.for_each(|key| recorder.register_counter(&key, &METADATA).absolute(0));
            }
            Kind::Gauge => {
                recorder.describe_gauge(name, None, help);
                keys.for_each(|key| recorder.register_gauge(&key, &METADATA).set(0.0));
            }
            Kind::Histogram(_) => {
                recorder.describe_histogram(name, None, help);
                keys.for_each(|key| drop(recorder.register_histogram(&key, &METADATA)));
            }
        });
    }
}

/// Registers every metric of the table with the recorder.
pub fn register_all() {
    TABLE.iter().for_each(|metric| metric.register());
    BUILD_INFO.gauge([VERSION.into()]).set(1.0);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_say_their_kind_and_unit() {
        let mut names = HashSet::new();
        for metric in TABLE {
            let name = metric.name;
            assert!(names.insert(name), "{name} is listed twice");
            assert!(name.starts_with("rapport_") || name.starts_with("process_"), "{name}");
            let bare = name.strip_suffix("_total");
            assert_eq!(bare.is_some(), metric.kind.as_str() == "counter", "{name}");
            assert!(bare.unwrap_or(name).ends_with(metric.unit.suffix()), "{name}: {:?}", metric.unit);
            assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{name}: {}", metric.help);
            if let Kind::Histogram(bounds) = metric.kind {
                assert!(bounds.is_sorted() && bounds.len() >= 10, "{name}");
            }
        }
    }
}
