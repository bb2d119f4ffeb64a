package stack

import (
	nodesecrets "switchyard/activities/secrets"
	"switchyard/activities/secrets/released"
	"switchyard/gateway/nodeaccess"
	"switchyard/gateway/runview"
	"switchyard/gateway/secrets"
)

// openSecrets returns the secret store for the nodes of a stack: a worker requests secrets from its gateway, and a
// stack with a control process releases them itself. It returns nil for nodes without a gateway.
func (s *Stack) openSecrets(cfg Config) nodesecrets.Store {
	switch {
	case cfg.Control:
		return released.Store{Release: secrets.Releaser{
			Service: secrets.Service{Vault: s.vault}, Attempts: nodeaccess.Attempts{Client: s.conn},
			Reader: runview.NewReader(s.conn, s.conn.Namespace, s.store, cfg.Logger), Locked: cfg.Auth.Tokens,
		}.Release}
	case s.gateways != nil:
		return released.From(s.gateways)
	}
	return nil
}
