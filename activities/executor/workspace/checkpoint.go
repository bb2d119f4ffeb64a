package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// CheckpointState identifies the content of SWITCHYARD_CHECKPOINT that the caller already has. The zero value means
// none.
type CheckpointState struct{ info fs.FileInfo }

// Checkpoint reads the file SWITCHYARD_CHECKPOINT unless it is unchanged since known, and returns its content with the
// new state. It may be called while the task runs and writes: a task that wants every checkpoint kept whole writes
// another file and renames it. data is nil if the file is missing or unchanged. Unusable content is a *ContentError,
// reported once per version of the file.
func (w *Workspace) Checkpoint(known CheckpointState) (data []byte, now CheckpointState, err error) {
	info, err := os.Lstat(w.path(checkpointFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, known, nil
	case err != nil:
		return nil, known, fmt.Errorf("read SWITCHYARD_CHECKPOINT: %w", err)
	case known.matches(info):
		return nil, known, nil
	}
	data, read, err := readFile(w.path(checkpointFile), "SWITCHYARD_CHECKPOINT", MaxCheckpoint)
	if read != nil {
		info = read
	}
	if data == nil && err == nil {
		return nil, known, nil // it was removed in the meantime
	}
	return data, CheckpointState{info}, err
}

func (s CheckpointState) matches(info fs.FileInfo) bool {
	return s.info != nil && os.SameFile(s.info, info) && s.info.ModTime().Equal(info.ModTime()) && s.info.Size() == info.Size()
}
