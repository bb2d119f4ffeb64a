// Package auth is the lock before every door of the gateway: it finds out who sends a request, and holds each call to the
// role in its rules.
//
//	request ──> Middleware (who is it?) ──> door ──> Interceptor, or Require (may it?) ──> handler
//	                 │ no known token                                 │ role too weak
//	                 └──> 401                                         └──> 403
//
// What a caller below operator reaches is its own: readers of runs ask the Principal of the context.
//
// Of this module it may import proto, gateway/edge and gateway/rpcerror.
package auth
