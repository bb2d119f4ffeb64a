package taskrunner

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"switchyard/activities/executor"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// journaling is an executor whose attempts call do and then fail.
type journaling struct {
	do func(ctx context.Context, j executor.Journal) error
}

func (journaling) Type() string                        { return v1.TypeSubagent }
func (journaling) Capabilities() executor.Capabilities { return executor.Capabilities{} }

func (j journaling) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	spawned()
	return executor.Result{ExitCode: 1}, j.do(ctx, a.Journal)
}

// entriesOf returns the entries of a journal, separated by spaces.
func entriesOf(ctx context.Context, j executor.Journal) (string, error) {
	var found []string
	for entry, err := range j.Entries(ctx) {
		if err != nil {
			return "", err
		}
		found = append(found, string(entry))
	}
	return strings.Join(found, " "), nil
}

// TestJournalIsContinued lets dispatches of a task append to their journals and read the earlier ones.
func TestJournalIsContinued(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	checkpoint := map[string]*historyv1.Checkpoint{} // by task, as the run passes it on
	for _, step := range []struct {
		name              string
		task              string
		generation, claim int32
		forgets           bool // the run gives no checkpoint, as after a worker was killed before a heartbeat
		unseen            bool // the run does not learn of the checkpoint, for the same reason
		chain             string
		want              string
		large             bool // the archive has several parts
	}{
		{name: "the first", claim: 1, want: ""},
		{name: "the next", claim: 2, want: "1a 1b", large: true},
		{name: "after a kill", claim: 4, forgets: true, want: "1a 1b 2a 2b"},
		{name: "after runs retry", generation: 1, claim: 5, want: "1a 1b 2a 2b 4a 4b"},
		{name: "done anew", generation: 2, claim: 6, forgets: true, want: ""},
		{name: "after a reset", generation: 2, claim: 7, chain: "other", want: "6a 6b", unseen: true},
		{name: "after a reset and a kill", generation: 2, claim: 8, chain: "other", want: "6a 6b 7a 7b"},
		{name: "an instance", task: "a[3]", claim: 8, forgets: true, want: ""},
		{name: "the task beside it", generation: 3, claim: 9, forgets: true, want: ""},
	} {
		name := "a"
		if step.task != "" {
			name = step.task
		}
		before := ""
		if f := strings.Fields(step.want); len(f) > 0 {
			before = strings.TrimSuffix(f[len(f)-1], "b")
		}
		own := strconv.Itoa(int(step.claim))
		b.Executors[v1.TypeSubagent] = journaling{func(ctx context.Context, j executor.Journal) error {
			got, err := entriesOf(ctx, j)
			if err != nil || got != step.want {
				t.Errorf("%s finds %q, %v; want %q", step.name, got, err, step.want)
			}
			archive, err := j.Archive(ctx)
			if err != nil || string(bytes.TrimRight(archive, "x")) != before {
				t.Errorf("%s finds the archive %.20q, %v; want %q", step.name, archive, err, before)
			}
			data := own
			if step.large {
				data += strings.Repeat("x", archivePart+10)
			}
			return errors.Join(j.Append(ctx, []byte(own+"a")), j.SaveArchive(ctx, []byte("older")), j.SaveArchive(ctx, []byte(data)), j.Append(ctx, []byte(own+"b")))
		}}
		req := request("a")
		req.Type, req.Generation, req.Claim = v1.TypeSubagent, step.generation, step.claim
		if step.task != "" {
			req.Index, req.Count = new(int32(3)), 5
		}
		req.Chain = cmp.Or(step.chain, "chain")
		if !step.forgets {
			req.Checkpoint = checkpoint[name]
		}
		res := b.start(t.Context(), req).answer()
		want(t, res, v1.TaskFailed, v1.ReasonExitCode)
		if res.GetCheckpoint().GetJournal() == "" {
			t.Errorf("%s leaves no journal: %v", step.name, res)
		}
		if !step.unseen {
			checkpoint[name] = res.GetCheckpoint()
		}
	}
}

// TestJournalIsInTheHeartbeat checks that the heartbeats of a running attempt name its journal.
func TestJournalIsInTheHeartbeat(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	done := make(chan struct{})
	b.Executors[v1.TypeSubagent] = journaling{func(ctx context.Context, j executor.Journal) error {
		defer func() { <-done }()
		return j.Append(ctx, []byte("x"))
	}}
	req := request("a")
	req.Type, req.Chain = v1.TypeSubagent, "chain"
	e := b.start(t.Context(), req)
	testneeds.Await(t, "a beat has the journal", func() bool {
		return slices.ContainsFunc(b.server.heard(), func(p *historyv1.ExecuteProgress) bool { return p.GetCheckpoint().GetJournal() != "" })
	})
	close(done)
	e.answer()
}

// TestJournalRefusesWhatIsTooLarge checks the bounds of entries and archives.
func TestJournalRefusesWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.Executors[v1.TypeSubagent] = journaling{func(ctx context.Context, j executor.Journal) error {
		if err := j.Append(ctx, make([]byte, executor.MaxJournalEntry+1)); err == nil {
			t.Error("a large entry is taken")
		}
		if err := j.SaveArchive(ctx, make([]byte, executor.MaxJournalArchive+1)); err == nil {
			t.Error("a large archive is taken")
		}
		return nil
	}}
	req := request("a")
	req.Type, req.Chain = v1.TypeSubagent, "chain"
	b.start(t.Context(), req).answer()
}
