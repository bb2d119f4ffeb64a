package gitclone_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/activities/gitclone"
	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// repository creates a bare repository with two commits: the first has the tag v1 and the text one, the second is that of the branches
// main and next/step, and has the text two.
func repository(t *testing.T) (bare, first, second string) {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "text"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "-q", "-m", text)
	}
	git("init", "-q", "-b", "main")
	write("one")
	git("tag", "v1")
	first = git("rev-parse", "HEAD")
	write("two")
	git("branch", "next/step")
	bare = filepath.Join(t.TempDir(), "app.git")
	git("clone", "-q", "--bare", dir, bare)
	return bare, first, git("rev-parse", "HEAD")
}

// fetch fetches a commit and returns its text.
func fetch(t *testing.T, c gitclone.Clone) (text, commit string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	if commit, err = c.Into(ctx, dir, t.TempDir()); err != nil {
		return "", "", err
	}
	read, err := os.ReadFile(filepath.Join(dir, "text"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
		t.Error("the files have .git beside them")
	}
	return string(read), commit, nil
}

func TestRefsLeadToTheirCommits(t *testing.T) {
	t.Parallel()
	bare, first, second := repository(t)
	for ref, want := range map[string]string{"": second, "main": second, "next/step": second, "v1": first, first: first, "refs/tags/v1": first} {
		text, commit, err := fetch(t, gitclone.Clone{URL: "file://" + bare, Ref: ref, AllowsFile: true})
		if wantText := map[string]string{first: "one", second: "two"}[want]; err != nil || commit != want || text != wantText {
			t.Errorf("%q: %q of %s, %v", ref, text, commit, err)
		}
	}
	if _, _, err := fetch(t, gitclone.Clone{URL: "file://" + bare + "x", AllowsFile: true}); !errors.Is(err, gitclone.ErrNoRepository) {
		t.Errorf("no repository: %v", err)
	}
	for _, ref := range []string{"none", strings.Repeat("a", 40)} {
		if _, _, err := fetch(t, gitclone.Clone{URL: "file://" + bare, Ref: ref, AllowsFile: true}); !errors.Is(err, gitclone.ErrNoRef) {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

func TestURLsThatRunProgramsAreRefused(t *testing.T) {
	t.Parallel()
	bare, _, _ := repository(t)
	made := filepath.Join(t.TempDir(), "made")
	for _, url := range []string{"ext::sh -c touch% " + made, "--upload-pack=touch " + made, "file://" + bare} {
		if _, _, err := fetch(t, gitclone.Clone{URL: url}); err == nil {
			t.Errorf("%s is fetched", url)
		}
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("a program has run")
	}
}

// TestTokenOpensARepository serves a repository with a password. No error has the password.
func TestTokenOpensARepository(t *testing.T) {
	t.Parallel()
	bare, _, second := repository(t)
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(bare), "GIT_HTTP_EXPORT_ALL=1"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user == "" || password != "token-of-the-repository" {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "no: "+password, http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	defer server.Close()
	from := gitclone.Clone{URL: server.URL + "/app.git", Secret: "token-of-the-repository\n"}
	if text, commit, err := fetch(t, from); err != nil || text != "two" || commit != second {
		t.Errorf("%q of %s, %v", text, commit, err)
	}
	for _, secret := range []string{"", "another-token"} {
		from.Secret = secret
		if _, _, err := fetch(t, from); !errors.Is(err, gitclone.ErrDenied) || secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("with the token %q: %v", secret, err)
		}
	}
}

// TestSilentServerIsLeft reaches a server that never answers: git ends with all that it has started.
func TestSilentServerIsLeft(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
		asked <- struct{}{}
	}))
	defer server.Close()
	ticks := 0
	_, _, err := fetch(t, gitclone.Clone{URL: server.URL + "/app.git", Silence: 2 * time.Second, Progress: func() { ticks++ }})
	if !errors.Is(err, gitclone.ErrSilent) || !strings.Contains(err.Error(), server.URL) || ticks == 0 {
		t.Errorf("after %d ticks: %v", ticks, err)
	}
	for range 2 { // the request has come, and its connection is closed
		select {
		case <-asked:
		case <-time.After(20 * time.Second):
			t.Fatal("the program that speaks to the server is still there")
		}
	}
}

// fakeSSH takes the place of ssh: it runs the command here if the key is the right one.
const fakeSSH = `#!/bin/sh
for arg; do
	case $before in -i) key=$arg ;; esac
	before=$arg
done
[ "$(stat -c %a "$key")" = 600 ] && [ "$(cat "$key")" = "the key" ] || { echo "Permission denied (publickey)." >&2; exit 255; }
exec sh -c "$arg"
`

// TestKeyOpensARepository passes a key to ssh, for both forms of URLs.
func TestKeyOpensARepository(t *testing.T) {
	bare, _, second := repository(t)
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte(fakeSSH), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for _, url := range []string{"ssh://git@127.0.0.1" + bare, "git@127.0.0.1:" + bare} {
		if text, commit, err := fetch(t, gitclone.Clone{URL: url, Secret: "the key\n\n"}); err != nil || text != "two" || commit != second {
			t.Errorf("%s: %q of %s, %v", url, text, commit, err)
		}
		if _, _, err := fetch(t, gitclone.Clone{URL: url}); err == nil || !strings.Contains(err.Error(), "Permission denied") {
			t.Errorf("%s without a key: %v", url, err)
		}
	}
}
