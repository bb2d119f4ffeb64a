package workers

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"

	"switchyard/dev/temporaltest"
	"switchyard/workflows/visibility"
)

// connectedTo starts a Temporal server with search attributes and returns a connection to it.
func connectedTo(t *testing.T, attributes map[string]enumspb.IndexedValueType) *Connection {
	t.Helper()
	server, err := temporaltest.Start(temporaltest.Options{SearchAttributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	conn, err := Dial(t.Context(), DialOptions{Address: server.Address(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// TestMissingSearchAttributesAreRegistered checks that a control process registers the missing search attributes beside
// those of other programs.
func TestMissingSearchAttributesAreRegistered(t *testing.T) {
	t.Parallel()
	conn := connectedTo(t, map[string]enumspb.IndexedValueType{
		"SwitchyardState": enumspb.INDEXED_VALUE_TYPE_KEYWORD, "Customer": enumspb.INDEXED_VALUE_TYPE_KEYWORD, "Notes": enumspb.INDEXED_VALUE_TYPE_TEXT,
	})
	for range 2 {
		if err := ensureAttributes(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
	}
	if missing, err := conn.MissingAttributes(t.Context()); err != nil || len(missing) > 0 {
		t.Errorf("missing are %v, %v", missing, err)
	}
}

// TestSearchAttributesWithoutRoomAreNamed checks that the error contains one command that registers every missing
// search attribute.
func TestSearchAttributesWithoutRoomAreNamed(t *testing.T) {
	t.Parallel()
	taken := map[string]enumspb.IndexedValueType{"SwitchyardDeadLetters": enumspb.INDEXED_VALUE_TYPE_INT}
	for i := range 10 {
		taken[fmt.Sprintf("Taken%d", i)] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	err := ensureAttributes(t.Context(), connectedTo(t, taken))
	if err == nil {
		t.Fatal("there is no room for the search attributes, and no error")
	}
	missing := visibility.Types()
	delete(missing, "SwitchyardDeadLetters")
	_, command, _ := strings.Cut(err.Error(), "`temporal operator search-attribute create --namespace default ")
	for name, kind := range missing {
		if !strings.Contains(command, fmt.Sprintf("--name %s --type %s", name, kind)) {
			t.Errorf("%s is not in the command: %v", name, err)
		}
	}
	if strings.Contains(command, "SwitchyardDeadLetters") {
		t.Errorf("what is there is in the command: %v", err)
	}
}
