package procfs

import "testing"

func TestParseStat(t *testing.T) {
	got, err := parseStat([]byte("42 (a) b (c d) Z 7 8 9 0 -1 4228108 0 0 0 0 0 0 0 0 20 0 1 0 987 0 0\n"))
	if want := (Process{PID: 42, Parent: 7, Group: 8, session: 9, Start: 987, Zombie: true, State: 'Z'}); err != nil || got != want {
		t.Errorf("got %+v, error %v, want %+v", got, err, want)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) b (c d) S 7 8 9 0 -1 4228108 0 0 0 0 0 0 0 0 20 0 1 0 987 0 0\n"))
	f.Add([]byte("()"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, text []byte) { _, _ = parseStat(text) })
}

func TestHasEntry(t *testing.T) {
	environ := []byte("A=1\x00SWITCHYARD_CLAIM=r/t/c1\x00B=SWITCHYARD_CLAIM=r/t/c2\x00")
	for entry, want := range map[string]bool{
		"SWITCHYARD_CLAIM=r/t/c1": true, "SWITCHYARD_CLAIM=r/t/c": false, "SWITCHYARD_CLAIM=r/t/c11": false,
		"SWITCHYARD_CLAIM=r/t/c2": false, "A=1": true,
	} {
		if got := hasEntry(environ, []byte(entry)); got != want {
			t.Errorf("%s: %v", entry, got)
		}
	}
}
