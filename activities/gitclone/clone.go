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
	"sync"
	"time"

	"switchyard/activities/secrets/mask"
)

// These are in the chain of the error of Into: the repository lacks the commit, there is no repository, its server does not take the
// secret, or has not answered.
var (
	ErrNoRef        = errors.New("the repository has no such branch or tag, nor a commit with this full id")
	ErrNoRepository = errors.New("there is no such repository, or not for this secret")
	ErrDenied       = errors.New("the server refuses the secret, or needs one")
	ErrSilent       = errors.New("the server does not answer")
)

// causes are the errors by what git and ssh say. The first that fits counts.
var causes = []struct {
	text string
	err  error
}{
	{"couldn't find remote ref", ErrNoRef},
	{"not our ref", ErrNoRef},
	{"could not read Username", ErrDenied},
	{"could not read Password", ErrDenied},
	{"Authentication failed", ErrDenied},
	{"Permission denied", ErrDenied},
	{"does not appear to be a git repository", ErrNoRepository},
	{"does not exist", ErrNoRepository},
	{"not found", ErrNoRepository},
}

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
	// Progress is called from time to time while git runs. It may be nil.
	Progress func()
	// Silence is how long git may say nothing before it is ended. 0 means a minute.
	Silence time.Duration
}

const (
	// waitDelay bounds how long git may take to end once it is to stop.
	waitDelay = 5 * time.Second
	// maxMessage bounds what is kept of the messages of git, in bytes.
	maxMessage = 4 << 10
	// defaultSilence is the silence of a server after which it counts as gone.
	defaultSilence = time.Minute
	// progressInterval is the time between two calls of Progress.
	progressInterval = time.Second
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
	env := append(os.Environ(), "GIT_ALLOW_PROTOCOL="+protocols, "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "LC_ALL=C",
		"GIT_HTTP_LOW_SPEED_LIMIT=1", "GIT_HTTP_LOW_SPEED_TIME=120") // ends what a killed worker has left
	ssh := "ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new -o ConnectTimeout=30 -o ServerAliveInterval=30"
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env, cmd.WaitDelay = env, waitDelay
	ownGroup(cmd)
	var out bytes.Buffer
	said := &message{}
	cmd.Stdout, cmd.Stderr = &out, said
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		c.watch(ctx, said, cancel)
	}()
	err := cmd.Run()
	cause := context.Cause(ctx)
	cancel(nil)
	<-watched
	switch {
	case err == nil:
		return out.String(), nil
	case errors.Is(cause, ErrSilent):
		return "", fmt.Errorf("%s: %w", c.URL, cause)
	case cause != nil:
		return "", cause
	}
	text := mask.New([]string{strings.TrimSpace(c.Secret)}).Text(said.String())
	for _, known := range causes {
		if strings.Contains(text, known.text) {
			err = known.err
			break
		}
	}
	return "", fmt.Errorf("git: %w: %s", err, text)
}

// watch calls Progress until ctx ends. It cancels ctx if git says nothing for too long.
func (c Clone) watch(ctx context.Context, said *message, cancel context.CancelCauseFunc) {
	limit := cmp.Or(c.Silence, defaultSilence)
	ticks := time.NewTicker(min(progressInterval, limit))
	defer ticks.Stop()
	for last, at := -1, time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case now := <-ticks.C:
			if c.Progress != nil {
				c.Progress()
			}
			if n := said.count(); n != last {
				last, at = n, now
			} else if now.Sub(at) > limit {
				cancel(fmt.Errorf("%w for %s", ErrSilent, limit))
			}
		}
	}
}

// message keeps the last lines of what git says. It is safe for concurrent use.
type message struct {
	mu   sync.Mutex
	kept []byte
	n    int
}

// Write implements io.Writer.
func (m *message) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n += len(p)
	m.kept = append(m.kept, p...)
	m.kept = m.kept[max(0, len(m.kept)-maxMessage):]
	return len(p), nil
}

// count returns how many bytes git has said.
func (m *message) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n
}

// String returns the lines in one, without those about progress, which end in a carriage return.
func (m *message) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []string
	for line := range strings.Lines(string(m.kept)) {
		line = line[strings.LastIndexByte(strings.TrimRight(line, "\r\n"), '\r')+1:]
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
