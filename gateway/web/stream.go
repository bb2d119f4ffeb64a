package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"connectrpc.com/connect"

	"switchyard/gateway/auth"
	"switchyard/gateway/eventstream"
	"switchyard/gateway/inprocess"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/web/login"
)

// maxViews bounds the views of a stream.
const maxViews = 64

// serveStream sends the updates of all views that the tabs of a browser show. Each parameter view is the address of a view,
// and the parameter at with the same index is the version that the browser has.
//
//	event: hello   {"build"}                          once
//	event: view    {"view", "update": {"version", "title", "blocks", "lists"}}
//	event: log     {"view", "update": {"version", "lines"}}
//	event: failed  {"view", "code", "message"}        the view gets no more updates
func (w *Web) serveStream(rw http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	addresses, versions := query["view"], query["at"]
	if len(addresses) == 0 || len(addresses) != len(versions) || len(addresses) > maxViews {
		rpcerror.WriteJSON(rw, 0, rpcerror.Invalid("a stream needs 1 to %d view parameters, each with an at parameter", maxViews))
		return
	}
	leave, err := w.Bounds.EnterStream(r.RemoteAddr)
	if err != nil {
		rpcerror.WriteJSON(rw, 0, err)
		return
	}
	defer leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	out := &viewStream{Stream: eventstream.New(rw, w.KeepAlive, w.WriteTimeout), mark: w.formMark, proof: login.Proof(login.FormSecret(rw, r))}
	if err := out.Begin(); err != nil {
		out.Close("")
		return
	}
	_ = out.send("hello", map[string]string{"build": build})
	var views sync.WaitGroup
	for i, address := range addresses {
		views.Go(func() {
			err := w.followView(ctx, r, address, versions[i], out)
			if err = auth.EndOf(ctx, err); err == nil || rpcerror.CodeOf(err) == connect.CodeCanceled {
				return
			}
			_ = out.send("failed", failedView{address, rpcerror.CodeOf(err).String(), messageOf(err)})
		})
	}
	select {
	case <-ctx.Done():
	case <-w.Stopping:
	}
	cancel()
	views.Wait()
	out.Close("")
}

// failedView is the data of a failed event.
type failedView struct {
	View    string `json:"view"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// followView sends the updates of the view at an address since a version.
func (w *Web) followView(ctx context.Context, r *http.Request, address, version string, out *viewStream) error {
	at, err := url.ParseRequestURI(address)
	if err != nil || at.Host != "" {
		return rpcerror.Invalid("%q is not the address of a view", address)
	}
	name, err := json.Marshal(address)
	if err != nil {
		return err
	}
	v, req, err := w.router.findView(r, at)
	if err != nil {
		return err
	}
	if v.follow != nil {
		return v.follow(inprocess.WithRemoteAddress(req.callerContext(ctx), r.RemoteAddr), w, req, version, func(update []byte) error { return out.sendUpdate("log", name, update) })
	}
	return w.Feeds.Follow(ctx, req.key(), w.opener(v, req), version, func(update []byte) error { return out.sendUpdate("view", name, update) })
}

// viewStream writes events of several views to one stream.
type viewStream struct {
	*eventstream.Stream
	mark, proof string // placeholder of a form's proof, and the proof
}

// send writes an event with JSON data.
func (s *viewStream) send(event string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return s.Write(eventstream.Frame(event, "", text))
}

// sendUpdate writes an update of a view. view and update are already JSON.
func (s *viewStream) sendUpdate(event string, view, update []byte) error {
	if bytes.Contains(update, []byte(s.mark)) {
		update = bytes.ReplaceAll(update, []byte(s.mark), []byte(s.proof))
	}
	return s.Write(eventstream.Frame(event, "", slices.Concat([]byte(`{"view":`), view, []byte(`,"update":`), update, []byte("}"))))
}
