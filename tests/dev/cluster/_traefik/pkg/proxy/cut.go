// Package proxy has no experimental one. With it switched on, the usual one asks a service for a coding only if the
// client does: Go's client would ask for gzip by itself and decode the answer, which then has neither its length nor the
// entity tag of its bytes.
package proxy

import (
	"net/http"
	"net/url"
	"time"

	"github.com/traefik/traefik/v3/pkg/config/static"
	"github.com/traefik/traefik/v3/pkg/server/service"
)

type builder struct{ service.ProxyBuilder }

func NewSmartBuilder(_ any, usual service.ProxyBuilder, _ static.FastProxyConfig) service.ProxyBuilder {
	return builder{usual}
}

func (b builder) Build(name string, target *url.URL, passHost, preservePath bool, flush time.Duration) (http.Handler, error) {
	proxy, err := b.ProxyBuilder.Build(name, target, passHost, preservePath, flush)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Accept-Encoding") == "" {
			request.Header.Set("Accept-Encoding", "identity")
		}
		proxy.ServeHTTP(answer, request)
	}), nil
}
