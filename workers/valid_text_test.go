package workers

import (
	"errors"
	"fmt"
	"testing"
	"unicode/utf8"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// notText is a payload that is not valid UTF-8 and that its decoding error quotes.
var notText = &commonpb.Payload{
	Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingProtoJSON)}, Data: []byte{0xff},
}

// TestFailuresAreValidText checks that failures can be encoded, whatever the texts of an error and its causes are.
func TestFailuresAreValidText(t *testing.T) {
	t.Parallel()
	c := newFailureConverter(NewDataConverter())
	cause := errors.New("cause \xff")
	for _, err := range []error{
		cause, fmt.Errorf("outer \xff: %w", cause), temporal.NewApplicationError("app \xff", "type \xff"),
		temporal.NewNonRetryableApplicationError("app", "type", cause), makeValid(cause),
	} {
		failure := c.ErrorToFailure(err)
		if _, encodeErr := proto.Marshal(failure); encodeErr != nil {
			t.Errorf("%q: %v", err, encodeErr)
		}
		if back := c.FailureToError(failure); back == nil || back.Error() == "" {
			t.Errorf("%q comes back as %v", err, back)
		}
	}
	if c.ErrorToFailure(nil) != nil {
		t.Error("no error is a failure")
	}
}

// TestDecodingErrorsAreValidText checks that decoding errors have valid texts and unwrap to Temporal's errors.
func TestDecodingErrorsAreValidText(t *testing.T) {
	t.Parallel()
	c := NewDataConverter()
	for name, err := range map[string]error{
		"one":     c.FromPayload(notText, &historyv1.TaskCommand{}),
		"several": c.FromPayloads(&commonpb.Payloads{Payloads: []*commonpb.Payload{notText}}, &historyv1.TaskCommand{}),
	} {
		if err == nil || !utf8.ValidString(err.Error()) || utf8.ValidString(errors.Unwrap(err).Error()) {
			t.Errorf("%s: %q", name, err)
		}
	}
}

func TestQueryErrorsAreValidText(t *testing.T) {
	t.Parallel()
	q := (&validQueries{}).InterceptWorkflow(nil, &failingQueries{})
	if _, err := q.HandleQuery(nil, nil); err == nil || !utf8.ValidString(err.Error()) {
		t.Errorf("the error is %q", err)
	}
}

// failingQueries fails each query with an invalid text.
type failingQueries struct {
	interceptor.WorkflowInboundInterceptorBase
}

func (*failingQueries) HandleQuery(workflow.Context, *interceptor.HandleQueryInput) (any, error) {
	return nil, errors.New("\xff")
}
