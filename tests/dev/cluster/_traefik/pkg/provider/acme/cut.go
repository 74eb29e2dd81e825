// Package acme obtains no certificates: its library links the clients of a
// hundred DNS providers.
package acme

import (
	"net/http"

	ptypes "github.com/traefik/paerser/types"
	"github.com/traefik/traefik/v3/pkg/config/dynamic"
	"github.com/traefik/traefik/v3/pkg/provider/cut"
	"github.com/traefik/traefik/v3/pkg/safe"
	"github.com/traefik/traefik/v3/pkg/tls"
)

type Configuration struct {
	CAServer, Storage string
	DNSChallenge      *DNSChallenge
	HTTPChallenge     *HTTPChallenge
	TLSChallenge      *struct{}
}

type HTTPChallenge struct{ EntryPoint string }

type DNSChallenge struct {
	Provider                string
	Propagation             *Propagation
	DelayBeforeCheck        ptypes.Duration
	DisablePropagationCheck bool
}

type Propagation struct {
	DisableChecks     bool
	DelayBeforeChecks ptypes.Duration
}

type Provider struct {
	cut.Provider
	*Configuration
	Store                                       *LocalStore
	ResolverName                                string
	HTTPChallengeProvider, TLSChallengeProvider any
}

func (*Provider) SetTLSManager(*tls.Manager) {}

func (*Provider) SetConfigListenerChan(chan dynamic.Configuration) {}

func (*Provider) ListenConfiguration(dynamic.Configuration) {}

type LocalStore struct{}

func NewLocalStore(string, *safe.Pool) *LocalStore { return nil }

// challenge is a provider that every Traefik starts, and that has nothing to provide.
type challenge struct{ http.Handler }

func NewChallengeHTTP() *challenge { return &challenge{} }

func NewChallengeTLSALPN() *challenge { return &challenge{} }

func (*challenge) Present(_, _, _ string) error { return cut.ErrCut }

func (*challenge) CleanUp(_, _, _ string) error { return nil }

func (*challenge) Init() error { return nil }

func (*challenge) Provide(chan<- dynamic.Message, *safe.Pool) error { return nil }

func (*challenge) ListenConfiguration(dynamic.Configuration) {}
