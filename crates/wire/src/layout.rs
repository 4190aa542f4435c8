//! The fields of request objects. Each object has one table, used by its reader and by the form
//! parser.

/// An object of a request.
#[derive(Debug)]
pub struct Layout {
    /// The object's name in messages, like `a charge`.
    pub of: &'static str,
    /// An example, for messages.
    pub like: &'static str,
    pub fields: &'static [(&'static str, Shape)],
}

/// The JSON type of a field; a form carries only its text.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A text, or an object of texts.
    Text,
    /// A number, if the text is one.
    Number,
    /// `true` or `false`, if the text is one of them.
    Truth,
    /// An array of objects.
    List(&'static Layout),
    Object(&'static Layout),
}

impl Layout {
    pub fn knows(&self, name: &str) -> bool {
        self.fields.iter().any(|(known, _)| *known == name)
    }

    /// The shape of a field. An unknown name counts as text, because the reader refuses it anyway.
    pub fn shape(&self, name: &str) -> Shape {
        self.fields.iter().find(|(known, _)| *known == name).map_or(Shape::Text, |(_, shape)| *shape)
    }

    pub fn names(&self) -> Vec<&'static str> {
        self.fields.iter().map(|(name, _)| *name).collect()
    }
}
