package gateway

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"switchyard/gateway/definitions"
	"switchyard/gateway/submission"
	v1 "switchyard/proto/switchyard/v1"
)

// oneTarget lists the target "ops", or fails.
type oneTarget struct{ err error }

func (o oneTarget) List(context.Context) ([]*v1.NotificationTarget, []string, error) {
	return []*v1.NotificationTarget{{Name: "ops"}}, nil, o.err
}

func TestUnknownTargetsOfTheFleetAreLogged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want int
	}{"known": {nil, 1}, "store away": {errors.New("away"), 0}} {
		var log bytes.Buffer
		g := &Gateway{
			config: Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), Notify: []*v1.Notification{{To: "ops"}, {To: "opps"}}},
			shared: shared{submitter: &submission.Submitter{Definitions: definitions.Checker{Targets: oneTarget{c.err}}}},
		}
		g.warnOfTargets(t.Context())
		if strings.Count(log.String(), "\n") != c.want || c.want > 0 && (!strings.Contains(log.String(), "opps") || !strings.Contains(log.String(), "did you mean ops?")) {
			t.Errorf("%s: the log is %q", name, log.String())
		}
	}
}
