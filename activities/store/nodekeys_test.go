package store_test

import (
	"testing"

	"pgregory.net/rapid"

	"switchyard/activities/store"
)

func TestParseNodeKeyTakesWhatNodesStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run, printer := runs.Draw(t, "run")+"/chain-1", printers.Draw(t, "printer")
		task, _, _, _ := store.ParseBatchName(printer) // results are those of tasks and instances
		n := numbers.Draw(t, "number")
		for key, want := range map[string]store.NodeValue{
			store.ResultKey(run, n, task, n):                                         store.ResultValue,
			store.CheckpointKey(run, n, task, n):                                     store.CheckpointValue,
			store.BatchKey(run, n, store.BatchName("a__0x", 0, int(n)), n, n):        store.BatchValue,
			store.LogChunkKey(run, printer, n, n, int64(n)):                          store.LogChunkValue,
			store.LogChunkKey(run, store.BatchName("a__0x", 0, int(n)), n, n, 1<<40): store.LogChunkValue,
		} {
			if got, err := store.ParseNodeKey(key); got != want || err != nil {
				t.Errorf("%s: %d, %v, want %d", key, got, err, want)
			}
		}
		for _, key := range []string{
			store.StatusKey(run, n), store.CarryKey(run, n, "execution", n), store.EventsKey(run, n, n), store.PurgedKey(run, n, task),
			store.SharedKey(run, n, "context", int64(n)), store.ListKey(run, store.Digest(nil)), store.ReusedKey(run, store.Digest(nil)),
			store.CachedKey("ci", task, "deps"),
		} {
			if _, err := store.ParseNodeKey(key); err == nil {
				t.Errorf("%s is taken for a node's", key)
			}
		}
	})
}

func TestParseNodeKeyRefusesOtherShapes(t *testing.T) {
	for _, key := range append(badKeys,
		"runs/..x/results/build.0.0", "runs/.x/results/build.0.0", "runs/-x/results/build.0.0", "runs/ci-0k/c/junk", "runs/ci-0k/c/results/build",
		"runs/ci-0k/c/results/build.0", "runs/ci-0k/c/results/build.0.0.attrs", "runs/ci-0k/c/results/build.00.0", "runs/ci-0k/c/results/build.0.-1",
		"runs/ci-0k/c/results/build.0.0/x", "runs/ci-0k/c/results/build.0.2147483648", "runs/ci-0k/c/results/.0.0", "runs/ci-0k/c/results/-x.0.0",
		"runs/ci-0k/c/results/build.x.0.0", "runs/ci-0k/c/batches/each/0.3-1.0.1", "runs/ci-0k/c/batches/each/0.1-3.0", "runs/ci-0k/c/batches/each",
		"runs/ci-0k/c/logs/build/0.1.1", "runs/ci-0k/c/logs/build/0.1.00000001.x", "runs/ci-0k/c/logs/build", "runs/ci-0k/c/logs/.batches/0-1.0.1.00000000",
		"runs/ci-0k/c/logs/build.x/0.1.00000001",
	) {
		if got, err := store.ParseNodeKey(key); err == nil {
			t.Errorf("%q is taken for a node's: %d", key, got)
		}
	}
}

func FuzzParseNodeKey(f *testing.F) {
	f.Add(store.LogChunkKey("ci-0k/c", "each[3-40]", 1, 4, 17))
	f.Add(store.BatchKey("ci-0k/c", 0, "each[3-40]", 1, 4))
	f.Add(store.ResultKey("ci-0k/c", 0, "each[3]", 1))
	f.Fuzz(func(t *testing.T, key string) {
		if _, err := store.ParseNodeKey(key); err == nil && store.CheckKey(key) != nil {
			t.Errorf("%q is no key", key)
		}
	})
}
