package scriptedmodel

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// turn is a fully determined reply to one conversation. Dialects render it.
type turn struct {
	id         string // equal conversations have equal IDs
	model      string
	thinking   string
	text       string
	calls      []ToolCall
	usage      Usage
	stopReason string
	chunkSize  int
	withUsage  bool // a stream of Chat Completions ends with the usage
}

// newTurn returns the reply of a rule to a request.
func newTurn(reply Reply, estimate Pace, c Conversation) turn {
	t := turn{
		id: conversationID(c), model: c.Model, thinking: reply.Thinking, text: reply.Text, calls: slices.Clone(reply.ToolCalls),
		stopReason: reply.StopReason, chunkSize: estimate.ChunkSize,
	}
	for i, call := range t.calls {
		if call.Arguments == "" {
			t.calls[i].Arguments = "{}"
		}
		if call.ID == "" {
			t.calls[i].ID = fmt.Sprintf("call_%s_%d", t.id, i)
		}
	}
	if t.stopReason == "" {
		t.stopReason = StopEndTurn
		if len(t.calls) > 0 {
			t.stopReason = StopToolUse
		}
	}
	if t.chunkSize == 0 {
		t.chunkSize = defaultChunkSize
	}
	if reply.Usage != nil {
		t.usage = *reply.Usage
		return t
	}
	t.usage = Usage{Input: c.words(), Output: countWords(t.thinking) + countWords(t.text)}
	for _, call := range t.calls {
		t.usage.Output += countWords(string(call.Arguments))
	}
	return t
}

// signature returns the signature of a thinking text.
func signature(thinking string) string {
	sum := sha256.Sum256([]byte(thinking))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// conversationID returns a short digest of a conversation.
func conversationID(c Conversation) string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // all fields come from JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// chunks splits a text into pieces of size characters.
func chunks(text string, size int) []string {
	var pieces []string
	for piece := range slices.Chunk([]rune(text), size) {
		pieces = append(pieces, string(piece))
	}
	return pieces
}
