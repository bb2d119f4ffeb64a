package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

// frame is how often a picture may be drawn.
const frame = 100 * time.Millisecond

// follower shows a run until it has ended.
type follower struct {
	sys  *system
	api  *api
	id   string
	show progress
	// interrupted, when it is closed, has interrupt called once; the run is
	// followed on. Nil: never.
	interrupted <-chan struct{}
	interrupt   func() error
}

// follow returns when the run has ended, with what is known of it.
func (f *follower) follow(ctx context.Context) (*tui.Board, error) {
	var reader sync.WaitGroup
	defer reader.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	messages, ended := make(chan *v1.WatchRunResponse), make(chan error, 1)
	reader.Go(func() {
		ended <- f.api.watch(ctx, f.id, messages, func(err error) {
			fmt.Fprintf(f.sys.screen, "the gateway does not answer, trying again: %s\n", err)
		})
	})
	ticker := time.NewTicker(frame)
	defer ticker.Stop()
	board, interrupted := tui.NewBoard(f.id), f.interrupted
	var problem string
	for {
		var err error
		select {
		case m := <-messages:
			err = f.show.changed(board, board.Apply(m))
			if now := board.Run().GetProblem(); now != "" && problem == "" {
				fmt.Fprintf(f.sys.screen, "run %[1]s makes no progress: %[2]s\n  `switchyard runs cancel --force %[1]s` ends it\n", f.id, tui.OneLine(now))
			}
			problem = board.Run().GetProblem()
		case <-ticker.C:
			err = f.show.tick(board)
		case <-interrupted:
			interrupted = nil
			err = f.interrupt()
		case err = <-ended:
			if err == nil && !board.Ended() {
				err = fmt.Errorf("the gateway at %s has stopped telling about run %s", f.api.url, f.id)
			}
			if shown := f.show.ended(board); err == nil {
				err = shown
			}
			return board, err
		}
		if err != nil {
			_ = f.show.ended(board) // the first error is the one to tell
			return board, err
		}
	}
}
