package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Client requests single replies from a language model. It is safe for concurrent use.
type Client interface {
	// Reply sends a conversation and returns the complete reply. It calls text with each piece of text as it arrives,
	// from the calling goroutine, including pieces of a reply that fails later. It retries nothing. The error is an
	// *Error, or the cause of ctx if ctx ended, which Reply notices within a second.
	Reply(ctx context.Context, r Request, text func(string)) (*Reply, error)
}

// Request is a conversation for a model to continue.
type Request struct {
	Model, System string
	Messages      []Message
	Tools         []Tool
	MaxTokens     int // the maximum length of the reply; 0 means defaultMaxTokens for Anthropic, and no limit for OpenAI
}

// Tool describes a tool that the model may call.
type Tool struct {
	Name, Description string
	Schema            json.RawMessage // JSON Schema of an object; empty means no arguments
}

// Reply is a complete reply of the model.
type Reply struct {
	Message Message `json:"message"` // by Assistant; it may have no parts
	Usage   Usage   `json:"usage"`
	Stop    Stop    `json:"stop"`
	Model   string  `json:"model"` // the provider's name of the model
}

// Usage counts the tokens of a reply and its request. Cached tokens are not part of InputTokens. If a provider reports
// no usage, it is estimated with bytesPerToken.
type Usage struct {
	InputTokens      int64 `json:"inputTokens,omitempty"`
	OutputTokens     int64 `json:"outputTokens,omitempty"`
	CacheReadTokens  int64 `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int64 `json:"cacheWriteTokens,omitempty"`
}

// Stop is why a reply ended.
type Stop string

// Reasons for the end of a reply.
const (
	StopEnd     Stop = "end"     // the model has finished
	StopTools   Stop = "tools"   // the model awaits the results of its calls
	StopLength  Stop = "length"  // the reply is too long; its last call may be broken
	StopRefusal Stop = "refusal" // the model or the provider declined to answer
)

// Options configure a client.
type Options struct {
	Provider     string        // "anthropic" or "openai"
	BaseURL      string        // of the API; empty means the provider's own. A path /v1 is optional.
	Key          string        // may be empty if BaseURL is set
	StallTimeout time.Duration // how long the provider may send nothing; 0 means defaultStallTimeout
	HTTPClient   *http.Client  // nil means http.DefaultClient
}

// defaultStallTimeout bounds the silence of a provider. A busy local model may compute that long before its first
// token.
const defaultStallTimeout = 5 * time.Minute

// dialect is the wire format of a provider.
type dialect interface {
	// stream sends a request and adds the response to a reply until the reply is complete. The error comes from the
	// exchange, is a *statusError, or reports a malformed stream.
	stream(ctx context.Context, client *http.Client, r Request, reply *assembly) error
}

// client implements Client for one provider.
type client struct {
	endpoint endpoint
	dialect  dialect
	stall    time.Duration
	http     *http.Client
}

// New returns a client for a provider.
func New(o Options) (Client, error) {
	e, err := newEndpoint(o)
	if err != nil {
		return nil, err
	}
	if o.StallTimeout < 0 {
		return nil, fmt.Errorf("the stall time-out is %s; it must not be negative", o.StallTimeout)
	}
	c := &client{endpoint: e, stall: cmp.Or(o.StallTimeout, defaultStallTimeout), http: o.HTTPClient}
	if c.http == nil {
		c.http = http.DefaultClient
	}
	switch e.provider {
	case providerAnthropic:
		c.dialect = newAnthropic(e)
	case providerOpenAI:
		c.dialect = newOpenAI(e)
	}
	return c, nil
}

func (c *client) Reply(ctx context.Context, r Request, text func(string)) (*Reply, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	exchange := newExchange(c.http.Transport, c.stall, cancel)
	defer exchange.stop()
	reply := newAssembly(r, text)
	bounded := *c.http
	bounded.Transport = exchange

	err := c.dialect.stream(within, &bounded, r, reply)
	if whole := reply.whole(); whole != nil {
		return whole, nil // even if the stream broke after its end, because the reply is paid for
	}
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if errors.Is(context.Cause(within), errStalled) {
		err = errStalled
	}
	return nil, c.endpoint.explain(err, r.Model, exchange)
}
