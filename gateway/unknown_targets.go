package gateway

import (
	"context"
	"fmt"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// targetsTimeout limits the search for the targets of the fleet's entries, so that a store that is away does not delay the start.
const targetsTimeout = 5 * time.Second

// warnOfTargets logs which entries of the fleet name a target that is not stored. It logs nothing if the targets cannot be listed.
func (g *Gateway) warnOfTargets(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, targetsTimeout)
	defer cancel()
	var places []definition.StoredReference
	for i, entry := range g.config.Notify {
		places = append(places, definition.StoredReference{Name: entry.GetTo(), Place: &v1.Problem{Path: fmt.Sprintf("notify[%d].to", i)}})
	}
	for _, problem := range g.submitter.Definitions.WarnOfTargets(ctx, places) {
		g.config.Logger.Warn("an entry of --notify-file waits for its target: "+problem.GetMessage(), "entry", problem.GetPath(), "hint", problem.GetHint())
	}
}
