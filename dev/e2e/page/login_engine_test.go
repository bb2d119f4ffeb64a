//go:build engines

package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/dev/browsertest"
)

// startLockedStack starts a stack that requires tokens, and logs in as an admin.
func startLockedStack(t *testing.T) *stack {
	t.Helper()
	file := filepath.Join(t.TempDir(), "admin-token")
	s := startStack(t, "--auth", "tokens", "--admin-token-file", file)
	token, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s.Token = strings.TrimSpace(string(token))
	return s
}

// tokenOf creates a token with a role.
func (s *stack) tokenOf(t *testing.T, name, role string) string {
	t.Helper()
	var answer struct{ Secret string }
	s.Call(t, "AuthService/CreateToken", map[string]any{"name": name, "role": role}, &answer)
	if answer.Secret == "" {
		t.Fatal("the token has no secret")
	}
	return answer.Secret
}

// logIn logs a tab in through its form, by keyboard.
func logIn(t *testing.T, tab *browsertest.Tab, token string) {
	t.Helper()
	tab.TabTo("input[name=token]")
	tab.Type(token)
	tab.Press("Enter")
}

// testGatewayThatAsksForTokensHasAForm checks that a visitor without a token gets a form that refuses a wrong token and
// then leads to the requested page.
func testGatewayThatAsksForTokensHasAForm(t *testing.T, s *stack) {
	tab := browsertest.NewProfile(t).Tab(s.Gateway)
	tab.Allow("401") // browsers log refused requests to the console
	tab.Open("/ui/runs?state=failed")
	tab.WaitText("h1", "Log in")
	tab.CheckAccessibility(t)
	logIn(t, tab, "sy_wrong")
	tab.WaitText("[role=alert]", "token")
	logIn(t, tab, s.Token)
	tab.WaitText("h1", "Runs")
	if got := tab.URL(); got != s.Gateway+"/ui/runs?state=failed" {
		t.Errorf("the log-in leads to %s", got)
	}
	tab.CheckAccessibility(t)
	if got := browsertest.Eval[string](tab, "document.cookie"); strings.Contains(got, s.Token) {
		t.Error("scripts can read the token")
	}
	tab.Check(t)
}

// testLogOutInOneTabReachesTheOther checks that a tab shows at once, without a reload, that the browser was logged out
// in another tab.
func testLogOutInOneTabReachesTheOther(t *testing.T, s *stack) {
	profile := browsertest.NewProfile(t)
	first, second := profile.Tab(s.Gateway), profile.Tab(s.Gateway)
	for _, tab := range []*browsertest.Tab{first, second} {
		tab.Allow("401")
	}
	first.Open("/ui/runs")
	logIn(t, first, s.Token)
	first.WaitText("h1", "Runs")
	second.Open("/ui/runs")
	second.WaitTrue("document.body.dataset.live == 'live'")
	first.TabTo(`form[action="/ui/logout"] button`)
	first.Press("Enter")
	first.WaitText("h1", "Log in")
	second.WaitText("#connection", "logged out")
	second.Click("#connection a")
	second.WaitText("h1", "Log in")
	logIn(t, second, s.Token)
	second.WaitText("h1", "Runs")
	second.WaitTrue("document.body.dataset.live == 'live'")
	id := s.Submit(t, completedDefinition)
	awaitLive(t, second, "#runs", id)
	first.Check(t)
	second.Check(t)
}

// testViewerSeesWhyActionsAreForbidden checks that a viewer sees disabled buttons with the role that they need.
func testViewerSeesWhyActionsAreForbidden(t *testing.T, s *stack) {
	vera := *s.Stack // with a stronger token of the same name, which owns the run
	vera.Token = s.tokenOf(t, "vera", "user")
	id := vera.Submit(t, approvalDefinition)
	s.AwaitTask(t, id, "ask", "paused")
	s.put(t, storedDefinition)
	tab := browsertest.NewProfile(t).Tab(s.Gateway)
	tab.Allow("401")
	tab.Open("/")
	logIn(t, tab, s.tokenOf(t, "vera", "viewer"))
	tab.WaitText(".who", "vera (viewer)")
	for _, path := range []string{"/ui/runs/" + id, "/ui/runs/" + id + "/tasks/ask", "/ui/approvals", "/ui/nodes/local-1", "/ui/workflows/nightly", "/ui/schedules/nightly"} {
		tab.Open(path)
		tab.WaitText("main", "needs the role")
		if n := tab.Count("form.action button:enabled"); n != 0 {
			t.Errorf("%s has %d actions for a viewer", path, n)
		}
		if got := tab.Attribute("main button:disabled", "title"); !strings.Contains(got, "you have the role viewer") {
			t.Errorf("%s: a button says %q", path, got)
		}
		tab.CheckAccessibility(t)
	}
	tab.Check(t)
}
