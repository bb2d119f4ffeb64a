// Package rest is the door for programs that speak REST: it serves the paths that the google.api.http annotations in proto
// give to calls. A request becomes a Connect call of the same handler that Connect and gRPC clients reach, so that limits,
// rules and validation are theirs.
//
//   - JSON in and out. Zero values are printed; an unknown field or parameter is an error.
//   - A body may also be a definition in YAML (Content-Type application/yaml) where a call takes a document.
//   - Every error, those of paths and methods included, is {"code", "message", "details"}.
//   - What creates a run answers 201 with its Location.
//
// Of this module it may import proto, gateway/rpcerror and workflows/nearest.
package rest
