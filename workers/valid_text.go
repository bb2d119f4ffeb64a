package workers

import (
	"strings"
	"unicode/utf8"

	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// An error that quotes a client's input may not be valid UTF-8. Temporal cannot encode a message with such a text: the
// SDK panics, and the workflow task fails on every attempt. Every error that leaves a workflow or an activity,
// including decoding errors of the SDK, passes one of the two guards in this file.

// validFailures is a failure converter that makes the texts of failures valid UTF-8, for updates, workflows and
// activities.
type validFailures struct{ converter.FailureConverter }

func newFailureConverter(data converter.DataConverter) converter.FailureConverter {
	return validFailures{temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: data})}
}

func (v validFailures) ErrorToFailure(err error) *failurepb.Failure {
	failure := v.FailureConverter.ErrorToFailure(err)
	for f := failure; f != nil; f = f.GetCause() {
		// A failure that came from the server is shared and already valid, so it is not modified.
		setValid(&f.Message)
		setValid(&f.StackTrace)
		if app := f.GetApplicationFailureInfo(); app != nil {
			setValid(&app.Type)
		}
	}
	return failure
}

func setValid(text *string) {
	if !utf8.ValidString(*text) {
		*text = validText(*text)
	}
}

func validText(text string) string { return strings.ToValidUTF8(text, string(utf8.RuneError)) }

// validError is an error with a valid text.
type validError struct{ error }

func (e validError) Error() string { return validText(e.error.Error()) }
func (e validError) Unwrap() error { return e.error }

// makeValid returns the error with a valid text.
func makeValid(err error) error {
	if err == nil || utf8.ValidString(err.Error()) {
		return err
	}
	return validError{err}
}

// validQueries makes the texts of query errors valid, because the SDK sends the text beside the failure.
type validQueries struct {
	interceptor.InterceptorBase
}

func (*validQueries) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &queryInterceptor{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type queryInterceptor struct {
	interceptor.WorkflowInboundInterceptorBase
}

func (q *queryInterceptor) HandleQuery(ctx workflow.Context, in *interceptor.HandleQueryInput) (any, error) {
	answer, err := q.Next.HandleQuery(ctx, in)
	return answer, makeValid(err)
}
