package secrets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/workflows/secretref"
)

// stored is a Store in memory.
type stored map[string]string

func (s stored) Value(_ context.Context, req ReleaseRequest) (string, error) {
	if value, ok := s[req.Name]; ok {
		return value, nil
	}
	if req.Name == "away" {
		return "", fmt.Errorf("ask the gateway: %w", ErrUnavailable)
	}
	return "", fmt.Errorf("there is no stored secret of this name (asked for by %s)", req.Task)
}

func resolver(allow ...string) *Resolver {
	list, err := ParseAllowlist(allow)
	if err != nil {
		panic(err)
	}
	return &Resolver{Allow: list, Store: stored{"deploy": "value-of-deploy", "nul": "a\x00b"}, Getenv: func(name string) (string, bool) {
		value, ok := map[string]string{"DEPLOY_A": "value-of-a", "EMPTY_A": "", "OTHER": "value-of-other"}[name]
		return value, ok
	}}
}

func resolve(t *testing.T, r *Resolver, text string) (string, error) {
	t.Helper()
	ref, fault := secretref.Parse(text)
	if fault != nil {
		t.Fatal(fault)
	}
	return r.Resolve(t.Context(), ref, Requester{Node: "n1", Task: "t"})
}

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file:" + path
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "plain"), link); err != nil {
		t.Fatal(err)
	}
	r := resolver("file:"+dir+"/*", "env:DEPLOY_*", "env:EMPTY_?")
	for text, want := range map[string]string{
		write("plain", "s3cret"):                             "s3cret",
		write("newline", "s3cret\n"):                         "s3cret",
		write("dos", "s3cret\r\n"):                           "s3cret",
		write("two", "s3cret\n\n"):                           "s3cret\n",
		write("lines", "a\nb\n"):                             "a\nb",
		write("return", "s3cret\r"):                          "s3cret\r",
		write("empty", ""):                                   "",
		write("large", strings.Repeat("x", MaxBytes)+"\r\n"): strings.Repeat("x", MaxBytes),
		"file:" + link:                                       "s3cret",
		"env:DEPLOY_A":                                       "value-of-a",
		"env:EMPTY_A":                                        "",
		"store:deploy":                                       "value-of-deploy",
	} {
		if got, err := resolve(t, r, text); err != nil || got != want {
			t.Errorf("%s: %.20q, %v", text, got, err)
		}
	}
}

func TestResolveRefusesByName(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file:" + path
	}
	r := resolver("file:"+dir+"/*", "env:DEPLOY_*")
	for text, want := range map[string]string{
		"file:" + dir + "/none":                        "no such file or directory",
		"file:" + dir + "/below/none":                  `node n1 does not allow it; start its worker with --allow-secret "file:` + dir + `/below/none", or use a stored secret`,
		"file:" + dir:                                  "does not allow it",
		"file:/etc/passwd":                             "does not allow it",
		"env:OTHER":                                    `node n1 does not allow it; start its worker with --allow-secret "env:OTHER", or use a stored secret`,
		"env:DEPLOY_NONE":                              "the worker of node n1 has no variable DEPLOY_NONE in its environment",
		"store:none":                                   "there is no stored secret of this name (asked for by t)",
		"store:nul":                                    "contains a NUL character",
		write("nul", "value-\x00of"):                   "contains a NUL character",
		write("bytes", "value-\xff"):                   "is not valid UTF-8",
		write("large", strings.Repeat("v", 1<<20)):     fmt.Sprintf("the file has %d bytes; the value of a secret may have %d", 1<<20, MaxBytes),
		write("more", strings.Repeat("v", MaxBytes+1)): fmt.Sprintf("has %d bytes; the value of a secret may have %d", MaxBytes+1, MaxBytes),
	} {
		got, err := resolve(t, r, text)
		if got != "" || err == nil || !strings.HasPrefix(err.Error(), "secret "+text) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "vv") || strings.Contains(err.Error(), "value-") {
			t.Errorf("%s: %.20q, %v; want %s", text, got, err, want)
		}
	}
	if _, err := resolve(t, r, "store:away"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("an unavailable store: %v", err)
	}
	if _, err := resolve(t, &Resolver{}, "store:deploy"); err == nil {
		t.Error("a node without a store has released a secret")
	}
}

func TestAllowlist(t *testing.T) {
	list, err := ParseAllowlist([]string{"file:/run/secrets/*", "file:/etc/key", "env:DEPLOY_*", "env:TOKEN"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"file:/run/secrets/a": true, "file:/run/secrets/a/b": false, "file:/run/secretsx": false, "file:/etc/key": true, "file:/etc/key2": false,
		"env:DEPLOY_A": true, "env:DEPLOY": false, "env:TOKEN": true, "env:TOKEN2": false,
	} {
		ref, _ := secretref.Parse(text)
		if list.Allows(ref) != want || !AllowAll().Allows(ref) || (Allowlist{}).Allows(ref) {
			t.Errorf("%s: %v", text, list.Allows(ref))
		}
		if ref.Kind == secretref.Env && list.Hides(ref.Name) != want || AllowAll().Hides(ref.Name) {
			t.Errorf("%s is hidden: %v", text, list.Hides(ref.Name))
		}
	}
	for text, want := range map[string]string{
		"TOKEN":                "is neither file:PATTERN nor env:PATTERN",
		"vault:x":              "is neither file:PATTERN nor env:PATTERN",
		"file:":                "is neither file:PATTERN nor env:PATTERN",
		"store:x":              "stored secrets need no entry",
		"file:secrets/*":       "the path must be absolute",
		"file:/run/../secrets": "the path must be absolute",
		"env:[":                "is not a pattern",
		"env:*":                "covers PATH",
		"env:P*":               "covers PATH",
	} {
		if _, err := ParseAllowlist([]string{text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}
