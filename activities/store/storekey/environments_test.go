package storekey_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"switchyard/activities/store/storekey"
)

func TestEnvironmentKeysParseBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?`).Draw(t, "name")
		archive := rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "archive")
		stored := archive + "/" + rapid.StringMatching(`[0-9a-f]{16}`).Draw(t, "copy")
		n := rapid.IntRange(0, 2_000_000).Draw(t, "part")
		if got, ok := storekey.ParseEnvironmentName(storekey.EnvironmentName(name)); got != name || !ok {
			t.Errorf("name %q is read as %q, %t", name, got, ok)
		}
		part := storekey.EnvironmentPart(stored, n)
		if got, number, ok := storekey.ParseEnvironmentPart(part); got != stored || number != n || !ok {
			t.Errorf("%s is read as %q %d, %t", part, got, number, ok)
		}
		for _, key := range []string{part, storekey.EnvironmentOwner(archive)} {
			if got, ok := storekey.ParseEnvironmentArchive(key); got != archive || !ok || !strings.HasPrefix(key, storekey.EnvironmentArchive(archive)) {
				t.Errorf("%s is read as one of archive %q, %t", key, got, ok)
			}
			if !storekey.IsOfNoRun(key) || storekey.Check(key) == nil {
				t.Errorf("%s is taken for one of a run", key)
			}
		}
		if _, _, ok := storekey.ParseEnvironmentPart(storekey.EnvironmentOwner(archive)); ok {
			t.Error("an owner is taken for a part")
		}
	})
}

func FuzzParseEnvironmentKeys(f *testing.F) {
	archive := strings.Repeat("0a", 16)
	stored := archive + "/" + strings.Repeat("f", 16)
	f.Add(storekey.EnvironmentName("desk"))
	f.Add(storekey.EnvironmentPart(stored, 7))
	f.Add(storekey.EnvironmentOwner(archive))
	f.Add("environments/archives/" + stored + "/0000007")
	f.Add("environments/archives/../names/00")
	f.Add("environments/names/6")
	f.Fuzz(func(t *testing.T, key string) {
		if name, ok := storekey.ParseEnvironmentName(key); ok && storekey.EnvironmentName(name) != key {
			t.Errorf("%q is taken for %q", key, storekey.EnvironmentName(name))
		}
		if stored, n, ok := storekey.ParseEnvironmentPart(key); ok && storekey.EnvironmentPart(stored, n) != key {
			t.Errorf("%q is taken for %q", key, storekey.EnvironmentPart(stored, n))
		}
	})
}
