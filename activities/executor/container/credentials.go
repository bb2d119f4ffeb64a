package container

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/registry"
)

// hubHost and hubKey are the names of the Docker Hub in image names and in Docker's
// configuration.
const (
	hubHost = "docker.io"
	hubKey  = "https://index.docker.io/v1/"
)

// credentials identify a caller to a registry.
type credentials struct {
	name   string // name under which the node keeps them, or "" for those of the Docker configuration
	host   string
	config registry.AuthConfig
	helper string // helper program that holds the credentials; it is not called
}

func (c credentials) isEmpty() bool { return c.config == (registry.AuthConfig{}) }

// authFile is a file with the credentials of one registry, or Docker's own config.json.
type authFile struct {
	Username string `json:"username"`
	Password string `json:"password"`
	// Registry is the only host that receives Username and Password. It is required with them, because a task chooses the
	// registry of its image.
	Registry string               `json:"registry"`
	Auths    map[string]authEntry `json:"auths"`
	Store    string               `json:"credsStore"`
	Helpers  map[string]string    `json:"credHelpers"`
}

type authEntry struct {
	Auth          string `json:"auth"` // base64 of username:password
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
}

// credentials returns the credentials for a registry: those with the name from the spec,
// or without a name those of the node's Docker configuration, which may be empty. It reads
// the files on each call, so that they can be replaced. Errors never contain the contents
// of the files.
func (st *imageStore) credentials(name, host string) (credentials, error) {
	if name == "" {
		return dockerCredentials(host)
	}
	path, ok := st.sources.registryAuth[name]
	if !ok {
		known := ""
		if len(st.sources.registryAuth) > 0 {
			known = "; it has " + strings.Join(slices.Sorted(maps.Keys(st.sources.registryAuth)), ", ")
		}
		return credentials{}, fmt.Errorf("%s has no credentials named %s: start the node with --registry-auth %s=FILE%s", hostname(), name, name, known)
	}
	file, err := readNamedAuthFile(path)
	if err != nil {
		return credentials{}, fmt.Errorf("credentials %s: %w", name, err)
	}
	c, err := file.credentialsFor(host)
	switch {
	case err != nil:
		return credentials{}, fmt.Errorf("credentials %s: %s: %w", name, path, err)
	case c.isEmpty():
		return credentials{}, fmt.Errorf("credentials %s: %s has none for %s", name, path, host)
	}
	c.name = name
	return c, nil
}

// dockerCredentials returns the credentials that docker login stored on the node.
func dockerCredentials(host string) (credentials, error) {
	dir := os.Getenv("DOCKER_CONFIG")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return credentials{host: host}, nil
		}
		dir = filepath.Join(home, ".docker")
	}
	path := filepath.Join(dir, "config.json")
	file, err := readAuthFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return credentials{host: host}, nil
	}
	if err != nil {
		return credentials{}, fmt.Errorf("credentials of the Docker configuration: %w", err)
	}
	// Only a file named on the command line may have the short form.
	file.Username, file.Password = "", ""
	c, err := file.credentialsFor(host)
	if err != nil {
		return credentials{}, fmt.Errorf("credentials of the Docker configuration: %s: %w", path, err)
	}
	return c, nil
}

// CheckAuthFile returns an error unless a file holds credentials in a form that Options.RegistryAuth accepts. The error does
// not contain the contents of the file.
func CheckAuthFile(path string) error {
	_, err := readNamedAuthFile(path)
	return err
}

// readNamedAuthFile reads a file of Options.RegistryAuth.
func readNamedAuthFile(path string) (*authFile, error) {
	file, err := readAuthFile(path)
	if err == nil && (file.Username != "" || file.Password != "") && registryHost(file.Registry) == "" {
		return nil, fmt.Errorf(`%s has a username and a password, and no registry: add "registry": "HOST", such as ghcr.io, so that no other registry receives them`, path)
	}
	return file, err
}

// readAuthFile reads a file with credentials.
func readAuthFile(path string) (*authFile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file authFile
	if json.Unmarshal(data, &file) != nil { // the error of Unmarshal may quote the file
		return nil, fmt.Errorf(`%s is not JSON of the form {"username": ..., "password": ..., "registry": ...} or {"auths": ...}`, path)
	}
	return &file, nil
}

// credentialsFor returns the credentials for a registry, which are empty if the file has none.
func (f *authFile) credentialsFor(host string) (credentials, error) {
	c := credentials{host: host, config: registry.AuthConfig{ServerAddress: serverAddress(host)}}
	if f.Username != "" || f.Password != "" {
		if registryHost(f.Registry) != host {
			return credentials{}, fmt.Errorf("they apply only to registry %s, and the image is on %s", registryHost(f.Registry), host)
		}
		c.config.Username, c.config.Password = f.Username, f.Password
		return c, nil
	}
	for _, key := range slices.Sorted(maps.Keys(f.Auths)) {
		if registryHost(key) != host {
			continue
		}
		entry := f.Auths[key]
		c.config.Username, c.config.Password, c.config.IdentityToken = entry.Username, entry.Password, entry.IdentityToken
		if entry.Auth != "" {
			plain, err := base64.StdEncoding.DecodeString(entry.Auth)
			user, password, ok := strings.Cut(string(plain), ":")
			if err != nil || !ok {
				return credentials{}, fmt.Errorf("the entry for %s is malformed", host)
			}
			c.config.Username, c.config.Password = user, strings.TrimRight(password, "\x00")
		}
		if c.config.Username != "" || c.config.IdentityToken != "" {
			return c, nil
		}
	}
	none := credentials{host: host, helper: f.Store}
	for key, helper := range f.Helpers {
		if registryHost(key) == host {
			none.helper = helper
		}
	}
	return none, nil
}

// registryHost returns the registry host for a key in a Docker configuration.
func registryHost(key string) string {
	_, rest, isURL := strings.Cut(key, "://")
	if !isURL {
		rest = key
	}
	host, _, _ := strings.Cut(rest, "/")
	if host == "index.docker.io" || host == "registry-1.docker.io" {
		return hubHost
	}
	return host
}

// serverAddress returns the engine's name of a registry.
func serverAddress(host string) string {
	if host == hubHost {
		return hubKey
	}
	return host
}
