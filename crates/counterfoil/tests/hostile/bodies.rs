//! Bodies that are valid JSON but not valid for the route: field by field, name by name.

use crate::bad::{BadRequest, Expected, Request};
use crate::fields::{self, NamedPlace};
use crate::table::{Field, Kind, Presence, WRITES, Write};
use crate::world::World;
use serde_json::Value;

/// A writing route with a good body and an object of its own in the path.
pub(crate) struct Target<'w> {
    pub(crate) write: &'static Write,
    pub(crate) path: String,
    pub(crate) good_text: String,
    pub(crate) good: Value,
    world: &'w World,
}

/// A field of the table at its place in a good body.
pub(crate) struct Hole {
    pub(crate) field: Field,
    /// The pointer to the enclosing object.
    pub(crate) around: String,
    pub(crate) place: String,
}

/// Names that no request object has: near misses of real names, and names that are dangerous
/// elsewhere.
const UNKNOWN: [&str; 26] = [
    "unknown",
    "Amount",
    "amout",
    "amountt",
    "currancy",
    "Currency",
    "payment-method",
    "paymentMethod",
    "meta_data",
    "meta",
    "id",
    "object",
    "tenant",
    "created_at",
    "idempotency_key",
    "Idempotency-Key",
    "__proto__",
    "constructor",
    "$where",
    "a.b",
    "a[b]",
    "",
    " ",
    "\u{0}",
    "é",
    "amount\u{200b}",
];

impl<'w> Target<'w> {
    pub(crate) fn all(world: &'w World) -> Vec<Target<'w>> {
        WRITES.iter().map(|write| Target::of(write, world)).collect()
    }

    fn of(write: &'static Write, world: &'w World) -> Target<'w> {
        let good_text = world.filled(write.good);
        let good = serde_json::from_str(&good_text).unwrap();
        let path = write
            .about
            .map_or(write.path.to_owned(), |(object, ..)| write.path.replace("{id}", world.id(object)));
        Target { write, path, good_text, good, world }
    }

    /// The key shared by all bad requests of a group, so that it can be checked afterwards.
    pub(crate) fn key(&self, group: &str) -> String {
        self.write.key(group)
    }

    pub(crate) fn request(&self) -> Request {
        Request::new("POST", &self.path).by(&self.world.secret)
    }

    /// A bad request with this JSON body.
    pub(crate) fn json(
        &self,
        what: &str,
        group: &str,
        body: impl Into<Vec<u8>>,
        expected: Expected,
    ) -> BadRequest {
        BadRequest::new(
            format!("POST {}: {what}", self.write.path),
            self.request().json(&self.key(group), body),
            expected,
        )
    }

    /// All fields of the table that the good body has.
    pub(crate) fn holes(&self) -> Vec<Hole> {
        let mut holes = Vec::new();
        find(self.write.fields, &self.good, "", &mut holes);
        holes
    }

    /// The good body with one value replaced by `raw`.
    pub(crate) fn with(&self, place: &str, raw: &str) -> String {
        const MARK: &str = "\u{1}here\u{1}";
        let mut body = self.good.clone();
        *body.pointer_mut(place).unwrap() = MARK.into();
        body.to_string().replace(&serde_json::to_string(MARK).unwrap(), raw)
    }

    /// The good body with one more member in the object at `place`.
    fn with_member(&self, place: &str, name: &str) -> String {
        let mut body = self.good.clone();
        body.pointer_mut(place).unwrap().as_object_mut().unwrap().insert(name.to_owned(), 1.into());
        body.to_string()
    }

    fn without(&self, hole: &Hole) -> String {
        let mut body = self.good.clone();
        body.pointer_mut(&hole.around).unwrap().as_object_mut().unwrap().remove(hole.field.name);
        body.to_string()
    }
}

