//! A body under construction: its text, and the fields that change from request to request.

pub(super) const NUMBER_DIGITS: usize = 10;
pub(super) const AMOUNT_DIGITS: usize = 4;

/// The content of a field.
#[derive(Clone, Copy)]
pub(super) enum Field {
    /// The request's number.
    Number,
    Amount,
    Debited,
    Credited,
}

/// A field that changes.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) at: usize,
    /// Index of the item in the request.
    pub(super) item: u64,
    pub(super) field: Field,
}

#[derive(Default)]
pub(super) struct Body {
    pub(super) text: String,
    pub(super) slots: Vec<Slot>,
}

impl Body {
    pub(super) fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(super) fn slot(&mut self, item: u64, field: Field, bytes: usize) {
        self.slots.push(Slot { at: self.text.len(), item, field });
        self.text.extend(std::iter::repeat_n('0', bytes));
    }
}
