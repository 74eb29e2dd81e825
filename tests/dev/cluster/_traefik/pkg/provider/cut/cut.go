// Package cut stands for the providers and middlewares that Traefik is built
// without. Each fails when a configuration asks for it.
package cut

import (
	"errors"

	ptypes "github.com/traefik/paerser/types"
	"github.com/traefik/traefik/v3/pkg/config/dynamic"
	"github.com/traefik/traefik/v3/pkg/safe"
)

var ErrCut = errors.New("the development cluster's Traefik is built without this")

// Provider has the fields that Traefik's static configuration sets.
type Provider struct {
	HTTPClientTimeout ptypes.Duration
	RefreshSeconds    ptypes.Duration
	EntryPoints       map[string]EntryPoint `json:"-" toml:"-" yaml:"-" label:"-" file:"-"`
}

type EntryPoint struct {
	Address        string
	HasHTTPTLSConf bool
}

func (*Provider) Init() error { return ErrCut }

func (*Provider) Provide(chan<- dynamic.Message, *safe.Pool) error { return ErrCut }

func (*Provider) FillExtensionBuilderRegistry(*Provider) {}

// ProviderBuilder builds one provider for each of its namespaces.
type ProviderBuilder struct{}

func (*ProviderBuilder) BuildProviders() []*Provider { return []*Provider{{}} }
