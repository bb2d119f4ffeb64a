// Package openapi serves the OpenAPI document of the REST paths. dev/generate.sh makes the document from proto.
//
// It imports nothing of this module.
package openapi
