package mcptool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell"
	"switchyard/activities/executor/subagent/tool"
	v1 "switchyard/proto/switchyard/v1"
)

// log keeps what servers print.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *log) has(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.lines, func(line string) bool { return strings.Contains(line, part) })
}

// options returns options with a shell executor whose environment contains the key of a model.
func options(t *testing.T) (Options, *log) {
	t.Helper()
	e, err := shell.New(shell.Options{Environ: append(os.Environ(), "ANTHROPIC_API_KEY=node-key")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	l := &log{}
	return Options{
		Shell: e, Log: l.add, stopLimit: 200 * time.Millisecond,
		Env: map[string]string{"ANTHROPIC_API_KEY": "task-key", "TOKEN": "s3cret", "PLAIN": "value"},
		Attempt: executor.Attempt{
			ID: fmt.Sprintf("%s/%d/c1", t.Name(), os.Getpid()), Ending: executor.Ending{Grace: time.Second}, Dirs: executor.Dirs{Base: t.TempDir()},
			Env: map[string]string{"ANTHROPIC_API_KEY": "task-key", "PLAIN": "value"},
		},
	}, l
}

// programServer returns a server that runs this test program.
func programServer(t *testing.T, kind string) *v1.McpServer {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &v1.McpServer{Command: []string{self}, Env: map[string]string{kindVariable: kind}}
}

// connected connects to servers until the end of the test.
func connected(t *testing.T, servers map[string]*v1.McpServer, o Options) *Servers {
	t.Helper()
	s, err := Connect(t.Context(), servers, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func names(s *Servers) []string {
	var all []string
	for _, t := range s.Tools() {
		all = append(all, t.Definition().Name)
	}
	return all
}

// use calls a tool by its name and returns the outcome. It fails the test if the call fails.
func use(t *testing.T, s *Servers, name, arguments string) tool.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	outcome, err := find(t, s, name).Call(ctx, tool.Call{ID: "1", Arguments: []byte(arguments)})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return outcome
}

func find(t *testing.T, s *Servers, name string) tool.Tool {
	t.Helper()
	all := s.Tools()
	i := slices.IndexFunc(all, func(each tool.Tool) bool { return each.Definition().Name == name })
	if i < 0 {
		t.Fatalf("there is no tool %s: %v", name, names(s))
	}
	return all[i]
}

func TestProgramServesTools(t *testing.T) {
	t.Parallel()
	o, _ := options(t)
	server := programServer(t, "good")
	server.Env["GIVEN"] = "Bearer ${TOKEN}, $PLAIN, $$"
	server.Tools = []string{"variable", "echo"}
	s := connected(t, map[string]*v1.McpServer{"good": server}, o)
	if got := names(s); !slices.Equal(got, []string{"good__echo", "good__variable"}) {
		t.Fatalf("tools: %v", got)
	}
	if d := find(t, s, "good__echo").Definition(); d.Description != "Says it again." || !strings.Contains(string(d.Schema), `"Text"`) {
		t.Errorf("%+v", d)
	}
	if got := use(t, s, "good__echo", `{"Text":"hi"}`); got != (tool.Outcome{Text: "hi"}) {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]string{
		"GIVEN": "Bearer s3cret, value, $$ true", "ANTHROPIC_API_KEY": " false", "PLAIN": " false", "TOKEN": " false",
	} {
		if got := use(t, s, "good__variable", `{"Name":"`+name+`","Bytes":0}`); got.Text != want {
			t.Errorf("%s: %+v, want %q", name, got, want)
		}
	}
	for _, arguments := range []string{`[1]`, `{`, `"x"`} {
		if got := use(t, s, "good__echo", arguments); !got.IsError || !strings.Contains(got.Text, "not a JSON object") {
			t.Errorf("%s: %+v", arguments, got)
		}
	}
	if got := use(t, s, "good__echo", `{"Txt":1}`); !got.IsError || !strings.Contains(got.Text, "Txt") {
		t.Errorf("%+v", got)
	}
}

func TestResultsAreTextForTheModel(t *testing.T) {
	t.Parallel()
	o, _ := options(t)
	s := connected(t, map[string]*v1.McpServer{"s": programServer(t, "chatty")}, o)
	if got := use(t, s, "s__fail", ""); got != (tool.Outcome{Text: "no such customer", IsError: true}) {
		t.Errorf("%+v", got)
	}
	if got := use(t, s, "s__sum", "{}"); got.Text != `{"sum":3}` {
		t.Errorf("structured content appears twice, or not at all: %q", got.Text)
	}
	want := "see\n[an image of type image/png with 4 bytes is left out]\n[the resource file:///a is left out]\n[the resource file:///b]\ninside\n{\"n\":1}"
	if got := use(t, s, "s__mixed", "null"); got.Text != want {
		t.Errorf("%q", got.Text)
	}
	got := use(t, s, "s__huge", `{"Bytes":1000000,"Name":""}`)
	if len(got.Text) > maxOutcome || len(got.Text) < maxOutcome-100 || !strings.Contains(got.Text[len(got.Text)-60:], "bytes are left out]") {
		t.Errorf("%d bytes, ending in %q", len(got.Text), got.Text[len(got.Text)-60:])
	}
}

// wantRefusal connects to servers, of which one does not answer, and checks that the error has parts and does not name the server
// "good". It tries longer limits if the error is another one, since a busy machine may delay the other servers, too.
func wantRefusal(t *testing.T, servers map[string]*v1.McpServer, o Options, parts ...string) {
	t.Helper()
	for o.connectLimit = 500 * time.Millisecond; ; o.connectLimit *= 2 {
		_, err := Connect(t.Context(), servers, o)
		if err == nil {
			t.Fatal("the servers are connected")
		}
		wrong := ""
		for _, part := range append(parts, fmt.Sprintf("did not initialize and list its tools within %s", o.connectLimit)) {
			if !strings.Contains(err.Error(), part) {
				wrong = part
			}
		}
		if wrong == "" && !strings.Contains(err.Error(), `"good"`) {
			return
		}
		if o.connectLimit > time.Minute {
			t.Fatalf("the error lacks %q, or names a good server: %v", wrong, err)
		}
	}
}

func TestServersThatDoNotStartAreNamed(t *testing.T) {
	t.Parallel()
	o, l := options(t)
	o.stopLimit = time.Minute
	wantRefusal(t, map[string]*v1.McpServer{
		"good": programServer(t, "good"), "mute": programServer(t, "mute"), "broken": programServer(t, "broken"),
		"absent": {Command: []string{"no-such-program-here"}},
	}, o, `MCP server "mute" did not`, "warming up", `"broken" failed to initialize`, "exit code 3", "buy one", "no-such-program-here: command not found")
	if !l.has("mcp broken: no licence found") {
		t.Errorf("the log lacks standard error: %v", l.lines)
	}
}

func TestBadServersAreRefusedBeforeTheyStart(t *testing.T) {
	t.Parallel()
	o, _ := options(t)
	for want, server := range map[string]*v1.McpServer{
		"give either a `command` or a `url`":                        {},
		"mcpServers.s.env.A: variable $MISSING is not set":          {Command: []string{"true"}, Env: map[string]string{"A": "$MISSING"}},
		"${ANTHROPIC_API_KEY} is the key of the agent's model":      {Command: []string{"true"}, Env: map[string]string{"A": "x${ANTHROPIC_API_KEY}"}},
		"mcpServers.s.headers.Authorization: variable $NONE is not": {Url: "http://127.0.0.1:1", Headers: map[string]string{"Authorization": "Bearer $NONE"}},
		`mcpServers.s.url: "ftp://example.com" is not a URL`:        {Url: "ftp://example.com"},
		"mcpServers.s.headers: a program gets no headers":           {Command: []string{"true"}, Headers: map[string]string{"A": "b"}},
		"mcpServers.s.env: a server with a `url` gets no":           {Url: "http://127.0.0.1:1", Env: map[string]string{"A": "b"}},
		`has no tool erase (available: die, echo, fail, hang, huge`: {Command: programServer(t, "good").GetCommand(), Env: map[string]string{kindVariable: "good"}, Tools: []string{"erase", "echo"}},
	} {
		if _, err := Connect(t.Context(), map[string]*v1.McpServer{"s": server}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestServerThatDiesIsStartedForTheNextCall(t *testing.T) {
	t.Parallel()
	o, _ := options(t)
	s := connected(t, map[string]*v1.McpServer{"s": programServer(t, "good")}, o)
	for range 2 {
		got := use(t, s, "s__die", "{}")
		for _, want := range []string{"so its outcome is unknown", "exit code 7", "out of luck"} {
			if !got.IsError || !strings.Contains(got.Text, want) {
				t.Errorf("%+v lacks %q", got, want)
			}
		}
		if got := use(t, s, "s__echo", `{"Text":"back"}`); got != (tool.Outcome{Text: "back"}) {
			t.Errorf("%+v", got)
		}
	}
}

func TestServerThatSendsTooMuchIsLost(t *testing.T) {
	t.Parallel()
	o, _ := options(t)
	s := connected(t, map[string]*v1.McpServer{"s": programServer(t, "good")}, o)
	if got := use(t, s, "s__huge", `{"Bytes":9000000,"Name":""}`); !got.IsError || !strings.Contains(got.Text, "a message has more than 8388608 bytes") {
		t.Errorf("%+v", got)
	}
	if got := use(t, s, "s__echo", `{"Text":"back"}`); got != (tool.Outcome{Text: "back"}) {
		t.Errorf("%+v", got)
	}
}

func TestCallsEndWithTheirContextAndLimit(t *testing.T) {
	t.Parallel()
	o, l := options(t)
	s := connected(t, map[string]*v1.McpServer{"s": programServer(t, "good"), "older": programServer(t, "older")}, o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan time.Time, 1)
	go func() {
		for !l.has("hanging") {
			time.Sleep(time.Millisecond)
		}
		ended <- time.Now()
		cancel()
	}()
	_, err := find(t, s, "s__hang").Call(ctx, tool.Call{Arguments: []byte("{}")})
	if took := time.Since(<-ended); !errors.Is(err, context.Canceled) || took > 30*time.Second {
		t.Errorf("%v after %s", err, took)
	}
	const brief = 200 * time.Millisecond
	setLimit := func(limit time.Duration) {
		for _, each := range s.servers {
			each.o.callLimit = limit
		}
	}
	setLimit(brief)
	if got := use(t, s, "s__hang", "{}"); !got.IsError || !strings.Contains(got.Text, "did not answer within 200ms") {
		t.Errorf("%+v", got)
	}
	setLimit(callLimit)
	if got := use(t, s, "s__echo", `{"Text":"still here"}`); got != (tool.Outcome{Text: "still here"}) {
		t.Errorf("%+v", got)
	}
	setLimit(brief)
	// A server that does not read its input blocks the write of a large call.
	if got := use(t, s, "older__a", `{"x":"`+strings.Repeat("x", 1<<20)+`"}`); !got.IsError || !strings.Contains(got.Text, "did not answer within 200ms") {
		t.Errorf("%.300s", got.Text)
	}
}

func TestCloseEndsCallsAndPrograms(t *testing.T) {
	t.Parallel()
	o, l := options(t)
	s := connected(t, map[string]*v1.McpServer{"s": programServer(t, "good")}, o)
	errs := make(chan error, 1)
	go func() {
		_, err := find(t, s, "s__hang").Call(t.Context(), tool.Call{Arguments: []byte("{}")})
		errs <- err
	}()
	for !l.has("hanging") {
		time.Sleep(time.Millisecond)
	}
	program := s.servers[0].connection.program
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !program.hasEnded() {
		t.Error("the program is left")
	}
	if err := <-errs; err == nil || !strings.Contains(err.Error(), "closed during a call") {
		t.Errorf("%v", err)
	}
	if _, err := s.servers[0].ensureConnected(t.Context()); err == nil {
		t.Error("a closed server connects again")
	}
}

func TestNamesFitAndAreUnique(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	make := func() map[string]bool {
		names := toolNames{}
		for _, pair := range [][2]string{{"a.b", "c d"}, {"a_b", "c_d"}, {"a", long}, {"a", long + "y"}, {long, "z"}, {"ä", "ö"}} {
			name := names.unique(pair[0], pair[1], false)
			if len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool { return r > 127 || r == '.' || r == ' ' }) {
				t.Errorf("%s", name)
			}
		}
		return names
	}
	first := make()
	if len(first) != 6 || !first["a_b__c_d"] || !maps.Equal(first, make()) {
		t.Errorf("%v", first)
	}
}
