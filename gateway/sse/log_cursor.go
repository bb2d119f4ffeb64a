package sse

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"switchyard/activities/store/storekey"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// logEndID is the id of the end event of a stream of logs.
	logEndID = "end"
	// logMark separates the number of lines from the positions in the id of a line.
	logMark = "~"
	// maxCursor is the maximum length of the id of a line. Proxies refuse requests with much longer headers.
	maxCursor = 6 << 10
)

// logPosition is the position of the next chunk in the log of one dispatch.
type logPosition struct {
	Task       string `json:"t"`
	Generation int32  `json:"g,omitempty"`
	Attempt    int32  `json:"a,omitempty"`
	Claim      int32  `json:"c,omitempty"`
	Next       int64  `json:"n,omitempty"`
}

func (p logPosition) isOfLog(q logPosition) bool {
	q.Next = p.Next
	return p == q
}

// logCursor is the position of a stream of logs: a chunk in each log, and a line after the chunk of the current log,
// which comes first. Its text is the id of that line.
type logCursor struct {
	ended bool // the client has received the end event
	at    []logPosition
	// next is the position in the current log after the message.
	next int64
	// lines counts the lines of the message that have been passed. skip counts the lines that an earlier stream has
	// already sent of the log named by skipped.
	lines, skip int
	skipped     logPosition
	encoded     string // encoded form of at, or "" if it is out of date
}

// parseLogCursor returns the cursor for the id of a line, or a new cursor if the id is "".
func parseLogCursor(text string) (*logCursor, error) {
	c := &logCursor{}
	if text == "" {
		return c, nil
	}
	if text == logEndID {
		c.ended = true
		return c, nil
	}
	invalid := rpcerror.Invalid("%q is not the id of a log line; resume with an id that the stream has sent", text)
	lines, encoded, ok := strings.Cut(text, logMark)
	data, err := base64.RawURLEncoding.DecodeString(encoded)
	if !ok || err != nil || json.Unmarshal(data, &c.at) != nil || len(c.at) == 0 {
		return nil, invalid
	}
	if c.skip, err = strconv.Atoi(lines); err != nil || c.skip < 0 {
		return nil, invalid
	}
	for _, p := range c.at {
		if p.Task == "" || p.Generation < 0 || p.Attempt < 0 || p.Claim < 0 || p.Next < 0 {
			return nil, invalid
		}
	}
	c.skipped = c.at[0]
	return c, nil
}

// positions returns the positions at which a stream that resumes this one begins.
func (c *logCursor) positions() []*v1.LogPosition {
	var all []*v1.LogPosition
	for _, p := range c.at {
		all = append(all, &v1.LogPosition{Task: p.Task, Generation: p.Generation, Attempt: p.Attempt, Claim: p.Claim, Next: p.Next})
	}
	return all
}

// begin makes the log of a message the current one. position is the position in the log after the message, or nil if the
// message belongs to no log.
func (c *logCursor) begin(position *v1.LogPosition) {
	c.lines = 0
	if position == nil {
		return
	}
	p := logPosition{position.GetTask(), position.GetGeneration(), position.GetAttempt(), position.GetClaim(), 0}
	c.next = position.GetNext()
	k := slices.IndexFunc(c.at, p.isOfLog)
	switch {
	case k == 0:
		return
	case k > 0:
		p = c.at[k]
		c.at = slices.Delete(c.at, k, k+1)
	}
	if _, _, _, batch := storekey.ParseBatchName(p.Task); !batch {
		// Attempts of a task run one after the other, so the log of the previous attempt is complete.
		c.at = slices.DeleteFunc(c.at, func(q logPosition) bool {
			return q.Task == p.Task && cmp.Or(cmp.Compare(q.Generation, p.Generation), cmp.Compare(q.Claim, p.Claim)) < 0
		})
	}
	c.at, c.encoded = slices.Insert(c.at, 0, p), ""
}

// advance moves the cursor past a line and reports whether the line must be sent.
func (c *logCursor) advance() bool {
	c.lines++
	if c.skip > 0 && c.at[0].isOfLog(c.skipped) {
		c.skip--
		return false
	}
	return true
}

// finish moves the cursor past the message.
func (c *logCursor) finish() {
	if len(c.at) > 0 && c.next > c.at[0].Next {
		c.at[0].Next, c.encoded = c.next, ""
	}
	c.lines = 0
}

// text returns the text form of the cursor, or "" if it would be too long.
func (c *logCursor) text() string {
	if c.encoded == "" {
		data, _ := json.Marshal(c.at) // strings and numbers cannot fail
		c.encoded = base64.RawURLEncoding.EncodeToString(data)
	}
	if len(c.encoded) > maxCursor {
		return ""
	}
	return strconv.Itoa(c.lines) + logMark + c.encoded
}
