package tool

import (
	"context"
	"fmt"
	"strings"
)

// writeFile implements the tool write_file.
func writeFile(_ context.Context, w *workFiles, call Call) (Outcome, error) {
	var args struct {
		Path    string  `json:"path"`
		Content *string `json:"content"`
	}
	if err := parseArguments(call, &args); err != nil {
		return failure("%v", err), nil
	}
	name, err := w.tree.relative(args.Path)
	switch {
	case err != nil:
		return failure("%v", err), nil
	case args.Content == nil:
		return failure("the argument \"content\" is missing"), nil
	case len(*args.Content) > maxWrite:
		return failure("the content has %d bytes; at most %d MiB can be written at once: use the shell", len(*args.Content), maxWrite>>20), nil
	}
	if err := w.store(name, []byte(*args.Content)); err != nil {
		return fileFailure("write", args.Path, err), nil
	}
	return Outcome{Text: fmt.Sprintf("wrote %d bytes to %s", len(*args.Content), cleanText(name))}, nil
}

// editFile implements the tool edit_file.
func editFile(_ context.Context, w *workFiles, call Call) (Outcome, error) {
	var args struct {
		Path string `json:"path"`
		Old  string `json:"old"`
		New  string `json:"new"`
		All  bool   `json:"all"`
	}
	if err := parseArguments(call, &args); err != nil {
		return failure("%v", err), nil
	}
	name, err := w.tree.relative(args.Path)
	switch {
	case err != nil:
		return failure("%v", err), nil
	case args.Old == "":
		return failure("the argument \"old\" is empty; use write_file for a new file"), nil
	case args.Old == args.New:
		return failure("the old text and the new one are the same"), nil
	}
	data, err := w.load(name)
	if err != nil {
		return fileFailure("edit", args.Path, err), nil
	}
	n := strings.Count(string(data), args.Old)
	switch {
	case n == 0:
		return failure("the old text does not occur in %s; read the file and use its exact text", args.Path), nil
	case n > 1 && !args.All:
		return failure("the old text occurs %d times in %s; include more context, or set all", n, args.Path), nil
	}
	if size := len(data) + n*(len(args.New)-len(args.Old)); size > maxWrite {
		return failure("%s would have %d bytes; at most %d MiB can be written: use the shell", args.Path, size, maxWrite>>20), nil
	}
	if err := w.store(name, []byte(strings.ReplaceAll(string(data), args.Old, args.New))); err != nil {
		return fileFailure("edit", args.Path, err), nil
	}
	return Outcome{Text: fmt.Sprintf("replaced %d occurrences in %s", n, cleanText(name))}, nil
}
