package credentials

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"switchyard/cli/exit"
)

// maxFile bounds a file with tokens, in bytes.
const maxFile = 1 << 20

// Path returns the file of a user's tokens, or "" if the environment names no folder for it.
func Path(getenv func(string) string) string {
	// The XDG specification says to ignore a relative path.
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		if getenv("HOME") == "" {
			return ""
		}
		dir = filepath.Join(getenv("HOME"), ".config")
	}
	return filepath.Join(dir, "switchyard", "credentials.json")
}

// contents is the JSON form of the file.
type contents struct {
	// Gateways maps the URL of a gateway to its entry.
	Gateways map[string]entry `json:"gateways"`
}

type entry struct {
	Token string `json:"token"`
}

// Load returns the token for the gateway at a URL, or "" if the file has none. path may be "".
func Load(path, gateway string) (token string, err error) {
	if path == "" {
		return "", nil
	}
	all, err := read(path)
	return all.Gateways[gateway].Token, err
}

// Save stores the token for the gateway at a URL. It deletes the token if token is "".
func Save(path, gateway, token string) error {
	if path == "" {
		return &exit.Error{Code: exit.CodeUsage, Err: errors.New("there is no folder for credentials: HOME and XDG_CONFIG_HOME are not set"), Hint: "set SWITCHYARD_TOKEN, or name a file with --token-file"}
	}
	all, err := read(path)
	if err != nil {
		return err
	}
	if all.Gateways == nil {
		all.Gateways = map[string]entry{}
	}
	if token == "" {
		delete(all.Gateways, gateway)
	} else {
		all.Gateways[gateway] = entry{Token: token}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("save credentials: %w", err)
	}
	return write(path, append(text, '\n'))
}

// write atomically replaces a file with one that only its owner can read.
func write(path string, text []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("save credentials: %w", err)
		}
	}()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), ".credentials-") // created with mode 0600
	if err != nil {
		return err
	}
	_, err = fresh.Write(text)
	if err = errors.Join(err, fresh.Close()); err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(fresh.Name()))
	}
	return err
}

func read(path string) (contents, error) {
	var all contents
	text, err := readPrivate(path, aToken)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return all, err
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return all, exit.Usagef("%s is not a valid credentials file: %w; remove it and run `switchyard login` again", path, err)
	}
	return all, nil
}

// ReadToken returns the token that is the only content of a file.
func ReadToken(path string) (string, error) {
	text, err := readPrivate(path, aToken)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", exit.Usagef("%s must contain one token and nothing else", path)
	}
	return token, nil
}

// ReadPassphrase returns the pass phrase in a file, without a line end. Only the owner of the file may read it.
func ReadPassphrase(path string) (string, error) {
	text, err := readPrivate(path, private{"a pass phrase", "choose another pass phrase if it may have been read"})
	return strings.TrimRight(string(text), "\r\n"), err
}

// private is what a file contains that only its owner may read, and what to do if others have.
type private struct{ what, remedy string }

var aToken = private{"a token", "revoke the token if it may have been read: `switchyard tokens revoke`"}

// readPrivate returns the content of a file that only its owner may read.
func readPrivate(path string, p private) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, &exit.Error{Code: exit.CodeUsage, Err: fmt.Errorf("read %s: %w", p.what, err)}
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.what, err)
	}
	if isPublic(info) {
		return nil, &exit.Error{
			Code: exit.CodeUsage, Err: fmt.Errorf("other users can read %s (mode %04o), which contains %s", path, info.Mode().Perm(), p.what),
			Hint: "chmod 600 " + path + ", and " + p.remedy,
		}
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.what, err)
	}
	return text, nil
}
