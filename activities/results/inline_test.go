package results

import "testing"

func TestCutFront(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		s    string
		n    int
		want string
		cut  bool
	}{
		{"abc", 3, "abc", false}, {"abc", 2, "bc", true}, {"abc", 0, "", true}, {"abc", -5, "", true}, {"", 0, "", false},
		{"aéb", 2, "b", true}, {"aéb", 3, "éb", true},
	} {
		if got, cut := cutFront(test.s, test.n, false); got != test.want || cut != test.cut {
			t.Errorf("the last %d bytes of %q: %q, cut %v", test.n, test.s, got, cut)
		}
	}
	if _, cut := cutFront("abc", 5, true); !cut {
		t.Error("what was cut before counts as whole")
	}
}
