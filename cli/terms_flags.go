package cli

import (
	"slices"

	"github.com/spf13/pflag"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/policy"
)

// termsFlags holds the terms on which a node takes tasks.
type termsFlags struct {
	onlyFor, reserveFor []string
}

func (t *termsFlags) add(f *pflag.FlagSet) {
	f.StringSliceVar(&t.onlyFor, "only-for", nil, "keep the node for tasks that ask for this resource, or tolerate it: gpu")
	f.StringSliceVar(&t.reserveFor, "reserve-for", nil, "keep the node for tasks that ask for a label, or tolerate it, such as label=training; the node gets the label; may be repeated")
}

// terms returns the terms that the flags set.
func (t *termsFlags) terms() (*v1.NodeTerms, error) {
	for _, resource := range t.onlyFor {
		if resource != policy.GPUTaint {
			return nil, exit.Usagef("--only-for %q: it must be %s; to keep the node for a label, write --reserve-for label=LABEL", resource, policy.GPUTaint)
		}
	}
	for _, taint := range t.reserveFor {
		if policy.IsLabel(taint) || policy.CheckTaint(taint) != nil {
			return nil, exit.Usagef("--reserve-for %q: it must be label=LABEL, such as label=training", taint)
		}
	}
	keptFor := slices.Concat(t.onlyFor, t.reserveFor)
	slices.Sort(keptFor)
	return &v1.NodeTerms{KeptFor: slices.Compact(keptFor)}, nil
}
