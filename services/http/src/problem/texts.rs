//! Table of all texts of problems, in English and French side by side: a text without its French form does not compile.
//!
//! A detail says what is wrong with the request and what to do, never a value that the client sent. Names of headers,
//! parameters and members are the same in both languages. In French the spaces before `:` and `;` are no-break ones
//! (U+00A0), and apostrophes are `’`.

use water_domain::PageError;
use water_domain::departement::{DepartementError, Hint};
use water_domain::timestamp::InvalidTimestamp;

use super::code::Code;
use super::text::{Pair, Text, details, titles};

titles! {
    InvalidParameter = "A parameter is not valid" "Un paramètre n’est pas valable";
    CursorExpired = "The cursor or token has expired" "Le curseur ou le jeton a expiré";
    InvalidQuery = "The query cannot be decoded" "La chaîne de requête ne peut pas être décodée";
    BodyNotAllowed = "The request must not have a body" "La requête ne doit pas avoir de corps";
    InvalidHost = "The Host header is missing or ambiguous" "L’en-tête Host manque ou est ambigu";
    KeyInQuery = "The API key must not be in the query" "La clé d’API ne doit pas être dans la chaîne de requête";
    KeyInRequest = "The API key must not be in the request" "La clé d’API ne doit pas être dans la requête";
    InvalidField = "A member of the body is malformed" "Un membre du corps est mal formé";
    InvalidBody = "The body cannot be read" "Le corps ne peut pas être lu";
    InvalidLogoutToken = "The logout token is not valid" "Le jeton de déconnexion n’est pas valable";
    SignInRequired = "Signing in is required" "Une connexion est nécessaire";
    MissingCredentials = "An API key is required" "Une clé d’API est nécessaire";
    InvalidKey = "The API key is not valid" "La clé d’API n’est pas valable";
    KeyExpired = "The API key has expired" "La clé d’API a expiré";
    KeySuspended = "The API key is suspended" "La clé d’API est suspendue";
    KeyNotYetValid = "The API key is not valid yet" "La clé d’API n’est pas encore valable";
    InvalidRequest = "The Authorization header is repeated" "L’en-tête Authorization est répété";
    InvalidIdentity = "The identity header is missing or not valid" "L’en-tête d’identité manque ou n’est pas valable";
    PlanInsufficient = "API access requires the Enterprise plan" "L’accès à l’API exige le plan Enterprise";
    CrossOrigin = "The request comes from another origin" "La requête vient d’une autre origine";
    ReadOnly = "The account may be looked at only" "Le compte peut seulement être consulté";
    NotFound = "There is no such resource" "Cette ressource n’existe pas";
    NoData = "No data has been loaded yet" "Aucune donnée n’a encore été chargée";
    MethodNotAllowed = "The method is not allowed" "La méthode n’est pas autorisée";
    TooManyKeys = "The account has too many keys" "Le compte a trop de clés";
    KeyConflict = "The key conflicts with another one" "La clé est en conflit avec une autre";
    ChangedMeanwhile = "The key was changed meanwhile" "La clé a été modifiée entre-temps";
    OverlapRunning = "An overlap is still running" "Un chevauchement est encore en cours";
    RefusedByPlatform = "The platform refuses the change" "La plateforme refuse la modification";
    BodyTooLarge = "The body is too large" "Le corps est trop grand";
    UnsupportedMediaType = "The body's type is not supported" "Le type du corps n’est pas pris en charge";
    UriTooLong = "The request target is too long" "La cible de la requête est trop longue";
    ExpectationFailed = "The expectation is not supported" "L’attente de l’en-tête Expect n’est pas prise en charge";
    HeadersTooLarge = "The request head is too large" "L’ensemble des en-têtes de la requête est trop grand";
    RateLimited = "Too many requests" "Trop de requêtes";
    Internal = "Internal error" "Erreur interne";
    DependencyUnavailable = "A dependency is unavailable" "Une dépendance est indisponible";
    UpstreamUnavailable = "The service is unavailable" "Le service est indisponible";
}

