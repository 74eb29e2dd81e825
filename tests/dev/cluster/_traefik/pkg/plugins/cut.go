// Package plugins knows none: their interpreters are larger than Traefik's core.
package plugins

import (
	"context"
	"net/http"

	"github.com/traefik/traefik/v3/pkg/provider"
	"github.com/traefik/traefik/v3/pkg/provider/cut"
)

type (
	Constructor     func(context.Context, http.Handler) (http.Handler, error)
	Descriptor      struct{}
	LocalDescriptor struct{}
	Builder         struct{}
)

func (*Builder) Build(string, map[string]any, string) (Constructor, error) { return nil, cut.ErrCut }

func (*Builder) BuildProvider(string, map[string]any) (provider.Provider, error) {
	return nil, cut.ErrCut
}
