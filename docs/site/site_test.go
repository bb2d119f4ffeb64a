package site

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"switchyard/docs"
)

// pages is a small documentation. Its pages have what Render and Parse treat in a special way.
var pages = fstest.MapFS{
	"index.md":             {Data: []byte("# Yard\n\n[Start](start.md)\n\n## Running\n\n- [TLS](operations/tls.md), [again](start.md#two)\n- [gallery](examples.md) and [the web](https://example.org)\n")},
	"start.md":             {Data: []byte("# Start here\n\n## Two_words, `three`!\n\n## Two\n\n## Two\n\n<a id=\"spot\"></a>\n\n[out](../CHANGELOG.md), [in](operations/tls.md#here), [self](#two)\n\n```yaml build.yaml\nname: \"<b>\"\n```\n\n```sh not-run: needs a GPU\nswitchyard top\n```\n")},
	"operations/tls.md":    {Data: []byte("# TLS\n\n## Here\n\n![a page](../page.png) [up](../start.md)\n")},
	"examples.md":          {Data: []byte("# Gallery\n\n[one](examples/one.md)\n")},
	"examples/one.md":      {Data: []byte("# One\n")},
	"page.png":             {Data: []byte("PNG")},
	"examples/drawing.svg": {Data: []byte("<svg/>")},
	"docs.go":              {Data: []byte("package docs")},
}

func TestParseFindsWhatAPageHolds(t *testing.T) {
	p := Parse("start.md", pages["start.md"].Data)
	if p.Title != "Start here" {
		t.Errorf("the title is %q", p.Title)
	}
	want := map[string]bool{"start-here": true, "two_words-three": true, "two": true, "two-1": true, "spot": true}
	if diff := cmp.Diff(want, map[string]bool(p.Anchors)); diff != "" {
		t.Errorf("the anchors differ (-want +got):\n%s", diff)
	}
	fences := []Fence{
		{Language: "yaml", Info: "build.yaml", Text: "name: \"<b>\"\n", Line: 14},
		{Language: "sh", Info: "not-run: needs a GPU", Text: "switchyard top\n", Line: 18},
	}
	if diff := cmp.Diff(fences, p.Fences); diff != "" {
		t.Errorf("the fences differ (-want +got):\n%s", diff)
	}
	if file := fences[0].File() + fences[1].File(); file != "build.yaml" {
		t.Errorf("the files of the fences are %q", file)
	}
	for i, want := range []string{"../CHANGELOG.md", "operations/tls.md here", "start.md two"} {
		if file, fragment := p.Links[i].File(p.Path); strings.TrimSpace(file+" "+fragment) != want {
			t.Errorf("link %d leads to %s#%s, want %s", i, file, fragment, want)
		}
	}
}

func TestRenderLinksPages(t *testing.T) {
	files, err := Render(pages)
	if err != nil {
		t.Fatal(err)
	}
	for name, parts := range map[string][]string{
		"index.html": {`<title>Yard · Switchyard</title>`, `rel="next" href="start.html"`, `<a href="https://example.org">the web</a>`},
		"start.html": {
			`<p>out, <a href="operations/tls.html#here">in</a>, <a href="#two">self</a></p>`, `<figcaption>build.yaml</figcaption>`, `name: &#34;&lt;b&gt;&#34;`,
			`<h2 id="two-1">`, `<a href="start.html" aria-current="page">Start here</a>`, `<li><a href="#two_words-three">`, `rel="next" href="operations/tls.html"`,
		},
		"operations/tls.html": {`href="../style.css"`, `src="../page.png"`, `<a href="../start.html">up</a>`, `rel="prev" href="../start.html"`, `rel="next" href="../examples.html"`},
		"examples/one.html":   {`<a href="../examples.html" aria-current="page">`},
		"page.png":            {"PNG"}, "style.css": {"--back:", "nav"}, "examples/drawing.svg": {"<svg/>"},
	} {
		for _, part := range parts {
			if !strings.Contains(string(files[name]), part) {
				t.Errorf("%s lacks %s:\n%s", name, part, files[name])
			}
		}
	}
	if files["docs.go"] != nil || strings.Contains(string(files["operations/tls.html"]), "Two_words") {
		t.Error("the site has more than it should")
	}
}

// TestHandlerServesOnlyThePages asks for pages of the documentation, and for what it does not have.
func TestHandlerServesOnlyThePages(t *testing.T) {
	h := Handler("/docs/", docs.Files, slog.New(slog.DiscardHandler))
	get := func(path, etag string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(http.MethodGet, "http://yard"+path, nil)
		req.Header.Set("If-None-Match", etag)
		res := httptest.NewRecorder()
		h.ServeHTTP(res, req)
		return res
	}
	index := get("/docs/", "")
	if index.Code != http.StatusOK || index.Header().Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(index.Body.String(), "<main") {
		t.Errorf("the index is %d %v", index.Code, index.Header())
	}
	if again := get("/docs/index.html", index.Header().Get("Etag")); again.Code != http.StatusNotModified {
		t.Errorf("the index that a browser has already is %d", again.Code)
	}
	for path, want := range map[string]string{"/docs/style.css": "text/css; charset=utf-8", "/docs/page-run.png": "image/png", "/docs/examples/diamond.svg": "image/svg+xml"} {
		if res := get(path, ""); res.Code != http.StatusOK || res.Header().Get("Content-Type") != want {
			t.Errorf("%s is %d %v", path, res.Code, res.Header())
		}
	}
	for _, path := range []string{"/docs/docs.go", "/docs/index.md", "/docs/missing.html", "/docs/site/", "/docs/..", "/docs//index.html", "/docs/%2e%2e/index.html"} {
		if res := get(path, ""); res.Code != http.StatusNotFound || res.Header().Get("Location") != "" {
			t.Errorf("%s is %d %v", path, res.Code, res.Header())
		}
	}
}
