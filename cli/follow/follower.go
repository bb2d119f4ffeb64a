package follow

import (
	"context"
	"fmt"
	"sync"
	"time"

	"switchyard/cli/client"
	"switchyard/cli/tui"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"
)

// frame is the shortest interval between two redraws.
const frame = 100 * time.Millisecond

// follower shows a run until it has ended.
type follower struct {
	terminal *Terminal
	client   *client.Client
	run      string
	show     progress
	// interrupted makes the follower call interrupt once when it is closed, and then continue. It may be nil.
	interrupted <-chan struct{}
	interrupt   func() error
	// begun is closed when the run is in `finally`. It may be nil.
	begun chan<- struct{}
}

// follow returns the last known status of the run once the run has ended.
func (f *follower) follow(ctx context.Context) (*tui.Status, error) {
	var reader sync.WaitGroup
	defer reader.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	messages, ended := make(chan *v1.WatchRunResponse), make(chan error, 1)
	reader.Go(func() {
		ended <- f.client.Watch(ctx, f.run, messages, func() { fmt.Fprintln(f.terminal.Screen, f.client.AwayText()) })
	})
	ticker := time.NewTicker(frame)
	defer ticker.Stop()
	status, interrupted := tui.NewStatus(f.run), f.interrupted
	var problem string
	for {
		var err error
		select {
		case m := <-messages:
			err = f.show.changed(status, status.Apply(m))
			if now := status.Run().GetProblem(); now != "" && problem == "" {
				fmt.Fprintf(f.terminal.Screen, "run %[1]s makes no progress: %[2]s\n  `switchyard runs cancel --force %[1]s` ends it\n", f.run, words.OneLine(now))
			}
			problem = status.Run().GetProblem()
			if f.begun != nil && phrase.IsInFinally(status.Run().GetError()) {
				close(f.begun)
				f.begun = nil
			}
		case <-ticker.C:
			err = f.show.tick(status)
		case <-interrupted:
			interrupted = nil
			err = f.interrupt()
		case err = <-ended:
			if err == nil && !status.Ended() {
				err = fmt.Errorf("the gateway at %s has stopped sending updates of run %s", f.client.URL(), f.run)
			}
			if shown := f.show.ended(status); err == nil {
				err = shown
			}
			return status, err
		}
		if err != nil {
			_ = f.show.ended(status) // only the first error is returned
			return status, err
		}
	}
}
