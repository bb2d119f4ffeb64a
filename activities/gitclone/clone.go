package gitclone

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"switchyard/activities/secrets/mask"
)

// ErrNoRef is in the chain of the error of Into if the repository has no such branch, tag or commit.
var ErrNoRef = errors.New("the repository has no such branch, tag or commit")

// Clone is a commit to fetch.
type Clone struct {
	// URL has one of the schemes https, http, ssh, git and file, or the form user@host:path.
	URL string
	// Ref is a branch, a tag or a full commit id. Empty means the default branch.
	Ref string
	// Secret is a private SSH key, or for https and http a password. It may be empty.
	Secret string
	// AllowsFile permits the scheme file, which reads from this machine.
	AllowsFile bool
	// Progress is called whenever git reports progress.
	Progress func()
}

const (
	// waitDelay bounds how long git may take to end once it is to stop.
	waitDelay = 5 * time.Second
	// maxMessage bounds what is kept of the messages of git, in bytes.
	maxMessage = 4 << 10
	// tokenUser is the user of a token for https if the URL names none. The hosts of repositories ignore it.
	tokenUser = "x-access-token"
)

// Into writes the files of the commit into dir, an empty folder, and returns the id of the commit. It writes keys to scratch, another
// empty folder that only this user may enter. Errors have the message of git, without the secret.
func (c Clone) Into(ctx context.Context, dir, scratch string) (commit string, err error) {
	env, err := c.environment(scratch)
	if err != nil {
		return "", err
	}
	repository := filepath.Join(scratch, "repository")
	git := func(args ...string) (string, error) {
		return c.run(ctx, env, append([]string{"--git-dir=" + repository, "--work-tree=" + dir}, args...)...)
	}
	if _, err := git("init", "-q", "--template="); err != nil {
		return "", err
	}
	if _, err := git("fetch", "--progress", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", c.URL, cmp.Or(c.Ref, "HEAD")); err != nil {
		return "", err
	}
	if _, err := git("checkout", "--progress", "--detach", "FETCH_HEAD"); err != nil {
		return "", err
	}
	commit, err = git("rev-parse", "HEAD")
	return strings.TrimSpace(commit), err
}

// environment returns the environment of git, in which it asks no questions and uses the secret.
func (c Clone) environment(scratch string) ([]string, error) {
	protocols := "https:http:ssh:git"
	if c.AllowsFile {
		protocols += ":file"
	}
	env := append(os.Environ(), "GIT_ALLOW_PROTOCOL="+protocols, "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "LC_ALL=C")
	ssh := "ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new"
	switch u, err := url.Parse(c.URL); {
	case c.Secret == "":
	case err == nil && (u.Scheme == "https" || u.Scheme == "http"):
		user := cmp.Or(u.User.Username(), tokenUser)
		// Git and curl send the header to this host only, also if the server redirects.
		env = append(env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http."+u.Scheme+"://"+u.Host+"/.extraHeader",
			"GIT_CONFIG_VALUE_0=Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+strings.TrimSpace(c.Secret))))
	default:
		key := filepath.Join(scratch, "key")
		if err := os.WriteFile(key, []byte(strings.TrimSpace(c.Secret)+"\n"), 0o600); err != nil {
			return nil, err
		}
		ssh += ` -o IdentitiesOnly=yes -i "` + key + `"`
	}
	return append(env, "GIT_SSH_COMMAND="+ssh), nil
}

// run runs git and returns what it prints.
func (c Clone) run(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env, cmd.WaitDelay = env, waitDelay
	var out bytes.Buffer
	said := &message{progress: c.Progress}
	cmd.Stdout, cmd.Stderr = &out, said
	err := cmd.Run()
	if err == nil {
		return out.String(), nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	text := mask.New([]string{strings.TrimSpace(c.Secret)}).Text(said.String())
	if strings.Contains(text, "couldn't find remote ref") || strings.Contains(text, "not our ref") {
		err = ErrNoRef
	}
	return "", fmt.Errorf("git: %w: %s", err, text)
}

// message keeps the last lines of what git says.
type message struct {
	progress func()
	kept     []byte
}

// Write implements io.Writer.
func (m *message) Write(p []byte) (int, error) {
	if m.progress != nil {
		m.progress()
	}
	m.kept = append(m.kept, p...)
	m.kept = m.kept[max(0, len(m.kept)-maxMessage):]
	return len(p), nil
}

// String returns the lines in one, without those about progress, which end in a carriage return.
func (m *message) String() string {
	var lines []string
	for line := range strings.Lines(string(m.kept)) {
		line = line[strings.LastIndexByte(strings.TrimRight(line, "\r\n"), '\r')+1:]
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
