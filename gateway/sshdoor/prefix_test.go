package sshdoor

import (
	"fmt"
	"testing"
	"time"
)

// TestKeyOfATaskOpensItsRunByAPrefix checks that a prefix opens a run if only that run names the key, and that all other
// prefixes are refused alike.
func TestKeyOfATaskOpensItsRunByAPrefix(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.RefusalTime = limit }) // which bounds searches, too
	hasty := newFixture(t, func(c *Config) { c.Runs, c.RefusalTime = f.runs, 50*time.Millisecond })
	key, other := newSigner(t), newSigner(t)
	for id, owner := range map[string]string{"vps-7k2m9x": "ann", "vps-8aaaaa": "ann", "vps-9bbbbb": "bob", "vps-old": "ann"} {
		f.runs.runs[id] = Run{id, owner, id != "vps-old"}
	}
	f.runs.keys["vps-7k2m9x"] = map[string]string{"box": line(key)}
	f.runs.keys["vps-old"] = map[string]string{"box": line(key)}
	f.runs.keys["vps-9bbbbb"] = map[string]string{"box": line(other)}
	for _, user := range []string{"vps-7k2m9x", "vps-7k", "vps", "box.vps-7", "box.vps", "box[1].vps-7"} {
		f.forgive()
		client, err := f.dial(user, key)
		if err != nil {
			t.Errorf("%s: %v", user, err)
			continue
		}
		_ = client.Close()
	}
	said := map[string]bool{}
	refuse := func(user string) {
		t.Helper()
		said[hasty.refusal(t, user, key)] = true
	}
	for _, user := range []string{"v", "vps-9", "vps-8", "web.vps-7", "vps-o", "none"} {
		refuse(user)
	}
	f.runs.change(func() { f.runs.keys["vps-8aaaaa"] = map[string]string{"box": line(key)} })
	refuse("vps")
	f.runs.change(func() {
		for i := range maxStarting {
			id := fmt.Sprint("many-", i)
			f.runs.runs[id] = Run{id, "ann", true}
		}
		f.runs.runs["many-x"], f.runs.keys["many-x"] = Run{"many-x", "ann", true}, map[string]string{"box": line(key)}
	})
	refuse("many")
	f.runs.change(func() { f.runs.slow = true })
	refuse("vps-7")
	if len(said) != 1 {
		t.Errorf("%v", said)
	}
}
