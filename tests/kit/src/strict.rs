//! CSV as RFC 4180 defines it, read in another way than the product reads it: by searching for the end of
//! each field in the whole text.

/// Returns the records of a text, empty lines left out; `None` when it is no CSV.
pub fn records(text: &str, separator: char) -> Option<Vec<Vec<String>>> {
    let (mut rest, mut records) = (text, Vec::new());
    while !rest.is_empty() && rest != "\r" {
        if let Some(next) = after_line_end(rest) {
            rest = next;
            continue;
        }
        let mut record = Vec::new();
        rest = loop {
            let (value, after) = field(rest, separator)?;
            record.push(value);
            match after.strip_prefix(separator) {
                Some(next) => rest = next,
                None => {
                    break if after.is_empty() || after == "\r" {
                        ""
                    } else {
                        after_line_end(after)?
                    };
                }
            }
        };
        records.push(record);
    }
    Some(records)
}

fn after_line_end(text: &str) -> Option<&str> {
    text.strip_prefix("\r\n")
        .or_else(|| text.strip_prefix('\n'))
}

/// Returns a field and the text behind it.
fn field(text: &str, separator: char) -> Option<(String, &str)> {
    let Some(mut quoted) = text.strip_prefix('"') else {
        let (value, rest) = text.split_at(text.find([separator, '\r', '\n']).unwrap_or(text.len()));
        return (!value.contains('"')).then(|| (value.to_owned(), rest));
    };
    let mut value = String::new();
    loop {
        let (part, rest) = quoted.split_once('"')?;
        value += part;
        match rest.strip_prefix('"') {
            Some(more) => {
                value.push('"');
                quoted = more;
            }
            None => return Some((value, rest)),
        }
    }
}
