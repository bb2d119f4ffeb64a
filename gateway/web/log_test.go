package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/dev/servicetest"
	"switchyard/gateway/auth"
	"switchyard/gateway/web/live"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// fakeLog makes the service stream a log in pieces.
func fakeLog(f *servicetest.Fake, pieces ...string) {
	servicetest.AnswerStream(f, switchyardv1connect.RunServiceStreamRunLogsProcedure, func(_ context.Context, _ *v1.StreamRunLogsRequest, send func(*v1.StreamRunLogsResponse) error) error {
		for _, piece := range pieces {
			m := &v1.StreamRunLogsResponse{Entries: []*v1.LogEntry{{Task: "build", Stream: "stdout", Time: timestamppb.New(testNow), Data: []byte(piece)}}}
			if err := send(m); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestSearchFindsLinesOfTheWholeLogAndLeadsToThem(t *testing.T) {
	f := &servicetest.Fake{}
	fakeLog(f, "first\nsec", "ond \x1b[31mERR<b>OR\x1b[0m\n", "third error\nlast err")
	v := newVisitor(t, f, v1.RoleViewer)
	page := v.get("/ui/runs/ci-1/tasks/build/log/search?q=err")
	mustBeHarmless(t, page)
	mustContain(t, page.text("main"), "3 lines of 4 read")
	if got, want := page.texts("mark"), []string{"ERR", "err", "err"}; !slices.Equal(got, want) {
		t.Errorf("marks %q, want %q", got, want)
	}
	if got := page.link("2"); got != "/ui/runs/ci-1/tasks/build/log/search?from=1#L2" {
		t.Errorf("the line leads to %q", got)
	}
	whole := v.get("/ui/runs/ci-1/tasks/build/log/search?from=1")
	mustContain(t, whole.text("#L2"), "second ERR<b>OR")
	mustContain(t, whole.text("#L4"), "last err")
	mustContain(t, v.get("/ui/runs/ci-1/tasks/build/log/search?q=nothing").text("main"), "None of 4 lines has “nothing”.")
}

func TestSearchAndPagesOfALongLogEnd(t *testing.T) {
	f := &servicetest.Fake{}
	fakeLog(f, strings.Repeat("line\n", logPage+10))
	v := newVisitor(t, f, v1.RoleViewer)
	mustContain(t, v.get("/ui/runs/ci-1/tasks/build/log/search?q=line").text("main"), fmt.Sprintf("It ended after %d lines", maxHits))
	page := v.get("/ui/runs/ci-1/tasks/build/log/search?from=1")
	if got, want := page.link("Later lines"), fmt.Sprintf("/ui/runs/ci-1/tasks/build/log/search?from=%d", logPage+1); got != want {
		t.Errorf("later lines are at %q, not %q", got, want)
	}
}

func TestLogIsDownloadedAsItWasPrinted(t *testing.T) {
	f := &servicetest.Fake{}
	fakeLog(f, "a\x1b[31m", "\xff\r\nb\n")
	a := newVisitor(t, f, v1.RoleViewer).do(http.MethodGet, "/ui/runs/ci-1/tasks/build/download/log", nil, "*/*")
	if a.status != http.StatusOK || a.body != "a\x1b[31m\xff\r\nb\n" || a.header.Get("Content-Type") != "text/plain; charset=utf-8" ||
		!strings.HasPrefix(a.header.Get("Content-Disposition"), `attachment; filename="ci-1-build.log"`) {
		t.Errorf("%d %v %q", a.status, a.header, a.body)
	}
}

// followed returns the updates that followLog sends for an event stream.
func followed(t *testing.T, version string, door http.HandlerFunc) ([]logUpdate, error) {
	t.Helper()
	feeds := live.NewFeeds()
	t.Cleanup(feeds.Close)
	config := newVisitorConfig(t, &servicetest.Fake{}, feeds)
	config.Streams = door
	req := request{path: "/ui/runs/ci-1/tasks/build/log", values: map[string]string{"run": "ci-1", "task": "build"}, query: map[string][]string{"attempt": {"1"}}, caller: &auth.Principal{}}
	var updates []logUpdate
	err := followLog(req.callerContext(t.Context()), New(config), req, version, func(text []byte) error {
		var u logUpdate
		if err := json.Unmarshal(text, &u); err != nil {
			return err
		}
		updates = append(updates, u)
		return nil
	})
	return updates, err
}

func TestFollowedLogIsSentInRowsUntilItEnds(t *testing.T) {
	updates, err := followed(t, "", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/runs/ci-1/tasks/build/logs" || r.URL.Query().Get("tail") == "" || r.URL.Query().Get("attempt") != "1" || r.Header.Get("Last-Event-ID") != "" {
			t.Errorf("request %s %v", r.URL, r.Header)
		}
		_, _ = io.WriteString(w, "retry: 500\n\n: a comment\n\n"+
			`event: log`+"\n"+`data: {"task":"build","stream":"stdout","text":"\u001b[31mred ","partial":true}`+"\n\n"+
			`event: log`+"\n"+`id: 1~x`+"\n"+`data: {"task":"build","stream":"stdout","text":"more <b>"}`+"\n\n"+
			`event: missing`+"\n"+`data: {"task":"build","attempt":0,"node":"n-1","partial":true}`+"\n\n"+
			`event: end`+"\n"+`id: end`+"\n"+`data: {}`+"\n\n")
	})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, u := range updates {
		lines = append(lines, u.Lines...)
	}
	last := updates[len(updates)-1]
	if !updates[0].Reset || last.Version != "end" || !last.Ended {
		t.Errorf("updates %+v", updates)
	}
	all := strings.Join(lines, "\n")
	mustContain(t, all, `<span class="c1">red more &lt;b&gt;</span>`, "the end of the log of attempt 0 of build is not in the store; node n-1 may have it")
}

func TestLogThatCannotBeReadIsReadAgain(t *testing.T) { patiently(t, logThatCannotBeReadIsReadAgain) }

func logThatCannotBeReadIsReadAgain(t *testing.T) {
	const failures = 8
	began, reads := time.Now(), 0
	updates, err := followed(t, "", func(w http.ResponseWriter, r *http.Request) {
		switch reads++; {
		case reads <= failures:
			w.WriteHeader(http.StatusGatewayTimeout)
			_, _ = io.WriteString(w, `{"code":"deadline_exceeded","message":"the store is slow"}`)
		case reads == failures+1:
			_, _ = io.WriteString(w, "event: log\nid: 6~y\ndata: {\"task\":\"build\",\"text\":\"first\"}\n\n") // the stream breaks
		default:
			if r.Header.Get("Last-Event-ID") != "6~y" || r.URL.Query().Has("tail") {
				t.Errorf("request %s %v", r.URL, r.Header)
			}
			_, _ = io.WriteString(w, "event: log\nid: 7~y\ndata: {\"task\":\"build\",\"text\":\"second\"}\n\nevent: end\nid: end\ndata: {}\n\n")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var problems, lines []string
	for _, u := range updates {
		lines = append(lines, u.Lines...)
		if u.Problem != "" {
			problems = append(problems, u.Problem)
		}
	}
	if last := updates[len(updates)-1]; last.Problem != "" || !last.Ended || last.Version != "end" {
		t.Errorf("updates %+v", updates)
	}
	if len(problems) != failures+1 || problems[0] != "the store is slow" || len(lines) != 2 {
		t.Errorf("problems %q, lines %q", problems, lines)
	}
	if took := time.Since(began); took < failures*retryInterval*2 || took > (failures+1)*longestLogRetry {
		t.Errorf("%d reads in %v", reads, took)
	}
}

func TestLogContinuesAfterTheLastLine(t *testing.T) {
	updates, err := followed(t, "5~y", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last-Event-ID") != "5~y" || r.URL.Query().Has("tail") {
			t.Errorf("request %s %v", r.URL, r.Header)
		}
		_, _ = io.WriteString(w, "event: log\nid: 6~y\ndata: {\"task\":\"build\",\"text\":\"next\"}\n\nevent: end\nid: end\ndata: {}\n\n")
	})
	if err != nil || len(updates) != 1 || updates[0].Version != "end" || updates[0].Reset {
		t.Errorf("%v, updates %+v", err, updates)
	}
	updates, err = followed(t, "end", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	if err != nil || len(updates) > 0 {
		t.Errorf("after the end: %v, %v", updates, err)
	}
	_, err = followed(t, "", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":"not_found","message":"there is no run ci-1"}`)
	})
	if connect.CodeOf(err) != connect.CodeNotFound || !strings.Contains(err.Error(), "there is no run ci-1") {
		t.Errorf("an unknown run: %v", err)
	}
}

func TestFollowedLogKeepsOnlyTheNewestRows(t *testing.T) {
	rows, buffer := newLogRows("build", "l"), newRowBuffer(3)
	for i := range 10 {
		buffer.add(rows.add(logLine{Task: "build", Text: fmt.Sprint("line ", i), Time: testNow})...)
	}
	buffer.add(rows.add(logLine{Task: "build", Text: "10%\r", Time: testNow, Partial: true})...)
	buffer.add(rows.add(logLine{Task: "build", Text: "100%", Time: testNow})...)
	lines, dropped := buffer.drain()
	if len(lines) != 3 || dropped != 8 {
		t.Fatalf("%d lines, %d dropped: %q", len(lines), dropped, lines)
	}
	mustContain(t, lines[2], ">100%</span>")
	mustNotContain(t, lines[2], "10%1", "open")
	long := rows.add(logLine{Task: "build", Text: strings.Repeat("é", maxRow), Time: time.Time{}})
	if len(long) != 3 && len(long) != 2 {
		t.Errorf("a line of %d bytes has %d rows", 2*maxRow, len(long))
	}
}

func TestFollowedLogWithoutLinesHasAnEmptyList(t *testing.T) {
	text, err := (&logFollower{pending: newRowBuffer(1), isNew: true, isReset: true}).takeUpdate().encode()
	if err != nil || string(text) != `{"version":"","reset":true,"lines":[]}` {
		t.Errorf("%s, %v", text, err)
	}
}
