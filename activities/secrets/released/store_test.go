package released

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"switchyard/activities/gatewayclient"
	"switchyard/activities/secrets"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// gateway replies with fail, if it is set, and records the request.
type gateway struct {
	switchyardv1connect.UnimplementedSecretServiceHandler
	fail  error
	asked *v1.ReleaseSecretRequest
	token string
}

func (g *gateway) ReleaseSecret(_ context.Context, req *connect.Request[v1.ReleaseSecretRequest]) (*connect.Response[v1.ReleaseSecretResponse], error) {
	g.asked, g.token = req.Msg, req.Header().Get("Authorization")
	if g.fail != nil {
		return nil, g.fail
	}
	return connect.NewResponse(&v1.ReleaseSecretResponse{Value: []byte("value")}), nil
}

func TestGatewayReleasesSecretToWhoHasTheToken(t *testing.T) {
	g := &gateway{}
	mux := http.NewServeMux()
	mux.Handle(switchyardv1connect.NewSecretServiceHandler(g))
	server := httptest.NewUnstartedServer(mux)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	token := "sy_one"
	list, err := gatewayclient.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	conn := gatewayclient.New(list, gatewayclient.Options{Token: func() string { return token }})
	defer conn.Close()
	s := From(conn)
	req := secrets.ReleaseRequest{Name: "deploy", Requester: secrets.Requester{Run: "ci-0k", Chain: "c1", Task: "each[2]", Index: 2, Attempt: 1, Claim: 7, Node: "a"}}
	if value, err := s.Value(t.Context(), req); err != nil || value != "value" || g.token != "Bearer sy_one" {
		t.Errorf("%q, %v, with %s", value, err, g.token)
	}
	if a := g.asked; a.GetRun() != "ci-0k" || a.GetChain() != "c1" || a.GetTask() != "each[2]" || a.GetAttempt() != 1 || a.GetClaim() != 7 || a.GetNode() != "a" || a.GetSecret() != "deploy" {
		t.Errorf("asked for %v", a)
	}
	token = "sy_two" // as after a replacement of the token
	for code, isFinal := range map[connect.Code]bool{
		connect.CodeNotFound: true, connect.CodePermissionDenied: true, connect.CodeFailedPrecondition: true, connect.CodeInvalidArgument: true, connect.CodeUnimplemented: true,
		connect.CodeAborted: false, connect.CodeUnavailable: false, connect.CodeUnauthenticated: false, connect.CodeInternal: false, connect.CodeDeadlineExceeded: false,
	} {
		g.fail = connect.NewError(code, errors.New("it says why"))
		value, err := s.Value(t.Context(), req)
		if value != "" || errors.Is(err, secrets.ErrUnavailable) == isFinal || !strings.Contains(err.Error(), "it says why") || g.token != "Bearer sy_two" {
			t.Errorf("%v: %q, %v", code, value, err)
		}
	}
	server.Close()
	if _, err := s.Value(t.Context(), req); !errors.Is(err, secrets.ErrUnavailable) {
		t.Errorf("without a gateway: %v", err)
	}
}
