// Package auth is the lock in front of every path of the gateway. It authenticates callers and enforces the role in the
// rules of each call.
//
//	request ──> Middleware (who is it?) ──> door ──> Interceptor, or Require (may it?) ──> handler
//	                 │ no known token                                 │ role too weak
//	                 └──> 401                                         └──> 403
//
// Callers below operator may only see what they own: readers of runs check the Principal in the context.
//
// Of this module it may import proto, gateway/edge and gateway/rpcerror.
package auth
