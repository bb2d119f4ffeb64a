package container

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"switchyard/activities/executor"
)

// defaultPath is the search path of programs in an image that sets no PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// commandChecks remembers which programs exist in which images. An engine does not notice a missing
// program before it runs the container's init process, and init then ends with an exit code that
// the program itself might return. So the executor checks before it starts the container.
type commandChecks struct {
	docker *client.Client

	mu    sync.Mutex
	known map[string]error // by image, program, and the PATH and directory in which it is looked up
}

// maxCommandChecks bounds the number of remembered results.
const maxCommandChecks = 1000

// checkCommand returns a *StartError if a created container lacks the program that it is to run, or the interpreter that its
// command asks for. If the check is inconclusive, it leaves the decision to the engine.
func (c *commandChecks) checkCommand(ctx context.Context, r request, m made, id string) error {
	choice := m.program.Choice()
	if choice == "" {
		return c.checkProgram(ctx, r, m, id, "")
	}
	for _, name := range m.program.Names() {
		err := c.checkProgram(ctx, r, m, id, name)
		if start := executor.AsStartError(err); start != nil {
			return &executor.StartError{ExitCode: start.ExitCode, BadSpec: true, Err: fmt.Errorf(
				"%s names an interpreter that does not run (%w); use an image that has it, or name another interpreter", choice, start.Err)}
		}
	}
	return nil
}

// checkProgram checks a program that a created container is to run, or its first one if name is "".
func (c *commandChecks) checkProgram(ctx context.Context, r request, m made, id, name string) error {
	key := strings.Join([]string{
		r.image, name, firstWord(m.config.Entrypoint), firstWord(m.config.Cmd), r.attempt.Env["PATH"], r.spec.GetWorkingDirectory(),
	}, "\x00")
	// Mounts may hold the program, and they are not part of the image.
	remember := r.image != "" && len(r.spec.GetMounts()) == 0
	if remember {
		c.mu.Lock()
		err, known := c.known[key]
		c.mu.Unlock()
		if known {
			return err
		}
	}
	found, sure := c.findProgram(ctx, id, name)
	if remember && sure {
		c.mu.Lock()
		if len(c.known) >= maxCommandChecks || c.known == nil {
			c.known = map[string]error{}
		}
		c.known[key] = found
		c.mu.Unlock()
	}
	return found
}

// findProgram looks for a program in a created container, or for its first one if name is "". sure reports whether the result is
// conclusive.
func (c *commandChecks) findProgram(ctx context.Context, id, name string) (err error, sure bool) {
	found, inspectErr := c.docker.ContainerInspect(ctx, id)
	if inspectErr != nil || found.Config == nil || found.Path == "" {
		return nil, false
	}
	if name == "" {
		name = found.Path
	}
	if strings.Contains(name, "/") {
		return c.checkRunnable(ctx, id, name, path.Join("/", found.Config.WorkingDir, name))
	}
	for _, dir := range strings.Split(pathOf(found.Config), ":") {
		err, sure := c.checkRunnable(ctx, id, name, path.Join("/", dir, name))
		if err == nil || !sure {
			return nil, sure
		}
	}
	return errNoProgram(name), true
}

func firstWord(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

func pathOf(c *container.Config) string {
	for _, entry := range c.Env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			return value
		}
	}
	return defaultPath
}

func errNoProgram(name string) error {
	return &executor.StartError{ExitCode: codeNotFound, Err: fmt.Errorf("%s: no such program in the image", shorten(name))}
}

// maxLinks bounds the number of links followed to a program.
const maxLinks = 10

// checkRunnable checks that a file in a container is an executable program. sure reports whether the
// result is conclusive.
func (c *commandChecks) checkRunnable(ctx context.Context, id, name, at string) (err error, sure bool) {
	if path.IsAbs(name) {
		at = name
	}
	for range maxLinks {
		info, err := c.docker.ContainerStatPath(ctx, id, at)
		switch {
		case cerrdefs.IsNotFound(err):
			return errNoProgram(name), true
		case err != nil:
			return nil, false
		case info.Mode&fs.ModeSymlink != 0:
			if info.LinkTarget == "" || info.LinkTarget == at {
				return nil, false
			}
			at = path.Join(path.Dir(at), info.LinkTarget)
			if path.IsAbs(info.LinkTarget) {
				at = info.LinkTarget
			}
		case info.Mode.IsDir():
			return errCannotRun(fmt.Errorf("%s is a directory", shorten(name))), true
		case info.Mode.Perm()&0o111 == 0:
			return errCannotRun(fmt.Errorf("%s may not be executed", shorten(name))), true
		default:
			return nil, true
		}
	}
	return nil, false
}

// shorten truncates a command, which may be a whole script, for an error message.
func shorten(name string) string {
	const most = 200
	if len(name) <= most {
		return name
	}
	return name[:most] + "..."
}
