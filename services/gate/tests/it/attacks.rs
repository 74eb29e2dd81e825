//! Attacks: raw bytes sent to the real gate, with the whole answer compared.
//!
//! Each file has its inputs in functions, so that [`corpus`] can pass all of them to the fuzz driver.

mod answers;
mod connections;
mod credentials;
mod framing;
mod hosts;
mod methods;
mod parameters;
mod paths;
mod sizes;

use water_kit::Key;

const LINE: &str = "GET /api/v1/stress HTTP/1.1";
const HOST: &str = "Host: water\r\n";

/// Makes a request of this line and these fields, each of which ends in CRLF.
fn request(line: &str, fields: &str) -> Vec<u8> {
    format!("{line}\r\n{fields}\r\n").into_bytes()
}

/// Makes the same request with a credential before the other fields.
fn with_key(bearer: &str, line: &str, fields: &str) -> Vec<u8> {
    request(line, &format!("Authorization: {bearer}\r\n{fields}"))
}

/// Returns the bytes of all attacks that present a valid key.
pub fn corpus(key: &Key) -> Vec<Vec<u8>> {
    let bearer = &key.bearer();
    [
        connections::strange_bytes(),
        connections::pipelined(bearer),
        credentials::inputs(key),
        framing::bodies(bearer),
        framing::unreadable(bearer),
        hosts::wrong(bearer),
        hosts::right(bearer),
        methods::other_methods(bearer),
        methods::expectations(bearer),
        parameters::undecodable(),
        parameters::judged_by_the_service(bearer),
        paths::unknown(bearer),
        paths::fragments(bearer),
        sizes::too_large(bearer),
    ]
    .concat()
}
