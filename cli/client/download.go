package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"connectrpc.com/connect"

	"switchyard/activities/gatewayclient"
)

// Artifact writes an artifact of a task to w, as a tar archive with one folder. If the connection is lost, Artifact calls lost and
// continues where it was. Its error carries an exit code, or is that of w.
func (a *Client) Artifact(ctx context.Context, run, task, name string, w io.Writer, lost func()) error {
	d := download{client: a, w: w, path: "/v1/runs/" + url.PathEscape(run) + "/tasks/" + url.PathEscape(task) + "/artifacts/" + url.PathEscape(name)}
	err := a.reconnect(ctx, lost, func(received func()) error { return d.request(ctx, received) })
	if d.failed != nil {
		return d.failed
	}
	return err
}

// download is a download in progress.
type download struct {
	client *Client
	path   string
	w      io.Writer
	at     int64
	tag    string // of the archive that is being read
	failed error  // error of w
}

// request reads from the position up to the end, or up to the loss of the connection. After an error of w it returns nil.
func (d *download) request(ctx context.Context, received func()) error {
	r, err := http.NewRequestWithContext(gatewayclient.Repeatable(ctx), http.MethodGet, d.client.gateways.URL+d.path, nil)
	if err != nil {
		return err
	}
	r.Header = actorHeader()
	want := http.StatusOK
	if d.at > 0 {
		want = http.StatusPartialContent
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.at))
		r.Header.Set("If-Match", d.tag)
	}
	res, err := d.client.gateways.HTTP.Do(r)
	if err != nil {
		return connect.NewError(connect.CodeUnavailable, err)
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case want:
	case http.StatusRequestedRangeNotSatisfiable:
		return nil // only the end was lost
	case http.StatusPreconditionFailed:
		return connect.NewError(connect.CodeAborted, errors.New("the artifact has changed meanwhile; repeat the command"))
	default:
		return errorOf(res)
	}
	d.tag = res.Header.Get("ETag")
	buffer := make([]byte, 64<<10)
	for {
		n, err := res.Body.Read(buffer)
		if n > 0 {
			received()
			if _, d.failed = d.w.Write(buffer[:n]); d.failed != nil {
				return nil
			}
			d.at += int64(n)
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return connect.NewError(connect.CodeUnavailable, err)
		}
	}
}

// maxErrorBytes bounds the body of an error that is read.
const maxErrorBytes = 64 << 10

// errorOf returns the error in the body of a REST answer.
func errorOf(res *http.Response) error {
	var said struct{ Code, Message string }
	text, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes))
	if err != nil {
		return connect.NewError(connect.CodeUnavailable, err)
	}
	var code connect.Code
	if err := json.Unmarshal(text, &said); err != nil || code.UnmarshalText([]byte(said.Code)) != nil {
		return connect.NewError(codeOfStatus(res.StatusCode), errors.New("the gateway answers with the status "+strconv.Itoa(res.StatusCode)))
	}
	return connect.NewError(code, errors.New(said.Message))
}
