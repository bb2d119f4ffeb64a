package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCredentialsAreFoundByNameAndHost(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	write := func(dir, name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write(os.Getenv("DOCKER_CONFIG"), "config.json", `{"auths": {
		"https://index.docker.io/v1/": {"auth": "aHViOnNlY3JldDpodWI="}, "reg.example:5000": {"username": "u", "password": "p"},
		"https://token.example/v2/": {"identitytoken": "tok"}, "broken.example": {"auth": "c2VjcmV0"}},
		"credsStore": "desktop", "credHelpers": {"ecr.example": "ecr-login"}, "username": "not", "password": "these"}`)
	dir := t.TempDir()
	e := newFor(t, Options{RegistryAuth: map[string]string{
		"open":   write(dir, "open", `{"username": "open", "password": "secret"}`),
		"scheme": write(dir, "scheme", `{"username": "open", "password": "secret", "registry": "https://"}`),
		"bound":  write(dir, "bound", `{"username": "bound", "password": "secret", "registry": "https://a.example"}`),
		"docker": write(dir, "docker", `{"auths": {"a.example": {"auth": "YTpi"}}}`),
		"broken": write(dir, "broken", `username=secret`),
		"absent": filepath.Join(dir, "absent"),
	}})
	tests := map[string]struct {
		name, host     string
		user, password string
		token, helper  string
		err            string
	}{
		"hub":               {host: "docker.io", user: "hub", password: "secret:hub"},
		"with port":         {host: "reg.example:5000", user: "u", password: "p"},
		"token":             {host: "token.example", token: "tok"},
		"none":              {host: "other.example", helper: "desktop"},
		"helper":            {host: "ecr.example", helper: "ecr-login"},
		"broken entry":      {host: "broken.example", err: "is malformed"},
		"no registry":       {name: "open", host: "x.example", err: `add "registry": "HOST"`},
		"empty registry":    {name: "scheme", host: "x.example", err: `add "registry": "HOST"`},
		"bound":             {name: "bound", host: "a.example", user: "bound", password: "secret"},
		"bound elsewhere":   {name: "bound", host: "b.example", err: "only to registry a.example, and the image is on b.example"},
		"named docker":      {name: "docker", host: "a.example", user: "a", password: "b"},
		"named docker none": {name: "docker", host: "b.example", err: "has none for b.example"},
		"broken":            {name: "broken", host: "a.example", err: "is not JSON of the form"},
		"absent":            {name: "absent", host: "a.example", err: "no such file"},
		"unknown":           {name: "other", host: "a.example", err: "has no credentials named other: start the node with --registry-auth other=FILE; it has absent, bound, broken, docker, open, scheme"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := e.images.credentials(tt.name, tt.host)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "secret") {
					t.Fatalf("%v; it should say %q, and no secret", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.config.Username != tt.user || c.config.Password != tt.password || c.config.IdentityToken != tt.token || c.helper != tt.helper {
				t.Errorf("got %+v", c)
			}
		})
	}
}
