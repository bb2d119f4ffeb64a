package gateway

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/paging"
	v1 "switchyard/proto/switchyard/v1"
)

// TestEveryListRefusesForeignPageTokens sends page tokens of another list, of the same list of another run, and none at all to each
// call with pages.
func TestEveryListRefusesForeignPageTokens(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	admin, _ := f.token(t, "root", v1.RoleAdmin)
	f.client = f.dialAs(t, admin)
	id := f.submit(t, "paged", "build")
	fanOut(t, id, "build", "running", 1, map[string]int32{"assigned": 1}, &v1.Instance{State: "assigned"})
	list := func(req *v1.ListRunsRequest) paging.List {
		l, err := paging.ListOf(req)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	position := paging.Position{Start: time.Unix(1, 0), RunID: "x"}
	named := list(&v1.ListRunsRequest{Name: "ci"})
	foreign := []string{"?", "bm9uc2Vuc2U", named.EncodeRun(position), named.EncodeTask("other-00000000", "build"), list(&v1.ListRunsRequest{}).Token("noon", "x")}
	tried := 0
	each(func(call protoreflect.MethodDescriptor) {
		fields := call.Input().Fields()
		if fields.ByName("page_token") == nil || call.Parent().Name() == "BlobService" { // which people cannot call
			return
		}
		tried++
		message := ""
		if run := namesRun(call); run != nil && call.Name() != "ListDeadLetters" { // those of one run are on one page
			message = fmt.Sprintf(`"%s":%q,`, run.JSONName(), id)
			switch call.Name() {
			case "ListInstances":
				message += `"task":"build",`
			case "ListArtifactFiles":
				message += `"task":"build","name":"app",`
			}
		}
		for _, token := range foreign {
			path, body := "/"+string(call.Parent().FullName())+"/"+string(call.Name()), fmt.Sprintf(`{%s"pageToken":%q}`, message, token)
			if got := f.rest(t, http.MethodPost, path, body, "Content-Type", jsonHeader, "Authorization", "Bearer "+admin); got.status != 400 || got.value["code"] != "invalid_argument" {
				t.Errorf("%s with the token %q: %d %s", call.Name(), token, got.status, got.text)
			}
		}
	})
	if tried < 12 {
		t.Errorf("only %d calls have pages", tried)
	}
}
