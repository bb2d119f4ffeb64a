//go:build engines

package browsertest

import (
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"switchyard/dev/testneeds"
)

// TestMain finds a browser that does not end by the goroutine that waits for it.
func TestMain(m *testing.M) { testneeds.NoLeaks(kept{m}) }

// kept runs the tests with one browser.
type kept struct{ *testing.M }

func (k kept) Run() int { return Run(k.M) }

// pages maps paths to the pages of the tests' server.
var pages = map[string]string{
	"/": `<!DOCTYPE html><html lang="en"><title>Clean</title><style>
			body { color: black; background: white }
			@media (prefers-color-scheme: dark) { body { color: white; background: black } }
			#narrow { display: none }
			@media (max-width: 400px) { #narrow { display: block } }
		</style>
		<main><h1>Clean</h1><p id="script">no script</p><p id="narrow">narrow</p>
		<svg width="10" height="10"><text id="drawn">drawn</text></svg>
		<button id="first">first</button> <button id="second">second</button> <label>Name <input id="name"></label></main>
		<script>
			document.getElementById("script").textContent = "script"
			document.getElementById("second").onclick = () => setTimeout(() => { document.getElementById("script").textContent = "pressed" }, 50)
		</script>`,
	"/console":   `<!DOCTYPE html><title>Console</title><script>console.error("bad", 7); console.warn("odd")</script>`,
	"/exception": `<!DOCTYPE html><title>Exception</title><script>throw new Error("thrown here")</script>`,
	"/rejection": `<!DOCTYPE html><title>Rejection</title><script>Promise.reject(new Error("rejected here"))</script>`,
	"/foreign":   `<!DOCTYPE html><title>Foreign</title><img alt="" src="http://example.com/spy.png">`,
	"/missing":   `<!DOCTYPE html><title>Missing</title><script src="/none.js"></script>`,
	"/policy":    `<!DOCTYPE html><title>Policy</title><script>document.title = "ran"</script>`,
	"/label":     `<!DOCTYPE html><html lang="en"><title>Label</title><main><h1>Label</h1><input type="text" id="bare"></main>`,
	"/cookie":    `<!DOCTYPE html><title>Cookie</title><p id="cookies"></p><script>cookies.textContent = "cookies: " + document.cookie; document.cookie = "seen=yes"</script>`,
}

