package gateway

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/artifacts"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// leaveArtifact shows a task of a scripted run as completed with an artifact of some files, and returns the artifact.
func (f *fixture) leaveArtifact(t *testing.T, run, task string, files map[string][]byte) *v1.Artifact {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, content, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	library := &artifacts.Library{Store: f.config.Store}
	a, err := library.Save(t.Context(), storekey.Artifact(run+"/c", 0, task, 1, "app"), "app", ".", root)
	if err != nil {
		t.Fatal(err)
	}
	set(t, run, task, 1, &v1.Task{State: v1.TaskCompleted, Result: &v1.TaskResult{Artifacts: []*v1.Artifact{a}}})
	return a
}

// download is an answer of the path of an artifact.
type download struct {
	*http.Response
	body []byte
}

// download requests the path of an artifact.
func (f *fixture) download(t *testing.T, token, method, path string, header ...string) download {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, f.server.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := f.httpClient(t, token).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return download{res, body}
}

// TestArtifactsAreDownloaded reads an artifact whole, in ranges, and file by file, as its owner and as others.
func TestArtifactsAreDownloaded(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	owner, _ := f.token(t, "carol", v1.RoleUser)
	other, _ := f.token(t, "dave", v1.RoleUser)
	f.client = f.dialAs(t, owner)
	run := f.submit(t, "files")
	large := bytes.Repeat([]byte("0123456789abcdef"), 300_000)
	a := f.leaveArtifact(t, run, "build", map[string][]byte{"page.html": []byte("<script>alert(1)</script>"), "data.bin": large, "sub/empty": nil})
	path := "/v1/runs/" + run + "/tasks/build/artifacts/app"

	var whole download
	eventually(t, "the artifact is there", func() bool {
		whole = f.download(t, owner, http.MethodGet, path)
		return whole.StatusCode == http.StatusOK
	})
	files := map[string]int64{}
	for archive := tar.NewReader(bytes.NewReader(whole.body)); ; {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = h.Size
	}
	if want := map[string]int64{"app/": 0, "app/sub/": 0, "app/sub/empty": 0, "app/data.bin": int64(len(large)), "app/page.html": 25}; fmt.Sprint(files) != fmt.Sprint(want) {
		t.Errorf("the archive has %v", files)
	}
	checkSafe := func(d download, kind, name string) {
		t.Helper()
		if h := d.Header; d.StatusCode != http.StatusOK || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") != "sandbox" || h.Get("Content-Disposition") != "attachment; filename="+name || !strings.HasPrefix(h.Get("Content-Type"), kind) {
			t.Errorf("%d %v", d.StatusCode, h)
		}
	}
	checkSafe(whole, "application/x-tar", "app.tar")
	if head := f.download(t, owner, http.MethodHead, "/runs/"+run+"/tasks/build/artifacts/app"); head.ContentLength != int64(len(whole.body)) || head.Header.Get("ETag") != whole.Header.Get("ETag") || len(head.body) > 0 {
		t.Errorf("HEAD: %d %v", head.StatusCode, head.Header)
	}
	tag := whole.Header.Get("ETag")
	for _, test := range []struct {
		header, value, tag string
		status, from, to   int
	}{
		{"Range", "bytes=1000000-", tag, http.StatusPartialContent, 1_000_000, len(whole.body)},
		{"Range", "bytes=-3000000", tag, http.StatusPartialContent, len(whole.body) - 3_000_000, len(whole.body)},
		{"Range", "bytes=5-5", tag, http.StatusPartialContent, 5, 6},
		{"Range", "bytes=5-", `"another"`, http.StatusOK, 0, len(whole.body)},
		{"Range", "bytes=0-0,9000000-9000001", tag, http.StatusOK, 0, len(whole.body)},
		{"If-None-Match", tag, "", http.StatusNotModified, 0, 0},
	} {
		if got := f.download(t, owner, http.MethodGet, path, test.header, test.value, "If-Range", test.tag); got.StatusCode != test.status || !bytes.Equal(got.body, whole.body[test.from:test.to]) {
			t.Errorf("%s: %s: %d, %d bytes", test.header, test.value, got.StatusCode, len(got.body))
		}
	}
	file := func(token, name string) download {
		return f.download(t, token, http.MethodGet, path+"?path="+url.QueryEscape(name))
	}
	page := file(owner, "page.html")
	checkSafe(page, "text/html", "page.html")
	if string(page.body) != "<script>alert(1)</script>" || !bytes.Equal(file(owner, "data.bin").body, large) {
		t.Errorf("the page is %s", page.body)
	}
	for _, name := range []string{"", "../page.html", "/etc/passwd", "sub", "sub/../page.html", "./page.html", "page.html/", "page.html\x00", "..%2fpage.html", a.GetManifest(), a.GetDigest()} {
		if got := file(owner, name); got.StatusCode != http.StatusNotFound {
			t.Errorf("path %q: %d %.100s", name, got.StatusCode, got.body)
		}
	}
	for _, query := range []string{"?paht=x", "?path=page.html&path=data.bin", "?digest=" + a.GetDigest()} {
		if got := f.download(t, owner, http.MethodGet, path+query); got.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %.100s", query, got.StatusCode, got.body)
		}
	}
	for _, name := range []string{"none", url.PathEscape(a.GetDigest()), url.PathEscape(a.GetManifest()), "..%2fapp"} {
		if got := f.download(t, owner, http.MethodGet, strings.TrimSuffix(path, "app")+name); got.StatusCode < http.StatusBadRequest {
			t.Errorf("%s: %d", name, got.StatusCode)
		}
	}
	first := answer(t, f.client.ListArtifactFiles, &v1.ListArtifactFilesRequest{Id: run, Task: "build", Name: "app", PageSize: 2})
	rest := answer(t, f.client.ListArtifactFiles, &v1.ListArtifactFilesRequest{Id: run, Task: "build", Name: "app", PageSize: 2, PageToken: first.GetNextPageToken()})
	var listed []string
	for _, file := range append(first.GetItems(), rest.GetItems()...) {
		listed = append(listed, fmt.Sprint(file.GetPath(), " ", file.GetSize()))
	}
	if want := []string{fmt.Sprint("data.bin ", len(large)), "page.html 25", "sub/empty 0"}; !slices.Equal(listed, want) || len(first.GetItems()) != 2 || rest.GetNextPageToken() != "" {
		t.Errorf("the lists are %v and %v", first, rest)
	}
	if shown := first.GetArtifact(); shown.GetDigest() != a.GetDigest() || shown.GetManifest() != "" {
		t.Errorf("the list is of %v", shown)
	}
	refused(t, "an unknown artifact", f.client.ListArtifactFiles, &v1.ListArtifactFilesRequest{Id: run, Task: "build", Name: "none"}, connect.CodeNotFound)
	refused(t, "the files of another user", f.dialAs(t, other).ListArtifactFiles, &v1.ListArtifactFilesRequest{Id: run, Task: "build", Name: "app"}, connect.CodeNotFound)
	// A run of another user is answered like one that does not exist, and so is one of its files.
	for _, query := range []string{"", "?path=page.html"} {
		unknown := f.download(t, other, http.MethodGet, strings.Replace(path, run, "files-none", 1)+query)
		got := f.download(t, other, http.MethodGet, path+query)
		if got.StatusCode != http.StatusNotFound || strings.ReplaceAll(string(got.body), run, "files-none") != string(unknown.body) {
			t.Errorf("another user: %d %s, want %s", got.StatusCode, got.body, unknown.body)
		}
	}
	// Nothing that clients read has the key in the store.
	for _, path := range []string{"/v1/runs/" + run, "/v1/runs/" + run + "?brief=true", "/v1/runs/" + run + "/tasks/build", "/v1/runs/" + run + "/tasks"} {
		if got := f.download(t, owner, http.MethodGet, path); !strings.Contains(string(got.body), a.GetDigest()) || strings.Contains(string(got.body), a.GetManifest()) {
			t.Errorf("%s: %d %s", path, got.StatusCode, got.body)
		}
	}
	// The files of an open run stay, even if they have expired.
	a.ExpiresAt = timestamppb.New(time.Now().Add(-time.Minute))
	set(t, run, "build", 1, &v1.Task{State: v1.TaskCompleted, Result: &v1.TaskResult{Artifacts: []*v1.Artifact{a}}})
	if got := f.download(t, owner, http.MethodGet, path); got.StatusCode != http.StatusOK {
		t.Errorf("of the open run: %d %s", got.StatusCode, got.body)
	}
	end(t, run, v1.RunCompleted)
	eventually(t, "the run has ended", func() bool { return v1.IsRunTerminal(f.get(t, run).GetState()) })
	want := fmt.Sprintf("artifact app of task build of run %s expired at %s (artifacts.keep); `switchyard runs retry %s --from build` runs the task again", run, a.GetExpiresAt().AsTime().Format(time.RFC3339), run)
	if got := f.download(t, owner, http.MethodGet, path); got.StatusCode != http.StatusNotFound || !strings.Contains(string(got.body), want) {
		t.Errorf("of the ended run: %d %s", got.StatusCode, got.body)
	}
	refused(t, "files that have expired", f.client.ListArtifactFiles, &v1.ListArtifactFilesRequest{Id: run, Task: "build", Name: "app"}, connect.CodeNotFound)
}

