package stack

import (
	"testing"

	"switchyard/workers/embedded"
)

func TestOnlyAServerOfItsOwnLinksToItsAddress(t *testing.T) {
	t.Parallel()
	const own, given = "http://127.0.0.1:7280", "https://yard.example.com"
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, ""},
		{Config{ExternalURL: given}, given},
		{Config{Temporal: &embedded.Options{}}, own},
		{Config{Temporal: &embedded.Options{}, ExternalURL: given}, given},
	} {
		s := &Stack{}
		s.gatewayURL.Store(new(own))
		if got := s.externalURL(c.cfg); got != c.want {
			t.Errorf("%+v: %q, want %q", c.cfg, got, c.want)
		}
	}
	if got := (&Stack{}).externalURL(Config{Temporal: &embedded.Options{}}); got != "" {
		t.Errorf("before it serves: %q", got)
	}
}
