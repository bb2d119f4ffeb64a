package gateway

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// TestRunsOfUsersNeedApproval submits with each role to a gateway that requires approval for the runs of
// users.
func TestRunsOfUsersNeedApproval(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	f.submitter.ApproveUserRuns = true
	clients := map[string]switchyardv1connect.RunServiceClient{}
	for _, role := range []string{v1.RoleUser, v1.RoleOperator, v1.RoleAdmin} {
		secret, _ := f.token(t, "name-of-"+role, role)
		clients[role] = f.dial(t, connect.WithInterceptors(bearer(secret)))
	}
	for role, client := range clients {
		res, err := client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: document("needs-approval", "a")}}))
		if err != nil {
			t.Fatal(err)
		}
		id := res.Msg.GetId()
		rerun, err := client.RerunRun(t.Context(), connect.NewRequest(&v1.RerunRunRequest{Id: id}))
		if err != nil {
			t.Fatal(err)
		}
		for _, started := range []string{id, rerun.Msg.GetId()} {
			in := f.inputOf(t, started)
			if in.GetNeedsApproval() != (role == v1.RoleUser) || !in.GetSignedDecisions() || in.GetByRole() != role || in.GetBy() != "name-of-"+role {
				t.Errorf("a run of the role %s: %v", role, in)
			}
		}
		_, err = client.ApproveRun(t.Context(), connect.NewRequest(&v1.ApproveRunRequest{Id: id}))
		if connect.CodeOf(err) != connect.CodePermissionDenied || role != v1.RoleUser && !strings.Contains(err.Error(), "ask another operator") {
			t.Errorf("a run of one's own, as %s: %v", role, err)
		}
		end(t, id, "completed")
		end(t, rerun.Msg.GetId(), "completed")
	}
}
