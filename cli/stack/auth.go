package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"switchyard/gateway"
	"switchyard/gateway/auth"
	"switchyard/gateway/oidc"
	"switchyard/gateway/tokens"
	"switchyard/workers"
)

// AuthConfig sets how callers of the gateway log in. The zero value requires no login.
type AuthConfig struct {
	// Tokens makes callers log in with tokens.
	Tokens bool
	// OIDC is the issuer whose tokens are also accepted, or nil.
	OIDC *oidc.Config
	// AdminTokenFile is the file that receives the first admin token.
	AdminTokenFile string
	// ApproveUserRuns makes runs that users submit wait for an operator's approval.
	ApproveUserRuns bool
	// FourEyes refuses decisions about tasks by who submitted their run.
	FourEyes bool
}

// AdminTokenFile returns the file in which this stack stored the first admin token, or "" if it created none.
func (s *Stack) AdminTokenFile() string { return s.adminTokenFile }

// startAuth makes a gateway require tokens, if cfg asks for them, and creates the first one.
func (s *Stack) startAuth(ctx context.Context, cfg Config, into *gateway.Config) error {
	if !cfg.Auth.Tokens {
		return nil
	}
	registry := tokens.NewRegistry(s.store, time.Now)
	if cfg.Role != workers.RoleObserver {
		if err := s.createAdminToken(ctx, registry, cfg.Auth.AdminTokenFile); err != nil {
			return fmt.Errorf("create the first admin token: %w", err)
		}
	}
	authenticator := tokens.NewAuthenticator(registry, cfg.Logger)
	s.addCloser("authentication", func() error { authenticator.Close(); return nil })
	var chosen auth.Authenticator = authenticator
	if cfg.Auth.OIDC != nil {
		issuer := *cfg.Auth.OIDC
		issuer.Logger = cfg.Logger
		issued, err := oidc.New(issuer)
		if err != nil {
			return err
		}
		chosen = auth.ByPrefix{Prefix: tokens.Prefix, With: authenticator, Without: issued}
	}
	into.Tokens, into.Authenticator, into.ApproveUserRuns, into.FourEyes = registry, chosen, cfg.Auth.ApproveUserRuns, cfg.Auth.FourEyes
	return nil
}

// createAdminToken creates the first admin token, unless one exists, and stores it in a file. It writes the file before
// the token becomes valid, so that a crash cannot lose the token.
func (s *Stack) createAdminToken(ctx context.Context, registry *tokens.Registry, path string) error {
	exists, err := registry.HasFirst(ctx)
	if err != nil || exists {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists although this store has no token yet: move it away if it belongs to another deployment, or name another file with --admin-token-file", path)
	}
	if err != nil {
		return err
	}
	secret, err := registry.CreateFirst(ctx)
	if err == nil && secret != "" {
		_, err = fmt.Fprintln(file, secret)
	}
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil || secret == "" {
		return errors.Join(err, os.Remove(path)) // or another gateway has created it, in a file of its own
	}
	s.adminTokenFile = path
	return nil
}