// TestPageShowsArtifacts reads the page of an artifact with hostile names, and the previews and downloads of its files.
func TestPageShowsArtifacts(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	owner, _ := f.token(t, "carol", v1.RoleUser)
	other, _ := f.token(t, "dave", v1.RoleUser)
	f.client = f.dialAs(t, owner)
	run := f.submit(t, "files")
	odd := "a\u202e\x1b[31m\n<img src=x onerror=alert(1)>&?#%2e.txt"
	png := []byte("\x89PNG\r\n\x1a\nrest")
	script := []byte("<html><script>alert(1)</script></html>")
	files := map[string][]byte{
		odd: []byte("odd\n"), "page.html": script, "page": script, "page.js": script, "picture.png": png, "picture.html": png, "drawing.svg": []byte("<svg/>"),
		"data.bin": {0, 1, 2}, "large.txt": bytes.Repeat([]byte("x"), 5<<20+1),
	}
	a := f.leaveArtifact(t, run, "build", files)
	path := "/ui/runs/" + run + "/tasks/build/artifacts/app"
	var page download
	eventually(t, "the artifact is there", func() bool {
		page = f.download(t, owner, http.MethodGet, path)
		return page.StatusCode == http.StatusOK
	})
	if text := string(page.body); !strings.Contains(text, a.GetDigest()) || !strings.Contains(text, "&lt;img") || strings.Contains(text, "<img") || strings.ContainsAny(text, "\u202e\x1b") || !strings.Contains(text, "5.0 MiB in 9 files") {
		t.Errorf("the page is %s", text)
	}
	for name, want := range map[string]struct {
		status int
		kind   string
	}{
		odd: {200, "text/plain; charset=utf-8"}, "page.html": {200, "text/html; charset=utf-8"}, "page": {200, "text/plain; charset=utf-8"}, "page.js": {200, "text/plain; charset=utf-8"},
		"picture.png": {200, "image/png"}, "picture.html": {200, "image/png"}, "drawing.svg": {200, "image/svg+xml"},
		"data.bin": {415, "text/plain; charset=utf-8"}, "large.txt": {413, "text/plain; charset=utf-8"}, "none": {404, "text/plain; charset=utf-8"}, "": {404, "text/plain; charset=utf-8"},
	} {
		query := "?file=" + url.QueryEscape(name)
		got := f.download(t, owner, http.MethodGet, path+"/preview"+query)
		policy := got.Header.Get("Content-Security-Policy")
		if got.StatusCode != want.status || got.Header.Get("Content-Type") != want.kind || got.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(policy, "sandbox; default-src 'none';") || strings.Contains(policy, "allow-") {
			t.Errorf("the preview of %q: %d %v %.100s", name, got.StatusCode, got.Header, got.body)
		}
		if want.status == 200 && !bytes.Equal(got.body, files[name]) {
			t.Errorf("the preview of %q is %.100q", name, got.body)
		}
		if frame := f.download(t, owner, http.MethodGet, path+query); name != "" && !strings.Contains(string(frame.body), `<iframe class="preview" sandbox src="`) {
			t.Errorf("the page of %q has no sandboxed frame: %.3000s", name, frame.body)
		}
		if name == "" || name == "none" {
			continue
		}
		file := f.download(t, owner, http.MethodGet, path+"/download"+query)
		if file.StatusCode != http.StatusOK || !bytes.Equal(file.body, files[name]) || !strings.HasPrefix(file.Header.Get("Content-Disposition"), "attachment") || file.Header.Get("Content-Security-Policy") != "sandbox" {
			t.Errorf("the download of %q: %d %v", name, file.StatusCode, file.Header)
		}
		if part := f.download(t, owner, http.MethodGet, path+"/download"+query, "Range", "bytes=1-1"); part.StatusCode != http.StatusPartialContent || !bytes.Equal(part.body, files[name][1:2]) {
			t.Errorf("a range of %q: %d %.100q", name, part.StatusCode, part.body)
		}
	}
	if whole := f.download(t, owner, http.MethodGet, path+"/download"); whole.Header.Get("Content-Type") != "application/x-tar" || !bytes.Equal(whole.body, f.download(t, owner, http.MethodGet, strings.Replace(path, "/ui/", "/v1/", 1)).body) {
		t.Errorf("the archive has the headers %v", whole.Header)
	}
	for _, below := range []string{"", "/download", "/preview?file=page.html"} {
		if got := f.download(t, other, http.MethodGet, path+below); got.StatusCode != http.StatusNotFound || strings.Contains(string(got.body), "alert") {
			t.Errorf("another user gets %q: %d %s", below, got.StatusCode, got.body)
		}
	}
}