// serve serves the pages, with a strict policy for paths that ask for one.
func serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := pages[r.URL.Path]
		if !ok && r.URL.Path != "/favicon.ico" {
			http.NotFound(w, r)
			return
		}
		if r.URL.Path == "/policy" {
			w.Header().Set("Content-Security-Policy", "default-src 'none'")
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if strings.HasSuffix(r.URL.Path, ".js") {
			w.Header().Set("Content-Type", "text/javascript")
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestCheckReportsWhatAPageDoesWrong(t *testing.T) {
	server := serve(t)
	profile := NewProfile(t)
	for _, c := range []struct{ path, kind, text string }{
		{"/console", "console", `"bad" 7`},
		{"/exception", "exception", "thrown here"},
		{"/rejection", "exception", "rejected here"},
		{"/foreign", "foreign", "http://example.com/spy.png"},
		{"/missing", "network", "/none.js"},
		{"/policy", "security", "Content Security Policy"},
	} {
		tab := profile.Tab(server)
		tab.Open(c.path)
		found := func() bool {
			return slices.ContainsFunc(tab.Problems(), func(p Problem) bool { return p.Kind == c.kind && strings.Contains(p.Text, c.text) })
		}
		if _, ok := tab.wait(limit, found); !ok {
			t.Errorf("%s: the problems are %v, without %s of %q", c.path, tab.Problems(), c.kind, c.text)
		}
		tab.Allow(c.text)
		if found() {
			t.Errorf("%s: a problem is there although it is allowed", c.path)
		}
	}
}

func TestCheckAcceptsACleanPage(t *testing.T) {
	server := serve(t)
	tab := Open(t, server+"/")
	tab.WaitText("#script", "script")
	tab.CheckAccessibility(t)
	tab.Check(t)
	if got := tab.Text("#drawn"); got != "drawn" {
		t.Errorf("the text of SVG is %q", got)
	}
	if !slices.Contains(tab.Requests(), server+"/") {
		t.Errorf("the requests are %v", tab.Requests())
	}
	_, ok := tab.wait(limit, func() bool { return tab.BytesReceived() >= len(pages["/"]) })
	if n := tab.BytesReceived(); !ok || n > 2*len(pages["/"])+1000 {
		t.Errorf("%d bytes were received of a page of %d", n, len(pages["/"]))
	}
	if paint := tab.FirstPaint(); paint <= 0 || paint > limit {
		t.Errorf("the first paint is at %v", paint)
	}
	if heap := tab.HeapBytes(); heap < 100_000 || heap > 100_000_000 {
		t.Errorf("the heap has %d bytes", heap)
	}
	if nodes := tab.Nodes(); nodes < 10 {
		t.Errorf("the page has %d nodes", nodes)
	}
}

func TestCheckIgnoresWarnings(t *testing.T) {
	tab := Open(t, serve(t)+"/console")
	tab.Allow("bad")
	if _, ok := tab.wait(limit, func() bool { return slices.Contains(tab.Warnings(), `"odd"`) }); !ok {
		t.Errorf("the warnings are %q", tab.Warnings())
	}
	tab.Check(t)
}

func TestAccessibilityFindsAMissingLabel(t *testing.T) {
	tab := Open(t, serve(t)+"/label")
	findings := tab.Findings()
	i := slices.IndexFunc(findings, func(f Finding) bool { return f.Rule == "label" && f.isSerious() })
	if i < 0 {
		t.Fatalf("the findings are %v", findings)
	}
	if text := findings[i].String(); !strings.Contains(text, "#bare") || !strings.Contains(text, "label (critical)") {
		t.Errorf("the finding is %q", text)
	}
}

func TestKeyboardReachesAndPressesButtons(t *testing.T) {
	tab := Open(t, serve(t)+"/")
	tab.TabTo("#second")
	tab.Press("Shift+Tab")
	if got := Eval[string](tab, "document.activeElement.id"); got != "first" {
		t.Errorf("Shift+Tab leads to %q", got)
	}
	tab.Press("Tab", "Enter")
	if took := tab.WaitText("#script", "pressed"); took <= 0 {
		t.Errorf("waiting took %v", took)
	}
	tab.TabTo("#name")
	tab.Type("Ada?")
	tab.Press("Backspace")
	if got := Eval[string](tab, "document.activeElement.value"); got != "Ada" {
		t.Errorf("the field has %q", got)
	}
	tab.Click("#first")
	tab.SetValue("#name", "Bob")
	if got := Eval[string](tab, "document.querySelector('#name').value"); got != "Bob" {
		t.Errorf("the field has %q", got)
	}
	tab.Check(t)
}

func TestPagesFollowThemeWidthAndScript(t *testing.T) {
	tab := NewProfile(t).Tab(serve(t))
	tab.SetTheme(Dark)
	tab.SetViewport(360)
	tab.Open("/")
	const background = "getComputedStyle(document.body).backgroundColor"
	if got := Eval[string](tab, background); got != "rgb(0, 0, 0)" {
		t.Errorf("the dark background is %s", got)
	}
	tab.SetTheme(Light)
	tab.WaitTrue(background + " == 'rgb(255, 255, 255)'")
	if got := Eval[int](tab, "innerWidth"); got != 360 {
		t.Errorf("the page is %d wide", got)
	}
	if got := tab.Text("#narrow"); got != "narrow" {
		t.Errorf("the narrow text is %q", got)
	}
	tab.SetViewport(1920)
	tab.WaitTrue("innerWidth == 1920")
	path := filepath.Join(t.TempDir(), "page.png")
	tab.Screenshot(path)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if image, err := png.DecodeConfig(file); err != nil || image.Width != 1920 || image.Height != height {
		t.Errorf("the screenshot is %dx%d, %v", image.Width, image.Height, err)
	}
	tab.DisableScript()
	tab.Open("/")
	if got := tab.Text("#script"); got != "no script" {
		t.Errorf("without script the page has %q", got)
	}
}

func TestTabsShareAProfileAndProfilesShareNothing(t *testing.T) {
	server := serve(t)
	profile := NewProfile(t)
	profile.Tab(server).Open("/cookie")
	second := profile.Tab(server)
	second.Open("/cookie")
	second.WaitText("#cookies", "cookies: seen=yes")
	if got := Open(t, server+"/cookie").Text("#cookies"); strings.TrimSpace(got) != "cookies:" {
		t.Errorf("another profile has %q", got)
	}
}
