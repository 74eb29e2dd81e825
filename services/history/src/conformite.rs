//! `GET /api/v1/conformite`: the account's compliance audits ([`ComplianceAudit`]).

use warp::{Filter, Rejection, Reply};
use water_database::{Database, history};
use water_domain::ComplianceAudit;
use water_http::{Identity, Problem, Query, Representation};

use crate::envelope::{self, Row};
use crate::json::Object;

const PATH: &str = "/api/v1/conformite";

/// `GET /api/v1/conformite?limit=&offset=` answers `{total, limit, offset, data}` with a page of the
/// calling account's compliance audits, newest first.
pub fn route(
    database: Database,
) -> impl Filter<Extract = (impl Reply,), Error = Rejection, Future: Send> + Clone + Send + Sync {
    water_http::get(PATH)
        .and(water_http::identity())
        .and(water_http::query())
        .and(warp::any().map(move || database.clone()))
        .then(list)
}

async fn list(
    identity: Identity,
    query: Query<'static>,
    database: Database,
) -> Result<Representation, Problem> {
    let page = query.page()?;
    let slice = history::audits(&database, &identity.account, page).await?;
    Ok(envelope::answer(PATH, page, &slice))
}

impl Row for ComplianceAudit {
    /// Field order as in specification §2.4.
    fn write(&self, json: &mut Vec<u8>) {
        Object::begin(json)
            .text("id", &self.id)
            .text("companyName", &self.company_name)
            .text("sectorCode", &self.sector_code)
            .text("deptCode", &self.dept_code)
            .number("score", self.score)
            .text("globalRating", &self.global_rating)
            .time("createdAt", self.created_at)
            .end();
    }
}

#[cfg(test)]
mod tests {
    use water_domain::{Number, Timestamp};

    use super::*;

    #[test]
    fn a_row_is_written_as_it_is_serialised() {
        let audit = ComplianceAudit {
            id: "c\"1".to_owned(),
            company_name: "Été \\ \u{1} 水".to_owned(),
            sector_code: "36.00Z".to_owned(),
            dept_code: "2A".to_owned(),
            score: Number::try_from(70.0).unwrap(),
            global_rating: "B+".to_owned(),
            created_at: Timestamp::from_millis(1).unwrap(),
        };
        let mut json = Vec::new();
        Row::write(&audit, &mut json);
        assert_eq!(
            String::from_utf8(json).unwrap(),
            serde_json::to_string(&audit).unwrap()
        );
    }
}
