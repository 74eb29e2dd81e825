package knative

import "github.com/traefik/traefik/v3/pkg/provider/cut"

type Provider = cut.Provider
