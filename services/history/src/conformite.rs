//! `GET /api/v1/conformite`: the account's compliance audits ([`ComplianceAudit`]).

use water_database::history::{Slice, audits};
use water_database::{Database, Error};
use water_domain::{AccountId, ComplianceAudit, Page};

use crate::page::Record;

impl Record for ComplianceAudit {
    const PATH: &'static str = "/api/v1/conformite";

    async fn page(
        database: &Database,
        account: &AccountId,
        page: Page,
    ) -> Result<Slice<Self>, Error> {
        audits(database, account, page).await
    }
}
