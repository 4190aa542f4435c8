//! Turns the table into code: one struct per section, [`Settings`](super::Settings), its loader, and the
//! catalogue that people's texts are made from.

use super::rule::Rule;

/// One section of the table, for people.
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) doc: String,
    pub(super) entries: Vec<Entry>,
}

/// One setting of the table, for people: what the reference, `explain` and suggestions are made from.
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

        /// Every setting, checked, grouped by section.
        #[derive(Debug, Clone)]
        pub(crate) struct Settings {
            $( $(#[doc = $section_doc])+ pub(crate) $section: $Section, )+
            /// Every peer by its name.
            pub(crate) peers: $crate::config::peers::Peers,
            pub(super) sources: $crate::config::source::Sources,
        }

        impl Settings {
            /// Takes every setting of the table from what the layers gave.
            pub(super) fn take(gather: &mut $crate::config::gather::Gather) -> Settings {
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
