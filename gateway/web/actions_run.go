package web

import (
	"context"
	"net/url"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// runActions steer runs.
var runActions = []actionKind{
	{
		verb: "cancel-run", label: "Cancel", call: runService + "CancelRun", asks: "Cancel run %s? What runs is stopped.", reason: true,
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			_, err := s.runs.CancelRun(ctx, connect.NewRequest(&v1.CancelRunRequest{Id: form.Get("run"), Reason: form.Get(reasonField)}))
			return "Run " + form.Get("run") + " is being cancelled.", "", err
		},
	},
}
