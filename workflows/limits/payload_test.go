package limits

import (
	"strings"
	"testing"

	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// A request that passes the check is never larger, encoded, than may be sent.
func TestCheckSizeRefusesRequestsTooLargeToSend(t *testing.T) {
	t.Parallel()
	numbers := func(n int) *historyv1.ExecuteRequest {
		list := make([]*structpb.Value, n)
		for i := range list {
			list[i] = structpb.NewNumberValue(1)
		}
		return &historyv1.ExecuteRequest{Spec: &structpb.Struct{Fields: map[string]*structpb.Value{"l": structpb.NewListValue(&structpb.ListValue{Values: list})}}}
	}
	text := func(s string, n int) *historyv1.ExecuteRequest {
		return &historyv1.ExecuteRequest{Env: map[string]string{"X": strings.Repeat(s, n)}}
	}
	for name, test := range map[string]struct {
		request *historyv1.ExecuteRequest
		fits    bool
	}{
		"empty":                      {&historyv1.ExecuteRequest{}, true},
		"a large text":               {text("x", 1_800_000), true},
		"a text that is too large":   {text("x", 1_950_000), false},
		"control characters":         {text("\x01", 300_000), true},
		"too many of them":           {text("\x01", 400_000), false},
		"many numbers":               {numbers(600_000), true},
		"more numbers than are sent": {numbers(1_000_000), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := CheckSize(test.request)
			if (err == nil) != test.fits {
				t.Errorf("got %v", err)
			}
			payload, encodeErr := converter.GetDefaultDataConverter().ToPayload(test.request)
			if encodeErr != nil {
				t.Fatal(encodeErr)
			}
			if size := len(payload.GetData()); err == nil && size > MaxPayloadBytes {
				t.Errorf("passed with %d bytes", size)
			}
		})
	}
}
