//! Attacks: raw bytes to the real gate, and the whole answer compared.
//!
//! Each file keeps its inputs in functions, so that [`corpus`] can hand all of them to the fuzz
//! driver.

mod answers;
mod connections;
mod credentials;
mod framing;
mod hosts;
mod methods;
mod parameters;
mod paths;
mod sizes;

const LINE: &str = "GET /api/v1/stress HTTP/1.1";
const HOST: &str = "Host: water\r\n";

/// A request of this line and these fields, each of which ends in CRLF.
fn request(line: &str, fields: &str) -> Vec<u8> {
    format!("{line}\r\n{fields}\r\n").into_bytes()
}

/// The same with a credential before the other fields.
fn with_key(bearer: &str, line: &str, fields: &str) -> Vec<u8> {
    request(line, &format!("Authorization: {bearer}\r\n{fields}"))
}

/// The bytes of all attacks by somebody whose good key is sent as `bearer`.
pub fn corpus(bearer: &str) -> Vec<Vec<u8>> {
    [
        connections::strange_bytes(),
        connections::pipelined(bearer),
        credentials::inputs(bearer),
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
