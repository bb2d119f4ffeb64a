package scriptedmodel

import "time"

// Script defines how a model behaves. A request that no rule matches gets status 400.
type Script struct {
	Key   string `yaml:"key"`   // the API key that requests must carry; "" accepts any key, and none
	Rules []Rule `yaml:"rules"` // the first rule that matches a request applies
}

// Rule defines the reply to the requests that match it.
type Rule struct {
	Name  string `yaml:"name"` // shown in records; "" means "rules[N]"
	When  When   `yaml:"when"`
	Reply Reply  `yaml:"reply"`
	Pace  Pace   `yaml:"pace"`
	Fault *Fault `yaml:"fault"` // nil if the rule never misbehaves
}

// When defines which requests a rule matches. All conditions that are set must hold; its zero value matches every request.
type When struct {
	User       string `yaml:"user"`       // contained in the last user message that has text
	System     string `yaml:"system"`     // contained in the system prompt
	Model      string `yaml:"model"`      // the name of the model
	ToolResult string `yaml:"toolResult"` // the name of a tool whose result follows the last reply of the model
	// ToolResultText is contained in a result that follows the last reply of the model, of the tool ToolResult if that is set.
	ToolResultText string `yaml:"toolResultText"`
	Turns          *int   `yaml:"turns"` // the number of model replies in the conversation; nil means any number
}

// Reply defines the model's reply.
type Reply struct {
	// Thinking precedes the text, with a signature that the client must send back unchanged. Chat Completions has no
	// thinking.
	Thinking  string     `yaml:"thinking"`
	Text      string     `yaml:"text"`
	ToolCalls []ToolCall `yaml:"toolCalls"`
	Usage     *Usage     `yaml:"usage"` // nil means a count of words
	// StopReason is one of the Stop constants, or any other word, which is sent unchanged. "" means StopToolUse with
	// tool calls and StopEndTurn without.
	StopReason string `yaml:"stopReason"`
}

// Stop reasons, in the words of the Messages API. For Chat Completions they become stop, tool_calls, length and
// content_filter.
const (
	StopEndTurn   = "end_turn"
	StopToolUse   = "tool_use"
	StopMaxTokens = "max_tokens"
	StopRefusal   = "refusal"
)

// ToolCall is a call of a tool, in a reply or in a recorded conversation.
type ToolCall struct {
	ID        string    `yaml:"id"` // derived from the conversation if empty, so that equal requests get equal IDs
	Name      string    `yaml:"name"`
	Arguments Arguments `yaml:"arguments"`
}

// Arguments holds the arguments of a tool call as the model writes them: a JSON object, or text that is broken JSON. A
// Messages API reply without streaming cannot hold broken JSON, and gets a JSON string with that text. "" means {}.
type Arguments string

// Usage counts the tokens of a request and its reply. Chat Completions counts cached tokens as a part of the input.
// Here, as in the Messages API, they come on top of it.
type Usage struct {
	Input      int `yaml:"input"`
	Output     int `yaml:"output"`
	CacheRead  int `yaml:"cacheRead"`
	CacheWrite int `yaml:"cacheWrite"`
}

// Pace sets how fast a reply is sent.
type Pace struct {
	Delay      time.Duration `yaml:"delay"`      // before the first byte, including the header
	ChunkDelay time.Duration `yaml:"chunkDelay"` // between two chunks of a stream
	ChunkSize  int           `yaml:"chunkSize"`  // characters per chunk; 0 means defaultChunkSize
}

// defaultChunkSize is the number of characters in a chunk of a stream.
const defaultChunkSize = 16

// Fault defines how a rule misbehaves. At least one of Status, Break and Pace is set; Status and Break exclude each
// other.
type Fault struct {
	// Times is the number of requests that the rule fails before it answers normally; 0 means that it always fails.
	// Requests count across all conversations.
	Times int `yaml:"times"`

	Status     int           `yaml:"status"`     // refuses with an HTTP status, such as 429, 500 or 529
	RetryAfter time.Duration `yaml:"retryAfter"` // sent with Status; 0 sends no header

	Break Break `yaml:"break"` // breaks the reply in the middle
	After int   `yaml:"after"` // number of chunks before the break

	Pace *Pace `yaml:"pace"` // replaces the pace of the rule; nil keeps it
}

// Break is a way to break a reply. Without streaming, the break is in the middle of the body.
type Break string

// Ways to break a reply.
const (
	BreakCut       Break = "cut"       // closes the connection
	BreakTruncate  Break = "truncate"  // ends the response without its last events and without an error
	BreakMalformed Break = "malformed" // sends half of one event, then the others
	BreakError     Break = "error"     // sends an error event; without streaming, an overloaded status
	BreakStall     Break = "stall"     // sends nothing more until the client leaves
	BreakEndless   Break = "endless"   // repeats a chunk until the client leaves; without streaming, spaces
)

// breaks lists every way to break a reply.
var breaks = []Break{BreakCut, BreakTruncate, BreakMalformed, BreakError, BreakStall, BreakEndless}
