package names

import "testing"

func TestEventIDsAreParsed(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]struct {
		generation int32
		part       string
		number     int64
	}{"0-0": {}, "2-17": {2, "", 17}, "1-a-b[500]-3": {1, "a-b[500]", 3}} {
		generation, part, number, ok := ParseEventID(id)
		if !ok || generation != want.generation || part != want.part || number != want.number || EventID(generation, part, number) != id {
			t.Errorf("%s is %d %q %d, %v", id, generation, part, number, ok)
		}
	}
	for _, id := range []string{"", "3", "-1", "0--1", "x-1", "0-x", "00-1", "0-01", "0-1-"} {
		if _, _, _, ok := ParseEventID(id); ok {
			t.Errorf("%q is taken for an id", id)
		}
	}
}
