package container

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// call makes one call of the engine over a connection of its own. Until the header of the response has
// arrived, the call ends with ctx. The caller closes the connection.
func (e *engine) call(ctx context.Context, method, path string, header http.Header, body []byte) (net.Conn, *bufio.Reader, *http.Response, error) {
	conn, err := e.docker.Dialer()(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	req, err := http.NewRequestWithContext(ctx, method, "http://engine"+path, bytes.NewReader(body))
	if err == nil {
		req.Header = header
		err = req.Write(conn)
	}
	reader := bufio.NewReaderSize(conn, outputBuffer)
	var res *http.Response
	if err == nil {
		res, err = http.ReadResponse(reader, req)
	}
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, nil, nil, causeOf(ctx, err)
	}
	return conn, reader, res, nil
}

// hijack makes a call whose response is a raw stream. It sends the body as JSON unless body is nil.
func (e *engine) hijack(ctx context.Context, path string, body []byte) (net.Conn, *bufio.Reader, error) {
	header := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"tcp"}}
	if body != nil {
		header.Set("Content-Type", "application/json")
	}
	conn, reader, res, err := e.call(ctx, http.MethodPost, "/v"+e.docker.ClientVersion()+path, header, body)
	if err != nil {
		return nil, nil, err
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		conn.Close()
		return nil, nil, fmt.Errorf("the engine answered %s: %s", res.Status, text)
	}
	return conn, reader, nil
}
