package main

import (
	"github.com/traefik/traefik/v3/pkg/config/static"
	"github.com/traefik/traefik/v3/pkg/plugins"
)

func createPluginBuilder(*static.Configuration) (*plugins.Builder, error) { return nil, nil }
