// Package rest serves the REST paths that the google.api.http annotations in proto assign to calls. Each request becomes a
// Connect call to the same handler that Connect and gRPC clients use, so the same limits, rules and validation apply.
//
//		request ──> Door ──────> endpoint ─────> vanguard ─────────> Connect handler
//		            path,        body, query:    JSON and the path
//		            alias,       one value a     become a message,
//		            method       field           and back
//		                │            │               │
//		                └────────────┴───────────────┴──> an error: {"code", "message", "details"}
//
//	  - JSON in and out. Zero values are printed; an unknown field or parameter is an error that suggests a similar name.
//	  - If a call takes a document, its body may also be a definition in YAML or JSON. Parameters then set the other fields.
//	  - Path, parameters and body must not set one field to different values.
//	  - A call that creates a run returns 201 with its Location.
//	  - No request is redirected.
//
// docs/rest.md is the guide for users. Only transcoder.go uses vanguard.
//
// Of this module it may import proto, gateway/rpcerror, workflows/nearest and workflows/structs.
package rest
