package server

import "github.com/dexidp/dex/server/connectors"

// ConnectorsConfig knows no upstream provider: people here have passwords, and
// the upstreams' clients would be a third of all packages.
var ConnectorsConfig map[string]func() connectors.ConnectorConfig
