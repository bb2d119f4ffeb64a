// Package rest is the door for programs that speak REST: it serves the paths that the google.api.http annotations in proto
// give to calls. A request becomes a Connect call of the same handler that Connect and gRPC clients reach, so that limits,
// rules and validation are theirs.
//
//		request ──> Door ──────> endpoint ─────> vanguard ─────────> Connect handler
//		            path,        body, query:    JSON and the path
//		            alias,       one value a     become a message,
//		            method       field           and back
//		                │            │               │
//		                └────────────┴───────────────┴──> an error: {"code", "message", "details"}
//
//	  - JSON in and out. Zero values are printed; an unknown field or parameter is an error with the near name.
//	  - A body may also be a definition in YAML or JSON where a call takes a document. Parameters give the other fields.
//	  - Path, parameters and body may not give one field two values.
//	  - What creates a run answers 201 with its Location.
//	  - No request is redirected.
//
// README.md is the guide for users. vanguard is mounted in transcoder.go alone.
//
// Of this module it may import proto, gateway/rpcerror and workflows/nearest.
package rest
