package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"switchyard/workflows/names"
)

const (
	// attributeTimeout bounds the registration of the search attributes.
	attributeTimeout = 30 * time.Second
	attributePoll    = 100 * time.Millisecond
)

// SearchAttributes are those that runs have, by name.
func SearchAttributes() map[string]enumspb.IndexedValueType {
	return map[string]enumspb.IndexedValueType{names.DeadLettersAttribute: enumspb.INDEXED_VALUE_TYPE_INT}
}

// ensureAttributes returns when the server takes the search attributes, which it
// registers when they are missing. That needs no right where they are there.
func ensureAttributes(ctx context.Context, c *Connection) error {
	ctx, cancel := context.WithTimeout(ctx, attributeTimeout)
	defer cancel()
	for name, kind := range SearchAttributes() {
		if err := ensureAttribute(ctx, c, name, kind); err != nil {
			return fmt.Errorf("search attribute %s of namespace %s: %w; make it with `temporal operator search-attribute create --namespace %s --name %s --type %s`",
				name, c.Namespace, err, c.Namespace, name, kind)
		}
	}
	return nil
}

func ensureAttribute(ctx context.Context, c *Connection, name string, kind enumspb.IndexedValueType) error {
	var addErr error
	added := false
	for {
		_, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: name + " > 0"})
		if err == nil {
			return nil
		}
		if _, unknown := errors.AsType[*serviceerror.InvalidArgument](err); unknown && !added {
			_, addErr = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
				Namespace: c.Namespace, SearchAttributes: map[string]enumspb.IndexedValueType{name: kind},
			})
			if _, exists := errors.AsType[*serviceerror.AlreadyExists](addErr); exists {
				addErr = nil
			}
			added = addErr == nil
			if refused(addErr) {
				return addErr
			}
		}
		// A new attribute is usable when the server's parts have heard of it.
		select {
		case <-ctx.Done():
			return errors.Join(addErr, err)
		case <-time.After(attributePoll):
		}
	}
}

// refused tells whether asking again is no use.
func refused(err error) bool {
	switch err.(type) {
	case *serviceerror.PermissionDenied, *serviceerror.Unimplemented, *serviceerror.InvalidArgument:
		return true
	}
	return false
}
