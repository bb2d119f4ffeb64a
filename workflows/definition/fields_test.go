package definition

import (
	"testing"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "0s": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, " 5m ": 5 * time.Minute,
		"2d": 48 * time.Hour, "1d12h": 36 * time.Hour, "1.5d": 36 * time.Hour, "250ms": 250 * time.Millisecond, "0d": 0,
	} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		task := &v1.TaskDefinition{Timeout: text, Deadline: text, Cache: &v1.Cache{Ttl: text}}
		for name, got := range map[string]time.Duration{
			"timeout": Timeout(task), "deadline": Deadline(task), "ttl": CacheTTL(task), "run": RunDeadline(&v1.Definition{Deadline: text}),
		} {
			if got != want {
				t.Errorf("%s %q: %v", name, text, got)
			}
		}
	}
	for _, text := range []string{"30", "-5s", "-1d", "1d-5h", "d", "1x", "soon", "1e400d", "NaNd", "Infd", "200000d", "9999999h", "1d2d"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
		if got := Timeout(&v1.TaskDefinition{Timeout: text}); got != 0 {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestMeantDuration(t *testing.T) {
	for text, want := range map[string]string{
		"10min": "10m", "1w": "7d", "2 weeks": "14d", "1 hour 30 minutes": "1h30m", "90 seconds": "90s", "1day": "1d", "500 milliseconds": "500ms",
		"3hrs": "3h", "1h, 5min": "1h5m", "": "", "soon": "", "10": "", "1 fortnight": "", "99999999999w": "", "min": "",
	} {
		if got := meantDuration(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
