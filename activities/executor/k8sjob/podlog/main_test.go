package podlog

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

var pod = Pod{Namespace: "ci", Name: "build-x7", UID: "u-1", Container: "main"}

// message is one write of a container runtime to a log: a line, or the start of one.
type message struct {
	time time.Time
	text string
	// after is the time from the start of the server to the write.
	after time.Duration
}

// fault describes what is wrong with a stream.
type fault struct {
	// status is the HTTP status of a refusal with the message in text; 0 means that the log is served.
	status int
	text   string
	// cut is the number of bytes after which the stream is over; -1 means never.
	cut int
	// stall makes the stream silent at the cut instead of closed. isClean makes it end there as if it were complete. A
	// stream that does not follow the log ends like that only with isLast.
	stall, isClean, isLast bool
}

// server serves one log as an API server and a kubelet do.
type server struct {
	messages []message
	start    time.Time
	// faults are the faults of the first streams.
	faults []fault
	// rotated is the number of first messages that are gone after rotatedAfter.
	rotated      int
	rotatedAfter time.Duration
	// uid is the UID of the pod, which is gone if it is empty.
	uid string

	mu      sync.Mutex
	streams []url.Values
}

// nextFault records a stream and returns its fault.
func (s *server) nextFault(query url.Values) fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = append(s.streams, query)
	if len(s.streams) <= len(s.faults) {
		return s.faults[len(s.streams)-1]
	}
	return fault{cut: -1}
}

// count returns the number of streams so far.
func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams)
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	reasons := map[int]metav1.StatusReason{400: metav1.StatusReasonBadRequest, 404: metav1.StatusReasonNotFound, 500: metav1.StatusReasonInternalError}
	_ = json.NewEncoder(w).Encode(&metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(status), Reason: reasons[status], Message: text,
	})
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	uid := s.uid
	s.mu.Unlock()
	if !strings.HasSuffix(r.URL.Path, "/log") {
		if uid == "" {
			refuse(w, 404, `pods "build-x7" not found`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		found := corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "build-x7", UID: "u-1"}}
		found.UID = "u-1"
		if uid != "u-1" {
			found.UID = "u-2"
		}
		_ = json.NewEncoder(w).Encode(&found)
		return
	}
	f := s.nextFault(r.URL.Query())
	if f.status == 0 && uid == "" {
		f.status, f.text = 404, `pods "build-x7" not found`
	}
	if f.status != 0 {
		refuse(w, f.status, f.text)
		return
	}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	out := &cutWriter{w: w, left: f.cut}
	if f.text != "" {
		_, _ = io.WriteString(out, f.text)
	}
	s.write(r.Context(), r.URL.Query(), out)
	if out.left == 0 {
		switch {
		case f.stall:
			<-r.Context().Done()
		case !f.isClean || r.URL.Query().Get("follow") != "true" && !f.isLast:
			panic(http.ErrAbortHandler)
		}
	}
}

// cutWriter accepts left bytes, or all if left is negative.
type cutWriter struct {
	w    http.ResponseWriter
	left int
}

var errCut = errors.New("cut")

func (c *cutWriter) Write(p []byte) (int, error) {
	if c.left < 0 {
		n, err := c.w.Write(p)
		c.w.(http.Flusher).Flush()
		return n, err
	}
	n, err := c.w.Write(p[:min(len(p), c.left)])
	c.w.(http.Flusher).Flush()
	if c.left -= n; c.left == 0 && err == nil {
		err = errCut
	}
	return n, err
}

// write writes the log as the kubelet does: each message that is not older than since, with its timestamp at the start
// of a line.
func (s *server) write(ctx context.Context, query url.Values, out io.Writer) {
	since, _ := time.Parse(time.RFC3339, query.Get("sinceTime"))
	isNewLine := true
	for i, m := range s.messages {
		if wait := time.Until(s.start.Add(m.after)); wait > 0 {
			if query.Get("follow") != "true" {
				return
			}
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
		}
		if i < s.rotated && time.Since(s.start) >= s.rotatedAfter {
			continue
		}
		text := m.text
		if isNewLine {
			text = m.time.Format("2006-01-02T15:04:05.000000000Z07:00") + " " + text
		}
		isNewLine = strings.HasSuffix(m.text, "\n")
		if m.time.Before(since) {
			continue
		}
		if _, err := io.WriteString(out, text); err != nil {
			return
		}
	}
}

// text returns everything that the container prints.
func (s *server) text() string {
	var b strings.Builder
	for _, m := range s.messages {
		b.WriteString(m.text)
	}
	return b.String()
}

// followInMemory calls Follow for the pod of an in-memory server.
func followInMemory(ctx context.Context, t testing.TB, s *server, o Options) error {
	t.Helper()
	c, err := sharedClient()
	if err != nil {
		t.Fatal(err)
	}
	return Follow(context.WithValue(ctx, serverKey{}, s), c, pod, o)
}

// inMemory carries requests to the server in their context without a network, so that tests can use a fake clock.
type inMemory struct{}

type serverKey struct{}

// sharedClient returns the client of all in-memory servers. It is shared because creating one is slow.
var sharedClient = sync.OnceValues(func() (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(&rest.Config{Host: "http://fleet.test", Transport: inMemory{}, QPS: -1})
})

func (inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	w := &responseWriter{header: http.Header{}, body: writer, begun: make(chan struct{})}
	stop := context.AfterFunc(r.Context(), func() { _ = writer.CloseWithError(r.Context().Err()) })
	go func() {
		defer stop()
		defer func() {
			if recover() != nil {
				_ = writer.CloseWithError(io.ErrUnexpectedEOF)
			}
			w.begin(http.StatusOK)
			_ = writer.Close()
		}()
		r.Context().Value(serverKey{}).(*server).ServeHTTP(w, r)
	}()
	select {
	case <-w.begun:
		return &http.Response{StatusCode: w.status, Header: w.header, Body: reader, Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

type responseWriter struct {
	header http.Header
	body   *io.PipeWriter
	status int
	once   sync.Once
	begun  chan struct{}
}

func (w *responseWriter) begin(status int) { w.once.Do(func() { w.status = status; close(w.begun) }) }

func (w *responseWriter) Header() http.Header         { return w.header }
func (w *responseWriter) WriteHeader(status int)      { w.begin(status) }
func (w *responseWriter) Flush()                      {}
func (w *responseWriter) Write(p []byte) (int, error) { w.begin(http.StatusOK); return w.body.Write(p) }
