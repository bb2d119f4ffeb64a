package storekey_test

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"switchyard/activities/store/storekey"
)

// Generators of valid names.
var (
	runs  = rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,20}-([0-9a-z]{8}|2026-11-22T15:04:05Z)`).Filter(func(run string) bool { return !strings.Contains(run, "__0x") })
	tasks = rapid.OneOf(
		rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_-]{0,62}`),
		// Names that a bucket would take for escape sequences.
		rapid.StringMatching(`a(_|__0x|__0x2f__|0x){1,5}`),
	)
	numbers = rapid.Int32Min(0)
	// printers draws names of tasks, instances and batches.
	printers = rapid.Custom(func(t *rapid.T) string {
		task := tasks.Draw(t, "task")
		first, last := int(numbers.Draw(t, "first")), int(numbers.Draw(t, "last"))
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 1:
			return task + "[" + strconv.Itoa(first) + "]"
		case 2:
			return storekey.BatchName(task, min(first, last), max(first, last))
		}
		return task
	})
)

func TestKeysAreLaidOutAsDocumented(t *testing.T) {
	for got, want := range map[string]string{
		storekey.RunPrefix("ci-0k"):                  "runs/ci-0k/",
		storekey.Status("ci-0k", 1):                  "runs/ci-0k/status/1",
		storekey.RunState("ci-0k", 1, "e-1", 2):      "runs/ci-0k/state/1.e-1.2",
		storekey.Result("ci-0k", 0, "build", 3):      "runs/ci-0k/results/build.0.3",
		storekey.Result("ci-0k", 0, "a__0x2f__", 3):  "runs/ci-0k/results/a__.0x2f__.0.3",
		storekey.Result("ci-0k", 0, "each[12]", 3):   "runs/ci-0k/results/each.12.0.3",
		storekey.LogsPrefix("ci-0k", "build"):        "runs/ci-0k/logs/build/",
		storekey.LogsPrefix("ci-0k", "each[12]"):     "runs/ci-0k/logs/each.12/",
		storekey.LogsPrefix("ci-0k", "each[3-40]"):   "runs/ci-0k/logs/each.batches/3-40.",
		storekey.InstanceLogsPrefix("ci-0k", "each"): "runs/ci-0k/logs/each.",

		storekey.LogChunk("ci-0k", 2, "each[12]", 1, 4, 17):   "runs/ci-0k/logs/each.12/2.1.4.00000017",
		storekey.LogChunk("ci-0k", 2, "each[3-40]", 1, 4, 17): "runs/ci-0k/logs/each.batches/3-40.2.1.4.00000017",
		storekey.Batch("ci-0k", 2, "each[3-40]", 1, 4):        "runs/ci-0k/batches/each/2.3-40.1.4",
		storekey.Checkpoint("ci-0k", 2, "each[3]", 4):         "runs/ci-0k/checkpoints/each.3.2.4",
		storekey.Purged("ci-0k", 1, "each[3]"):                "runs/ci-0k/purged/1.each.3",
		storekey.LogPrefix("ci-0k", 0, "build", 1, 4):         "runs/ci-0k/logs/build/0.1.4.",
		storekey.LogChunk("ci-0k", 0, "build", 1, 4, 17):      "runs/ci-0k/logs/build/0.1.4.00000017",
		storekey.Events("ci-0k", 1, 17):                       "runs/ci-0k/events/1.000017",
		storekey.EventsPrefix("ci-0k", 1):                     "runs/ci-0k/events/1.",
		storekey.Purged("ci-0k", 1, "build"):                  "runs/ci-0k/purged/1.build",
	} {
		if got != want {
			t.Errorf("key %q, want %q", got, want)
		}
	}
}

func TestLogChunkKeyParsesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := storekey.LogOf{
			Home: runs.Draw(t, "run"), Generation: numbers.Draw(t, "generation"), Task: printers.Draw(t, "task"),
			Attempt: numbers.Draw(t, "attempt"), Claim: numbers.Draw(t, "claim"),
		}
		n := rapid.Int64Min(0).Draw(t, "chunk")
		key := chunkKey(want, n)
		got, chunk, ok := storekey.ParseLogChunk(key)
		if !ok || got != want || chunk != n {
			t.Fatalf("%s is read as %+v %d, %t; want %+v %d", key, got, chunk, ok, want, n)
		}
		if !strings.HasPrefix(key, storekey.LogPrefix(want.Home, want.Generation, want.Task, want.Attempt, want.Claim)) {
			t.Fatalf("%s does not start with its LogPrefix", key)
		}
	})
}

func chunkKey(of storekey.LogOf, chunk int64) string {
	return storekey.LogChunk(of.Home, of.Generation, of.Task, of.Attempt, of.Claim, chunk)
}

func TestDifferentThingsHaveDifferentKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type attempt struct {
			run, task           string
			generation, attempt int32
		}
		draw := func(label string) attempt {
			return attempt{
				rapid.SampledFrom([]string{"a-1", "a-1.2", "a-11"}).Draw(t, label+" run"),
				rapid.SampledFrom([]string{"a", "a-1", "a[1]", "a[11]", "a[0]", "a__", "a__[0]", "a__0x1"}).Draw(t, label+" task"),
				rapid.Int32Range(0, 12).Draw(t, label+" generation"), rapid.Int32Range(0, 12).Draw(t, label+" attempt"),
			}
		}
		a, b := draw("a"), draw("b")
		same := storekey.Result(a.run, a.generation, a.task, a.attempt) == storekey.Result(b.run, b.generation, b.task, b.attempt)
		if same != (a == b) {
			t.Fatalf("%+v and %+v: same key %t", a, b, same)
		}
	})
}

// The logs of a task's instances are below the prefix for instances, and those of a batch below the prefix for batches.
func TestInstancesAreListedTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := printers.Draw(t, "name")
		key := storekey.LogChunk("ci-0k", 0, name, 1, 4, 17)
		if !strings.HasPrefix(key, storekey.LogsPrefix("ci-0k", name)) {
			t.Fatalf("%s does not start with its LogsPrefix", key)
		}
		if task, _, ok := storekey.ParseInstanceName(name); ok && !strings.HasPrefix(key, storekey.InstanceLogsPrefix("ci-0k", task)) {
			t.Fatalf("%s is not among the instances of %s", key, task)
		}
		task, first, last, ok := storekey.ParseBatchName(name)
		if !ok {
			return
		}
		if !strings.HasPrefix(key, storekey.BatchLogsPrefix("ci-0k", task)) || !strings.HasPrefix(key, storekey.InstanceLogsPrefix("ci-0k", task)) {
			t.Fatalf("%s is not among the batches of %s", key, task)
		}
		record := storekey.Batch("ci-0k", 2, name, 1, 4)
		from, to, ok := storekey.ParseBatch(record)
		if !ok || from != first || to != last || !strings.HasPrefix(record, storekey.BatchesPrefix("ci-0k", 2, task)) {
			t.Fatalf("%s is read as %d to %d, %t", record, from, to, ok)
		}
	})
}

func FuzzParseLogChunkKey(f *testing.F) {
	f.Add(storekey.LogChunk("ci-0k", 0, "build", 1, 4, 17))
	f.Add("runs/ci-0k/logs/build/0.1.4.00000017.18a3f.tmp")
	f.Add("runs/ci-0k/logs/build/0.01.4.0")
	f.Add(storekey.LogChunk("ci-0k", 0, "each[3]", 1, 4, 17))
	f.Add(storekey.LogChunk("ci-0k", 0, "each[3-40]", 1, 4, 17))
	f.Add("runs/ci-0k/logs/each.batches/40-3.0.1.4.00000017")
	f.Add("runs/ci-0k/logs/each.b.batches/3-40.0.1.4.00000017")
	f.Add("runs/////")
	f.Fuzz(func(t *testing.T, key string) {
		of, chunk, ok := storekey.ParseLogChunk(key)
		if ok && chunkKey(of, chunk) != key {
			t.Errorf("%q is taken for %q", key, chunkKey(of, chunk))
		}
	})
}
