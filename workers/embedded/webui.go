package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	gommon "github.com/labstack/gommon/log"
	"github.com/temporalio/ui-server/v2/server/api"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/csrf"
	"github.com/temporalio/ui-server/v2/server/headers"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"switchyard/activities/httpguard"
)

const (
	uiHeaderTimeout = 10 * time.Second
	uiStopTimeout   = 2 * time.Second
)

// webUI serves Temporal's Web UI. It runs the UI server's handlers on its own listener and connection, because the UI
// server's Start exits the process if the port is taken, and its Stop leaks the connection.
type webUI struct {
	listener net.Listener
	conn     *grpc.ClientConn
	http     *http.Server
	served   chan error
}

// listenUI opens the listener of the Web UI.
func listenUI(opts Options) (net.Listener, error) {
	listener, err := listen(opts.UIAddress, "--ui-port")
	if _, taken := errors.AsType[*PortTakenError](err); !taken || !opts.UIFallback {
		return listener, err
	}
	// The address has already been parsed.
	host, _, _ := net.SplitHostPort(opts.UIAddress)
	return listen(net.JoinHostPort(host, "0"), "--ui-port")
}

// startWebUI serves the UI on the listener, which it then owns, for the frontend at the given address.
func startWebUI(listener net.Listener, frontend string, opts Options) (*webUI, error) {
	conn, err := dial(frontend)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("web ui: %w", err), listener.Close())
	}
	handler, err := uiHandler(conn, frontend, opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("web ui: %w", err), conn.Close(), listener.Close())
	}
	u := &webUI{
		listener: listener,
		conn:     conn,
		http: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: uiHeaderTimeout,
			ErrorLog:          slog.NewLogLogger(opts.Logger.With("component", "web ui").Handler(), slog.LevelDebug),
		},
		served: make(chan error, 1),
	}
	go func() { u.served <- u.http.Serve(listener) }()
	return u, nil
}

// uiHandler returns the UI's handler. It has no log-in routes: the UI of an embedded server is as open as the server
// itself. Since its API can start workflows that workers run, the handler accepts only requests, including reads, that
// address it by one of its own names.
func uiHandler(conn *grpc.ClientConn, frontend string, opts Options) (http.Handler, error) {
	provider, err := config.NewConfigProviderWithRefresh(&config.Config{
		TemporalGRPCAddress: frontend,
		EnableUI:            true,
		DefaultNamespace:    opts.Namespace,
		// The browser must not contact any other server.
		DisableNewsFetch: true,
		// The page is served over plain HTTP.
		CORS:     config.CORS{CookieInsecure: true},
		HideLogs: true,
	})
	if err != nil {
		return nil, err
	}
	assets, err := ui.Assets()
	if err != nil {
		return nil, err
	}
	assets, err = fs.Sub(assets, "local")
	if err != nil {
		return nil, err
	}

	e := echo.New()
	e.Logger.SetLevel(gommon.OFF)
	e.Use(
		middleware.RecoverWithConfig(middleware.RecoverConfig{LogErrorFunc: func(_ echo.Context, err error, stack []byte) error {
			opts.Logger.Error("web ui: panic", "error", err, "stack", string(stack))
			return err
		}}),
		middleware.Gzip(),
		middleware.Secure(),
		// The order matters: the first creates the token that the second requires.
		csrf.EnsureTokenCookie(false),
		middleware.CSRFWithConfig(csrf.MiddlewareConfig(provider, false)),
	)
	route.SetHealthRoute(e)
	apiRoutes := e.Group("/api/v1")
	apiRoutes.GET("/settings", api.GetSettings(provider))
	apiRoutes.GET(api.WorkflowRawHistoryUrl, api.WorkflowRawHistoryHandler(workflowservice.NewWorkflowServiceClient(conn)))
	forwarded := []api.Middleware{headers.WithForwardHeaders([]string{"Caller-Type"})}
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	apiRoutes.Match(methods, "/*", api.TemporalAPIHandler(provider, forwarded, conn))
	if err := route.SetUIRoutes(e, "", assets); err != nil {
		return nil, err
	}
	route.SetRenderRoute(e, "")
	return httpguard.Guard{Hosts: opts.UIHosts, Everywhere: true}.Protect(e), nil
}

func (u *webUI) url() string {
	return "http://" + dialable(u.listener.Addr().(*net.TCPAddr))
}

// stop gives running requests a moment to finish.
func (u *webUI) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), uiStopTimeout)
	defer cancel()
	err := u.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = u.http.Close()
	}
	if served := <-u.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return errors.Join(err, u.conn.Close())
}
