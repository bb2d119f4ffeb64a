package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTarget(t *testing.T) {
	tests := map[string]struct {
		want Target
		bad  bool
	}{
		"":                {want: Target{NUMA: -1}},
		"worker-01":       {want: Target{Node: "worker-01", NUMA: -1}},
		"worker-01:0":     {want: Target{Node: "worker-01", NUMA: 0}},
		"worker-01::2":    {want: Target{Node: "worker-01", NUMA: -1, GPUs: 2}},
		"worker-01:0::4":  {want: Target{Node: "worker-01", NUMA: 0, GPUs: 4}},
		"worker-01::0,1":  {want: Target{Node: "worker-01", NUMA: -1, GPUs: 2, GPUIndices: []int{0, 1}}},
		"worker-01:1::3,": {bad: true},
		"worker-01:":      {bad: true},
		"worker-01::":     {bad: true},
		"worker-01:a":     {bad: true},
		"worker-01:-1":    {bad: true},
		"worker-01:0:1":   {bad: true},
		"worker-01::9999": {bad: true},
		"::2":             {bad: true},
		":0":              {bad: true},
	}
	for text, tt := range tests {
		got, err := ParseTarget(text)
		if (err != nil) != tt.bad {
			t.Errorf("%q: error %v", text, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); !tt.bad && diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"", "a", "a:0", "a::2", "a:0::4", "a::0,1", ":::", "a::,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := ParseTarget(text)
		if err != nil {
			return
		}
		if (target.Node == "") != (text == "") || target.NUMA < -1 || target.GPUs < 0 ||
			target.GPUIndices != nil && len(target.GPUIndices) != target.GPUs {
			t.Errorf("%q gave %+v", text, target)
		}
	})
}
