// Package openapitest checks a gateway against the OpenAPI document: [Load] reads the operations, [Operation.CheckAnswer]
// validates a response, and [Operation.Draw] generates requests that are valid, nearly valid or invalid. Only tests import it.
//
// It imports gateway/openapi.
package openapitest
