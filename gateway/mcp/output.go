package mcp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// defaultFollow is how long stream_task_output follows by default, in seconds.
	defaultFollow = 5
	// maxOutput bounds the output in an answer, in bytes. The end is kept.
	maxOutput = 2400
	// maxProgress bounds the output in a progress notification, in bytes. progressPause is the minimum interval between
	// notifications.
	maxProgress   = 1000
	progressPause = 250 * time.Millisecond
	// maxCursor bounds a cursor, in bytes. A cursor over the logs of many tasks exceeds it and is left out.
	maxCursor = 1500
)

// streamOutput returns the output of tasks since the cursor and follows it for the requested time.
func streamOutput(ctx context.Context, i *invocation) (any, error) {
	asked := i.request.(*v1.ListRunLogsRequest)
	req := &v1.StreamRunLogsRequest{Id: asked.GetId(), Task: asked.GetTask(), Stream: asked.GetStream(), Attempt: asked.Attempt}
	resume, err := parseCursor(i.arguments.Cursor)
	if err != nil {
		return nil, err
	}
	req.Resume = resume
	wait := i.wait(defaultFollow)
	req.Follow = wait > 0
	following, cancel := context.WithCancel(ctx)
	defer cancel()
	if req.GetFollow() {
		timer := time.AfterFunc(wait, cancel)
		defer timer.Stop()
	}
	stream, err := i.Runs.StreamRunLogs(following, connect.NewRequest(req))
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	t := &transcript{positions: resume, single: req.GetTask() != "", progress: i.progress}
	for stream.Receive() {
		t.add(ctx, stream.Msg())
	}
	t.sendProgress(ctx, true)
	timedOut := following.Err() != nil && ctx.Err() == nil
	if err := stream.Err(); err != nil && !timedOut {
		return nil, err
	}
	answer := t.answer()
	if req.GetFollow() && !timedOut {
		answer["ended"] = true
	}
	return answer, nil
}

// transcript collects the end of the output of tasks. It is not safe for concurrent use.
type transcript struct {
	positions []*v1.LogPosition
	single    bool   // the caller asked for one task, whose first lines need no heading
	last      string // heading of the lines that were added last
	kept      []byte
	total     int // bytes added
	missing   []string

	progress func(context.Context, float64, string)
	fresh    []byte // not yet reported
	reported time.Time
}

// add appends a piece of a log.
func (t *transcript) add(ctx context.Context, piece *v1.StreamRunLogsResponse) {
	if m := piece.GetMissing(); m != nil {
		t.missing = append(t.missing, m.GetTask())
	}
	if p := piece.GetPosition(); p != nil {
		t.positions = slices.DeleteFunc(t.positions, func(q *v1.LogPosition) bool { return isSameLog(p, q) })
		t.positions = append(t.positions, p)
	}
	for _, entry := range piece.GetEntries() {
		whose := fmt.Sprintf("%s, attempt %d, %s", entry.GetTask(), entry.GetAttempt(), entry.GetStream())
		if entry.GetNotice() {
			whose = entry.GetTask() + ", notice of Switchyard"
		}
		if whose != t.last && (!t.single || t.last != "" || entry.GetNotice()) {
			t.write("\n==> " + whose + "\n")
		}
		t.last = whose
		t.write(string(entry.GetData()))
	}
	t.sendProgress(ctx, false)
}

func (t *transcript) write(text string) {
	t.total += len(text)
	t.kept = lastOf(append(t.kept, text...), maxOutput)
	if t.progress != nil {
		t.fresh = lastOf(append(t.fresh, text...), maxProgress)
	}
}

// lastOf returns the last limit bytes of data. It may overwrite data.
func lastOf(data []byte, limit int) []byte {
	if len(data) <= limit {
		return data
	}
	return append(data[:0], data[len(data)-limit:]...)
}

// sendProgress sends the new output as a progress notification, if the caller asked for progress and the last notification
// is old enough or now is set.
func (t *transcript) sendProgress(ctx context.Context, now bool) {
	if t.progress == nil || len(t.fresh) == 0 || !now && time.Since(t.reported) < progressPause {
		return
	}
	message, err := compact(map[string]string{untrustedKey: strings.ToValidUTF8(string(t.fresh), "\uFFFD")})
	if err == nil {
		t.progress(ctx, float64(t.total), string(message))
	}
	t.fresh, t.reported = t.fresh[:0], time.Now()
}

// answer returns the result of the tool.
func (t *transcript) answer() map[string]any {
	output := map[string]any{untrustedKey: strings.ToValidUTF8(strings.TrimPrefix(string(t.kept), "\n"), "\uFFFD")}
	if omitted := t.total - len(t.kept); omitted > 0 {
		output["omittedBytes"] = omitted
	}
	answer := map[string]any{"output": output}
	if len(t.missing) > 0 {
		answer["missing"] = t.missing[:min(len(t.missing), maxList)]
	}
	if cursor, err := formatCursor(t.positions); err == nil && len(cursor) <= maxCursor {
		answer["cursor"] = cursor
	}
	return answer
}

// isSameLog reports whether two positions are in the same log.
func isSameLog(a, b *v1.LogPosition) bool {
	return a.GetTask() == b.GetTask() && a.GetGeneration() == b.GetGeneration() && a.GetAttempt() == b.GetAttempt() && a.GetClaim() == b.GetClaim()
}

// formatCursor encodes positions as a cursor. parseCursor is its inverse.
func formatCursor(positions []*v1.LogPosition) (string, error) {
	data, err := proto.Marshal(&v1.StreamRunLogsRequest{Resume: positions})
	return "c" + base64.RawURLEncoding.EncodeToString(data), err
}

func parseCursor(cursor string) ([]*v1.LogPosition, error) {
	if cursor == "" {
		return nil, nil
	}
	text, ok := strings.CutPrefix(cursor, "c")
	data, err := base64.RawURLEncoding.DecodeString(text)
	var req v1.StreamRunLogsRequest
	if err = errors.Join(err, proto.Unmarshal(data, &req)); !ok || err != nil {
		return nil, usagef("The cursor does not come from stream_task_output; omit it to start from the beginning.")
	}
	return req.GetResume(), nil
}
