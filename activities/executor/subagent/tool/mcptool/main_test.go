package mcptool

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/activities/executor/shell"
	"switchyard/dev/testneeds"
)

// kindVariable is the variable that turns this program into a server of some kind.
const kindVariable = "MCPTOOL_TEST_SERVER"

func TestMain(m *testing.M) {
	shell.ServeIfAsked()
	if kind := os.Getenv(kindVariable); kind != "" {
		serve(kind)
		return
	}
	testneeds.Parallel(4)
	testneeds.NoLeaks(m)
}

// serve runs a server over standard input and output.
func serve(kind string) {
	switch kind {
	case "mute": // never initializes
		fmt.Fprintln(os.Stderr, "warming up")
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		}
		time.Sleep(time.Hour)
	case "broken":
		fmt.Fprintln(os.Stderr, "no licence found\nbuy one")
		os.Exit(3)
	case "chatty": // prints a greeting where only messages belong
		fmt.Println("Welcome to the chatty server!\n\n{ not json")
	case "older": // exits at a request other than initialize
		in := bufio.NewReader(os.Stdin)
		line, _ := in.ReadString('\n')
		if !strings.Contains(line, `"initialize"`) {
			os.Exit(4)
		}
		fmt.Println(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"older","version":"1"}}}`)
		_, _ = in.ReadString('\n') // initialized
		_, _ = in.ReadString('\n')
		fmt.Println(`{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"b","inputSchema":{"type":"object"}},{"name":"a","description":"first","inputSchema":{"type":"object"}}]}}`)
		time.Sleep(time.Hour) // reads nothing more, and does not exit by itself
	}
	if err := newTestServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

type (
	words   struct{ Text string }
	variant struct {
		Name  string
		Bytes int
	}
	sums struct {
		Sum int `json:"sum"`
	}
)

// newTestServer returns a server with well-behaved and misbehaving tools.
func newTestServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	text := func(text string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
	}
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "Says it again."}, func(_ context.Context, _ *sdk.CallToolRequest, in words) (*sdk.CallToolResult, any, error) {
		return text(in.Text), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "variable"}, func(_ context.Context, _ *sdk.CallToolRequest, in variant) (*sdk.CallToolResult, any, error) {
		value, ok := os.LookupEnv(in.Name)
		return text(fmt.Sprint(value, " ", ok)), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "fail"}, func(context.Context, *sdk.CallToolRequest, any) (*sdk.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("no such customer")
	})
	sdk.AddTool(s, &sdk.Tool{Name: "huge"}, func(_ context.Context, _ *sdk.CallToolRequest, in variant) (*sdk.CallToolResult, any, error) {
		return text(strings.Repeat("ü", in.Bytes/2)), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "sum"}, func(context.Context, *sdk.CallToolRequest, any) (*sdk.CallToolResult, sums, error) {
		return nil, sums{3}, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "mixed"}, func(context.Context, *sdk.CallToolRequest, any) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "see"}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte("1234")},
			&sdk.ResourceLink{URI: "file:///a"}, &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b", Text: "inside"}},
		}, StructuredContent: map[string]any{"n": 1}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "hang"}, func(context.Context, *sdk.CallToolRequest, any) (*sdk.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "hanging")
		time.Sleep(time.Hour)
		return nil, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "die"}, func(context.Context, *sdk.CallToolRequest, any) (*sdk.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "out of luck")
		os.Exit(7)
		return nil, nil, nil
	})
	return s
}
