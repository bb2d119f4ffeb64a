package cli

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"switchyard/cli/exit"
)

func TestTermsOfANode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args    []string
		keptFor []string // nil if the flags are refused
	}{
		{[]string{"--only-for", "gpu"}, []string{"gpu"}},
		{[]string{"--reserve-for", "label=b,label=a", "--only-for=gpu", "--reserve-for=label=a"}, []string{"gpu", "label=a", "label=b"}},
		{[]string{"--only-for", "training"}, nil},
		{[]string{"--only-for", "label=a"}, nil},
		{[]string{"--reserve-for", "a"}, nil},
		{[]string{"--reserve-for", "gpu"}, nil},
		{[]string{"--reserve-for", "label="}, nil},
		{[]string{"--reserve-for", "label=a b"}, nil},
		{[]string{"--only-for", "gpu", "--reserve-for", "none"}, nil},
		{[]string{"--only-for", "gpu", "--while", "gaming"}, nil},
		{[]string{"--only-for", "gpu", "--while", "working=refuse"}, nil},
		{[]string{"--only-for", "gpu", "--while", "gaming=stop"}, nil},
		{[]string{"--only-for", "gpu", "--hours", "at night"}, nil},
	} {
		var flags termsFlags
		set := pflag.NewFlagSet("worker", pflag.ContinueOnError)
		flags.add(set)
		if err := set.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		terms, err := flags.terms()
		if test.keptFor == nil != (err != nil) || err != nil && exit.CodeOf(t.Context(), err) != exit.CodeUsage || !slices.Equal(terms.GetKeptFor(), test.keptFor) {
			t.Errorf("%q: %v, %v", test.args, terms, err)
		}
	}
}
