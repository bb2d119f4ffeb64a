package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode"
)

// maxAnswer bounds quotations in an error, in characters.
const maxAnswer = 400

// explain returns the error for a request that ended without a complete reply. err is nil if the stream ended without a
// stop reason.
func (e endpoint) explain(err error, model string, x *exchange) *Error {
	var refusal *statusError
	if errors.As(err, &refusal) {
		return e.explainStatus(refusal, model)
	}
	kind := Unavailable
	var text string
	var endless errEndless
	switch {
	case errors.Is(err, errStalled):
		text = fmt.Sprintf("model provider %s has sent nothing for %s", e.host, x.stall)
	case errors.As(err, &endless):
		kind = Endless
		text = fmt.Sprintf("model provider %s does not end its reply: more than %s have arrived", e.host, endless.bound)
	case x.sendError != nil:
		text = fmt.Sprintf("model provider %s cannot be reached: %s; check the task's baseUrl and the network of the node",
			e.host, e.quote(x.sendError.Error()))
	case !x.isSent:
		kind = Refused
		text = fmt.Sprintf("the request to model provider %s cannot be built: %s", e.host, e.quote(err.Error()))
	case x.readError != nil:
		text = fmt.Sprintf("model provider %s broke off its reply: %s", e.host, e.quote(x.readError.Error()))
	case !isEventStream(x.contentType):
		text = fmt.Sprintf("model provider %s answered with %q instead of an event stream; check the task's baseUrl and provider",
			e.host, e.quote(x.contentType))
	case err != nil:
		text = fmt.Sprintf("model provider %s sent a malformed event: %s", e.host, e.quote(err.Error()))
	default:
		text = fmt.Sprintf("model provider %s ended its reply early, without a stop reason", e.host)
	}
	return &Error{Kind: kind, Err: errors.New(text)}
}

// isEventStream reports whether a response may be an event stream. Some servers send no content type.
func isEventStream(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return contentType == "" || err == nil && media == "text/event-stream"
}

// explainStatus returns the error for a refusal.
func (e endpoint) explainStatus(refusal *statusError, model string) *Error {
	answer := newAnswer(refusal.body)
	kind, remedy := classify(refusal.status, answer)
	text := map[Kind]string{
		RateLimited: "limits the rate of requests", Overloaded: "is overloaded", Unavailable: "has failed", Refused: "refused the request",
	}[kind]
	switch status := refusal.status; {
	case status == http.StatusUnauthorized && e.key == "":
		text, remedy = "requires a key, but the task has none", e.keySources()
	case status == http.StatusUnauthorized:
		text, remedy = "refused the key", e.keySources()
	case status == http.StatusForbidden:
		text, remedy = fmt.Sprintf("does not allow the key to use model %q", model), "use another model, or a key that may use it"
	case isUnknownModel(status, answer, model):
		text, remedy = fmt.Sprintf("does not have model %q", model), "check the task's model"
	case status == http.StatusNotFound:
		text, remedy = fmt.Sprintf("has no model %q, or no API at this address", model), "check the task's model and baseUrl"
	case status >= 300 && status < 400:
		text, remedy = "redirects to another address", "set the task's baseUrl to that address"
		answer.message = refusal.header.Get("Location")
	case kind == Refused && remedy == "":
		text = fmt.Sprintf("refused the request to model %q", model)
	}
	text = fmt.Sprintf("model provider %s %s (%s)", e.host, text, strings.TrimSuffix(fmt.Sprintf("%d: %s", refusal.status, e.quote(answer.message)), ": "))
	if remedy != "" {
		text += "; " + remedy
	}
	return &Error{Kind: kind, Status: refusal.status, RetryAfter: retryAfter(refusal.header, time.Now()), Err: errors.New(text)}
}

// classify returns the kind of a refusal, and a remedy if one is certain.
func classify(status int, a answer) (kind Kind, remedy string) {
	switch {
	case a.isOneOf("insufficient_quota", "billing_error", "billing_hard_limit_reached") || status == http.StatusPaymentRequired:
		return Refused, "add credit to the account of the key"
	case status == http.StatusRequestEntityTooLarge || a.isOneOf("request_too_large", "context_length_exceeded"):
		return Refused, "the conversation is too long for the model"
	case status == http.StatusTooManyRequests:
		return RateLimited, ""
	case status == http.StatusServiceUnavailable || status == statusOverloaded:
		return Overloaded, ""
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly:
		return Unavailable, ""
	}
	return Refused, ""
}

// statusOverloaded is Anthropic's HTTP status for overload.
const statusOverloaded = 529

// isUnknownModel reports whether a refusal is about the name of the model rather than the address of the API.
func isUnknownModel(status int, a answer, model string) bool {
	if a.isOneOf("model_not_found") {
		return true
	}
	return status == http.StatusNotFound && (a.isOneOf("not_found_error") || model != "" && strings.Contains(a.message, model))
}

// answer is the provider's explanation of a refusal.
type answer struct {
	message    string
	kind, code string
}

// newAnswer parses the body of a refusal: {"error": {"message": "..."}}, {"error": "..."}, {"message": "..."} or text.
func newAnswer(body []byte) answer {
	var whole struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	var detail struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    any    `json:"code"`
	}
	var text string
	switch {
	case json.Unmarshal(body, &whole) != nil:
		return answer{message: string(body)}
	case json.Unmarshal(whole.Error, &detail) == nil && detail.Message != "":
		a := answer{message: detail.Message, kind: detail.Type}
		a.code, _ = detail.Code.(string)
		return a
	case json.Unmarshal(whole.Error, &text) == nil && text != "":
		return answer{message: text}
	case whole.Message != "":
		return answer{message: whole.Message}
	}
	return answer{message: string(body)}
}

// isOneOf reports whether the type or the code of an answer is one of words.
func (a answer) isOneOf(words ...string) bool {
	for _, word := range words {
		if a.kind == word || a.code == word {
			return true
		}
	}
	return false
}

// quote returns a text without the key and control characters, on one line and cut to maxAnswer.
func (e endpoint) quote(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if e.key != "" {
		text = strings.ReplaceAll(text, e.key, "***") // before the cut, which might leave a part of the key
	}
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxAnswer {
		return string(runes[:maxAnswer]) + "..."
	}
	return text
}
