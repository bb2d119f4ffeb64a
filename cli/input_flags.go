package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// inputFlags holds the flags that give the input of a run or of an approval.
type inputFlags struct {
	pairs []string
	file  string
}

// add registers the flags for the input of a run or of an approval.
func (f *inputFlags) add(flags *pflag.FlagSet, of string) {
	flags.StringArrayVar(&f.pairs, "input", nil, "input of the "+of+" as key=value, parsed as the type in the definition; without a type, value may be JSON; may be repeated")
	flags.StringVar(&f.file, "input-file", "", "YAML or JSON file with inputs of the "+of+", or - for standard input; --input takes precedence")
}

// givenInput is unparsed input. Parsing needs the definition.
type givenInput struct {
	pairs []string
	file  []byte
}

// maxInput is one byte more than the limit of an input file, so that a read detects a longer one.
const maxInput = 1<<20 + 1

// read reads the input file. It returns nil if no input was given.
func (f *inputFlags) read(sys *system) (*givenInput, error) {
	if len(f.pairs) == 0 && f.file == "" {
		return nil, nil
	}
	given := &givenInput{pairs: f.pairs}
	if f.file == "" {
		return given, nil
	}
	in := sys.stdin
	if f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return nil, unreadableInput(err)
		}
		defer file.Close()
		in = file
	}
	var err error
	if given.file, err = io.ReadAll(io.LimitReader(in, maxInput)); err != nil {
		return nil, unreadableInput(err)
	}
	if len(given.file) >= maxInput {
		return nil, exit.Usagef("--input-file %s has more than %d bytes; pass large data in a file that the tasks can reach", f.file, maxInput-1)
	}
	return given, nil
}

func unreadableInput(err error) error {
	return &exit.Error{Code: exit.CodeUsage, Err: fmt.Errorf("read the input: %w", err), Hint: "give a file in YAML or JSON to --input-file, or - for standard input"}
}

// parse returns the input with the types of the definition, or nil if none was given. It prints the warnings.
func (g *givenInput) parse(sys *system, d *v1.Definition) (*structpb.Struct, error) {
	if g == nil {
		return nil, nil
	}
	input, warnings, err := definition.ParseInputChecked(d, g.pairs, g.file)
	if err != nil {
		return nil, &exit.Error{Code: exit.CodeUsage, Err: err}
	}
	for _, w := range warnings {
		printWarnings(sys, w.GetPath(), []*v1.Problem{w})
	}
	return input, nil
}

// oneStdin returns an error if both files would be read from standard input.
func (f *inputFlags) oneStdin(file string) error {
	if file == "-" && f.file == "-" {
		return exit.Usagef("FILE and --input-file cannot both be read from standard input")
	}
	return nil
}
