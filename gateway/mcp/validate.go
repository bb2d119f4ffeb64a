package mcp

import (
	"context"
	"errors"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
)

// maxProblems bounds the problems in an answer.
const maxProblems = 50

// validationSchema returns the schema of the results of validate_definition.
func validationSchema() schema {
	return schema{"type": "object", "properties": schema{
		"valid":    schema{"type": "boolean"},
		"name":     schema{"type": "string"},
		"order":    schema{"type": "array", "description": "The tasks in a possible order of execution."},
		"problems": schema{"type": "array"}, "warnings": schema{"type": "array"},
	}}
}

var problemFields = parseProjection("problems(line column path message hint)")

// validateDefinition checks a definition without a gateway.
func validateDefinition(_ context.Context, i *invocation) (any, error) {
	document, err := i.document()
	if err != nil {
		return nil, err
	}
	checked, err := definition.ParseChecked("definition", []byte(document))
	if problems, ok := errors.AsType[source.Problems](err); ok {
		listed, err := problemList(problems)
		return map[string]any{"valid": false, "problems": listed}, err
	}
	if err != nil {
		return nil, err
	}
	order := definition.Order(checked.Definition)
	answer := map[string]any{"valid": true, "name": checked.Definition.GetName(), "order": order[:min(len(order), maxPage)]}
	if len(checked.Warnings) > 0 {
		answer["warnings"], err = problemList(checked.Warnings)
	}
	return answer, err
}

// problemList projects problems for an answer.
func problemList(problems source.Problems) (any, error) {
	object, err := project(&v1.ValidationFailure{Problems: problems[:min(len(problems), maxProblems)]}, problemFields)
	return object["problems"], err
}
