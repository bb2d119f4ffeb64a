package cli

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"switchyard/cli/client"
	"switchyard/cli/exit"
)

// startRun makes a call to a gateway that starts a run. After an interrupt it waits for the answer, so that the caller can cancel the run,
// until a second signal, or for as long as a second signal waits for the answer to a cancellation. The second signal then ends nothing more
// until the caller gives it another meaning.
func startRun[Req, Res any](ctx context.Context, sys *system, a *client.Client, method func(context.Context, *connect.Request[Req]) (*connect.Response[Res], error), req *Req) (*Res, error) {
	starting, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	sys.secondSignal.set(giveUp)
	defer giveUp()
	defer context.AfterFunc(ctx, func() {
		fmt.Fprintf(sys.screen, "waiting up to %v for the gateway to say whether the run was started, to cancel it; interrupt again to stop waiting\n", sys.answerTimeout)
		select {
		case <-starting.Done():
		case <-time.After(sys.answerTimeout):
			giveUp()
		}
	})()
	res, err := client.Call(starting, a, method, req)
	if ctx.Err() == nil {
		sys.secondSignal.set(nil)
	}
	if err != nil && starting.Err() != nil {
		fmt.Fprintf(sys.screen, "the run may have been started, because the gateway at %s has not answered; `switchyard runs list` shows it\n", a.URL())
		return nil, exit.Silent(exit.CodeInterrupted)
	}
	return res, err
}
