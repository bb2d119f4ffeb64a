package taskrunner

import (
	"context"
	"sync"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
	"switchyard/activities/logs"
	"switchyard/activities/secrets/mask"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

const (
	// checkpointPause is the longest time between two checks for a changed checkpoint.
	checkpointPause = time.Second
	// savePause is the shortest time between two writes of the record of a batch.
	savePause = 50 * time.Millisecond
)

// checkpointer saves, while an attempt runs, what must survive the node: the checkpoint of the running member and, for a
// batch, the ends of its members. It stores large values and makes the next heartbeat report them.
//
// A checkpoint that is too large or not a plain file is reported in the task's log, and the previous one stays. It fails
// nothing: a lost checkpoint costs only time.
type checkpointer struct {
	a     *attempt
	log   *logs.Writer
	masks *mask.Set
	batch *batch // nil if the attempt is not a batch
	end   context.CancelFunc
	done  chan struct{}

	mu sync.Mutex
	// ws and member belong to the running program; ws is nil if no program runs.
	ws         *workspace.Workspace
	member     *member
	seen       workspace.CheckpointState
	checkpoint *historyv1.Checkpoint
	// reported is how many members of the batch the heartbeats have reported.
	reported int
}

// startCheckpointer starts a checkpointer. The caller must call its stop.
func (w *work) startCheckpointer(ctx context.Context, b *batch) *checkpointer {
	k := &checkpointer{a: w.attempt, log: w.log.Writer, masks: w.secrets.masks, batch: b, done: make(chan struct{})}
	// The checkpointer keeps working while a cancelled attempt ends.
	ctx, k.end = context.WithCancel(context.WithoutCancel(ctx))
	go k.run(ctx)
	return k
}

// run checks for changes, at short intervals first and finally once a second. It saves the record of a batch more often:
// if this process dies, the next node finds in the record which members need not run again.
func (k *checkpointer) run(ctx context.Context) {
	defer close(k.done)
	pause := firstBeat
	publish := executor.Now().Add(pause)
	save := executor.Never
	if k.batch != nil {
		save = executor.Now().Add(savePause)
	}
	timer := time.NewTimer(min(publish, save).Sub(executor.Now()))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := executor.Now()
		if began >= publish {
			k.publish(ctx)
			pause = nextLook(pause, k.a.beats.terms.beat)
			publish = executor.Now().Add(pause)
		} else if k.batch != nil {
			k.batch.saveIfNew(ctx)
		}
		if k.batch != nil { // do not write a large record all the time
			save = executor.Now().Add(max(savePause, 20*executor.Now().Sub(began)))
		}
		timer.Reset(max(min(publish, save).Sub(executor.Now()), 0))
	}
}

// nextLook returns the pause after another one, given the time between heartbeats. It is bounded because a node that
// continues a dead attempt repeats the work since the last check.
func nextLook(pause, beat time.Duration) time.Duration {
	return min(2*pause, max(min(beat, checkpointPause), firstBeat))
}

func (k *checkpointer) stop() {
	k.end()
	<-k.done
}

// watch starts watching the checkpoint of a member whose process is about to start in the workspace.
func (k *checkpointer) watch(ws *workspace.Workspace, m *member) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ws, k.member, k.checkpoint, k.seen = ws, m, m.checkpoint, workspace.CheckpointState{}
	if m.checkpoint != nil {
		_, k.seen, _ = ws.Checkpoint(k.seen) // the file has just been written
	}
}

// final stops watching a member that has ended, and returns its checkpoint if it is wanted.
func (k *checkpointer) final(ctx context.Context, wanted bool) *historyv1.Checkpoint {
	if wanted {
		k.poll(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	checkpoint := k.checkpoint
	k.ws, k.checkpoint = nil, nil
	if !wanted {
		return nil
	}
	return checkpoint
}

// publish adds the latest changes to the next heartbeat.
func (k *checkpointer) publish(ctx context.Context) {
	changed := k.poll(ctx)
	ended := k.reported
	if k.batch != nil {
		if saved, ok := k.batch.saveIfNew(ctx); ok && saved > k.reported {
			ended, changed = saved, true
		}
	}
	if !changed {
		return
	}
	k.mu.Lock()
	checkpoint := k.checkpoint
	k.mu.Unlock()
	if k.batch != nil && ended != k.batch.ended() {
		checkpoint = nil // it belongs to a later member
	}
	k.a.progress.advance(func(p *historyv1.ExecuteProgress) {
		if ended > k.reported {
			k.batch.putProgress(p, ended)
		}
		p.Checkpoint = checkpoint
	})
	k.a.beats.workFrom(time.Now())
	k.a.claimFile.saveCheckpoint(ended, checkpoint)
	k.reported = ended
	k.a.progress.beatNow()
}

// poll stores the checkpoint if it has changed, and reports whether it did.
func (k *checkpointer) poll(ctx context.Context) (changed bool) {
	k.mu.Lock()
	if k.ws == nil {
		k.mu.Unlock()
		return false
	}
	m := k.member
	data, state, err := k.ws.Checkpoint(k.seen)
	k.seen = state
	k.mu.Unlock()
	if err != nil {
		k.log.Notice("the checkpoint is not kept: " + err.Error())
		return false
	}
	if data == nil {
		return false
	}
	kept, err := k.a.node.records().saveCheckpoint(ctx, k.a.req, m, k.masks.Bytes(data))
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.member != m {
		return false
	}
	if err != nil {
		k.a.node.Logger.Warn("a checkpoint was not stored", "run", k.a.req.GetRunId(), "task", m.name, "error", err)
		k.seen = workspace.CheckpointState{} // the next check tries again
		return false
	}
	kept.Journal = k.checkpoint.GetJournal()
	k.checkpoint = kept
	return true
}

// setJournal adds the journal of the running member to the next heartbeat.
func (k *checkpointer) setJournal(prefix string) {
	k.mu.Lock()
	checkpoint := &historyv1.Checkpoint{Data: k.checkpoint.GetData(), Key: k.checkpoint.GetKey(), Journal: prefix}
	k.checkpoint = checkpoint
	k.mu.Unlock()
	k.a.progress.advance(func(p *historyv1.ExecuteProgress) { p.Checkpoint = checkpoint })
	k.a.progress.beatNow()
}
