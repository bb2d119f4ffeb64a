package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"google.golang.org/protobuf/proto"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
)

// maxDocument is one byte more than the limit of a definition, so that a read detects a longer one.
const maxDocument = 1<<20 + 1

// document is a definition with its source text.
type document struct {
	file     string // for messages
	text     []byte
	def      *v1.Definition
	names    []string // of the stored workflows that it refers to
	warnings source.Problems
}

// readDocument reads and checks a definition; "-" means standard input.
func readDocument(sys *system, path string) (*document, error) {
	d := &document{file: path}
	var in io.Reader = sys.stdin
	if path == "-" {
		d.file = "stdin"
	} else {
		f, err := os.Open(path)
		if err != nil {
			return nil, unreadable(err)
		}
		defer f.Close()
		in = f
	}
	var err error
	if d.text, err = io.ReadAll(io.LimitReader(in, maxDocument)); err != nil {
		return nil, unreadable(err)
	}
	if err = lightValidator(); err != nil {
		return nil, fmt.Errorf("set up validation: %w", err)
	}
	checked, err := definition.ParseChecked(d.file, d.text)
	if err != nil {
		return nil, &exit.Error{Code: exit.CodeUsage, Err: err}
	}
	d.def, d.warnings = checked.Definition, checked.Warnings
	for _, reference := range checked.Stored {
		d.names = append(d.names, reference.Name)
	}
	return d, nil
}

// printWarnings prints the parts of a definition that are valid but probably not meant. A warning without a position in
// a document is printed with name instead.
func printWarnings(sys *system, name string, warnings []*v1.Problem) {
	for _, w := range warnings {
		w = proto.CloneOf(w)
		w.Message = "warning: " + w.GetMessage()
		prefix := ""
		if w.GetLine() == 0 {
			prefix, w.File = name+": ", ""
		}
		fmt.Fprintf(sys.screen, "%s%s\n", prefix, source.Problems{w}.Error())
	}
}

// into sets the definition of a request.
func (d *document) into(req *v1.SubmitRunRequest) {
	req.Source, req.File = &v1.SubmitRunRequest_Document{Document: string(d.text)}, d.file
}

func unreadable(err error) error {
	return &exit.Error{Code: exit.CodeUsage, Err: fmt.Errorf("read the definition: %w", err), Hint: "give a file in YAML or JSON, or - for standard input"}
}

// isProblems reports whether an error lists the faults of a definition, which are printed as they are.
func isProblems(err error) bool {
	_, ok := errors.AsType[source.Problems](err)
	return ok
}
