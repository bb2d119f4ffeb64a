package storekey_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"switchyard/activities/store/storekey"
)

func TestParseNodeKeyTakesWhatNodesStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run, printer := runs.Draw(t, "run")+"/chain-1", printers.Draw(t, "printer")
		task, _, _, _ := storekey.ParseBatchName(printer) // results are those of tasks and instances
		n := numbers.Draw(t, "number")
		base, _, _ := storekey.ParseInstanceName(task)
		of := func(kind storekey.NodeValue, task string) storekey.NodeKey {
			return storekey.NodeKey{Kind: kind, Run: strings.TrimSuffix(run, "/chain-1"), Chain: "chain-1", Task: task}
		}
		for key, want := range map[string]storekey.NodeKey{
			storekey.Result(run, n, task, n):                                                   of(storekey.ResultValue, base),
			storekey.Checkpoint(run, n, task, n):                                               of(storekey.CheckpointValue, base),
			storekey.Journal{Home: run, Task: task, Generation: n, Claim: n}.Entry(int(n)):     of(storekey.JournalValue, base),
			storekey.Journal{Home: run, Task: task, Generation: n, Claim: n}.From():            of(storekey.JournalValue, base),
			storekey.Journal{Home: run, Task: task, Generation: n, Claim: n}.Archive():         of(storekey.JournalValue, base),
			storekey.Journal{Home: run, Task: task, Generation: n, Claim: n}.ArchivePart(1, 7): of(storekey.JournalValue, base),
			storekey.Artifact(run, n, task, n, "a_report-1"):                                   of(storekey.ArtifactValue, base),
			storekey.Draft(storekey.Artifact(run, n, task, n, "report"), int(n)):               of(storekey.DraftValue, base),
			storekey.Batch(run, n, storekey.BatchName("a__0x", 0, int(n)), n, n):               of(storekey.BatchValue, "a__0x"),
			storekey.LogChunk(run, 0, printer, n, n, int64(n)):                                 of(storekey.LogChunkValue, base),
			storekey.LogChunk(run, 0, storekey.BatchName("a__0x", 0, int(n)), n, n, 1<<40):     of(storekey.LogChunkValue, "a__0x"),
		} {
			if got, err := storekey.ParseNode(key); got != want || err != nil {
				t.Errorf("%s: %v, %v, want %v", key, got, err, want)
			}
		}
		for _, key := range []string{
			storekey.Status(run, n), storekey.RunState(run, n, "execution", n), storekey.Events(run, n, n), storekey.Purged(run, n, task), storekey.Notified(run, n, "msg_0a"),
			storekey.Shared(run, n, "context", int64(n)), storekey.List(run, storekey.Digest(nil)), storekey.Reused(run, storekey.Digest(nil)),
			storekey.Cached("ci", task, "deps"), storekey.Grant("ci-0k", "chain-1", "n1", task), storekey.Grant("ci-0k", "chain-1", "logs", task),
		} {
			if _, err := storekey.ParseNode(key); err == nil {
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
		"runs/ci-0k/c/logs/build/0.1.1", "runs/ci-0k/c/logs/build/0.0.1.00000001.x", "runs/ci-0k/c/logs/build/0.1.00000001", "runs/ci-0k/c/logs/build", "runs/ci-0k/c/logs/.batches/0-1.0.0.1.00000000",
		"runs/ci-0k/c/logs/build.x/0.0.1.00000001",
		"runs/ci-0k/c/artifacts/build.0.1", "runs/ci-0k/c/artifacts/build.0.1.", "runs/ci-0k/c/artifacts/build.0.1.a/b", "runs/ci-0k/c/artifacts/build.0.-1.a", "runs/ci-0k/c/artifacts/build.0.1.-a",
		"runs/ci-0k/c/drafts/build.0.1.a", "runs/ci-0k/c/drafts/build.0.1.a.x", "runs/ci-0k/c/drafts/build.0.1.a.01", "runs/ci-0k/c/drafts/build.0.1.0", storekey.Chunk(make([]byte, 32)),
	) {
		if got, err := storekey.ParseNode(key); err == nil {
			t.Errorf("%q is taken for a node's: %v", key, got)
		}
	}
}

func FuzzParseNodeKey(f *testing.F) {
	f.Add(storekey.LogChunk("ci-0k/c", 0, "each[3-40]", 1, 4, 17))
	f.Add(storekey.Batch("ci-0k/c", 0, "each[3-40]", 1, 4))
	f.Add(storekey.Result("ci-0k/c", 0, "each[3]", 1))
	f.Fuzz(func(t *testing.T, key string) {
		if _, err := storekey.ParseNode(key); err == nil && storekey.Check(key) != nil {
			t.Errorf("%q is no key", key)
		}
	})
}
