//! `GET /api/v1/conformite`: the account's compliance audits ([`ComplianceAudit`]).

use water_database::history::{Slice, audits};
use water_database::walk;
use water_database::writer::History;
use water_database::{Database, Error};
use water_domain::{AccountId, ComplianceAudit, Page};
use water_http::{Route, route};

use crate::record::Record;

impl Record for ComplianceAudit {
    const ROUTE: &'static Route = &route::CONFORMITE;
    const HISTORY: History = History::Audits;
    const FIELDS: [&'static str; 7] = [
        "id",
        "companyName",
        "sectorCode",
        "deptCode",
        "score",
        "globalRating",
        "createdAt",
    ];

    async fn page(
        database: &Database,
        account: &AccountId,
        page: Page,
    ) -> Result<Slice<Self>, Error> {
        audits(database, account, page).await
    }

    fn met(row: walk::Record<'_>) -> Self {
        Self {
            id: row.id.to_owned(),
            company_name: row.company_name.to_owned(),
            sector_code: row.sector_code.to_owned(),
            dept_code: row.dept_code.to_owned(),
            score: row.score,
            global_rating: row.rating.to_owned(),
            created_at: row.created_at,
        }
    }
}
