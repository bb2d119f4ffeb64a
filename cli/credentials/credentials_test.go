package credentials

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTokensAreKeptByGateway(t *testing.T) {
	path := Path(func(name string) string {
		return map[string]string{"XDG_CONFIG_HOME": filepath.Join(os.TempDir(), "relative-is-ignored", t.Name()), "HOME": "/home/ann"}[name]
	})
	if !strings.HasSuffix(path, filepath.Join(t.Name(), "switchyard", "credentials.json")) {
		t.Fatal(path)
	}
	path = filepath.Join(t.TempDir(), "new", "credentials.json")
	for gateway, token := range map[string]string{"http://a:7280": "sy_a", "http://b:7280": "sy_b"} {
		if err := Save(path, gateway, token); err != nil {
			t.Fatal(err)
		}
	}
	if err := Save(path, "http://a:7280", ""); err != nil {
		t.Fatal(err)
	}
	for gateway, want := range map[string]string{"http://a:7280": "", "http://b:7280": "sy_b", "https://b:7280": ""} {
		if token, err := Load(path, gateway); err != nil || token != want {
			t.Errorf("%s: %q, %v", gateway, token, err)
		}
	}
	for _, made := range []string{path, filepath.Dir(path)} {
		if info, err := os.Stat(made); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", made, info.Mode(), err)
		}
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, "http://b:7280"); err == nil || !strings.Contains(err.Error(), "other users can read") {
		t.Errorf("a file that others read: %v", err)
	}
}

func TestTokenFileHoldsOneToken(t *testing.T) {
	for text, says := range map[string]string{"sy_a\n": "", "": "one token", "sy_a\nsy_b\n": "one token", "Bearer sy_a": "one token"} {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		token, err := ReadToken(path)
		if says == "" && (err != nil || token != "sy_a") || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: %q, %v", text, token, err)
		}
		if err != nil && strings.Contains(err.Error(), "sy_") {
			t.Errorf("the error has the token: %v", err)
		}
	}
}
