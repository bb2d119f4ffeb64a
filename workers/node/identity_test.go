package node

import (
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"
)

func TestMachineID(t *testing.T) {
	const id = "3d1219c7c4c5404aaa1f6d2a48adfda4"
	tests := map[string]struct {
		root fstest.MapFS
		want string
	}{
		"with an id":    {fstest.MapFS{"etc/machine-id": {Data: []byte(id + "\n")}}, "box-3d1219c7"},
		"no file":       {fstest.MapFS{}, "box"},
		"empty":         {fstest.MapFS{"etc/machine-id": {}}, "box"},
		"uninitialized": {fstest.MapFS{"etc/machine-id": {Data: []byte("uninitialized\n")}}, "box"},
		"not an id":     {fstest.MapFS{"etc/machine-id": {Data: []byte(strings.Repeat("/", 32))}}, "box"},
	}
	for name, tt := range tests {
		if got := MachineID(tt.root, "Box"); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestName(t *testing.T) {
	tests := map[string]string{
		"worker-01":                    "worker-01",
		"Worker_01.Example.COM":        "worker-01.example.com",
		"":                             "node",
		"...":                          "node",
		"-a-":                          "a",
		"Büro PC":                      "b-ro-pc",
		strings.Repeat("a", 70):        strings.Repeat("a", 63),
		strings.Repeat("a", 62) + ".b": strings.Repeat("a", 62),
	}
	for host, want := range tests {
		if got := Name(host); got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
	}
	valid := regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.String().Draw(t, "host")
		if got := Name(host); !valid.MatchString(got) || Name(got) != got {
			t.Errorf("%q: got %q", host, got)
		}
	})
}
