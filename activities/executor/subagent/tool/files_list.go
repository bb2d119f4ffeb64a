package tool

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// listFiles implements the tool list_files.
func listFiles(ctx context.Context, w *workFiles, call Call) (Outcome, error) {
	var args struct {
		Path    string `json:"path"`
		Pattern string `json:"pattern"`
	}
	if err := parseArguments(call, &args); err != nil {
		return failure("%v", err), nil
	}
	name, err := w.tree.relative(args.Path)
	if err != nil {
		return failure("%v", err), nil
	}
	if _, err := path.Match(args.Pattern, ""); err != nil {
		return failure("the pattern %s is malformed", args.Pattern), nil
	}
	root, err := w.root.OpenRoot(name)
	if err != nil {
		return fileFailure("list", args.Path, err), nil
	}
	defer root.Close()
	var list strings.Builder
	listed := 0
	err = walk(root, func(e entry) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if args.Pattern == "" || matchPath(args.Pattern, e.path) {
			if listed == maxList {
				fmt.Fprintf(&list, "[only the first %d are listed; narrow the path or the pattern]\n", maxList)
				return fs.SkipAll
			}
			listed++
			list.WriteString(describe(e))
		}
		if args.Pattern == "" && e.info.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return Outcome{}, context.Cause(ctx)
	case err != nil:
		return fileFailure("list", args.Path, err), nil
	case listed == 0:
		return Outcome{Text: "(nothing)"}, nil
	}
	return Outcome{Text: cleanText(list.String())}, nil
}

// describe returns the line for a file in a listing.
func describe(e entry) string {
	switch mode := e.info.Mode(); {
	case mode.IsDir():
		return e.path + "/\n"
	case mode&fs.ModeSymlink != 0:
		target, _ := e.dir.Readlink(e.info.Name())
		return e.path + " -> " + target + "\n"
	case !mode.IsRegular():
		return e.path + " (not a regular file)\n"
	}
	return fmt.Sprintf("%s (%d bytes)\n", e.path, e.info.Size())
}

// matchPath reports whether a path matches a pattern. A pattern without a slash matches base names. In other patterns,
// ** matches any number of directories.
func matchPath(pattern, name string) bool {
	if !strings.Contains(pattern, "/") && pattern != "**" {
		ok, _ := path.Match(pattern, path.Base(name))
		return ok
	}
	return matchParts(strings.Split(strings.TrimPrefix(path.Clean(pattern), "/"), "/"), strings.Split(name, "/"))
}

func matchParts(pattern, name []string) bool {
	// reached[j] reports whether the parts of the pattern so far match the first j parts of the name.
	reached := make([]bool, len(name)+1)
	reached[0] = true
	for _, part := range pattern {
		next := make([]bool, len(name)+1)
		for j, ok := range reached {
			switch {
			case part == "**":
				next[j] = ok || j > 0 && next[j-1]
			case ok && j < len(name):
				next[j+1], _ = path.Match(part, name[j])
			}
		}
		reached = next
	}
	return reached[len(name)]
}
