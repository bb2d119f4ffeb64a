package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxProbe bounds how much of the response to a probe is read, in bytes.
const maxProbe = 1 << 10

// Health is a gateway's response to the probe of a load balancer.
type Health struct {
	// Ready is set if the gateway can answer calls. Otherwise Word is its reason.
	Ready bool
	Word  string
	// Skew is how far the clock of the gateway is ahead of the clock of this machine, to about a second.
	Skew time.Duration
}

// Health asks whether the gateway can answer calls. Its error carries an exit code.
func (a *Client) Health(ctx context.Context) (Health, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.gateways.URL+"/readyz", nil)
	if err != nil {
		return Health{}, err
	}
	sent := time.Now()
	res, err := a.gateways.HTTP.Do(req)
	if err != nil {
		return Health{}, a.unreachable(a.gatewayOf(err), err)
	}
	defer res.Body.Close()
	received := time.Now()
	word, err := io.ReadAll(io.LimitReader(res.Body, maxProbe))
	if err != nil {
		return Health{}, a.unreachable(a.gatewayOf(err), err)
	}
	h := Health{Ready: res.StatusCode == http.StatusOK, Word: strings.TrimSpace(string(word))}
	if date, err := http.ParseTime(res.Header.Get("Date")); err == nil {
		h.Skew = skew(sent, received, date)
	}
	switch res.StatusCode {
	case http.StatusOK, http.StatusServiceUnavailable:
		return h, nil
	}
	return h, fmt.Errorf("the server at %s is not a gateway: it answers /readyz with %s", a.URL(), res.Status)
}

// skew returns how far a date, which is cut to whole seconds, is from a request that took place between sent and received. It is 0
// if the date may be in between.
func skew(sent, received, date time.Time) time.Duration {
	switch {
	case date.After(received):
		return date.Sub(received)
	case date.Add(time.Second).Before(sent):
		return date.Add(time.Second).Sub(sent)
	}
	return 0
}
