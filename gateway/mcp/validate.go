package mcp

import (
	"context"
	"errors"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
)

// maxProblems and maxOrder bound the problems and the tasks in an answer.
const maxProblems, maxOrder = 50, 200

// validateDefinition checks a definition without a gateway.
func validateDefinition(_ context.Context, i *invocation) (any, error) {
	checked, err := definition.ParseChecked("definition", []byte(i.document()))
	if problems, ok := errors.AsType[source.Problems](err); ok {
		listed, err := problemList(problems)
		return map[string]any{"valid": false, "problems": listed}, err
	}
	if err != nil {
		return nil, err
	}
	order := definition.Order(checked.Definition)
	answer := map[string]any{"valid": true, "name": checked.Definition.GetName(), "order": order[:min(len(order), maxOrder)]}
	if len(checked.Warnings) > 0 {
		answer["warnings"], err = problemList(checked.Warnings)
	}
	return answer, err
}

// problemList returns problems for an answer.
func problemList(problems source.Problems) (any, error) {
	object, err := shorten(&v1.ValidationFailure{Problems: problems[:min(len(problems), maxProblems)]})
	return object["problems"], err
}
