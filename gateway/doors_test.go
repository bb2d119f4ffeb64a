package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"switchyard/activities/metrics"
	v1 "switchyard/proto/switchyard/v1"
)

// The outcomes of a request to a door.
const (
	refused401 = "unauthenticated"
	refused403 = "denied"
	notThere   = "not found"
	passed     = "passed"
)

// knock is one way to send a request to a door.
type knock struct {
	name   string
	least  v1.Role // minimum role that the door requires
	node   bool    // nodes may pass
	open   bool    // any caller may pass
	ofRun  bool    // names a run
	recode bool    // another encoding of a call with the same handler
	first  bool    // the first way to make a call
	effect v1.Effect
	method string
	path   string
	body   []byte
	header map[string]string
}

// each calls do with every call of the API.
func each(do func(call protoreflect.MethodDescriptor)) {
	for _, service := range v1.Services() {
		for i := range service.Methods().Len() {
			do(service.Methods().Get(i))
		}
	}
}

// namesRun returns the field of a request that names a run, or nil.
func namesRun(call protoreflect.MethodDescriptor) protoreflect.FieldDescriptor {
	fields := call.Input().Fields()
	if run := fields.ByName("run"); run != nil {
		return run
	}
	if name := call.Parent().Name(); name == "RunService" || name == "VpsService" {
		return fields.ByName("id")
	}
	return nil
}

