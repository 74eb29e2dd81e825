//! A JSON object written field by field into the answer's bytes: a page of a hundred rows is one
//! buffer, without a string or a tree in between.

use water_domain::{Number, Timestamp};

/// An object that is being written; [`Object::end`] closes it.
pub struct Object<'a> {
    json: &'a mut Vec<u8>,
    separator: u8,
}

impl<'a> Object<'a> {
    /// Opens an object at the buffer's end.
    pub fn begin(json: &'a mut Vec<u8>) -> Self {
        Self {
            json,
            separator: b'{',
        }
    }

    /// Text: UTF-8 as it is, escaped only where JSON demands it.
    pub fn text(mut self, name: &'static str, value: &str) -> Self {
        serde_json::to_writer(self.field(name), value)
            .expect("text is always JSON, and memory never fails");
        self
    }

    /// A number in its shortest form.
    pub fn number(mut self, name: &'static str, value: Number) -> Self {
        value.write(self.field(name));
        self
    }

    /// A moment to the millisecond.
    pub fn time(mut self, name: &'static str, value: Timestamp) -> Self {
        let json = self.field(name);
        json.push(b'"');
        value.write(json);
        json.push(b'"');
        self
    }

    /// Closes the object.
    pub fn end(self) {
        self.json.push(b'}');
    }

    /// Writes `,"name":`; names are the API's own and need no escaping.
    fn field(&mut self, name: &'static str) -> &mut Vec<u8> {
        self.json.push(self.separator);
        self.separator = b',';
        self.json.push(b'"');
        self.json.extend_from_slice(name.as_bytes());
        self.json.extend_from_slice(b"\":");
        self.json
    }
}
