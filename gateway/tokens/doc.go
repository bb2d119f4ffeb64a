// Package tokens keeps the tokens by which callers log in to the gateways of a deployment, in the store that the gateways share.
//
//	            create               expiry
//	(nothing) ─────────▶ active ───────────────▶ expired
//	                       │ revoke
//	                       └───────────────────▶ revoked
//
// A token is sy_<id>_<secret>. The store holds the id and the digest of the secret, so read access to the store is not
// enough to log in. The secret has 256 random bits, which rules out dictionary attacks: a plain digest is enough.
//
// Of this module it may import proto, activities/store, activities/store/storekey, gateway/auth, gateway/paging,
// gateway/rpcerror and workflows/names.
package tokens
