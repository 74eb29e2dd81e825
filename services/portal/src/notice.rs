//! The few plain pages that the portal makes itself: the outcome of a sign-in, in one sentence, in the
//! reader's language.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE};
use http::header::{RETRY_AFTER, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use water_http::{Language, RequestId};

use crate::account_request::Response;

/// The icon of all pages: without it a browser would ask for `/favicon.ico`, which the portal does not have.
const ICON: &str = "/drop.svg";

/// Message of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The sign-in is not one that this browser began a moment ago.
    NotBegun,
    /// The address of the sign-in has another parameter than the page to come back to, or that one twice.
    Parameters,
    /// The identity provider refused the sign-in.
    Refused,
    /// The identity provider does not answer.
    ProviderAway,
    /// The identity provider does not take the portal's own client id or secret.
    ClientRefused,
    /// The identity provider's answer failed a check.
    NotBelieved,
    /// The claims give no clear accounts.
    Claims,
    /// Sessions cannot be stored now.
    StoreAway,
    /// Too many sign-ins from an address.
    TooMany {
        /// Seconds to wait.
        retry_after: u64,
    },
    /// A bug.
    Internal,
}

impl Notice {
    /// Makes the page, for a reader with these headers.
    pub fn into_response(self, headers: &HeaderMap, id: &RequestId) -> Response {
        let language = Language::preferred(headers);
        let body = Bytes::from(page(language, self.sentence(language), id));
        let length = HeaderValue::from(body.len());
        let mut response = Response::new(body);
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        );
        headers.insert(CONTENT_LENGTH, length);
        headers.insert(CONTENT_LANGUAGE, HeaderValue::from_static(language.tag()));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(VARY, HeaderValue::from_static("Accept-Language"));
        if let Some(seconds) = self.retry_after() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    fn status(self) -> StatusCode {
        match self {
            Self::NotBegun | Self::Parameters | Self::Refused => StatusCode::BAD_REQUEST,
            Self::Claims => StatusCode::FORBIDDEN,
            Self::ClientRefused | Self::NotBelieved => StatusCode::BAD_GATEWAY,
            Self::ProviderAway | Self::StoreAway => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn retry_after(self) -> Option<u64> {
        match self {
            Self::ProviderAway | Self::StoreAway => Some(2),
            Self::TooMany { retry_after } => Some(retry_after),
            _ => None,
        }
    }

    fn sentence(self, language: Language) -> &'static str {
        use Language::{English, French};
        match (self, language) {
            (Self::NotBegun, English) => {
                "This sign-in was not begun in this browser, was already used, or took more than \
                 ten minutes."
            }
            (Self::NotBegun, French) => {
                "Cette connexion n’a pas été commencée dans ce navigateur, a déjà servi, ou a duré \
                 plus de dix minutes."
            }
            (Self::Parameters, English) => {
                "The address of this sign-in has another parameter than “to”, or “to” twice: leave out all others, \
                 and give “to”, in small letters, once."
            }
            (Self::Parameters, French) => {
                "L’adresse de cette connexion a un autre paramètre que « to », ou deux fois « to » : n’en gardez \
                 aucun autre et donnez « to », en minuscules, une fois."
            }
            (Self::Refused, English) => "The identity provider did not sign you in.",
            (Self::Refused, French) => "Le fournisseur d’identité ne vous a pas connecté.",
            (Self::ProviderAway, English) => {
                "The identity provider does not answer: try again in a moment."
            }
            (Self::ProviderAway, French) => {
                "Le fournisseur d’identité ne répond pas : réessayez dans un instant."
            }
            (Self::ClientRefused, English) => {
                "The identity provider does not accept this site at the moment, so nobody can sign \
                 in: give the reference below to your administrator."
            }
            (Self::ClientRefused, French) => {
                "Le fournisseur d’identité n’accepte pas ce site pour le moment, et personne ne peut \
                 se connecter : donnez la référence ci-dessous à votre administrateur."
            }
            (Self::NotBelieved, English) => {
                "The identity provider’s answer failed a check, so you are not signed in."
            }
            (Self::NotBelieved, French) => {
                "La réponse du fournisseur d’identité n’a pas pu être vérifiée : vous n’êtes pas \
                 connecté."
            }
            (Self::Claims, English) => {
                "The identity provider’s groups do not say clearly which accounts are yours: give \
                 the reference below to your administrator."
            }
            (Self::Claims, French) => {
                "Les groupes du fournisseur d’identité ne disent pas clairement quels comptes sont \
                 les vôtres : donnez la référence ci-dessous à votre administrateur."
            }
            (Self::StoreAway, English) => {
                "Sessions cannot be kept at the moment: try again shortly."
            }
            (Self::StoreAway, French) => {
                "Les sessions ne peuvent pas être enregistrées pour le moment : réessayez bientôt."
            }
            (Self::TooMany { .. }, English) => {
                "Too many sign-ins came from your network: wait a minute and try again."
            }
            (Self::TooMany { .. }, French) => {
                "Trop de connexions viennent de votre réseau : attendez une minute et réessayez."
            }
            (Self::Internal, English) => "Something went wrong on our side; it has been recorded.",
            (Self::Internal, French) => "Une erreur est survenue de notre côté ; elle est notée.",
        }
    }
}

/// Makes the page without style and script: the policy of all pages allows neither within a page. The only
/// part of the request in it is its id, whose form is checked.
fn page(language: Language, sentence: &str, id: &RequestId) -> String {
    let (title, again, home, reference) = match language {
        Language::French => ("Connexion", "Se connecter", "Accueil", "Référence"),
        Language::English => ("Sign-in", "Sign in", "Home", "Reference"),
    };
    let language = language.tag();
    format!(
        "<!doctype html>\n<html lang=\"{language}\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <link rel=\"icon\" href=\"{ICON}\" type=\"image/svg+xml\">\n\
         <main>\n<h1>{title}</h1>\n<p>{sentence}</p>\n\
         <p><a href=\"/auth/sign-in\">{again}</a> · <a href=\"/\">{home}</a></p>\n\
         <p><small>{reference} {id}</small></p>\n</main>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use water_http::RequestIds;

    use super::*;

    #[test]
    fn every_sentence_is_safe_to_stand_in_a_page() {
        let all = [
            Notice::NotBegun,
            Notice::Parameters,
            Notice::Refused,
            Notice::ProviderAway,
            Notice::ClientRefused,
            Notice::NotBelieved,
            Notice::Claims,
            Notice::StoreAway,
            Notice::TooMany { retry_after: 3 },
            Notice::Internal,
        ];
        for notice in all {
            for language in [Language::French, Language::English] {
                let sentence = notice.sentence(language);
                assert!(
                    sentence.ends_with('.') && !sentence.contains(['<', '&']),
                    "{sentence}"
                );
            }
        }
    }

    #[test]
    fn a_page_names_the_icon_that_the_other_pages_have() {
        let link = format!("<link rel=\"icon\" href=\"{ICON}\" type=\"image/svg+xml\">");
        let page = page(Language::English, "", &RequestIds::new(1).mint());
        assert!(page.contains(&link), "{page}");
        assert!(include_str!("../web/index.html").contains(&link));
        let public = concat!(env!("CARGO_MANIFEST_DIR"), "/web/public");
        assert!(Path::new(&format!("{public}{ICON}")).is_file());
    }
}
