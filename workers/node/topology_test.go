package node

import (
	"slices"
	"testing"
)

func TestParseList(t *testing.T) {
	for text, want := range map[string][]int32{
		"": nil, "0": {0}, "0-3": {0, 1, 2, 3}, "8,0-1,1": {0, 1, 8}, "0-1, 4\n": {0, 1, 4},
	} {
		if got, err := parseList(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"x", "1-", "-1", "3-1", "0-99999999", "1-2-3", "99999999999"} {
		if got, err := parseList(text); err == nil {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func FuzzParseList(f *testing.F) {
	f.Add("0-3,8")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := parseList(text)
		if err != nil {
			return
		}
		if !slices.IsSorted(set) || len(slices.Compact(slices.Clone(set))) != len(set) || len(set) > 2*longestList || len(set) > 0 && set[0] < 0 {
			t.Errorf("%q: not a set: %v", text, set)
		}
	})
}
