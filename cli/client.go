package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/definition"
)

// defaultGateway is where client commands look for a gateway.
const defaultGateway = "http://127.0.0.1:7280"

// callTimeout bounds one call that is not a stream.
const callTimeout = time.Minute

// api is a client of a gateway.
type api struct {
	calls     switchyardv1connect.RunServiceClient
	nodes     switchyardv1connect.NodeServiceClient
	workflows switchyardv1connect.WorkflowServiceClient
	url       string
	http      *http.Transport
}

// gatewayFlag adds --gateway.
func gatewayFlag(cmd *cobra.Command, usage string) *string {
	return cmd.Flags().String("gateway", "", usage)
}

// clientFlag adds --gateway to a command that cannot do without one.
func clientFlag(cmd *cobra.Command) *string {
	return gatewayFlag(cmd, "URL of the gateway (default "+defaultGateway+")")
}

// connectTo makes a client of the gateway at a URL, or at host:port. Nothing is
// sent yet.
func connectTo(address string) (*api, error) {
	if address == "" {
		address = defaultGateway
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usageError("--gateway %q is no URL of a gateway; one is %s", address, defaultGateway)
	}
	transport := &http.Transport{
		Proxy:     http.ProxyFromEnvironment,
		Protocols: new(http.Protocols),
		// A gateway that has gone without a word is noticed by pings.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
	if u.Scheme == "http" {
		transport.Protocols.SetUnencryptedHTTP2(true)
	} else {
		transport.Protocols.SetHTTP1(true)
		transport.Protocols.SetHTTP2(true)
	}
	claimed := connect.WithInterceptors(claimActor(thisUser()))
	base, client := strings.TrimSuffix(u.String(), "/"), &http.Client{Transport: transport}
	return &api{
		calls:     switchyardv1connect.NewRunServiceClient(client, base, claimed),
		nodes:     switchyardv1connect.NewNodeServiceClient(client, base, claimed),
		workflows: switchyardv1connect.NewWorkflowServiceClient(client, base, claimed),
		url:       base,
		http:      transport,
	}, nil
}

// onGateway has a command do something with the gateway that its flag names.
func onGateway(gateway *string, do func(context.Context, *api, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a, err := connectTo(*gateway)
		if err != nil {
			return err
		}
		defer a.close()
		return do(cmd.Context(), a, args)
	}
}

// close ends the connections that are idle.
func (a *api) close() { a.http.CloseIdleConnections() }

// call makes one call within a time limit and tells its error in our words.
func call[Req, Res any](ctx context.Context, a *api, method func(context.Context, *connect.Request[Req]) (*connect.Response[Res], error), req *Req) (*Res, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	res, err := method(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, a.failed(err)
	}
	return res.Msg, nil
}

// failed gives the error of a call its exit code.
func (a *api) failed(err error) error {
	refused, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return fmt.Errorf("gateway %s: %w", a.url, err)
	}
	said := errors.New(refused.Message())
	switch code := refused.Code(); {
	case code == connect.CodeInvalidArgument:
		if problems := problemsOf(refused); problems != nil {
			return &failure{code: exitUsage, err: problems}
		}
		return &failure{code: exitUsage, err: said}
	case code == connect.CodeNotFound:
		unknown := &failure{code: exitUsage, err: said}
		switch missing(refused) {
		case "run":
			unknown.hint = "`switchyard runs list` lists the runs"
		case "node":
			unknown.hint = "`switchyard nodes list` lists the nodes"
		case "workflow":
			unknown.hint = "`switchyard workflows list` lists the stored definitions"
		}
		return unknown
	case code == connect.CodePermissionDenied, code == connect.CodeUnauthenticated:
		return &failure{code: exitNotAllowed, err: said}
	case code == connect.CodeFailedPrecondition, code == connect.CodeAlreadyExists:
		return &failure{code: exitNotDone, err: said}
	case code == connect.CodeUnimplemented:
		return &failure{code: exitSystem, err: fmt.Errorf("what answers at %s is no gateway of this version: %w", a.url, said)}
	case code == connect.CodeUnavailable && !connect.IsWireError(err):
		return &failure{
			code: exitSystem, err: fmt.Errorf("the gateway at %s cannot be reached: %w", a.url, said),
			hint: "start one with `switchyard dev`, or name another one with --gateway or SWITCHYARD_GATEWAY",
		}
	}
	return &failure{code: exitSystem, err: fmt.Errorf("gateway %s: %w", a.url, said)}
}

// missing says what kind of thing was not found; "" for one of which there is no list.
func missing(refused *connect.Error) string {
	for _, detail := range refused.Details() {
		value, err := detail.Value()
		if err != nil {
			continue
		}
		if about, ok := value.(*errdetails.ResourceInfo); ok {
			return about.GetResourceType()
		}
	}
	return ""
}

// problemsOf are the faults of a definition that an error brings along.
func problemsOf(refused *connect.Error) error {
	for _, detail := range refused.Details() {
		value, err := detail.Value()
		if err != nil {
			continue
		}
		if failed, ok := value.(*v1.ValidationFailure); ok && len(failed.GetProblems()) > 0 {
			return definition.Problems(failed.GetProblems())
		}
	}
	return nil
}

// pages calls take for each page of a run, which holds some of its tasks, in the
// order of their names. There is at least one.
func (a *api) pages(ctx context.Context, req *v1.GetRunRequest, take func(*v1.Run) error) error {
	for {
		page, err := call(ctx, a, a.calls.GetRun, req)
		if err != nil {
			return err
		}
		if err := take(page.GetRun()); err != nil {
			return err
		}
		// A prefix, or "last", must not become another run from here on.
		req.Id = page.GetRun().GetId()
		if req.PageToken = page.GetNextPageToken(); req.PageToken == "" {
			return nil
		}
	}
}

// run returns a run with those of its tasks that keep wants.
func (a *api) run(ctx context.Context, req *v1.GetRunRequest, keep func(*v1.Task) bool) (*v1.Run, error) {
	var run *v1.Run
	tasks := map[string]*v1.Task{}
	err := a.pages(ctx, req, func(page *v1.Run) error {
		if run == nil {
			run = page
		}
		for name, task := range page.GetTasks() {
			if keep(task) {
				tasks[name] = task
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	run.Tasks = tasks
	return run, nil
}

// brief returns a run with all its tasks, without what they have printed and left as output.
func (a *api) brief(ctx context.Context, id string) (*v1.Run, error) {
	return a.run(ctx, &v1.GetRunRequest{Id: id, Brief: true}, func(*v1.Task) bool { return true })
}
