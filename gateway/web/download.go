package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// Names of the downloads of a task.
const (
	downloadLog     = "log"
	downloadOutput  = "output"
	downloadContext = "context-update"
)

// downloadURL returns the URL of a download of a task.
func downloadURL(req request, name string) string { return req.path + "/download/" + name }

// serveDownload serves the log or a result of a task as a file.
func (w *Web) serveDownload(rw http.ResponseWriter, r *http.Request) {
	run, task := r.PathValue("run"), r.PathValue("task")
	leave, err := w.Bounds.EnterStream(r.RemoteAddr)
	if err == nil {
		defer leave()
		switch r.PathValue("what") {
		case downloadLog:
			err = w.writeLog(rw, r, run, task)
		case downloadOutput:
			err = w.writeObject(rw, r, run, task, downloadOutput, (*v1.TaskResult).GetOutput)
		case downloadContext:
			err = w.writeObject(rw, r, run, task, downloadContext, (*v1.TaskResult).GetContextUpdate)
		default:
			err = rpcerror.NotFound("there is no page %s", r.URL.Path)
		}
	}
	if err != nil {
		w.writeError(rw, r, err)
	}
}

// writeLog writes a log exactly as it was printed. An error after the first piece aborts the response.
func (w *Web) writeLog(rw http.ResponseWriter, r *http.Request, run, task string) error {
	req, err := logRequest(run, task, r.URL.Query())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stream, err := w.services.runs.StreamRunLogs(ctx, connect.NewRequest(req))
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	controller, begun := http.NewResponseController(rw), false
	for {
		more := stream.Receive()
		if !more && stream.Err() != nil && !begun {
			return stream.Err()
		}
		if !begun {
			setAttachmentHeaders(rw, "text/plain; charset=utf-8", run+"-"+task+".log")
			begun = true
		}
		if !more {
			break
		}
		_ = controller.SetWriteDeadline(time.Now().Add(w.WriteTimeout)) // only a server in a test has no deadlines
		for _, e := range stream.Msg().GetEntries() {
			if _, err := rw.Write(e.GetData()); err != nil {
				return nil // the browser has left
			}
		}
	}
	if err := stream.Err(); err != nil && !errors.Is(err, context.Canceled) {
		w.Log.Debug("a log was sent only partially", "run", run, "task", task, "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// writeObject writes an object from the result of a task as JSON.
func (w *Web) writeObject(rw http.ResponseWriter, r *http.Request, run, task, name string, of func(*v1.TaskResult) *structpb.Struct) error {
	res, err := messageOfCall(w.services.runs.GetRunTask(r.Context(), connect.NewRequest(&v1.GetRunTaskRequest{Id: run, Task: task})))
	if err != nil {
		return err
	}
	result := res.GetTask().GetResult()
	if res.GetInstance() != nil {
		result = res.GetInstance().GetResult()
	}
	object := of(result)
	if object == nil {
		return rpcerror.NotFound("task %s of run %s has no %s", task, run, strings.ReplaceAll(name, "-", " "))
	}
	setAttachmentHeaders(rw, "application/json", run+"-"+task+"-"+name+".json")
	_, _ = rw.Write([]byte(indentedJSON(object) + "\n")) // fails only if the browser has left
	return nil
}

// setAttachmentHeaders sets the headers that make the response a file download.
func setAttachmentHeaders(rw http.ResponseWriter, contentType, name string) {
	plain := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.[]", c) {
			return c
		}
		return '_'
	}, name)
	rw.Header().Set("Content-Type", contentType)
	rw.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s"; filename*=UTF-8''%s`, plain, url.PathEscape(name)))
}
