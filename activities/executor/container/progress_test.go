package container

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProgressCondensesMessages(t *testing.T) {
	stream := `{"status":"Pulling from a/b","id":"1"}
{"status":"Pulling fs layer","progressDetail":{},"id":"aa"}
{"status":"Downloading","progressDetail":{"current":1000000,"total":20000000},"progress":"[=>  ]","id":"aa"}
{"status":"Downloading","progressDetail":{"current":2000000,"total":20000000},"id":"aa"}
{"status":"Downloading","progressDetail":{"current":3000000,"total":20000000},"id":"bb"}
{"status":"Downloading","progressDetail":{"current":9500000,"total":20000000},"id":"aa"}
{"status":"Download complete","progressDetail":{},"id":"aa"}
{"status":"Extracting","progressDetail":{"current":65536},"id":"aa"}
{"stream":"Loaded \u001b[2Jimage: a:1\n"}
{"status":"Digest: sha256:1"}
`
	clock := time.Unix(0, 0)
	var got []string
	p := newProgress(func(line string) { got = append(got, line) }, func() time.Time { clock = clock.Add(time.Second); return clock })
	if err := follow(strings.NewReader(stream), p); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"1: Pulling from a/b", "aa: Pulling fs layer", "aa: Downloading 1.0 of 20.0 MB", "bb: Downloading 3.0 of 20.0 MB",
		"aa: Downloading 9.5 of 20.0 MB", "aa: Download complete", "aa: Extracting 0.1 MB", "Loaded  [2Jimage: a:1", "Digest: sha256:1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestProgressReturnsErrors(t *testing.T) {
	for stream, want := range map[string]string{
		`{"status":"x"}{"errorDetail":{"message":"no\nspace"},"error":"no space"}`: "no space",
		`{"error":"gone"}`: "gone",
		`{"status":`:       "unexpected EOF",
	} {
		err := follow(strings.NewReader(stream), newProgress(func(string) {}, time.Now))
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", stream, err, want)
		}
	}
}

// TestProgressIsBounded checks that a talkative engine costs little memory.
func TestProgressIsBounded(t *testing.T) {
	p := newProgress(func(line string) {
		if len(line) > 3*progressLine {
			t.Errorf("a line of %d bytes", len(line))
		}
	}, time.Now)
	for i := range 10_000 {
		p.add(message{ID: strings.Repeat("x", i), Status: strings.Repeat("y", 1000)})
	}
	if len(p.layers) > progressLayers {
		t.Errorf("%d layers are kept", len(p.layers))
	}
}
