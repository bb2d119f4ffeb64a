package portforward

import "testing"

func TestParseSpec(t *testing.T) {
	for text, want := range map[string]Spec{
		"80":               {loopback, 80, 80},
		"8080:80":          {loopback, 8080, 80},
		"0:80":             {loopback, 0, 80},
		"0.0.0.0:1:2":      {"0.0.0.0", 1, 2},
		"[::1]:8080:80":    {"::1", 8080, 80},
		"localhost:8080:1": {"localhost", 8080, 1},
	} {
		if got, err := ParseSpec(text); err != nil || got != want || !IsSpec(text) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "65536", "-1", "80:0", "a:80", ":80", "80:", "example.com:1:2", ":1:2", "1:2:3:4", "+1"} {
		if got, err := ParseSpec(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
	for _, text := range []string{"", "web", "8x"} {
		if IsSpec(text) {
			t.Errorf("%q is a port", text)
		}
	}
}

func FuzzParseSpec(f *testing.F) {
	f.Add("[::1]:1:2")
	f.Fuzz(func(t *testing.T, text string) {
		if spec, err := ParseSpec(text); err == nil && (spec.Remote < 1 || spec.Remote > 65535 || spec.Local < 0 || spec.Local > 65535 || spec.Address == "") {
			t.Errorf("%q is %+v", text, spec)
		}
	})
}
