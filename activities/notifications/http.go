package notifications

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

const (
	// maxAnswer is how much of an answer is read, in bytes.
	maxAnswer = 64 << 10
	// longestWait bounds how long a receiver can delay the next try.
	longestWait = time.Hour
)

// dial connects to a receiver whose address is on the public internet or allowed.
func (s *Sender) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return s.allow.Dialer(host, "start the gateways with --notify-allow "+host+" to allow it").DialContext(ctx, network, address)
}

// idempotencyHeader names the key that is the same in every try to deliver a message.
const idempotencyHeader = "Idempotency-Key"

// postJSON sends a document to a URL, which may be a reference to a stored secret.
func (t *try) postJSON(ctx context.Context, to string, message *historyv1.NotificationMessage, document any) (answer string, err error) {
	url, err := t.reveal(ctx, to)
	if err != nil {
		return "", err
	}
	body, err := encode(document)
	if err != nil {
		return "", permanent(err)
	}
	return t.post(ctx, url, http.Header{"Content-Type": {"application/json"}, idempotencyHeader: {message.GetKey()}}, body)
}

// encode returns a document as JSON, without the escapes for HTML, which would make it longer.
func encode(document any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(document)
	return b.Bytes(), err
}

// post sends a body to a URL and returns the answer in one line. Its errors do not show the URL, which may be a secret.
func (t *try) post(ctx context.Context, to string, header http.Header, body []byte) (answer string, err error) {
	u, err := url.Parse(to)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", permanent(errors.New("its URL is not one of https or http"))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return "", permanent(errors.New("its URL is malformed"))
	}
	req.Header = header
	req.Header.Set("User-Agent", "switchyard")
	res, err := t.client.Do(req)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", u.Host, err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer)) // the status decides whether the target has accepted the message
	if res.StatusCode/100 == 2 {
		return t.shown(res.Status), nil
	}
	err = fmt.Errorf("%s answered %s", u.Host, t.shown(res.Status))
	if line := t.shown(string(text)); line != "" {
		err = fmt.Errorf("%w: %s", err, line)
	}
	if res.StatusCode/100 == 3 {
		err = fmt.Errorf("%w; redirects are not followed", err)
	}
	return "", &failure{error: err, permanent: isPermanentStatus(res.StatusCode), after: retryAfter(res.Header, t.now())}
}

// isPermanentStatus reports whether a receiver refuses the message itself. Other refusals may end when a person mends the target.
func isPermanentStatus(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// retryAfter returns how long the header Retry-After of an answer asks to wait, or 0.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	wait := time.Duration(0)
	if seconds, err := strconv.Atoi(text); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), longestWait)
}
