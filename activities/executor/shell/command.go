package shell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
)

// Exit codes of a program that cannot be started, as used by shells.
const (
	codeNotFound  = 127
	codeCannotRun = 126
)

// command holds the fields of a ShellSpec.
type command struct {
	// line is a text for an interpreter, or "" if argv is set.
	line string
	// shell is the value of the spec's field shell, or nil.
	shell *structpb.Value
	argv  []string
	dir   string
	// sandbox requests a sandbox, and nodeNetwork one with the node's network.
	sandbox, nodeNetwork bool
}

// Networks of a sandbox, as named in definitions.
const (
	networkNone = "none" // the default
	networkNode = "node"
)

// parseSpec parses a ShellSpec in JSON form. It rejects unknown fields rather than
// ignoring them, since they may come from a newer release and matter there.
func parseSpec(spec *structpb.Struct) (command, error) {
	var c command
	for name, value := range spec.GetFields() {
		switch name {
		case "command":
			if err := c.parseCommand(value); err != nil {
				return command{}, err
			}
		case "shell":
			c.shell = value
		case "workingDirectory", "working_directory":
			s, ok := value.GetKind().(*structpb.Value_StringValue)
			if !ok {
				return command{}, fmt.Errorf("%s is not a string", name)
			}
			c.dir = s.StringValue
		case "sandbox":
			b, ok := value.GetKind().(*structpb.Value_BoolValue)
			if !ok {
				return command{}, errors.New("sandbox is neither true nor false")
			}
			c.sandbox = b.BoolValue
		case "network":
			s, ok := value.GetKind().(*structpb.Value_StringValue)
			if !ok || s.StringValue != "" && s.StringValue != networkNone && s.StringValue != networkNode {
				return command{}, fmt.Errorf("network is neither %q nor %q", networkNone, networkNode)
			}
			c.nodeNetwork = s.StringValue == networkNode
		default:
			return command{}, fmt.Errorf("unknown field %s", name)
		}
	}
	if c.line == "" && len(c.argv) == 0 {
		return command{}, errors.New("command is empty")
	}
	// The definition cannot contain NUL, but the value of a ${{ }} expression in it can.
	switch {
	case hasNUL(c.line) || slices.ContainsFunc(c.argv, hasNUL):
		return command{}, errors.New("command contains a NUL character, which a program's arguments cannot hold")
	case hasNUL(c.dir):
		return command{}, errors.New("workingDirectory contains a NUL character, which is not valid in a path")
	}
	return c, nil
}

func hasNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }

func (c *command) parseCommand(value *structpb.Value) error {
	switch kind := value.GetKind().(type) {
	case *structpb.Value_StringValue:
		c.line = kind.StringValue
	case *structpb.Value_ListValue:
		for i, item := range kind.ListValue.GetValues() {
			word, ok := wordOf(item)
			if !ok {
				return fmt.Errorf("command[%d] is not a string", i)
			}
			c.argv = append(c.argv, word)
		}
		if len(c.argv) > 0 && c.argv[0] == "" {
			return errors.New("command[0] is empty")
		}
	default:
		return errors.New("command is neither a string nor a list of strings")
	}
	return nil
}

// wordOf returns a value as a word of a command. A template may have produced a number
// or a boolean.
func wordOf(value *structpb.Value) (string, bool) {
	switch kind := value.GetKind().(type) {
	case *structpb.Value_StringValue:
		return kind.StringValue, true
	case *structpb.Value_NumberValue:
		return strconv.FormatFloat(kind.NumberValue, 'f', -1, 64), true
	case *structpb.Value_BoolValue:
		return strconv.FormatBool(kind.BoolValue), true
	}
	return "", false
}

// directory returns the working directory of the program. It checks that the directory
// exists, since the error of a failed start does not distinguish a missing program from
// a missing directory.
func (c *command) directory(base string) (string, error) {
	dir := c.dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(base, dir)
	}
	if dir == "" {
		return "", nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("working directory: %s is not a directory", dir)
	}
	return dir, nil
}

// lookPath finds a program as the task itself would: in the PATH of the task's
// environment, resolving relative entries against its directory.
func lookPath(name, dir string, environ []string) (string, error) {
	if strings.ContainsRune(name, '/') {
		return name, nil
	}
	denied := false
	for _, entry := range filepath.SplitList(lookup(environ, "PATH")) {
		path := filepath.Join(entry, name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		info, err := os.Stat(path)
		if err != nil || info.IsDir() {
			continue
		}
		if info.Mode().Perm()&0o111 == 0 {
			denied = true
			continue
		}
		return path, nil
	}
	if denied {
		return "", &executor.StartError{ExitCode: codeCannotRun, Err: fmt.Errorf("%s: permission denied", name)}
	}
	return "", &executor.StartError{ExitCode: codeNotFound, Err: fmt.Errorf("%s: command not found", name)}
}
