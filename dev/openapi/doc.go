// Command openapi finishes the OpenAPI document that protoc-gen-connect-openapi generates from proto. It reads the plugin's
// document from standard input, prints the one that gateways serve, and writes the table of paths into the guide:
//
//	dev/generate.sh
//
// The plugin turns google.api.http annotations into paths and messages into schemas. This command adds what proto cannot
// express: error bodies and the possible statuses of a call, event streams, YAML bodies, headers, and schemas of JSON forms
// that the plugin gets wrong. proto/openapi.base.yaml has the texts about the document as a whole.
//
// It imports proto.
package main
