package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"switchyard/activities/filelock"
	"switchyard/activities/gatewayclient"
	"switchyard/activities/store"
	_ "switchyard/activities/store/clouds" // s3:// and gs://
	"switchyard/cli/exit"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// CheckControlStore returns an error if the store of a control process is a gateway.
func CheckControlStore(location string) error {
	if store.IsGateway(location) {
		return exit.Usagef("--store %s: the store of a gateway must be a folder or a bucket, not another gateway", location)
	}
	return nil
}

// openStore opens the store of a stack.
func (s *Stack) openStore(ctx context.Context, cfg Config) (*store.Store, error) {
	if cfg.Control {
		if err := CheckControlStore(cfg.Store); err != nil {
			return nil, err
		}
	}
	kept, err := store.OpenWith(ctx, cfg.Store, store.Options{Gateways: s.gateways})
	if err != nil {
		return nil, err
	}
	kept.LimitLogs(cfg.LogQuota)
	kept.LimitArtifacts(cfg.ArtifactQuota)
	return kept, nil
}

// levelTimeout bounds the read of a store's data level at the start of a stack.
const levelTimeout = 3 * time.Second

// checkLevel returns an error if this program would misread values of the store. A store that is away is checked when it is first
// used.
func checkLevel(ctx context.Context, s *store.Store) error {
	ctx, cancel := context.WithTimeout(ctx, levelTimeout)
	defer cancel()
	err := s.CheckLevel(ctx)
	if _, isNewer := errors.AsType[*historyv1.NewerDataError](err); isNewer {
		return err
	}
	return nil
}

// openGateways prepares the connection that the nodes share for their store, secrets and sessions.
func (s *Stack) openGateways(cfg Config) {
	if len(cfg.NodeGateways) == 0 {
		return
	}
	s.gateways = gatewayclient.New(cfg.NodeGateways, gatewayclient.Options{Token: cfg.Token, TLS: cfg.NodeTLS, Identify: store.GatewayIdentity})
	s.addCloser("connection to the gateways", func() error { s.gateways.Close(); return nil })
}

// openNodeStore returns the store for the nodes of a stack, with a spool that all of them share.
func openNodeStore(ctx context.Context, s *store.Store, cfg Config) (*store.Store, error) {
	spooling, err := s.WithSpool(ctx, store.SpoolOptions{Dir: cfg.SpoolDir, HasSuccessor: cfg.KeepsOnStop(), Logger: cfg.Logger})
	if held, ok := errors.AsType[*filelock.HeldError](err); ok {
		return nil, fmt.Errorf("the spool %s is in use: another worker of this name runs on this machine (process %d); choose another --name, or stop that one", cfg.SpoolDir, held.PID)
	}
	return spooling, err
}
