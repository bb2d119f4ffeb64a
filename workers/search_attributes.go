package workers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"switchyard/workflows/visibility"
)

const (
	// attributeTimeout bounds the registration of the search attributes.
	attributeTimeout = 30 * time.Second
	attributePoll    = 100 * time.Millisecond
)

// ensureAttributes returns once the server accepts the search attributes of runs. It registers missing attributes in
// one call. If none is missing, it makes no call that needs that permission.
func ensureAttributes(ctx context.Context, c *Connection) error {
	ctx, cancel := context.WithTimeout(ctx, attributeTimeout)
	defer cancel()
	var addErr error
	for added := false; ; {
		missing, err := c.MissingAttributes(ctx)
		if err == nil && len(missing) == 0 {
			return nil
		}
		if err == nil && !added {
			_, addErr = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
				Namespace: c.Namespace, SearchAttributes: missing,
			})
			if _, exists := errors.AsType[*serviceerror.AlreadyExists](addErr); exists {
				addErr = nil // another process registered them first
			}
			added = addErr == nil
			if refused(addErr) {
				return attributesMissing(c.Namespace, missing, addErr)
			}
		}
		// A new attribute becomes usable once all parts of the server know it.
		select {
		case <-ctx.Done():
			return attributesMissing(c.Namespace, missing, errors.Join(addErr, err, ctx.Err()))
		case <-time.After(attributePoll):
		}
	}
}

// MissingAttributes returns the search attributes of runs that the server lacks, with their types.
func (c *Connection) MissingAttributes(ctx context.Context) (map[string]enumspb.IndexedValueType, error) {
	missing := visibility.Types()
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		_, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: name + " IS NULL AND WorkflowId = ''"})
		if err == nil {
			delete(missing, name)
		} else if _, unknown := errors.AsType[*serviceerror.InvalidArgument](err); !unknown {
			return nil, fmt.Errorf("look for search attribute %s: %w", name, err)
		}
	}
	return missing, nil
}

// attributesMissing returns the error for search attributes that could not be registered, with the command that
// registers them.
func attributesMissing(namespace string, missing map[string]enumspb.IndexedValueType, cause error) error {
	if len(missing) == 0 {
		return fmt.Errorf("search attributes of namespace %s: %w", namespace, cause)
	}
	return fmt.Errorf("namespace %s lacks the search attributes %s, and they could not be registered: %w; an administrator can run `%s`",
		namespace, strings.Join(slices.Sorted(maps.Keys(missing)), ", "), cause, RegisterCommand(namespace, missing))
}

// RegisterCommand returns the command that registers search attributes.
func RegisterCommand(namespace string, attributes map[string]enumspb.IndexedValueType) string {
	var command strings.Builder
	fmt.Fprintf(&command, "temporal operator search-attribute create --namespace %s", namespace)
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		fmt.Fprintf(&command, " --name %s --type %s", name, attributes[name])
	}
	return command.String()
}

// refused reports whether a retry is pointless.
func refused(err error) bool {
	switch err.(type) {
	case *serviceerror.PermissionDenied, *serviceerror.Unimplemented, *serviceerror.InvalidArgument:
		return true
	}
	return false
}