// Every request.
details! {
    invalid_query() =
        "Encode the query as UTF-8 and percent-encode it: % and two hex digits."
        "Écrivez la chaîne de requête en UTF-8, avec l’encodage-pourcent : % et deux chiffres hexadécimaux.";
    body_not_allowed() =
        "Send the request without a body, Transfer-Encoding or Content-Length."
        "Envoyez la requête sans corps, sans Transfer-Encoding et sans Content-Length.";
    ambiguous_body() =
        "Send either Content-Length or Transfer-Encoding, not both."
        "Envoyez soit Content-Length, soit Transfer-Encoding, mais pas les deux.";
    invalid_host() =
        "Send exactly one Host header, the same as the target's authority."
        "Envoyez exactement un en-tête Host, identique à l’autorité de la cible.";
    uri_too_long() =
        "The path and query may have 2048 bytes together."
        "Le chemin et la chaîne de requête peuvent avoir ensemble 2048 octets au plus.";
    expectation_failed() =
        "Send no Expect header, or 100-continue."
        "N’envoyez pas d’en-tête Expect, ou bien 100-continue.";
    headers_too_large() =
        "The head may have 64 fields and 16 KiB."
        "La requête peut avoir 64 champs d’en-tête et 16 Kio d’en-têtes au plus.";
    method_not_allowed() =
        "The interface is read-only: use GET or HEAD."
        "L’interface est en lecture seule : utilisez GET ou HEAD.";
    other_method() =
        "Use one of the methods that Allow lists."
        "Utilisez une des méthodes que donne Allow.";
    no_such_path() =
        "There is no such path."
        "Ce chemin n’existe pas.";
    internal() =
        "The failure has been recorded under the requestId; trying again is no use."
        "L’erreur a été enregistrée sous le requestId ; il est inutile de réessayer.";
    dependency_unavailable() =
        "A part of the service does not answer; try again after Retry-After."
        "Une partie du service ne répond pas ; réessayez après le délai de Retry-After.";
    upstream_unavailable() =
        "The service does not answer; try again after Retry-After."
        "Le service ne répond pas ; réessayez après le délai de Retry-After.";
    too_many_requests() =
        "Wait as long as Retry-After says."
        "Attendez le délai de Retry-After.";

    // Keys and plans.
    key_in_query() =
        "Send the key in the Authorization header, and replace this key: \
         addresses are kept in logs and histories."
        "Envoyez la clé dans l’en-tête Authorization, et remplacez cette clé : \
         les adresses restent dans des journaux et des historiques.";
    missing_credentials() =
        "Send the header `Authorization: Bearer <API_KEY>`."
        "Envoyez l’en-tête `Authorization: Bearer <API_KEY>`.";
    other_scheme(scheme: &str) =
        "The Authorization header has the scheme {scheme}, not Bearer. \
         Send the header `Authorization: Bearer <API_KEY>`."
        "L’en-tête Authorization a le schéma {scheme}, et non Bearer. \
         Envoyez l’en-tête `Authorization: Bearer <API_KEY>`.";
    no_bearer() =
        "The Authorization header does not begin with Bearer. \
         Send the header `Authorization: Bearer <API_KEY>`."
        "L’en-tête Authorization ne commence pas par Bearer. \
         Envoyez l’en-tête `Authorization: Bearer <API_KEY>`.";
    invalid_key() =
        "Check that the whole key was sent; if it was, it is unknown or revoked."
        "Vérifiez que la clé a été envoyée en entier ; si c’est le cas, elle est inconnue ou révoquée.";
    key_expired() =
        "Create a new key or extend this one."
        "Créez une nouvelle clé ou prolongez celle-ci.";
    key_suspended() =
        "Resume the key or use another one."
        "Réactivez la clé ou utilisez-en une autre.";
    key_not_yet_valid() =
        "Use the key from its notBefore time on."
        "Utilisez la clé à partir de la date de son notBefore.";
    invalid_request() =
        "Send exactly one Authorization header."
        "Envoyez exactement un en-tête Authorization.";
    invalid_identity() =
        "Call the service through the gate."
        "Appelez le service par la passerelle.";
    plan_insufficient() =
        "The account's plan has no API access; upgrade it to Enterprise."
        "Le plan du compte ne donne pas accès à l’API ; passez au plan Enterprise.";
    rate_limited() =
        "The account's limit is used up; wait as long as Retry-After says."
        "La limite du compte est épuisée ; attendez le délai de Retry-After.";
    too_many_failures() =
        "Too many requests with wrong credentials came from this address; \
         wait as long as Retry-After says."
        "Trop de requêtes avec des identifiants erronés sont venues de cette adresse ; \
         attendez le délai de Retry-After.";

    // Data.
    unknown_path() =
        "Ask for one of the paths in /api/v1/openapi.json."
        "Demandez un des chemins de /api/v1/openapi.json.";
    no_data() =
        "This dataset has not been loaded yet; try again later."
        "Ce jeu de données n’a pas encore été chargé ; réessayez plus tard.";
    no_record() =
        "There is no record of this département."
        "Il n’y a pas d’enregistrement pour ce département.";
    unknown_parameter(parameters: &str) =
        "There is no such parameter here: leave it out. Parameters: {parameters}."
        "Ce paramètre n’existe pas ici : retirez-le. Paramètres : {parameters}.";
    misspelt_parameter(meant: &str, parameters: &str) =
        "There is no such parameter here; {meant} may be meant. Parameters: {parameters}."
        "Ce paramètre n’existe pas ici ; il s’agit peut-être de {meant}. Paramètres : {parameters}.";
    no_parameters() =
        "This path has no parameters: leave it out."
        "Ce chemin n’a pas de paramètres : retirez-le.";
    given_once(parameter: &str) =
        "{parameter} may be given once."
        "{parameter} ne peut être donné qu’une fois.";
    one_of_formats(names: &str) =
        "format must be one of {names}."
        "format doit être une de ces valeurs : {names}.";
    bulk_busy() =
        "A bulk page of the account is under way, or of too many others: \
         ask for one after the other, and try again after Retry-After."
        "Une page groupée du compte est en cours, ou trop d’autres comptes en demandent : \
         demandez les pages l’une après l’autre, et réessayez après le délai de Retry-After.";
    bulk_slow() =
        "The page could not be read in time: try again after Retry-After, or with a smaller limit."
        "La page n’a pas pu être lue à temps : réessayez après le délai de Retry-After, \
         ou avec une valeur de limit plus petite.";
    cursor_expired() =
        "It is more than 90 days old, the account's rows were removed since, or the \
         database went back to an earlier state: drop what you hold, then begin a new \
         walk, without cursor and changedSince."
        "Il a plus de 90 jours, les lignes du compte ont été supprimées depuis, ou la \
         base de données est revenue à un état antérieur : abandonnez ce que vous détenez, puis \
         commencez un nouveau parcours, sans cursor ni changedSince.";
    foreign_cursor() =
        "cursor must be that of a Link header of this resource and account, unchanged."
        "cursor doit être celui d’un en-tête Link de cette ressource et de ce compte, inchangé.";
    foreign_token() =
        "changedSince must be an X-Changes-Token of this resource and account, \
         unchanged; it is no time."
        "changedSince doit être un X-Changes-Token de cette ressource et de ce compte, \
         inchangé ; ce n’est pas une date.";
    cursor_or_token() =
        "changedSince begins a walk and cursor goes on with one: send one of them."
        "changedSince commence un parcours et cursor en poursuit un : envoyez l’un des deux.";
    offset_with_json_only() =
        "offset is for JSON only; here pages follow each other by the Link header's next."
        "offset ne sert qu’avec JSON ; ici, suivez le lien next de l’en-tête Link.";
    not_with_json(parameter: &str) =
        "{parameter} needs another form than JSON: \
         send format=csv or format=ndjson, or the media type in Accept."
        "{parameter} exige une autre forme que JSON : \
         envoyez format=csv ou format=ndjson, ou le type de média dans Accept.";

    // The portal: sessions, and all requests to an account's settings.
    sign_in_required() =
        "Sign in at /auth/sign-in."
        "Connectez-vous à /auth/sign-in.";
    invalid_logout_token() =
        "Send one logout token of this client in the form field logout_token."
        "Envoyez un seul jeton de déconnexion de ce client dans le champ de formulaire logout_token.";
    cross_origin() =
        "Send the request from the portal's own pages: with \
         Sec-Fetch-Site: same-origin, or with its Origin."
        "Envoyez la requête depuis les pages du portail : avec \
         Sec-Fetch-Site: same-origin, ou avec son Origin.";
    read_only() =
        "Viewers can look at this account; ask a manager to change it."
        "Les lecteurs peuvent consulter ce compte ; demandez à un gestionnaire de le modifier.";
    key_in_request() =
        "Send no API key here, and replace this key: it has been shown to others than its API."
        "N’envoyez ici aucune clé d’API, et remplacez cette clé : elle a été montrée à d’autres qu’à son API.";
    plan_of_a_key() =
        "Name a plan that one of the account's keys has."
        "Nommez le plan d’une des clés du compte.";
    days_kept(most: u32) =
        "Give a whole number from 1 to {most}: older days are not kept."
        "Donnez un nombre entier de 1 à {most} : les jours plus anciens ne sont pas conservés.";

    // The portal: bodies.
    unsupported_media_type(expected: &str) =
        "Send the body as {expected}."
        "Envoyez le corps au format {expected}.";
    body_too_large(most: usize) =
        "The body may have {most} bytes."
        "Le corps peut avoir {most} octets au plus.";
    body_ends_early() =
        "It ends early."
        "Il s’arrête trop tôt.";
    body_is_late() =
        "It did not arrive in time."
        "Il n’est pas arrivé à temps.";
    body_is_no_object() =
        "Send one JSON object, in UTF-8."
        "Envoyez un seul objet JSON, en UTF-8.";
    unknown_member(members: &str) =
        "There is no such member; leave it out. Members: {members}."
        "Ce membre n’existe pas ; retirez-le. Membres : {members}.";
    repeated_member() =
        "Give it once."
        "Donnez-le une seule fois.";
    missing_member() =
        "It is missing: give it as a text."
        "Il manque : donnez-le sous forme de texte.";
    not_a_text() =
        "It must be a text."
        "Ce doit être un texte.";
    not_a_whole_number() =
        "It must be a whole number, 0 or more."
        "Ce doit être un nombre entier, 0 ou plus.";
    not_a_flag() =
        "It must be true or false."
        "Ce doit être true ou false.";
    title_rule() =
        "Give 1 to 100 characters, without line breaks and other control characters."
        "Donnez de 1 à 100 caractères, sans saut de ligne ni autre caractère de contrôle.";
    sha256_rule() =
        "Give the SHA-256 of the key as 64 lower-case hexadecimal digits."
        "Donnez le SHA-256 de la clé en 64 chiffres hexadécimaux minuscules.";
    key_id_rule() =
        "Give 12 letters or digits."
        "Donnez 12 lettres ou chiffres.";
    overlap_rule() =
        "Give 0 to 604800 seconds, which is 7 days."
        "Donnez de 0 à 604800 secondes, soit 7 jours au plus.";
    expiry_within(days: u32) =
        "Give a time within the next {days} days."
        "Donnez une date dans les {days} jours à venir.";
    expiry_to_come() =
        "Give a time to come."
        "Donnez une date à venir.";

    // The portal: keys.
    key_id_of_the_portal() =
        "The portal itself has this key id: make another key."
        "Le portail lui-même a cet identifiant de clé : fabriquez une autre clé.";
    key_id_taken() =
        "Another key of the account has it: make another key."
        "Une autre clé du compte l’a déjà : fabriquez une autre clé.";
    key_name_taken() =
        "The key's name is taken, or a key of that name is still being revoked: make another key."
        "Le nom de la clé est pris, ou une clé de ce nom est encore en cours de révocation : fabriquez une autre clé.";
    too_many_keys(most: usize) =
        "An account may have {most} keys: revoke one that is not used."
        "Un compte peut avoir {most} clés au plus : révoquez-en une qui ne sert pas.";
    key_made_in_cluster() =
        "The key was made in the cluster: change its manifest there."
        "La clé a été créée dans le cluster : modifiez-y son manifeste.";
    key_being_revoked() =
        "The key is being revoked: make another one."
        "La clé est en cours de révocation : créez-en une autre.";
    key_replaced() =
        "Another key has this name by now: look at it again."
        "Une autre clé porte désormais ce nom : consultez-la de nouveau.";
    changed_meanwhile() =
        "Somebody else changed the key meanwhile: look at it again."
        "Quelqu’un d’autre a modifié la clé entre-temps : consultez-la de nouveau.";
    overlap_running() =
        "A text of the key before this one still works: wait until it retires, end it, \
         or send endPrevious."
        "Un texte antérieur de la clé est encore valable : attendez qu’il expire, mettez-y fin, \
         ou envoyez endPrevious.";
    platform_is_full() =
        "The platform has no room for another key: revoke one that is not used, or ask the platform's administrator."
        "La plateforme n’a plus de place pour une clé : révoquez-en une qui ne sert pas, ou adressez-vous à \
         l’administrateur de la plateforme.";
    platform_refuses() =
        "A rule of the platform refuses this: give its administrator the requestId, under which the rule is recorded."
        "Une règle de la plateforme s’y oppose : donnez à son administrateur le requestId, sous lequel la règle \
         est enregistrée.";
    platform_ends() =
        "This installation is being removed from the platform and takes no keys: ask the platform's administrator."
        "Cette installation est en cours de suppression et n’accepte plus de clés : adressez-vous à \
         l’administrateur de la plateforme.";
}

