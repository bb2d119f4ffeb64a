package submission

import (
	"context"
	"errors"
	"fmt"

	"switchyard/activities/artifacts"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
)

// source returns the files that were stored for a run, or nil if none were.
func (s *Submitter) source(ctx context.Context, def *v1.Definition, upload string) (*v1.Artifact, error) {
	if upload == "" {
		if dir := def.GetSource().GetDir(); dir != "" {
			return nil, rpcerror.Invalid("the tasks start with the files of the folder %s, and the request has none; `switchyard submit` sends them", dir)
		}
		return nil, nil
	}
	found, err := (&artifacts.Library{Store: s.Store}).Find(ctx, storekey.SourceUpload(upload))
	return found, uploadError(err)
}

// sourceOf returns the files with which the tasks of a run have started, or nil if it has none, or no node has fetched them from git.
func (s *Submitter) sourceOf(ctx context.Context, in *historyv1.RunInput, id string) (*v1.Artifact, error) {
	if definition.Source(in) == nil {
		return nil, nil
	}
	found, err := (&artifacts.Library{Store: s.Store}).Find(ctx, storekey.Source(id))
	if errors.Is(err, store.ErrNotFound) && in.GetSource() == nil {
		return nil, nil
	}
	return found, err
}

func uploadError(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return rpcerror.Invalid("the files of source_upload are not stored, or no longer, because they are kept for a day; send them again")
	}
	return err
}

// keepSource gives a run a manifest of its own of the files with which its tasks start.
func (s *Submitter) keepSource(ctx context.Context, in *historyv1.RunInput, id string) error {
	if in.GetSource() == nil {
		return nil
	}
	if _, err := (&artifacts.Library{Store: s.Store}).Adopt(ctx, in.GetSource(), storekey.Source(id)); err != nil {
		return fmt.Errorf("keep the files of the run: %w", uploadError(err))
	}
	return nil
}
