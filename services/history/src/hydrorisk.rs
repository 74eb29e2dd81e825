//! `GET /api/v1/hydrorisk`: the account's risk analyses ([`RiskAnalysis`]).

use water_database::history::{Slice, analyses};
use water_database::walk;
use water_database::writer::History;
use water_database::{Database, Error};
use water_domain::{AccountId, Page, RiskAnalysis};
use water_http::{Route, route};

use crate::record::Record;

impl Record for RiskAnalysis {
    const ROUTE: &'static Route = &route::HYDRORISK;
    const HISTORY: History = History::Analyses;
    const FIELDS: [&'static str; 7] = [
        "id",
        "companyName",
        "sectorCode",
        "deptCode",
        "globalScore",
        "rating",
        "createdAt",
    ];

    async fn page(
        database: &Database,
        account: &AccountId,
        page: Page,
    ) -> Result<Slice<Self>, Error> {
        analyses(database, account, page).await
    }

    fn met(row: walk::Record<'_>) -> Self {
        Self {
            id: row.id.to_owned(),
            company_name: row.company_name.to_owned(),
            sector_code: row.sector_code.to_owned(),
            dept_code: row.dept_code.to_owned(),
            global_score: row.score,
            rating: row.rating.to_owned(),
            created_at: row.created_at,
        }
    }
}