// Below, the English text is the domain's own, which reports of loads have too.

/// Says which rule the parameter of a page breaks.
pub fn page_rule(error: PageError) -> Text {
    let french = match error {
        PageError::Limit => {
            "limit doit être un nombre entier à partir de 1, écrit en chiffres ; \
             au-delà de 100, la valeur est ramenée à 100"
        }
        PageError::BulkLimit => {
            "limit doit être un nombre entier à partir de 1, écrit en chiffres ; \
             au-delà de 5000, la valeur est ramenée à 5000"
        }
        PageError::Offset => {
            "offset doit être un nombre entier de 0 à 9007199254740991, écrit en chiffres"
        }
    };
    Text::made(error.to_string(), french)
}

/// Says why a text names no département.
pub fn no_departement(error: &DepartementError) -> Text {
    let french = match error {
        DepartementError::Malformed => {
            "un code de département se compose de deux chiffres, ou de trois qui commencent par 97 ou 98 ; \
             la Corse a 2A et 2B"
                .to_owned()
        }
        DepartementError::Unknown { hint: None } => "ce département n’existe pas".to_owned(),
        DepartementError::Unknown { hint: Some(hint) } => {
            let hint = match hint {
                Hint::Corsica => {
                    "la Corse est 2A (Corse-du-Sud) et 2B (Haute-Corse) depuis 1976".to_owned()
                }
                Hint::Collectivite { code, name } => {
                    format!("{code} ({name}) n’est pas un département")
                }
                Hint::Overseas => {
                    "les départements d’outre-mer sont 971 à 974 et 976 ; \
                     les collectivités n’ont pas d’enregistrement"
                        .to_owned()
                }
            };
            format!("ce département n’existe pas : {hint}")
        }
    };
    Text::made(error.to_string(), french)
}

/// Says how a time is written.
pub fn time_rule(error: InvalidTimestamp) -> Text {
    let french = "une date suit la RFC 3339 avec un décalage, comme 2026-07-01T00:00:00Z, dans \
                  les années 0000 à 9999 en UTC.";
    Text::made(format!("{error}."), french)
}
