package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// These words say what a node does while a user plays on its machine.
const (
	GamingFinish = "finish"
	GamingRefuse = "refuse"
	GamingDrain  = "drain"
)

// Nothing and Always stand for the absence of a term where terms are set, in NodeTerms.kept_for and NodeTerms.hours.
const (
	Nothing = "none"
	Always  = "always"
)

// CheckTerms returns an error if a term cannot be read. The text names the flag that sets the term.
func CheckTerms(t *v1.NodeTerms) error {
	for _, taint := range t.GetKeptFor() {
		if label := labelOf(taint); taint != GPUTaint && !IsLabel(label) && (taint != Nothing || len(t.GetKeptFor()) > 1) {
			return fmt.Errorf("a node cannot be kept for %q: use --only-for %s, --reserve-for %sLABEL, or %s alone", taint, GPUTaint, labelPrefix, Nothing)
		}
	}
	if words := []string{"", GamingFinish, GamingRefuse, GamingDrain}; !slices.Contains(words, t.GetWhileGaming()) {
		return fmt.Errorf("--while gaming=%s: it must be %s, %s or %s", t.GetWhileGaming(), GamingFinish, GamingRefuse, GamingDrain)
	}
	if len(t.GetHours()) == 1 && t.GetHours()[0] == Always {
		return nil
	}
	for _, text := range t.GetHours() {
		if _, err := parseHours(text); err != nil {
			return fmt.Errorf("--hours %q: %w", text, err)
		}
	}
	return nil
}

// ChangeTerms returns terms with those in their place that a change sets.
func ChangeTerms(terms, change *v1.NodeTerms) *v1.NodeTerms {
	changed := &v1.NodeTerms{
		KeptFor: terms.GetKeptFor(), Hours: terms.GetHours(), WhileGaming: cmp.Or(change.GetWhileGaming(), terms.GetWhileGaming()),
	}
	if len(change.GetKeptFor()) > 0 {
		changed.KeptFor = change.GetKeptFor()
	}
	if len(change.GetHours()) > 0 {
		changed.Hours = change.GetHours()
	}
	return changed
}

// TermsInForce returns the terms of a node: those of its flags, or those set at run time in their place.
func TermsInForce(flags, set *v1.NodeTerms) *v1.NodeTerms {
	terms := ChangeTerms(flags, set)
	terms.WhileGaming = cmp.Or(terms.GetWhileGaming(), GamingFinish)
	if slices.Contains(terms.GetKeptFor(), Nothing) {
		terms.KeptFor = nil
	}
	if slices.Contains(terms.GetHours(), Always) {
		terms.Hours = nil
	}
	return terms
}

// Refusal returns why a node takes no tasks at a time by its terms, to follow "is", or "" if it does. isGaming is set while a user plays on
// its machine.
func Refusal(t *v1.NodeTerms, isGaming bool, now time.Time) string {
	if isGaming && t.GetWhileGaming() != GamingFinish {
		return "in use for a game"
	}
	var ranges []hourRange
	for _, text := range t.GetHours() {
		if r, err := parseHours(text); err == nil { // CheckTerms has accepted it
			ranges = append(ranges, r)
		}
	}
	if next, isClosed := opensAt(ranges, now); isClosed {
		return "outside its hours (takes tasks again at " + openingText(next, now) + ")"
	}
	return ""
}
