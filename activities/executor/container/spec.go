package container

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/interpreter"
)

// Exit codes of a program that cannot be started, as used by shells.
const (
	codeCannotRun = 126
	codeNotFound  = 127
)

func errCannotRun(err error) error {
	return &executor.StartError{ExitCode: codeCannotRun, Err: err}
}

// badSpec returns the error of a spec with which no attempt can start.
func (k Kind) badSpec(err error) error {
	return &executor.StartError{ExitCode: codeCannotRun, BadSpec: true, Err: fmt.Errorf("%s spec: %w", k.Type, err)}
}

// DecodeSpec decodes the spec of a task into its message.
func DecodeSpec(s *structpb.Struct, into proto.Message) error {
	if s == nil {
		return errors.New("it is missing")
	}
	data, err := protojson.Marshal(s)
	if err != nil {
		return err
	}
	if err := protojson.Unmarshal(data, into); err != nil {
		// Remove the position, which refers to generated JSON.
		text := strings.ReplaceAll(err.Error(), "\u00a0", " ")
		if _, after, found := strings.Cut(text, "): "); found {
			text = after
		}
		return errors.New(text)
	}
	return nil
}

// checkSpec validates a spec, except for what the engine itself checks.
func checkSpec(spec *v1.ContainerSpec) error {
	if spec.GetImage() == "" && spec.GetEnvironment() == "" {
		return errors.New("neither image nor environment is set")
	}
	if dir := spec.GetWorkingDirectory(); dir != "" && !path.IsAbs(dir) {
		return fmt.Errorf("workingDirectory %q is not an absolute path in the container", dir)
	}
	for key := range spec.GetLabels() {
		if strings.HasPrefix(key, labelPrefix) {
			return fmt.Errorf("label %q: labels that begin with %s are reserved", key, labelPrefix)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(spec.GetLabels())) {
		if strings.ContainsRune(key+spec.Labels[key], 0) {
			return fmt.Errorf("label %q holds a NUL", key)
		}
	}
	if at := spec.GetImageTarball(); !path.IsAbs(at) && strings.Contains(at, "?") {
		return fmt.Errorf("imageTarball %q has options; buckets are configured on the node: set AWS_REGION or AWS_ENDPOINT_URL there", at)
	}
	targets := map[string]bool{}
	for i, m := range spec.GetMounts() {
		at := path.Clean(m.GetContainerPath())
		if targets[at] {
			return fmt.Errorf("mounts[%d]: another mount already has the path %s", i, at)
		}
		targets[at] = true
	}
	_, err := commandOf(spec)
	return err
}

// command is what a container runs, in the engine's terms. A nil field means the image's
// own.
type command struct {
	entrypoint, arguments []string
	// program runs a command that is a text.
	program interpreter.Program
}

func commandOf(spec *v1.ContainerSpec) (c command, err error) {
	if c.entrypoint, err = words("entrypoint", spec.GetEntrypoint()); err != nil {
		return c, err
	}
	for _, arg := range spec.GetArgs() {
		if strings.ContainsRune(arg, 0) {
			return c, errors.New("an argument holds a NUL")
		}
	}
	if line, ok := spec.GetCommand().GetKind().(*structpb.Value_StringValue); ok {
		switch {
		case c.entrypoint != nil:
			return c, errors.New("command is a string, which sh runs; with an entrypoint it must be a list")
		case line.StringValue == "":
			return c, errors.New("command is empty")
		case strings.ContainsRune(line.StringValue, 0):
			return c, errors.New("command holds a NUL")
		}
		if c.program, err = interpreter.New(line.StringValue, spec.GetShell()); err != nil {
			return c, err
		}
		argv := c.program.Argv(path.Join(WorkspaceDir, interpreter.File), spec.GetArgs())
		c.entrypoint, c.arguments = argv[:1], argv[1:]
		return c, nil
	} else if c.arguments, err = words("command", spec.GetCommand()); err != nil {
		return c, err
	}
	c.arguments = append(c.arguments, spec.GetArgs()...)
	return c, nil
}

// writeScript writes the command of a container for an interpreter that reads it from a file. A faulty spec is left to convert.
func writeScript(r request) error {
	c, err := commandOf(r.spec)
	if err != nil {
		return nil
	}
	_, err = r.attempt.Dirs.WriteScript(c.program)
	return err
}

// Words returns a program and its arguments as the value of a spec field.
func Words(list []string) *structpb.Value {
	values := make([]*structpb.Value, len(list))
	for i, word := range list {
		values[i] = structpb.NewStringValue(word)
	}
	return structpb.NewListValue(&structpb.ListValue{Values: values})
}

// words returns the words of a spec field that holds a program, or a list of a program and
// its arguments. It returns nil if the field is absent.
func words(field string, v *structpb.Value) ([]string, error) {
	var list []string
	switch kind := v.GetKind().(type) {
	case nil, *structpb.Value_NullValue:
		return nil, nil
	case *structpb.Value_StringValue:
		list = []string{kind.StringValue}
	case *structpb.Value_ListValue:
		for i, word := range kind.ListValue.GetValues() {
			text, ok := word.GetKind().(*structpb.Value_StringValue)
			if !ok {
				return nil, fmt.Errorf("%s[%d] is not a string", field, i)
			}
			list = append(list, text.StringValue)
		}
	default:
		return nil, fmt.Errorf("%s is neither a string nor a list of strings", field)
	}
	switch {
	case len(list) == 0 || list[0] == "":
		return nil, fmt.Errorf("%s is empty", field)
	case strings.ContainsRune(strings.Join(list, ""), 0):
		return nil, fmt.Errorf("%s holds a NUL", field)
	}
	return list, nil
}
