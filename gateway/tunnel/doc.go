// Package tunnel connects clients to attempts that run on nodes. Nodes open no ports: each node keeps a link to a gateway, and
// clients open streams through that link.
//
//	client ── GET /v1/sessions ──> gateway ── stream, ticket ──> node       the node's link is here
//	client ── GET /v1/sessions ──> gateway ── GET /v1/peers ───> gateway ──> node    it is at another gateway
//	node   ── GET /v1/links ─────> gateway ── where the node is ──> store
//
// The gateway that a client reaches finds the attempt, authorises the caller, and records the session in the audit log. It
// trusts a peer that proves to be a gateway of the deployment. The node checks that the dispatch is still the one that it is
// running.
//
// Of this module it may import proto, activities/sessions/link, activities/sessions/ticket, activities/sessions/wire,
// activities/signing, activities/store, gateway/audit, gateway/auth, gateway/nodeaccess, gateway/rpcerror, gateway/runindex,
// gateway/runview and workflows/names.
package tunnel
