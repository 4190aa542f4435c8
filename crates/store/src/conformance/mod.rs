//! The conformance suite: one suite, every store, every case by name.
