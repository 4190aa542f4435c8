//! What the objects of a request hold: one table per object, for its reader and for the forms that mean the same.

/// An object of a request.
#[derive(Debug)]
pub struct Layout {
    /// What it is, like `a charge`.
    pub of: &'static str,
    /// What one looks like.
    pub like: &'static str,
    /// The names it may have.
    pub fields: &'static [(&'static str, Shape)],
}

/// What a field is in JSON, where a form has only its text.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A text, or an object of texts.
    Text,
    /// A number, where the text is one.
    Number,
    /// `true` or `false`, where the text is one of them.
    Truth,
    /// An array of such objects.
    List(&'static Layout),
    /// Such an object.
    Object(&'static Layout),
}

impl Layout {
    /// Whether there is a field of that name.
    pub fn knows(&self, name: &str) -> bool {
        self.fields.iter().any(|(known, _)| *known == name)
    }

    /// What the field of that name is; a name that is not known is left to the reader, which refuses it.
    pub fn shape(&self, name: &str) -> Shape {
        self.fields.iter().find(|(known, _)| *known == name).map_or(Shape::Text, |(_, shape)| *shape)
    }

    /// All names.
    pub fn names(&self) -> Vec<&'static str> {
        self.fields.iter().map(|(name, _)| *name).collect()
    }
}
