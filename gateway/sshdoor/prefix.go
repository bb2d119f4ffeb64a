package sshdoor

import (
	"context"
	"errors"

	"golang.org/x/crypto/ssh"
)

const (
	// minPrefix is the minimum length of a run ID prefix in a user name.
	minPrefix = 2
	// maxStarting bounds the number of runs that are considered for a prefix.
	maxStarting = 32
)

// grantByPrefix returns the grant of a key that tasks name if exactly one run matches the user name as a prefix, or nil if
// none does. The search is bounded below RefusalTime, so that the time of a refusal does not depend on which runs exist.
func (d *Door) grantByPrefix(ctx context.Context, user string, key ssh.PublicKey) (*grant, error) {
	search, cancel := context.WithTimeout(ctx, d.config.RefusalTime*2/3)
	defer cancel()
	for _, at := range placesOf(user) {
		if len(at.run) < minPrefix || !isRunID(at.run) {
			continue
		}
		g, err := d.onlyGrantByPrefix(search, at, key)
		if errors.Is(search.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
			return nil, &refusal{"the search for runs with this prefix timed out"}
		}
		if g != nil || err != nil {
			return g, err
		}
	}
	return nil, nil
}

// onlyGrantByPrefix returns the grant of a key if it opens exactly one run with a prefix, nil if it opens none, and a
// *refusal if it opens several.
func (d *Door) onlyGrantByPrefix(ctx context.Context, at place, key ssh.PublicKey) (*grant, error) {
	ids, err := d.config.Runs.Starting(ctx, at.run, maxStarting+1)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	if len(ids) > maxStarting {
		return nil, &refusal{"too many runs have this prefix"}
	}
	var only *grant
	for _, id := range ids {
		g, err := d.grantByTaskKey(ctx, place{at.task, id}, key)
		switch {
		case err != nil:
			return nil, err
		case g != nil && only != nil:
			return nil, &refusal{"this key opens several runs with this prefix"}
		case g != nil:
			only = g
		}
	}
	return only, nil
}
