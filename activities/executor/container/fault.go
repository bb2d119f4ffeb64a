package container

import (
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"switchyard/activities/executor"
)

// Engines say in words what is wrong with a container. What follows is how Docker from
// 20.10 on, runc, crun and Podman put it.
var (
	// ofNode is what the node lacks, although the engine calls it a bad request.
	ofNode = []string{
		"bind source path does not exist",
		"error mounting",
		"requested cpus are not available",
		"requested memory nodes are not available",
		"could not select device driver",
		"docker-init",
		"no space left on device",
		"too many open files",
		"cannot allocate memory",
	}
	// notFound is a program that is not in the image.
	notFound = []string{"executable file not found", "executable file `"}
	// ofTask is what else of its spec the container cannot be started with, although the
	// engine calls some of it its own fault.
	ofTask = []string{
		"unable to find user",
		"unable to find group",
		"no matching entries in passwd file",
		"no matching entries in group file",
		"chdir to cwd",
		"cwd must be an absolute path",
		"permission denied: unknown",
		"exec format error",
		"argument list too long",
		"is a directory: unknown",
		"is not a directory",
		"rlimit",
		"only when connecting to networks with user configured subnets",
	}
)

// blame says whose fault it is that a container could not be made or started: a
// *StartError is the task's, any other error the node's.
func blame(what string, err error) error {
	if err == nil {
		return nil
	}
	text := strings.ToLower(err.Error())
	says := func(phrases []string) bool {
		for _, phrase := range phrases {
			if strings.Contains(text, phrase) {
				return true
			}
		}
		return false
	}
	told := fmt.Errorf("%s: %s", what, engineSays(err))
	switch {
	case says(ofNode):
	case says(notFound):
		return &executor.StartError{ExitCode: codeNotFound, Err: told}
	case says(ofTask), cerrdefs.IsInvalidArgument(err):
		return cannotRun(told)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// engineSays is the engine's error without what is said before each.
func engineSays(err error) string {
	return strings.TrimPrefix(err.Error(), "Error response from daemon: ")
}
