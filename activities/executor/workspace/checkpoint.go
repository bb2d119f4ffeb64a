package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// CheckpointState is which content of the file SWITCHYARD_CHECKPOINT is known.
// The zero value stands for none.
type CheckpointState struct{ info fs.FileInfo }

// Checkpoint reads the file SWITCHYARD_CHECKPOINT unless its content is known, and
// is what is known then. It may be called while the task runs, which may be
// writing: a task that wants each of its checkpoints to be kept whole writes another
// file and renames it. Without a file, or with one that is known, data is nil. What
// cannot be used is a *ContentError, once.
func (w *Workspace) Checkpoint(known CheckpointState) (data []byte, now CheckpointState, err error) {
	info, err := os.Lstat(w.path(checkpointFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, known, nil
	case err != nil:
		return nil, known, fmt.Errorf("read SWITCHYARD_CHECKPOINT: %w", err)
	case known.is(info):
		return nil, known, nil
	}
	data, read, err := content(w.path(checkpointFile), "SWITCHYARD_CHECKPOINT", MaxCheckpoint)
	if read != nil {
		info = read
	}
	if data == nil && err == nil {
		return nil, known, nil // it has gone meanwhile
	}
	return data, CheckpointState{info}, err
}

func (s CheckpointState) is(info fs.FileInfo) bool {
	return s.info != nil && os.SameFile(s.info, info) && s.info.ModTime().Equal(info.ModTime()) && s.info.Size() == info.Size()
}
