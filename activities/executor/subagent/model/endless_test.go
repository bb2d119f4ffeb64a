package model

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// endless serves a beginning and then repeats a piece until the client disconnects. It replaces %d in the piece by the
// number of the repetition.
func endless(t *testing.T, beginning, piece string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, err := io.WriteString(w, beginning)
		for i := 0; err == nil && r.Context().Err() == nil; i++ {
			_, err = io.WriteString(w, strings.ReplaceAll(piece, "%d", strconv.Itoa(i)))
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// anthropicEvent returns an event of the Messages API.
func anthropicEvent(kind, fields string) string {
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, fields)
}

// openaiDelta returns a chunk of Chat Completions.
func openaiDelta(delta string) string {
	return `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":` + delta + `}]}` + "\n\n"
}

func TestEndlessRepliesAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 8<<10)
	start := anthropicEvent("message_start", `"message":{"model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`)
	block := func(content string) string {
		return start + anthropicEvent("content_block_start", `"index":0,"content_block":`+content)
	}
	delta := func(content string) string {
		return anthropicEvent("content_block_delta", `"index":0,"delta":`+content)
	}
	for _, test := range []struct{ name, provider, beginning, piece, bound string }{
		{"text", providerAnthropic, block(`{"type":"text","text":""}`), delta(`{"type":"text_delta","text":"` + long + `"}`), "1 MiB of text"},
		{"arguments", providerAnthropic, block(`{"type":"tool_use","id":"c","name":"n","input":{}}`),
			delta(`{"type":"input_json_delta","partial_json":"` + long + `"}`), "1 MiB of text"},
		{"thinking", providerAnthropic, block(`{"type":"thinking","thinking":"","signature":""}`),
			delta(`{"type":"thinking_delta","thinking":"` + long + `"}`), "1 MiB of text"},
		{"blocks", providerAnthropic, start, anthropicEvent("content_block_start", `"index":%d,"content_block":{"type":"text","text":""}`), "1 MiB of text"},
		{"calls", providerAnthropic, start,
			anthropicEvent("content_block_start", `"index":%d,"content_block":{"type":"tool_use","id":"c%d","name":"`+long+`","input":{}}`), "1 MiB of text"},
		{"text", providerOpenAI, "", openaiDelta(`{"content":"` + long + `"}`), "1 MiB of text"},
		{"refusal", providerOpenAI, "", openaiDelta(`{"refusal":"` + long + `"}`), "1 MiB of text"},
		{"arguments", providerOpenAI, "", openaiDelta(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"n","arguments":"` + long + `"}}]}`), "1 MiB of text"},
		{"calls", providerOpenAI, "", openaiDelta(`{"tool_calls":[{"index":%d,"id":"c%d","function":{"name":"` + long + `","arguments":""}}]}`), "1 MiB of text"},
		{"calls of one index", providerOpenAI, "", openaiDelta(`{"tool_calls":[{"index":0,"id":"c%d","function":{"name":"","arguments":""}}]}`), "1 MiB of text"},
		{"comments", providerAnthropic, start, ": " + strings.Repeat(long, 64) + "\n\n", "64 MiB"},
		{"comments", providerOpenAI, "", ": " + strings.Repeat(long, 64) + "\n\n", "64 MiB"},
		{"line", providerOpenAI, "data: ", long, "4 MiB in one event"},
		{"line", providerAnthropic, "event: ", long, "4 MiB in one event"},
	} {
		t.Run(test.provider+" "+test.name, func(t *testing.T) {
			t.Parallel()
			e := failure(t, ask(t, test.provider, endless(t, test.beginning, test.piece), nil), says("go"))
			if e.Kind != Endless || e.IsTemporary() || !strings.HasSuffix(e.Error(), "does not end its reply: more than "+test.bound+" have arrived") {
				t.Errorf("%v", e)
			}
		})
	}
}
