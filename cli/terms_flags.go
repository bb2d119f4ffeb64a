package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/policy"
)

// termsFlags holds the terms on which a node takes tasks.
type termsFlags struct{ onlyFor, reserveFor, while, hours []string }

func (t *termsFlags) add(f *pflag.FlagSet) {
	f.StringSliceVar(&t.onlyFor, "only-for", nil, "keep the node for tasks that ask for this resource, or tolerate it: gpu")
	f.StringSliceVar(&t.reserveFor, "reserve-for", nil, "keep the node for tasks that ask for a label, or tolerate it, such as label=training; the node gets the label; may be repeated")
	f.StringSliceVar(&t.while, "while", nil, "what the node does while a user plays on its machine: gaming=finish takes tasks, but none with GPUs or avoidGaming (default); gaming=refuse takes none; gaming=drain takes none, and moves what runs after --drain-timeout")
	f.StringSliceVar(&t.hours, "hours", nil, "when the node takes tasks, such as \"Mon-Fri 19:00-07:00 Europe/Berlin\" (without a zone, that of the machine); may be repeated (default always)")
}

// terms returns the terms that the flags set.
func (t *termsFlags) terms() (*v1.NodeTerms, error) {
	terms := &v1.NodeTerms{Hours: t.hours}
	for _, resource := range t.onlyFor {
		if resource != policy.GPUTaint && resource != policy.Nothing {
			return nil, exit.Usagef("--only-for %q: it must be %s; to keep the node for a label, write --reserve-for label=LABEL", resource, policy.GPUTaint)
		}
	}
	for _, taint := range t.reserveFor {
		if !strings.HasPrefix(taint, policy.LabelTaint("")) && taint != policy.Nothing {
			return nil, exit.Usagef("--reserve-for %q: it must be label=LABEL, such as label=training", taint)
		}
	}
	for _, text := range t.while {
		condition, action, _ := strings.Cut(text, "=")
		if condition != "gaming" || action == "" {
			return nil, exit.Usagef("--while %q: write gaming=%s, gaming=%s or gaming=%s", text, policy.GamingFinish, policy.GamingRefuse, policy.GamingDrain)
		}
		terms.WhileGaming = action
	}
	terms.KeptFor = slices.Concat(t.onlyFor, t.reserveFor)
	slices.Sort(terms.KeptFor)
	terms.KeptFor = slices.Compact(terms.KeptFor)
	if err := policy.CheckTerms(terms); err != nil {
		return nil, exit.Usagef("%w", err)
	}
	return terms, nil
}
