//go:build engines

package page

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"switchyard/dev/browsertest"
)

// hostilePage is a page that would reach out of its frame.
const hostilePage = `<style>h1 { color: rgb(1, 2, 3) }</style><h1>shown</h1>
<script>window.pwned = top.pwned = 1</script><img src=x onerror="top.pwned=1"><img src="/ui/assets/icon.svg">
<form action="/ui/logout" method=post id=f><button>Go</button></form><a href="/" target=_top id=a>leave</a>`

// pixel is a PNG image of 1 by 1.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// TestArtifactsAreShownInAFrame checks that the page of an artifact shows hostile names as texts and hostile files in a frame that
// cannot reach the page, to a person who has logged in.
func TestArtifactsAreShownInAFrame(t *testing.T) {
	t.Parallel()
	s := startLockedStack(t)
	odd := strings.ReplaceAll(hostile, "/", "|") + ".txt"
	definition, err := json.Marshal(map[string]any{"name": "files", "tasks": map[string]any{"leave": map[string]any{
		"type": "shell", "artifacts": map[string]any{"out": []any{map[string]any{"name": "app", "path": "out/**"}}},
		"spec": map[string]any{"command": "mkdir out; cd out; ln -s page.html link; echo fine > " + shellQuoted(odd) + "; printf %s " + shellQuoted(hostilePage) + " > page.html; echo " + pixel + " | base64 -d > pixel.png"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	id := s.Submit(t, string(definition))
	s.AwaitRun(t, id, "completed")
	profile := browsertest.NewProfile(t)
	tab := profile.Tab(s.Gateway)
	tab.Open("/ui/runs/" + id + "/tasks/leave")
	logIn(t, tab, s.Token)
	tab.WaitText("#task-result", "Artifacts")
	tab.Click(`#task-result a[href$="/artifacts/app"]`)
	tab.WaitText("h1", "Artifact app")
	tab.WaitText("main", "<img src=x")
	tab.WaitText("main", "page.html")
	checkHarmless(t, tab)
	tab.CheckAccessibility(t)
	tab.Check(t)

	address := "/ui/runs/" + id + "/tasks/leave/artifacts/app"
	tab.Allow("sandboxed", "Content Security Policy", "/artifacts/app/x", "/ui/assets/icon.svg") // what the file may not do
	for _, name := range []string{odd, "page.html", "pixel.png"} {
		query := "?" + url.Values{"file": {name}}.Encode()
		tab.Open(address + query)
		tab.WaitText("#preview h2", strings.Split(name, "<")[0])
		tab.WaitTrue("document.querySelector('iframe').contentDocument === null") // it has loaded, and has another origin
		checkHarmless(t, tab)
		tab.SetViewport(360)
		checkWidth(t, tab, name)
		tab.CheckAccessibility(t)
		if !slices.ContainsFunc(tab.Requests(), func(to string) bool { return strings.Contains(to, "/preview"+query) }) {
			t.Errorf("the frame of %q was not requested: %q", name, tab.Requests())
		}
	}
	tab.Open(address + "/preview?file=page.html") // as a page of its own
	tab.WaitText("h1", "shown")
	found := browsertest.Eval[struct {
		Origin, Colour string
		Pwned          bool
		Loaded         int
	}](tab, `({ origin: self.origin, colour: getComputedStyle(document.querySelector("h1")).color, pwned: "pwned" in window, loaded: [...document.images].filter(i => i.naturalWidth).length })`)
	if found.Origin != "null" || found.Colour != "rgb(1, 2, 3)" || found.Pwned || found.Loaded > 0 {
		t.Errorf("the file is shown as %+v", found)
	}
	tab.Open(address + "/preview?file=pixel.png")
	tab.WaitTrue("document.images.length == 1 && document.images[0].naturalWidth == 1")
	tab.Check(t)
}
