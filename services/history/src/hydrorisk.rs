//! `GET /api/v1/hydrorisk`: the account's risk analyses ([`RiskAnalysis`]).

use water_database::history::{Slice, analyses};
use water_database::{Database, Error};
use water_domain::{AccountId, Page, RiskAnalysis};

use crate::page::Record;

impl Record for RiskAnalysis {
    const PATH: &'static str = "/api/v1/hydrorisk";

    async fn page(
        database: &Database,
        account: &AccountId,
        page: Page,
    ) -> Result<Slice<Self>, Error> {
        analyses(database, account, page).await
    }
}
