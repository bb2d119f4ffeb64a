package web

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// deadLetterActions are the actions on dead letters. Their fields are run and task; an empty task means all dead letters of
// the run.
var deadLetterActions = []actionKind{
	{
		verb: "retry-dead-letter", label: "Retry", call: runService + "RetryDeadLetter", do: retryDeadLetters,
	},
	{
		verb: "retry-dead-letters", label: "Retry all of this run", call: runService + "RetryDeadLetter", do: retryDeadLetters,
	},
	{
		verb: "purge-dead-letter", label: "Purge", call: runService + "PurgeDeadLetter",
		asks: "Remove %s from the dead letters permanently? The run is not changed.", do: purgeDeadLetters,
	},
	{
		verb: "purge-dead-letters", label: "Purge all of this run", call: runService + "PurgeDeadLetter",
		asks: "Remove all dead letters of run %s permanently? The run is not changed.", do: purgeDeadLetters,
	},
}

func retryDeadLetters(ctx context.Context, s services, form url.Values) (string, string, error) {
	res, err := s.runs.RetryDeadLetter(ctx, connect.NewRequest(&v1.RetryDeadLetterRequest{Run: form.Get("run"), Task: form.Get("task")}))
	if err != nil {
		return "", "", err
	}
	return fmt.Sprintf("Run %s continues with %s.", res.Msg.GetRun(), strings.Join(res.Msg.GetTasks(), ", ")), "", nil
}

func purgeDeadLetters(ctx context.Context, s services, form url.Values) (string, string, error) {
	res, err := s.runs.PurgeDeadLetter(ctx, connect.NewRequest(&v1.PurgeDeadLetterRequest{Run: form.Get("run"), Task: form.Get("task")}))
	if err != nil {
		return "", "", err
	}
	return fmt.Sprintf("Removed %s of run %s from the dead letters.", strings.Join(res.Msg.GetTasks(), ", "), res.Msg.GetRun()), "", nil
}
