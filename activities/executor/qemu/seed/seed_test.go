package seed

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/ssh"
)

// newKey returns a private key as PEM, and its public key in one line.
func newKey(t *testing.T) (private, public string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block)), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}

// read returns the files of a seed.
func read(t *testing.T, path string) map[string]string {
	t.Helper()
	image, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	info, err := image.Stat()
	if err != nil {
		t.Fatal(err)
	}
	cd, err := iso9660.Read(file.New(image, true), info.Size(), 0, blockSize)
	if err != nil {
		t.Fatal(err)
	}
	if label := strings.TrimSpace(cd.Label()); label != "cidata" {
		t.Errorf("the label is %q, by which cloud-init finds no seed", label)
	}
	entries, err := cd.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		opened, err := cd.OpenFile(entry.Name(), os.O_RDONLY)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(opened)
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(text)
	}
	return files
}

func TestSeedRoundTrips(t *testing.T) {
	host, hostPublic := newKey(t)
	_, key := newKey(t)
	key += ` who: "me" # \ 'it'`
	for _, test := range []struct {
		name string
		seed Seed
		want map[string]any
	}{
		{"root", Seed{InstanceID: "a1", Hostname: "build-1", AuthorizedKeys: []string{key}}, map[string]any{
			"hostname": "build-1", "disable_root": false, "ssh_pwauth": false, "manage_etc_hosts": "localhost",
			"users": []any{map[string]any{"name": "root", "lock_passwd": true, "ssh_authorized_keys": []any{key}}},
		}},
		{"a user and a host key", Seed{
			InstanceID: "a1", Hostname: "yes", User: "on", AuthorizedKeys: []string{key, hostPublic}, HostKey: host, HostKeyPublic: hostPublic,
		}, map[string]any{
			"hostname": "yes", "disable_root": true, "ssh_pwauth": false, "manage_etc_hosts": "localhost",
			"users": []any{map[string]any{
				"name": "on", "lock_passwd": true, "ssh_authorized_keys": []any{key, hostPublic}, "shell": "/bin/bash",
				"sudo": "ALL=(ALL) NOPASSWD:ALL",
			}},
			"ssh_keys": map[string]any{"ed25519_private": host, "ed25519_public": hostPublic},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "seed.iso")
			if err := Write(path, test.seed); err != nil {
				t.Fatal(err)
			}
			files := read(t, path)
			if !strings.HasPrefix(files["user-data"], "#cloud-config\n") {
				t.Errorf("cloud-init ignores user-data that begins otherwise:\n%s", files["user-data"])
			}
			var user, meta map[string]any
			if err := yaml.Unmarshal([]byte(files["user-data"]), &user); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, user); diff != "" {
				t.Errorf("user-data (-want +got):\n%s", diff)
			}
			if err := yaml.Unmarshal([]byte(files["meta-data"]), &meta); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]any{"instance-id": "a1", "local-hostname": test.seed.Hostname}, meta); diff != "" {
				t.Errorf("meta-data (-want +got):\n%s", diff)
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode() != 0o600 || info.Size() > 1<<20 {
				t.Errorf("the seed has %v of %d bytes, %v", info.Mode(), info.Size(), err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
				t.Errorf("beside the seed there are %v, %v", left, err)
			}
		})
	}
}

func TestSeedThatIsWrongLeavesNoFile(t *testing.T) {
	_, key := newKey(t)
	good := Seed{InstanceID: "a", Hostname: "a", AuthorizedKeys: []string{key}}
	for name, change := range map[string]func(*Seed){
		"instance id ":       func(s *Seed) { s.InstanceID = "a\nb" },
		"host name ":         func(s *Seed) { s.Hostname = "a.b" },
		"host name":          func(s *Seed) { s.Hostname = "" },
		"user ":              func(s *Seed) { s.User = "a b" },
		"has no public key":  func(s *Seed) { s.AuthorizedKeys = nil },
		"public key ":        func(s *Seed) { s.AuthorizedKeys = []string{key + "\n" + key} },
		"only one half":      func(s *Seed) { s.HostKey = "x" },
		"more than one line": func(s *Seed) { s.HostKey, s.HostKeyPublic = "x", key+"\n"+key },
	} {
		s := good
		change(&s)
		dir := t.TempDir()
		err := Write(filepath.Join(dir, "seed"), s)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one with %q", err, name)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%s leaves %v, %v", name, left, err)
		}
	}
}

func TestSeedReplacesNoFile(t *testing.T) {
	_, key := newKey(t)
	path := filepath.Join(t.TempDir(), "seed")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, Seed{InstanceID: "a", Hostname: "a", AuthorizedKeys: []string{key}}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v, want that the file exists", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
		t.Errorf("the file has %q, %v", text, err)
	}
}
