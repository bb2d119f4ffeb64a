package storekey_test

import (
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"switchyard/activities/store/storekey"
	"switchyard/workflows/names"
)

func TestCheckKeyTakesAllOfKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run, printer := runs.Draw(t, "run"), printers.Draw(t, "printer")
		task, _, _, _ := storekey.ParseBatchName(printer) // results are those of tasks and instances
		n := numbers.Draw(t, "number")
		for _, key := range []string{
			storekey.Status(run, n), storekey.RunState(run, n, "e-1", n), storekey.Result(run, n, task, n),
			storekey.LogChunk(run, 0, printer, n, n, int64(n)), storekey.Events(run, n, n), storekey.Purged(run, n, task), storekey.Notified(run, n, "msg_0a"),
			storekey.Batch(run, n, storekey.BatchName("a__0x", 0, int(n)), n, n), storekey.Checkpoint(run, n, task, n),
			// A key that a part of a large fan-out shares with its instances.
			storekey.Shared(names.FanOut{Run: run, Chain: "c1", Generation: n, Task: "wide", From: int(n)}.ID(), n, "context", 1),
		} {
			if err := storekey.Check(key); err != nil {
				t.Errorf("%s: %v", key, err)
			}
			for _, prefix := range []string{storekey.RunPrefix(run), storekey.LogsPrefix(run, printer), storekey.EventsPrefix(run, n), key,
				storekey.InstanceLogsPrefix(run, "a__0x"), storekey.BatchLogsPrefix(run, "a__0x"), storekey.BatchesPrefix(run, n, "a__0x")} {
				if err := storekey.CheckPrefix(prefix); err != nil {
					t.Errorf("prefix %s: %v", prefix, err)
				}
			}
		}
	})
}

var badKeys = []string{
	"runs/:/x", "runs/a/b:c", storekey.Token("first"), storekey.TokenUse("first"), "audit/2026-11-25/x", "secrets/x", "auth/", "identity",
	"", "/", "runs", "runs/", "runs//x", "runs/ci-0k", "/runs/ci-0k/x", "runs/../x", "runs/./x", "runs/.../x",
	"runs/ci-0k/../../../etc/passwd", "runs/ci-0k/x/..", "runs/ci-0k/a../b", "runs/ci-0k/./x", "runs/ci-0k//x", "runs/ci-0k/a//b",
	`runs/ci-0k/a\b`, "runs/ci-0k/a b", "runs/ci-0k/a\nb", "runs/ci-0k/a\x00b", "runs/ci-0k/ä", "runs/ci-0k/a:b",
	"runs/ci-0k/a__0x2f__b", "other/ci-0k/x", "file:///runs/ci-0k/x", "runs/ci-0k/" + strings.Repeat("x", 1024),
}

func TestCheckKeyRefusesTheRest(t *testing.T) {
	for _, key := range append(badKeys, "runs/ci-0k/", "runs/ci-0k/a.1.tmp", "runs/ci-0k/a/") {
		if storekey.Check(key) == nil {
			t.Errorf("%q is taken for a key", key)
		}
	}
	for _, prefix := range badKeys {
		if strings.HasSuffix(prefix, "..") {
			continue // a prefix may end here
		}
		if err := storekey.CheckPrefix(prefix); err == nil && !strings.HasSuffix(prefix, "a__0x2f__b") {
			t.Errorf("%q is taken for a prefix", prefix)
		}
	}
}

func FuzzCheckKey(f *testing.F) {
	f.Add(storekey.LogChunk("ci-0k", 0, "build", 1, 4, 17))
	for _, key := range badKeys {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if storekey.Check(key) != nil {
			return
		}
		run := strings.Split(key, "/")[1]
		inside, err := filepath.Rel(filepath.FromSlash("/s/runs/"+run), filepath.Join("/s", filepath.FromSlash(key)))
		if err != nil || !filepath.IsLocal(inside) || inside == "." {
			t.Errorf("%q is at %q of the folder of run %q", key, inside, run)
		}
	})
}
