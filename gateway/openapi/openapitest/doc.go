// Package openapitest holds a gateway to the OpenAPI document: [Load] reads the operations, [Operation.CheckAnswer]
// compares an answer with its schema, and [Operation.Draw] makes requests that are right, nearly right, or wrong. Only
// tests import it.
//
// It imports gateway/openapi.
package openapitest
