package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"
)

// Protocol is the protocol that an HTTP connection is upgraded to.
const Protocol = "switchyard-session"

const (
	// dialTimeout bounds Dial, including the response.
	dialTimeout = 20 * time.Second
	// maxRefusal bounds the part of a refusal's body that is read, in bytes.
	maxRefusal = 64 << 10
)

// DialOptions configures Dial.
type DialOptions struct {
	// URL is the base URL of a gateway, such as "https://host:7280".
	URL string
	// Path is the path to connect to, such as "/v1/sessions".
	Path string
	// Token returns the token to log in with, or "" if there is none. A nil Token sends no token.
	Token func() string
	// TLS configures connections to a gateway with an https URL. nil means the certificate authorities of the system.
	TLS *tls.Config
	// Header holds additional headers for the request.
	Header http.Header
}

// RefusedError means that a gateway or node has refused to open a connection or a stream.
type RefusedError struct {
	// Status is the HTTP status, or 0 for a stream.
	Status int
	// Code is a Connect code such as "not_found", or "".
	Code string
	// Message is a text for people.
	Message string
}

// Error returns the message.
func (e *RefusedError) Error() string { return e.Message }

// Dial connects to a path of a gateway and upgrades the connection. If the gateway refuses, Dial returns a *RefusedError
// with the gateway's text. ctx applies only to dialing.
func Dial(ctx context.Context, o DialOptions) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var conn net.Conn
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { conn = info.Conn }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(o.URL, "/")+o.Path, nil)
	if err != nil {
		return nil, fmt.Errorf("the gateway URL must be like http://host:7280: %w", err)
	}
	for name, values := range o.Header {
		req.Header[name] = values
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", Protocol)
	if o.Token != nil {
		if token := o.Token(); token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
	}
	transport := newTransport(o.TLS)
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	stream, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode == http.StatusSwitchingProtocols && ok && conn != nil && strings.EqualFold(resp.Header.Get("Upgrade"), Protocol) {
		return upgraded{Conn: conn, reader: stream}, nil
	}
	defer func() { _ = resp.Body.Close() }()
	return nil, refusalOf(resp)
}

// newTransport returns a transport for one connection. It uses HTTP/1.1, because later versions have no Upgrade.
func newTransport(t *tls.Config) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	if t != nil {
		t = t.Clone()
		t.NextProtos = []string{"http/1.1"}
	}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		TLSClientConfig:     t,
		Protocols:           protocols,
	}
}

// refusalOf returns the error for a response that does not upgrade the connection.
func refusalOf(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	var said struct{ Code, Message string }
	if json.Unmarshal(body, &said) == nil && said.Message != "" {
		return &RefusedError{Status: resp.StatusCode, Code: said.Code, Message: said.Message}
	}
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusOK, http.StatusMethodNotAllowed, http.StatusSwitchingProtocols:
		return &RefusedError{Status: resp.StatusCode, Message: fmt.Sprintf(
			"%s answered %s instead of opening a session: it is not a gateway, it is an older gateway, or a proxy drops the Upgrade header", resp.Request.URL.Host, resp.Status)}
	}
	text := "it answered " + resp.Status
	if line, _, _ := bytes.Cut(bytes.TrimSpace(body), []byte("\n")); len(line) > 0 && len(line) < 500 {
		text += ": " + string(line)
	}
	return &RefusedError{Status: resp.StatusCode, Message: fmt.Sprintf("%s has not opened the session: %s", resp.Request.URL.Host, text)}
}

// Accept takes over the connection of a request that Dial has sent. If it returns an error, it has already replied to
// the request or could not reply.
func Accept(w http.ResponseWriter, r *http.Request) (net.Conn, error) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), Protocol) {
		w.Header().Set("Upgrade", Protocol)
		w.Header().Set("Connection", "Upgrade")
		return nil, refuse(w, http.StatusUpgradeRequired, "this is not a web page: sessions are opened with `Upgrade: "+Protocol+"`, as `switchyard runs exec` does")
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if errors.Is(err, http.ErrNotSupported) {
		return nil, refuse(w, http.StatusHTTPVersionNotSupported, "sessions are opened by HTTP/1.1; "+r.Proto+" has no Upgrade")
	}
	if err != nil {
		return nil, refuse(w, http.StatusInternalServerError, fmt.Sprintf("take over the connection: %v", err))
	}
	_ = conn.SetDeadline(time.Now().Add(dialTimeout))
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+Protocol+"\r\n\r\n"); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("answer %s: %w", r.RemoteAddr, err)
	}
	_ = conn.SetDeadline(time.Time{})
	if buffered.Reader.Buffered() == 0 {
		return conn, nil
	}
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	return upgraded{Conn: conn, reader: io.MultiReader(bytes.NewReader(bytes.Clone(early)), conn)}, nil
}

func refuse(w http.ResponseWriter, status int, message string) error {
	http.Error(w, message, status)
	return &RefusedError{Status: status, Message: message}
}

// upgraded is a connection with bytes that have already been read into a buffer.
type upgraded struct {
	net.Conn
	reader io.Reader
}

// Read reads the buffered bytes first, then from the connection.
func (u upgraded) Read(p []byte) (int, error) { return u.reader.Read(p) }