// frame wraps a message in the envelope of gRPC and Connect streams.
func frame(message []byte) []byte {
	n := len(message)
	return append([]byte{0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, message...)
}

// pathVariable matches a variable of a REST path.
var pathVariable = regexp.MustCompile(`\{[a-z_]+\}`)

// knocksOf returns every way to make a call about a run.
func knocksOf(call protoreflect.MethodDescriptor, run string) []knock {
	rules, field := v1.RulesOf(call), namesRun(call)
	message := dynamicpb.NewMessage(call.Input())
	text := "{}"
	if field != nil {
		message.Set(field, protoreflect.ValueOfString(run))
		text = fmt.Sprintf("{%q:%q}", field.JSONName(), run)
		if task := call.Input().Fields().ByName("task"); task != nil {
			message.Set(task, protoreflect.ValueOfString("build"))
			text = fmt.Sprintf("{%q:%q,\"task\":\"build\"}", field.JSONName(), run)
		}
	}
	data, err := proto.Marshal(message)
	if err != nil {
		panic(err)
	}
	path := "/" + string(call.Parent().FullName()) + "/" + string(call.Name())
	var all []knock
	add := func(how, method, path string, body []byte, header map[string]string) {
		all = append(all, knock{
			name: string(call.Name()) + " by " + how, least: rules.GetRole(), node: rules.GetNode(), effect: rules.GetEffect(),
			ofRun:  field != nil && (strings.Contains(path, run) || !strings.HasPrefix(how, "REST") && !strings.HasPrefix(how, "SSE")), // otherwise it is a list
			recode: how == "Connect, proto" || how == "a plain POST" || how == "gRPC-Web" || how == "Connect, GET of proto",
			first:  len(all) == 0,
			method: method, path: path, body: body, header: header,
		})
	}
	connectVersion := func(kind string) map[string]string {
		return map[string]string{"Content-Type": kind, "Connect-Protocol-Version": "1"}
	}
	if call.IsStreamingServer() {
		add("Connect, JSON", http.MethodPost, path, frame([]byte(text)), connectVersion("application/connect+json"))
		add("Connect, proto", http.MethodPost, path, frame(data), connectVersion("application/connect+proto"))
	} else {
		add("Connect, JSON", http.MethodPost, path, []byte(text), connectVersion("application/json"))
		add("Connect, proto", http.MethodPost, path, data, connectVersion("application/proto"))
		add("a plain POST", http.MethodPost, path, []byte(text), map[string]string{"Content-Type": "application/json"})
	}
	add("gRPC", http.MethodPost, path, frame(data), map[string]string{"Content-Type": "application/grpc", "TE": "trailers"})
	add("gRPC-Web", http.MethodPost, path, frame(data), map[string]string{"Content-Type": "application/grpc-web+proto"})
	options, ok := call.Options().(*descriptorpb.MethodOptions)
	if ok && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS && !call.IsStreamingServer() { // Connect has no GET for streams
		add("Connect, GET", http.MethodGet, path+"?"+url.Values{"connect": {"v1"}, "encoding": {"json"}, "message": {text}}.Encode(), nil, nil)
		add("Connect, GET of proto", http.MethodGet, path+"?"+url.Values{
			"connect": {"v1"}, "encoding": {"proto"}, "base64": {"1"}, "message": {base64.RawURLEncoding.EncodeToString(data)},
		}.Encode(), nil, nil)
	}
	for _, route := range v1.RoutesOf(call) {
		rest := pathVariable.ReplaceAllStringFunc(route.Path, func(variable string) string {
			switch name := protoreflect.Name(strings.Trim(variable, "{}")); {
			case field != nil && name == field.Name():
				return run
			case name == "task":
				return "build"
			}
			return "x-unknown"
		})
		var body []byte
		if route.Body != "" {
			body = []byte("{}")
		}
		paths := []string{rest}
		if alias, ok := strings.CutPrefix(rest, "/v1"); ok && (strings.HasPrefix(alias+"/", "/runs/") || strings.HasPrefix(alias+"/", "/workflows/")) {
			paths = append(paths, alias)
		}
		for _, path := range paths {
			add("REST, "+route.Method+" "+path, route.Method, path, body, map[string]string{"Content-Type": "application/json"})
			if route.Method == http.MethodGet && (strings.HasSuffix(path, "/events") || strings.HasSuffix(path, "/logs")) {
				add("SSE, "+path, http.MethodGet, path+"?follow=true", nil, nil)
				add("SSE by its header, "+path, http.MethodGet, path, nil, map[string]string{"Accept": "text/event-stream"})
			}
		}
	}
	return all
}

// knocks returns every way to send a request to every door of a gateway.
func (f *fixture) knocks(run string) []knock {
	var all []knock
	var names []string
	each(func(call protoreflect.MethodDescriptor) { all = append(all, knocksOf(call, run)...) })
	for _, s := range f.services() {
		names = append(names, strings.Trim(s.path, "/"))
	}
	for _, d := range f.rpcDoors(names) {
		for _, call := range []string{"Check", "Watch", "ServerReflectionInfo"} {
			all = append(all, knock{
				name: d.pattern + call, least: d.role, method: http.MethodPost, path: d.pattern + call, body: frame(nil),
				header: map[string]string{"Content-Type": "application/grpc", "TE": "trailers"},
			})
		}
	}
	for _, d := range f.doors() {
		method, path, _ := strings.Cut(d.pattern, " ")
		named := strings.NewReplacer("{id}", run, "{task}", "build", "{name}", "x-unknown").Replace(path)
		ofRun := named != path
		all = append(all, knock{name: d.pattern, least: d.role, ofRun: ofRun, first: ofRun, effect: v1.Effect_EFFECT_READ, method: method, path: named})
	}
	for _, d := range f.agentDoors(nil) {
		method, path, ok := strings.Cut(d.pattern, " ")
		if !ok {
			method, path = http.MethodPost, d.pattern
		}
		if path = strings.TrimSuffix(path, "{$}"); len(path) > 1 && strings.HasSuffix(path, "/") {
			path += "tasks"
		}
		all = append(all, knock{
			name: d.pattern, least: d.role, method: method, path: path, body: []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`),
			header: map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"},
		})
	}
	for _, path := range []string{"/healthz", "/readyz", "/docs", "/docs/", "/docs/style.css"} {
		all = append(all, knock{name: path, open: true, method: http.MethodGet, path: path})
	}
	return all
}

// send sends the request with a token and returns the outcome.
func (k knock) send(t *testing.T, client *http.Client, base, token string) (outcome, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, k.method, base+k.path, bytes.NewReader(k.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range k.header {
		req.Header.Set(name, value)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", k.name, err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK && strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return passed, "" // without an end
	}
	// An accepted stream has no end either; its first message is enough.
	part := make([]byte, 64<<10)
	n := 0
	for n < len(part) && !k.hasAnswer(part[:n]) {
		more, err := res.Body.Read(part[n:])
		n += more
		if err != nil {
			break
		}
	}
	text = string(part[:n])
	grpc := cmp.Or(res.Header.Get("Grpc-Status"), res.Trailer.Get("Grpc-Status"))
	if _, status, ok := strings.Cut(strings.ToLower(text), "grpc-status: "); ok && grpc == "" {
		grpc, _, _ = strings.Cut(status, "\r")
	}
	switch {
	case res.StatusCode == http.StatusUnauthorized, grpc == "16", strings.Contains(text, `"code":"unauthenticated"`):
		return refused401, text
	case res.StatusCode == http.StatusForbidden, grpc == "7", strings.Contains(text, `"code":"permission_denied"`):
		return refused403, text
	case res.StatusCode == http.StatusNotFound, grpc == "5", strings.Contains(text, `"code":"not_found"`):
		return notThere, text
	}
	return passed, text
}

// hasAnswer reports whether part contains the first message of a streaming response.
func (k knock) hasAnswer(part []byte) bool {
	return strings.HasPrefix(k.header["Content-Type"], "application/connect+") && len(part) > 5 || strings.HasPrefix(k.header["Content-Type"], "application/grpc") && len(part) > 5
}

// encodedDetail matches the binary form of an error detail, in JSON and in the header of gRPC.
var encodedDetail = regexp.MustCompile(`"value":"[^"]*",|(?i)grpc-status-details-bin: \S+`)

// TestEveryDoorIsLocked sends requests to every door in the descriptors and muxes, in every protocol, with invalid tokens and with
// a token of every role. A run of another owner is answered like one that does not exist.
func TestEveryDoorIsLocked(t *testing.T) {
	t.Parallel()
	figures, err := metrics.New("test")
	if err != nil {
		t.Fatal(err)
	}
	f := startLocked(t, t.TempDir(), func(c *Config) { c.Metrics = figures })
	byRole := map[v1.Role]string{}
	for _, role := range v1.Roles() {
		token := &v1.Token{Name: "door-" + role, Role: role}
		if role == v1.RoleNode {
			token.Node = "gpu-1"
		}
		byRole[v1.ParseRole(role)], _ = f.newToken(t, token)
	}
	// The run belongs to a user other than the callers.
	owner, _ := f.token(t, "door-owner", v1.RoleUser)
	f.client = f.dialAs(t, owner)
	run := f.submit(t, "behind-doors")
	missing := run[:len(run)-4] + "none"

	client := f.httpClient(t, "")
	doors, ofRuns := map[string]bool{}, map[string]bool{}
	unknown := f.knocks(missing)
	for i, k := range f.knocks(run) {
		doors[k.path] = true
		expect := func(who, token string, want ...string) (text string) {
			t.Helper()
			got, text := k.send(t, client, f.server.URL(), token)
			if !slices.Contains(want, got) {
				t.Errorf("%s with %s: %s, want %v: %.300s", k.name, who, got, want, text)
			}
			if got != passed && strings.Contains(text, "door-owner") {
				t.Errorf("%s with %s: the refusal has data: %s", k.name, who, text)
			}
			return text
		}
		if k.open {
			expect("nothing", "", passed)
			continue
		}
		expect("nothing", "", refused401)
		expect("garbage that looks like a token", "sy_abcdefgh_"+strings.Repeat("a", 52), refused401)
		for role, token := range byRole {
			switch {
			case role == v1.Role_ROLE_NODE && k.node:
				expect("the token of a node", token, passed, refused403, notThere) // depends on the tasks that the node was given
			case !role.Includes(k.least):
				expect("the role "+role.Word(), token, refused403)
			case role == v1.Role_ROLE_USER && k.ofRun && k.first:
				ofRuns[k.path] = true
				_, none := unknown[i].send(t, client, f.server.URL(), token)
				text := expect("another user's role", token, notThere)
				if want := strings.ReplaceAll(encodedDetail.ReplaceAllString(none, ""), missing, run); encodedDetail.ReplaceAllString(text, "") != want {
					t.Errorf("%s of another owner: %s, and of a run that does not exist: %s", k.name, text, want)
				}
			case role != k.least || k.recode: // passes like the minimum role and the first encoding
			case k.ofRun && !role.Includes(v1.Role_ROLE_OPERATOR):
				expect("another user's role "+role.Word(), token, notThere)
			default:
				// The counter-check: callers with a sufficient role are let in.
				expect("the role "+role.Word(), token, passed, notThere)
			}
		}
		if k.effect == v1.Effect_EFFECT_READ && k.ofRun && k.first { // the effects of writes are tested elsewhere
			for who, token := range map[string]string{"its owner": owner, "an operator": byRole[v1.Role_ROLE_OPERATOR]} {
				if text := expect(who, token, passed, notThere); strings.Contains(text, "there is no run") {
					t.Errorf("%s with the token of %s: %s", k.name, who, text)
				}
			}
		}
	}
	if len(doors) < 150 || len(ofRuns) < 25 {
		t.Errorf("only %d paths were tried, %d of them of runs", len(doors), len(ofRuns))
	}
}

// TestNoSpellingOfAPathIsOpen sends requests without a token to paths spelled in ways that trick servers and proxies. One path
// stands for all that have its first part.
func TestNoSpellingOfAPathIsOpen(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	admin, _ := f.token(t, "root", v1.RoleAdmin)
	paths := map[string]string{}
	for _, k := range f.knocks("last") {
		if k.open {
			continue
		}
		path, _, _ := strings.Cut(k.path, "?")
		first, _, _ := strings.Cut(path[1:], "/")
		paths[first] = path
	}
	tried := 0
	for _, path := range paths {
		inner := strings.TrimPrefix(path, "/")
		for _, spelt := range []string{
			path + "/", path + ".", path + "/.", path + "%00", path + "%20", path + ";x=y", path + "#x", "/" + path, "//" + inner, strings.ToUpper(path),
			"/healthz/.." + path, "/healthz/..%2f" + inner, "/healthz%2f.." + path, "/healthz/%2e%2e" + path, "/healthz%2f%2e%2e%2f" + inner, "/healthz/..%252f" + inner, "/healthz;" + path, "/readyz/.%2e" + path,
			strings.ReplaceAll(path, "/", "%2F"), "/" + strings.ReplaceAll(inner, "/", "%2F"), "/" + strings.ReplaceAll(inner, "/", "%252F"), "/x/.." + path, "/./" + inner, "\\" + inner, "/healthz\\.." + path,
			"/docs/.." + path, "/docs/..%2f" + inner, "/docs/%2e%2e" + path, "/docs%2f.." + path, "/docs/x/../.." + path, "/docs\\.." + path,
			"http://evil.example" + path,
		} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				tried++
				if status := rawRequest(t, f.server.Address(), f.server.Address(), method, spelt, ""); status < 300 {
					t.Errorf("%s %s: %d", method, spelt, status)
				}
			}
		}
	}
	if tried < 1000 {
		t.Errorf("only %d spellings were tried", tried)
	}
	if status := rawRequest(t, f.server.Address(), f.server.Address(), http.MethodGet, "/v1/runs", "Authorization: Bearer "+admin+"\r\n"); status != http.StatusOK {
		t.Errorf("the right spelling with a token: %d", status)
	}
	for name, header := range map[string]string{
		"two headers":  "Authorization: Bearer " + admin + "\r\nAuthorization: Bearer " + admin + "\r\n",
		"a 1 MB token": "Authorization: Bearer " + strings.Repeat("a", 1<<20) + "\r\n",
	} {
		if status := rawRequest(t, f.server.Address(), f.server.Address(), http.MethodGet, "/v1/runs", header); status != http.StatusUnauthorized && status != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%s: %d", name, status)
		}
	}
	if status := rawRequest(t, f.server.Address(), f.server.Address(), http.MethodGet, "/v1/runs?access_token="+admin, ""); status != http.StatusBadRequest {
		t.Errorf("a token in the URL: %d", status)
	}
	// A page of another site has no token. Even one that has obtained a token is refused.
	for _, token := range []string{"", "Authorization: Bearer " + admin + "\r\n"} {
		if status := rawRequest(t, f.server.Address(), f.server.Address(), http.MethodPost, "/v1/runs", token+"Origin: https://evil.example\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n"); status != http.StatusForbidden {
			t.Errorf("a page of another site: %d", status)
		}
	}
}

// rawRequest sends a request verbatim, in forms that no client would send, and returns the status of the response.
func rawRequest(t *testing.T, address, host, method, path, header string) int {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", method, path, host, header); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Fatal(err)
	}
	if strings.Contains(header, "Content-Length: 2") {
		_, _ = io.WriteString(conn, "{}")
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		return http.StatusBadRequest // the server has closed the connection
	}
	defer res.Body.Close()
	return res.StatusCode
}
