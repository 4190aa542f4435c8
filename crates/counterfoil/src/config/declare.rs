//! Generates code from the table: one struct per section, [`Settings`](super::Settings), its
//! loader, and the catalogue for the reference page.

use super::rule::Rule;

/// A section, for documentation.
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) doc: String,
    pub(super) entries: Vec<Entry>,
}

/// A setting, for the reference page, `explain` and suggestions.
pub(super) struct Entry {
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    pub(super) doc: String,
    pub(super) default: Option<String>,
    pub(super) allowed: String,
}

impl Entry {
    pub(super) fn new(section: &'static str, name: &'static str, doc: &str, rule: &impl Rule) -> Entry {
        let (default, allowed) = (rule.default_text(), rule.allowed());
        Entry { section, name, doc: doc.trim().to_owned(), default, allowed }
    }
}

macro_rules! settings {
    ($(
        $(#[doc = $section_doc:literal])+
        $section:ident: $Section:ident {
            $( $(#[doc = $doc:literal])+ $name:ident: $type:ty = $rule:expr; )+
        }
    )+) => {
        $(
            $(#[doc = $section_doc])+
            #[derive(Debug, Clone)]
            pub(crate) struct $Section {
                $( $(#[doc = $doc])+ pub(crate) $name: $type, )+
            }
        )+

        /// All settings, validated and grouped by section.
        #[derive(Debug, Clone)]
        pub(crate) struct Settings {
            $( $(#[doc = $section_doc])+ pub(crate) $section: $Section, )+
            pub(crate) peers: $crate::config::peers::Peers,
            pub(super) sources: $crate::config::source::Sources,
        }

        impl Settings {
            /// Takes every setting of the table from the layers.
            pub(super) fn take(gather: &mut $crate::config::gather::Gatherer) -> Settings {
                Settings {
                    $( $section: $Section {
                        $( $name: gather.take(stringify!($section), stringify!($name), &$rule), )+
                    }, )+
                    peers: gather.take_peers(),
                    sources: gather.take_sources(),
                }
            }
        }

        /// The table as data, in its own order.
        pub(super) fn catalogue() -> Vec<$crate::config::declare::Section> {
            use $crate::config::declare::{Entry, Section};
            let mut all = vec![$( Section {
                name: stringify!($section),
                doc: concat!($($section_doc),+).trim().to_owned(),
                entries: vec![$(
                    Entry::new(stringify!($section), stringify!($name), concat!($($doc),+), &$rule),
                )+],
            }, )+];
            all.push($crate::config::peers::section());
            all
        }
    };
}
pub(super) use settings;
