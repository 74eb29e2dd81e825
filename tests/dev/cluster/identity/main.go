// Command identity is the development cluster's identity provider: dex's server
// with everything in memory, its clients and people from a file.
//
// Its first argument names that file, JSON as in the type settings.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	gosundheit "github.com/AppsFlyer/go-sundheit"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/bcrypt"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/server/connectors"
	"github.com/dexidp/dex/server/session"
	"github.com/dexidp/dex/server/signer"
	"github.com/dexidp/dex/server/tokens"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
)

const (
	// How long a person stays signed in at the provider.
	signedInFor = 8 * time.Hour
	// A token is looked at once, right after sign-in.
	tokensValidFor = 10 * time.Minute
)

type settings struct {
	// Issuer is the provider's https URL.
	Issuer string `json:"issuer"`
	// Listen is the address and port that it listens at.
	Listen string `json:"listen"`
	// Certificate, Key and Authority are files: what it shows, and whom it trusts.
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	Authority   string `json:"authority"`
	// Hosts are addresses of names that no name server knows: the clients'.
	Hosts   map[string]string `json:"hosts"`
	Clients []storage.Client  `json:"clients"`
	People  []person          `json:"people"`
}

type person struct {
	Email    string   `json:"email"`
	Name     string   `json:"name"`
	Password string   `json:"password"`
	Groups   []string `json:"groups"`
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: identity <file of settings>")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var settings settings
	if err := json.Unmarshal(text, &settings); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	provider, err := newProvider(settings)
	if err != nil {
		return err
	}
	return http.ListenAndServeTLS(settings.Listen, settings.Certificate, settings.Key, provider)
}

func newProvider(settings settings) (http.Handler, error) {
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	store, err := newStorage(settings, logger)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	keys := signer.LocalConfig{KeysRotationPeriod: "6h"}
	signer, err := keys.Open(ctx, store, tokensValidFor, time.Now, logger)
	if err != nil {
		return nil, err
	}
	refresh, err := tokens.NewRefreshTokenPolicy(logger, false, "", "", "")
	if err != nil {
		return nil, err
	}
	provider, err := server.NewServer(ctx, server.Config{
		Issuer:             settings.Issuer,
		Storage:            store,
		Signer:             signer,
		Logger:             logger,
		Now:                time.Now,
		IDTokensValidFor:   tokensValidFor,
		SkipApprovalScreen: true,
		RefreshTokenPolicy: refresh,
		PrometheusRegistry: prometheus.NewRegistry(),
		HealthChecker:      gosundheit.New(),
		SessionConfig: &session.Config{
			CookieName:        "identity",
			AbsoluteLifetime:  signedInFor,
			ValidIfNotUsedFor: signedInFor,
		},
	})
	if err != nil {
		return nil, err
	}
	provider.Backchannel().HTTPClient, err = clientOf(settings)
	return provider, err
}

func newStorage(settings settings, logger *slog.Logger) (storage.Storage, error) {
	var passwords []storage.Password
	for _, person := range settings.People {
		hash, err := bcrypt.GenerateFromPassword([]byte(person.Password), bcrypt.DefaultCost)
		if err != nil {
			return nil, fmt.Errorf("the password of %s: %w", person.Email, err)
		}
		passwords = append(passwords, storage.Password{
			Email:    person.Email,
			Username: person.Name,
			Name:     person.Name,
			UserID:   person.Email,
			Hash:     hash,
			Groups:   person.Groups,
		})
	}
	local := storage.Connector{ID: connectors.LocalConnector, Name: "Email", Type: connectors.LocalConnector}
	store := storage.WithStaticClients(memory.New(logger), settings.Clients)
	store = storage.WithStaticPasswords(store, passwords, logger)
	return storage.WithStaticConnectors(store, []storage.Connector{local}), nil
}

// clientOf makes the client that tells the others of a sign-out: it trusts the
// cluster's authority and finds their hosts without a name server.
func clientOf(settings settings) (*http.Client, error) {
	pem, err := os.ReadFile(settings.Authority)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", settings.Authority)
	}
	dialer := &net.Dialer{}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if known, ok := settings.Hosts[host]; ok {
			address = net.JoinHostPort(known, port)
		}
		return dialer.DialContext(ctx, network, address)
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:     dial,
			TLSClientConfig: &tls.Config{RootCAs: trusted},
		},
		// A logout token is for the registered address only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
