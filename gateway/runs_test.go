package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"switchyard/gateway/runindex"
	v1 "switchyard/proto/switchyard/v1"
)

func (f *fixture) list(t *testing.T, req *v1.ListRunsRequest) ([]string, string) {
	t.Helper()
	res := answer(t, f.client.ListRuns, req)
	var ids []string
	for _, run := range res.GetItems() {
		ids = append(ids, run.GetId())
	}
	return ids, res.GetNextPageToken()
}

// TestListRunsPagesNewestFirst lists runs by state, by name and page by page. The newest run comes first even though the runs
// close in another order.
func TestListRunsPagesNewestFirst(t *testing.T) {
	t.Parallel()
	f := start(t)
	var ids []string
	for range 5 {
		ids = append(ids, f.submit(t, "listed"))
	}
	f.submit(t, "listed-too")
	end(t, ids[4], "completed")
	end(t, ids[0], "failed")
	end(t, ids[2], "cancelled")
	if err := temporalClient.TerminateWorkflow(t.Context(), ids[1], "", ""); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"": {ids[4], ids[3], ids[2], ids[1], ids[0]}, "running": {ids[3]}, "completed": {ids[4]},
		"failed": {ids[1], ids[0]}, "cancelled": {ids[2]},
	}
	for state, want := range want {
		eventually(t, fmt.Sprintf("visibility has the runs in the state %q", state), func() bool {
			got, _ := f.list(t, &v1.ListRunsRequest{Name: "listed", State: state})
			return slices.Equal(got, want)
		})
	}
	var paged []string
	pages, token := 0, ""
	for {
		var ids []string
		ids, token = f.list(t, &v1.ListRunsRequest{Name: "listed", PageSize: 2, PageToken: token})
		paged = append(paged, ids...)
		if pages++; token == "" {
			break
		}
	}
	if pages != 3 || !slices.Equal(paged, want[""]) {
		t.Errorf("%d pages: %v", pages, paged)
	}
	if ids, _ := f.list(t, &v1.ListRunsRequest{Name: "liste"}); len(ids) != 0 {
		t.Errorf("a part of a name finds %v", ids)
	}
	_, err := f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{Name: "a' OR 'b' = 'b"}))
	wantCode(t, "a name with quotes", err, connect.CodeInvalidArgument)
	_, err = f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{State: "lost"}))
	wantCode(t, "a state that is none", err, connect.CodeInvalidArgument)
}

// TestListRunsShowsOpenStates lists open runs by the state that `runs get` shows.
func TestListRunsShowsOpenStates(t *testing.T) {
	t.Parallel()
	f := start(t)
	want := map[string]string{}
	for _, state := range []string{"running", "pending", "pending_approval", "paused"} {
		want[state] = f.submit(t, "open")
		signal(t, want[state], setSignal, &v1.StatusResponse{Run: &v1.Run{State: state}})
	}
	for state, id := range want {
		var got []string
		eventually(t, "visibility has the run that is "+state+" and no other", func() bool {
			got, _ = f.list(t, &v1.ListRunsRequest{Name: "open", State: state})
			return slices.Equal(got, []string{id})
		})
		if is := f.listed(t, id); is != state {
			t.Errorf("the list shows %s as %s", state, is)
		}
	}
}

// TestResolveFindsPrefixesAndLast finds runs by prefix and as "last" right after their submission. No other test may start a
// run meanwhile.
func TestResolveFindsPrefixesAndLast(t *testing.T) {
	f := start(t)
	first := f.submit(t, "resolved-one")
	second := f.submit(t, "resolved-two")
	for text, want := range map[string]string{
		"last": second, "resolved-one": first, "resolved-t": second, first: first, second[:len(second)-1]: second,
	} {
		if run := f.get(t, text); run.GetId() != want {
			t.Errorf("%s is %s, not %s", text, run.GetId(), want)
		}
	}
	_, err := f.client.GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: "resolved-"}))
	wantCode(t, "an ambiguous prefix", err, connect.CodeInvalidArgument)
	if !strings.Contains(err.Error(), first) || !strings.Contains(err.Error(), second) {
		t.Errorf("the error names no candidates: %v", err)
	}
	// Another gateway has only the data of Temporal.
	other := start(t)
	for text, want := range map[string]string{"last": second, "resolved-o": first} {
		eventually(t, "the other gateway resolves "+text, func() bool {
			res, err := other.client.GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: text}))
			return err == nil && res.Msg.GetRun().GetId() == want
		})
	}
	for range runindex.MaxCandidates {
		f.submit(t, "resolved-more")
	}
	_, err = f.client.GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: "resolved"}))
	if wantCode(t, "a prefix of many", err, connect.CodeInvalidArgument); !strings.Contains(err.Error(), ", ...") {
		t.Errorf("the error is %v", err)
	}
}