fn find(fields: &[Field], object: &Value, around: &str, holes: &mut Vec<Hole>) {
    for field in fields {
        let Some(value) = object.get(field.name) else { continue };
        let place = format!("{around}/{}", field.name);
        if let Kind::List(_, _, inner) = field.kind {
            for (index, element) in value.as_array().unwrap().iter().enumerate() {
                find(inner, element, &format!("{place}/{index}"), holes);
            }
        }
        holes.push(Hole { field: *field, around: around.to_owned(), place });
    }
}

/// The objects of a body with a fixed set of names.
fn objects(fields: &[Field], object: &Value, place: &str, found: &mut Vec<String>) {
    found.push(place.to_owned());
    for field in fields {
        if let (Kind::List(_, _, inner), Some(Value::Array(elements))) = (field.kind, object.get(field.name))
        {
            for (index, element) in elements.iter().enumerate() {
                objects(inner, element, &format!("{place}/{}/{index}", field.name), found);
            }
        }
    }
}

pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

pub(crate) fn make(world: &World, bad: &mut Vec<BadRequest>) {
    for target in Target::all(world) {
        for hole in target.holes() {
            values(&target, &hole, world, bad);
            presence(&target, &hole, bad);
        }
        let mut places = Vec::new();
        objects(target.write.fields, &target.good, "", &mut places);
        for place in places {
            for name in UNKNOWN {
                let expected = Expected::invalid(&[&format!("{place}/{}", escaped(name))]);
                bad.push(target.json(
                    &format!("unknown {name:?}"),
                    "unknown",
                    target.with_member(&place, name),
                    expected,
                ));
            }
            // A name too long for a pointer is reported at its object.
            let expected = Expected::invalid(&[&place]);
            bad.push(target.json(
                "a long name",
                "unknown",
                target.with_member(&place, &"x".repeat(5_000)),
                expected,
            ));
        }
        for (body, places) in target.write.senseless {
            let body = world.filled(body);
            bad.push(target.json(&format!("no sense: {body}"), "senseless", body, Expected::invalid(places)));
        }
    }
}

fn values(target: &Target<'_>, hole: &Hole, world: &World, bad: &mut Vec<BadRequest>) {
    let above = hole.place.matches('/').count();
    let damage = fields::values(&hole.field, world)
        .into_iter()
        .chain(fields::no_value())
        .chain(fields::too_deep(above));
    for (raw, named) in damage {
        let places: Vec<String> = match named {
            NamedPlace::Field => vec![hole.place.clone()],
            NamedPlace::Around => vec![hole.around.clone()],
            NamedPlace::Below(places) => {
                places.iter().map(|place| format!("{}{place}", hole.place)).collect()
            }
        };
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        let shown: String = raw.chars().take(40).collect();
        let what = format!("{} is {shown}", hole.place);
        bad.push(target.json(
            &what,
            hole.field.name,
            target.with(&hole.place, &raw),
            Expected::invalid(&places),
        ));
    }
}

/// The body without the field, and with the field twice: plain, and with an escape in the name.
fn presence(target: &Target<'_>, hole: &Hole, bad: &mut Vec<BadRequest>) {
    let group = hole.field.name;
    let here = Expected::invalid(&[&hole.place]);
    if matches!(hole.field.presence, Presence::Required | Presence::Needed) {
        bad.push(target.json(
            &format!("{} is missing", hole.place),
            group,
            target.without(hole),
            here.clone(),
        ));
    }
    let good = target.good.pointer(&hole.place).unwrap().to_string();
    let first = hole.field.name.chars().next().unwrap();
    let spelled = format!("\\u{:04x}{}", u32::from(first), &hole.field.name[1..]);
    for (name, value) in [(group, good.as_str()), (group, "null"), (&spelled, &good), (group, "\"other\"")] {
        let body = target.with(&hole.place, &format!("{good},\"{name}\":{value}"));
        bad.push(target.json(&format!("{} stands twice", hole.place), group, body, here.clone()));
    }
}
