package gateway

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// TestQuotaOfRunsRefusesFurtherOnes checks that a group with as many open runs as its quota allows submits no more, that a repeated
// request gets its run, and that others are not concerned.
func TestQuotaOfRunsRefusesFurtherOnes(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	clients := map[string]switchyardv1connect.RunServiceClient{}
	for _, name := range []string{"quinn", "rory", "sam"} {
		token, _ := f.token(t, name, v1.RoleUser)
		clients[name] = f.dialAs(t, token)
	}
	admin, _ := f.token(t, "root", v1.RoleAdmin)
	terms := dialService(t, f, switchyardv1connect.NewOwnerServiceClient, admin)
	submit := func(name, key string) (*v1.SubmitRunResponse, error) {
		req := submitRequest(document("limited", "build"))
		req.IdempotencyKey = key
		res, err := clients[name].SubmitRun(t.Context(), connect.NewRequest(req))
		if err != nil {
			return nil, err
		}
		if !res.Msg.GetExisted() {
			terminate(t, res.Msg.GetId())
		}
		return res.Msg, nil
	}
	for _, name := range []string{"quinn", "rory"} {
		if _, err := submit(name, "first"); err != nil {
			t.Fatal(err)
		}
	}
	set := answer(t, terms.SetOwner, &v1.SetOwnerRequest{Name: "crew", Share: &v1.Share{Weight: 1, Members: []string{"quinn", "rory"}}, Quota: &v1.Quota{Runs: 2}})
	if set.GetOwner().GetUpdatedBy() != "root" {
		t.Errorf("set: %v", set)
	}
	eventually(t, "visibility has both runs", func() bool {
		n, err := f.index.CountOpen(t.Context(), []string{"quinn", "rory"})
		return err == nil && n == 2
	})
	_, err := submit("quinn", "second")
	if rpcerror.CodeOf(err) != connect.CodeAborted || !strings.Contains(err.Error(), "crew has 2 of the 2 open runs that the quota allows") {
		t.Errorf("a third run of the group: %v", err)
	}
	if res, err := submit("rory", "first"); err != nil || !res.GetExisted() {
		t.Errorf("a repeated request: %v, %v", res, err)
	}
	if _, err := submit("sam", "first"); err != nil {
		t.Errorf("a run of another owner: %v", err)
	}
	list := answer(t, terms.ListOwners, &v1.ListOwnersRequest{})
	if len(list.GetItems()) != 1 || list.GetItems()[0].GetQuota().GetRuns() != 2 {
		t.Errorf("listed %v", list)
	}
	if _, err := terms.SetOwner(t.Context(), connect.NewRequest(&v1.SetOwnerRequest{Name: "other", Share: &v1.Share{Weight: 1, Members: []string{"rory"}}})); rpcerror.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a member of two groups: %v", err)
	}
}
