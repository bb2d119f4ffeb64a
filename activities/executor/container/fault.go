package container

import (
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"switchyard/activities/executor"
)

// Phrases in engines' error messages about a container, as used by Docker from 20.10 on,
// runc, crun and Podman.
var (
	// ofNode marks what the node lacks, although the engine reports a bad request.
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
	// notFound marks a program that is missing from the image.
	notFound = []string{"executable file not found", "executable file `"}
	// ofTask marks other faults of the spec, although the engine reports some of them as
	// its own.
	ofTask = []string{
		"unable to find user",
		"unable to find group",
		"no matching entries in passwd file",
		"no matching entries in group file",
		"chdir to cwd",
		"cwd must be an absolute path",
		"permission denied: unknown",
		"exec format error",
		"is a directory: unknown",
		"is not a directory",
		"rlimit",
		"only when connecting to networks with user configured subnets",
	}
)

// classifyFault classifies the error of creating or starting a container. It returns a
// *StartError for a fault of the task, and any other error for a fault of the node.
func classifyFault(what string, err error) error {
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
	told := fmt.Errorf("%s: %s", what, engineMessage(err))
	switch {
	case says(ofNode):
	case strings.Contains(text, executor.ArgumentsTooLong):
		return executor.TooLongError(what)
	case says(notFound):
		return &executor.StartError{ExitCode: codeNotFound, Err: told}
	case says(ofTask), cerrdefs.IsInvalidArgument(err):
		return errCannotRun(told)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// engineMessage returns the engine's error message without its common prefix.
func engineMessage(err error) string {
	return strings.TrimPrefix(err.Error(), "Error response from daemon: ")
}
