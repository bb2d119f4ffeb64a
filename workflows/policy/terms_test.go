package policy

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

func TestTermsThatCannotBeSet(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		terms *v1.NodeTerms
		want  string // "" if they can be set
	}{
		{nil, ""},
		{&v1.NodeTerms{KeptFor: []string{"gpu", "label=a"}, WhileGaming: "drain", Hours: []string{"Mon 08:00-09:00", "19:00-07:00 UTC"}}, ""},
		{&v1.NodeTerms{KeptFor: []string{"none"}, Hours: []string{"always"}}, ""},
		{&v1.NodeTerms{KeptFor: []string{"gpu", "none"}}, `cannot be kept for "none"`},
		{&v1.NodeTerms{KeptFor: []string{"tpu"}}, "--reserve-for label=LABEL"},
		{&v1.NodeTerms{KeptFor: []string{"label="}}, `"label="`},
		{&v1.NodeTerms{WhileGaming: "stop"}, "finish, refuse or drain"},
		{&v1.NodeTerms{Hours: []string{"always", "19:00-07:00"}}, `--hours "always": `},
		{&v1.NodeTerms{Hours: []string{"19:00-07:00", "night"}}, `--hours "night": `},
	} {
		if err := CheckTerms(test.terms); test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%v: %v, want %q", test.terms, err, test.want)
		}
	}
}

// TestTermsInForce checks that each term set at run time replaces that of the flags, and that a change leaves the others as they are.
func TestTermsInForce(t *testing.T) {
	t.Parallel()
	flags := &v1.NodeTerms{KeptFor: []string{"gpu"}, WhileGaming: GamingDrain, Hours: []string{"08:00-09:00"}}
	for _, test := range []struct{ flags, set, want *v1.NodeTerms }{
		{nil, nil, &v1.NodeTerms{WhileGaming: GamingFinish}},
		{flags, nil, flags},
		{flags, &v1.NodeTerms{KeptFor: []string{"label=a"}}, &v1.NodeTerms{KeptFor: []string{"label=a"}, WhileGaming: GamingDrain, Hours: []string{"08:00-09:00"}}},
		{flags, &v1.NodeTerms{KeptFor: []string{Nothing}, WhileGaming: GamingFinish, Hours: []string{Always}}, &v1.NodeTerms{WhileGaming: GamingFinish}},
	} {
		if got := TermsInForce(test.flags, test.set); !proto.Equal(got, test.want) {
			t.Errorf("%v with %v: %v", test.flags, test.set, got)
		}
	}
	if got, want := ChangeTerms(flags, &v1.NodeTerms{Hours: []string{Always}}), []string{Always}; got.GetHours()[0] != want[0] || got.GetWhileGaming() != GamingDrain {
		t.Errorf("changed to %v", got)
	}
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		terms    *v1.NodeTerms
		isGaming bool
		want     string
	}{
		{&v1.NodeTerms{WhileGaming: GamingFinish}, true, ""},
		{&v1.NodeTerms{WhileGaming: GamingRefuse}, true, "in use for a game"},
		{&v1.NodeTerms{WhileGaming: GamingDrain}, true, "in use for a game"},
		{&v1.NodeTerms{WhileGaming: GamingDrain}, false, ""},
		{&v1.NodeTerms{WhileGaming: GamingFinish, Hours: []string{"19:00-07:00 Europe/Berlin"}}, true, "outside its hours (takes tasks again at 19:00 CET)"},
		{&v1.NodeTerms{WhileGaming: GamingFinish, Hours: []string{"12:00-14:00 Europe/Berlin"}}, false, ""},
	} {
		if got := Refusal(test.terms, test.isGaming, now); got != test.want {
			t.Errorf("%v: %q, want %q", test.terms, got, test.want)
		}
	}
}
