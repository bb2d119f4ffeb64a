package inprocess

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

func do(t *testing.T, ctx context.Context, handler http.HandlerFunc) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, URL+"/path?a=1", strings.NewReader("question"))
	if err != nil {
		t.Fatal(err)
	}
	return Client{handler}.Do(r)
}

func TestResponseComesFromTheHandler(t *testing.T) {
	type key struct{}
	ctx := WithRemoteAddress(context.WithValue(t.Context(), key{}, "ann"), "10.0.0.7:5")
	res, err := do(t, ctx, func(w http.ResponseWriter, r *http.Request) {
		question, _ := io.ReadAll(r.Body)
		w.Header().Set("Who", r.Context().Value(key{}).(string))
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, r.RemoteAddr+" "+r.RequestURI+" "+string(question))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusTeapot || res.Header.Get("Who") != "ann" || string(answer) != "10.0.0.7:5 /path?a=1 question" {
		t.Errorf("%d %v %q %v", res.StatusCode, res.Header, answer, err)
	}
}

func TestStreamIsReadWhileItIsWritten(t *testing.T) {
	proceed := make(chan struct{})
	res, err := do(t, t.Context(), func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "one")
		<-proceed
		_, _ = io.WriteString(w, "two")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, 3)
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "one" {
		t.Fatalf("%q %v", first, err)
	}
	close(proceed)
	if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "two" {
		t.Errorf("%q %v", rest, err)
	}
}

func TestClosingTheBodyCancelsTheHandler(t *testing.T) {
	ended := make(chan error, 1)
	res, err := do(t, t.Context(), func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		_, err := io.WriteString(w, "too late")
		ended <- err
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if err := <-ended; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the handler writes to a closed answer: %v", err)
	}
}

func TestCancelledCallerGetsNoResponse(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	_, err := do(t, ctx, func(_ http.ResponseWriter, r *http.Request) {
		defer close(ended)
		cancel()
		<-r.Context().Done()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	<-ended
}

func TestPanicIsAnError(t *testing.T) {
	if _, err := do(t, t.Context(), func(http.ResponseWriter, *http.Request) { panic("boom") }); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("%v", err)
	}
	res, err := do(t, t.Context(), func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if half, err := io.ReadAll(res.Body); string(half) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q %v", half, err)
	}
}
