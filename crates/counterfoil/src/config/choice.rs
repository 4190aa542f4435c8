//! Settings with a closed list of words.

/// A closed list of words, in the order of the documentation.
pub(super) trait Choice: Copy + 'static {
    const ALL: &'static [Self];

    fn word(self) -> &'static str;
}

macro_rules! choices {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident { $( $(#[doc = $word_doc:literal])+ $variant:ident = $word:literal, )+ }
    )+) => { $(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name {
            $( $(#[doc = $word_doc])+ $variant, )+
        }

        impl Choice for $name {
            const ALL: &'static [$name] = &[$( $name::$variant, )+];

            fn word(self) -> &'static str {
                match self { $( $name::$variant => $word, )+ }
            }
        }
    )+ };
}

choices! {
    /// Which requests are logged.
    RequestLog {
        /// No requests.
        Off = "off",
        /// Requests answered with an error.
        Errors = "errors",
        /// All requests.
        All = "all",
    }

    /// Whether writing requests need an idempotency key.
    KeyPolicy {
        /// A request without a key is refused.
        Required = "required",
        /// A request without a key runs, unprotected against its own retries.
        Optional = "optional",
    }

    /// Whether a key can be reused for another request.
    Reuse {
        /// The key is free again once its tombstone is over.
        AfterTombstone = "after_tombstone",
        /// The key stays refused for ever.
        Never = "never",
    }

    /// The form of a log line.
    LogFormat {
        /// Text for people.
        Text = "text",
        /// One JSON object per line.
        Json = "json",
        /// Text on a terminal, JSON elsewhere.
        Auto = "auto",
    }
}
