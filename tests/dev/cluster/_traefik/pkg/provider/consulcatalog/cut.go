package consulcatalog

import "github.com/traefik/traefik/v3/pkg/provider/cut"

type ProviderBuilder = cut.ProviderBuilder
