// Command openapi finishes the OpenAPI document that protoc-gen-connect-openapi makes of proto. It reads the plugin's
// document from standard input, prints the one that gateways serve, and writes the table of paths into the guide:
//
//	dev/generate.sh
//
// The plugin turns google.api.http annotations into paths and messages into schemas. What this command adds, proto
// cannot say: error bodies and which statuses a call can have, event streams, bodies in YAML, headers, and schemas of
// JSON forms that the plugin gets wrong. proto/openapi.base.yaml has the texts about the whole.
//
// It imports proto.
package main
