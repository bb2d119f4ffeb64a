package taskrunner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/workspace"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// orphan is an attempt with a recovery file of an earlier worker.
type orphan struct {
	*recoveryFile
	req  *historyv1.ExecuteRequest
	spec *structpb.Struct
	// beatAt is when the newest acknowledged heartbeat was sent, or when the recovery file was created.
	beatAt time.Time
	// release gives the attempt's place back.
	release func()
}

// identity returns the identity of the attempt.
func (l *orphan) identity(n *Node) executor.Identity {
	return identityOf(n, l.req, &membersOf(l.req)[0])
}

// delivery returns what the server sent along with the request, for another worker.
func (l *orphan) delivery() delivery {
	return delivery{activityRef: activityRef{Activity: l.state.Activity, token: l.state.Token, heartbeat: l.state.Heartbeat}, queue: l.state.Queue}
}

// lastBeat returns when the newest acknowledged heartbeat was sent.
func (l *orphan) lastBeat() executor.Instant {
	return executor.Now().Add(-max(time.Since(l.beatAt), 0))
}

// ends returns the ends of the attempt's lease, counted from the sending of its newest acknowledged heartbeat.
func (l *orphan) ends() (stop, kill time.Duration) {
	return leaseEnds(l.state.inUse(), l.state.Heartbeat, acknowledged(nil).surely(l.state.Heartbeat))
}

// orphans reads the recovery files that earlier workers of the node have left. It removes unreadable files.
func (s *State) orphans(logger *slog.Logger) ([]*orphan, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []*orphan
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		path := filepath.Join(s.Dir, entry.Name())
		if filepath.Ext(path) == endingSuffix {
			_ = os.Remove(path) // the executor's leftover ends because it has no recovery file
			continue
		}
		l, err := readOrphan(path)
		if err == nil && filepath.Ext(path) != recoverySuffix {
			err = errors.New("it is none")
		}
		if err != nil {
			logger.Warn("what an earlier worker has noted of an attempt is of no use", "file", path, "error", err)
			_ = os.Remove(path)
			continue
		}
		l.logger, l.run, l.task = logger, l.req.GetRunId(), membersOf(l.req)[0].name
		found = append(found, l)
	}
	return found, nil
}

func readOrphan(path string) (*orphan, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeepsakeBytes {
		return nil, errors.New("it is none")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	l := &orphan{recoveryFile: &recoveryFile{path: path}, req: &historyv1.ExecuteRequest{}, spec: &structpb.Struct{}, beatAt: info.ModTime()}
	if err := json.Unmarshal(text, &l.state); err != nil {
		return nil, err
	}
	if l.state.Version != keepsakeVersion {
		return nil, fmt.Errorf("it is of version %d", l.state.Version)
	}
	if l.state.Heartbeat <= 0 {
		l.state.Heartbeat = defaultHeartbeatTimeout
	}
	read := protojson.UnmarshalOptions{DiscardUnknown: true}
	return l, errors.Join(read.Unmarshal(l.state.Request, l.req), read.Unmarshal(l.state.Spec, l.spec))
}

// checkpoint returns the newest checkpoint of the attempt. The heartbeats report it until the file is read again. For an
// attempt with secrets it returns the checkpoint that the attempt began with, because the values to mask are not known
// yet.
func (l *orphan) checkpoint(ws *workspace.Workspace, m *member) *historyv1.Checkpoint {
	if len(l.req.GetSecretEnv()) > 0 {
		return proto.CloneOf(l.req.GetCheckpoint())
	}
	data, _, err := ws.Checkpoint(workspace.CheckpointState{})
	switch {
	case err != nil || data == nil:
		return proto.CloneOf(l.req.GetCheckpoint())
	case len(data) <= maxInlineCheckpoint:
		return &historyv1.Checkpoint{Data: data}
	}
	// The earlier worker may not have stored the checkpoint. That costs only time.
	return &historyv1.Checkpoint{Key: storekey.Checkpoint(names.Home(l.req.GetRunId(), l.req.GetChain()), l.req.GetGeneration(), m.name, m.claim)}
}
