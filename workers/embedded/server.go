package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"go.temporal.io/server/temporal"
)

// startAttempts is how often the start of the services is tried if another process takes one of their ports between the
// choice and the listen call.
const startAttempts = 4

// Server is a running Temporal server. Its methods are safe for concurrent use.
type Server struct {
	namespace string
	address   string
	logger    serverLogger
	// stopping ends the calls that the frontend is serving.
	stopping context.Context
	endCalls context.CancelFunc
	services temporal.Server
	database *database
	ui       *webUI // nil without a Web UI
	stopOnce sync.Once
	stopErr  error
}

// Start returns once the namespace answers calls, or with an error and nothing left running. A taken port results in a
// *PortTakenError. The context bounds only the start.
func Start(ctx context.Context, opts Options) (*Server, error) {
	return start(ctx, opts, tuned())
}

func start(ctx context.Context, opts Options, set settings) (_ *Server, err error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("start Temporal: %w", err)
	}
	defer func() {
		if _, taken := errors.AsType[*PortTakenError](err); err != nil && !taken {
			err = fmt.Errorf("start Temporal: %w", err)
		}
	}()
	s := &Server{namespace: opts.Namespace, logger: newServerLogger(opts.Logger, opts.DBFile)}
	s.stopping, s.endCalls = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()

	var uiListener net.Listener
	if opts.UIAddress != "" {
		if uiListener, err = listenUI(opts); err != nil {
			return nil, err
		}
		defer func() {
			if uiListener != nil {
				err = errors.Join(err, uiListener.Close())
			}
		}()
	}
	if s.database, err = openDatabase(ctx, opts); err != nil {
		return nil, err
	}
	if err = s.database.createNamespace(opts); err != nil {
		return nil, err
	}
	if err = s.startServices(ctx, opts, set); err != nil {
		return nil, err
	}
	if err = s.awaitReady(ctx, opts); err != nil {
		return nil, err
	}
	if uiListener != nil {
		listener := uiListener
		uiListener = nil
		if s.ui, err = startWebUI(listener, s.address, opts); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// startServices starts the four services. It retries with other free ports if one was lost.
func (s *Server) startServices(ctx context.Context, opts Options, set settings) error {
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := holdPorts(opts.Address)
		if err != nil {
			return err
		}
		s.address = dialable(p.frontend)
		s.services, err = s.newServices(set, p)
		if err == nil {
			return s.services.Start()
		}
		fatal, ok := errors.AsType[*fatalError](err)
		if !ok || !fatal.lostPort() || attempt == startAttempts {
			return err
		}
	}
}

// newServices builds the server, which opens the listeners.
func (s *Server) newServices(set settings, p *ports) (services temporal.Server, err error) {
	options := serverOptions(s.stopping, set, p, s.database.store, s.logger)
	err = s.logger.guard(func() (err error) {
		if err := p.release(); err != nil {
			return err
		}
		services, err = temporal.NewServer(options...)
		return err
	})
	if err != nil {
		return nil, err // return a nil interface, not one that holds a nil server
	}
	return services, nil
}

// awaitReady waits for the namespace and updates one from an earlier start.
func (s *Server) awaitReady(ctx context.Context, opts Options) (err error) {
	conn, err := dial(s.address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := awaitNamespace(ctx, conn, opts.Namespace); err != nil {
		return err
	}
	if s.database.created {
		return nil
	}
	return reconcileNamespace(ctx, conn, opts)
}

// Address returns the host:port that clients dial.
func (s *Server) Address() string { return s.address }

// Fault returns why the server cannot work at the moment, or nil if no cause is known.
func (s *Server) Fault() error { return s.logger.faults.current() }

// UIURL returns the URL of the Web UI, or "" without one.
func (s *Server) UIURL() string {
	if s.ui == nil {
		return ""
	}
	return s.ui.url()
}

// Namespace returns the namespace of the server.
func (s *Server) Namespace() string { return s.namespace }

// Stop stops the Web UI and the services, closes the store, and waits for all of them. Clients and workers should stop
// before. A second call waits for the first and returns the same result.
func (s *Server) Stop() error {
	s.stopOnce.Do(func() {
		s.logger.stopping.Store(true)
		s.endCalls()
		var errs []error
		if s.ui != nil {
			errs = append(errs, s.ui.stop())
		}
		if s.services != nil {
			errs = append(errs, s.services.Stop())
		}
		if s.database != nil {
			errs = append(errs, s.database.close())
		}
		if err := errors.Join(errs...); err != nil {
			s.stopErr = fmt.Errorf("stop Temporal: %w", err)
		}
	})
	return s.stopErr
}
