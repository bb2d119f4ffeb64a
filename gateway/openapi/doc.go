// Package openapi serves the OpenAPI document of the REST paths. dev/generate.sh generates the document from the proto files.
//
// It imports nothing of this module.
package openapi
