package stack

import (
	"fmt"

	"switchyard/activities/gatewayclient"
	nodesecrets "switchyard/activities/secrets"
	"switchyard/activities/secrets/released"
	"switchyard/gateway/nodeaccess"
	"switchyard/gateway/runview"
	"switchyard/gateway/secrets"
)

// openSecrets returns the secret store for the nodes of a stack: a worker requests secrets from its gateway, and a
// stack with a control process releases them itself. It returns nil for nodes without a gateway.
func (s *Stack) openSecrets(cfg Config) (nodesecrets.Store, error) {
	if cfg.NodeGateway == "" && !cfg.Control {
		return nil, nil
	}
	if cfg.Control {
		return released.Store{Release: secrets.Releaser{
			Service: secrets.Service{Vault: s.vault}, Attempts: nodeaccess.Attempts{Client: s.conn},
			Reader: runview.NewReader(s.conn, s.conn.Namespace, s.store, cfg.Logger), Locked: cfg.Auth.Tokens,
		}.Release}, nil
	}
	conn, err := gatewayclient.New(cfg.NodeGateway, gatewayclient.Options{Token: cfg.Token, TLS: cfg.NodeTLS})
	if err != nil {
		return nil, fmt.Errorf("gateway %s: %w", cfg.NodeGateway, err)
	}
	s.addCloser("connection to the gateway", func() error { conn.Close(); return nil })
	return released.From(conn), nil
}
