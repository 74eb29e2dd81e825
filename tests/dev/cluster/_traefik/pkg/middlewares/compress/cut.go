package compress

import (
	"context"
	"net/http"

	"github.com/traefik/traefik/v3/pkg/config/dynamic"
	"github.com/traefik/traefik/v3/pkg/provider/cut"
)

func New(context.Context, http.Handler, dynamic.Compress, string) (http.Handler, error) {
	return nil, cut.ErrCut
}
